"""What the outside sees of the timers: log lines to the letter, spans, counters, instruments."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from seams_lab.expressions import HOUR, SECOND
from seams_lab.instants import to_micros
from seams_lab.runtime import telemetry as module
from seams_lab.runtime.telemetry import Counters, Outcome, Telemetry

EVENT = "https://example.org/expense-bpmn#Reminder"
OTHER = "https://example.org/expense-bpmn#Daily"
DUE = to_micros("2026-11-09T08:00:00Z")
TEXT = "2026-11-09T08:00:00Z"


class Spans:
    """A telemetry with a provider of its own, and the spans that it finished."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.telemetry = Telemetry(tracer_provider=self.provider)

    @property
    def finished(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()


@pytest.fixture
def spans() -> Spans:
    return Spans()


def measured(reader: InMemoryMetricReader) -> dict[str, Any]:
    """Instrument → its data points, as {event: value} or, of the histogram, the points."""
    data = reader.get_metrics_data()
    assert data is not None
    [resource] = data.resource_metrics
    [scope] = resource.scope_metrics
    assert scope.scope.name == "seams_lab.timer"
    found: dict[str, Any] = {}
    for metric in scope.metrics:
        points = {(p.attributes or {}).get("seams.timer.event"): p for p in metric.data.data_points}
        if metric.name != "seams.timer.lateness":
            found[metric.name] = {event: point.value for event, point in points.items()}
        else:
            found[metric.name] = points
            assert metric.unit == "s"
    return found


# ---------------------------------------------------------------------- log lines

LINES: list[tuple[Callable[[Telemetry], None], str, str]] = [
    (
        lambda t: t.fired(EVENT, DUE, "i-1", DUE + 5),
        "INFO",
        f"timer fire {EVENT} due {TEXT} instance i-1",
    ),
    (
        lambda t: t.fired(EVENT, DUE + 1, "i-1", DUE + 5),
        "INFO",
        f"timer fire {EVENT} due 2026-11-09T08:00:00.000001Z instance i-1",
    ),
    (
        lambda t: t.claimed_elsewhere(EVENT, DUE),
        "DEBUG",
        f"timer claimed elsewhere {EVENT} due {TEXT}",
    ),
    (lambda t: t.missed(EVENT, 1), "WARNING", f"timer missed {EVENT} 1 firing(s)"),
    (lambda t: t.missed(EVENT, 12_345), "WARNING", f"timer missed {EVENT} 12345 firing(s)"),
    (
        lambda t: t.start_failed(EVENT, DUE, "Boom: 100%\n no", 2),
        "WARNING",
        f"timer start failed {EVENT} due {TEXT} attempt 2: Boom: 100% no",
    ),
    (
        lambda t: t.failed("i-1", "Boom\r\nno", DUE),
        "WARNING",
        f"instance failed i-1: Boom no (again at {TEXT})",
    ),
    (
        lambda t: t.failed("i-1", "Boom", None),
        "ERROR",
        "instance failed i-1: Boom (not tried again)",
    ),
]


@pytest.mark.parametrize(("call", "level", "line"), LINES, ids=[line for _, _, line in LINES])
def test_what_happened_is_one_log_line(
    caplog: pytest.LogCaptureFixture, call: Callable[[Telemetry], None], level: str, line: str
) -> None:
    caplog.set_level(logging.DEBUG, "seams_lab.timer")
    call(Telemetry())
    seen = [(r.name, r.levelname, r.getMessage()) for r in caplog.records]
    assert seen == [("seams_lab.timer", level, line)]


def test_lines_below_the_level_are_not_even_written(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "to_text", forbidden)
    caplog.set_level(logging.WARNING, "seams_lab.timer")
    telemetry = Telemetry(trace.NoOpTracerProvider())
    telemetry.fired(EVENT, DUE, "i-1", DUE)
    telemetry.claimed_elsewhere(EVENT, DUE)
    assert caplog.records == []


def forbidden(*_: object) -> str:
    raise AssertionError("this costs too much here")


# ---------------------------------------------------------------------- spans


def test_each_firing_of_a_transaction_has_its_claim_span(spans: Spans) -> None:
    before = time.time_ns()
    began = spans.telemetry.mark()
    outcomes = [Outcome(EVENT, DUE, "i-1"), Outcome(OTHER, DUE + HOUR), Outcome(EVENT, DUE, "i-2")]
    spans.telemetry.claim_spans(outcomes, began)
    after = time.time_ns()

    assert [dict(span.attributes or {}) for span in spans.finished] == [
        {"seams.timer.event": EVENT, "seams.timer.due": TEXT, "seams.instance.id": "i-1"},
        {"seams.timer.event": OTHER, "seams.timer.due": "2026-11-09T09:00:00Z"},
        {"seams.timer.event": EVENT, "seams.timer.due": TEXT, "seams.instance.id": "i-2"},
    ]
    assert {span.name for span in spans.finished} == {"seams.timer.claim"}
    [times] = {(span.start_time, span.end_time) for span in spans.finished}
    assert before <= began == times[0] <= times[1] <= after


def test_a_claim_span_ends_where_it_is_told(spans: Spans) -> None:
    spans.telemetry.claim_spans([Outcome(EVENT, DUE)], 5_000, 7_000)
    [span] = spans.finished
    assert (span.start_time, span.end_time) == (5_000, 7_000)


def test_a_start_or_wake_has_a_fire_span_that_holds_what_happens_inside(spans: Spans) -> None:
    with spans.telemetry.fire_span(EVENT, DUE, "i-1"):
        assert spans.finished == ()
        spans.provider.get_tracer("handler").start_span("inside").end()
    inside, fire = spans.finished
    assert fire.name == "seams.timer.fire"
    assert fire.status.is_ok
    assert dict(fire.attributes or {}) == {
        "seams.timer.event": EVENT,
        "seams.timer.due": TEXT,
        "seams.instance.id": "i-1",
    }
    assert inside.parent is not None
    assert fire.context is not None
    assert inside.parent.span_id == fire.context.span_id


def test_an_instance_may_become_known_inside_the_fire_span(spans: Spans) -> None:
    with spans.telemetry.fire_span(EVENT, DUE) as span:
        span.set_attribute("seams.instance.id", "i-2")
    [fire] = spans.finished
    assert (fire.attributes or {})["seams.instance.id"] == "i-2"
    with Telemetry(trace.NoOpTracerProvider()).fire_span(EVENT, DUE) as span:
        span.set_attribute("seams.instance.id", "i-2")


def test_an_error_in_a_fire_span_is_on_it_and_goes_on(spans: Spans) -> None:
    with pytest.raises(ValueError, match="no"), spans.telemetry.fire_span(EVENT, DUE, "i-1"):
        raise ValueError("no")
    [fire] = spans.finished
    assert fire.status.status_code is trace.StatusCode.ERROR
    assert [event.name for event in fire.events] == ["exception"]


def test_without_an_sdk_nothing_is_written_for_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "to_text", forbidden)
    monkeypatch.setattr(module.clock, "now_ns", forbidden)
    telemetry = Telemetry(trace.NoOpTracerProvider(), metrics.NoOpMeterProvider())
    began = telemetry.mark()
    assert began == 0
    telemetry.claim_spans([Outcome(EVENT, DUE, "i-1")], began)
    with telemetry.fire_span(EVENT, DUE, "i-1") as span:
        assert not span.is_recording()


