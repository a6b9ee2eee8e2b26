"""Checkpoints: the state of a workflow as text, without its specification.

A checkpoint is JSON with sorted keys: the format's version, the process, the hashes of the
payloads, and the tasks with their data. It has no expression, no script and no name of a class,
so a changed one can change data and states, and cannot make anything run that the loaded model
does not have. SpiffWorkflow's own serializer dispatches on a key that data may hold, and keeps
state of its own while it runs; these functions share nothing between threads.

A task holds only what differs from its parent's data, as SpiffWorkflow's serializer has it.
"""

# mypy: disable-error-code="import-untyped"

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from SpiffWorkflow.bpmn import BpmnWorkflow
from SpiffWorkflow.bpmn.specs.mixins.events.event_types import CatchingEvent
from SpiffWorkflow.bpmn.util.subworkflow import BpmnSubWorkflow
from SpiffWorkflow.task import Task
from SpiffWorkflow.util.deep_merge import DeepMerge
from SpiffWorkflow.util.task import TaskState

from seams_lab.errors import UnusableInput
from seams_lab.runtime.bpmn import START, Executable
from seams_lab.runtime.tasks import ScriptEngine

FORMAT = 1
# Process data was checked at the door: it cannot hold itself.
_ENCODER = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, allow_nan=False, check_circular=False,
    separators=(",", ":"),
)  # fmt: skip

Json = dict[str, Any]


def dump(executable: Executable, workflow: BpmnWorkflow) -> str:
    """Write a workflow as text. The same workflow gives the same text."""
    root = workflow.task_tree
    if root.state == TaskState.READY:
        return begin(executable, root.internal_data[START], root.data, workflow.script_engine.seed)
    return _ENCODER.encode(
        {
            **_head(executable),
            "workflow": _workflow(workflow),
            "subprocesses": [
                {**_workflow(sub), "task": sub.parent_task_id.hex}
                for sub in workflow.subprocesses.values()
            ],
        }
    )


def begin(executable: Executable, start: str, data: Json, seed: str) -> str:
    """Write an instance of which nothing has run: its start event and data say it all.

    *seed* decides the ids of its tasks.
    """
    return _ENCODER.encode(
        {**_head(executable), "begin": {"start": start, "data": data, "seed": seed}}
    )


def new(executable: Executable, start: str, data: Json, engine: ScriptEngine) -> BpmnWorkflow:
    """Make an instance of which nothing has run."""
    with engine.ids.used():
        workflow = BpmnWorkflow(executable.spec, executable.subprocesses, script_engine=engine)
    workflow.task_tree.data.update(data)
    workflow.task_tree.internal_data[START] = start
    return workflow


def _head(executable: Executable) -> Json:
    return {"format": FORMAT, "process": executable.process, "payloads": executable.hashes}


def load(executable: Executable, text: str, script_engine: ScriptEngine) -> BpmnWorkflow:
    """Make the workflow that `dump` wrote.

    The payloads may have changed since, as long as every task of the checkpoint still has its
    element.

    Raises
    ------
    UnusableInput
        For text that is no checkpoint of this format and process, or names elements that the
        loaded process does not have.
    """
    document = _read(executable, text)
    try:
        return _restore(executable, document, script_engine)
    except UnusableInput:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(executable, f"damaged ({type(error).__name__}: {error})") from error


def _read(executable: Executable, text: str) -> Json:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError, TypeError) as error:
        raise _damaged(executable, f"no JSON ({error})") from None
    form = document.get("format") if isinstance(document, dict) else None
    if form != FORMAT:
        raise _damaged(executable, f"format {form!r}")
    if document.get("process") != executable.process:
        raise _damaged(executable, f"of the process {document.get('process')!r}")
    found: Json = document
    return found


def _damaged(executable: Executable, seen: str) -> UnusableInput:
    return UnusableInput(
        f"checkpoint of {executable.process}", seen,
        f"a checkpoint of this process in format {FORMAT}",
        "restore the store from a backup, or run the version that wrote it",
    )  # fmt: skip


