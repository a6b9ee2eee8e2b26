"""Rounds of the scheduler: what is due fires once, the rest of a gap is counted, nobody starves.

The ids of cases (S1 …) are kinds of faults that engines in use have shown in public.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fixtures.engines import boundary, catch
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sqlalchemy import insert

from seams_lab.clock import ManualClock
from seams_lab.expressions import SECOND
from seams_lab.instants import to_micros
from seams_lab.runtime import schema
from seams_lab.runtime.runtime import Runtime
from tests.worlds import HOUR, LEASE, MINUTE, T0, World, asking, at, short, ticking, verify, world

DAILY = f"R/{T0}/P1D"


@contextmanager
def cycling(folder: Path, url: str, text: str, start: str, kind: str = "timeCycle"
            ) -> Iterator[World]:  # fmt: skip
    with world(folder, url, ticking(text, kind), start=start) as made:
        yield made


def dues(made: World) -> list[tuple[str, int]]:
    """(due as text, skipped) of each firing."""
    from seams_lab.instants import to_text

    return [(to_text(r.due), r.skipped) for r in made.rows(schema.firing)]


# ---------------------------------------------------------------------- the missed rule


@pytest.mark.parametrize(
    ("text", "steps", "expected"),
    [
        # One catch-up firing after an outage; the rest is skipped and counted.
        pytest.param("R/2022-07-04T00:40:00+08:00/PT5M",
                     ["2022-07-03T16:55:00Z", "2022-07-03T17:12:23Z"],
                     [("2022-07-03T16:55:00Z", 3), ("2022-07-03T17:10:00Z", 2)], id="S1 outage"),
        # The grid stays where the start put it.
        pytest.param("R/2023-07-01T00:00:00+02:00/PT15M",
                     ["2023-07-01T06:10:00Z", "2023-07-01T06:15:00Z"],
                     [("2023-07-01T06:00:00Z", 32), ("2023-07-01T06:15:00Z", 0)], id="S3 grid"),
        pytest.param(f"R3/{T0}/PT10M", ["2026-11-09T08:25:00Z", "2026-11-10T00:00:00Z"],
                     [("2026-11-09T08:20:00Z", 2)], id="S6 past start, series over"),
        pytest.param("R3/2036-11-15T11:00:00Z/PT10S",
                     ["2036-11-15T11:00:00Z", "2036-11-15T11:00:10Z", "2036-11-15T11:00:20Z",
                      "2036-11-15T11:00:30Z", "2036-11-15T11:00:40Z"],
                     [("2036-11-15T11:00:00Z", 0), ("2036-11-15T11:00:10Z", 0),
                      ("2036-11-15T11:00:20Z", 0)], id="S11 R3 is three"),
        pytest.param("R1/2021-07-01T19:22:00Z/P1D", ["2021-08-05T00:00:00Z"],
                     [("2021-07-01T19:22:00Z", 0)], id="S15 due stays the computed one"),
        pytest.param(f"R/{T0}/PT1S", ["2026-11-09T08:00:30Z"],
                     [("2026-11-09T08:00:30Z", 30)], id="S31 busy for 30 periods"),
        pytest.param(f"R/{T0}/PT10S", ["2026-11-09T08:00:00Z", "2026-11-09T09:18:00Z"],
                     [("2026-11-09T08:00:00Z", 0), ("2026-11-09T09:18:00Z", 467)],
                     id="S39 suspended laptop"),
        pytest.param("R/2024-03-30T02:30:00+01:00/P1D",
                     ["2024-03-30T01:30:00Z", "2024-03-31T01:30:00Z", "2024-04-01T01:30:00Z"],
                     [("2024-03-30T01:30:00Z", 0), ("2024-03-31T01:30:00Z", 0),
                      ("2024-04-01T01:30:00Z", 0)], id="S32 daylight saving begins"),
        pytest.param("R25/2026-11-01T00:00:00-07:00/PT1H", ["2026-11-02T12:00:00Z"],
                     [("2026-11-02T07:00:00Z", 24)], id="S34 daylight saving ends"),
        pytest.param("R6/2024-01-31T10:00:00Z/P1M",
                     ["2024-01-31T10:00:00Z", "2024-02-29T10:00:00Z", "2024-03-31T10:00:00Z",
                      "2024-04-30T10:00:00Z", "2024-05-31T10:00:00Z", "2024-06-30T10:00:00Z",
                      "2025-01-01T00:00:00Z"],
                     [("2024-01-31T10:00:00Z", 0), ("2024-02-29T10:00:00Z", 0),
                      ("2024-03-31T10:00:00Z", 0), ("2024-04-30T10:00:00Z", 0),
                      ("2024-05-31T10:00:00Z", 0), ("2024-06-30T10:00:00Z", 0)],
                     id="S44 month ends"),
    ],
)  # fmt: skip
def test_of_a_gap_the_newest_due_time_fires_and_the_others_are_counted(
    tmp_path: Path, store_url: str, text: str, steps: list[str], expected: list[tuple[str, int]]
) -> None:
    with cycling(tmp_path, store_url, text, steps[0]) as made:
        replicas = [made.replica("a"), made.replica("b")]
        for step in steps:
            made.clock.set(step)
            for replica in replicas:
                replica.settle()
        assert dues(made) == expected


def test_a_date_in_the_past_fires_once(tmp_path: Path, store_url: str) -> None:
    with cycling(tmp_path, store_url, "2026-01-01T00:00:00Z", T0, "timeDate") as made:
        assert made.replica().settle() == 1
        assert made.replica().settle() == 0
        assert dues(made) == [("2026-01-01T00:00:00Z", 0)]


@pytest.mark.parametrize(("before", "fires"), [(1, 0), (0, 1)])
def test_a_timer_is_due_at_its_due_instant_and_not_a_microsecond_before(
    tmp_path: Path, store_url: str, before: int, fires: int
) -> None:
    with cycling(tmp_path, store_url, DAILY, T0) as made:
        made.clock.set(at() - before)
        assert made.replica().settle() == fires


def test_a_skipped_firing_stays_skipped_for_a_replica_that_stalled(
    tmp_path: Path, store_url: str
) -> None:
    """The one that stalled has read the clock when the older due time was the newest."""
    with cycling(tmp_path, store_url, f"R/{T0}/PT1M", T0) as made:
        stalled, other = made.replica("a", clock=ManualClock(T0)), made.replica("b")
        made.clock.set("2026-11-09T08:01:00Z")
        other.settle()
        stalled.settle()
        assert made.firings() == [("tick", 60, 1)]


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


def test_each_due_time_is_on_the_grid_however_late_the_rounds_are(
    tmp_path: Path, store_url: str
) -> None:
    """S4: a round each 3.3 s over a cycle of 10 s."""
    with cycling(tmp_path, store_url, f"R/{T0}/PT10S", T0) as made:
        replica = made.replica()
        for _ in range(60):
            replica.settle()
            made.clock.advance(3_300_000)
        assert [due for _, due, _ in made.firings()] == list(range(0, 200, 10))
        verify(made, settled=False)


def test_a_firing_does_not_wait_for_the_instance_before(tmp_path: Path, store_url: str) -> None:
    """S17: nobody completes the user task behind the timer."""
    text = ticking(f"R3/{T0}/PT1M", nodes='<userTask id="u"/><endEvent id="e"/>',
                   flows="tick u; u e")  # fmt: skip
    with world(tmp_path, store_url, text, start=T0) as made:
        replica = made.replica()
        for _ in range(5):
            replica.settle()
            made.clock.advance("PT1M")
        assert made.statuses() == {"waiting": 3}


# ---------------------------------------------------------------------- several replicas, clocks


def test_what_another_replica_has_recorded_is_a_normal_outcome(
    tmp_path: Path, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """S38, S29: the row is there already; a batch keeps the rest."""
    texts = {f"m{n}": ticking(DAILY, identifier=f"p{n}") for n in range(20)}
    caplog.set_level(logging.DEBUG, "seams_lab.timer")
    with world(tmp_path, store_url, texts, start=T0) as made:
        replica = made.replica()
        event = replica.deployment.starts[0].event
        row = {"event": event, "due": at(), "waiter": "", "instance": "by hand", "skipped": 0,
               "fired_at": at(), "fired_by": "somebody"}  # fmt: skip
        made.execute(insert(schema.firing), row)
        assert len(replica._scheduler.claim_starts()) == 19
        assert f"timer claimed elsewhere {event} due {T0}" in caplog.text
        assert replica.settle() == 0
        assert made.replica().settle() == 0


def test_each_firing_is_attempted_once_and_a_quiet_round_writes_nothing(tmp_path: Path) -> None:
    """S8: 200 timers due in one tick; counted are the inserts, and the rounds after it."""
    texts = {f"m{n}": ticking(DAILY, identifier=f"p{n}") for n in range(200)}
    seen: list[str] = []
    with world(tmp_path, f"sqlite:///{tmp_path}/s.db", texts, start=T0) as made:
        replica = made.replica(watch=seen.append)
        replica.settle()
        assert seen.count("insert_firings") == 2
        seen.clear()
        replica.settle()
        assert not {"insert_firings", "lock_timers", "take_waits"} & set(seen)


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


def test_a_clock_that_steps_back_fires_nothing_twice(tmp_path: Path, store_url: str) -> None:
    with cycling(tmp_path, store_url, f"R/{T0}/PT1M", "2026-11-09T08:10:00Z") as made:
        replica = made.replica()
        replica.settle()
        made.clock.set("2026-11-09T08:05:30Z")
        assert replica.settle() == 0
        later = made.replica("restarted")
        assert later.settle() == 0
        assert later.status().in_future == [(replica.deployment.starts[0].event, at(600))]
        made.clock.set("2026-11-09T08:11:00Z")
        later.settle()
        assert made.firings() == [("tick", 600, 10), ("tick", 660, 0)]


# ---------------------------------------------------------------------- waiting timers


def test_a_boundary_cycle_counts_from_its_start_and_skips_from_its_arming(
    tmp_path: Path, store_url: str
) -> None:
    """Ruling 19a: reached at 08:25, R5 from 08:00 every 10 minutes: 08:30 and 08:40 are left."""
    nodes = '<serviceTask id="r"/><endEvent id="x"/>'
    text = asking(boundary("b", "timeCycle", f"R5/{T0}/PT10M"), "b r; r x", nodes)
    with world(tmp_path, store_url, text, start="2026-11-09T08:25:00Z") as made:
        replica = made.replica()
        replica.start_process("p")
        replica.settle()
        assert made.firings() == []
        made.clock.set("2026-11-09T09:00:00Z")
        replica.settle()
        assert made.firings() == [("b", 2400, 1)]
        assert made.rows(schema.wait) == []
        assert replica.instances()[0].status == "waiting"


def test_one_event_with_a_backlog_does_not_starve_another(tmp_path: Path, store_url: str) -> None:
    """20,000 instances wait on one event, one on another, which is due last."""
    nodes = '<serviceTask id="r"/><endEvent id="x"/><endEvent id="y"/>'
    text = asking(
        boundary("many", "timeDate", T0) + boundary("one", "timeDate", "2026-11-09T08:00:01Z"),
        "many x; one r; r y", nodes,
    )  # fmt: skip
    with world(tmp_path, store_url, text) as made:
        replica = made.replica()
        replica.start_process("p")
        [row] = made.rows(schema.instance)
        waits = {short(w.event): w for w in made.rows(schema.wait)}
        like, held = row._asdict(), waits["many"]._asdict()
        made.execute(insert(schema.instance), [like | {"id": f"x{n:05d}"} for n in range(20_000)])
        made.execute(insert(schema.wait), [held | {"instance": f"x{n:05d}"} for n in range(20_000)])
        made.clock.set("2026-11-09T08:00:02Z")
        first = replica._scheduler.claim_waits(8)
        taken = {short(w.event) for work in first for w in work.claim.waits}
        assert taken == {"many", "one"}
        assert sum(len(work.claim.waits) for work in first) <= 9


def test_two_events_of_one_id_in_two_models_are_two_events(tmp_path: Path, store_url: str) -> None:
    texts = {
        "one": ticking(DAILY, identifier="p1"),
        "two": ticking(f"R/{T0}/PT1H", identifier="p2"),
    }
    with world(tmp_path, store_url, texts, start=T0) as made:
        replica = made.replica()
        replica.settle()
        made.clock.advance("PT1H")
        replica.settle()
        events = [row.event for row in made.rows(schema.firing)]
        assert sorted(events) == ["one.bpmn#tick", "two.bpmn#tick", "two.bpmn#tick"]


def test_completing_a_task_removes_the_rows_of_its_timers(tmp_path: Path, store_url: str) -> None:
    """S43."""
    text = asking(
        boundary("b", "timeDuration", "PT1H") + boundary("c", "timeDuration", "PT2H", "true"),
        "b x; c y", '<endEvent id="x"/><endEvent id="y"/>',
    )  # fmt: skip
    with world(tmp_path, store_url, text, start=T0) as made:
        replica = made.replica()
        one = replica.start_process("p")
        assert len(made.rows(schema.wait)) == 2
        replica.complete(one)
        assert made.rows(schema.wait) == []
        made.clock.advance("P1D")
        replica.settle()
        assert made.firings() == []


# ---------------------------------------------------------------------- poison and failures


def test_a_process_that_always_fails_holds_up_no_other(tmp_path: Path, store_url: str) -> None:
    def boom(data: dict[str, Any], context: Any) -> None:
        raise ValueError("poison")

    def text(task: str, identifier: str) -> str:
        return ticking(f"R/{T0}/PT1M", flows=f"tick {task}; {task} e", identifier=identifier,
                       nodes=f'<serviceTask id="{task}"/><endEvent id="e"/>')  # fmt: skip

    texts = {"bad": text("bad", "p1"), **{f"m{n}": text("ok", f"q{n}") for n in range(5)}}
    with world(tmp_path, store_url, texts, start=T0, handlers={"bad": boom}) as made:
        replica = made.replica()
        for _ in range(3):
            replica.settle()
            made.clock.advance("PT1M")
        assert made.statuses() == {"completed": 15, "failed": 3}
        failures = replica.status().failures
        assert set(failures["failure"]) == {"bad.bpmn#bad: the handler failed: ValueError: poison"}
        assert (failures["attempts"] >= 1).all()


def test_a_start_that_cannot_be_made_is_recorded_on_its_timer_and_tried_again(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {f"m{n}": ticking(DAILY, identifier=f"p{n}") for n in range(3)}
    with world(tmp_path, store_url, texts, start=T0) as made:
        replica = made.replica()
        begin = replica._engine.begin

        def broken(process: str, *rest: Any) -> str:
            if process == "p1":
                raise RuntimeError("cannot be made")
            return begin(process, *rest)

        monkeypatch.setattr(replica._engine, "begin", broken)
        assert replica.settle() == 2
        assert replica.settle() == 0, "not tried again before its time"
        timers = replica.status().timers.set_index("failure")
        assert list(timers.index).count("RuntimeError: cannot be made") == 1
        made.clock.advance("PT2S")
        assert replica.settle() == 0
        assert {row.attempts for row in made.rows(schema.timer)} == {0, 2}
        monkeypatch.undo()
        made.clock.advance("PT1M")
        assert replica.settle() == 1
        assert {row.attempts for row in made.rows(schema.timer)} == {0}
        verify(made)


def test_nothing_a_crash_leaves_behind_blocks_a_timer_for_ever(
    tmp_path: Path, store_url: str
) -> None:
    """S10, S24: claimed and never stepped, three times over, by replicas of one name."""
    with cycling(tmp_path, store_url, DAILY, T0) as made:
        for _ in range(3):
            replica = made.replica("same")
            replica._scheduler.claim_starts()
            replica._scheduler.claim_instances(10)
            made.clock.advance(LEASE)
        made.heal()
        assert made.statuses() == {"completed": 1}
        verify(made)


# ---------------------------------------------------------------------- waking up, telling


def test_the_next_wake_is_the_first_thing_that_can_be_claimed(tmp_path: Path) -> None:
    text = asking(boundary("b", "timeDuration", "PT1H"), "b x", '<endEvent id="x"/>')
    texts = {"ask": text, "tick": ticking(DAILY, identifier="q")}
    with world(tmp_path, f"sqlite:///{tmp_path}/s.db", texts, start="2026-11-09T06:30:00Z") as made:
        replica = made.replica()
        assert replica.next_wake() == at()
        replica.start_process("p")
        assert replica.next_wake() == at(-1800)
        made.clock.set(T0)
        assert replica.next_wake() <= at(), "both are due"
        replica.settle()
        assert replica.next_wake() == at(86_400)


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


def test_a_due_time_is_whole_microseconds_from_the_epoch(tmp_path: Path, store_url: str) -> None:
    text = asking(boundary("b", "timeDuration", "PT0.000001S"), "b x", '<endEvent id="x"/>')
    with world(tmp_path, store_url, text, start=T0) as made:
        made.replica().start_process("p")
        assert made.rows(schema.wait)[0].due == to_micros(T0) + 1
        assert SECOND == 1_000_000
