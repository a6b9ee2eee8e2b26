"""When each timer fires: one row per timer, a tick per firing, a band where ticks would merge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from seams_lab.instants import Instant, to_micros
from seams_lab.picture import Picture
from seams_lab.plot.names import counted, fitted, listed, timer_names
from seams_lab.plot.style import (
    BAND,
    BLUE,
    MOST_ROWS,
    WIDTH,
    canvas,
    need_columns,
    nothing,
    painted,
    put_title,
)
from seams_lab.plot.times import (
    HOUR,
    Instants,
    days,
    per,
    stamp,
    step_for,
    time_axis,
    to_instants,
)

MOST_BINS = 250
MOST_TICKS = 200  # about 700 pixels of axis: more ticks than this run into each other
_LABEL_WIDTH = 2.4  # inches


@dataclass(frozen=True)
class Row:
    """One timer: its *ticks* (µs, sorted), and *bins*, their counts per bin, if it is dense."""

    name: str
    ticks: Instants
    bins: Instants | None

    @property
    def count(self) -> int:
        """How often the timer fires in the window."""
        return len(self.ticks)


@dataclass(frozen=True)
class Strip:
    """What `due_strip` draws; *edges* are those of the bins, µs.

    *timers* and *total* (firings) count also what is not drawn; *cut* counts the firings that
    the table itself says it lacks.
    """

    rows: tuple[Row, ...]
    start: int
    end: int
    edges: Instants
    timers: int
    total: int
    cut: int

    @property
    def left_off(self) -> int:
        """How many timers are not drawn."""
        return self.timers - len(self.rows)

    @property
    def step(self) -> int:
        """Width of a bin in µs."""
        return int(self.edges[1] - self.edges[0])

    @property
    def densest(self) -> int:
        """Most firings in one bin of a band; 0 where no row is a band."""
        return max((int(row.bins.max()) for row in self.rows if row.bins is not None), default=0)

    def window(self) -> str:
        """Return the window in words."""
        return f"from {stamp(self.start, zone=False)} to {stamp(self.end)}"

    def caption(self) -> str:
        """Return one line: how many timers, firings, which is busiest, what is left off."""
        busiest = max(self.rows, key=lambda row: row.count)
        fires = "fires" if self.timers == 1 else "fire"
        text = f"{counted(self.timers, 'timer')} {fires} {counted(self.total, 'time')} "
        text += self.window()
        if self.timers > 1:
            text += f"; busiest: {listed([busiest.name])} ({busiest.count:,})"
        if self.densest:
            text += f"; a band shows firings {per(self.step)}, at most {self.densest:,}"
        if self.left_off:
            text += f"; {counted(self.left_off, 'less busy timer')} left off"
        if self.cut:
            text += f"; {counted(self.cut, 'later firing')} cut from the table by its cap"
        return text + "."

    def alt(self, most: int = 12) -> str:
        """Return the numbers in words: count, first and last firing of the busiest timers."""
        lines = [f"Due times of {counted(self.timers, 'timer')} {self.window()}:"]
        busiest = sorted(self.rows, key=lambda row: -row.count)[:most]
        for row in busiest:
            first, last = int(row.ticks[0]), int(row.ticks[-1])
            when = f"at {stamp(first)}" if row.count == 1 else f"first {stamp(first)}"
            if row.count > 1:
                when += f", last {stamp(last)}"
            lines.append(f"{row.name}: {counted(row.count, 'firing')}, {when}.")
        rest = self.timers - len(busiest)
        if rest:
            firings = self.total - sum(row.count for row in busiest)
            lines.append(f"{counted(rest, 'more timer')}: {counted(firings, 'firing')}.")
        return "\n".join(lines)


def strip_of(
    due: pd.DataFrame, start: Instant | None = None, end: Instant | None = None
) -> Strip | None:
    """Return what `due_strip` draws, or None where nothing fires in the window."""
    due = need_columns(due, ("event", "process", "due"), "due")
    instants = to_instants(due["due"], "due")
    inside = ~due["due"].isna().to_numpy()
    low = None if start is None else to_micros(start, "start")
    high = None if end is None else to_micros(end, "end")
    if low is not None:
        inside &= instants >= low
    if high is not None:
        inside &= instants < high
    due, instants = due[inside], instants[inside]
    if not len(due):
        return None
    low = int(instants.min()) if low is None else low
    high = int(instants.max()) if high is None else high
    if high == low:  # one instant: an hour around it makes an axis
        low, high = low - HOUR // 2, low + HOUR // 2

    codes, names = _timers(due)
    counts = np.bincount(codes, minlength=len(names))
    kept = np.argsort(-counts, kind="stable")[:MOST_ROWS]

    step = step_for(high - low, MOST_BINS - 1)  # aligning may take one bin more
    first = low // step * step
    edges = first + step * np.arange((high - first) // step + 2, dtype=np.int64)
    rows = []
    for code in kept:
        ticks = np.sort(instants[codes == code])
        dense = len(ticks) > MOST_TICKS
        bins = np.bincount((ticks - first) // step, minlength=len(edges) - 1) if dense else None
        rows.append(Row(names[code], ticks, bins))
    rows.sort(key=lambda row: (row.ticks[0], row.name))
    return Strip(tuple(rows), low, high, edges, len(names), len(due), _cut(due))


def _cut(due: pd.DataFrame) -> int:
    """Return how many firings of these timers the cap of due_times has left off."""
    left_off = due.attrs.get("left_off", {})
    return sum(left_off.get(event, 0) for event in due["event"].unique()) if left_off else 0


def _timers(due: pd.DataFrame) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return per firing the number of its timer, and the names of the timers."""
    processes, process_names = pd.factorize(due["process"], use_na_sentinel=False)
    events, event_names = pd.factorize(due["event"], use_na_sentinel=False)
    codes, pairs = pd.factorize(processes.astype(np.int64) * len(event_names) + events)
    of_process, of_event = np.divmod(pairs, len(event_names))
    names = timer_names(list(event_names[of_event]), list(process_names[of_process]))
    return codes.astype(np.int64), names


