"""Ids and order of an instance's tasks: the same when a crash makes them be made again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import SpiffWorkflow.task

import seams_lab as sl
from seams_lab.runtime.engine import Engine
from seams_lab.runtime.identity import FIRST_TICK, TaskIds

PROCESS = "approval_process"


@pytest.fixture(scope="module")
def engine(models: Path) -> Engine:
    return Engine(sl.load(models / "expense" / "approval.bpmn"), [PROCESS])


def ids_of(workflow: Any) -> list[UUID]:
    return list(workflow.tasks)


def test_a_seed_decides_the_ids_and_another_gives_others() -> None:
    first, again, other = TaskIds("a"), TaskIds("a"), TaskIds("b")
    drawn = [first.next() for _ in range(50)]
    assert drawn == [again.next() for _ in range(50)]
    assert not {other.next() for _ in range(50)} & set(drawn)
    assert len(set(drawn)) == 50


def test_without_a_seed_ids_are_random() -> None:
    assert TaskIds().next() != TaskIds().next()


def test_a_sequence_that_restarts_begins_anew() -> None:
    ids = TaskIds("a")
    first = ids.next()
    ids.restart("b")
    assert ids.next() == TaskIds("b").next()
    ids.restart("a")
    assert ids.next() == first


def test_tasks_outside_take_random_ids_and_other_threads_are_not_touched() -> None:
    ids, seen = TaskIds("a"), []
    with ids.used():
        inside = SpiffWorkflow.task.uuid4()
        thread = threading.Thread(target=lambda: seen.append(SpiffWorkflow.task.uuid4()))
        thread.start()
        thread.join()
    expected = TaskIds("a")
    assert inside == expected.next()
    assert seen[0] != expected.next()
    assert SpiffWorkflow.task.uuid4() != SpiffWorkflow.task.uuid4()


def test_spiffworkflow_counts_in_place_of_reading_a_clock() -> None:
    first, second = SpiffWorkflow.task.time.time(), SpiffWorkflow.task.time.time()
    assert FIRST_TICK <= first < second


def run_to_the_task(engine: Engine, workflow: Any) -> None:
    engine.steps(workflow, lambda: 0, lambda step: None)


@pytest.mark.parametrize(
    "advance",
    [
        lambda engine, w: None,
        run_to_the_task,
        lambda engine, w: (
            run_to_the_task(engine, w),
            engine.complete(w, engine.user_tasks(w)[0].task, {"approved": False}, 0),
            run_to_the_task(engine, w),
        ),
    ],
    ids=["nothing has run", "waits for a person", "waits for a timer"],
)
def test_one_seed_gives_one_checkpoint(
    engine: Engine, advance: Callable[[Engine, Any], object]
) -> None:
    texts = set()
    for _ in range(2):
        workflow = engine.new_workflow(PROCESS, {"amount": 1}, 0, seed="i-1")
        advance(engine, workflow)
        texts.add(engine.checkpoint(workflow))
    assert len(texts) == 1


def test_a_new_instance_is_its_start_and_its_data_and_comes_back_with_the_same_ids(
    engine: Engine,
) -> None:
    made = engine.new_workflow(PROCESS, {"amount": 1}, 0, seed="i-1")
    text = engine.begin(PROCESS, {"amount": 1}, None, "i-1")
    assert engine.checkpoint(made) == text
    assert ids_of(engine.restore(PROCESS, text)) == ids_of(made)
    assert engine.checkpoint(engine.restore(PROCESS, text)) == text


def test_what_is_done_again_after_a_checkpoint_has_the_same_ids(engine: Engine) -> None:
    first = engine.new_workflow(PROCESS, {}, 0, seed="i-1")
    run_to_the_task(engine, first)
    text = engine.checkpoint(first)

    def attempt() -> str:
        workflow = engine.restore(PROCESS, text)
        engine.seed(workflow, "i-1/2")
        engine.complete(workflow, engine.user_tasks(workflow)[0].task, {"approved": False}, 0)
        run_to_the_task(engine, workflow)
        return engine.checkpoint(workflow)

    assert attempt() == attempt()
