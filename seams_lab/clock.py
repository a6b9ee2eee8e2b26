"""The clocks, and the one place that reads the host's; everything else is given its instants.

An instant is a whole number of microseconds since the epoch, UTC.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Protocol

from seams_lab.errors import ResolutionError, UnusableInput
from seams_lab.expressions import TimeDuration
from seams_lab.instants import Instant, to_micros, to_text
from seams_lab.profile import parse

#: Shifts the deciding clock of a replica: a signed ISO 8601 duration (R80, ruling 16).
OFFSET_VARIABLE = "SEAMS_CLOCK_OFFSET"


def now() -> int:
    """The host's current time, in microseconds since the epoch (UTC)."""
    return time.time_ns() // 1_000


def now_ns() -> int:
    """The host's current time in nanoseconds, for the times of tracing spans."""
    return time.time_ns()


class Clock(Protocol):
    """Whatever tells the time that decides."""

    def now(self) -> int:
        """The current instant, in microseconds (UTC)."""
        ...


class SystemClock:
    """The host's clock plus an offset in microseconds."""

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset

    def now(self) -> int:
        """The current instant, in microseconds (UTC)."""
        return now() + self.offset

    def __repr__(self) -> str:
        return f"SystemClock(offset={self.offset})"


class ManualClock:
    """A clock that stands still until it is moved: for tests and notebooks.

    Examples
    --------
    >>> clock = ManualClock("2026-11-09T07:59:00Z")
    >>> clock.advance("PT2M")
    ManualClock('2026-11-09T08:01:00Z')
    """

    def __init__(self, at: Instant) -> None:
        self._at = to_micros(at, "at")

    def now(self) -> int:
        """The instant at which it stands, in microseconds (UTC)."""
        return self._at

    def set(self, at: Instant) -> ManualClock:
        """Move to an instant, also back."""
        self._at = to_micros(at, "at")
        return self

    def advance(self, duration: str | int) -> ManualClock:
        """Move forward by an ISO 8601 duration such as ``PT48H``, or by microseconds.

        Raises UnusableInput for what is no positive duration, or one of months or years.
        """
        micros = duration if isinstance(duration, int) else _micros(duration, "duration")
        if micros < 0:
            raise _unusable("duration", duration, "use set to move back")
        self._at += micros
        return self

    def __repr__(self) -> str:
        return f"ManualClock({to_text(self._at)!r})"


def offset_from(text: str) -> int:
    """Read a clock offset, a signed ISO 8601 duration, as microseconds.

    Raises UnusableInput for any other text; months and years are refused, for their length
    varies.

    >>> offset_from("-P1D")
    -86400000000
    """
    sign = -1 if text.startswith("-") else 1
    return sign * _micros(text[1:] if text[:1] in ("-", "+") else text, OFFSET_VARIABLE, text)


def offset_from_environment(environ: Mapping[str, str] | None = None) -> int:
    """The offset that ``SEAMS_CLOCK_OFFSET`` gives, in microseconds; 0 where it is not set."""
    text = (os.environ if environ is None else environ).get(OFFSET_VARIABLE, "").strip()
    return offset_from(text) if text else 0


def _micros(text: str, what: str, seen: str | None = None) -> int:
    try:
        read = parse("timeDuration", f'"{text}"', what)
    except ResolutionError as refusal:
        raise _unusable(what, seen or text, refusal.fix) from None
    assert isinstance(read, TimeDuration)
    if read.duration.months:
        raise _unusable(what, seen or text, "write days or hours: a month's length varies")
    return read.duration.micros


def _unusable(what: str, seen: object, fix: str) -> UnusableInput:
    return UnusableInput(
        what, f"{seen!r}", "an ISO 8601 duration of days or less, such as PT48H",
        fix or "write it as in PT48H or -P1D",
    )  # fmt: skip
