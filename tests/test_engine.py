"""The engine: what runs, what waits, what fires, and that no clock but the given one decides."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures.engines import (
    BETWEEN,
    DAY,
    END,
    HOUR,
    NOW,
    SECOND,
    START,
    USER,
    answer,
    begin,
    boundary,
    bpmn,
    catch,
    cycle,
    engine,
    fire,
    flow_elements,
    reopened,
    run,
    short,
    steps,
    waiting,
)
from SpiffWorkflow.bpmn import BpmnWorkflow
from SpiffWorkflow.bpmn.specs.event_definitions import timer as spiff_timer
from SpiffWorkflow.util.task import TaskState

from seams_lab.errors import SeamsError, UnusableInput
from seams_lab.graph import load_graph
from seams_lab.instants import to_micros
from seams_lab.runtime.conditions import ConditionFailed
from seams_lab.runtime.engine import (
    Engine,
    Fired,
    HandlerFailed,
    Step,
    StepFailed,
    TaskContext,
    UserTask,
)

Between = Callable[[Engine, BpmnWorkflow], BpmnWorkflow]
EXPENSE = "https://example.org/expense/"
each_way = pytest.mark.parametrize("between", BETWEEN.values(), ids=list(BETWEEN))

SERVICE = '<serviceTask id="w" name="Work"/>'
REMINDED = bpmn(
    START + USER + END + boundary("t", "timeDuration", "PT48H")
    + '<serviceTask id="r"/><endEvent id="f"/>',
    "s u; u e; t r; r f",
)  # fmt: skip
# An approval that may be answered, reminded of after two hours, or given up after one.
TWO_ON_ONE = bpmn(
    START + USER + END
    + boundary("remind", "timeDuration", "PT2H") + boundary("stop", "timeDuration", "PT1H", "1")
    + '<serviceTask id="r"/><endEvent id="f"/><serviceTask id="x"/><endEvent id="g"/>',
    "s u; u e; remind r; r f; stop x; x g",
)  # fmt: skip
RACE = bpmn(
    START + '<eventBasedGateway id="g"/>' + catch("t48", "timeDuration", "PT48H")
    + catch("t1", "timeDuration", "PT1H") + catch("t2", "timeDuration", "PT2H")
    + '<serviceTask id="a48"/><serviceTask id="a1"/><serviceTask id="a2"/>' + END,
    "s g; g t48; g t1; g t2; t48 a48; t1 a1; t2 a2; a48 e; a1 e; a2 e",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _no_clock_but_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """SpiffWorkflow's timers must not ask what time it is."""

    class Trap:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"SpiffWorkflow asked for datetime.{name}")

    monkeypatch.setattr(spiff_timer, "datetime", Trap())


# ---------------------------------------------------------------- running


def test_steps_name_each_element_in_order(models: Path) -> None:
    made = Engine(load_graph(models / "expense"), [f"{EXPENSE}digest_process"])
    workflow = made.new_workflow(f"{EXPENSE}digest_process", {"open_expenses": 2}, NOW)
    at = f"{EXPENSE}digest#"
    assert steps(made, workflow) == [
        Step(f"{at}every_morning", "startEvent", "Every day at 08:00 UTC"),
        Step(f"{at}collect_open_expenses", "serviceTask", "Collect open expenses", "no handler"),
        Step(f"{at}anything_open", "exclusiveGateway", "Anything open?"),
        Step(f"{at}send_digest", "serviceTask", "Send digest to approvers", "no handler"),
        Step(f"{at}digest_sent", "endEvent", "Digest sent"),
    ]
    assert made.is_ended(workflow)
    assert made.data(workflow) == {"open_expenses": 2}


@each_way
def test_an_approval_runs_from_submission_to_archive(models: Path, between: Between) -> None:
    process = f"{EXPENSE}approval_process"
    made = Engine(load_graph(models / "expense"), [process])

    def again(workflow: BpmnWorkflow) -> BpmnWorkflow:
        return workflow if between is BETWEEN["in memory"] else reopened(made, workflow, process)

    workflow = again(made.new_workflow(process, {}, NOW))
    assert run(made, workflow) == ["expense_submitted", "validate_expense"]
    workflow = again(workflow)
    assert waiting(made, workflow) == [("reminder_due", NOW + 48 * HOUR)]
    (task,) = made.user_tasks(workflow)
    assert task == UserTask(task.task, f"{EXPENSE}approval#approve_expense", "Approve expense")
    reminder = fire(made, workflow, "reminder_due", NOW + 50 * HOUR)
    assert reminder == Fired(f"{EXPENSE}approval#reminder_due", NOW + 48 * HOUR, 0)
    workflow = again(workflow)
    assert run(made, workflow) == ["reminder_due", "send_reminder", "reminder_sent"]
    workflow = again(workflow)
    made.complete(workflow, task.task, {"approved": False})
    workflow = again(workflow)
    assert run(made, workflow, NOW + 60 * HOUR) == ["is_approved", "tell_submitter"]
    workflow = again(workflow)
    assert waiting(made, workflow) == [("correction_period", NOW + 60 * HOUR + 3 * DAY)]
    assert not made.is_ended(workflow)
    assert fire(made, workflow, "correction_period", NOW + 60 * HOUR + 3 * DAY) is not None
    assert run(made, workflow) == ["correction_period", "archive_expense", "expense_rejected"]
    assert made.is_ended(again(workflow))
    assert made.data(again(workflow)) == {"approved": False}


def test_each_step_ends_in_a_state_that_can_be_taken_up(tmp_path: Path) -> None:
    made = engine(tmp_path, bpmn(START + SERVICE + '<serviceTask id="v"/>' + END, "s w; w v; v e"))
    workflow = made.new_workflow("p", {}, NOW)
    whole = run(made, workflow)
    for cut in range(1, len(whole)):
        workflow = made.new_workflow("p", {}, NOW)
        seen: list[str] = []

        def on_step(step: Step, cut: int = cut, seen: list[str] = seen) -> None:
            seen.append(short(step.element))
            if len(seen) == cut:
                raise InterruptedError

        with pytest.raises(InterruptedError):
            made.steps(workflow, lambda: NOW, on_step)
        assert seen + run(made, reopened(made, workflow)) == whole


