"""Due times of a model: frames, windows, caps, counts and the missed rule, against plain loops."""

from __future__ import annotations

import datetime as dt
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seams_lab as sl
from seams_lab.due import WEEKDAYS, utc
from seams_lab.instants import to_micros
from seams_lab.series import NONE

START, END = "2026-11-01", "2026-12-01"


@pytest.fixture(scope="module")
def expense(models: Path) -> sl.Model:
    return sl.load(models / "expense")


def day(text: str) -> pd.Timestamp:
    return pd.Timestamp(text, tz="UTC")


def test_the_expense_model_in_november(expense: sl.Model) -> None:
    due = sl.due_times(expense, START, END)
    got = {e: list(d) for e, d in due.groupby("event", observed=True)["due"]}
    assert got == {
        "correction_period": [day("2026-11-04")],
        "reminder_due": [day("2026-11-03")],
        "every_morning": [day(f"2026-11-{d:02} 08:00") for d in range(9, 31)],
        "month_ends": [day("2026-11-30 18:00")],
    }
    assert due.dtypes.astype(str).to_dict() == {
        "event": "category",
        "process": "category",
        "k": "int64",
        "due": "datetime64[us, UTC]",
    }


def test_k_counts_from_the_start_of_the_series(expense: sl.Model) -> None:
    due = sl.due_times(expense, "2026-02-01", "2026-05-01")
    months = due[due["event"] == "month_ends"]
    assert list(zip(months["k"], months["due"].dt.strftime("%m-%d"), strict=True)) == [
        (1, "02-28"),
        (2, "03-31"),
        (3, "04-30"),
    ]


def test_a_window_includes_its_start_and_not_its_end(expense: sl.Model) -> None:
    due = sl.due_times(expense, "2026-11-09T08:00:00Z", "2026-11-11T08:00:00Z")
    mornings = due[due["event"] == "every_morning"]["due"]
    assert list(mornings) == [day("2026-11-09 08:00"), day("2026-11-10 08:00")]
    assert sl.due_times(expense, START, START).empty


def test_waiting_timers_count_from_armed_at(expense: sl.Model) -> None:
    due = sl.due_times(expense, START, END, armed_at="2026-11-20T06:00:00Z")
    waits = due[due["event"] == "reminder_due"]["due"]
    assert list(waits) == [day("2026-11-22 06:00")]


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        ("2026-12-01", "2026-11-01", "before start"),
        ("2026-11-01T00:00:00", "2026-12-01", "start"),
        ("2026-11-01", "tomorrow", "end"),
    ],
)
def test_a_window_that_is_none_is_refused(
    expense: sl.Model, start: str, end: str, said: str
) -> None:
    with pytest.raises(sl.UnusableInput, match=said):
        sl.due_times(expense, start, end)


@pytest.mark.parametrize("cap", [1, 4, 5, 9, 24, 25])
def test_a_cap_keeps_first_ones_and_says_what_is_left_off(expense: sl.Model, cap: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sl.TruncatedWarning)
        cut = sl.due_times(expense, START, END, cap=cap)
    whole = sl.due_times(expense, START, END)
    left_off = cut.attrs.get("left_off", {})
    assert len(cut) <= cap
    assert len(cut) + sum(left_off.values()) == len(whole)
    for event, rows in whole.groupby("event", observed=True):
        kept = cut[cut["event"] == event]
        assert list(kept["due"]) == list(rows["due"])[: len(kept)]
        assert len(rows) - len(kept) == left_off.get(event, 0)


def test_a_cut_warns(expense: sl.Model) -> None:
    with pytest.warns(sl.TruncatedWarning, match=r"cap=10: .* of 25 due times are left off"):
        sl.due_times(expense, START, END, cap=10)


@given(
    low=st.integers(to_micros("2025-12-01"), to_micros("2027-02-01")),
    width=st.integers(0, 90 * 86_400_000_000),
    every=st.sampled_from(["15min", "1h", "5h", "1D", "7D"]),
)
def test_counts_are_those_of_the_due_times(models: Path, low: int, width: int, every: str) -> None:
    model = sl.load(models / "expense")
    counts = sl.due_counts(model, low, low + width, every=every)
    due = sl.due_times(model, low, low + width)["due"]
    assert counts.sum() == len(due)
    step = pd.Timedelta(every)
    for start, count in counts[counts > 0].items():
        assert ((due >= start) & (due < start + step)).sum() == count
    hours = sl.load_by_hour(model, low, low + width)
    expected = pd.DataFrame(0, index=pd.Index(WEEKDAYS, name="weekday"), columns=range(24))
    for instant in due:
        expected.loc[instant.strftime("%a"), instant.hour] += 1
    pd.testing.assert_frame_equal(hours, expected)


@pytest.mark.parametrize("every", ["", "0h", "-1h", "fortnight"])
def test_a_bin_width_that_is_none_is_refused(expense: sl.Model, every: str) -> None:
    with pytest.raises(sl.UnusableInput, match="every"):
        sl.due_counts(expense, START, END, every=every)


# S1 and S39 of the public fault reports: a flood after an outage; a replay of each missed tick.
@pytest.mark.parametrize(
    ("body", "since", "now", "fires", "skipped", "following"),
    [
        ("R/2022-07-04T00:40:00+08:00/PT5M", "2022-07-03T16:55:00Z", "2022-07-03T17:12:23Z",
         "2022-07-03T17:10:00Z", 2, "2022-07-03T17:15:00Z"),
        ("R/2026-11-09T08:00:00Z/PT10S", "2026-11-09T08:00:00Z", "2026-11-09T09:18:00Z",
         "2026-11-09T09:18:00Z", 467, "2026-11-09T09:18:10Z"),
        ("R3/2026-11-09T08:00:00Z/PT10M", None, "2026-11-09T08:25:00Z",
         "2026-11-09T08:20:00Z", 2, None),
        ("R/2026-11-09T08:00:00Z/P1D", None, "2026-11-01T00:00:00Z", None, 0,
         "2026-11-09T08:00:00Z"),
        ("R1/2021-07-01T19:22:00Z/P1D", None, "2021-08-05T00:00:00Z",
         "2021-07-01T19:22:00Z", 0, None),
    ],
)  # fmt: skip
def test_one_firing_per_gap_and_an_exact_count_of_the_rest(
    tmp_path: Path, body: str, since: str | None, now: str, fires: str | None, skipped: int,
    following: str | None,
) -> None:  # fmt: skip
    path = tmp_path / "start.bpmn"
    path.write_text(
        f"""<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" id="d">
        <process id="p"><startEvent id="s"><timerEventDefinition>
        <timeCycle>"{body}"</timeCycle></timerEventDefinition></startEvent></process>
        </definitions>"""
    )
    row = sl.missed(sl.load(path), now, since).iloc[0]

    def instant(text: str | None) -> pd.Timestamp | None:
        return None if text is None else pd.Timestamp(text)

    assert (None if pd.isna(row["fires"]) else row["fires"]) == instant(fires)
    assert row["skipped"] == skipped
    assert (None if pd.isna(row["next"]) else row["next"]) == instant(following)


def test_utc_columns_reach_the_ends_of_the_calendar() -> None:
    ends = [to_micros("0001-01-01"), to_micros("9999-12-31T23:59:59Z"), NONE]
    column = utc(np.array(ends))
    assert column[0].to_pydatetime() == dt.datetime(1, 1, 1, tzinfo=dt.UTC)
    assert column[1].year == 9999
    assert pd.isna(column[2])
