"""Due-time arithmetic against a slow reference in plain Python, and the laws that it keeps."""

from __future__ import annotations

import calendar
import datetime as dt
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import isodate
import numpy as np
import pytest
from dateutil.relativedelta import relativedelta
from hypothesis import example, given, settings
from hypothesis import strategies as st

import seams_lab.series as arithmetic
from seams_lab.expressions import (
    DAY,
    EPOCH,
    FIRST_INSTANT,
    HOUR,
    LAST_INSTANT,
    MINUTE,
    SECOND,
    WEEK,
    Duration,
    TimeCycle,
    TimeDate,
    TimeDuration,
    TimerExpression,
)
from seams_lab.instants import to_micros, to_text
from seams_lab.profile import parse
from seams_lab.series import NONE, Series, series

# ---------------------------------------------------------------- the reference

EPOCH_ORDINAL = EPOCH.date().toordinal()
CYCLE_YEARS, CYCLE_DAYS = 400, 146_097  # the Gregorian calendar repeats


def civil(day: int) -> tuple[int, int, int]:
    """(year, month, day) of a day since the epoch, also outside the years 1 to 9999."""
    cycles, rest = divmod(day + EPOCH_ORDINAL - 1, CYCLE_DAYS)
    date = dt.date.fromordinal(rest + 1)
    return date.year + cycles * CYCLE_YEARS, date.month, date.day


def day_number(year: int, month: int, day: int) -> int:
    """The inverse of `civil`, with the day clamped to the month's last."""
    cycles, rest = divmod(year - 1, CYCLE_YEARS)
    last = calendar.monthrange(rest + 1, month)[1]
    ordinal = dt.date(rest + 1, month, min(day, last)).toordinal()
    return ordinal + cycles * CYCLE_DAYS - EPOCH_ORDINAL


def plus(start: int, offset: int, months: int, micros: int, k: int) -> int:
    """start + k times (months, micros): months in the own calendar, then the exact part."""
    day, time = divmod(start + offset * MINUTE, DAY)
    year, month, of_month = civil(day)
    year, month = divmod(12 * year + month - 1 + k * months, 12)
    moved = day_number(year, month + 1, of_month) * DAY + time - offset * MINUTE
    return moved + k * micros


@dataclass(frozen=True)
class Reference:
    """One series, one occurrence at a time."""

    due: Callable[[int], int]
    first: int
    last: int

    def latest_k(self, at: int) -> int:
        """Halving: the largest k in first … last with due(k) <= at, or first - 1."""
        low, high = self.first - 1, self.last
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.due(middle) <= at else (low, middle - 1)
        return low

    def count(self, start: int, end: int) -> int:
        return max(self.latest_k(end - 1) - self.latest_k(start - 1), 0)


def reference(expression: TimerExpression, armed_at: int, from_arming: bool = False) -> Reference:
    if isinstance(expression, TimeDate):
        return Reference(lambda _: expression.at, 0, 0)
    period = expression.duration
    if isinstance(expression, TimeDuration):
        only = plus(armed_at, 0, period.months, period.micros, 1)
        return Reference(lambda _: only, 0, 0 if only <= LAST_INSTANT else -1)

    def due(k: int) -> int:
        return plus(expression.start, expression.offset, period.months, period.micros, k)

    # The calendar has so many seconds and months: more occurrences do not fit.
    cap = 12 * 9999 if period.months else (LAST_INSTANT - FIRST_INSTANT) // SECOND
    cap = cap if expression.count is None else min(cap, expression.count - 1)
    last = Reference(due, 0, cap).latest_k(LAST_INSTANT)
    first = Reference(due, 0, last).latest_k(armed_at - 1) + 1 if from_arming else 0
    return Reference(due, first, last)


def test_the_reference_is_the_calendar_of_python() -> None:
    for text in ("0001-01-01", "1900-02-28", "2000-02-29", "2100-03-01", "9999-12-31"):
        date = dt.date.fromisoformat(text)
        day = (date - EPOCH.date()).days
        assert civil(day) == (date.year, date.month, date.day)
        assert day_number(date.year, date.month, date.day) == day
    assert civil(day_number(10_000, 1, 1)) == (10_000, 1, 1)
    assert day_number(10_000, 1, 1) == (dt.date(9999, 12, 31) - EPOCH.date()).days + 1
    assert civil(day_number(0, 12, 31)) == (0, 12, 31)
    assert day_number(1, 1, 1) - day_number(0, 12, 31) == 1


