"""The clock panel, driven without a browser: its buttons are clicked, its widgets read."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from ipywidgets import HTML

import seams_lab as sl
from seams_lab.clock_panel import ClockPanel

HANDLERS = {"collect_open_expenses": lambda data, context: {"open_expenses": 1}}


@pytest.fixture
def runtime(models: Path) -> sl.Runtime:
    clock = sl.ManualClock("2026-11-09T07:30:00Z")
    return sl.Runtime.load(models / "expense", "api", clock=clock, handlers=HANDLERS)


@pytest.fixture
def panel(runtime: sl.Runtime) -> ClockPanel:
    return sl.explore.clock(runtime, data={"approved": True})


def now(panel: ClockPanel) -> str:
    """The instant that the headline shows."""
    found = re.search(r"<b>(\S+Z):", panel.headline.value)
    assert found
    return found[1]


def labels(dropdown: object) -> list[str]:
    return [label for label, _ in dropdown.options]  # type: ignore[attr-defined]


def tables(panel: ClockPanel) -> list[str]:
    return re.findall(r"<h4>(.*?)</h4>", panel.tables.value)


def test_the_buttons_move_the_clock_and_do_what_falls_due(panel: ClockPanel) -> None:
    assert (labels(panel.instance), panel.picture.value, panel.task.value) == ([], "", None)
    assert tables(panel) == ["Timer starts"]
    panel.next_due.click()
    assert now(panel) == "2026-11-09T08:00:00Z"
    assert labels(panel.instance) == ["digest_process 2026-11-09T08:00:00Z: completed"]
    assert panel.message.value == "2026-11-09T08:00:00Z: 1 step done."
    assert tables(panel) == ["Timer starts", "Instances"]
    panel.hour.click()
    assert (now(panel), len(panel.instance.options)) == ("2026-11-09T09:00:00Z", 1)
    panel.day.click()
    assert now(panel) == "2026-11-10T09:00:00Z"
    panel.day.click()
    assert len(panel.instance.options) == 3


@pytest.mark.parametrize(("down", "instances", "skipped"), [(False, 3, 0), (True, 2, 1)])
def test_down_meanwhile_makes_the_missed_rule_apply(
    runtime: sl.Runtime, panel: ClockPanel, down: bool, instances: int, skipped: int
) -> None:
    panel.next_due.click()
    panel.down.value = down
    runtime.clock.advance("P1D") if down else panel.day.click()  # type: ignore[attr-defined]
    panel.day.click()
    assert len(panel.instance.options) == instances
    assert runtime.status().timers["skipped"].sum() == skipped


def test_a_task_is_completed_with_the_data(runtime: sl.Runtime, panel: ClockPanel) -> None:
    assert panel.complete.disabled
    one = runtime.start_process("approval_process", {"amount": 5}, correlation_key="hotel")
    panel.refresh()
    assert labels(panel.task) == ["hotel: Approve expense"]
    assert not panel.complete.disabled
    assert tables(panel)[1:3] == ["Timers that instances wait on", "Open tasks"]
    assert panel.data.value == '{"approved": true}'
    panel.complete.click()
    assert panel.message.value == "Completed; approval_process hotel: completed."
    assert runtime.data(one) == {"amount": 5, "approved": True}
    assert panel.complete.disabled
    assert "Expense approved" in panel.picture.value


@pytest.mark.parametrize("data", ["approved", "[1]", '{"a": }', "[" * 100_000, '{"a": NaN}'])
def test_what_is_no_json_object_is_refused(
    runtime: sl.Runtime, panel: ClockPanel, data: str
) -> None:
    one = runtime.start_process("approval_process")
    panel.refresh()
    panel.data.value = data
    panel.complete.click()
    assert panel.message.value.startswith("<b>")
    assert runtime.instance(one.id).status == "waiting"


def test_an_error_is_escaped_and_shown(runtime: sl.Runtime, panel: ClockPanel) -> None:
    one = runtime.start_process("approval_process")
    panel.refresh()
    runtime.complete(one, data={"approved": True})  # elsewhere, meanwhile
    panel.complete.click()
    assert "completed" in panel.message.value
    panel.data.value = "<script>"
    runtime.start_process("approval_process")
    panel.refresh()
    panel.complete.click()
    assert "&lt;script&gt;" in panel.message.value


def test_the_chosen_instance_stays_chosen(runtime: sl.Runtime, panel: ClockPanel) -> None:
    runtime.start_process("approval_process", correlation_key="first")
    panel.refresh()
    panel.next_due.click()  # a newer instance comes to the top
    assert len(panel.instance.options) == 2
    assert panel.instance.label == "approval_process first: waiting"
    before = panel.picture.value
    panel.instance.index = 0
    assert panel.picture.value != before
    assert "digest" in panel.picture.value


def test_nothing_to_wait_for_is_said(models: Path) -> None:
    clock = sl.ManualClock("2026-12-31T22:00:00Z")
    panel = ClockPanel(sl.Runtime.load(models / "expense" / "year_close.bpmn", clock=clock))
    for _ in range(2):
        panel.next_due.click()
    assert panel.message.value == "Nothing waits."
    panel.complete.click()
    assert panel.message.value.endswith("2026-12-31T22:00:00Z: completed.")
    panel.complete.click()
    assert panel.message.value == "No task is open."


def test_the_representation_is_one_short_line(panel: ClockPanel) -> None:
    assert repr(panel) == "<ClockPanel: 2026-11-09T07:30:00Z: instances: none>"


def test_only_a_manual_clock_can_be_moved(models: Path) -> None:
    runtime = sl.Runtime.load(models / "expense", "api", handlers=HANDLERS)
    with pytest.raises(sl.UnusableInput, match=r"whose clock is StoreClock.*ManualClock"):
        sl.explore.clock(runtime)


def test_a_missing_ipywidgets_is_said(runtime: sl.Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(sl.UnusableInput, match="ipywidgets is not installed"):
        sl.explore.clock(runtime)
    with pytest.raises(sl.UnusableInput, match="ipywidgets is not installed"):
        sl.explore.explorer("x", ["a"], lambda name: sl.Picture(b"", "image/png", name, name))


def test_what_changes_is_html(panel: ClockPanel) -> None:
    """Output widgets leave outputs in a notebook that differ from run to run."""
    changing = (panel.headline, panel.picture, panel.message, panel.tables)
    assert [type(widget) for widget in changing] == [HTML] * 4
