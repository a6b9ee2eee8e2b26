"""Firings per bin of time, with the mean and the peak: how far the load is from even."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from seams_lab.errors import UnusableInput
from seams_lab.picture import Picture
from seams_lab.plot.names import counted
from seams_lab.plot.style import BLUE, INK, RED, WIDTH, canvas, nothing, painted, put_title
from seams_lab.plot.times import HOUR, Instants, days, in_words, per, stamp, time_axis, to_instants

MOST_BARS = 700  # one per pixel of the axis


@dataclass(frozen=True)
class Bunching:
    """What `bunching` draws: *counts* per bin; *starts* of the bins and their *width* in µs.

    Where there are more bins than pixels, *heights* holds the highest count of each *group*
    of neighbouring bins, so that no peak is lost; otherwise *group* is 1.
    """

    starts: Instants
    counts: Instants
    width: int
    heights: Instants
    group: int

    @property
    def mean(self) -> float:
        """Firings per bin on average."""
        return float(self.counts.mean())

    @property
    def peak(self) -> int:
        """Place of the first bin with the most firings."""
        return int(self.counts.argmax())

    def peak_stamp(self) -> str:
        """Return when the first bin with the most firings starts."""
        return stamp(int(self.starts[self.peak]))

    def edges(self) -> Instants:
        """Return the edges of the bars in µs."""
        starts = self.starts[:: self.group]
        return np.append(starts, self.starts[-1] + self.width)

    def caption(self) -> str:
        """Return peak and mean."""
        most = int(self.counts[self.peak])
        text = f"Peak {counted(most, 'firing')} {per(self.width)} at {self.peak_stamp()}"
        text += f", {rough(most / self.mean)} times the mean of {rough(self.mean)}"
        if self.group > 1:
            text += f"; each bar shows the highest of {self.group} bins"
        return text + "."

    def alt(self) -> str:
        """Return total, window, peak, mean, empty bins and the busiest bins in words."""
        window = f"{stamp(int(self.starts[0]), zone=False)} to "
        window += stamp(int(self.starts[-1]) + self.width)
        empty = int((self.counts == 0).sum())
        busiest = np.argsort(-self.counts, kind="stable")[:5]
        top = ", ".join(f"{stamp(int(self.starts[i]))} {self.counts[i]:,}" for i in busiest)
        return (
            f"{counted(int(self.counts.sum()), 'firing')} in {counted(len(self.counts), 'bin')} "
            f"of {in_words(self.width)}, {window}. {self.caption()}\n"
            f"{counted(empty, 'bin')} without a firing. Busiest: {top}."
        )


def rough(number: float) -> str:
    """Return *number* with three digits that count, never in powers of ten."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def bunching_of(counts: pd.Series) -> Bunching | None:
    """Return what `bunching` draws, or None where nothing fires."""
    if not isinstance(counts, pd.Series) or not (
        counts.empty or isinstance(counts.index, pd.DatetimeIndex)
    ):
        raise UnusableInput(
            "counts",
            f"a value of type {type(counts).__name__}",
            "a Series of counts with a DatetimeIndex in UTC",
            "pass the counts per bin",
        )
    values = counts.fillna(0).to_numpy(dtype=np.int64)
    if not values.sum():
        return None
    starts = to_instants(counts.index, "counts")
    steps = np.diff(starts)
    if (steps <= 0).any():
        raise UnusableInput("counts", "bins out of order", "rising bins", "sort the index")
    width = int(steps.min()) if len(steps) else _width_of_one(counts)
    group = -(-len(values) // MOST_BARS)
    heights = np.maximum.reduceat(values, np.arange(0, len(values), group))
    return Bunching(starts, values, width, heights, group)


def _width_of_one(counts: pd.Series) -> int:
    """Return the width of a lone bin from the frequency of the index, else one hour."""
    assert isinstance(counts.index, pd.DatetimeIndex)
    freq = counts.index.freq
    # a calendar frequency has no width of its own
    return int(freq.nanos) // 1000 if isinstance(freq, pd.offsets.Tick | pd.offsets.Day) else HOUR


def bunching(counts: pd.Series, *, title: str | None = None) -> Picture:
    """Draw firings per bin of time, with the mean as a line and the peak marked.

    Parameters
    ----------
    counts : Series
        Counts; a DatetimeIndex holds the start of each bin (UTC, evenly spaced).
    title : str, optional
        Written above.

    Raises
    ------
    UnusableInput
        If *counts* is no such series.
    """
    drawn = bunching_of(counts)
    if drawn is None:
        return nothing("No firing in any bin.", title)
    with canvas(WIDTH, 3.2 + (0.35 if title else 0)) as figure:
        put_title(figure, title)
        axes = figure.subplots()
        _draw(axes, drawn)
        return painted(figure, caption=drawn.caption(), alt=drawn.alt())


def _draw(axes: Axes, drawn: Bunching) -> None:
    edges = drawn.edges()
    most = int(drawn.counts.max())
    axes.stairs(drawn.heights, days(edges), fill=True, color=BLUE)
    if len(drawn.heights) <= 60:  # a gap between bars where there is room for one
        axes.vlines(days(edges), 0, most, color="white", linewidth=1)
    axes.axhline(drawn.mean, color=INK, linewidth=1.2, linestyle="--")
    axes.annotate(
        f"mean {rough(drawn.mean)}",
        (1, drawn.mean),
        (4, 0),
        va="center",
        fontsize=8,
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
    )
    middle = float(days(int(drawn.starts[drawn.peak]) + drawn.width // 2))
    axes.plot([middle], [most], marker="v", color=RED, clip_on=False, markersize=7)
    right = middle > float(days(edges[[0, -1]]).mean())
    axes.annotate(
        f"peak {most:,} at {drawn.peak_stamp()}",
        (middle, most),
        (-8 if right else 8, 2),
        textcoords="offset points",
        color=RED,
        fontsize=9,
        ha="right" if right else "left",
        va="bottom",
    )
    axes.set_ylim(0, most * 1.18)
    highest = f"\nhighest of each {drawn.group} bins" if drawn.group > 1 else ""
    axes.set_ylabel(f"firings {per(drawn.width)}{highest}")
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="y", color="#dfe3e3", linewidth=0.8)
    axes.set_axisbelow(True)
    time_axis(axes, int(edges[0]), int(edges[-1]))
