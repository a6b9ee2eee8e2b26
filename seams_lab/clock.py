"""The clocks; the one place that reads the host's. Everything else is given its instants.

Instants and lengths are microseconds, instants since the epoch, UTC.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from seams_lab.errors import UnusableInput
from seams_lab.expressions import DAY, TimeDuration
from seams_lab.instants import Instant, to_micros, to_text
from seams_lab.literals import Refused, parse_literal, quote

#: Shifts the deciding clock of a replica: a signed ISO 8601 duration (ruling 16).
OFFSET_VARIABLE = "SEAMS_CLOCK_OFFSET"
#: A hundred years, either way: more would leave the calendar sooner or later.
MAX_OFFSET = 36_525 * DAY
_LONGEST_TEXT = 256


def now() -> int:
    """The host's current time, in microseconds since the epoch (UTC)."""
    return time.time_ns() // 1_000


def now_ns() -> int:
    """The host's current time in nanoseconds, the unit of a span's times."""
    return time.time_ns()


class Clock(Protocol):
    """What tells a runtime the time."""

    def now(self) -> int:
        """The current instant, in microseconds since the epoch (UTC)."""


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The host's clock plus an ``offset`` in microseconds."""

    offset: int = 0

    def now(self) -> int:
        """The current instant, in microseconds since the epoch (UTC)."""
        return now() + self.offset


class ManualClock:
    """A clock that stands still until it is told to go on; safe to share between threads.

    Parameters
    ----------
    at : str, int or datetime
        Its first instant, as `seams_lab.instants.to_micros` reads it.

    Examples
    --------
    >>> clock = ManualClock("2026-11-09T07:59:00Z")
    >>> clock.advance("PT2M")
    ManualClock('2026-11-09T08:01:00Z')
    """

    def __init__(self, at: Instant) -> None:
        self._lock = threading.Lock()
        self._now = to_micros(at, "at")

    def now(self) -> int:
        """The instant at which it stands, in microseconds since the epoch (UTC)."""
        return self._now

    def set(self, instant: Instant) -> ManualClock:
        """Go to an instant, also back; raises UnusableInput as `to_micros` does."""
        at = to_micros(instant)
        with self._lock:
            self._now = at
        return self

    def advance(self, duration: str | int) -> ManualClock:
        """Go on by an ISO 8601 duration without years and months, or by microseconds.

        Raises UnusableInput for another text, for a negative number (only `set` moves a clock
        back), and beyond the year 9999.
        """
        if isinstance(duration, str):
            micros = _length(duration, "", "duration")
        elif isinstance(duration, bool) or not isinstance(duration, int) or duration < 0:
            raise UnusableInput(
                "duration", repr(duration), "a duration such as PT48H, or microseconds",
                "use set(instant) to move the clock back",
            )  # fmt: skip
        else:
            micros = duration
        with self._lock:
            self._now = to_micros(self._now + micros, "the clock's instant")
        return self

    def __repr__(self) -> str:
        return f"ManualClock({to_text(self._now)!r})"


def offset_from(text: str, where: str = OFFSET_VARIABLE) -> int:
    """Read a clock offset: a signed ISO 8601 duration (ruling 16).

    Parameters
    ----------
    text : str
        ``PT48H`` is two days ahead of the clock, ``-P1D`` a day behind; nothing is 0.
    where : str
        Names the text in the error.

    Raises
    ------
    UnusableInput
        For another text, for years and months, whose length varies, and beyond a hundred years.

    Examples
    --------
    >>> offset_from("-PT1S")
    -1000000
    """
    text = text.strip()
    if not text:
        return 0
    sign = text[0] if text[0] in "+-" else ""
    micros = _length(text.removeprefix(sign), sign, where)
    if micros > MAX_OFFSET:
        raise UnusableInput(
            where, quote(text), "at most a hundred years (P36525D)", "use a smaller offset"
        )
    return -micros if sign == "-" else micros


def offset_from_environment(environ: Mapping[str, str] = os.environ) -> int:
    """The offset that ``SEAMS_CLOCK_OFFSET`` sets; 0 where it is unset or empty.

    Raises UnusableInput as `offset_from` does.
    """
    return offset_from(environ.get(OFFSET_VARIABLE, ""))


def _length(text: str, sign: str, where: str) -> int:
    """The microseconds of a duration that has the same length always; zero is one."""
    seen = quote(sign + text)
    expected = "an ISO 8601 duration such as PT48H"
    fix = f"write it as in {sign}PT48H or {sign}P1D"
    if len(text) > _LONGEST_TEXT:  # Python refuses to read very long integers.
        raise UnusableInput(where, f"{seen}, {len(text):,} characters", expected, fix)
    try:
        expression = parse_literal("timeDuration", text)
    except Refused as refused:
        if refused.code == "NOT_POSITIVE":
            return 0
        meant = re.fullmatch(r'write "(.*)"', refused.fix)
        fix = f"write {sign}{meant[1]}" if meant else fix
        raise UnusableInput(where, seen, expected, fix) from None
    assert isinstance(expression, TimeDuration)
    if expression.duration.months:
        raise UnusableInput(
            where, f"{seen}, whose years or months vary in length", "weeks, days and hours",
            f"write days, as in {sign}P30D",
        )  # fmt: skip
    return expression.duration.micros
