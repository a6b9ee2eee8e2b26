"""When timers fire: due times as tidy DataFrames, counts without making them, missed firings.

Windows are half-open, ``start <= due < end``; instants are UTC. A waiting timer (an intermediate
catch or boundary event) is taken to be reached at `armed_at`, the window's start by default.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from seams_lab.errors import UnusableInput
from seams_lab.expressions import HOUR
from seams_lab.graph import ModelGraph, local_name
from seams_lab.instants import Instant, to_micros, to_text
from seams_lab.series import NONE, Series
from seams_lab.timers import Timer, timer_series, timers

WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
DEFAULT_CAP = 5_000_000


class TruncatedWarning(UserWarning):
    """A result was cut at its cap; the message says how much was left off."""


def due_times(
    model: ModelGraph,
    start: Instant,
    end: Instant,
    *,
    armed_at: Instant | None = None,
    cap: int = DEFAULT_CAP,
) -> pd.DataFrame:
    """List every due time in ``[start, end)``.

    Parameters
    ----------
    model : ModelGraph
    start, end : str, datetime or int
        The window (see `instants.to_micros`).
    armed_at : str, datetime or int, optional
        When waiting timers are reached; `start` by default.
    cap : int
        The most rows to make. Beyond it every timer keeps its first ones, the same number for
        all; a TruncatedWarning says so and ``attrs["left_off"]`` maps each event to how many.

    Returns
    -------
    DataFrame
        One row per due time, by timer and k: ``event`` (category: element id), ``process``
        (category), ``k`` (int64, from 0), ``due`` (datetime64[us, UTC]).
    """
    low, high = _window(start, end)
    accepted, table = _accepted(model, low if armed_at is None else to_micros(armed_at, "armed_at"))
    return frame_of(table, [t.id for t in accepted], _processes(accepted), low, high, cap)


def frame_of(
    table: Series, events: list[str], processes: list[str], low: int, high: int, cap: int
) -> pd.DataFrame:
    """Make the DataFrame of `due_times` from series; *low* and *high* in microseconds (UTC)."""
    first, counts = table.window(low, high)
    kept = _capped(counts, cap)
    k, due = table.expand(first, kept)
    frame = pd.DataFrame(
        {
            "event": _repeated(events, kept),
            "process": _repeated(processes, kept),
            "k": k,
            "due": utc(due),
        },
        copy=False,
    )
    left_off = counts - kept
    if left_off.any():
        frame.attrs["left_off"] = {events[i]: int(left_off[i]) for i in np.flatnonzero(left_off)}
        warnings.warn(
            f"cut at cap={cap:,}: {int(left_off.sum()):,} of {int(counts.sum()):,} due times are "
            "left off; narrow the window, raise cap, or count with due_counts",
            TruncatedWarning,
            stacklevel=3,
        )
    return frame


def due_counts(
    model: ModelGraph,
    start: Instant,
    end: Instant,
    *,
    every: str = "1h",
    armed_at: Instant | None = None,
) -> pd.Series:
    """Count the due times of all timers per bin, without making them.

    Parameters
    ----------
    every : str
        The width of a bin as pandas reads it (``"15min"``, ``"1h"``, ``"1D"``); the last bin ends
        at or after `end`, but counts only what lies before it.

    Returns
    -------
    Series of int64
        Indexed by the bin's start (datetime64[us, UTC]), named ``firings``.
    """
    low, high = _window(start, end)
    width = _width(every)
    edges = np.append(np.arange(low, high, width, dtype=np.int64), high)
    _, table = _accepted(model, low if armed_at is None else to_micros(armed_at, "armed_at"))
    counts = table.count_per_bin(edges).sum(axis=1)
    return pd.Series(counts, index=pd.DatetimeIndex(utc(edges[:-1]), name="start"), name="firings")


def load_by_hour(
    model: ModelGraph, start: Instant, end: Instant, *, armed_at: Instant | None = None
) -> pd.DataFrame:
    """Count due times by weekday and hour (UTC) over a window: where firings bunch.

    Returns
    -------
    DataFrame of int64
        Index Mon … Sun, columns 0 … 23.
    """
    low, high = _window(start, end)
    edges = np.unique(
        np.concatenate([[low], np.arange(-(-low // HOUR) * HOUR, high, HOUR), [high]])
    ).astype(np.int64)
    _, table = _accepted(model, low if armed_at is None else to_micros(armed_at, "armed_at"))
    counts = table.count_per_bin(edges).sum(axis=1)
    hours = edges[:-1] // HOUR
    # The epoch was a Thursday, the fourth day of the week.
    cells = (hours // 24 + 3) % 7 * 24 + hours % 24
    load = np.bincount(cells, weights=counts, minlength=7 * 24).astype(np.int64).reshape(7, 24)
    return pd.DataFrame(load, index=pd.Index(WEEKDAYS, name="weekday"), columns=range(24))


def missed(model: ModelGraph, now: Instant, since: Instant | None = None) -> pd.DataFrame:
    """What each schedule does when its runtime comes back: one firing, the rest skipped.

    The newest due time that is ``<= now`` fires; the others since *since* (by default the
    beginning of time) are skipped (ruling 19). The cost does not depend on the gap's length.

    Returns
    -------
    DataFrame
        One row per timer start that was accepted: ``event``, ``process``, ``fires`` (NaT: nothing
        was missed), ``skipped`` (int64), ``next`` (NaT: the series has ended).
    """
    instant = to_micros(now, "now")
    starts = [t for t in timers(model, instant) if t.verdict == "accept" and t.is_start]
    table = timer_series(starts, instant)
    before = NONE if since is None else to_micros(since, "since")
    latest = table.latest(instant)
    return pd.DataFrame(
        {
            "event": [t.id for t in starts],
            "process": _processes(starts),
            "fires": utc(np.where(latest > before, latest, NONE)),
            "skipped": table.skipped(before, instant),
            "next": utc(table.next(instant)),
        }
    )


def utc(micros: npt.ArrayLike) -> pd.Series:
    """Microseconds since the epoch as datetime64[us, UTC]; `series.NONE` becomes NaT."""
    # Whole numbers are taken as UTC, without a copy; `dt.tz_localize` would make one.
    return pd.Series(np.asarray(micros, np.int64), dtype="datetime64[us, UTC]", copy=False)


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A table's rows as plain values by column name; instants as ISO 8601 text, NaT as None."""
    return [
        {str(name): _plain(value) for name, value in row.items()}
        for row in frame.to_dict("records")
    ]