# ---------------------------------------------------------------- what is generated

YEARS = st.sampled_from([1, 2, 1582, 1899, 1900, 1969, 1970, 2000, 2023, 2024, 2100, 9998, 9999])


@st.composite
def instants(draw: st.DrawFn) -> int:
    """Whole seconds of the calendar, mostly at month ends, leap days and its two ends."""
    choice = draw(st.integers(0, 3))
    if choice == 0:
        return draw(st.integers(FIRST_INSTANT // SECOND, LAST_INSTANT // SECOND)) * SECOND
    if choice == 1:
        return draw(st.sampled_from([FIRST_INSTANT, LAST_INSTANT, 0, -SECOND, LAST_INSTANT - DAY]))
    year, month = draw(st.tuples(YEARS | st.integers(1, 9999), st.sampled_from([1, 2, 3, 4, 12])))
    late = day_number(year, month, draw(st.sampled_from([1, 27, 28, 29, 30, 31]))) * DAY
    time = draw(st.sampled_from([0, SECOND, HOUR, 12 * HOUR, 23 * HOUR, DAY - SECOND]))
    return min(max(late + time, FIRST_INSTANT), LAST_INSTANT)


OFFSETS = st.sampled_from([0, -840, 840, 60, -300, 330, -1, 1]) | st.integers(-840, 840)
MONTHS = st.sampled_from([0, 0, 1, 1, 2, 3, 11, 12, 13, 48, 1200, 4800, 59_000, 119_976, 10**200])
MICROS = st.sampled_from(
    [0, 0, SECOND, 59 * SECOND, HOUR, 2 * DAY + 3 * HOUR, WEEK, 27 * DAY, 31 * DAY, 366 * DAY,
     10**6 * DAY, 3_652_058 * DAY, 10**200 * SECOND]
)  # fmt: skip


@st.composite
def periods(draw: st.DrawFn, fraction: bool = False) -> Duration:
    months, micros = draw(MONTHS), draw(MICROS)
    if months + micros == 0:
        micros = draw(st.integers(1, 10**7)) * SECOND
    if fraction:
        micros += draw(st.sampled_from([0, 1, 250_000, 999_999]))
    return Duration(months, micros, "")


@st.composite
def cycles(draw: st.DrawFn) -> TimeCycle:
    count = draw(st.none() | st.integers(1, 5) | st.sampled_from([1, 1000, 999_999_999]))
    return TimeCycle(draw(instants()), draw(OFFSETS), draw(periods()), count, "")


@dataclass(frozen=True)
class Bundle:
    """Expressions of mixed kinds as one Series, with one reference for each."""

    made: Series
    references: list[Reference]

    def interesting(self) -> list[int]:
        """Instants at, just before and just after due times, and outside the calendar."""
        found = [FIRST_INSTANT - 1, FIRST_INSTANT, LAST_INSTANT, LAST_INSTANT + 1, NONE]
        for one in self.references:
            for k in {one.first, one.first + 1, (one.first + one.last) // 2, one.last}:
                if one.first <= k <= one.last:
                    found += [one.due(k) - 1, one.due(k), one.due(k) + 1]
        return found


@st.composite
def bundles(draw: st.DrawFn) -> Bundle:
    expressions: list[TimerExpression] = []
    armed: list[int] = []
    boundary: list[bool] = []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.integers(0, 5))
        if kind == 0:
            expressions.append(TimeDate(draw(instants()), draw(OFFSETS), ""))
        elif kind == 1:
            expressions.append(TimeDuration(draw(periods(fraction=True)), ""))
        else:
            expressions.append(draw(cycles()))
        armed.append(draw(instants()))
        boundary.append(kind > 3)
    made = series(expressions, armed, boundary)
    return Bundle(
        made, [reference(e, a, b) for e, a, b in zip(expressions, armed, boundary, strict=True)]
    )


def probes(data: st.DataObject, bundle: Bundle, size: int) -> list[int]:
    at = st.sampled_from(bundle.interesting()) | instants()
    return data.draw(st.lists(at, min_size=size, max_size=size))


# ---------------------------------------------------------------- value by value


@settings(max_examples=70)
@given(bundles(), st.data())
def test_due_times_are_the_reference_s(bundle: Bundle, data: st.DataObject) -> None:
    made, references = bundle.made, bundle.references
    assert made.first.tolist() == [r.first for r in references]
    assert made.last.tolist() == [r.last for r in references]
    alive = [i for i, r in enumerate(references) if r.first <= r.last]
    some = [
        data.draw(
            st.sampled_from([references[i].first, references[i].last])
            | st.integers(references[i].first, references[i].last)
        )
        for i in alive
    ]
    due = made[np.array(alive, np.int64)].due(some)
    assert due.dtype == np.int64
    assert due.tolist() == [references[i].due(k) for i, k in zip(alive, some, strict=True)]


@settings(max_examples=70)
@given(bundles(), st.data())
def test_newest_next_and_skipped_are_the_reference_s(bundle: Bundle, data: st.DataObject) -> None:
    made, references = bundle.made, bundle.references
    at, later = probes(data, bundle, 2)
    newest = [r.latest_k(at) for r in references]
    assert made.latest_k(at).tolist() == newest
    assert made.latest(at).tolist() == [
        r.due(k) if k >= r.first else NONE for r, k in zip(references, newest, strict=True)
    ]
    assert made.next(at).tolist() == [
        r.due(k + 1) if k < r.last else NONE for r, k in zip(references, newest, strict=True)
    ]
    assert made.skipped(at, later).tolist() == [
        max(r.latest_k(later) - k - 1, 0) for r, k in zip(references, newest, strict=True)
    ]


@settings(max_examples=70)
@given(bundles(), st.data())
def test_counts_are_the_reference_s_and_add_up(bundle: Bundle, data: st.DataObject) -> None:
    made, references = bundle.made, bundle.references
    edges = sorted(probes(data, bundle, 5))
    expected = [[r.count(a, b) for r in references] for a, b in pairwise(edges)]
    bins = made.count_per_bin(edges)
    assert bins.shape == (4, len(made))
    assert bins.tolist() == expected
    for (a, b), counts in zip(pairwise(edges), expected, strict=True):
        assert made.count(a, b).tolist() == counts
        first, how_many = made.window(a, b)
        assert how_many.tolist() == counts
        assert first.tolist() == [r.latest_k(a - 1) + 1 for r in references]
    a, b, c = edges[0], edges[2], edges[4]
    assert (made.count(a, b) + made.count(b, c) == made.count(a, c)).all()
    assert not made.count(c, a).any()
    assert (made.count(NONE, LAST_INSTANT + 1) == made.last - made.first + 1).all()


@settings(max_examples=70)
@given(bundles(), st.data())
def test_next_and_latest_are_inverse_and_series_grow(bundle: Bundle, data: st.DataObject) -> None:
    made = bundle.made
    [at] = probes(data, bundle, 1)
    after = made.next(at)
    some = after != NONE
    assert (after[some] > at).all()
    assert (made.latest(np.where(some, after, 0))[some] == after[some]).all()
    before = made.latest(np.where(some, after - 1, 0))[some]
    assert (before < after[some]).all()
    assert (before == made.latest(at)[some]).all()
    # Strictly increasing from there on, for as long as there is a next one.
    for _ in range(5):
        following = made.next(np.where(some, after, LAST_INSTANT))
        some = following != NONE
        assert (following[some] > after[some]).all()
        after = following
    # Skipped is one less than what lies in (at, later].
    [later] = probes(data, bundle, 1)
    low, high = max(at, FIRST_INSTANT - 1) + 1, max(later, FIRST_INSTANT - 1) + 1
    assert (made.skipped(at, later) == np.maximum(made.count(low, high) - 1, 0)).all()


@settings(max_examples=30)
@given(bundles(), st.data())
def test_many_instants_at_once_are_each_instant_alone(bundle: Bundle, data: st.DataObject) -> None:
    made = bundle.made
    at = probes(data, bundle, 4)
    for many in (made.latest_k, made.latest, made.next):
        together = many(np.array(at)[:, None])
        assert together.shape == (4, len(made))
        assert together.tolist() == [many(one).tolist() for one in at]
    own = np.resize(np.array(at), len(made))
    assert made.latest_k(own).tolist() == [
        int(made[i : i + 1].latest_k(own[i])[0]) for i in range(len(made))
    ]


@settings(max_examples=70)
@given(
    st.lists(cycles() | instants().map(lambda at: TimeDate(at, 0, "")), max_size=8),
    st.sampled_from([1, 2, 3, 7, 1 << 15]),
    st.data(),
)
def test_expanding_a_window_is_a_plain_loop(
    expressions: list[TimerExpression], chunk: int, data: st.DataObject
) -> None:
    made = series(expressions, 0)
    references = [reference(e, 0) for e in expressions]
    # Few different counts make neighbours share a block; zero ones break it.
    wanted = [data.draw(st.sampled_from([0, 1, 3, 3, 3, 8])) for _ in references]
    first = [
        data.draw(st.integers(0, max(r.last - n, 0)))
        for r, n in zip(references, wanted, strict=True)
    ]
    counts = [min(n, r.last - k + 1) for r, k, n in zip(references, first, wanted, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arithmetic, "_CHUNK", chunk)
        k, due = made.expand(np.array(first, np.int64), np.array(counts, np.int64))
    index = np.repeat(np.arange(len(counts)), counts)
    loop = [
        (i, k0 + j, references[i].due(k0 + j))
        for i, (k0, n) in enumerate(zip(first, counts, strict=True))
        for j in range(n)
    ]
    assert list(zip(index.tolist(), k.tolist(), due.tolist(), strict=True)) == loop
    assert (k.dtype, due.dtype) == (np.int64, np.int64)


@pytest.mark.parametrize("chunk", [1, 5, 64, 1 << 15])
def test_a_window_of_many_series_is_all_due_times_in_it(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arithmetic, "_CHUNK", chunk)
    texts = ["R/2026-01-31T08:00:00Z/P1M", "R/2026-01-01T00:00:00Z/PT90M",
             "R/2026-01-01T00:00:00Z/PT90M", "R7/2026-01-01T00:00:00+05:30/P1MT1H",
             "R/2027-01-01T00:00:00Z/P1D", "R/2024-02-29T00:00:00-05:00/P1Y",
             "R3/2020-01-01T00:00:00Z/P1D"]  # fmt: skip
    cycle = [parse("timeCycle", f'"{text}"') for text in texts]
    made = series(cycle, 0)
    start, end = to_micros("2026-01-10"), to_micros("2026-05-01")
    first, counts = made.window(start, end)
    k, due = made.expand(first, counts)
    index = np.repeat(np.arange(len(counts)), counts)
    expected = []
    for i, one in enumerate(reference(c, 0) for c in cycle):
        occurrence = 0
        while occurrence <= one.last and (at := one.due(occurrence)) < end:
            if at >= start:
                expected.append((i, occurrence, at))
            occurrence += 1
    assert list(zip(index.tolist(), k.tolist(), due.tolist(), strict=True)) == expected
    assert len(expected) > 3000


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2]])
def test_neighbours_of_different_kinds_with_one_count_do_not_mix(order: list[int]) -> None:
    mixed = ["R/2026-01-31T08:00:00Z/P1D", "R/2026-01-31T08:00:00Z/P1M",
             "R/2026-01-29T08:00:00+01:00/PT5H", "R/2024-02-29T00:00:00Z/P1YT1S"]  # fmt: skip
    cycle = [parse("timeCycle", f'"{mixed[i]}"') for i in order]
    made = series(cycle, 0)
    _, due = made.expand(np.full(4, 2), np.full(4, 3))
    assert due.tolist() == [reference(c, 0).due(k) for c in cycle for k in (2, 3, 4)]


