"""What the outside sees of the timers: log lines (R76), spans (R77), counts.

Only OpenTelemetry's API is used: without its SDK no span is made and the instruments do nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple

from opentelemetry import metrics, trace

from seams_lab import clock
from seams_lab.expressions import SECOND
from seams_lab.instants import to_text

log = logging.getLogger("seams_lab.timer")

NAME = "seams_lab.timer"
#: Upper bounds of the lateness histogram, in seconds: a poll, a lease, a restart, a night.
LATENESS_BOUNDS = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600, 28_800, 86_400)


class Outcome(NamedTuple):
    """How a claim ended: ``instance`` is None where this replica did not get the firing.

    ``event`` is the event's IRI, ``due`` in microseconds since the epoch (UTC).
    """

    event: str
    due: int
    instance: str | None = None


@dataclass(frozen=True, slots=True)
class Counters:
    """What one replica has counted since it began.

    Parameters
    ----------
    fired : int
        Firings of this replica, starts and wakes.
    claimed_elsewhere : int
        Firings that another replica took.
    missed : int
        Firings skipped in favour of a newer one.
    failed : int
        Starts and steps that failed.
    retried : int
        Those of them that will be tried again.
    lateness_max, lateness_sum : int
        From the due time to the firing, in microseconds, over ``fired``.
    """

    fired: int = 0
    claimed_elsewhere: int = 0
    missed: int = 0
    failed: int = 0
    retried: int = 0
    lateness_max: int = 0
    lateness_sum: int = 0


class Telemetry:
    """Tells loggers, spans and instruments what happens to timers; safe to share between threads.

    Call it after the commit of what it tells. An event is its IRI; instants are microseconds
    since the epoch (UTC).

    Parameters
    ----------
    tracer_provider, meter_provider : optional
        OpenTelemetry providers; by default the process-wide ones, also when they are set later.
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        self._provider = tracer_provider
        self._tracer = trace.get_tracer(NAME, tracer_provider=tracer_provider)
        meter = metrics.get_meter(NAME, meter_provider=meter_provider)
        self._instruments = {
            name: meter.create_counter(f"seams.timer.{name}", "{firing}", what)
            for name, what in [
                ("fired", "Firings of this replica"),
                ("claimed_elsewhere", "Firings that another replica took"),
                ("missed", "Firings skipped in favour of a newer one"),
                ("failed", "Starts and steps that failed"),
                ("retried", "Failed starts and steps that will be tried again"),
            ]
        }
        self._lateness = meter.create_histogram(
            "seams.timer.lateness", "s", "From the due time to the firing",
            explicit_bucket_boundaries_advisory=LATENESS_BOUNDS,
        )  # fmt: skip
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(Counters.__dataclass_fields__, 0)

    @property
    def counters(self) -> Counters:
        """The counts at this moment."""
        with self._lock:
            return Counters(**self._counts)

    def fired(self, event: str, due: int, instance: str, now: int) -> None:
        """A firing was committed at *now* for an instance that it started or woke."""
        if log.isEnabledFor(logging.INFO):
            log.info("timer fire %s due %s instance %s", event, to_text(due), instance)
        late = max(now - due, 0)
        with self._lock:
            counts = self._counts
            counts["fired"] += 1
            counts["lateness_sum"] += late
            counts["lateness_max"] = max(late, counts["lateness_max"])
        attributes = {"seams.timer.event": event}
        self._instruments["fired"].add(1, attributes)
        self._lateness.record(late / SECOND, attributes)

    def claimed_elsewhere(self, event: str, due: int) -> None:
        """Another replica has the firing or its lease: a normal outcome."""
        if log.isEnabledFor(logging.DEBUG):
            log.debug("timer claimed elsewhere %s due %s", event, to_text(due))
        self._count("claimed_elsewhere", event)

    def missed(self, event: str, count: int) -> None:
        """So many firings were skipped, the one that ran not counted (ruling 19)."""
        log.warning("timer missed %s %d firing(s)", event, count)
        self._count("missed", event, count)

    def start_failed(self, event: str, due: int, failure: str, attempts: int) -> None:
        """A start failed before its commit, for the *attempts*-th time; it is tried again."""
        log.warning(
            "timer start failed %s due %s attempt %d: %s",
            event, to_text(due), attempts, _one_line(failure),
        )  # fmt: skip
        self._count("failed", event)
        self._count("retried", event)

    def failed(self, instance: str, failure: str, again: int | None) -> None:
        """A step of an instance failed; it is tried *again* at that instant, or not (None)."""
        then = "not tried again" if again is None else f"again at {to_text(again)}"
        level = logging.ERROR if again is None else logging.WARNING
        log.log(level, "instance failed %s: %s (%s)", instance, _one_line(failure), then)
        self._count("failed")
        if again is not None:
            self._count("retried")

    def _count(self, name: str, event: str | None = None, amount: int = 1) -> None:
        with self._lock:
            self._counts[name] += amount
        self._instruments[name].add(amount, {"seams.timer.event": event} if event else None)

    # ------------------------------------------------------------------ spans

    def mark(self) -> int:
        """The moment at which a claim's transaction begins, for `claim_spans`; 0 if none is made.

        By the host's clock, in nanoseconds: spans of several services lie on one time line.
        """
        return clock.now_ns() if self._tracing() else 0

    def claim_spans(self, outcomes: Iterable[Outcome], began: int, ended: int = 0) -> None:
        """Make the span ``seams.timer.claim`` of each firing of one transaction.

        *began* and *ended* are from `mark`; *ended* is by default now.
        """
        if not began or not self._tracing():
            return
        ended = ended or clock.now_ns()
        for outcome in outcomes:
            self._tracer.start_span(
                "seams.timer.claim", attributes=_attributes(*outcome), start_time=began
            ).end(ended)

    def fire_span(
        self, event: str, due: int, instance: str | None = None
    ) -> AbstractContextManager[trace.Span]:
        """The span ``seams.timer.fire`` around a start or a wake; an error is recorded on it.

        Where the instance becomes known inside, set ``seams.instance.id`` on the span it gives.
        """
        if not self._tracing():
            return nullcontext(trace.INVALID_SPAN)
        return self._tracer.start_as_current_span(
            "seams.timer.fire", attributes=_attributes(event, due, instance)
        )

    def _tracing(self) -> bool:
        """Whether a span could be recorded: writing its attributes costs more than all the rest."""
        provider = self._provider or trace.get_tracer_provider()
        return not isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider)


def _attributes(event: str, due: int, instance: str | None) -> dict[str, str]:
    known = {"seams.timer.event": event, "seams.timer.due": to_text(due)}
    return known if instance is None else known | {"seams.instance.id": instance}


def _one_line(text: str) -> str:
    return " ".join(text.split())