def test_parallel_branches_meet(tmp_path: Path) -> None:
    text = bpmn(
        START + '<parallelGateway id="g"/><userTask id="a"/><userTask id="b"/>'
        '<parallelGateway id="j"/>' + END,
        "s g; g a; g b; a j; b j; j e",
    )
    made = engine(tmp_path, text)
    workflow = begin(made)
    assert [short(t.element) for t in made.user_tasks(workflow)] == ["a", "b"]
    answer(made, workflow, {"b": 1}, 1)
    assert run(made, workflow) == []
    workflow = reopened(made, workflow)
    answer(made, workflow, {"a": 2})
    assert run(made, workflow) == ["j", "e"]
    assert made.data(workflow) == {"a": 2, "b": 1}


def test_a_process_without_an_end_event_ends(tmp_path: Path) -> None:
    made = engine(tmp_path, bpmn(START + USER + boundary("t", "timeDuration", "PT1H"), "s u"))
    workflow = begin(made, {"a": 1})
    assert not made.is_ended(workflow)
    answer(made, workflow, {"b": 2})
    run(made, workflow)
    assert made.is_ended(workflow)
    assert made.data(workflow) == {"a": 1, "b": 2}
    assert made.waiting(workflow) == ()


def test_what_a_terminate_end_cancels_does_not_run(tmp_path: Path) -> None:
    text = bpmn(
        START + '<parallelGateway id="g"/><endEvent id="x"><terminateEventDefinition/></endEvent>'
        + catch("t", "timeDuration", "PT1H") + SERVICE + END,
        "s g; g x; g t; g w; t e; w e",
    )  # fmt: skip
    made = engine(tmp_path, text)
    workflow = made.new_workflow("p", {}, NOW)
    assert run(made, workflow) == ["s", "g", "x"]
    assert made.is_ended(workflow)
    assert made.waiting(workflow) == ()


def test_a_step_that_spiffworkflow_cannot_do_names_the_element(tmp_path: Path) -> None:
    text = bpmn(
        START + '<exclusiveGateway id="g"/>' + END + '<endEvent id="f"/>',
        "s g; g e [n > 1]; g f [n < 1]",
    )
    made = engine(tmp_path, text)
    with pytest.raises(StepFailed, match=r"m\.bpmn#g: .*No conditions satisfied") as caught:
        begin(made, {"n": 1})
    assert not isinstance(caught.value, HandlerFailed)
    with pytest.raises(ConditionFailed, match=r"m\.bpmn#g_e.*'n' is not in the data"):
        begin(made)


def test_a_message_thrown_is_a_step_and_leaves_nothing_behind(tmp_path: Path) -> None:
    text = bpmn(
        START + '<intermediateThrowEvent id="m"><messageEventDefinition messageRef="x"/>'
        "</intermediateThrowEvent>" + USER + END,
        "s m; m u; u e", outside='<message id="x" name="typename"/>',
    )  # fmt: skip
    made = engine(tmp_path, text)
    workflow = made.new_workflow("p", {"a": 1}, NOW)
    assert [(short(s.element), s.kind) for s in steps(made, workflow)] == [
        ("s", "startEvent"), ("m", "intermediateThrowEvent"),
    ]  # fmt: skip
    assert workflow.bpmn_events == []
    assert run(made, reopened(made, workflow)) == []


@each_way
def test_a_signal_reaches_the_branch_that_waits(tmp_path: Path, between: Between) -> None:
    signal = '<signalEventDefinition signalRef="x"/>'
    text = bpmn(
        START + f'<parallelGateway id="g"/><intermediateCatchEvent id="c">{signal}'
        f'</intermediateCatchEvent>{SERVICE}{USER}<endEvent id="x1">{signal}</endEvent>' + END,
        "s g; g c; c w; w e; g u; u x1", outside='<signal id="x" name="typename"/>',
    )  # fmt: skip
    made = engine(tmp_path, text)
    workflow = between(made, begin(made))
    answer(made, workflow, {"a": 1})
    assert run(made, between(made, workflow)) == ["x1", "c", "w", "e"]


@pytest.mark.parametrize(
    ("node", "kind", "data"),
    [
        ('<userTask id="u"><multiInstanceLoopCharacteristics isSequential="1">'
         "<loopCardinality>2</loopCardinality></multiInstanceLoopCharacteristics></userTask>",
         "userTask", {}),
        ('<userTask id="u"><multiInstanceLoopCharacteristics>'
         "<loopCardinality>n</loopCardinality></multiInstanceLoopCharacteristics></userTask>",
         "userTask", {"n": 2}),
        ('<manualTask id="u"><standardLoopCharacteristics loopMaximum="9">'
         "<loopCondition>done != 2</loopCondition></standardLoopCharacteristics></manualTask>",
         "manualTask", {}),
    ],
    ids=["sequential", "parallel", "loop"],
)  # fmt: skip
@each_way
def test_loops_run_as_often_as_they_say(
    tmp_path: Path, node: str, kind: str, data: dict[str, Any], between: Between
) -> None:
    made = engine(tmp_path, bpmn(START + node + END, "s u; u e"))
    # Two instances: what one run does to the specification must not reach the other.
    for _ in range(2):
        workflow = begin(made, data)
        for round_ in (1, 2):
            workflow = between(made, workflow)
            answer(made, workflow, {"done": round_})
        workflow = between(made, workflow)
        assert steps(made, workflow) == [
            Step("m.bpmn#u", kind, "", "loop completed"), Step("m.bpmn#e", "endEvent", ""),
        ]  # fmt: skip
        assert made.is_ended(workflow)


