"""A scenario: one instance taken through its steps, with no store and no clock (R81)."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from seams_lab.due import utc
from seams_lab.errors import UnusableInput
from seams_lab.graph import ModelGraph, local_name
from seams_lab.instants import Instant, to_micros
from seams_lab.runtime.deployment import all_processes
from seams_lab.runtime.engine import Engine, Step, UserTask
from seams_lab.runtime.tasks import Handler
from seams_lab.series import NONE

_TRACE = ["at", "kind", "element", "name", "due", "note"]


@dataclass(frozen=True)
class Scenario:
    """How a scenario went.

    ``status`` is ``completed`` or ``waiting``; ``tasks`` are the user tasks still open; ``trace``
    has one row per element (``at`` and ``due``: datetime64[us, UTC]); ``data`` is the process
    data at the end.
    """

    process: str
    status: str
    tasks: tuple[UserTask, ...]
    data: dict[str, Any]
    trace: pd.DataFrame = field(repr=False, compare=False)

    @property
    def path(self) -> list[str]:
        """The elements in the order they were done."""
        return list(self.trace["element"])

    def _repr_html_(self) -> str:
        title = html.escape(f"{local_name(self.process)}: {self.status}")
        return f"<p><b>{title}</b></p>{self.trace.to_html(index=False)}"


def scenario(
    model: ModelGraph, process: str, steps: Iterable[tuple[str, Mapping[str, Any]]] = (),
    data: Mapping[str, Any] | None = None, *, start: str | None = None,
    handlers: Mapping[str, Handler] | None = None, at: Instant = "2026-01-01T00:00:00Z",
) -> Scenario:  # fmt: skip
    """Start a process, complete its user tasks as told, then fire the timers it waits on.

    Each waiting event fires once, in the order of the due times, whatever the clock says; what a
    timer that fired leads to is done before the next one fires.

    Parameters
    ----------
    model : Model
    process : str
        Short name or IRI.
    steps : iterable of (task, data)
        User tasks by the id of their element, in order, with the data that completes them.
    data : mapping, optional
        Process data at the start.
    start : str, optional
        Id of the start event, where the process has several.
    handlers : mapping, optional
        As `Runtime.load` takes them.
    at : instant
        When it starts: durations are counted from there.

    Raises
    ------
    UnusableInput
        When a step's task is not open.
    ResolutionError
        For a process that cannot be run.
    """
    iri = model.find(process, all_processes(model), "process")
    engine = Engine(model, [iri], handlers)
    now = to_micros(at, "at")
    workflow = engine.new_workflow(iri, dict(data or {}), now, start=start)
    rows: list[tuple[Any, ...]] = []
    dues: dict[str, int] = {}

    def advance() -> None:
        engine.steps(workflow, lambda: now, note, instance="scenario")

    def note(step: Step) -> None:
        rows.append((now, step.kind, local_name(step.element), step.name,
                     dues.get(step.element, NONE), step.note))  # fmt: skip

    advance()
    for task, given in steps:
        opened = _open(engine.user_tasks(workflow), task)
        engine.complete(workflow, opened.task, dict(given), now)
        note(Step(opened.element, "userTask", opened.name))
        advance()
    while ready := [w for w in engine.waiting(workflow) if w.event not in dues]:
        now = max(now, ready[0].due)
        fired = engine.fire(workflow, ready[0].task, now)
        dues[ready[0].event] = ready[0].due if fired is None else fired.due
        advance()
    trace = pd.DataFrame(rows, columns=_TRACE)
    for column in ("at", "due"):
        trace[column] = utc(trace[column].tolist())
    return Scenario(iri, "completed" if engine.is_ended(workflow) else "waiting",
                    engine.user_tasks(workflow), engine.data(workflow), trace)  # fmt: skip


def _open(tasks: tuple[UserTask, ...], named: str) -> UserTask:
    fits = [t for t in tasks if named in (t.task, t.element, local_name(t.element))]
    if len(fits) == 1:
        return fits[0]
    names = ", ".join(local_name(t.element) for t in tasks) or "none"
    raise UnusableInput(
        f"step {named!r}", "not an open user task" if not fits else "several are open",
        f"one of the open ones: {names}", "name the task that the scenario is at",
    )  # fmt: skip
