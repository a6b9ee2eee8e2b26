"""Scenarios: an instance taken through its steps; its timers fire without a clock (R81)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import seams_lab as sl
from seams_lab.errors import UnusableInput

APPROVED = ("approve_expense", {"approved": True})
REJECTED = ("approve_expense", {"approved": False})


@pytest.fixture(scope="module")
def model(models: Path) -> sl.Model:
    return sl.load(models / "expense")


@pytest.mark.parametrize(
    ("steps", "status", "path"),
    [
        ([], "waiting",
         ["expense_submitted", "validate_expense", "reminder_due", "send_reminder",
          "reminder_sent"]),
        ([APPROVED], "completed",
         ["expense_submitted", "validate_expense", "approve_expense", "is_approved",
          "request_payout", "expense_approved"]),
        ([REJECTED], "completed",
         ["expense_submitted", "validate_expense", "approve_expense", "is_approved",
          "tell_submitter", "correction_period", "archive_expense", "expense_rejected"]),
    ],
    ids=["nobody answers", "approved in time", "rejected"],
)  # fmt: skip
def test_the_steps_come_first_then_the_timers(
    model: sl.Model, steps: list[tuple[str, dict[str, Any]]], status: str, path: list[str]
) -> None:
    found = sl.scenario(model, "approval_process", steps)
    assert (found.status, found.path) == (status, path)


def test_a_timer_fires_at_its_due_time_whatever_the_clock_says(model: sl.Model) -> None:
    trace = sl.scenario(model, "approval_process", at="2030-05-01T10:00:00Z").trace
    reminder = trace[trace["element"] == "reminder_due"].iloc[0]
    assert str(reminder["at"]) == str(reminder["due"]) == "2030-05-03 10:00:00+00:00"


def test_what_handlers_return_is_in_the_data(model: sl.Model) -> None:
    found = sl.scenario(
        model,
        "digest_process",
        handlers={"collect_open_expenses": lambda d, c: {"open_expenses": 0}},
    )
    assert found.data == {"open_expenses": 0}
    assert found.path[-1] == "nothing_to_send"
    assert "completed" in found._repr_html_()


def boundary_cycle(folder: Path, cycle: str) -> sl.Model:
    path = folder / "cycle.bpmn"
    path.write_text(
        f"""<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process id="p"
        isExecutable="true"><startEvent id="s"/><sequenceFlow id="f1" sourceRef="s" targetRef="t"/>
        <userTask id="t"/><sequenceFlow id="f2" sourceRef="t" targetRef="e"/><endEvent id="e"/>
        <boundaryEvent id="b" attachedToRef="t" cancelActivity="false"><timerEventDefinition>
        <timeCycle>"{cycle}"</timeCycle></timerEventDefinition></boundaryEvent>
        <sequenceFlow id="f3" sourceRef="b" targetRef="r"/><serviceTask id="r"/>
        <sequenceFlow id="f4" sourceRef="r" targetRef="x"/><endEvent id="x"/></process>
        </definitions>""",
        "utf-8",
    )
    return sl.load(path)


def test_a_cycle_without_end_fires_once(tmp_path: Path) -> None:
    model = boundary_cycle(tmp_path, "R/2026-01-01T00:00:00Z/PT1H")
    assert sl.scenario(model, "p").path == ["s", "b", "r", "x"]


@pytest.mark.parametrize(
    ("process", "steps", "words"),
    [
        ("approval_proces", [], ["approval_proces", "did you mean 'approval_process'"]),
        ("approval_process", [("approve", {})], ["approve", "approve_expense"]),
        ("approval_process", [APPROVED, APPROVED], ["approve_expense", "none"]),
        ("approval_process", [("approve_expense", {"approved": {1, 2}})], ["approved"]),
    ],
    ids=["no such process", "no such task", "not open any more", "no process data"],
)
def test_a_wrong_scenario_is_refused_in_words(
    model: sl.Model, process: str, steps: list[Any], words: list[str]
) -> None:
    with pytest.raises(UnusableInput) as refused:
        sl.scenario(model, process, steps)
    assert all(word in str(refused.value) for word in words)
