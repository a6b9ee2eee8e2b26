"""The timers of a model: each BPMN event joined with its expression and with who runs it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from rdflib import RDF

from seams_lab.errors import ResolutionError, UnusableInput
from seams_lab.expressions import DAY, LAST_INSTANT, TimeCycle, TimeDuration, TimerExpression
from seams_lab.graph import ModelGraph
from seams_lab.payload import Payload, TimerElement
from seams_lab.profile import read_timer
from seams_lab.series import Series, series
from seams_lab.vocabulary import PROC, SEAM

#: The classes of timers in the index, and their local names.
INDEX_TYPES = {str(PROC[name]): name for name in ("TimerStartEvent", "TimerCatchEvent")}


@dataclass(frozen=True)
class Timer:
    """One timer of a model.

    ``event`` is its IRI (``<model>#<id>``), ``process`` the IRI of its proc:Process (in a bare
    file the id of the ``bpmn:process``), ``index_types`` the timer classes that the graph gives
    it. Exactly one of ``expression`` and ``refusal`` is set. ``containers`` are those that run
    it: the scheduling ones for a timer start, the executing ones for a timer that waits.
    """

    event: str
    process: str
    model: str
    file: str
    element: TimerElement
    index_types: tuple[str, ...]
    expression: TimerExpression | None
    refusal: ResolutionError | None = field(compare=False)
    containers: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The BPMN id of the event."""
        return self.element.id

    @property
    def is_start(self) -> bool:
        """Whether it starts processes; otherwise a running instance waits on it."""
        return self.element.tag == "startEvent"

    @property
    def verdict(self) -> str:
        """``accept``, ``refuse`` or ``not lifted`` (out of scope)."""
        if self.element.index_type is None:
            return "not lifted"
        return "accept" if self.refusal is None else "refuse"

    @property
    def code(self) -> str:
        """The refusal's stable code, or an empty text."""
        return self.refusal.code if self.refusal else ""

    @property
    def counts_from_arming(self) -> bool:
        """Whether due times before the instance reached it are left out (ruling 19a)."""
        return not self.is_start and isinstance(self.expression, TimeCycle)


def timers(graph: ModelGraph, at: int) -> list[Timer]:
    """List every timer of a model, in the order of its files.

    *at* (microseconds, UTC) is when a waiting timer is taken to be reached: a duration that
    leads beyond the calendar from there is refused. Files that cannot be read have no timers
    here; the check reports them.
    """
    found = []
    for model in graph.bpmn_models:
        try:
            payload = graph.payload(model)
        except UnusableInput:
            continue
        found += [_timer(graph, model, payload, element, at) for element in payload.timers]
    return found


def _timer(
    graph: ModelGraph, model: str, payload: Payload, element: TimerElement, at: int
) -> Timer:
    event = f"{model}#{element.id}"
    process = graph.process_of(model, element.process)
    types = graph.pairs(str(RDF.type)).get(event, ())
    timer = Timer(
        event=event,
        process=process or f"{model}#{element.process}",
        model=model,
        file=payload.path,
        element=element,
        index_types=tuple(INDEX_TYPES[t] for t in types if t in INDEX_TYPES),
        expression=None,
        refusal=None,
        containers=_containers(graph, process, element),
    )
    try:
        expression = read_timer(element, event)
    except ResolutionError as refusal:
        return replace(timer, refusal=refusal)
    return _judged_at(replace(timer, expression=expression), at)


def _containers(graph: ModelGraph, process: str | None, element: TimerElement) -> tuple[str, ...]:
    if process is None:
        return ()
    relation = SEAM.schedules if element.tag == "startEvent" else SEAM.executes
    return graph.inverse(str(relation)).get(process, ())


def _judged_at(timer: Timer, at: int) -> Timer:
    """Refuse a duration whose only due time, armed at *at*, lies beyond the calendar."""
    expression = timer.expression
    if not isinstance(expression, TimeDuration):
        return timer
    # Long ones alone are worth the exact answer: a month has at most 31 days.
    longest = 31 * DAY * expression.duration.months + expression.duration.micros
    if at + longest <= LAST_INSTANT or series([expression], at).last[0] >= 0:
        return timer
    refusal = ResolutionError(
        timer.event, "bpmn:timeDuration", f"due after year 9999: {expression.text!r}",
        code="OUT_OF_RANGE", fix="use a shorter duration",
    )  # fmt: skip
    return replace(timer, expression=None, refusal=refusal)


def timer_series(accepted: Iterable[Timer], armed_at: int) -> Series:
    """The due-time series of timers that were accepted, armed at one instant (microseconds)."""
    accepted = list(accepted)
    return series(
        [t.expression for t in accepted if t.expression is not None],
        armed_at,
        [t.counts_from_arming for t in accepted],
    )


def first_due(timer: Timer, armed_at: int, how_many: int = 3) -> list[int]:
    """The first due times of one timer armed at an instant, in microseconds (UTC)."""
    if timer.expression is None:
        return []
    one = timer_series([timer], armed_at)
    last = min(int(one.last[0]), int(one.first[0]) + how_many - 1)
    return [int(one.due(k)[0]) for k in range(int(one.first[0]), last + 1)]
