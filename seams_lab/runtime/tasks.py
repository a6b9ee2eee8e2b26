"""Work that a process asks for: handlers, and the script engine that SpiffWorkflow is given.

SpiffWorkflow asks its script engine for conditions, scripts and services. This one evaluates the
conditions that were checked when the model was loaded, calls handlers, and refuses the rest.
"""

# mypy: disable-error-code="import-untyped"
# mypy: allow-subclassing-any

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from SpiffWorkflow.bpmn.script_engine import PythonScriptEngine
from SpiffWorkflow.bpmn.specs.defaults import ServiceTask
from SpiffWorkflow.task import Task

from seams_lab.errors import SeamsError
from seams_lab.runtime.conditions import Condition
from seams_lab.runtime.data import checked
from seams_lab.runtime.identity import TaskIds


@dataclass(frozen=True)
class TaskContext:
    """What a handler is told beside the data.

    ``instance`` is the id of the process instance, ``element`` the IRI of the task, ``name`` its
    BPMN name. ``key`` is the same for each attempt at this task of this instance: a receiver
    that remembers keys can drop a repetition. ``attempt`` counts from 1.
    """

    instance: str
    element: str
    name: str
    key: str
    attempt: int


#: Called with a copy of the data; what it returns is merged into the data.
Handler = Callable[[dict[str, Any], TaskContext], dict[str, Any] | None]


class StepFailed(SeamsError):
    """A step that raised. The workflow object is of no more use; its last checkpoint is.

    ``element`` is the IRI of the element, ``error`` what was raised (also the cause).
    """

    def __init__(self, element: str, error: BaseException) -> None:
        self.element, self.error = element, error
        super().__init__(f"{element}: {self.what}{type(error).__name__}: {error}")

    what = ""

    def __reduce__(self) -> tuple[type, tuple[str, BaseException]]:
        return type(self), (self.element, self.error)


class HandlerFailed(StepFailed):
    """A handler that raised, or returned what is no process data."""

    what = "the handler failed: "


class HandlerTask(ServiceTask):
    """A service, business rule or send task: it is done when its handler returns."""

    def _run_hook(self, my_task: Task) -> bool:
        super()._run_hook(my_task)
        # SpiffWorkflow's own returns nothing, and so would wait for ever.
        my_task.workflow.script_engine.work(my_task)
        return True


class ScriptEngine:
    """What one workflow object asks: conditions, handlers, scripts, and the instant.

    ``now`` (microseconds UTC) is the instant at which timers are armed; None: not known, and
    timers stay unarmed until it is. ``effect`` and ``note`` tell of the step that runs.
    """

    def __init__(
        self,
        conditions: Mapping[str, Condition],
        handler_of: Callable[[str, str], Handler | None],
        allow_scripts: bool,
        now: int | None = None,
        seed: str = "",
    ) -> None:
        self.now = now
        # Ids of tasks made from now; `seed` is that of the first ones, of a new instance.
        self.ids, self.seed = TaskIds(seed), seed
        self.instance, self.attempt = "", 1
        self.effect, self.note = False, ""
        self.environment = _Environment(conditions)
        self._handler_of, self._allow_scripts = handler_of, allow_scripts

    def evaluate(
        self, task: Task, expression: str, external_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Evaluate a condition over a task's data and the process's data objects."""
        return self.environment.evaluate(expression, task.data, external_context)

    def work(self, task: Task) -> None:
        """Call the handler of a task, if it has one, and merge what it returns."""
        element = element_of(task)
        handler = self._handler_of(element, task.task_spec.bpmn_id)
        if handler is None:
            self.note = "no handler"
            return
        context = TaskContext(
            instance=self.instance,
            element=element,
            name=task.task_spec.bpmn_name or "",
            key=f"{self.instance}/{task.id}",
            attempt=self.attempt,
        )
        self.effect = True
        try:
            returned = handler(copy.deepcopy(task.data), context)
            if returned is not None:
                task.data.update(checked(returned, f"what the handler of {element} returned"))
        except Exception as error:
            raise HandlerFailed(element, error) from error

    def execute(
        self, task: Task, script: str, external_context: Mapping[str, Any] | None = None
    ) -> bool:
        """Run a script task as Python, where the engine allows scripts."""
        if not self._allow_scripts:
            raise NotImplementedError("scripts are not allowed")
        self.effect = True
        done = PythonScriptEngine().execute(task, script, external_context)
        task.data = checked(task.data, f"the data after {element_of(task)}")
        return bool(done)

    def call_service(self, task: Task, **kwargs: Any) -> Any:
        """Refuse: services are reached through handlers."""
        raise NotImplementedError("services are called by handlers")


class _Environment:
    """Conditions by their text."""

    def __init__(self, conditions: Mapping[str, Condition]) -> None:
        self._conditions = conditions

    def evaluate(
        self,
        expression: str,
        context: Mapping[str, Any],
        external_context: Mapping[str, Any] | None = None,
    ) -> Any:
        condition = self._conditions.get(expression)
        if condition is None:
            raise NotImplementedError(f"not checked when the model was loaded: {expression!r}")
        return condition.evaluate({**external_context, **context} if external_context else context)


def element_of(task: Task) -> str:
    """The IRI of the element that a task stands for; where it stands for none, with its name."""
    spec = task.task_spec
    return f"{task.workflow.spec.file}#{spec.bpmn_id or spec.name}"