# ---------------------------------------------------------------- starts

STARTS = bpmn(
    START
    + '<startEvent id="t"><timerEventDefinition><timeCycle>"R/2026-11-09T08:00:00Z/P1D"'
    "</timeCycle></timerEventDefinition></startEvent>"
    '<startEvent id="m"><messageEventDefinition messageRef="x"/></startEvent>'
    '<serviceTask id="a"/><serviceTask id="b"/><serviceTask id="c"/>' + END,
    "s a; a e; t b; b e; m c; c e", outside='<message id="x" name="x"/>',
)  # fmt: skip


@pytest.mark.parametrize(
    ("start", "ran"),
    [
        (None, ["s", "a", "e"]),
        ("s", ["s", "a", "e"]),
        ("t", ["t", "b", "e"]),
        ("m.bpmn#t", ["t", "b", "e"]),
        ("m", ["m", "c", "e"]),
    ],
)
@each_way
def test_one_start_event_fires(
    tmp_path: Path, start: str | None, ran: list[str], between: Between
) -> None:
    made = engine(tmp_path, STARTS)
    workflow = made.new_workflow("p", {}, NOW - DAY, start=start)
    assert made.waiting(workflow) == ()
    workflow = between(made, workflow)
    assert run(made, workflow, NOW - DAY) == ran
    assert made.is_ended(workflow)


@pytest.mark.parametrize(
    ("start", "seen"),
    [("x", "no start event of p"), ("other.bpmn#s", "no start event of p"), ("a", "no start")],
)
def test_an_unknown_start_names_those_there_are(tmp_path: Path, start: str, seen: str) -> None:
    made = engine(tmp_path, STARTS)
    with pytest.raises(UnusableInput, match=f"{seen}.*one of s, t, m"):
        made.new_workflow("p", {}, NOW, start=start)


def test_several_starts_and_no_plain_one_must_be_chosen_from(tmp_path: Path) -> None:
    text = STARTS.replace(START, "").replace('sourceRef="s"', 'sourceRef="t"')
    made = engine(tmp_path, text.replace("<serviceTask id=\"a\"/>", "").replace(
        '<sequenceFlow id="s_a" sourceRef="t" targetRef="a"></sequenceFlow>', ""))  # fmt: skip
    with pytest.raises(UnusableInput, match="several start events: t, m"):
        made.new_workflow("p", {}, NOW)


def test_a_message_start_is_delivered_to_an_instance_that_has_not_begun(tmp_path: Path) -> None:
    made = engine(tmp_path, STARTS)
    workflow = made.new_workflow("p", {}, NOW)
    made.deliver_start(workflow, "m.bpmn#m", NOW)
    assert run(made, reopened(made, workflow)) == ["m", "c", "e"]
    workflow = begin(made)
    with pytest.raises(UnusableInput, match="the instance has begun"):
        made.deliver_start(workflow, "m", NOW)
    with pytest.raises(UnusableInput, match="no start event"):
        made.deliver_start(made.new_workflow("p", {}, NOW), "u", NOW)


def test_the_only_start_needs_no_name(models: Path) -> None:
    made = Engine(load_graph(models / "expense"), [f"{EXPENSE}payout_process"])
    workflow = made.new_workflow(f"{EXPENSE}payout_process", {}, NOW)
    assert run(made, workflow)[0] == "payout_wanted"


# ---------------------------------------------------------------- timers


@pytest.mark.parametrize("late", [-1, 0, 1, 40 * DAY])
@each_way
def test_the_caller_decides_what_is_due(tmp_path: Path, late: int, between: Between) -> None:
    """Also at exactly the due instant, where SpiffWorkflow's own clock says no."""
    made = engine(tmp_path, REMINDED)
    workflow = between(made, begin(made))
    fired = fire(made, workflow, "t", NOW + 48 * HOUR + late)
    assert fired == Fired("m.bpmn#t", NOW + 48 * HOUR, 0)
    assert run(made, between(made, workflow)) == ["t", "r", "f"]


def test_stepping_on_fires_nothing_however_late_it_is(tmp_path: Path) -> None:
    made = engine(tmp_path, REMINDED)
    workflow = begin(made)
    assert run(made, workflow, NOW + 1_000 * DAY) == []
    answer(made, workflow, now_is := {"a": 1})
    assert run(made, workflow, NOW + 1_000 * DAY) == ["e"]
    assert made.data(workflow) == now_is


def test_a_timer_is_armed_when_it_is_reached_and_never_again(tmp_path: Path) -> None:
    text = bpmn(START + SERVICE + catch("t", "timeDuration", "PT1H") + END, "s w; w t; t e")
    made = engine(tmp_path, text)
    workflow = made.new_workflow("p", {}, NOW)
    instants = iter(range(NOW, NOW + 100 * SECOND, SECOND))
    made.steps(workflow, lambda: next(instants), lambda step: None)
    reached = waiting(made, workflow)
    # Asked before the first refresh, then before Start, s and w: w reaches t.
    assert reached == [("t", NOW + 3 * SECOND + HOUR)]
    run(made, workflow, NOW + 5 * DAY)
    assert waiting(made, reopened(made, workflow)) == reached


@pytest.mark.parametrize("now", [None, NOW + 7 * SECOND])
@each_way
def test_what_a_completed_task_reaches_is_armed(
    tmp_path: Path, now: int | None, between: Between
) -> None:
    made = engine(tmp_path, bpmn(START + USER + catch("t", "timeDuration", "PT1H") + END,
                                 "s u; u t; t e"))  # fmt: skip
    workflow = begin(made)
    made.complete(workflow, made.user_tasks(workflow)[0].task, {}, now)
    workflow = between(made, workflow)
    assert waiting(made, workflow) == ([] if now is None else [("t", now + HOUR)])
    run(made, workflow, NOW + 9 * SECOND)
    assert waiting(made, workflow) == [("t", (now or NOW + 9 * SECOND) + HOUR)]