@pytest.mark.parametrize("day", [1, 29, 30, 31])
def test_past_its_last_due_time_a_series_with_a_long_period_is_silent(day: int) -> None:
    """The occurrence that would come next lies millennia beyond the calendar."""
    cycle = parse("timeCycle", f'"R/0001-01-{day:02}T00:00:00Z/P9998Y"')
    last = to_micros(f"9999-01-{day:02}")
    made = series([cycle, cycle], [0, LAST_INSTANT], [False, True])
    assert made.next(last - 1).tolist() == [last, NONE]
    assert made.next(LAST_INSTANT).tolist() == [NONE, NONE]
    assert made.latest(LAST_INSTANT).tolist() == [last, NONE]
    assert made.count(FIRST_INSTANT, LAST_INSTANT + 1).tolist() == [2, 0]


# ---------------------------------------------------------------- other libraries


@given(
    st.datetimes(dt.datetime(1600, 1, 1), dt.datetime(2400, 12, 31)),
    OFFSETS,
    st.integers(0, 40),
    st.integers(0, 100) | st.just(0),
    st.integers(0, 40),
    st.integers(0, 100_000),
)
@example(dt.datetime(2026, 1, 31, 8), 0, 1, 1, 0, 0)
@example(dt.datetime(2024, 2, 29), -300, 4, 12, 0, 0)
@example(dt.datetime(1900, 1, 31), 840, 1, 1, 2, 10_800)
def test_other_libraries_say_the_same(
    moment: dt.datetime, offset: int, k: int, months: int, days: int, seconds: int
) -> None:
    moment = moment.replace(microsecond=0, tzinfo=dt.timezone(dt.timedelta(minutes=offset)))
    if months + days + seconds == 0:
        seconds = 1
    text = f"P{months}M{days}DT{seconds}S"
    zone = moment.isoformat()[-6:]
    cycle = parse(
        "timeCycle", f'"R/{moment:%Y-%m-%dT%H:%M:%S}{zone.replace("-00:00", "Z")}/{text}"'
    )
    found = int(series([cycle], 0).due(k)[0])
    by_dateutil = (
        moment + relativedelta(months=k * months) + dt.timedelta(days=k * days, seconds=k * seconds)
    )
    assert found == to_micros(by_dateutil)
    by_isodate = moment + isodate.parse_duration(text, as_timedelta_if_possible=False) * k
    assert found == to_micros(by_isodate)


