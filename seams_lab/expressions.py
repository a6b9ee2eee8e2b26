"""Timer expressions as values: what a BPMN timer's text means.

`profile` makes them from BPMN elements; `series` computes their due times. Instants are whole
microseconds since the epoch, UTC.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

SECOND, MINUTE, HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
WEEK = 7 * DAY
EPOCH = dt.datetime(1970, 1, 1)
FIRST_INSTANT = (dt.datetime.min - EPOCH) // dt.timedelta(microseconds=1)
# The last second of the calendar: a series ends silently here (ruling 7).
LAST_INSTANT = (dt.datetime(9999, 12, 31, 23, 59, 59) - EPOCH) // dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Duration:
    """A positive ISO 8601 duration: calendar ``months`` and exact ``micros`` (microseconds)."""

    months: int
    micros: int
    text: str

    @property
    def in_words(self) -> str:
        """The duration in English, such as ``1 month and 2 hours``."""
        years, months = divmod(self.months, 12)
        weeks, rest = divmod(self.micros, WEEK)
        if self.months or rest:
            weeks, rest = 0, self.micros
        days, rest = divmod(rest, DAY)
        hours, rest = divmod(rest, HOUR)
        minutes, rest = divmod(rest, MINUTE)
        seconds = f"{rest / SECOND:.6f}".rstrip("0").rstrip(".")
        parts = [
            f"{amount} {unit}" + ("" if amount == 1 else "s")
            for amount, unit in [
                (years, "year"), (months, "month"), (weeks, "week"), (days, "day"),
                (hours, "hour"), (minutes, "minute"),
            ]
            if amount
        ]  # fmt: skip
        if rest:
            parts.append(f"{seconds} second" + ("" if rest == SECOND else "s"))
        return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


@dataclass(frozen=True, slots=True)
class TimeDate:
    """One instant: ``at`` in microseconds since the epoch (UTC), ``offset`` in minutes."""

    at: int
    offset: int
    text: str
    kind = "timeDate"

    @property
    def in_words(self) -> str:
        """What the expression means, in English."""
        return f"once, on {_instant_in_words(self.at, self.offset)}"


@dataclass(frozen=True, slots=True)
class TimeDuration:
    """One due time, ``duration`` after the instance reaches the event (counted in UTC)."""

    duration: Duration
    text: str
    kind = "timeDuration"

    @property
    def in_words(self) -> str:
        """What the expression means, in English."""
        return f"{self.duration.in_words} after the instance reaches it"


@dataclass(frozen=True, slots=True)
class TimeCycle:
    """Due times ``start + k × duration`` for k = 0 … ``count`` - 1 (None: no end).

    ``start`` is in microseconds since the epoch (UTC), ``offset`` in minutes: months and years
    are added in that offset's calendar.
    """

    start: int
    offset: int
    duration: Duration
    count: int | None
    text: str
    kind = "timeCycle"

    @property
    def in_words(self) -> str:
        """What the expression means, in English."""
        if self.count == 1:
            return f"once, on {_instant_in_words(self.start, self.offset)}"
        every = self.duration.in_words.removeprefix("1 ")
        how_many = "no end" if self.count is None else f"{self.count:,} times"
        day = " on the same day of the month, or its last" if self.duration.months else ""
        start = _instant_in_words(self.start, self.offset)
        return f"every {every}{day}, from {start}, {how_many}"


TimerExpression = TimeDate | TimeDuration | TimeCycle


def _instant_in_words(micros: int, offset: int) -> str:
    # The 400-year Gregorian cycle keeps local times beyond year 9999 printable.
    local = EPOCH + dt.timedelta(microseconds=micros)
    shift = dt.timedelta(minutes=offset)
    try:
        local += shift
    except OverflowError:
        local, offset = EPOCH + dt.timedelta(microseconds=micros), 0
    zone = "UTC"
    if offset:
        sign = "-" if offset < 0 else "+"
        zone = f"UTC{sign}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
    weekday = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[local.weekday()]
    clock = f"{local:%H:%M}" if not local.second else f"{local:%H:%M:%S}"
    return f"{weekday} {local.year:04}-{local:%m-%d} {clock} {zone}"
