"""Load by weekday and hour: a heat map with sums at its edges, so that bunching is seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from seams_lab.errors import UnusableInput
from seams_lab.picture import Picture
from seams_lab.plot.names import counted
from seams_lab.plot.style import (
    BLUE,
    GREY,
    RED,
    WIDTH,
    canvas,
    listed_reprs,
    nothing,
    painted,
    put_title,
)

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_FULL = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Load:
    """What `load` draws: *counts*, 7 weekdays by 24 hours (UTC)."""

    counts: npt.NDArray[np.int64]

    @property
    def total(self) -> int:
        """All firings."""
        return int(self.counts.sum())

    @property
    def peaks(self) -> list[tuple[int, int]]:
        """The cells (weekday, hour) with the most firings, in order of the week."""
        return [(int(d), int(h)) for d, h in np.argwhere(self.counts == self.counts.max())]

    def caption(self) -> str:
        """Return the peak as a share of all firings."""
        peaks = self.peaks
        text = f"{cell_name(*peaks[0])}: {self.counts.max():,} of {counted(self.total, 'firing')}"
        if len(peaks) > 1:
            text += f"; {counted(len(peaks) - 1, 'other hour')} of the week just as busy"
        return text + "."

    def alt(self) -> str:
        """Return peak, empty cells, and the sums by weekday and by hour in words."""
        empty = int((self.counts == 0).sum())
        by_day = ", ".join(
            f"{d} {n:,}" for d, n in zip(WEEKDAYS, self.counts.sum(axis=1), strict=True)
        )
        by_hour = ", ".join(f"{h:02}h {n:,}" for h, n in enumerate(self.counts.sum(axis=0)) if n)
        share = f"{self.counts.max() / self.total:.0%}"
        return (
            f"Firings by weekday and hour, UTC. Peak {share}, {self.caption()} "
            f"{empty} of 168 hours of the week have none.\n"
            f"By weekday: {by_day}.\nBy hour: {by_hour}."
        )


def cell_name(day: int, hour: int) -> str:
    """Return ``Monday 08:00-09:00 UTC``."""
    return f"{_FULL[day]} {hour:02}:00-{hour + 1:02}:00 UTC"


def compact(number: int) -> str:
    """Return *number* in at most four characters (five from 1,000 million on), rounded down."""
    for unit, name in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= unit:
            tenths = number * 10 // unit
            return f"{tenths / 10:.1f}{name}" if tenths < 100 else f"{tenths // 10}{name}"
    return str(number)


def load_of(load: pd.DataFrame) -> Load:
    """Return what `load` draws; weekdays and hours that the table lacks count 0."""
    if not isinstance(load, pd.DataFrame):
        seen = f"a value of type {type(load).__name__}"
        raise UnusableInput("load", seen, "a DataFrame of counts", "pass the table of load")
    hours: set[object] = set(range(24))
    strange = [repr(x) for x in load.index if x not in WEEKDAYS]
    strange += [repr(x) for x in load.columns if x not in hours]
    if strange or not load.index.is_unique or not load.columns.is_unique:
        seen = listed_reprs(strange) if strange else "a weekday or an hour twice"
        raise UnusableInput(
            "load", seen, "weekdays Mon to Sun by hours 0 to 23, each once", "rename or add them up"
        )
    table = load.reindex(index=WEEKDAYS, columns=range(24)).fillna(0)
    return Load(table.to_numpy(dtype=np.int64))


def load(load: pd.DataFrame, *, title: str | None = None) -> Picture:
    """Draw how many firings fall on each hour of the week (UTC), the peak framed.

    Parameters
    ----------
    load : DataFrame
        Counts; the index holds ``Mon`` to ``Sun``, the columns the hours 0 to 23.
    title : str, optional
        Written above.

    Raises
    ------
    UnusableInput
        If a weekday or an hour is none.
    """
    drawn = load_of(load)
    if not drawn.total:
        return nothing("No firing in any hour of the week.", title)
    with canvas(WIDTH, 3.9 + (0.35 if title else 0)) as figure:
        put_title(figure, title)
        (top, corner), (cells, side) = figure.subplots(
            2, 2, width_ratios=[24, 3.2], height_ratios=[2, 7]
        )
        corner.axis("off")
        _draw_cells(cells, drawn)
        hours, weekdays = drawn.counts.sum(axis=0), drawn.counts.sum(axis=1)
        top.bar(range(24), hours, color=_marked(hours), width=0.9)
        side.barh(range(7), weekdays, color=_marked(weekdays), height=0.8)
        _label_bars(top, side, hours, weekdays)
        return painted(figure, caption=drawn.caption(), alt=drawn.alt())


def _marked(sums: npt.NDArray[np.int64]) -> list[str]:
    return [BLUE if n == sums.max() else GREY for n in sums]


def _draw_cells(axes: Axes, drawn: Load) -> None:
    most = int(drawn.counts.max())
    colours = colormaps["cividis_r"]
    axes.pcolormesh(
        np.arange(-0.5, 24),
        np.arange(-0.5, 7),
        np.ma.masked_equal(drawn.counts, 0),
        cmap=colours,
        vmin=0,
        vmax=most,
        edgecolors="white",
        linewidth=1,
    )
    for (day, hour), n in np.ndenumerate(drawn.counts):
        if n:
            red, green, blue, _ = colours(n / most)
            dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
            axes.text(
                hour,
                day,
                compact(int(n)),
                ha="center",
                va="center",
                fontsize=7.5,
                color="white" if dark else "black",
                in_layout=False,
            )
    peaks = drawn.peaks
    for day, hour in peaks if len(peaks) <= 24 else ():  # frames everywhere mark nothing
        box = (hour - 0.5, day - 0.5)
        for colour, width in (("white", 4), (RED, 2)):
            frame = Rectangle(box, 1, 1, fill=False, edgecolor=colour, lw=width, clip_on=False)
            frame.set_zorder(6 - width)  # the white of one frame lies below its neighbour's red
            axes.add_patch(frame)
    axes.set_xlim(-0.5, 23.5)
    axes.set_ylim(6.5, -0.5)
    axes.set_xticks(range(24), [f"{hour:02}" for hour in range(24)], fontsize=8)
    axes.set_yticks(range(7), WEEKDAYS)
    axes.set_xlabel("hour of the day, UTC")
    axes.tick_params(length=0)


def _label_bars(
    top: Axes, side: Axes, hours: npt.NDArray[np.int64], weekdays: npt.NDArray[np.int64]
) -> None:
    for hour, n in enumerate(hours):
        if n:
            top.text(hour, n, compact(int(n)), ha="center", va="bottom", fontsize=7.5)
    for day, n in enumerate(weekdays):
        text = f" {n:,}" if n < 100_000 else f" {compact(int(n))}"
        side.text(n, day, text, ha="left", va="center", fontsize=8)
    top.set_xlim(-0.5, 23.5)
    top.set_ylim(0, hours.max() * 1.25)
    side.set_ylim(6.5, -0.5)
    side.set_xlim(0, weekdays.max() * 1.45)
    for axes in (top, side):
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[["left", "bottom"]].set_visible(False)
    top.set_ylabel("by hour", fontsize=8)
    side.set_title("by weekday", fontsize=8)
