"""Timers inside SpiffWorkflow whose due time this project fixes; they never look at a clock.

A timer is armed once, at the instant that the workflow's script engine carries, by `has_fired`:
its due time goes into the task's internal data under the event's own BPMN id, because several
timers behind one event-based gateway share one task. After that `has_fired` only reads a flag,
which the engine sets when it delivers the timer. So neither the host's clock nor the order in
which SpiffWorkflow happens to look decides what fires (rulings 6, 17 and 19a).

A slot is ``{"due": microseconds}``, with ``"k"`` for a boundary cycle and ``"fired": true`` once
delivered; ``{}`` is a cycle with no due time left.
"""

# SpiffWorkflow ships no type information.
# mypy: disable-error-code="import-untyped"
# mypy: allow-subclassing-any

from __future__ import annotations

import datetime as dt
import itertools
from functools import cached_property
from typing import Any, NamedTuple

from SpiffWorkflow.bpmn.specs.control import BoundaryEventJoin, _EndJoin
from SpiffWorkflow.bpmn.specs.defaults import EventBasedGateway
from SpiffWorkflow.bpmn.specs.event_definitions.conditional import ConditionalEventDefinition
from SpiffWorkflow.bpmn.specs.event_definitions.multiple import MultipleEventDefinition
from SpiffWorkflow.bpmn.specs.event_definitions.timer import TimerEventDefinition
from SpiffWorkflow.bpmn.specs.mixins.unstructured_join import UnstructuredJoin
from SpiffWorkflow.bpmn.util import PendingBpmnEvent
from SpiffWorkflow.specs.Join import Join
from SpiffWorkflow.task import Task
from SpiffWorkflow.util.deep_merge import DeepMerge
from SpiffWorkflow.util.task import TaskIterator, TaskState

from seams_lab.errors import ResolutionError
from seams_lab.expressions import (
    EPOCH,
    LAST_INSTANT,
    TimeCycle,
    TimeDate,
    TimeDuration,
    TimerExpression,
)
from seams_lab.series import Series, series

#: The key of the slots in a task's internal data.
SLOTS = "timers"
#: The index of the definition that an event-based gateway caught, in its internal data.
CAUGHT = "caught"


class Occurrence(NamedTuple):
    """One due time of a timer: its k and ``due`` in microseconds (UTC)."""

    k: int
    due: int


