"""Instants: what is read as one, and how one is written."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seams_lab.errors import UnusableInput
from seams_lab.expressions import FIRST_INSTANT, LAST_INSTANT
from seams_lab.instants import to_micros, to_text
from seams_lab.profile import parse

LAST = LAST_INSTANT + 999_999
NOON = 1_794_225_600_000_000  # 2026-11-09T12:00:00Z
READ = [
    ("1970-01-01T00:00:00Z", 0),
    ("1970-01-01", 0),
    ("1969-12-31T23:59:59.999999Z", -1),
    ("1970-01-01T00:00:00.5Z", 500_000),
    ("1970-01-01T00:00:00.000001Z", 1),
    ("1970-01-01T01:00:01+01:00", 1_000_000),
    ("1970-01-01T00:00:00-05:30", 19_800_000_000),
    ("2026-11-09T12:00:00Z", NOON),
    ("2026-11-09T12:00:00-00:00", NOON),
    ("2026-11-10T11:59:00+23:59", NOON),
    ("0001-01-01", FIRST_INSTANT),
    ("0001-01-01T14:00:00+14:00", FIRST_INSTANT),
    ("0001-01-01T00:00:00-14:00", FIRST_INSTANT + 50_400_000_000),
    ("9999-12-31T23:59:59Z", LAST_INSTANT),
    ("9999-12-31T23:59:59.999999Z", LAST),
    ("9999-12-31T09:59:59-14:00", LAST_INSTANT),
    (0, 0),
    (-1, -1),
    (FIRST_INSTANT, FIRST_INSTANT),
    (LAST, LAST),
    (dt.datetime(2026, 11, 9, 12, tzinfo=dt.UTC), NOON),
    (dt.datetime(2026, 11, 9, 13, tzinfo=ZoneInfo("Europe/Berlin")), NOON),
    (dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC), LAST),
    (pd.Timestamp("2026-11-09T12:00:00Z"), NOON),
    (pd.Timestamp("2026-11-09T07:00:00", tz="America/New_York"), NOON),
    (pd.Timestamp("1970-01-01T00:00:00.000000999Z"), 0),  # whole microseconds, rounded down
    (pd.Timestamp("1969-12-31T23:59:59.999999999Z"), -1),
]


@pytest.mark.parametrize(("instant", "micros"), READ, ids=lambda value: str(value)[:40])
def test_what_is_read_as_an_instant(instant: str | int | dt.datetime, micros: int) -> None:
    found = to_micros(instant)
    assert found == micros
    assert type(found) is int


class _NoOffset(dt.tzinfo):
    """A zone that does not say its offset, which makes a datetime naive."""

    def utcoffset(self, _: dt.datetime | None) -> None:
        return None


REFUSED = [
    "", "now", "2026", "2026-11", "2026-1-1", "20261109", "2026-W46-1", "2026-313",
    "2026-11-09T12:00:00", "2026-11-09T12:00Z", "2026-11-09 12:00:00Z", "2026-11-09t12:00:00z",
    "2026-11-09T12:00:00,5Z", "2026-11-09T12:00:00.Z", "2026-11-09T12:00:00.1234567Z",
    "2026-11-09T12:00:00+0100", "2026-11-09T12:00:00+01", "2026-11-09T12:00:00+24:00",
    "2026-11-09T12:00:00+01:60", "2026-11-09T24:00:00Z", "2026-11-09T12:60:00Z",
    "2026-11-09T12:00:60Z", "2026-02-29", "2026-13-01", "2026-00-01", "0000-01-01",
    "10000-01-01", "-2026-11-09", " 2026-11-09", "2026-11-09\n", "2026-11-09T12:00:00Z[UTC]",
    "\u0662\u0660\u0662\u0666-11-09", "2026-11-09T12:00:00\u2212" "01:00",
    "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
    FIRST_INSTANT - 1, LAST + 1, 10**30, True, False, None, 1.5, float("nan"), b"2026-11-09",
    dt.date(2026, 11, 9), dt.datetime(2026, 11, 9), dt.datetime(2026, 11, 9, tzinfo=_NoOffset()),
    dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
    dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.timezone(-dt.timedelta(hours=1))),
    pd.NaT, pd.Timestamp("2026-11-09"), np.datetime64("2026-11-09"), [0], object,
]  # fmt: skip


@pytest.mark.parametrize("instant", REFUSED, ids=lambda value: repr(value)[:40])
def test_what_is_no_instant_is_named_and_refused(instant: object) -> None:
    with pytest.raises(UnusableInput) as caught:
        to_micros(instant, "the window's end")  # type: ignore[arg-type]
    assert caught.value.where == "the window's end"
    assert caught.value.fix
    assert "without a time zone" not in caught.value.seen or isinstance(instant, dt.datetime)


@given(st.text(max_size=40) | st.text("0123456789-:T.Z+ ", max_size=30))
def test_any_other_text_is_refused_and_nothing_else_is_raised(text: str) -> None:
    try:
        micros = to_micros(text)
    except UnusableInput:
        return
    assert FIRST_INSTANT <= micros <= LAST


@given(st.integers(FIRST_INSTANT, LAST))
def test_what_is_written_is_read_back(micros: int) -> None:
    text = to_text(micros)
    assert to_micros(text) == micros
    assert to_micros(dt.datetime.fromisoformat(text)) == micros
    assert text.endswith("Z")
    assert len(text) == (20 if micros % 1_000_000 == 0 else 27)
    assert to_text(np.int64(micros)) == text  # type: ignore[arg-type]


@given(st.integers(FIRST_INSTANT, LAST), st.integers(FIRST_INSTANT, LAST))
def test_texts_of_whole_seconds_sort_as_their_instants(one: int, other: int) -> None:
    one, other = one - one % 1_000_000, other - other % 1_000_000
    assert (to_text(one) < to_text(other)) == (one < other)


@given(
    st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)),
    st.integers(-14 * 60, 14 * 60),
)
def test_an_offset_moves_the_clock_and_not_the_instant(moment: dt.datetime, offset: int) -> None:
    aware = moment.replace(tzinfo=dt.UTC)
    moved = aware.astimezone(dt.timezone(dt.timedelta(minutes=offset)))
    micros = to_micros(aware)
    assert to_micros(moved) == micros
    assert to_micros(moved.isoformat()) == micros
    if moment.microsecond == 0 and not moved.isoformat().endswith("-00:00"):
        date = parse("timeDate", f'"{moved.isoformat()}"')
        assert (date.at, date.offset) == (micros, offset)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (FIRST_INSTANT, "0001-01-01T00:00:00Z"),
        (LAST_INSTANT, "9999-12-31T23:59:59Z"),
        (1_000_000, "1970-01-01T00:00:01Z"),
        (1_000_001, "1970-01-01T00:00:01.000001Z"),
    ],
)
def test_how_an_instant_is_written(micros: int, text: str) -> None:
    assert to_text(micros) == text
