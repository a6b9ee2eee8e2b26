"""Instants (int64 microseconds since the epoch, UTC) as text, as bins and as an axis."""

from __future__ import annotations

from datetime import UTC

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

from seams_lab.errors import UnusableInput
from seams_lab.expressions import FIRST_INSTANT, LAST_INSTANT

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86400 * SECOND

Instants = npt.NDArray[np.int64]

# bin widths a person counts in; each divides the next unit where it can
_STEPS: tuple[int, ...] = (
    *(10**n for n in range(6)),
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7, 14, 28, 91, 182)),
    *(n * 365 * DAY for n in (1, 2, 5, 10, 20, 50, 100)),
)


def to_instants(values: object, where: str) -> Instants:
    """Return datetimes (aware, or naive and read as UTC) as int64 microseconds.

    Raises
    ------
    UnusableInput
        If *values* are no datetimes.
    """
    try:
        index = pd.DatetimeIndex(values)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        raise UnusableInput(
            where, str(error), "datetimes in UTC", "pass datetime64[us, UTC] values"
        ) from None
    return np.asarray(index.as_unit("us").asi8, dtype=np.int64)


def stamp(instant: int, *, zone: bool = True) -> str:
    """Return ``2026-11-09 08:00 UTC``; seconds and fractions only where they are not zero."""
    text = str(np.datetime64(instant, "us")).replace("T", " ")
    if instant % SECOND == 0:
        text = text[:-7]
        if instant % MINUTE == 0:
            text = text[:-3]
    else:
        text = text.rstrip("0")
    return f"{text} UTC" if zone else text


def step_for(span: int, most: int) -> int:
    """Return the smallest handy bin width (µs) that covers *span* µs in at most *most* bins."""
    return next((step for step in _STEPS if step * most >= span), _STEPS[-1])


def in_words(span: int) -> str:
    """Return a span of µs in the largest unit that gives a whole number: ``3 h``, ``90 min``."""
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"), (1000, "ms")):
        if span >= unit and span % unit == 0:
            return f"{span // unit:,} {name}"
    return f"{span:,} µs"


def per(span: int) -> str:
    """Return ``per hour``, ``per 3 h``: what a count per bin of *span* µs is called."""
    one = {DAY: "day", HOUR: "hour", MINUTE: "minute", SECOND: "second"}
    return f"per {one.get(span) or in_words(span)}"


def days(instants: Instants | int) -> npt.NDArray[np.float64]:
    """Return *instants* as matplotlib dates: days since the epoch."""
    return np.asarray(instants, dtype=np.int64) / DAY


def time_axis(axes: Axes, start: int, end: int) -> None:
    """Give *axes* a UTC date axis from *start* to *end* (µs)."""
    locator = AutoDateLocator(tz=UTC, minticks=4, maxticks=9)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC, show_offset=False))
    axes.set_xlim(
        float(days(max(start, FIRST_INSTANT))), float(days(min(max(end, start + 1), LAST_INSTANT)))
    )
    axes.set_xlabel(f"{stamp(start, zone=False)} to {stamp(end)}")