def test_what_a_completed_task_reached_is_armed_by_a_firing_too(tmp_path: Path) -> None:
    text = bpmn(
        START + '<parallelGateway id="g"/>' + USER + catch("t", "timeDuration", "PT1H")
        + catch("v", "timeDuration", "PT2H") + END,
        "s g; g u; g v; u t; t e; v e",
    )  # fmt: skip
    made = engine(tmp_path, text)
    workflow = begin(made)
    answer(made, workflow)
    fire(made, workflow, "v", NOW + SECOND)
    assert waiting(made, workflow) == [("t", NOW + SECOND + HOUR)]


def test_a_date_that_has_passed_waits_to_be_delivered(tmp_path: Path) -> None:
    made = engine(tmp_path, bpmn(START + catch("t", "timeDate", "2020-01-01T00:00:00Z") + END,
                                 "s t; t e"))  # fmt: skip
    workflow = begin(made)
    assert waiting(made, workflow) == [("t", to_micros("2020-01-01T00:00:00Z"))]
    assert fire(made, workflow, "t", NOW) is not None
    assert run(made, workflow) == ["t", "e"]


@pytest.mark.parametrize(("cancel", "goes_on"), [("0", True), ("false", True), (" 0 ", True),
                                                 ("1", False), ("true", False)])  # fmt: skip
@each_way
def test_cancel_activity_is_a_boolean(
    tmp_path: Path, cancel: str, goes_on: bool, between: Between
) -> None:
    made = engine(
        tmp_path, REMINDED.replace('cancelActivity="false"', f'cancelActivity="{cancel}"')
    )
    workflow = begin(made)
    fire(made, workflow, "t", NOW)
    workflow = between(made, workflow)
    assert run(made, workflow) == ["t", "r", "f"]
    assert bool(made.user_tasks(workflow)) is goes_on
    assert made.is_ended(workflow) is not goes_on


@each_way
def test_an_interrupting_timer_silences_the_others(tmp_path: Path, between: Between) -> None:
    """Both are due: the reminder must not run after the interrupt of an hour before."""
    made = engine(tmp_path, TWO_ON_ONE)
    workflow = between(made, begin(made))
    stop, remind = made.waiting(workflow)
    assert [(short(w.event), w.due - NOW) for w in (stop, remind)] == [
        ("stop", HOUR), ("remind", 2 * HOUR),
    ]  # fmt: skip
    assert made.fire(workflow, stop.task, NOW + DAY) == Fired("m.bpmn#stop", NOW + HOUR, 0)
    workflow = between(made, workflow)
    assert run(made, workflow) == ["stop", "x", "g"]
    workflow = between(made, workflow)
    assert made.fire(workflow, remind.task, NOW + DAY) is None
    assert made.waiting(workflow) == ()
    assert made.is_ended(workflow)


@each_way
def test_an_answer_ends_what_waits_on_the_task(tmp_path: Path, between: Between) -> None:
    made = engine(tmp_path, TWO_ON_ONE)
    workflow = begin(made)
    timers = made.waiting(workflow)
    answer(made, workflow)
    workflow = between(made, workflow)
    assert made.waiting(workflow) == ()
    assert [made.fire(workflow, w.task, NOW + DAY) for w in timers] == [None, None]
    assert run(made, workflow) == ["e"]


def test_a_timer_is_delivered_once(tmp_path: Path) -> None:
    made = engine(tmp_path, REMINDED)
    workflow = begin(made)
    (timer,) = made.waiting(workflow)
    assert made.fire(workflow, timer.task, NOW) is not None
    assert made.waiting(workflow) == ()
    assert made.fire(workflow, timer.task, NOW) is None
    assert made.fire(reopened(made, workflow), timer.task, NOW) is None
    assert run(made, workflow) == ["t", "r", "f"]
    assert made.fire(workflow, timer.task, NOW) is None


@pytest.mark.parametrize("task", ["", "x", "x/t", "00000000-0000-0000-0000-000000000000/t", "{}/u"])
def test_a_timer_that_is_not_there_is_none(tmp_path: Path, task: str) -> None:
    made = engine(tmp_path, REMINDED)
    workflow = begin(made)
    (timer,) = made.waiting(workflow)
    assert made.fire(workflow, task.format(timer.task.partition("/")[0]), NOW) is None
    assert waiting(made, workflow) == [("t", NOW + 48 * HOUR)]


@pytest.mark.parametrize("first", ["t48", "t1", "t2"])
@each_way
def test_one_event_wins_a_gateway(tmp_path: Path, first: str, between: Between) -> None:
    """Each timer has its own due time, and one branch runs however many are overdue."""
    made = engine(tmp_path, RACE)
    workflow = between(made, begin(made))
    assert waiting(made, workflow) == [
        ("t1", NOW + HOUR), ("t2", NOW + 2 * HOUR), ("t48", NOW + 48 * HOUR),
    ]  # fmt: skip
    timers = {short(w.event): w.task for w in made.waiting(workflow)}
    assert made.fire(workflow, timers[first], NOW + 99 * DAY) is not None
    workflow = between(made, workflow)
    assert made.waiting(workflow) == ()
    assert [made.fire(workflow, task, NOW + 99 * DAY) for task in timers.values()] == [None] * 3
    assert run(made, workflow) == ["g", first, f"a{first[1:]}", "e"]
    assert made.is_ended(between(made, workflow))
    assert '"due"' not in made.checkpoint(workflow)


