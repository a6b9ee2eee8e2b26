"""The timeline of a run: the table of what happened, and what is drawn of it, as data."""

from __future__ import annotations

import itertools
from pathlib import Path

import pandas as pd
import pytest

import seams_lab as sl
from seams_lab.plot import timeline
from seams_lab.plot.timeline import timeline_of
from seams_lab.runtime.timeline import COLUMNS, MOST_SKIPPED

HANDLERS = {"collect_open_expenses": lambda data, context: {"open_expenses": 1}}


def runtime_of(models: Path, store: sl.Store, clock: sl.ManualClock) -> sl.Runtime:
    ids = itertools.count(1)
    return sl.Runtime.load(models / "expense", "api", store, clock=clock, handlers=HANDLERS,
                           new_id=lambda: f"{clock.now()}-{next(ids)}")  # fmt: skip


@pytest.fixture(scope="module")
def table(models: Path) -> pd.DataFrame:
    """A week: two expenses, one approved in time; three days down from Wednesday noon."""
    clock, store = sl.ManualClock("2026-11-09T07:00:00Z"), sl.Store("sqlite://")
    runtime = runtime_of(models, store, clock)
    runtime.run_until("2026-11-09T09:00:00Z")
    train = runtime.start_process("approval_process", correlation_key="train")
    runtime.start_process("approval_process", correlation_key="hotel")
    runtime.run_until("2026-11-09T14:30:00Z")
    runtime.complete(train, data={"approved": True})
    runtime.run_until("2026-11-11T12:00:00Z")
    clock.advance("P3D")
    runtime = runtime_of(models, store, clock)
    runtime.settle()
    return runtime.timeline()


def rows(table: pd.DataFrame, kind: str) -> list[tuple[str, ...]]:
    """Lane, name, start, end and whether open of one kind, times as ``09T08:00``."""
    return [
        (row.lane, row.name_, f"{row.start:%dT%H:%M}", f"{row.end:%dT%H:%M}", row.open)
        for row in table[table["kind"] == kind].rename(columns={"name": "name_"}).itertuples()
    ]


def test_the_table_holds_what_happened(table: pd.DataFrame) -> None:
    hotel, train = "approval_process hotel", "approval_process train"
    assert list(table.columns) == COLUMNS
    assert str(table["start"].dtype) == str(table["end"].dtype) == "datetime64[us, UTC]"
    assert sorted(rows(table, "run")) == [
        (hotel, "waiting", "09T09:00", "14T12:00", True),
        (train, "completed", "09T09:00", "09T14:30", False),
    ]
    assert sorted(rows(table, "task")) == [
        (hotel, "Approve expense", "09T09:00", "14T12:00", True),
        (train, "Approve expense", "09T09:00", "09T14:30", False),
    ]
    assert rows(table, "firing") == [
        ("every_morning", "every_morning", "09T08:00", "09T08:00", False),
        ("every_morning", "every_morning", "10T08:00", "10T08:00", False),
        ("every_morning", "every_morning", "11T08:00", "11T08:00", False),
        (hotel, "reminder_due", "11T09:00", "11T09:00", False),
        ("every_morning", "every_morning", "14T08:00", "14T12:00", False),
    ]
    assert rows(table, "skipped") == [
        ("every_morning", "every_morning", "12T08:00", "14T12:00", False),
        ("every_morning", "every_morning", "13T08:00", "14T12:00", False),
    ]


TWO_SIGNATURES = """<?xml version="1.0"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="t">
  <bpmn:process id="p" isExecutable="true">
    <bpmn:startEvent id="s"/>
    <bpmn:userTask id="a" name="Sign"/>
    <bpmn:userTask id="b"/>
    <bpmn:endEvent id="e"/>
    <bpmn:sequenceFlow id="f1" sourceRef="s" targetRef="a"/>
    <bpmn:sequenceFlow id="f2" sourceRef="a" targetRef="b"/>
    <bpmn:sequenceFlow id="f3" sourceRef="b" targetRef="e"/>
  </bpmn:process>
</bpmn:definitions>
"""


def test_a_task_begins_when_the_element_before_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "sign.bpmn"
    path.write_text(TWO_SIGNATURES)
    clock = sl.ManualClock("2026-11-09T07:00:00Z")
    runtime = sl.Runtime.load(path, clock=clock)
    one = runtime.start_process("p", correlation_key="k")
    clock.advance("PT2H")
    runtime.complete(one)
    clock.advance("PT1H")
    assert rows(runtime.timeline(), "task") == [
        ("p k", "Sign", "09T07:00", "09T09:00", False),
        ("p k", "b", "09T09:00", "09T10:00", True),
    ]