# ---------------------------------------------------------------- examples of the rules


def texts(expression: TimerExpression, how_many: int) -> list[str]:
    made = series([expression], 0)
    last = min(int(made.last[0]), how_many - 1)
    return [to_text(int(made.due(k)[0])) for k in range(last + 1)]


CALENDAR = [
    ("R/2026-01-31T08:00:00Z/P1M",
     ["2026-01-31T08:00:00Z", "2026-02-28T08:00:00Z", "2026-03-31T08:00:00Z"]),
    ("R/2024-01-30T23:30:00-05:00/P1M",
     ["2024-01-31T04:30:00Z", "2024-03-01T04:30:00Z", "2024-03-31T04:30:00Z"]),
    ("R/2096-02-29T00:00:00Z/P4Y",
     ["2096-02-29T00:00:00Z", "2100-02-28T00:00:00Z", "2104-02-29T00:00:00Z"]),
    ("R/1900-01-31T00:00:00Z/P1M", ["1900-01-31T00:00:00Z", "1900-02-28T00:00:00Z"]),
    ("R/2000-01-31T00:00:00Z/P1M", ["2000-01-31T00:00:00Z", "2000-02-29T00:00:00Z"]),
    ("R/2100-01-31T00:00:00Z/P1M", ["2100-01-31T00:00:00Z", "2100-02-28T00:00:00Z"]),
    # Months first, then the exact part: 28 Feb + 2 days 3 hours, 31 Mar + 4 days 6 hours.
    ("R/2026-01-31T00:00:00Z/P1M2DT3H",
     ["2026-01-31T00:00:00Z", "2026-03-02T03:00:00Z", "2026-04-04T06:00:00Z"]),
    # In the offset's calendar this is the 1st, in UTC the last day of the month before.
    ("R/2026-03-01T00:30:00+14:00/P1M",
     ["2026-02-28T10:30:00Z", "2026-03-31T10:30:00Z", "2026-04-30T10:30:00Z"]),
    ("R/9999-12-31T23:59:58Z/PT1S", ["9999-12-31T23:59:58Z", "9999-12-31T23:59:59Z"]),
    ("R/9999-12-31T23:59:59Z/PT1S", ["9999-12-31T23:59:59Z"]),
    ("R/9999-11-30T23:59:59Z/P1M", ["9999-11-30T23:59:59Z", "9999-12-30T23:59:59Z"]),
    # The local time is already in the year 10000, the instant is not.
    ("R/9999-12-01T10:00:00+14:00/P1M", ["9999-11-30T20:00:00Z", "9999-12-31T20:00:00Z"]),
    ("R/9999-12-31T09:59:59-14:00/PT1S", ["9999-12-31T23:59:59Z"]),
    # The local time is still in the year 0, one before the first.
    ("R/0001-01-01T00:00:00-14:00/P9998Y", ["0001-01-01T14:00:00Z", "9999-01-01T14:00:00Z"]),
    ("R/0001-01-31T00:00:00Z/P9998Y", ["0001-01-31T00:00:00Z", "9999-01-31T00:00:00Z"]),
    ("R/2026-11-09T08:00:00Z/P999999999Y", ["2026-11-09T08:00:00Z"]),
    (f"R/2026-11-09T08:00:00Z/P{'9' * 200}Y", ["2026-11-09T08:00:00Z"]),
    (f"R/2026-11-09T08:00:00Z/PT{'9' * 200}S", ["2026-11-09T08:00:00Z"]),
    (f"R9/2026-11-09T08:00:00Z/P1MT{'9' * 200}S", ["2026-11-09T08:00:00Z"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CALENDAR, ids=[c[0][:48] for c in CALENDAR])
def test_calendar_arithmetic(text: str, expected: list[str]) -> None:
    found = texts(parse("timeCycle", f'"{text}"'), 4)
    assert found[: max(len(expected), 1)] == expected
    if len(expected) < 3 and "1900" not in text and "2000" not in text and "2100" not in text:
        assert found == expected  # the series has ended


@pytest.mark.parametrize(
    ("text", "armed_at", "expected"),
    [
        ("PT48H", "2026-11-01T00:00:00Z", "2026-11-03T00:00:00Z"),
        ("P1M", "2026-01-31T00:00:00Z", "2026-02-28T00:00:00Z"),
        ("P1M", "2026-01-31T01:00:00+02:00", "2026-02-28T23:00:00Z"),  # counted in UTC: 30 Jan
        ("P1Y", "2028-02-29T00:00:00Z", "2029-02-28T00:00:00Z"),
        ("PT0.25S", "1969-12-31T23:59:59.750001Z", "1970-01-01T00:00:00.000001Z"),
        ("P1M", "9999-11-30T23:59:59Z", "9999-12-30T23:59:59Z"),
        ("P9998Y11M30D", "0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z"),
        ("P1D", "9999-12-30T23:59:59Z", "9999-12-31T23:59:59Z"),
        ("P1D", "9999-12-30T23:59:59.000001Z", None),
        ("PT1S", "9999-12-31T23:59:59Z", None),
        ("P1M", "9999-12-31T23:59:59Z", None),
        ("P5000Y", "5000-01-01T00:00:00Z", None),
        # Each part fits the calendar and their sum does not: far beyond the month tables.
        ("P5000Y1800000D", "2026-01-01T00:00:00Z", None),
        ("P4999Y1000000D", "4000-01-01T00:00:00Z", None),
        ("P3000Y1826000D", "2026-01-01T00:00:00Z", None),
    ],
)
def test_a_duration_is_due_once_after_its_arming(
    text: str, armed_at: str, expected: str | None
) -> None:
    duration = parse("timeDuration", f'"{text}"')
    monthly = parse("timeCycle", '"R/2026-01-31T08:00:00Z/P1M"')
    made = series([duration, monthly], to_micros(armed_at))
    first, counts = made.window(FIRST_INSTANT, LAST_INSTANT + 1)
    assert counts[0] == (expected is not None)
    _, due = made.expand(first, counts)
    index = np.repeat(np.arange(len(counts)), counts)
    assert [to_text(d) for d in due[index == 0]] == ([expected] if expected else [])
    if expected:
        at = to_micros(expected)
        assert made.next(at - 1)[0] == made.latest(at)[0] == at
    assert made.next(LAST_INSTANT)[0] == NONE
    assert made.latest(FIRST_INSTANT - 1)[0] == NONE


@pytest.mark.parametrize(
    ("armed_at", "first", "left"),
    [
        ("2026-01-01T00:00:00Z", 0, 3),  # long before the start
        ("2026-11-09T08:00:00Z", 0, 3),  # at the start: it fires
        ("2026-11-09T08:00:00.000001Z", 1, 2),  # just after: the first is neither fired nor missed
        ("2026-11-10T08:00:00Z", 1, 2),
        ("2026-11-11T08:00:00Z", 2, 1),
        ("2026-11-11T08:00:01Z", 3, 0),  # all of R3 lie before: R3 counts from the start
        ("9999-12-31T23:59:59Z", 3, 0),
    ],
)
def test_a_boundary_cycle_counts_from_its_start_and_fires_from_its_arming(
    armed_at: str, first: int, left: int
) -> None:
    cycle = parse("timeCycle", '"R3/2026-11-09T08:00:00Z/P1D"')
    armed = to_micros(armed_at)
    made = series([cycle], armed, [True])
    assert made.first.tolist() == [first]
    assert made.count(FIRST_INSTANT, LAST_INSTANT + 1).tolist() == [left]
    assert made.latest_k(LAST_INSTANT).tolist() == [2]
    assert made.latest(armed - 1).tolist() == [NONE]
    expected = to_micros(f"2026-11-{9 + first:02}T08:00:00Z") if left else NONE
    assert made.next(FIRST_INSTANT - 1).tolist() == [expected]
    # Nothing is missed but after the arming.
    assert made.skipped(FIRST_INSTANT, LAST_INSTANT).tolist() == [max(left - 1, 0)]
    # A start event takes no notice of the arming.
    assert series([cycle], armed, [False]).first.tolist() == [0]
    assert series([cycle], armed).first.tolist() == [0]


# ---------------------------------------------------------------- faults of real schedulers


@dataclass(frozen=True)
class Outage:
    """A scheduler that stood still in (since, now]: what it fires then and how many it skips."""

    fault: str
    text: str
    since: str
    now: str
    fires: str | None
    skipped: int
    next: str | None


OUTAGES = [
    Outage("S1", "R/2022-07-04T00:40:00+08:00/PT5M", "2022-07-04T00:55:00+08:00",
           "2022-07-04T01:12:23+08:00", "2022-07-04T01:10:00+08:00", 2,
           "2022-07-04T01:15:00+08:00"),
    Outage("S3", "R/2023-07-01T00:00:00+02:00/PT15M", "2023-07-05T08:09:00+02:00",
           "2023-07-05T08:10:00+02:00", None, 0, "2023-07-05T08:15:00+02:00"),
    Outage("S6", "R3/2026-01-01T00:00:00Z/PT10M", "0001-01-01", "2026-01-01T00:25:00Z",
           "2026-01-01T00:20:00Z", 2, None),
    Outage("S11", "R1/2036-11-15T11:00:00Z/PT10S", "0001-01-01", "2036-11-15T12:00:00Z",
           "2036-11-15T11:00:00Z", 0, None),
    Outage("S11", "R3/2036-11-15T11:00:00Z/PT10S", "0001-01-01", "2036-11-15T12:00:00Z",
           "2036-11-15T11:00:20Z", 2, None),
    Outage("S15", "R1/2021-07-01T19:22:00Z/P1D", "0001-01-01", "2021-08-05T00:00:00Z",
           "2021-07-01T19:22:00Z", 0, None),
    Outage("S39", "R/2026-01-01T00:00:00Z/PT10S", "2026-01-01T00:00:00Z",
           "2026-01-01T01:18:00Z", "2026-01-01T01:18:00Z", 467, "2026-01-01T01:18:10Z"),
    Outage("S31", "R/2026-01-01T00:00:00Z/PT1M", "2026-01-01T00:00:00Z",
           "2026-01-01T00:30:59Z", "2026-01-01T00:30:00Z", 29, "2026-01-01T00:31:00Z"),
]  # fmt: skip


@pytest.mark.parametrize("case", OUTAGES, ids=[f"{o.fault} {o.text}" for o in OUTAGES])
def test_after_an_outage_the_newest_fires_and_the_rest_is_counted(case: Outage) -> None:
    made = series([parse("timeCycle", f'"{case.text}"')], 0)
    since, now = to_micros(case.since), to_micros(case.now)
    newest = int(made.latest(now)[0])
    assert (newest if newest > since else None) == (case.fires and to_micros(case.fires))
    assert made.skipped(since, now).tolist() == [case.skipped]
    assert made.next(now).tolist() == [to_micros(case.next) if case.next else NONE]


SERIES = [
    ("S11 counts its start", "R3/2036-11-15T11:00:00Z/PT10S",
     [f"2036-11-15T11:00:{s:02}Z" for s in (0, 10, 20)]),
    ("S32 no daylight saving", "R4/2024-03-30T02:30:00+01:00/P1D",
     [f"2024-{day}T01:30:00Z" for day in ("03-30", "03-31", "04-01", "04-02")]),
    ("S34 25 hours are 25 instants", "R25/2026-11-01T00:00:00-07:00/PT1H",
     [f"2026-11-01T{h:02}:00:00Z" for h in range(7, 24)]
     + [f"2026-11-02T{h:02}:00:00Z" for h in range(8)]),
    ("S44 from the 31st", "R6/2024-01-31T10:00:00Z/P1M",
     [f"2024-{day}T10:00:00Z" for day in ("01-31", "02-29", "03-31", "04-30", "05-31", "06-30")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), [s[1:] for s in SERIES], ids=[s[0] for s in SERIES])
def test_a_counted_series_from_start_to_end(text: str, expected: list[str]) -> None:
    assert texts(parse("timeCycle", f'"{text}"'), 100) == expected


# ---------------------------------------------------------------- the cost of a gap


def lines_run(task: Callable[[], object]) -> int:
    """How many lines of the module run, whatever the machine's speed."""
    lines = 0

    def trace(frame: types.FrameType, event: str, _: object) -> Callable[..., object] | None:
        nonlocal lines
        if frame.f_code.co_filename != arithmetic.__file__:
            return None
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        task()
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("text", ["R/0001-01-01T00:00:00Z/PT1S", "R/0001-01-31T00:00:00Z/P1M"])
def test_the_cost_does_not_grow_with_the_gap(text: str) -> None:
    made = series([parse("timeCycle", f'"{text}"')], 0)
    short, long = to_micros("0001-03-01"), LAST_INSTANT
    for ask in (
        lambda to: made.latest(to),
        lambda to: made.next(to),
        lambda to: made.skipped(FIRST_INSTANT, to),
        lambda to: made.count(FIRST_INSTANT, to),
        lambda to: made.count_per_bin([FIRST_INSTANT, to]),
        lambda to: made.window(FIRST_INSTANT, to),
    ):
        ask(short)  # what is computed once per series is computed here
        cost = lines_run(lambda ask=ask: ask(short))
        assert 0 < cost == lines_run(lambda ask=ask: ask(long)) < 100


def test_a_gap_of_three_hundred_thousand_million_periods_is_exact() -> None:
    made = series([parse("timeCycle", '"R/0001-01-01T00:00:00Z/PT1S"')], 0)
    seconds = (LAST_INSTANT - FIRST_INSTANT) // SECOND
    assert seconds > 3e11
    assert made.last.tolist() == [seconds]
    assert made.count(FIRST_INSTANT, LAST_INSTANT + 1).tolist() == [seconds + 1]
    assert made.skipped(NONE, LAST_INSTANT).tolist() == [seconds]
    assert made.latest(LAST_INSTANT).tolist() == [LAST_INSTANT]
    assert made.next(LAST_INSTANT - SECOND).tolist() == [LAST_INSTANT]
    assert made.next(LAST_INSTANT).tolist() == [NONE]


def test_every_month_of_the_calendar_is_found_again() -> None:
    """All 119,988 months, from each kind of day: no instant is off by one."""
    for day in (1, 28, 29, 30, 31):
        for offset in ("-14:00", "Z", "+14:00"):
            cycle = parse("timeCycle", f'"R/0001-03-{day:02}T12:00:00{offset}/P1M"')
            made = series([cycle], 0)
            k = np.arange(int(made.last[0]) + 1)
            due = made.due(k[:, None])[:, 0]
            assert (np.diff(due) > 0).all()
            assert (made.latest_k(due[:, None])[:, 0] == k).all()
            assert (made.latest_k(due[:, None] - 1)[:, 0] == k - 1).all()
            assert len(k) > 119_980


# ---------------------------------------------------------------- shapes


def test_no_expressions_make_an_empty_series() -> None:
    made = series([], 0)
    assert len(made) == 0
    assert len(made.next(0)) == 0
    assert made.count_per_bin([0, 1, 2]).shape == (2, 0)
    assert [len(column) for column in made.expand(*made.window(0, DAY))] == [0, 0]
    assert len(series([], [], [])) == 0


def test_a_part_of_a_series_is_a_series() -> None:
    cycle = [parse("timeCycle", f'"R/2026-01-{d}T08:00:00Z/P1M"') for d in (28, 29, 30, 31)]
    made = series(cycle, 0)
    assert made[1:3].due(1).tolist() == made.due(1)[1:3].tolist()
    assert made[np.array([3, 0])].due(1).tolist() == made.due(1)[[3, 0]].tolist()
    assert made[made.due(0) > made.due(0)[1]].due(2).tolist() == made.due(2)[2:].tolist()


def test_each_timer_has_its_own_arming() -> None:
    hour = parse("timeDuration", '"PT1H"')
    made = series([hour, hour], [0, DAY])
    assert made.due(0).tolist() == [HOUR, DAY + HOUR]
    with pytest.raises(ValueError, match=r"broadcast|shape"):
        series([hour, hour], [0, 1, 2])
