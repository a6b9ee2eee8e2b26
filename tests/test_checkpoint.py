"""Checkpoints: complete, stable, without code, and refused where they do not fit."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from fixtures.engines import (
    BETWEEN,
    END,
    HOUR,
    NOW,
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
    waiting,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from SpiffWorkflow.bpmn import BpmnWorkflow
from SpiffWorkflow.util.task import TaskState

from seams_lab.errors import UnusableInput
from seams_lab.graph import load_graph
from seams_lab.runtime.engine import Engine

MANY = bpmn(
    START + '<parallelGateway id="g"/>' + USER + boundary("t", "timeCycle",
                                                          "R5/2026-11-09T07:30:00Z/PT1H")
    + boundary("i", "timeDuration", "PT3H", "1") + '<serviceTask id="r"/><endEvent id="f"/>'
    '<eventBasedGateway id="h"/>' + catch("c1", "timeDuration", "PT2H")
    + catch("c2", "timeDate", "2026-11-09T09:00:00Z")
    + '<subProcess id="sub"><startEvent id="s2"/><userTask id="v"/>'
    + boundary("k", "timeDuration", "PT4H", "true", on="v") + '<endEvent id="e2"/>'
    + flow_elements("s2 v; v e2; k e2") + "</subProcess>"
    '<exclusiveGateway id="x" default="x_sub"/><userTask id="again"/><parallelGateway id="j"/>'
    + END,
    "s g; g u; u j; t r; r f; i j; g h; h c1; h c2; c1 sub; c2 x; x again [rounds < 2]; "
    "x sub; again h; sub j; j e",
)  # fmt: skip


def facts(made: Engine, workflow: BpmnWorkflow) -> Any:
    """What can be seen of an instance, without the names of tasks."""
    return (
        waiting(made, workflow),
        [short(task.element) for task in made.user_tasks(workflow)],
        made.is_ended(workflow),
        made.data(workflow),
    )


@pytest.fixture(scope="module")
def many() -> Engine:
    with tempfile.TemporaryDirectory() as folder:
        return engine(Path(folder), MANY, handlers={"r": lambda data, context: {"reminded": True}})


MOVES = st.lists(
    st.tuples(st.sampled_from(["fire", "answer", "steps"]), st.integers(0, 4),
              st.integers(0, 5 * HOUR)),
    max_size=12,
)  # fmt: skip


@settings(max_examples=60)
@given(moves=MOVES, rounds=st.integers(0, 3))
def test_a_restored_instance_goes_on_as_the_one_in_memory(
    many: Engine, moves: list[tuple[str, int, int]], rounds: int
) -> None:
    kept = begin(many, {"rounds": rounds, "nested": {"a": [1, {"b": 2}]}})
    restored = reopened(many, kept)
    at = NOW
    for move, which, later in moves:
        at += later
        seen = []
        for workflow in (kept, restored):
            told: Any = None
            timers, tasks = many.waiting(workflow), many.user_tasks(workflow)
            if move == "fire" and timers:
                told = many.fire(workflow, timers[which % len(timers)].task, at)
            elif move == "answer" and tasks:
                many.complete(workflow, tasks[which % len(tasks)].task, {"rounds": which})
            elif move == "steps":
                told = run(many, workflow, at)
            seen.append((told, facts(many, workflow)))
        assert seen[0] == seen[1]
        text = many.checkpoint(restored)
        restored = many.restore("p", text)
        assert many.checkpoint(restored) == text
        # Whatever an instance listens for is still part of it, and survives the checkpoint.
        assert listening(kept) == listening(restored)


def listening(workflow: BpmnWorkflow) -> list[str]:
    """The tasks that SpiffWorkflow's event manager updates; each must still wait."""
    parts = {task.id: task for part in (workflow, *workflow.subprocesses.values())
             for task in part.tasks.values()}  # fmt: skip
    tasks = workflow.event_manager.tasks.values()
    assert [task for task in tasks if parts.get(task.id) is not task] == []
    assert {task.state for task in tasks} <= {TaskState.WAITING}
    return sorted(task.task_spec.name for task in tasks)


def test_the_same_instance_gives_the_same_text(many: Engine) -> None:
    workflow = begin(many, {"rounds": 0, "b": 1, "a": 2})
    text = many.checkpoint(workflow)
    assert text == many.checkpoint(workflow)
    assert text == many.checkpoint(reopened(many, workflow))
    document = json.loads(text)
    assert text == json.dumps(document, sort_keys=True, separators=(",", ":"))
    assert (document["format"], document["process"]) == (1, "p")
    assert [len(v) for v in document["payloads"].values()] == [64]


def test_a_checkpoint_has_no_expression_and_no_code(tmp_path: Path) -> None:
    text = bpmn(
        START + '<exclusiveGateway id="g" default="g_e"/><scriptTask id="x"><script>secret = 1'
        "</script></scriptTask>" + USER + boundary("t", "timeDuration", "PT77H") + END,
        "s g; g e; g u [amount > 12345]; u x; x e; t e",
    )  # fmt: skip
    made = engine(tmp_path, text, allow_scripts=True)
    workflow = begin(made, {"amount": 99999})
    kept = made.checkpoint(workflow)
    for word in ("12345", "PT77H", "secret", "typename", "EventDefinition", "class", "lambda"):
        assert word not in kept
    assert made.restore("p", kept).spec is workflow.spec