class Dues:
    """The due times of one expression, one at a time.

    They are those of `series.series`. Arming happens in every instance, so what needs no
    calendar is plain integer arithmetic; the rest asks the series.
    """

    def __init__(self, expression: TimerExpression) -> None:
        self.expression = expression

    @cached_property
    def _series(self) -> Series:
        return series([self.expression], 0)

    @cached_property
    def _fixed(self) -> tuple[int, int, int] | None:
        """(start, period, last k) of a cycle without months."""
        if self._series.months[0]:
            return None
        return int(self._series.start[0]), int(self._series.micros[0]), int(self._series.last[0])

    def first(self, armed_at: int) -> Occurrence | None:
        """The due time that a timer armed at an instant waits for; None: there is none left.

        Of a cycle it is the first one at or after the arming; k counts from the start.
        """
        expression = self.expression
        if isinstance(expression, TimeDate):
            return Occurrence(0, expression.at)
        if isinstance(expression, TimeDuration):
            if not expression.duration.months:
                due = armed_at + expression.duration.micros
                return Occurrence(0, due) if due <= LAST_INSTANT else None
            one = series([expression], armed_at)
            return Occurrence(0, int(one.due(0)[0])) if one.last[0] >= 0 else None
        return self.cycle(self.latest_k(armed_at - 1) + 1)

    def cycle(self, k: int) -> Occurrence | None:
        """Occurrence *k* of a cycle; None beyond its last."""
        if self._fixed is None:
            if k > self._series.last[0]:
                return None
            return Occurrence(k, int(self._series.due(k)[0]))
        start, period, last = self._fixed
        return Occurrence(k, start + k * period) if k <= last else None

    def latest_k(self, at: int) -> int:
        """The largest k of a cycle whose due time is ``<= at``; -1 where there is none."""
        if self._fixed is None:
            return int(self._series.latest_k(at)[0])
        start, period, last = self._fixed
        return max(-1, min((at - start) // period, last))


class TimerDefinition(TimerEventDefinition):
    """SpiffWorkflow's timer definition, with a due time that is computed here.

    Parameters
    ----------
    bpmn_id, event : str
        The id of the event, and its IRI.
    expression : TimerExpression
    name, description : str
        For SpiffWorkflow's readers.
    """

    def __init__(
        self, bpmn_id: str, event: str, expression: TimerExpression, name: str, description: str
    ) -> None:
        super().__init__(name, expression.text, description=description)
        self.bpmn_id, self.event = bpmn_id, event
        self.dues = Dues(expression)

    @property
    def is_cycle(self) -> bool:
        """Whether one occurrence is followed by another."""
        return isinstance(self.dues.expression, TimeCycle)

    def has_fired(self, my_task: Task) -> bool:
        """Arm the timer if an instant is known, then say whether it was delivered."""
        slot = self.slot(my_task)
        if slot is None:
            now = my_task.workflow.script_engine.now
            if now is None:
                return False
            first = self.dues.first(now)
            if first is None and not self.is_cycle:
                raise ResolutionError(
                    self.event, f"bpmn:{self.dues.expression.kind}",
                    f"due after year 9999: {self.expression!r}", code="OUT_OF_RANGE",
                    fix="use a shorter duration",
                )  # fmt: skip
            slot = self.arm(my_task, first)
        return bool(slot.get("fired"))

    def slot(self, my_task: Task) -> dict[str, Any] | None:
        """What the task holds for this timer; None before it is armed."""
        slots: dict[str, dict[str, Any]] = my_task.internal_data.get(SLOTS, {})
        return slots.get(self.bpmn_id)

    def arm(self, my_task: Task, occurrence: Occurrence | None) -> dict[str, Any]:
        """Fix what the task waits for; also as SpiffWorkflow's ``event_value`` (ruling 6)."""
        slot: dict[str, Any] = {}
        if occurrence is not None:
            slot["due"] = occurrence.due
            if self.is_cycle:
                slot["k"] = occurrence.k
        slots = my_task.internal_data.setdefault(SLOTS, {})
        slots[self.bpmn_id] = slot
        dues = [s["due"] for s in slots.values() if "due" in s]
        if dues:
            my_task.internal_data["event_value"] = _iso(min(dues))
        return slot

    def waits(self, my_task: Task) -> int | None:
        """The due time that the task waits for, or None."""
        slot = self.slot(my_task)
        if slot is None or slot.get("fired"):
            return None
        due: int | None = slot.get("due")
        return due

    def deliver(self, my_task: Task, now: int) -> tuple[int, int, Occurrence | None]:
        """Set the flag; return the due time that fires, how many it skips, and what follows.

        Of a cycle the newest due time ``<= now`` fires (ruling 19a); if none is, the one that
        the task waits for.
        """
        slot = self.slot(my_task)
        assert slot is not None
        slot["fired"] = True
        due: int = slot["due"]
        if not self.is_cycle:
            return due, 0, None
        k = max(slot["k"], self.dues.latest_k(now))
        fires = self.dues.cycle(k)
        assert fires is not None
        return fires.due, k - slot["k"], self.dues.cycle(k + 1)

    def reset(self, my_task: Task) -> None:
        """Forget the due time: the event was passed."""
        forget(my_task)
        super().reset(my_task)

    def details(self, my_task: Task) -> PendingBpmnEvent:
        """What SpiffWorkflow's list of waiting events shows: the due time as ISO 8601."""
        due = self.waits(my_task)
        value = None if due is None else _iso(due)
        return PendingBpmnEvent(self.name, self.__class__.__name__, value)

    # SpiffWorkflow takes timers of one name for one timer.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimerDefinition) and other.event == self.event

    def __hash__(self) -> int:
        return hash(self.event)


class EventRace(MultipleEventDefinition):
    """What an event-based gateway waits for: the first of several events."""

    def has_fired(self, my_task: Task) -> bool:
        """Arm every timer at one instant; say whether one of the events happened."""
        for index, definition in enumerate(self.event_definitions):
            if isinstance(definition, TimerDefinition):
                definition.has_fired(my_task)
            elif (
                isinstance(definition, ConditionalEventDefinition)
                and CAUGHT not in my_task.internal_data
                and definition.has_fired(my_task)
            ):
                my_task.internal_data[CAUGHT] = index
        return self.winner(my_task) is not None

    def winner(self, my_task: Task) -> int | None:
        """The index of the event that happened, in the order of the gateway's flows."""
        caught: int | None = my_task.internal_data.get(CAUGHT)
        if caught is not None:
            return caught
        for index, definition in enumerate(self.event_definitions):
            if isinstance(definition, TimerDefinition):
                slot = definition.slot(my_task)
                if slot is not None and slot.get("fired"):
                    return index
        return None

    def catch(self, my_task: Task, event: Any = None) -> None:
        """Take a message or signal."""
        for index, definition in enumerate(self.event_definitions):
            if definition.catches(my_task, event):
                definition.catch(my_task, event)
                my_task.internal_data[CAUGHT] = index
                return


class EventGateway(EventBasedGateway):
    """An event-based gateway that takes the branch of the one event that happened.

    SpiffWorkflow's own removes from a list while it walks it, finds the branch by equality of
    definitions, and keeps definitions in the task's data.
    """

    def _run_hook(self, my_task: Task) -> bool:
        index = self.event_definition.winner(my_task)
        self.event_definition.event_definitions[index].update_task_data(my_task)
        my_task.internal_data.pop(CAUGHT, None)
        forget(my_task)
        chosen = self._wf_spec.task_specs[self._outputs[index]]
        my_task._sync_children([chosen], TaskState.FUTURE)
        for child in my_task.children:
            child.task_spec._predict(child, mask=TaskState.FUTURE | TaskState.PREDICTED_MASK)
        return True


def definitions(my_task: Task) -> list[TimerDefinition]:
    """The timers that a task waits for: one, or those behind an event-based gateway."""
    definition = getattr(my_task.task_spec, "event_definition", None)
    if isinstance(definition, EventRace):
        return [d for d in definition.event_definitions if isinstance(d, TimerDefinition)]
    return [definition] if isinstance(definition, TimerDefinition) else []


def forget(my_task: Task) -> None:
    """Drop what a task's timers stored."""
    my_task.internal_data.pop(SLOTS, None)
    my_task.internal_data.pop("event_value", None)


def follow(my_task: Task, definition: TimerDefinition, occurrence: Occurrence) -> None:
    """Let the next occurrence of a boundary cycle wait, beside the one that fires.

    It is a sibling under the split, so that the end of the activity cancels it.
    """
    split = my_task.parent
    _prune(split, my_task)
    # As SpiffWorkflow makes a boundary event: predicted first, then waiting.
    after = split._add_child(my_task.task_spec, TaskState.MAYBE)
    after.task_spec._predict(after)
    definition.arm(after, occurrence)
    after._set_state(TaskState.WAITING)
    after.task_spec._update(after)


def _prune(split: Task, firing: Task) -> None:
    """Remove the occurrences that are over, but the newest, so that checkpoints do not grow."""
    over = [
        child
        for child in split.children
        if child.task_spec is firing.task_spec and child is not firing and _is_over(child)
    ]
    for old, newer in itertools.pairwise(over):
        _carry(old, newer)
        _remove(old)


def _is_over(event: Task) -> bool:
    """Whether nothing of an occurrence's branch can still run or be waited for."""
    cancelled: set[str] = set()
    completed: set[str] = set()
    rest = [event]
    while rest:
        task = rest.pop()
        spec = task.task_spec
        if isinstance(spec, Join) and task.state == TaskState.WAITING:
            # It waits for other branches; what is foreseen behind it is no work of this one.
            if not isinstance(spec, BoundaryEventJoin | _EndJoin):
                return False
            continue
        if not task.has_state(TaskState.FINISHED_MASK):
            return False
        if isinstance(spec, UnstructuredJoin) and not isinstance(spec, _EndJoin):
            (completed if task.state == TaskState.COMPLETED else cancelled).add(spec.name)
        rest += task.children
    # A gateway elsewhere may count on a branch that reached it.
    return cancelled <= completed


def _carry(old: Task, newer: Task) -> None:
    """Keep the data of a branch that goes: the end of the process merges that of every branch."""
    ends = [t.parent for t in TaskIterator(newer) if isinstance(t.task_spec, _EndJoin)]
    for end in [t.parent for t in TaskIterator(old) if isinstance(t.task_spec, _EndJoin)]:
        if ends:
            ends[0].data = DeepMerge.merge(DeepMerge.merge({}, end.data), ends[0].data)


def _remove(branch: Task) -> None:
    workflow = branch.workflow
    top = workflow.top_workflow
    gone = list(TaskIterator(branch))
    for task in gone:
        top.event_manager.remove_task(task)
        if task.id in top.subprocesses:
            top.delete_subprocess(task)
    if workflow.last_task in gone:
        workflow.last_task = branch.parent
    workflow._remove_task(branch.id)


def _iso(micros: int) -> str:
    return (EPOCH + dt.timedelta(microseconds=micros)).isoformat() + "+00:00"