def _plain(value: Any) -> Any:
    if value is pd.NaT:
        return None
    return to_text(micros_of(value)) if isinstance(value, pd.Timestamp) else value


def micros_of(value: pd.Timestamp) -> int:
    """A timestamp of a table in microseconds (UTC)."""
    # Not by nanoseconds, which end in 2262.
    return int(value.asm8.astype("datetime64[us]").view("i8"))


def _accepted(model: ModelGraph, armed_at: int) -> tuple[list[Timer], Series]:
    accepted = [t for t in timers(model, armed_at) if t.verdict == "accept"]
    return accepted, timer_series(accepted, armed_at)


def _processes(records: list[Timer]) -> list[str]:
    return [local_name(t.process) for t in records]


def _window(start: Instant, end: Instant) -> tuple[int, int]:
    low, high = to_micros(start, "start"), to_micros(end, "end")
    if high < low:
        raise UnusableInput("end", f"{end!s}, before start {start!s}", "start <= end", "swap them")
    return low, high


def _width(every: str) -> int:
    try:
        width = int(pd.Timedelta(every) // pd.Timedelta("1us"))
    except (ValueError, TypeError):
        width = 0
    if width <= 0:
        raise UnusableInput("every", f"{every!r}", "a positive width", "write 15min, 1h or 1D")
    return width


def _capped(counts: npt.NDArray[np.int64], cap: int) -> npt.NDArray[np.int64]:
    """Cut counts to a common limit so that they sum to at most *cap*."""
    if counts.sum() <= cap:
        return counts
    left, limit = cap, 0
    ascending = np.sort(counts).tolist()
    for position, count in enumerate(ascending):
        # What is left is shared by the timers that want more than those before them.
        limit = left // (len(ascending) - position)
        if count > limit:
            break
        left -= count
    return np.minimum(counts, limit)


def _repeated(names: list[str], counts: npt.NDArray[np.int64]) -> pd.Categorical:
    """Each name as often as its count says; repeating the codes is cheaper than indexing them."""
    codes, categories = pd.factorize(np.array(names, dtype=object))
    small = np.min_scalar_type(-max(len(categories), 1))
    repeated = np.repeat(codes.astype(small), counts)
    return pd.Categorical.from_codes(repeated, categories=pd.Index(categories), validate=False)