def test_a_key_that_spiffworkflow_reserves_makes_nothing(tmp_path: Path) -> None:
    made = engine(tmp_path, cycle("R/2026-11-09T08:00:00Z/P1D"))
    workflow = begin(made, {"a": 1})
    document = json.loads(made.checkpoint(workflow))
    for task in document["workflow"]["tasks"]:
        task["set"] = {"a": {"typename": "UUID", "value": "x"}}
    restored = made.restore("p", json.dumps(document))
    assert made.data(restored) == {"a": {"typename": "UUID", "value": "x"}}


def test_an_edited_due_time_is_data_and_an_edited_model_is_followed(tmp_path: Path) -> None:
    made = engine(tmp_path, cycle("R/2026-11-09T08:00:00Z/P1D"))
    text = made.checkpoint(begin(made))
    later = engine(tmp_path, cycle("R/2026-11-09T08:00:00Z/P1D").replace("name=", "data-name="))
    restored = later.restore("p", text)
    assert waiting(later, restored) == [("t", NOW)]
    fire(later, restored, "t", NOW)
    assert run(later, restored) == ["t", "r", "f"]


REFUSALS = [
    ("no JSON", "x", "no JSON"),
    ("nothing", "", "no JSON"),
    ("too deep", "[" * 100_000, "no JSON"),
    ("a list", "[]", "format None"),
    ("another format", '{"format": 2}', "format 2"),
    ("no format", '{"process": "p"}', "format None"),
    ("another process", '{"format": 1, "process": "q"}', "of the process 'q'"),
    ("a part", '{"format": 1, "process": "p"}', "damaged"),
]


@pytest.mark.parametrize(("text", "seen"), [r[1:] for r in REFUSALS], ids=[r[0] for r in REFUSALS])
def test_a_text_that_is_no_checkpoint_is_refused(tmp_path: Path, text: str, seen: str) -> None:
    made = engine(tmp_path, cycle("R/2026-11-09T08:00:00Z/P1D"))
    with pytest.raises(UnusableInput, match=f"checkpoint of p: {seen}"):
        made.restore("p", text)


@pytest.mark.parametrize(
    ("part", "value", "seen"),
    [
        ("spec", "gone", "a task at 'gone'"),
        ("id", "x", "damaged"),
        ("parent", 99, "damaged"),
        ("gone", ["never"], "damaged"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused(
    tmp_path: Path, part: str, value: Any, seen: str
) -> None:
    made = engine(tmp_path, cycle("R/2026-11-09T08:00:00Z/P1D"))
    document = json.loads(made.checkpoint(begin(made)))
    document["workflow"]["tasks"][-1][part] = value
    with pytest.raises(UnusableInput, match=f"checkpoint of p: {seen}"):
        made.restore("p", json.dumps(document))


def test_an_instance_at_an_element_that_is_gone_is_refused(tmp_path: Path) -> None:
    made = engine(tmp_path, bpmn(START + USER + END, "s u; u e"))
    text = made.checkpoint(begin(made))
    changed = engine(tmp_path, bpmn(START + USER.replace('"u"', '"v"') + END, "s v; v e"))
    with pytest.raises(UnusableInput, match=r"a task at 'u'; expected only elements that m\.bpmn"):
        changed.restore("p", text)


@pytest.mark.parametrize("fired", [False, True])
def test_an_instance_between_firing_and_stepping_is_kept(tmp_path: Path, fired: bool) -> None:
    made = engine(tmp_path, cycle("R2/2026-11-09T08:00:00Z/PT1H"))
    workflow = begin(made)
    if fired:
        fire(made, workflow, "t", NOW)
    restored = reopened(made, workflow)
    assert waiting(made, restored) == [("t", NOW + HOUR if fired else NOW)]
    assert run(made, restored) == (["t", "r", "f"] if fired else [])


def test_data_that_a_task_removed_stays_removed(tmp_path: Path) -> None:
    script = '<scriptTask id="x"><script>del a</script></scriptTask>'
    made = engine(tmp_path, bpmn(START + script + USER + END, "s x; x u; u e"), allow_scripts=True)
    workflow = reopened(made, begin(made, {"a": 1, "b": 2}))
    assert made.data(workflow) == {"b": 2}
    answer(made, workflow)
    run(made, workflow)
    assert made.data(reopened(made, workflow)) == {"b": 2}


def test_a_checkpoint_holds_data_once(tmp_path: Path) -> None:
    nodes = "".join(f"<serviceTask id='n{i}'/>" for i in range(20))
    flows = "; ".join(f"n{i} n{i + 1}" for i in range(19))
    made = engine(tmp_path, bpmn(START + nodes + USER + END, f"s n0; {flows}; n19 u; u e"))
    text = made.checkpoint(begin(made, {"note": "x" * 5_000}))
    assert text.count("x" * 5_000) == 1


@pytest.mark.parametrize("between", BETWEEN.values(), ids=list(BETWEEN))
def test_umlauts_and_numbers_come_back(tmp_path: Path, between: Any) -> None:
    made = engine(tmp_path, cycle("R/2026-11-09T08:00:00Z/P1D"))
    data = {"name": "Zoë 🎉", "n": 0.1, "big": 2**53 - 1, "none": None, "no": False, "": [[], {}]}
    workflow = between(made, begin(made, data))
    assert made.data(workflow) == data


def test_a_checkpoint_is_small(models: Path) -> None:
    """SpiffWorkflow's own takes 5.3 kB for this start, most of it specification."""
    process = "https://example.org/expense/digest_process"
    made = Engine(load_graph(models / "expense"), [process])
    assert len(made.checkpoint(made.new_workflow(process, {}, NOW))) < 1_500
