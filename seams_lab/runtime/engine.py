"""The engine: one process instance at a time, synchronous, without a store or a clock.

Every instant is given, in microseconds since the epoch (UTC). Which timer is due is the
scheduler's business: `Engine.fire` delivers whatever the caller chose. Workflow objects belong
to one thread at a time; different ones of one engine may be stepped by several threads.
"""

# mypy: disable-error-code="import-untyped"

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from SpiffWorkflow.bpmn import BpmnWorkflow
from SpiffWorkflow.bpmn.specs.mixins.multiinstance_task import LoopTask
from SpiffWorkflow.task import Task
from SpiffWorkflow.util.task import TaskState

from seams_lab.errors import UnusableInput
from seams_lab.graph import ModelGraph
from seams_lab.runtime import checkpoint
from seams_lab.runtime.bpmn import START, Executable, Loader
from seams_lab.runtime.data import checked
from seams_lab.runtime.identity import TaskIds
from seams_lab.runtime.stepping import is_in, ready_tasks, run_one, timer_id, waiting_timers
from seams_lab.runtime.tasks import (
    Handler,
    HandlerFailed,
    HandlerTask,
    ScriptEngine,
    StepFailed,
    TaskContext,
    element_of,
)
from seams_lab.runtime.timing import follow

__all__ = [
    "Engine", "Fired", "Handler", "HandlerFailed", "Step", "StepFailed", "TaskContext", "UserTask",
    "WaitingTimer",
]  # fmt: skip


@dataclass(frozen=True)
class WaitingTimer:
    """A timer that an instance waits for.

    ``task`` is unique in the instance, and new for each occurrence of a boundary cycle; ``event``
    is the IRI of the event, ``due`` in microseconds (UTC).
    """

    task: str
    event: str
    due: int


@dataclass(frozen=True)
class Fired:
    """A timer that was delivered: the due time that fired, and how many it skipped."""

    event: str
    due: int
    skipped: int


@dataclass(frozen=True)
class UserTask:
    """A task that a person completes: ``task`` names it in the instance, ``element`` is its IRI."""

    task: str
    element: str
    name: str


@dataclass(frozen=True)
class Step:
    """A BPMN element that was completed.

    ``kind`` is its BPMN tag; ``effect`` tells whether a handler or script was called, ``note``
    what else is worth a line, such as ``no handler``.
    """

    element: str
    kind: str
    name: str
    note: str = ""
    effect: bool = False


