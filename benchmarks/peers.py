"""How other libraries make due times, each in its natural way.

A peer is a function of (timers, firings) that returns a job; the job returns one sequence of due
times a timer, in whatever type the library has. What the job needs is built outside of it.
"""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable
from typing import Any

import isodate
import numpy as np
import pandas as pd
import polars as pl
import whenever
from croniter import croniter
from dateutil.relativedelta import relativedelta
from dateutil.rrule import HOURLY, MONTHLY, rrule
from SpiffWorkflow.bpmn.specs.event_definitions.timer import (
    CycleTimerEventDefinition,
    TimerEventDefinition,
)

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
HOUR = 3_600_000_000
Job = Callable[[], Any]


class Timers:
    """Timers of one period (``PT1H`` or ``P1M``) that start on all days of January 1930.

    They lie in the past, for SpiffWorkflow steps only over what is past by the host's clock.
    """

    def __init__(self, count: int, period: str, first: int = 0) -> None:
        self.period = period
        self.datetimes = [
            dt.datetime(1930, 1, 1 + (30 - i) % 31, i % 24, i * 7 % 60, tzinfo=dt.UTC)
            for i in range(first, first + count)
        ]
        self.micros = np.array([to_micros(d) for d in self.datetimes], np.int64)
        self.low = to_micros(dt.datetime(1930, 1, 1, tzinfo=dt.UTC))

    def __len__(self) -> int:
        return len(self.datetimes)

    def head(self, count: int) -> Timers:
        """The first *count* of them."""
        return Timers(count, self.period)