def test_a_long_outage_adds_a_bounded_number_of_rows_and_counts_the_rest(models: Path) -> None:
    clock, store = sl.ManualClock("2026-11-09T07:00:00Z"), sl.Store("sqlite://")
    runtime_of(models, store, clock).run_until("2026-11-09T09:00:00Z")
    clock.advance("P1001D")
    runtime = runtime_of(models, store, clock)
    runtime.settle()
    table = runtime.timeline()
    skipped = table[table["kind"] == "skipped"]
    assert len(skipped) == MOST_SKIPPED
    assert table.attrs["left_off"] == 1_000 - MOST_SKIPPED
    newest = table[table["kind"] == "firing"]["start"].max()
    assert skipped["start"].max() == newest - pd.Timedelta(days=1)
    assert "; 1,000 skipped; 1 user task, 1 open; 800 skipped not drawn." in timeline(table).caption


def test_instances_that_share_a_key_have_their_own_lanes(models: Path) -> None:
    runtime = runtime_of(models, sl.Store("sqlite://"), sl.ManualClock(0))
    for _ in range(2):
        runtime.start_process("approval_process", correlation_key="e")
    lanes = runtime.timeline()["lane"].unique().tolist()
    assert sorted(lanes) == ["approval_process e 0-1", "approval_process e 0-2"]


def test_what_is_drawn_is_in_words_too(table: pd.DataFrame) -> None:
    picture = timeline(table, title="A week")
    assert picture.mime == "image/png"
    assert picture.caption == (
        "5 firings, at most 4 h late (every_morning); 2 skipped; 2 user tasks, 1 open."
    )
    assert picture.alt.splitlines() == [
        f"2026-11-09 03:00 to 2026-11-14 18:00 UTC: {picture.caption}",
        "every_morning: 4 firings, at most 4 h late, last due 2026-11-14 08:00 UTC; "
        "2 skipped, last due 2026-11-13 08:00 UTC.",
        "approval_process hotel: waiting, from 2026-11-09 09:00 UTC; Approve expense open from "
        "2026-11-09 09:00 UTC, still open; reminder_due 1 firing, all in time, last due "
        "2026-11-11 09:00 UTC.",
        "approval_process train: completed, from 2026-11-09 09:00 UTC to 2026-11-09 14:30 UTC; "
        "Approve expense open from 2026-11-09 09:00 UTC, done 2026-11-09 14:30 UTC.",
    ]
    assert timeline(table, title="A week") == picture


def test_a_run_that_no_timer_started_has_a_lane_though_it_ended_at_once(models: Path) -> None:
    clock = sl.ManualClock("2026-11-09T08:00:00Z")
    runtime = runtime_of(models, sl.Store("sqlite://"), clock)
    runtime.settle()
    runtime.start_process("digest_process", correlation_key="by hand")
    table = runtime.timeline()
    assert sorted(table["lane"]) == ["digest_process by hand", "every_morning"]
    drawn = timeline_of(table.assign(start=table["start"] - pd.to_timedelta([1, 0], unit="h")))
    assert drawn is not None
    assert [lane.name for lane in drawn.lanes] == ["every_morning", "digest_process by hand"]


def test_timers_come_before_instances_and_both_in_the_order_of_time(table: pd.DataFrame) -> None:
    for given in (table, table[::-1]):
        drawn = timeline_of(given)
        assert drawn is not None
        assert drawn.lanes[0].name == "every_morning"
        starts = [span.start for span in drawn.lanes[0].of("firing")]
        assert starts == sorted(starts)


WINDOWS = [
    (None, None, 5, 2),
    ("2026-11-11", "2026-11-12", 2, 0),
    ("2026-11-12", None, 1, 2),
    (None, "2026-11-10", 1, 0),
]


@pytest.mark.parametrize(("start", "end", "firings", "skipped"), WINDOWS)
def test_a_window_keeps_what_touches_it(
    table: pd.DataFrame, start: str | None, end: str | None, firings: int, skipped: int
) -> None:
    drawn = timeline_of(table, start, end)
    assert drawn is not None
    assert (len(drawn.spans("firing")), len(drawn.spans("skipped"))) == (firings, skipped)
    if start and end:
        assert (drawn.start, drawn.end) == tuple(
            pd.Timestamp(t, tz="UTC").value // 1_000 for t in (start, end)
        )


def test_more_lanes_than_fit_are_counted(table: pd.DataFrame) -> None:
    one = table[table["lane"] == "approval_process train"]
    many = pd.concat([one.assign(lane=f"lane {n}") for n in range(70)])
    drawn = timeline_of(many)
    assert drawn is not None
    assert (len(drawn.lanes), drawn.left_off) == (60, 10)
    assert "10 later lanes left off" in drawn.caption()


@pytest.mark.parametrize("window", [{}, {"start": "2030-01-01"}])
def test_nothing_to_draw_is_said(table: pd.DataFrame, window: dict[str, str]) -> None:
    picture = timeline(table if window else table[:0], **window)
    assert picture.alt == "Nothing happened."


def test_a_table_of_another_kind_is_refused() -> None:
    with pytest.raises(sl.UnusableInput, match="no column lane, kind"):
        timeline(pd.DataFrame({"due": []}))