@each_way
def test_a_condition_may_win_a_gateway(tmp_path: Path, between: Between) -> None:
    text = bpmn(
        START + '<parallelGateway id="p1"/>' + USER + '<eventBasedGateway id="g"/>'
        + catch("t", "timeDuration", "PT1H") + '<intermediateCatchEvent id="c">'
        "<conditionalEventDefinition><condition>n == 1</condition></conditionalEventDefinition>"
        "</intermediateCatchEvent>" + END,
        "s p1; p1 u; p1 g; g t; g c; t e; c e; u e",
    )  # fmt: skip
    made = engine(tmp_path, text)
    workflow = between(made, begin(made, {"n": 0}))
    assert waiting(made, workflow) == [("t", NOW + HOUR)]
    workflow = between(made, begin(made, {"n": 1}))
    assert made.waiting(workflow) == ()
    assert '"caught"' not in made.checkpoint(workflow)
    answer(made, workflow)
    run(made, workflow)
    assert made.is_ended(workflow)


def test_timers_in_subprocesses_wait_and_are_cancelled_with_them(tmp_path: Path) -> None:
    inside = (
        '<startEvent id="s2"/>' + USER + boundary("t", "timeDuration", "PT1H", "true")
        + catch("c", "timeDuration", "PT5H") + '<serviceTask id="r"/><endEvent id="e2"/>'
        '<sequenceFlow id="1" sourceRef="s2" targetRef="u"/>'
        '<sequenceFlow id="2" sourceRef="u" targetRef="e2"/>'
        '<sequenceFlow id="3" sourceRef="t" targetRef="c"/>'
        '<sequenceFlow id="4" sourceRef="c" targetRef="r"/>'
        '<sequenceFlow id="5" sourceRef="r" targetRef="e2"/>'
    )  # fmt: skip
    made = engine(tmp_path, bpmn(START + f'<subProcess id="sub">{inside}</subProcess>' + END,
                                 "s sub; sub e"))  # fmt: skip
    workflow = reopened(made, begin(made, {"a": 1}))
    assert waiting(made, workflow) == [("t", NOW + HOUR)]
    assert fire(made, workflow, "t", NOW + HOUR) is not None
    workflow = reopened(made, workflow)
    assert run(made, workflow, NOW + HOUR) == ["t"]
    workflow = reopened(made, workflow)
    assert made.user_tasks(workflow) == ()
    assert waiting(made, workflow) == [("c", NOW + 6 * HOUR)]
    assert fire(made, workflow, "c", NOW) is not None
    assert run(made, reopened(made, workflow)) == ["c", "r", "e2", "sub", "e"]