def to_micros(instant: Any) -> int:
    """An instant of any of the libraries, as microseconds since the epoch (UTC)."""
    if isinstance(instant, int | np.integer):
        return int(instant)
    if isinstance(instant, str):
        instant = dt.datetime.fromisoformat(instant)
    if isinstance(instant, whenever.PlainDateTime):
        instant = instant.assume_utc()
    if isinstance(instant, whenever.Instant):
        return instant.timestamp_nanos() // 1000
    return int((instant - EPOCH) // dt.timedelta(microseconds=1))


class NumpyInPlace:
    """The least work there is: int64, one column, no checks; months by a table of day numbers."""

    def __init__(self, timers: Timers, firings: int) -> None:
        self.fixed = timers.period == "PT1H"
        self.k = np.arange(firings)
        self.out = np.empty((len(timers), firings), np.int64)
        self.start = timers.micros[:, None]
        if not self.fixed:
            self._months(timers)

    def _months(self, timers: Timers) -> None:
        months = np.arange("1930-01", "2130-01", dtype="M8[M]")
        day_one = months.astype("M8[D]").astype(np.int64)
        length = np.diff(np.append(day_one, (months[-1:] + 1).astype("M8[D]").astype(np.int64)))
        days = np.array([d.day - 1 for d in timers.datetimes])
        clamped = day_one + np.minimum(np.arange(31)[:, None], length - 1)
        self.tables = (clamped * 24 * HOUR).ravel()
        self.row = (days * len(months))[:, None]
        self.rest = timers.micros[:, None] % (24 * HOUR)

    def __call__(self, out: np.ndarray | None = None) -> np.ndarray:
        out = self.out if out is None else out
        if self.fixed:
            np.multiply(self.k, HOUR, out=out)
            out += self.start
        else:
            np.add(self.row, self.k, out=out)
            np.take(self.tables, out, out=out, mode="clip")
            out += self.rest
        return out

    def anew(self) -> np.ndarray:
        """The same into memory that the system must first give."""
        return self(np.empty_like(self.out))

    def with_k(self) -> tuple[np.ndarray, np.ndarray]:
        """The due times and the column of k, both in new memory: what `Series.expand` returns."""
        k = np.empty_like(self.out)
        k[...] = self.k
        return k, self.anew()


def floor_division(start: np.ndarray, period: int, now: int) -> Job:
    """Next, latest and skipped of a fixed period, by the least arithmetic."""

    def run() -> tuple[np.ndarray, ...]:
        k = (now - start) // period
        latest = start + k * period
        return latest + period, latest, k

    return run


# ---------------------------------------------------------------------- SpiffWorkflow


class _Task:
    """What a timer definition needs of a task."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.internal_data: dict[str, Any] = {"event_value": value}

    def _get_internal_data(self, name: str, default: Any = None) -> Any:
        return self.internal_data.get(name, default)

    def _set_internal_data(self, **values: Any) -> None:
        self.internal_data.update(values)


def _spiff_task(start: dt.datetime, period: str, firings: int) -> _Task:
    text = f"R{firings}/{start.isoformat()}/{period}"
    cycles, begin, duration = TimerEventDefinition.parse_iso_recurring_interval(text)
    return _Task({"cycles": cycles, "next": begin.isoformat(),
                  "duration": duration.total_seconds()})  # fmt: skip


def spiff(timers: Timers, firings: int) -> Job:
    """Its own stepping: one ``cycle_complete`` a firing, due times as its ISO texts."""
    definition = CycleTimerEventDefinition("timer", "")

    def run() -> list[list[str]]:
        found = []
        for start in timers.datetimes:
            task = _spiff_task(start, timers.period, firings)
            value, due = task.internal_data["event_value"], []
            for _ in range(firings):
                due.append(value["next"])
                definition.cycle_complete(task)
            found.append(due)
        return found

    return run


def spiff_latest(timers: Timers, now: int) -> Job:
    """Step until the next one lies after *now*."""
    definition = CycleTimerEventDefinition("timer", "")
    at = EPOCH + dt.timedelta(microseconds=now)

    def run() -> tuple[Any, int]:
        task = _spiff_task(timers.datetimes[0], timers.period, 1_000_000)
        value, steps, latest = task.internal_data["event_value"], 0, ""
        while dt.datetime.fromisoformat(value["next"]) <= at:
            latest = value["next"]
            definition.cycle_complete(task)
            steps += 1
        return latest, steps - 1

    return run


# ---------------------------------------------------------------------- Python libraries


def rrule_(timers: Timers, firings: int) -> Job:
    """dateutil's recurrence rules: RFC 5545 leaves out months without the day."""
    frequency = HOURLY if timers.period == "PT1H" else MONTHLY
    return lambda: [list(rrule(frequency, dtstart=s, count=firings)) for s in timers.datetimes]


def rrule_latest(timers: Timers, now: int) -> Job:
    """``between`` the start and now: the last of them, and how many."""
    rule = rrule(HOURLY, dtstart=timers.datetimes[0])
    at = EPOCH + dt.timedelta(microseconds=now)

    def run() -> tuple[Any, int]:
        due = rule.between(timers.datetimes[0], at, inc=True)
        return due[-1], len(due) - 1

    return run


def relativedelta_(timers: Timers, firings: int) -> Job:
    """start + k months, from the start."""
    return lambda: [[s + relativedelta(months=k) for k in range(firings)] for s in timers.datetimes]


def _cron(start: dt.datetime, period: str) -> croniter:
    day = "*" if period == "PT1H" else "L" if start.day == 31 else str(start.day)
    hour = "*" if period == "PT1H" else str(start.hour)
    return croniter(f"{start.minute} {hour} {day} * *", start - dt.timedelta(seconds=1))


def croniter_(timers: Timers, firings: int) -> Job:
    """A cron line; it has no month without the day, only the last day of each."""

    def run() -> list[list[Any]]:
        found = []
        for start in timers.datetimes:
            cron = _cron(start, timers.period)
            found.append([cron.get_next(dt.datetime) for _ in range(firings)])
        return found

    return run


def croniter_latest(timers: Timers, now: int) -> Job:
    """Step until the next one lies after *now*."""
    at = EPOCH + dt.timedelta(microseconds=now)

    def run() -> tuple[Any, int]:
        cron = _cron(timers.datetimes[0], timers.period)
        steps, latest, coming = 0, None, cron.get_next(dt.datetime)
        while coming <= at:
            latest, coming, steps = coming, cron.get_next(dt.datetime), steps + 1
        return latest, steps - 1

    return run


def isodate_(timers: Timers, firings: int) -> Job:
    """isodate's duration (a timedelta where it is exact), k times from the start."""
    period = isodate.parse_duration(timers.period)
    return lambda: [[s + period * k for k in range(firings)] for s in timers.datetimes]


def whenever_(timers: Timers, firings: int) -> Job:
    """Instant for hours, PlainDateTime for months."""
    if timers.period == "PT1H":
        instants = [whenever.Instant(s) for s in timers.datetimes]
        return lambda: [[s.add(hours=k) for k in range(firings)] for s in instants]
    plain = [whenever.PlainDateTime(s.replace(tzinfo=None)) for s in timers.datetimes]
    return lambda: [[s.add(months=k) for k in range(firings)] for s in plain]


# ---------------------------------------------------------------------- data frames


def date_range(timers: Timers, firings: int) -> Job:
    """pandas: one range a timer; a range of months goes on from the day it was clamped to."""
    starts = [pd.Timestamp(s) for s in timers.datetimes]
    step = "h" if timers.period == "PT1H" else pd.DateOffset(months=1)
    return lambda: [pd.date_range(s, periods=firings, freq=step) for s in starts]


def date_offset(timers: Timers, firings: int) -> Job:
    """pandas: start + k months, from the start."""
    starts = [pd.Timestamp(s) for s in timers.datetimes]
    return lambda: [[s + pd.DateOffset(months=k) for k in range(firings)] for s in starts]


def polars_(timers: Timers, firings: int) -> Job:
    """polars: one expression over all rows; the texts of its month offsets are made before."""
    n = len(timers)
    frame = pl.DataFrame(
        {
            "start": np.repeat(timers.micros, firings).astype("M8[us]"),
            "k": np.tile(np.arange(firings), n),
        }
    )
    if timers.period == "PT1H":
        due = pl.col("start") + pl.duration(hours=pl.col("k"))
    else:
        frame = frame.with_columns(by=pl.format("{}mo", "k"))
        due = pl.col("start").dt.offset_by(pl.col("by"))
    return lambda: frame.select(due).to_series().to_numpy().reshape(n, firings)


Peer = Callable[[Timers, int], Job]
#: Per period: name → (peer, the most timers it is given).
PEERS: dict[str, dict[str, tuple[Peer, int]]] = {
    "PT1H": {
        "polars": (polars_, 1_000),
        "pandas date_range": (date_range, 1_000),
        "whenever": (whenever_, 200),
        "isodate, timedelta": (isodate_, 200),
        "dateutil rrule": (rrule_, 62),
        "SpiffWorkflow, own stepping": (spiff, 62),
        "croniter": (croniter_, 4),
    },
    "P1M": {
        "polars": (polars_, 1_000),
        "whenever": (whenever_, 200),
        "isodate": (isodate_, 31),
        "relativedelta": (relativedelta_, 31),
        "dateutil rrule": (rrule_, 31),
        "SpiffWorkflow, own stepping": (spiff, 62),
        "pandas DateOffset": (date_offset, 8),
        "pandas date_range(DateOffset)": (date_range, 8),
        "croniter": (croniter_, 4),
    },
}
LATEST: dict[str, Callable[[Timers, int], Job]] = {
    "dateutil rrule": rrule_latest,
    "SpiffWorkflow, own stepping": spiff_latest,
    "croniter": croniter_latest,
}

# pandas warns for each DateOffset of a zone-aware range, whenever for arithmetic without a zone.
warnings.filterwarnings("ignore", category=pd.errors.PerformanceWarning)
warnings.filterwarnings("ignore", category=whenever.WheneverWarning)