def due_strip(
    due: pd.DataFrame,
    *,
    start: Instant | None = None,
    end: Instant | None = None,
    title: str | None = None,
) -> Picture:
    """Draw when each timer fires, the earliest at the top, its count at the right.

    Parameters
    ----------
    due : DataFrame
        One row per firing, with at least ``event``, ``process`` and ``due`` (UTC).
    start, end : str, datetime or int, optional
        The window ``start <= due < end`` (see `instants.to_micros`); by default from the first
        firing to the last.
    title : str, optional
        Written above.

    Returns
    -------
    Picture
        A timer with more than 200 firings is drawn as a band of counts. Of more than 60
        timers the busiest are drawn.

    Raises
    ------
    UnusableInput
        If a column is missing or an instant cannot be read.
    """
    strip = strip_of(due, start, end)
    if strip is None:
        limits = [
            f"{word} {stamp(to_micros(limit, word))}"
            for word, limit in (("from", start), ("until", end))
            if limit is not None
        ]
        return nothing(" ".join(["No timer fires", *limits]) + ".", title)
    count = len(strip.rows)
    body = count * (0.34 if count <= 12 else 0.22)
    bar = 0.14 if strip.densest else 0.0
    with canvas(WIDTH, body + 0.9 + (0.75 if bar else 0) + (0.35 if title else 0)) as figure:
        put_title(figure, title)
        if bar:
            axes, bar_axes = figure.subplots(2, 1, height_ratios=[body, bar])
            _draw_bands(figure, axes, bar_axes, strip)
        else:
            axes = figure.subplots()
        _draw_ticks(axes, strip)
        _dress(axes, strip)
        return painted(figure, caption=strip.caption(), alt=strip.alt())


def _draw_ticks(axes: Axes, strip: Strip) -> None:
    lines = [
        [(x, y - 0.36), (x, y + 0.36)]
        for y, row in enumerate(strip.rows)
        if row.bins is None
        for x in days(row.ticks).tolist()
    ]
    axes.add_collection(LineCollection(lines, colors=BLUE, linewidths=1.4, clip_on=False))


def _draw_bands(figure: Figure, axes: Axes, bar_axes: Axes, strip: Strip) -> None:
    norm = LogNorm(1, max(strip.densest, 2))
    edges = days(strip.edges)
    for y, row in enumerate(strip.rows):
        if row.bins is not None:
            counts = np.ma.masked_equal(row.bins[np.newaxis, :], 0)
            axes.pcolormesh(edges, [y - 0.36, y + 0.36], counts, cmap="cividis_r", norm=norm)
    bar = figure.colorbar(ScalarMappable(norm, "cividis_r"), cax=bar_axes, orientation="horizontal")
    bar.set_label(f"firings {per(strip.step)}")
    ticks = sorted({round(t) for t in np.geomspace(1, max(strip.densest, 2), 6)})
    bar_axes.xaxis.set_major_locator(FixedLocator(ticks))
    bar_axes.xaxis.set_minor_locator(NullLocator())
    bar_axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _dress(axes: Axes, strip: Strip) -> None:
    count = len(strip.rows)
    size = 9 if count <= 30 else 8
    positions = range(count)
    for y in positions[1::2]:
        axes.axhspan(y - 0.5, y + 0.5, color=BAND, zorder=0)
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_yticks(positions, fitted([row.name for row in strip.rows], _LABEL_WIDTH, size))
    axes.tick_params(axis="y", length=0, labelsize=size)
    axes.grid(axis="x", color="#dfe3e3", linewidth=0.8)
    axes.set_axisbelow(True)
    time_axis(axes, strip.start, strip.end)
    right = axes.secondary_yaxis("right")
    right.set_yticks(positions, [f"{row.count:,}" for row in strip.rows])
    right.tick_params(length=0, labelsize=size)
    right.spines["right"].set_visible(False)
    axes.spines["left"].set_visible(False)
    axes.annotate(
        "firings", (1, 1), (6, 2), xycoords="axes fraction", textcoords="offset points", fontsize=8
    )
