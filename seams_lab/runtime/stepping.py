"""One task of a workflow at a time: which are ready, which wait, and running one."""

# mypy: disable-error-code="import-untyped"

from __future__ import annotations

from collections.abc import Iterator

from SpiffWorkflow.bpmn import BpmnWorkflow
from SpiffWorkflow.task import Task
from SpiffWorkflow.util.task import TaskState

from seams_lab.errors import SeamsError
from seams_lab.runtime.tasks import StepFailed, element_of
from seams_lab.runtime.timing import TimerDefinition, definitions


def run_one(workflow: BpmnWorkflow, task: Task) -> None:
    """Run one task, and let the activities around it see whether they are done."""
    try:
        task.run()
        around = task.workflow.parent_task_id
        while around is not None:
            caller = workflow.get_task_from_id(around)
            if caller.has_state(TaskState.FINISHED_MASK) or _is_interrupted(caller):
                break
            caller.task_spec._update(caller)
            around = caller.workflow.parent_task_id
    except SeamsError:
        raise
    except Exception as error:
        raise StepFailed(element_of(task), error) from error
    # What nobody in the instance catches is told by the step alone.
    workflow.bpmn_events.clear()


def _is_interrupted(activity: Task) -> bool:
    """Whether a boundary event is about to end an activity: a cancelled one is not completed."""
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