def _gone(executable: Executable, element: str) -> UnusableInput:
    return UnusableInput(
        f"checkpoint of {executable.process}", f"a task at {element!r}",
        f"only elements that {executable.spec.file} has now",
        "finish the running instances with the model they began with, or keep the ids",
    )  # fmt: skip


def _workflow(workflow: BpmnWorkflow | BpmnSubWorkflow) -> Json:
    number = {task_id: index for index, task_id in enumerate(workflow.tasks)}
    last = workflow.last_task
    # SpiffWorkflow merges the data of branches in the order in which they were completed.
    order = sorted(workflow.tasks.values(), key=lambda task: task.last_state_change)
    changed = {task.id: rank for rank, task in enumerate(order)}
    return {
        "completed": workflow.completed,
        "success": workflow.success,
        "data": workflow.data,
        "correlations": workflow.correlations,
        "last": None if last is None else number.get(last.id),
        # In the order in which they were made: a parent stands before its children.
        "tasks": [_task(task, number, changed[task.id]) for task in workflow.tasks.values()],
    }


def _task(task: Task, number: dict[UUID, int], rank: int) -> Json:
    parent = task.parent
    row: Json = {
        "id": task.id.hex,
        "spec": task.task_spec.name,
        "state": task.state,
        "rank": rank,
    }
    if parent is not None:
        row["parent"] = number[parent.id]
    if task.triggered:
        row["triggered"] = True
    if task.internal_data:
        row["internal"] = task.internal_data
    before = {} if parent is None else parent.data
    changed = DeepMerge.get_updated_keys(before, task.data)
    if changed:
        row["set"] = changed
    gone = DeepMerge.get_deleted_keys(before, task.data)
    if gone:
        row["gone"] = sorted(gone)
    return row


def _restore(executable: Executable, document: Json, engine: ScriptEngine) -> BpmnWorkflow:
    if "begin" in document:
        state = document["begin"]
        if state["start"] not in executable.starts:
            raise _gone(executable, state["start"])
        engine.seed = state["seed"]
        engine.ids.restart(engine.seed)
        return new(executable, state["start"], state["data"], engine)
    workflow = BpmnWorkflow(
        executable.spec, executable.subprocesses, script_engine=engine, deserializing=True
    )
    _fill(executable, workflow, document["workflow"])
    for state in document["subprocesses"]:
        caller = workflow.get_task_from_id(UUID(state["task"]))
        spec = executable.subprocesses[caller.task_spec.spec]
        sub = BpmnSubWorkflow(spec, caller.id, workflow, deserializing=True)
        workflow.subprocesses[caller.id] = sub
        sub.completed_event.connect(caller.task_spec._on_subworkflow_completed, caller)
        _fill(executable, sub, state)
    return workflow


def _fill(executable: Executable, workflow: BpmnWorkflow | BpmnSubWorkflow, state: Json) -> None:
    tasks: list[Task] = []
    for row in state["tasks"]:
        spec = workflow.spec.task_specs.get(row["spec"])
        if spec is None:
            raise _gone(executable, row["spec"])
        parent = tasks[row["parent"]] if "parent" in row else None
        task = Task(workflow, spec, parent, row["state"], UUID(row["id"]))
        task.last_state_change = row["rank"]
        task.triggered = row.get("triggered", False)
        task.internal_data = row.get("internal", {})
        # As SpiffWorkflow inherits: a copy of the first level.
        task.data = {} if parent is None else DeepMerge.merge({}, parent.data)
        for name in row.get("gone", ()):
            del task.data[name]
        task.data.update(row.get("set", {}))
        if isinstance(spec, CatchingEvent) and task.state == TaskState.WAITING:
            workflow.top_workflow.event_manager.add_task(task)
        tasks.append(task)
    workflow.task_tree = tasks[0]
    workflow.completed, workflow.success = state["completed"], state["success"]
    workflow.data, workflow.correlations = state["data"], state["correlations"]
    last = state["last"]
    workflow.last_task = None if last is None else tasks[last]
