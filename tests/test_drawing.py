"""The diagram of an instance: what is done, open and waiting, in badges and in words."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import seams_lab as sl
from seams_lab.runtime.drawing import instance_diagram

HANDLERS = {"collect_open_expenses": lambda data, context: {"open_expenses": 1}}


@pytest.fixture
def runtime(models: Path) -> sl.Runtime:
    clock = sl.ManualClock("2026-11-09T09:00:00Z")
    return sl.Runtime.load(models / "expense", "api", clock=clock, handlers=HANDLERS)


def badges(picture: sl.Picture) -> dict[str, str]:
    """Element → text and tone of its badge."""
    pattern = r'class="badge \w+" data-element="(\w+)"><title>([^<]*)</title>'
    return dict(re.findall(pattern, picture.data.decode()))


def test_each_element_says_what_became_of_it(runtime: sl.Runtime) -> None:
    hotel = runtime.start_process("approval_process", correlation_key="hotel")
    at = "11-09 09:00"
    done = {"expense_submitted": f"{at} [ok]", "validate_expense": f"{at} [ok]"}
    assert badges(runtime.diagram(hotel)) == done | {
        "approve_expense": "open [warning]", "reminder_due": "due 11-11 09:00 [warning]",
    }  # fmt: skip

    runtime.run_until("2026-11-11T12:00:00Z")
    picture = runtime.diagram(hotel.id)
    sent = dict.fromkeys(["reminder_due", "send_reminder", "reminder_sent"], "11-11 09:00 [ok]")
    assert badges(picture) == done | sent | {"approve_expense": "open [warning]"}
    assert picture.caption == "Approve an expense, instance hotel: waiting"
    assert "Send reminder (11-11 09:00), Reminder sent (11-11 09:00)" in picture.alt
    assert "Open or waiting: Approve expense (open)." in picture.alt

    runtime.complete(hotel, data={"approved": True})
    picture = runtime.diagram(hotel)
    now = ["approve_expense", "is_approved", "request_payout", "expense_approved"]
    assert badges(picture) == done | sent | dict.fromkeys(now, "11-11 12:00 [ok]")
    assert "Open or waiting: nothing." in picture.alt


def test_a_failure_is_said(models: Path) -> None:
    clock = sl.ManualClock("2026-11-09T08:00:00Z")
    runtime = sl.Runtime.load(models / "expense", "api", clock=clock)
    runtime.settle()  # without a handler nobody says how many expenses are open
    (digest,) = runtime.instances(status="failed")
    assert "failed (" in runtime.diagram(digest).caption
    assert "open_expenses" in runtime.diagram(digest).caption


REPEATING = """<?xml version="1.0"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="t">
  <bpmn:process id="p" isExecutable="true">
    <bpmn:startEvent id="s"/>
    <bpmn:userTask id="u" name="Sign"/>
    <bpmn:endEvent id="e"/>
    <bpmn:boundaryEvent id="b" attachedToRef="u" cancelActivity="false">
      <bpmn:timerEventDefinition>
        <bpmn:timeCycle>"R/2026-11-09T08:00:00Z/P1D"</bpmn:timeCycle>
      </bpmn:timerEventDefinition>
    </bpmn:boundaryEvent>
    <bpmn:endEvent id="n"/>
    <bpmn:sequenceFlow id="f1" sourceRef="s" targetRef="u"/>
    <bpmn:sequenceFlow id="f2" sourceRef="u" targetRef="e"/>
    <bpmn:sequenceFlow id="f3" sourceRef="b" targetRef="n"/>
  </bpmn:process>
</bpmn:definitions>
"""


def test_what_repeats_says_how_often_and_when_next(tmp_path: Path) -> None:
    path = tmp_path / "sign.bpmn"
    path.write_text(REPEATING)
    runtime = sl.Runtime.load(path, clock=sl.ManualClock("2026-11-09T09:00:00Z"))
    one = runtime.start_process("p")
    runtime.run_until("2026-11-12T09:00:00Z")
    found = badges(runtime.diagram(one))
    assert found["b"] == "3× 11-12 08:00, due 11-13 08:00 [warning]"
    assert found["n"] == "3× 11-12 08:00 [ok]"


def test_an_instance_of_another_model_is_refused(runtime: sl.Runtime, tmp_path: Path) -> None:
    path = tmp_path / "sign.bpmn"
    path.write_text(REPEATING)
    other = sl.Runtime.load(path, store=runtime.store, clock=runtime.clock)
    one = other.start_process("p")
    with pytest.raises(sl.UnusableInput, match="a process of the model"):
        runtime.diagram(one)


def test_of_two_that_wait_at_one_event_the_first_due_is_shown(runtime: sl.Runtime) -> None:
    one = runtime.start_process("approval_process")
    ((event, due),) = one.waits
    two = replace(one, waits=((event, due), (event, due + 3_600_000_000)))
    found = badges(instance_diagram(runtime.graph, two))
    assert found["reminder_due"] == "due 11-11 09:00 [warning]"
