"""What a run of the real scheduler tells: log lines, spans; and which clock it asks."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fixtures.engines import catch
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from seams_lab.clock import ManualClock
from seams_lab.runtime import schema
from seams_lab.runtime.runtime import Runtime
from tests.worlds import HOUR, MINUTE, T0, World, ticking, world

DAILY = f"R/{T0}/P1D"


@contextmanager
def cycling(folder: Path, url: str, text: str, start: str, kind: str = "timeCycle"
            ) -> Iterator[World]:  # fmt: skip
    with world(folder, url, ticking(text, kind), start=start) as made:
        yield made


def test_a_gap_costs_the_same_however_long_it_is(tmp_path: Path) -> None:
    """Statements are counted, not seconds."""
    counts = []
    for number, later in enumerate(["2026-11-09T08:00:02Z", "2126-11-09T08:00:00Z"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        seen: list[str] = []
        with cycling(folder, f"sqlite:///{folder}/s.db", f"R/{T0}/PT1S", T0) as made:
            replica = made.replica()
            replica.settle()
            made.clock.set(later)
            replica.store.watch = seen.append
            replica.settle()
            verify_gap = made.firings()[-1]
            assert verify_gap[2] == verify_gap[1] - 1
        counts.append(len(seen))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("hours", [1, -1], ids=["an hour ahead", "an hour behind"])
def test_the_clock_of_a_host_decides_nothing(
    tmp_path: Path, postgresql_url: str, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S27: a replica whose host is off agrees with the store, for it asks the store."""
    from seams_lab import clock
    from seams_lab.runtime.store import Store, StoreClock

    with Store(postgresql_url) as store:
        true = StoreClock(store).now()
        monkeypatch.setattr(clock, "now", lambda: true + hours * HOUR)
        assert abs(StoreClock(store).now() - true) < MINUTE


@pytest.fixture
def postgresql_url(postgresql: str) -> Iterator[str]:
    from tests.postgresql import empty_schema

    with empty_schema(postgresql) as address:
        yield address


def test_the_log_has_exactly_these_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "seams_lab.timer")
    with cycling(tmp_path, f"sqlite:///{tmp_path}/s.db", DAILY, "2026-11-11T08:00:00Z") as made:
        one, two = made.replica("a"), made.replica("b")
        one.settle()
        two._scheduler._newest[:] = -1
        two._scheduler.claim_starts()
        [row] = made.rows(schema.firing)
        lines = [r.getMessage() for r in caplog.records if r.name == "seams_lab.timer"]
        assert lines == [
            f"timer fire m.bpmn#tick due 2026-11-11T08:00:00Z instance {row.instance}",
            "timer missed m.bpmn#tick 2 firing(s)",
            "timer claimed elsewhere m.bpmn#tick due 2026-11-11T08:00:00Z",
        ]


def test_each_firing_has_its_spans_also_in_a_batch(tmp_path: Path) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    folder = tmp_path / "model"
    folder.mkdir()
    for n in range(3):
        (folder / f"m{n}.bpmn").write_text(ticking(DAILY, identifier=f"p{n}"), "utf-8")
    (folder / "w.bpmn").write_text(
        '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process id="w">'
        '<startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="c"/>'
        + catch("c", "timeDuration", "PT1H")
        + '<sequenceFlow id="g" sourceRef="c" targetRef="e"/><endEvent id="e"/></process>'
        "</definitions>",
        "utf-8",
    )
    clock = ManualClock(T0)
    with Runtime.load(folder, clock=clock, tracer_provider=provider) as runtime:
        runtime.settle()
        runtime.start_process("w")
        clock.advance("PT1H")
        runtime.settle()
    spans = exporter.get_finished_spans()
    for name in ("seams.timer.claim", "seams.timer.fire"):
        mine = [dict(s.attributes or {}) for s in spans if s.name == name]
        assert sorted(str(a["seams.timer.event"]) for a in mine) == [
            "m0.bpmn#tick", "m1.bpmn#tick", "m2.bpmn#tick", "w.bpmn#c",
        ]  # fmt: skip
        assert {str(a["seams.timer.due"]) for a in mine} == {T0, "2026-11-09T09:00:00Z"}
        assert all(a["seams.instance.id"] for a in mine)
    claims = [s for s in spans if s.name == "seams.timer.claim"][:3]
    assert len({s.start_time for s in claims}) == 1, "they shared the transaction"
