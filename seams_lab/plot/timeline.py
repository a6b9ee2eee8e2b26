"""A run as a picture: a lane per timer or instance, with firings, skipped firings, user tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from seams_lab.instants import Instant, to_micros
from seams_lab.picture import Picture
from seams_lab.plot.names import counted, fitted, one_line
from seams_lab.plot.style import (
    BAND,
    BLUE,
    INK,
    MOST_ROWS,
    RED,
    SLATE,
    WIDTH,
    canvas,
    need_columns,
    nothing,
    painted,
    put_title,
)
from seams_lab.plot.times import HOUR, days, in_words, stamp, step_for, time_axis, to_instants

COLUMNS = ("lane", "kind", "name", "start", "end", "open")
_LABEL_WIDTH = 2.4  # inches
_PALE_BLUE = "#d5e7f8"
_ABOVE, _BELOW, _HIGH = -0.2, 0.22, 0.3  # of a lane: marks, bars, height of a bar


@dataclass(frozen=True)
class Span:
    """One run, user task, firing or skipped firing; *start* and *end* in µs."""

    kind: str
    name: str
    start: int
    end: int
    open: bool

    @property
    def late(self) -> int:
        """From the due time to the firing, in µs."""
        return max(self.end - self.start, 0)


@dataclass(frozen=True)
class Lane:
    """One timer or instance and what happened to it, in order."""

    name: str
    spans: tuple[Span, ...]

    def of(self, kind: str) -> list[Span]:
        """The spans of one kind."""
        return [span for span in self.spans if span.kind == kind]

    def alt(self) -> str:
        """Return what happened in this lane in words."""
        said = []
        for run in self.of("run"):
            ended = "" if run.open else f" to {stamp(run.end)}"
            said.append(f"{run.name}, from {stamp(run.start)}{ended}")
        for task in self.of("task"):
            ended = "still open" if task.open else f"done {stamp(task.end)}"
            said.append(f"{task.name} open from {stamp(task.start)}, {ended}")
        firings, skipped = self.of("firing"), self.of("skipped")
        if firings:
            latest = max(firings, key=lambda f: f.late)
            late = f", at most {_rough(latest.late)} late" if latest.late else ", all in time"
            what = f"{firings[-1].name} " if self.of("run") else ""
            last = stamp(firings[-1].start)
            said.append(f"{what}{counted(len(firings), 'firing')}{late}, last due {last}")
        if skipped:
            said.append(f"{len(skipped):,} skipped, last due {stamp(skipped[-1].start)}")
        return f"{self.name}: {'; '.join(said)}."


@dataclass(frozen=True)
class Timeline:
    """What `timeline` draws; *lanes* and *start*, *end* (µs) of the axis.

    *left_off* counts lanes, *cut* skipped firings that are not drawn.
    """

    lanes: tuple[Lane, ...]
    start: int
    end: int
    left_off: int
    cut: int

    def spans(self, kind: str) -> list[Span]:
        """All spans of one kind."""
        return [span for lane in self.lanes for span in lane.of(kind)]

    def caption(self) -> str:
        """Return one line: firings, the latest, skipped ones, user tasks."""
        firings, tasks = self.spans("firing"), self.spans("task")
        skipped = len(self.spans("skipped")) + self.cut
        text = counted(len(firings), "firing")
        if firings and (latest := max(firings, key=lambda f: f.late)).late:
            text += f", at most {_rough(latest.late)} late ({one_line(latest.name)})"
        text += f"; {skipped:,} skipped; {counted(len(tasks), 'user task')}"
        if tasks:
            text += f", {sum(task.open for task in tasks):,} open"
        if self.left_off:
            text += f"; {counted(self.left_off, 'later lane')} left off"
        if self.cut:
            text += f"; {self.cut:,} skipped not drawn"
        return text + "."

    def alt(self, most: int = 20) -> str:
        """Return the numbers in words, lane by lane."""
        lines = [f"{stamp(self.start, zone=False)} to {stamp(self.end)}: {self.caption()}"]
        lines += [lane.alt() for lane in self.lanes[:most]]
        if len(self.lanes) > most:
            lines.append(f"{counted(len(self.lanes) - most, 'more lane')}.")
        return "\n".join(lines)


def _rough(span: int) -> str:
    """Return a span of µs in its largest unit, with one decimal where it is not whole."""
    for unit, name in ((24 * HOUR, "d"), (HOUR, "h"), (HOUR // 60, "min"), (HOUR // 3600, "s")):
        if span >= unit:
            return f"{span / unit:,.1f}".removesuffix(".0") + f" {name}"
    return in_words(span)


def timeline_of(
    table: pd.DataFrame, start: Instant | None = None, end: Instant | None = None
) -> Timeline | None:
    """Return what `timeline` draws, or None where nothing happened in the window."""
    table = need_columns(table, COLUMNS, "timeline")
    starts, ends = (to_instants(table[c], f"timeline {c}") for c in ("start", "end"))
    low = int(starts.min()) if start is None and len(table) else to_micros(start or 0, "start")
    high = int(ends.max()) if end is None and len(table) else to_micros(end or 0, "end")
    lanes: dict[str, list[Span]] = {}
    for lane, kind, name, first, last, still in zip(
        table["lane"], table["kind"], table["name"], starts.tolist(), ends.tolist(),
        table["open"], strict=True,
    ):  # fmt: skip
        if first <= high and last >= low:
            lanes.setdefault(lane, []).append(Span(kind, name, first, last, bool(still)))
    if not lanes:
        return None
    # A mark at the edge is drawn whole, and the axis begins and ends at a handy time.
    step = step_for(max(high - low, HOUR), 60)
    low = (low // step - 1) * step if start is None else low
    high = (high // step + 2) * step if end is None else high
    drawn = [
        Lane(name, tuple(sorted(spans, key=lambda s: (s.start, s.end))))
        for name, spans in lanes.items()
    ]
    drawn.sort(key=lambda lane: (bool(lane.of("run")), lane.spans[0].start))
    cut = int(table.attrs.get("left_off", 0))
    return Timeline(tuple(drawn[:MOST_ROWS]), low, high, max(len(drawn) - MOST_ROWS, 0), cut)


def timeline(
    table: pd.DataFrame,
    *,
    start: Instant | None = None,
    end: Instant | None = None,
    title: str | None = None,
) -> Picture:
    """Draw what happened, a lane per timer and per instance.

    A filled dot is a firing, a line joins it to the tick at its due time: its lateness. A hollow
    dot is a skipped due time. A bar is a user task, hatched while it is open; the thin line is
    the instance.

    Parameters
    ----------
    table : DataFrame
        As `Runtime.timeline` returns it: ``lane``, ``kind`` (run, task, firing, skipped),
        ``name``, ``start``, ``end`` (UTC), ``open``.
    start, end : str, datetime or int, optional
        The window; by default all of the table.
    title : str, optional
        Written above.

    Raises
    ------
    UnusableInput
        If a column is missing or an instant cannot be read.
    """
    drawn = timeline_of(table, start, end)
    if drawn is None:
        return nothing("Nothing happened.", title)
    count = len(drawn.lanes)
    with canvas(WIDTH, count * 0.46 + 1.25 + (0.35 if title else 0)) as figure:
        put_title(figure, title)
        axes = figure.subplots()
        for y, lane in enumerate(drawn.lanes):
            _draw_lane(axes, y, lane)
        _dress(axes, drawn)
        return painted(figure, caption=drawn.caption(), alt=drawn.alt())


def _draw_lane(axes: Axes, y: int, lane: Lane) -> None:
    marks, bars = (y + _ABOVE, y + _BELOW) if lane.of("run") else (y, y)
    for run in lane.of("run"):
        left, right = days(run.start), days(run.end)
        axes.plot([left, right], [bars, bars], color=SLATE, linewidth=1.4, zorder=2)
        if not run.open:
            axes.plot([right], [bars], "|", color=SLATE, markersize=9, zorder=2)
    for task in lane.of("task"):
        first, last = float(days(task.start)), float(days(task.end))
        axes.add_patch(Rectangle((first, bars - _HIGH / 2), last - first, _HIGH, zorder=3,
                                 **_bar(task.open)))  # fmt: skip
    for firing in lane.of("firing"):
        left, right = days(firing.start), days(firing.end)
        axes.plot([left, right], [marks, marks], color=RED, linewidth=2.2, zorder=4)
        axes.plot([left], [marks], "|", color=INK, markersize=12, zorder=5)
        axes.plot([right], [marks], "o", color=RED, markersize=6, zorder=6, clip_on=False)
    hollow = days(np.array([span.start for span in lane.of("skipped")], np.int64))
    axes.plot(hollow, [marks] * len(hollow), "o", markersize=6.5, zorder=4, markerfacecolor="white",
              markeredgecolor=INK)  # fmt: skip


def _bar(still: bool) -> dict[str, Any]:
    look: dict[str, Any] = (
        {"facecolor": _PALE_BLUE, "hatch": "////"} if still else {"facecolor": BLUE}
    )
    return look | {"edgecolor": BLUE}


def _dress(axes: Axes, drawn: Timeline) -> None:
    count = len(drawn.lanes)
    for y in range(1, count, 2):
        axes.axhspan(y - 0.5, y + 0.5, color=BAND, zorder=0)
    axes.set_ylim(count - 0.5, -0.5)
    names = fitted([lane.name for lane in drawn.lanes], _LABEL_WIDTH, 9)
    axes.set_yticks(range(count), names)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#dfe3e3", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    time_axis(axes, drawn.start, drawn.end)
    due = Line2D([], [], color=INK, marker="|", linestyle="none", markersize=12)
    fired = Line2D([], [], color=RED, marker="o", markersize=6, linewidth=2.2)
    hollow = Line2D([], [], marker="o", linestyle="none", markersize=6.5, markerfacecolor="white",
                    markeredgecolor=INK)  # fmt: skip
    axes.legend(
        [due, fired, hollow, Patch(**_bar(False)), Patch(**_bar(True))],
        ["due", "fired (line: late)", "skipped", "user task done", "user task open"],
        loc="lower right", bbox_to_anchor=(1, 1), ncols=5, frameon=False, fontsize=8,
    )  # fmt: skip