class Engine:
    """Runs the processes of a model with SpiffWorkflow.

    Parameters
    ----------
    graph : ModelGraph
    processes : iterable of str
        IRIs of proc:Process; in a bare BPMN file the ids of its processes.
    handlers : mapping of str to Handler, optional
        By the BPMN id or the IRI of a service, business rule or send task; the IRI wins.
    allow_scripts : bool
        Whether script tasks run, as Python with all rights of this program.

    Raises
    ------
    ResolutionError
        For a process that is not in the model, or cannot be run.
    UnusableInput
        For a BPMN file that cannot be read.
    """

    def __init__(
        self,
        graph: ModelGraph,
        processes: Iterable[str],
        handlers: Mapping[str, Handler] | None = None,
        *,
        allow_scripts: bool = False,
    ) -> None:
        _spare_log_lines()
        self._handlers = dict(handlers or {})
        self._allow_scripts = allow_scripts
        loader = Loader(graph, allow_scripts=allow_scripts)
        self._executables = {process: loader.load(process) for process in processes}
        self._conditions, self._elements = loader.conditions, loader.elements

    @property
    def processes(self) -> tuple[str, ...]:
        """The processes that were loaded."""
        return tuple(self._executables)

    def unhandled(self) -> tuple[str, ...]:
        """The sorted IRIs of the tasks that need a handler and have none."""
        found = {
            f"{spec.file}#{task.bpmn_id}"
            for executable in self._executables.values()
            for spec in (executable.spec, *executable.subprocesses.values())
            for task in spec.task_specs.values()
            if isinstance(task, HandlerTask)
        }
        return tuple(sorted(e for e in found if self._handler_of(e, e.rpartition("#")[2]) is None))

    # ------------------------------------------------------------------ beginning

    def new_workflow(
        self, process: str, data: dict[str, Any], now: int, start: str | None = None, seed: str = ""
    ) -> BpmnWorkflow:
        """Make an instance; nothing of it has run.

        Parameters
        ----------
        process : str
        data : dict
            See `data.checked`.
        now : int
            The instant, in microseconds (UTC).
        start : str, optional
            The BPMN id or IRI of the start event that fires; by default the none start, or the
            only start. A timer or message start fires at once: its due time or its message is
            what the caller has in hand.
        seed : str, optional
            Decides the ids of its tasks (see `identity`); random by default.

        Raises
        ------
        UnusableInput
            For data that is not JSON, a process that is not loaded, or a start event that is
            not one of the process or not clear.
        """
        executable = self._executable(process)
        data = checked(data, f"data of {process}")
        engine = self._script_engine(now, seed or TaskIds().seed)
        return checkpoint.new(executable, _chosen_start(executable, start), data, engine)

    def begin(
        self, process: str, data: dict[str, Any], start: str | None = None, seed: str = ""
    ) -> str:
        """The checkpoint of a new instance, without making it: of `new_workflow`'s, the same."""
        executable = self._executable(process)
        data = checked(data, f"data of {process}")
        chosen = _chosen_start(executable, start)
        return checkpoint.begin(executable, chosen, data, seed or TaskIds().seed)

    def deliver_start(self, workflow: BpmnWorkflow, event: str, now: int) -> None:
        """Let an instance of which nothing has run begin with another start event.

        Raises UnusableInput for an instance that has begun, and for an unknown start event.
        """
        executable = self._executable_of(workflow)
        workflow.script_engine.now = now
        if workflow.task_tree.state != TaskState.READY:
            raise UnusableInput(
                event, "the instance has begun", "an instance of which nothing has run",
                "start another instance",
            )  # fmt: skip
        workflow.task_tree.internal_data[START] = _chosen_start(executable, event)

    # ------------------------------------------------------------------ running

    def steps(
        self,
        workflow: BpmnWorkflow,
        now: Callable[[], int],
        on_step: Callable[[Step], None],
        *,
        instance: str = "",
        attempt: int = 1,
    ) -> None:
        """Run every task that is ready and asks no person, until the instance waits or ends.

        Parameters
        ----------
        workflow : BpmnWorkflow
        now : callable
            Asked before each step: a timer that the step reaches is armed at that instant.
        on_step : callable
            Called after each BPMN element; the workflow can be checkpointed then. What it
            raises ends the stepping, and is raised.
        instance, attempt
            What handlers are told in their `tasks.TaskContext`.

        Raises
        ------
        HandlerFailed
            For a handler that raised. The workflow is of no more use: go back to a checkpoint.
        StepFailed
            For anything else that went wrong inside an element.
        ConditionFailed
            For a condition that has no value for the data.
        """
        engine: ScriptEngine = workflow.script_engine
        engine.instance, engine.attempt, engine.now = instance, attempt, now()
        with engine.ids.used():
            self._steps(workflow, engine, now, on_step)

    def _steps(self, workflow: BpmnWorkflow, engine: ScriptEngine, now: Callable[[], int],
               on_step: Callable[[Step], None]) -> None:  # fmt: skip
        # What `complete` reached is armed now.
        workflow.refresh_timers()
        while ready := list(ready_tasks(workflow, manual=False)):
            for task in ready:
                # A step before this one may have cancelled it.
                if task.state != TaskState.READY or not is_in(workflow, task):
                    continue
                engine.now, engine.effect, engine.note = now(), False, ""
                run_one(workflow, task)
                if task.task_spec.bpmn_id is not None:
                    on_step(self._step(task, engine))

    def _step(self, task: Task, engine: ScriptEngine) -> Step:
        element = element_of(task)
        looped = isinstance(task.task_spec, LoopTask)
        return Step(
            element=element,
            kind=self._elements[element].tag,
            name=self._elements[element].name,
            note="loop completed" if looped else engine.note,
            effect=engine.effect,
        )

    def is_ended(self, workflow: BpmnWorkflow) -> bool:
        """Whether nothing of the instance can run any more."""
        return bool(workflow.is_completed())

    def data(self, workflow: BpmnWorkflow) -> dict[str, Any]:
        """A copy of the data of an instance: at its end, or after the last task so far."""
        if self.is_ended(workflow) and workflow.data:
            found = workflow.data
        else:
            found = (workflow.last_task or workflow.task_tree).data
        kept: dict[str, Any] = copy.deepcopy(found)
        return kept

    # ------------------------------------------------------------------ timers

    def waiting(self, workflow: BpmnWorkflow) -> tuple[WaitingTimer, ...]:
        """The timers that an instance waits for, by due time."""
        found = [
            WaitingTimer(timer_id(task, definition), definition.event, due)
            for task, definition, due in waiting_timers(workflow)
        ]
        return tuple(sorted(found, key=lambda timer: (timer.due, timer.task)))

    def fire(self, workflow: BpmnWorkflow, task: str, now: int) -> Fired | None:
        """Deliver one waiting timer, due or not; its branch is ready then, and nothing has run.

        Of a boundary cycle the newest due time ``<= now`` fires and those before it are
        skipped; the next one waits, as another task. Returns None for a timer that does not
        wait any more: another event was first, or its activity has ended.
        """
        for waiting, definition, _ in waiting_timers(workflow):
            if timer_id(waiting, definition) == task:
                break
        else:
            return None
        workflow.script_engine.now = now
        with workflow.script_engine.ids.used():
            due, skipped, following = definition.deliver(waiting, now)
            workflow.refresh_timers()
            if following is not None:
                follow(waiting, definition, following)
        return Fired(definition.event, due, skipped)

    # ------------------------------------------------------------------ people

    def user_tasks(self, workflow: BpmnWorkflow) -> tuple[UserTask, ...]:
        """The tasks that wait for a person, in the order of the process."""
        return tuple(
            UserTask(str(task.id), element_of(task), task.task_spec.bpmn_name or "")
            for task in ready_tasks(workflow, manual=True)
        )

    def complete(
        self, workflow: BpmnWorkflow, task: str, data: dict[str, Any], now: int | None = None
    ) -> None:
        """Complete a user task; no other step runs.

        A timer that this reaches is armed at *now*; without one, when `steps` runs next.
        Raises UnusableInput for data that is not JSON and for a task that waits for no person.
        """
        for ready in ready_tasks(workflow, manual=True):
            if str(ready.id) == task:
                break
        else:
            raise UnusableInput(
                f"user task {task!r}", "not open in this instance", "one of its open user tasks",
                "list them again: another answer or a timer may have ended it",
            )  # fmt: skip
        ready.data.update(checked(data, f"data of {element_of(ready)}"))
        workflow.script_engine.now = now
        with workflow.script_engine.ids.used():
            run_one(workflow, ready)

    # ------------------------------------------------------------------ checkpoints

    def checkpoint(self, workflow: BpmnWorkflow) -> str:
        """The state of an instance as text (see `checkpoint`)."""
        return checkpoint.dump(self._executable_of(workflow), workflow)

    def restore(self, process: str, text: str) -> BpmnWorkflow:
        """Make the workflow of a checkpoint.

        Raises UnusableInput for a text that is none of this process, or that names elements
        which the loaded process does not have.
        """
        return checkpoint.load(self._executable(process), text, self._script_engine(None))

    # ------------------------------------------------------------------

    def seed(self, workflow: BpmnWorkflow, text: str) -> None:
        """Let the ids of the tasks that come now follow from *text* (see `identity`)."""
        workflow.script_engine.ids.restart(text)

    def _script_engine(self, now: int | None, seed: str = "") -> ScriptEngine:
        return ScriptEngine(self._conditions, self._handler_of, self._allow_scripts, now, seed)

    def _handler_of(self, element: str, bpmn_id: str) -> Handler | None:
        return self._handlers.get(element) or self._handlers.get(bpmn_id)

    def _executable(self, process: str) -> Executable:
        if process not in self._executables:
            raise UnusableInput(
                process, "not loaded", "one of " + ", ".join(self._executables),
                "load the process",
            )  # fmt: skip
        return self._executables[process]

    def _executable_of(self, workflow: BpmnWorkflow) -> Executable:
        return next(e for e in self._executables.values() if e.spec is workflow.spec)


def _spare_log_lines() -> None:
    """Keep SpiffWorkflow from gathering all tasks for log lines below warnings.

    It does so unless its logger has a level of its own; one that was set is left.
    """
    logger = logging.getLogger("spiff.workflow")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)


def _chosen_start(executable: Executable, start: str | None) -> str:
    """The BPMN id of the start event that a caller means."""
    starts = executable.starts
    named = ", ".join(starts)
    if start is None:
        none = [bpmn_id for bpmn_id, is_none in starts.items() if is_none]
        if len(none) == 1 or len(starts) == 1:
            return (none or list(starts))[0]
        raise UnusableInput(
            executable.process, f"several start events: {named}", "a start event that is named",
            "pass the id of one as start",
        )  # fmt: skip
    for bpmn_id in starts:
        if start in (bpmn_id, f"{executable.model}#{bpmn_id}"):
            return bpmn_id
    raise UnusableInput(
        f"start {start!r}", f"no start event of {executable.process}", f"one of {named}",
        "use the id of a start event of the process",
    )  # fmt: skip