ENDS = {
    "cancel": ('<endEvent id="x"><cancelEventDefinition/></endEvent>', ["x", "b", "f"]),
    "error": ('<endEvent id="x"><errorEventDefinition errorRef="r"/></endEvent>', ["x", "b", "f"]),
    "cancel, and nobody minds": (
        '<endEvent id="x"><cancelEventDefinition/></endEvent>', ["x", "sub", "w", "e"],
    ),
    "terminate": (
        '<endEvent id="x"><terminateEventDefinition/></endEvent>', ["x", "sub", "w", "e"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", ENDS)
@each_way
def test_a_subprocess_may_end_before_its_time(tmp_path: Path, how: str, between: Between) -> None:
    end, ran = ENDS[how]
    on = {"error": '<errorEventDefinition errorRef="r"/>', "cancel": "<cancelEventDefinition/>"}
    caught = (
        f'<boundaryEvent id="b" attachedToRef="sub">{on[how]}</boundaryEvent>' if how in on else ""
    )
    inside = (
        '<startEvent id="s2"/><parallelGateway id="g"/>' + USER + catch("c", "timeDuration", "PT5H")
        + end + '<endEvent id="e2"/>' + flow_elements("s2 g; g u; g c; u x; c e2")
    )  # fmt: skip
    text = bpmn(
        START + f'<transaction id="sub">{inside}</transaction>'
        + caught + '<endEvent id="f"/>' + SERVICE + END,
        "s sub; sub w; w e" + "; b f" * bool(caught),
        outside='<error id="r" name="r" errorCode="1"/>',
    )  # fmt: skip
    made = engine(tmp_path, text)
    workflow = between(made, begin(made))
    assert waiting(made, workflow) == [("c", NOW + 5 * HOUR)]
    answer(made, workflow)
    workflow = between(made, workflow)
    assert run(made, workflow) == ran
    assert made.waiting(workflow) == ()


@each_way
def test_a_subprocess_whose_flow_just_stops_is_done(tmp_path: Path, between: Between) -> None:
    inside = '<startEvent id="s2"/>' + USER + '<endEvent id="e2"/>' + flow_elements("s2 u")
    made = engine(tmp_path, bpmn(START + f'<subProcess id="sub">{inside}</subProcess>' + END,
                                 "s sub; sub e"))  # fmt: skip
    workflow = between(made, begin(made, {"a": 1}))
    answer(made, workflow, {"b": 2})
    workflow = between(made, workflow)
    assert run(made, workflow) == ["sub", "e"]
    assert made.is_ended(workflow)
    assert made.data(workflow) == {"a": 1, "b": 2}


# ---------------------------------------------------------------- boundary cycles


@each_way
def test_a_cycle_fires_again_and_again_until_the_answer(tmp_path: Path, between: Between) -> None:
    made = engine(tmp_path, cycle("R/2026-11-01T08:00:00Z/P1D"))
    workflow = between(made, begin(made, at=NOW + HOUR))
    seen = set()
    for day in range(1, 5):
        (timer,) = made.waiting(workflow)
        assert timer.due == NOW + day * DAY
        assert timer.task not in seen, "each occurrence is a task of its own"
        seen.add(timer.task)
        assert made.fire(workflow, timer.task, timer.due) == Fired("m.bpmn#t", timer.due, 0)
        workflow = between(made, workflow)
        assert run(made, workflow, timer.due) == ["t", "r", "f"]
        workflow = between(made, workflow)
    answer(made, workflow, {"done": True})
    assert made.waiting(workflow) == ()
    assert run(made, workflow) == ["e"]
    assert made.is_ended(workflow)


@pytest.mark.parametrize(
    ("armed", "first"),
    [(0, 0), (1, DAY), (DAY, DAY), (2 * DAY + 1, 3 * DAY), (-5 * DAY, 0), (9 * DAY, 9 * DAY)],
)
def test_due_times_before_the_arming_neither_fire_nor_count(
    tmp_path: Path, armed: int, first: int
) -> None:
    made = engine(tmp_path, cycle("R10/2026-11-09T08:00:00Z/P1D"))
    workflow = begin(made, at=NOW + armed)
    assert waiting(made, workflow) == [("t", NOW + first)]
    assert fire(made, workflow, "t", NOW + first) == Fired("m.bpmn#t", NOW + first, 0)
    # Rn counts from the start, not from the arming.
    left = [("t", NOW + first + DAY)] if first < 9 * DAY else []
    assert waiting(made, workflow) == left


def test_a_cycle_with_no_due_time_left_lets_nothing_wait(tmp_path: Path) -> None:
    made = engine(tmp_path, cycle("R10/2026-11-09T08:00:00Z/P1D"))
    workflow = begin(made, at=NOW + 9 * DAY + 1)
    assert made.waiting(workflow) == ()
    workflow = reopened(made, workflow)
    answer(made, workflow)
    assert run(made, workflow) == ["e"]
    assert made.is_ended(workflow)


@pytest.mark.parametrize(
    ("late", "due", "skipped", "next_"),
    [
        (-HOUR, 0, 0, DAY),  # a scenario fires without a clock
        (0, 0, 0, DAY),
        (DAY - 1, 0, 0, DAY),
        (DAY, DAY, 1, 2 * DAY),
        (5 * DAY + 1, 5 * DAY, 5, 6 * DAY),
        (9 * DAY, 9 * DAY, 9, None),
        (999 * DAY, 9 * DAY, 9, None),
    ],
)
@each_way
def test_the_newest_due_time_fires_and_the_missed_are_skipped(
    tmp_path: Path, late: int, due: int, skipped: int, next_: int | None, between: Between
) -> None:
    made = engine(tmp_path, cycle("R10/2026-11-09T08:00:00Z/P1D"))
    workflow = between(made, begin(made))
    assert fire(made, workflow, "t", NOW + late) == Fired("m.bpmn#t", NOW + due, skipped)
    workflow = between(made, workflow)
    assert waiting(made, workflow) == ([] if next_ is None else [("t", NOW + next_)])
    assert run(made, workflow) == ["t", "r", "f"]


def test_a_monthly_cycle_keeps_to_the_end_of_the_month(tmp_path: Path) -> None:
    made = engine(tmp_path, cycle("R4/2026-01-31T08:00:00Z/P1M"))
    workflow = begin(made, at=to_micros("2026-01-01"))
    seen = []
    while made.waiting(workflow):
        seen.append(made.waiting(workflow)[0].due)
        fire(made, workflow, "t", 0)
        run(made, workflow)
    assert seen == [to_micros(f"2026-{day}T08:00:00Z") for day in ("01-31", "02-28", "03-31",
                                                                    "04-30")]  # fmt: skip


def test_a_long_cycle_does_not_make_the_checkpoint_grow(tmp_path: Path) -> None:
    made = engine(tmp_path, cycle("R/2026-11-09T08:00:00Z/PT1H"), handlers={
        "r": lambda data, context: {"reminded": data["answers"]}})  # fmt: skip
    workflow = begin(made, {"answers": 0})
    sizes = []
    for hour in range(60):
        fire(made, workflow, "t", NOW + hour * HOUR)
        workflow = reopened(made, workflow)
        run(made, workflow)
        sizes.append(len(made.checkpoint(workflow)))
    assert max(sizes[3:]) - min(sizes[3:]) < 50
    assert len(workflow.tasks) < 30
    answer(made, workflow)
    assert run(made, workflow) == ["e"]
    assert made.data(workflow) == {"answers": 0, "reminded": 0}


def test_an_occurrence_whose_branch_still_runs_is_kept(tmp_path: Path) -> None:
    text = cycle("R/2026-11-09T08:00:00Z/PT1H").replace("serviceTask", "userTask")
    made = engine(tmp_path, text)
    workflow = begin(made)
    for hour in range(4):
        fire(made, workflow, "t", NOW + hour * HOUR)
        run(made, workflow)
    open_tasks = [short(t.element) for t in made.user_tasks(workflow)]
    assert sorted(open_tasks) == ["r", "r", "r", "r", "u"]
    answer(made, workflow, {"first": 1}, open_tasks.index("u"))
    for number in range(4):
        workflow = reopened(made, workflow)
        assert not made.is_ended(workflow)
        answer(made, workflow, {f"r{number}": number})
        run(made, workflow)
    assert made.is_ended(workflow)
    assert made.data(workflow) == {"first": 1, "r0": 0, "r1": 1, "r2": 2, "r3": 3}


def test_what_earlier_occurrences_wrote_is_kept_when_they_go(tmp_path: Path) -> None:
    counted = iter(range(100))
    made = engine(tmp_path, cycle("R/2026-11-09T08:00:00Z/PT1H"), handlers={
        "r": lambda data, context: {f"n{next(counted)}": 1, "last": context.key}})  # fmt: skip
    workflow = begin(made)
    keys = []
    for hour in range(5):
        fire(made, workflow, "t", NOW + hour * HOUR)
        run(made, workflow, instance="i")
        keys.append(hour)
        workflow = reopened(made, workflow)
    answer(made, workflow)
    run(made, workflow)
    data = made.data(workflow)
    last = data.pop("last")
    assert data == {f"n{n}": 1 for n in range(5)}
    assert last.startswith("i/")


def test_an_occurrence_that_a_gateway_counts_on_is_kept(tmp_path: Path) -> None:
    counted = iter(range(100))
    text = bpmn(
        START + USER + boundary("t", "timeCycle", "R/2026-11-09T08:00:00Z/PT1H")
        + '<serviceTask id="r"/><parallelGateway id="j"/>' + END,
        "s u; u j; t r; r j; j e",
    )  # fmt: skip
    made = engine(tmp_path, text, handlers={"r": lambda data, context: {f"n{next(counted)}": 1}})
    workflow = begin(made)
    for hour in range(4):
        fire(made, workflow, "t", NOW + hour * HOUR)
        run(made, workflow)
        workflow = reopened(made, workflow)
    answer(made, workflow)
    assert run(made, workflow) == ["j", "e"]
    assert made.data(workflow) == {f"n{n}": 1 for n in range(4)}


def test_the_data_so_far_survives_the_removal_of_the_last_task(tmp_path: Path) -> None:
    text = cycle("R/2026-11-09T08:00:00Z/PT1H").replace("serviceTask", "userTask")
    made = engine(tmp_path, text)
    workflow = begin(made, {"a": 1})
    for hour in range(2):
        fire(made, workflow, "t", NOW + hour * HOUR)
        run(made, workflow)
    elements = [short(t.element) for t in made.user_tasks(workflow)]
    second, first = (made.user_tasks(workflow)[i].task for i in (2, 1))
    assert elements == ["u", "r", "r"]
    for task in (second, first):
        made.complete(workflow, task, {})
        run(made, workflow)
    fire(made, workflow, "t", NOW + 2 * HOUR)
    assert workflow.last_task.id in workflow.tasks
    assert made.data(reopened(made, workflow)) == made.data(workflow) == {"a": 1}


# ---------------------------------------------------------------- handlers

WORK = bpmn(
    START + SERVICE + '<businessRuleTask id="b" name="Decide"/><sendTask id="x"/>' + USER + END,
    "s w; w b; b x; x u; u e",
)


@pytest.mark.parametrize("by", ["{}", "m.bpmn#{}"], ids=["id", "IRI"])
def test_handlers_are_called_with_the_data_and_their_place(tmp_path: Path, by: str) -> None:
    calls: list[tuple[dict[str, Any], TaskContext]] = []

    def handler(data: dict[str, Any], context: TaskContext) -> dict[str, Any] | None:
        calls.append((dict(data), context))
        data["scribbled"] = True  # on a copy
        return {context.name or "none": len(calls)} if len(calls) < 3 else None

    made = engine(tmp_path, WORK, handlers={by.format(i): handler for i in ("w", "b", "x")})
    workflow = made.new_workflow("p", {"a": {"b": [1]}}, NOW)
    seen = steps(made, workflow, instance="i7", attempt=3)
    assert [(short(s.element), s.kind, s.effect, s.note) for s in seen] == [
        ("s", "startEvent", False, ""), ("w", "serviceTask", True, ""),
        ("b", "businessRuleTask", True, ""), ("x", "sendTask", True, ""),
    ]  # fmt: skip
    assert [data for data, _ in calls] == [
        {"a": {"b": [1]}}, {"a": {"b": [1]}, "Work": 1}, {"a": {"b": [1]}, "Work": 1, "Decide": 2},
    ]  # fmt: skip
    assert [(c.instance, c.element, c.name, c.attempt) for _, c in calls] == [
        ("i7", "m.bpmn#w", "Work", 3), ("i7", "m.bpmn#b", "Decide", 3), ("i7", "m.bpmn#x", "", 3),
    ]  # fmt: skip
    assert len({c.key for _, c in calls}) == 3
    assert made.unhandled() == ()
    assert made.data(workflow) == {"a": {"b": [1]}, "Work": 1, "Decide": 2}


def test_the_iri_wins_over_the_id(tmp_path: Path) -> None:
    made = engine(tmp_path, WORK, handlers={
        "w": lambda data, context: {"by": "id"}, "m.bpmn#w": lambda data, context: {"by": "IRI"},
    })  # fmt: skip
    assert made.data(begin(made)) == {"by": "IRI"}


def test_tasks_without_a_handler_are_listed_and_passed(tmp_path: Path) -> None:
    made = engine(tmp_path, WORK, handlers={"b": lambda data, context: None, "stranger": print})
    assert made.unhandled() == ("m.bpmn#w", "m.bpmn#x")
    seen = steps(made, made.new_workflow("p", {}, NOW))
    assert [(short(s.element), s.note, s.effect) for s in seen[1:]] == [
        ("w", "no handler", False), ("b", "", True), ("x", "no handler", False),
    ]  # fmt: skip


class BoomError(Exception):
    """What a handler raises."""


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (BoomError("no bank"), "BoomError: no bank"),
        ({"a": {1, 2}}, r"data\['a'\].*set"),
        ({"a": float("nan")}, r"data\['a'\].*nan"),
        ([1], "data.*list"),
        ({"typename": "Task"}, "typename"),
    ],
    ids=str,
)
def test_a_handler_that_fails_names_its_element(tmp_path: Path, wrong: Any, said: str) -> None:
    keys = []

    def handler(data: dict[str, Any], context: TaskContext) -> Any:
        keys.append((context.key, context.attempt))
        if isinstance(wrong, Exception):
            raise wrong
        return wrong

    made = engine(tmp_path, WORK, handlers={"w": handler})
    workflow = made.new_workflow("p", {}, NOW)
    kept: list[str] = []
    for attempt in (1, 2):
        with pytest.raises(HandlerFailed, match=rf"m\.bpmn#w: the handler failed: .*{said}") as e:
            made.steps(workflow, lambda: NOW, lambda s, w=workflow: kept.append(made.checkpoint(w)),
                       instance="i", attempt=attempt)  # fmt: skip
        assert isinstance(e.value, SeamsError)
        assert e.value.element == "m.bpmn#w"
        if isinstance(wrong, Exception):
            assert e.value.__cause__ is wrong
        workflow = made.restore("p", kept[-1])
    # A receiver that remembers keys can drop the second attempt.
    (first, one), (second, two) = keys
    assert (first, one, two) == (second, 1, 2)


def test_scripts_run_only_where_they_are_allowed(tmp_path: Path) -> None:
    script = "<scriptTask id='x'><script>b = a + 1</script></scriptTask>"
    made = engine(tmp_path, bpmn(START + script + END, "s x; x e"), allow_scripts=True)
    workflow = made.new_workflow("p", {"a": 1}, NOW)
    seen = steps(made, workflow)
    assert seen[1] == Step("m.bpmn#x", "scriptTask", "", effect=True)
    assert made.data(workflow) == {"a": 1, "b": 2}
    made = engine(tmp_path, bpmn(START + script.replace("a + 1", "{1}") + END, "s x; x e"),
                  allow_scripts=True)  # fmt: skip
    with pytest.raises(UnusableInput, match=r"data\['b'\].*set"):
        begin(made, {"a": 1})


# ---------------------------------------------------------------- people and data


@pytest.mark.parametrize("tag", ["userTask", "manualTask", "task"])
def test_tasks_of_people_wait(tmp_path: Path, tag: str) -> None:
    made = engine(tmp_path, bpmn(START + f'<{tag} id="u" name="N"/>' + END, "s u; u e"))
    workflow = begin(made)
    (task,) = made.user_tasks(workflow)
    assert (task.element, task.name) == ("m.bpmn#u", "N")
    made.complete(workflow, task.task, {})
    assert made.user_tasks(workflow) == ()
    with pytest.raises(UnusableInput, match="not open in this instance"):
        made.complete(workflow, task.task, {})
    assert run(made, workflow) == ["e"]


@pytest.mark.parametrize("task", ["", "u", "m.bpmn#u"])
def test_only_an_open_user_task_is_completed(tmp_path: Path, task: str) -> None:
    made = engine(tmp_path, REMINDED)
    workflow = begin(made)
    with pytest.raises(UnusableInput, match="not open in this instance"):
        made.complete(workflow, task, {})
    assert len(made.user_tasks(workflow)) == 1


def test_bad_data_changes_nothing(tmp_path: Path) -> None:
    made = engine(tmp_path, REMINDED)
    with pytest.raises(UnusableInput, match=r"data of p: .*tuple"):
        made.new_workflow("p", {"a": (1,)}, NOW)
    workflow = begin(made)
    before = made.checkpoint(workflow)
    with pytest.raises(UnusableInput, match=r"data of m\.bpmn#u: .*bytes"):
        made.complete(workflow, made.user_tasks(workflow)[0].task, {"a": b"x"})
    assert made.checkpoint(workflow) == before


def test_what_the_caller_keeps_is_not_shared_with_the_instance(tmp_path: Path) -> None:
    made = engine(tmp_path, REMINDED)
    data = {"a": [1]}
    workflow = begin(made, data)
    data["a"].append(2)
    made.data(workflow)["a"].append(3)
    assert made.data(workflow) == {"a": [1]}


def test_an_unloaded_process_is_named_with_those_there_are(tmp_path: Path) -> None:
    made = engine(tmp_path, REMINDED)
    assert made.processes == ("p",)
    for call in (lambda: made.new_workflow("q", {}, NOW), lambda: made.restore("q", "{}")):
        with pytest.raises(UnusableInput, match="q: not loaded; expected one of p"):
            call()


# ---------------------------------------------------------------- threads


def test_running_changes_nothing_in_the_specification_that_threads_share(tmp_path: Path) -> None:
    node = (
        '<userTask id="u"><multiInstanceLoopCharacteristics><loopCardinality>3'
        "</loopCardinality></multiInstanceLoopCharacteristics></userTask>"
    )
    made = engine(tmp_path, bpmn(START + node + END, "s u; u e"))
    child = made.new_workflow("p", {}, NOW).spec.task_specs["u [child]"]
    assert child.completed_event.n_subscribers() == 1
    begin(made)
    assert child.completed_event.n_subscribers() == 1


def test_threads_step_instances_of_one_engine(tmp_path: Path) -> None:
    """Loops connect callbacks in the specification, which all instances share."""
    node = (
        '<serviceTask id="u"><multiInstanceLoopCharacteristics><loopCardinality>3'
        "</loopCardinality></multiInstanceLoopCharacteristics></serviceTask>"
    )
    text = bpmn(START + node + catch("t", "timeDuration", "PT1H") + END, "s u; u t; t e")
    made = engine(tmp_path, text, handlers={"u": lambda data, context: {"i": context.instance}})
    results: dict[str, list[str]] = {}
    barrier = threading.Barrier(8)

    def work(name: str) -> None:
        barrier.wait()
        seen: list[str] = []
        for turn in range(10):
            workflow = made.new_workflow("p", {"n": turn}, NOW)
            seen = run(made, workflow, NOW, instance=name)
            workflow = reopened(made, workflow)
            fire(made, workflow, "t", NOW)
            seen += run(made, workflow, NOW, instance=name)
            assert made.data(workflow) == {"n": turn, "i": name}
        results[name] = seen

    threads = [threading.Thread(target=work, args=(f"i{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {f"i{n}": ["s", "u", "u", "u", "u", "t", "e"] for n in range(8)}


def test_no_task_is_left_with_the_event_manager(tmp_path: Path) -> None:
    """What was cancelled or removed must not be looked at again."""
    made = engine(tmp_path, TWO_ON_ONE)
    workflow = begin(made)
    fire(made, workflow, "stop", NOW)
    run(made, workflow)
    assert workflow.event_manager.tasks == {}
    assert workflow.get_tasks(state=TaskState.WAITING) == []
