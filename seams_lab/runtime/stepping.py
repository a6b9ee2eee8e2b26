"""One task of a workflow at a time: which are ready, which wait, and running one."""

# mypy: disable-error-code="import-untyped"

from __future__ import annotations

from collections.abc import Iterator

from SpiffWorkflow.bpmn import BpmnWorkflow
from SpiffWorkflow.bpmn.util.subworkflow import BpmnSubWorkflow
from SpiffWorkflow.task import Task
from SpiffWorkflow.util.task import TaskState

from seams_lab.errors import SeamsError
from seams_lab.runtime.tasks import StepFailed, element_of
from seams_lab.runtime.timing import TimerDefinition, definitions


def run_one(workflow: BpmnWorkflow, task: Task) -> None:
    """Run one task, and let the activities around it see whether they are done."""
    try:
        task.run()
        within = task.workflow
        while within is not workflow and workflow.subprocesses.get(within.parent_task_id) is within:
            caller = workflow.get_task_from_id(within.parent_task_id)
            _look_within(caller, within)
            within = caller.workflow
    except SeamsError:
        raise
    except Exception as error:
        raise StepFailed(element_of(task), error) from error
    # What nobody in the instance catches is told by the step alone.
    workflow.bpmn_events.clear()


def _look_within(caller: Task, within: BpmnSubWorkflow) -> None:
    """Bring an activity up to date with the sub-process that runs in it.

    SpiffWorkflow completes the activity when an end event was reached, also by a cancel end
    event that a boundary event answers, and lets it hang when the flow stops without one.
    """
    if caller.state == TaskState.STARTED and within.is_completed():
        caller.task_spec._on_subworkflow_completed(within, caller)
    elif caller.state == TaskState.READY and not within.success and _is_interrupted(caller):
        caller.cancel()


def _is_interrupted(activity: Task) -> bool:
    return any(
        beside.state == TaskState.READY and getattr(beside.task_spec, "cancel_activity", False)
        for beside in activity.parent.children
    )


def ready_tasks(workflow: BpmnWorkflow, *, manual: bool) -> Iterator[Task]:
    """The tasks that are ready, in the order of the process: those of people, or the others."""
    found: Iterator[Task] = workflow.get_tasks_iterator(state=TaskState.READY, manual=manual)
    return found


def is_in(workflow: BpmnWorkflow, task: Task) -> bool:
    """Whether a task is still part of the instance."""
    of = task.workflow
    if of is not workflow and workflow.subprocesses.get(of.parent_task_id) is not of:
        return False
    return bool(of.tasks.get(task.id) is task)


def timer_id(task: Task, definition: TimerDefinition) -> str:
    """What names one waiting timer in its instance."""
    return f"{task.id}/{definition.bpmn_id}"


def waiting_timers(workflow: BpmnWorkflow) -> Iterator[tuple[Task, TimerDefinition, int]]:
    """The timers that wait, with their due times."""
    for task in workflow.event_manager.tasks.values():
        if task.state == TaskState.WAITING and is_in(workflow, task):
            for definition in definitions(task):
                due = definition.waits(task)
                if due is not None:
                    yield task, definition, due
