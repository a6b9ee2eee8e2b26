"""Due times one at a time agree with the series, and a timer is armed once, from what is given."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.engines import (
    DAY,
    END,
    HOUR,
    NOW,
    START,
    begin,
    bpmn,
    catch,
    cycle,
    engine,
    fire,
    reopened,
    waiting,
)
from hypothesis import given
from hypothesis import strategies as st

from seams_lab.errors import ResolutionError
from seams_lab.expressions import FIRST_INSTANT, LAST_INSTANT, TimeCycle, TimeDuration
from seams_lab.instants import to_micros, to_text
from seams_lab.profile import parse
from seams_lab.runtime.timing import Dues, Occurrence, TimerDefinition
from seams_lab.series import series

INSTANTS = st.integers(to_micros("1900-01-01"), to_micros("2200-01-01")) | st.sampled_from(
    [FIRST_INSTANT, -1, 0, 1, LAST_INSTANT - 1, LAST_INSTANT]
)
LENGTHS = st.sampled_from(
    ["PT1S", "PT1H", "P1D", "P2W", "P1M", "P1Y", "P1M1D", "P1Y2M3DT4H5M6S", "P400Y", "P9000Y",
     "P3000000D"]
)  # fmt: skip
STARTS = st.sampled_from(
    ["2026-01-31T08:00:00Z", "2024-02-29T23:30:00-05:00", "0001-01-01T00:00:00Z",
     "9999-12-31T23:59:59Z", "2026-12-31T23:59:59+14:00"]
)  # fmt: skip


@given(st.sampled_from(["", "1", "2", "999999999"]), STARTS, LENGTHS, INSTANTS, INSTANTS)
def test_a_cycle_one_at_a_time_is_its_series(
    count: str, start: str, length: str, armed_at: int, now: int
) -> None:
    expression = parse("timeCycle", f'"R{count}/{start}/{length}"')
    dues = Dues(expression)
    whole = series([expression], armed_at, [True])
    first, last = int(whole.first[0]), int(whole.last[0])
    expected = Occurrence(first, int(whole.due(first)[0])) if first <= last else None
    assert dues.first(armed_at) == expected
    assert dues.latest_k(now) == int(series([expression], 0).latest_k(now)[0])
    assert dues.cycle(last + 1) is None
    if expected is not None:
        assert expected.due >= armed_at
        assert dues.cycle(last) == Occurrence(last, int(whole.due(last)[0]))


@given(LENGTHS | st.just("PT0.5S"), INSTANTS)
def test_a_duration_one_at_a_time_is_its_series(length: str, armed_at: int) -> None:
    expression = parse("timeDuration", f'"{length}"')
    whole = series([expression], armed_at)
    expected = Occurrence(0, int(whole.due(0)[0])) if whole.last[0] >= 0 else None
    assert Dues(expression).first(armed_at) == expected


@pytest.mark.parametrize(
    ("kind", "text", "armed", "due"),
    [
        ("timeDate", "2026-12-01T09:00:00+02:00", "2030-01-01", "2026-12-01T07:00:00Z"),
        ("timeDuration", "PT48H", "2026-11-09T08:00:00Z", "2026-11-11T08:00:00Z"),
        ("timeDuration", "P1M", "2026-01-31", "2026-02-28T00:00:00Z"),
        ("timeDuration", "P1Y", "2028-02-29", "2029-02-28T00:00:00Z"),
        ("timeDuration", "PT0.5S", "2026-01-31", "2026-01-31T00:00:00.500000Z"),
        ("timeCycle", "R/2026-01-31T08:00:00Z/P1M", "2026-02-01", "2026-02-28T08:00:00Z"),
        ("timeCycle", "R/2024-01-30T23:30:00-05:00/P1M", "2024-02-01", "2024-03-01T04:30:00Z"),
        ("timeCycle", "R/2026-01-31T08:00:00Z/P1D", "2026-02-01T08:00:00Z", "2026-02-01T08:00:00Z"),
    ],
)
def test_due_times_follow_the_rule(kind: str, text: str, armed: str, due: str) -> None:
    first = Dues(parse(kind, f'"{text}"')).first(to_micros(armed))
    assert first is not None
    assert to_text(first.due) == due


def test_the_due_time_is_kept_where_spiffworkflow_reads_it(tmp_path: Path) -> None:
    text = bpmn(START + catch("t", "timeDuration", "PT48H") + END, "s t; t e")
    made = engine(tmp_path, text)
    workflow = reopened(made, begin(made))
    (task,) = workflow.event_manager.tasks.values()
    assert task.internal_data["event_value"] == "2026-11-11T08:00:00+00:00"
    (pending,) = workflow.waiting_events()
    assert pending.value == "2026-11-11T08:00:00+00:00"
    fire(made, workflow, "t", NOW)
    made.steps(workflow, lambda: NOW, lambda step: None)
    # What was passed leaves nothing to be read as waiting.
    assert "event_value" not in task.internal_data
    assert '"due"' not in made.checkpoint(workflow)


def test_a_gateway_keeps_one_due_time_for_each_timer(tmp_path: Path) -> None:
    text = bpmn(
        START + '<eventBasedGateway id="g"/>' + catch("b", "timeDate", "2026-11-09T09:00:00Z")
        + catch("a", "timeDuration", "PT48H") + END,
        "s g; g b; g a; a e; b e",
    )  # fmt: skip
    made = engine(tmp_path, text)
    workflow = begin(made)
    assert waiting(made, workflow) == [("b", NOW + HOUR), ("a", NOW + 48 * HOUR)]
    (task,) = workflow.event_manager.tasks.values()
    assert task.internal_data["event_value"] == "2026-11-09T09:00:00+00:00"


def test_a_duration_beyond_the_calendar_is_an_error_and_no_silent_wait(tmp_path: Path) -> None:
    made = engine(tmp_path, bpmn(START + catch("t", "timeDuration", "P1Y") + END, "s t; t e"))
    with pytest.raises(ResolutionError, match=r"m\.bpmn#t: bpmn:timeDuration: due after") as caught:
        begin(made, at=LAST_INSTANT - DAY)
    assert caught.value.code == "OUT_OF_RANGE"


def test_asking_again_does_not_fire_or_move_a_timer(tmp_path: Path) -> None:
    made = engine(tmp_path, cycle("R/2026-11-09T08:00:00Z/P1D"))
    workflow = begin(made)
    before = waiting(made, workflow)
    workflow.script_engine.now = NOW + 1_000 * DAY
    for _ in range(3):
        workflow.refresh_timers()
        workflow.update_waiting_tasks()
    assert waiting(made, workflow) == before
    assert len(workflow.get_tasks(spec_name="t")) == 1


def test_timers_of_one_name_are_not_one_timer() -> None:
    expression = parse("timeDuration", '"PT1H"')
    a, b = (TimerDefinition(i, f"m#{i}", expression, "Same name", "Timer") for i in "ab")
    again = TimerDefinition("a", "m#a", expression, "Other name", "Timer")
    assert a != b
    assert a == again
    assert hash(a) == hash(again)
    assert isinstance(expression, TimeDuration)
    assert not a.is_cycle
    repeating = parse("timeCycle", '"R/2026-11-09T08:00:00Z/P1D"')
    assert isinstance(repeating, TimeCycle)
    assert TimerDefinition("c", "m#c", repeating, "", "").is_cycle