def test_a_claim_that_began_untraced_has_no_span(spans: Spans) -> None:
    spans.telemetry.claim_spans([Outcome(EVENT, DUE)], 0)
    assert spans.finished == ()


# A process of its own, for the process-wide provider can be set once only.
LATE = """
from opentelemetry import metrics, trace
from seams_lab.runtime.telemetry import Outcome, Telemetry
telemetry = Telemetry()
assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
assert telemetry.mark() == 0
telemetry.claim_spans([Outcome("e", 0)], 1)
with telemetry.fire_span("e", 0):
    pass

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
metrics.set_meter_provider(MeterProvider([reader]))
telemetry.claim_spans([Outcome("e", 0)], telemetry.mark())
with telemetry.fire_span("e", 0):
    pass
telemetry.missed("e", 3)
print(*(span.name for span in exporter.get_finished_spans()))
[resource] = reader.get_metrics_data().resource_metrics
print(*(metric.name for metric in resource.scope_metrics[0].metrics))
"""


def test_providers_that_are_set_later_are_used_and_nothing_warns() -> None:
    command = [sys.executable, "-W", "error", "-c", LATE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.splitlines() == ["seams.timer.claim seams.timer.fire", "seams.timer.missed"]
    assert done.stderr == "timer missed e 3 firing(s)\n"
    assert done.returncode == 0


# ---------------------------------------------------------------------- counts


def told_twice(telemetry: Telemetry) -> None:
    telemetry.fired(EVENT, DUE, "i-1", DUE + SECOND)
    telemetry.fired(OTHER, DUE, "i-2", DUE + 3 * SECOND)
    telemetry.fired(EVENT, DUE, "i-3", DUE + 2 * SECOND)
    telemetry.claimed_elsewhere(EVENT, DUE)
    telemetry.missed(EVENT, 7)
    telemetry.missed(OTHER, 4)
    telemetry.start_failed(EVENT, DUE, "Boom", 1)
    telemetry.failed("i-1", "Boom", DUE)
    telemetry.failed("i-1", "Boom", None)


def test_the_counters_add_up() -> None:
    telemetry = Telemetry()
    assert telemetry.counters == Counters()
    told_twice(telemetry)
    before = telemetry.counters
    assert before == Counters(
        fired=3,
        claimed_elsewhere=1,
        missed=11,
        failed=3,
        retried=2,
        lateness_max=3 * SECOND,
        lateness_sum=6 * SECOND,
    )
    telemetry.missed(EVENT, 1)
    assert before.missed == 11
    assert telemetry.counters.missed == 12


def test_a_clock_that_was_set_back_counts_as_on_time() -> None:
    telemetry = Telemetry()
    telemetry.fired(EVENT, DUE, "i-1", DUE - HOUR)
    assert (telemetry.counters.lateness_sum, telemetry.counters.lateness_max) == (0, 0)


def test_the_instruments_say_the_same() -> None:
    reader = InMemoryMetricReader()
    telemetry = Telemetry(meter_provider=MeterProvider([reader], shutdown_on_exit=False))
    told_twice(telemetry)
    found = measured(reader)
    lateness = found.pop("seams.timer.lateness")
    assert found == {
        "seams.timer.fired": {EVENT: 2, OTHER: 1},
        "seams.timer.claimed_elsewhere": {EVENT: 1},
        "seams.timer.missed": {EVENT: 7, OTHER: 4},
        "seams.timer.failed": {EVENT: 1, None: 2},
        "seams.timer.retried": {EVENT: 1, None: 1},
    }
    assert {e: (p.count, p.sum, p.max) for e, p in lateness.items()} == {
        EVENT: (2, 3.0, 2.0),
        OTHER: (1, 3.0, 3.0),
    }
    assert lateness[EVENT].explicit_bounds == module.LATENESS_BOUNDS


def test_no_count_is_lost_between_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(dict[str, int]):
        def __getitem__(self, key: str) -> int:
            value = super().__getitem__(key)
            time.sleep(0.005)
            return value

    telemetry = Telemetry()
    monkeypatch.setattr(telemetry, "_counts", Slow(telemetry._counts))
    threads = [
        threading.Thread(target=telemetry.fired, args=(EVENT, DUE, "i", DUE + i)) for i in range(6)
    ]
    threads += [threading.Thread(target=telemetry.missed, args=(EVENT, 1)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = telemetry.counters
    assert (seen.fired, seen.missed, seen.lateness_sum, seen.lateness_max) == (6, 6, 15, 5)
