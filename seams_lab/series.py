"""Due-time arithmetic: exact, in whole microseconds, for many series at once.

The k-th due time of a series is ``start + k × duration``, counted from the start and never
iterated: years and months first, in the calendar of the expression's own offset, clamped to the
last day of the month; then the exact part (a day is 24 hours); then UTC (ruling 6). A series
ends silently at 9999-12-31T23:59:59Z (ruling 7).

Every function here is closed-form: the cost of a next or latest due time, of a skipped count or
of counts per bin does not depend on how many firings lie between.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from seams_lab.expressions import (
    DAY,
    FIRST_INSTANT,
    LAST_INSTANT,
    MINUTE,
    TimeCycle,
    TimeDate,
    TimeDuration,
    TimerExpression,
)

Int64 = npt.NDArray[np.int64]

# Month tables over the years 0000 to 10004: a local time may lie up to 14 hours outside the UTC
# calendar, and `_bound` may overshoot by a month. Row d of _CLAMPED holds, for each month counted
# from 0000-01, the instant at which its day 1, 29, 30 or 31 begins, clamped to the month's last.
_MONTHS = np.arange("0000-01", "10005-01", dtype="datetime64[M]")
_FIRST_DAY: Int64 = _MONTHS.astype("datetime64[D]").astype(np.int64)
_LENGTH: Int64 = np.diff(_FIRST_DAY)
_CLAMPED: Int64 = np.stack(
    [(_FIRST_DAY[:-1] + np.minimum(day, _LENGTH - 1)) * DAY for day in (0, 28, 29, 30)]
)
_FLAT = _CLAMPED.ravel()
_MONTH_OF_EPOCH = 1970 * 12
_LAST_MONTH = len(_LENGTH) - 1
# The Gregorian calendar repeats after 400 years of 146,097 days: the mean month, exactly.
_MEAN_MONTH = 146_097 * DAY // 4_800
# Rows made at a time, so that the temporaries stay in the processor's cache.
_CHUNK = 1 << 15
NONE = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Series:
    """One or many series of due times, as columns of int64 of one shape ``(n,)``.

    ``start``: the anchor's instant in microseconds since the epoch (UTC); ``offset``: minutes of
    its own calendar; ``months`` and ``micros``: the period; ``first`` and ``last``: the range of
    k that has due times (``last < first``: none).
    """

    start: Int64
    offset: Int64
    months: Int64
    micros: Int64
    first: Int64
    last: Int64

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, index: slice | Int64 | npt.NDArray[np.bool_]) -> Series:
        return Series(*(column[index] for column in self._columns()))

    def _columns(self) -> tuple[Int64, ...]:
        return self.start, self.offset, self.months, self.micros, self.first, self.last

    @cached_property
    def _has_months(self) -> bool:
        return bool(self.months.any())

    @cached_property
    def _calendar(self) -> tuple[Int64, Int64]:
        """The anchors split for the month tables: (index into _FLAT, microseconds to add)."""
        day, time = np.divmod(self.start + self.offset * MINUTE, DAY)
        month = day.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
        month += _MONTH_OF_EPOCH
        day_of_month = day - _FIRST_DAY[month]
        late = np.maximum(day_of_month - 27, 0)
        rest = np.where(late, 0, day_of_month) * DAY + time - self.offset * MINUTE
        return late * len(_LENGTH) + month, rest

    def due(self, k: npt.ArrayLike) -> Int64:
        """The due time of occurrence *k* of each series, in microseconds (UTC).

        *k* broadcasts against the series on the last axis and must lie in first … last.
        """
        ks: Int64 = np.asarray(k, np.int64)
        exact: Int64 = ks * self.micros
        if not self._has_months:
            return self.start + exact
        base, rest = self._calendar
        # "clip": the callers also ask for occurrences just past the last, and mask them out.
        begin = _FLAT.take(base + ks * self.months, mode="clip")
        return np.where(self.months, begin + rest, self.start) + exact

    def latest_k(self, at: npt.ArrayLike) -> Int64:
        """The largest k whose due time is ``<= at``; ``first - 1`` where there is none.

        *at* is in microseconds (UTC) and broadcasts against the series on the last axis.
        """
        at = np.clip(np.asarray(at, np.int64), FIRST_INSTANT - 1, LAST_INSTANT)
        # Periods differ: months are estimated with their mean length. The calendar is never more
        # than a few days off the mean, and a month is at least 28 days, so one step corrects it.
        mean = self.months * _MEAN_MONTH + self.micros
        guess = (at - self.start) // mean
        if self._has_months:
            guess = np.clip(guess + 1, self.first - 1, self.last)
            for _ in range(2):
                late = self.due(np.maximum(guess, self.first)) > at
                guess = np.where(late & (guess >= self.first), guess - 1, guess)
        return np.clip(guess, self.first - 1, self.last)

    def latest(self, at: npt.ArrayLike) -> Int64:
        """The newest due time ``<= at``, or `NONE`."""
        k = self.latest_k(at)
        return np.where(k >= self.first, self.due(np.maximum(k, self.first)), NONE)

    def next(self, after: npt.ArrayLike) -> Int64:
        """The first due time ``> after``, or `NONE`."""
        k = self.latest_k(after) + 1
        return np.where(k <= self.last, self.due(np.clip(k, self.first, None)), NONE)

    def skipped(self, since: npt.ArrayLike, now: npt.ArrayLike) -> Int64:
        """How many due times the missed rule skips: those in ``(since, now]`` but the newest."""
        return _at_least_0(self.latest_k(now) - self.latest_k(since) - 1)

    def count(self, start: npt.ArrayLike, end: npt.ArrayLike) -> Int64:
        """How many due times lie in ``[start, end)``, without making them."""
        return _at_least_0(self.latest_k(_before(end)) - self.latest_k(_before(start)))

    def count_per_bin(self, edges: npt.ArrayLike) -> Int64:
        """Counts per bin and series, shape ``(len(edges) - 1, n)``, without making due times.

        Bins are half-open: ``edges[i] <= due < edges[i + 1]``; edges in microseconds (UTC).
        """
        edges = _before(edges)[:, None]
        # A few edges at a time: their temporaries fit the cache, those of all would not.
        step = max(1, _CHUNK // max(1, len(self)))
        parts = [self.latest_k(edges[i : i + step]) for i in range(0, len(edges), step)]
        upto: Int64 = np.concatenate(parts)
        return upto[1:] - upto[:-1]

    def window(self, start: int, end: int) -> tuple[Int64, Int64]:
        """The first k and the number of due times of each series in ``[start, end)``."""
        low = self.latest_k(_before(start))
        return low + 1, np.maximum(self.latest_k(_before(end)) - low, 0)

    def expand(self, first_k: Int64, counts: Int64) -> tuple[Int64, Int64]:
        """Make the occurrences ``first_k … first_k + counts - 1`` of each series.

        Returns (k, due), each of length ``counts.sum()``, ordered by series and k: row r is of
        the series ``np.repeat(np.arange(n), counts)[r]``.
        """
        total = int(counts.sum())
        k = np.empty(total, np.int64)
        due = np.empty(total, np.int64)
        base, rest = self._calendar
        for rows, columns, out in _blocks(counts, self.months != 0):
            block = (rows.stop - rows.start, columns.stop - columns.start)
            k_out, due_out = k[out].reshape(block), due[out].reshape(block)
            np.add(first_k[rows, None], np.arange(columns.start, columns.stop), out=k_out)
            if self.months[rows.start]:
                np.multiply(k_out, self.months[rows, None], out=due_out)
                due_out += base[rows, None]
                due_out[...] = _FLAT[due_out]
                due_out += rest[rows, None]
                if self.micros[rows].any():
                    due_out += k_out * self.micros[rows, None]
            else:
                np.multiply(k_out, self.micros[rows, None], out=due_out)
                due_out += self.start[rows, None]
        return k, due


def _before(at: npt.ArrayLike) -> Int64:
    """The microsecond before *at*; `NONE` stands for before the calendar and does not wrap."""
    return np.maximum(np.asarray(at, np.int64), FIRST_INSTANT) - 1


def _at_least_0(counts: Int64) -> Int64:
    return np.where(counts > 0, counts, 0)


def _blocks(counts: Int64, kind: npt.NDArray[np.bool_]) -> Iterator[tuple[slice, slice, slice]]:
    """Cut the output into rectangles that fit the processor's cache.

    Yields (series, occurrences, output rows). The series of a rectangle are neighbours of one
    kind with one count, so that it is filled by broadcasting.
    """
    if not len(counts):
        return
    change = np.flatnonzero((np.diff(counts) != 0) | (kind[1:] != kind[:-1])) + 1
    edges = [0, *change.tolist(), len(counts)]
    out = 0
    for low, high in itertools.pairwise(edges):
        width = int(counts[low])
        if not width:
            continue
        height = max(1, _CHUNK // width)
        for row in range(low, high, height):
            stop = min(row + height, high)
            # Wider than a chunk means one series a rectangle, cut along its occurrences.
            for column in range(0, width, _CHUNK):
                end = min(column + _CHUNK, width)
                size = (stop - row) * (end - column)
                yield slice(row, stop), slice(column, end), slice(out, out + size)
                out += size


def series(
    expressions: Sequence[TimerExpression],
    armed_at: int | Sequence[int],
    from_arming: Sequence[bool] | None = None,
) -> Series:
    """Turn expressions into series.

    Parameters
    ----------
    expressions : sequence of TimeDate, TimeDuration, TimeCycle
    armed_at : int or sequence of int
        When the instance reaches the event, in microseconds since the epoch (UTC). Only a
        ``timeDuration`` counts from it.
    from_arming : sequence of bool, optional
        True for a boundary cycle: its due times before `armed_at` neither fire nor count as
        missed, while k still counts from the start (ruling 19a).
    """
    n = len(expressions)
    armed = np.broadcast_to(np.asarray(armed_at, np.int64), (n,))
    columns = np.array(
        [_columns(e, int(a)) for e, a in zip(expressions, armed, strict=True)], np.int64
    ).reshape(n, 5)
    start, offset, months, micros, last = (np.ascontiguousarray(c) for c in columns.T)
    zero = np.zeros(n, np.int64)
    unarmed = Series(start, offset, months, micros, zero, last)
    # `last` so far only bounds k so that nothing overflows; the calendar's end cuts exactly.
    ended = Series(start, offset, months, micros, zero, unarmed.latest_k(LAST_INSTANT))
    if from_arming is None or not any(from_arming):
        return ended
    first = np.where(np.asarray(from_arming, bool), ended.latest_k(armed - 1) + 1, zero)
    return Series(start, offset, months, micros, first, ended.last)


def _columns(expression: TimerExpression, armed_at: int) -> tuple[int, int, int, int, int]:
    """(start, offset, months, micros, a bound of k that keeps int64 and the tables in range)."""
    if isinstance(expression, TimeDate):
        return expression.at, expression.offset, 0, 1, 0
    if isinstance(expression, TimeDuration):
        # Armed at a, it is due once at a + duration: occurrence 0 of a series that starts there.
        months, micros = expression.duration.months, expression.duration.micros
        due = LAST_INSTANT + 1
        if _bound(armed_at, months, micros) >= 1:
            zero = np.zeros(1, np.int64)
            once = Series(zero + armed_at, zero, zero + months, zero + micros, zero, zero)
            due = int(once.due(1)[0])
        if due > LAST_INSTANT:  # kept within the month tables, with no occurrence
            return LAST_INSTANT + 1, 0, 0, 1, -1
        return due, 0, 0, 1, 0
    return _cycle_columns(expression)


def _cycle_columns(cycle: TimeCycle) -> tuple[int, int, int, int, int]:
    months, micros = cycle.duration.months, cycle.duration.micros
    bound = _bound(cycle.start, months, micros)
    last = bound if cycle.count is None else min(bound, cycle.count - 1)
    if last < 1:  # the period may not even fit an int64; only the start is ever due
        return cycle.start, cycle.offset, 0, 1, 0
    return cycle.start, cycle.offset, months, micros, last


def _bound(start: int, months: int, micros: int) -> int:
    """A k that no due time within the calendar exceeds, in Python's unbounded integers."""
    bounds = []
    if months:
        # The mean month gives the month of a day, one more or less.
        month = start // _MEAN_MONTH + _MONTH_OF_EPOCH - 1
        bounds.append((_LAST_MONTH - 12 - month) // months)
    if micros:
        bounds.append((LAST_INSTANT - start) // micros)
    return int(min(bounds))
