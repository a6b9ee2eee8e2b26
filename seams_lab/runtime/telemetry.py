"""What the scheduler tells: log lines (R76), spans (R77) and counters, one place for each text.

The OpenTelemetry API is used; without its SDK spans and instruments cost next to nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from opentelemetry import metrics, trace

from seams_lab import clock
from seams_lab.expressions import SECOND
from seams_lab.instants import to_text

log = logging.getLogger("seams_lab.timer")


class Outcome(NamedTuple):
    """How the claim of one firing ended: with an instance, or with none (claimed elsewhere)."""

    event: str
    due: int
    instance: str | None


@dataclass
class Counters:
    """Totals since the replica was loaded; lateness in microseconds."""

    fired: int = 0
    claimed_elsewhere: int = 0
    missed: int = 0
    retried: int = 0
    failed: int = 0
    lateness_sum: int = 0
    lateness_max: int = 0


class Telemetry:
    """Tells the outcomes of one replica's scheduler.

    Parameters
    ----------
    tracer_provider, meter_provider : optional
        OpenTelemetry providers; the global ones by default.
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        self.counters = Counters()
        self._lock = threading.Lock()
        self._tracer = trace.get_tracer("seams_lab", tracer_provider=tracer_provider)
        meter = metrics.get_meter("seams_lab", meter_provider=meter_provider)
        self._fired = meter.create_counter("seams.timer.fired")
        self._elsewhere = meter.create_counter("seams.timer.claimed_elsewhere")
        self._missed = meter.create_counter("seams.timer.missed")
        self._retried = meter.create_counter("seams.timer.retried")
        self._lateness = meter.create_histogram("seams.timer.lateness", unit="s")

    # ------------------------------------------------------------------ outcomes

    def fired(self, event: str, due: int, instance: str, now: int) -> None:
        """A replica started or woke an instance, committed."""
        late = max(now - due, 0)
        with self._lock:
            self.counters.fired += 1
            self.counters.lateness_sum += late
            self.counters.lateness_max = max(self.counters.lateness_max, late)
        self._fired.add(1)
        self._lateness.record(late / SECOND)
        if log.isEnabledFor(logging.INFO):
            log.info("timer fire %s due %s instance %s", event, to_text(due), instance)

    def claimed_elsewhere(self, event: str, due: int) -> None:
        """An insert conflicted, or another replica holds the lease: a normal outcome."""
        with self._lock:
            self.counters.claimed_elsewhere += 1
        self._elsewhere.add(1)
        if log.isEnabledFor(logging.DEBUG):
            log.debug("timer claimed elsewhere %s due %s", event, to_text(due))

    def missed(self, event: str, count: int) -> None:
        """A firing was committed that skips *count* missed ones."""
        with self._lock:
            self.counters.missed += count
        self._missed.add(count)
        log.info("timer missed %s %d firing(s)", event, count)

    def failed(self, instance: str, failure: str, retry_at: int | None) -> None:
        """An instance failed; it went back to its last checkpoint."""
        self._count_failure(retry_at)
        again = "not tried again" if retry_at is None else f"again at {to_text(retry_at)}"
        log.warning("instance failed %s: %s (%s)", instance, failure, again)

    def start_failed(self, event: str, due: int, failure: str, attempts: int) -> None:
        """A timer start failed before its commit; it is tried again."""
        self._count_failure(due)
        log.warning("timer start failed %s due %s attempt %d: %s",
                    event, to_text(due), attempts, failure)  # fmt: skip

    def _count_failure(self, retry_at: int | None) -> None:
        with self._lock:
            self.counters.failed += 1
            self.counters.retried += retry_at is not None
        if retry_at is not None:
            self._retried.add(1)

    # ------------------------------------------------------------------ spans

    def mark(self) -> int:
        """The beginning of a claim transaction, for `claim_spans`."""
        return clock.now_ns()

    def claim_spans(self, outcomes: Sequence[Outcome], began: int) -> None:
        """One span per firing around the claim transaction that they shared."""
        for outcome in outcomes:
            span = self._tracer.start_span("seams.timer.claim", start_time=began)
            if not span.is_recording():
                return
            span.set_attributes(_attributes(*outcome))
            span.end()

    @contextmanager
    def fire_span(self, event: str, due: int, instance: str) -> Iterator[None]:
        """The span around a start or a wake."""
        with self._tracer.start_as_current_span("seams.timer.fire") as span:
            if span.is_recording():
                span.set_attributes(_attributes(event, due, instance))
            yield


def _attributes(event: str, due: int, instance: str | None) -> dict[str, str]:
    known = {"seams.timer.event": event, "seams.timer.due": to_text(due)}
    return known if instance is None else known | {"seams.instance.id": instance}
