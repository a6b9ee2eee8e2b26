"""What the loss of each node does to each timer: a grid of effect letters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Patch
from matplotlib.path import Path
from matplotlib.textpath import TextPath

from seams_lab.errors import UnusableInput
from seams_lab.picture import Picture
from seams_lab.plot.names import (
    counted,
    drawable,
    fitted,
    listed,
    short_names,
    text_width,
    timer_names,
)
from seams_lab.plot.style import (
    EFFECTS,
    MOST_ROWS,
    WORST_FIRST,
    canvas,
    need_effects,
    nothing,
    painted,
    put_title,
)

MOST_NODES = 30
_LABEL_WIDTH, _NODE_WIDTH = 2.4, 1.3  # inches

Words = npt.NDArray[np.object_]


@dataclass(frozen=True)
class Matrix:
    """What `impact_matrix` draws: *words*, effects of all timers by all nodes.

    *rows* and *columns* are the places of the timers and nodes that are shown.
    """

    timers: tuple[str, ...]
    nodes: tuple[str, ...]
    words: Words
    rows: tuple[int, ...]
    columns: tuple[int, ...]

    @cached_property
    def cells(self) -> Words:
        """The effects that are shown."""
        return self.words[np.ix_(self.rows, self.columns)]

    @cached_property
    def stopped(self) -> list[int]:
        """How many timers the loss of each node stops."""
        return [int(n) for n in (self.words == "stops").sum(axis=0)]

    @cached_property
    def unplaced(self) -> int:
        """How many timers run nowhere."""
        return int((self.words == "unplaced").any(axis=1).sum())

    def row_sums(self) -> list[str]:
        """Return per timer shown how many of all nodes stop it and how many degrade it."""
        sums = []
        for row in self.words[list(self.rows)]:
            stops, degraded = int((row == "stops").sum()), int((row == "degraded").sum())
            sums.append("unplaced" if "unplaced" in row else f"{stops} S  {degraded} D")
        return sums

    def worst(self) -> list[str]:
        """Return the nodes whose loss stops most timers; none where no loss stops any."""
        most = max(self.stopped)
        return [n for n, k in zip(self.nodes, self.stopped, strict=True) if k == most > 0]

    def caption(self) -> str:
        """Return the node whose loss stops most, and what is left off."""
        worst = self.worst()
        timers = counted(len(self.timers), "timer")
        if worst:
            text = (
                f"Losing {listed(worst, last='or')} stops most: {max(self.stopped):,} of {timers}"
            )
        else:
            text = f"No single node's loss stops a timer ({timers})"
        if self.unplaced:
            runs = "runs" if self.unplaced == 1 else "run"
            text += f"; {counted(self.unplaced, 'timer')} {runs} nowhere (unplaced)"
        left = [
            counted(len(whole) - len(shown), noun)
            for whole, shown, noun in (
                (self.timers, self.rows, "less affected timer"),
                (self.nodes, self.columns, "less harmful node"),
            )
            if len(whole) > len(shown)
        ]
        return text + (f"; left off: {' and '.join(left)}" if left else "") + "."

    def alt(self, most: int = 12) -> str:
        """Return per node, the most harmful first, what its loss stops and degrades."""
        lines = [f"Effect of losing each of {counted(len(self.nodes), 'node')}. {self.caption()}"]
        order = sorted(range(len(self.nodes)), key=lambda j: -self.stopped[j])
        for j in order[:most]:
            column = self.words[:, j]
            stops = [t for t, word in zip(self.timers, column, strict=True) if word == "stops"]
            line = f"{self.nodes[j]}: stops {len(stops):,}"
            line += f" ({listed(stops)})" if stops else ""
            lines.append(f"{line}, degrades {int((column == 'degraded').sum()):,}.")
        if order[most:]:
            rest = counted(len(order) - most, "more node")
            lines.append(f"{rest}, each stops at most {self.stopped[order[most]]:,}.")
        return "\n".join(lines)


def matrix_of(matrix: pd.DataFrame) -> Matrix | None:
    """Return what `impact_matrix` draws, or None where there is no timer or no node."""
    if not isinstance(matrix, pd.DataFrame):
        raise UnusableInput(
            "matrix",
            f"a value of type {type(matrix).__name__}",
            "a DataFrame of effects, timers by nodes",
            "pass the matrix of impact",
        )
    if not matrix.columns.is_unique:
        raise UnusableInput("matrix", "a node twice", "one column per node", "drop one of them")
    if matrix.empty:
        return None
    words = matrix.astype(object).to_numpy()
    need_effects(set(pd.unique(words.ravel()).tolist()), "matrix")
    index = matrix.index
    if isinstance(index, pd.MultiIndex):
        timers = timer_names(list(index.get_level_values(-1)), list(index.get_level_values(0)))
    else:
        timers = short_names(list(index))
    nodes = short_names(list(matrix.columns))
    harm = (words == "stops") * (words.size + 1) + (words == "degraded")
    per_timer = harm.sum(axis=1) + (words == "unplaced").sum(axis=1) * (words.size + 1)
    rows = np.sort(np.argsort(-per_timer, kind="stable")[:MOST_ROWS])
    columns = np.sort(np.argsort(-harm.sum(axis=0), kind="stable")[:MOST_NODES])
    return Matrix(tuple(timers), tuple(nodes), words, tuple(rows.tolist()), tuple(columns.tolist()))


def impact_matrix(matrix: pd.DataFrame, *, title: str | None = None) -> Picture:
    """Draw what the loss of each node does to each timer, with sums per timer and per node.

    Parameters
    ----------
    matrix : DataFrame
        Effects (``untouched``, ``degraded``, ``stops``, ``unplaced``); the index holds
        events, or (process, event); a column per node.
    title : str, optional
        Written above.

    Returns
    -------
    Picture
        Of more than 60 timers or 30 nodes the most affected are drawn.

    Raises
    ------
    UnusableInput
        If *matrix* is no such table.
    """
    drawn = matrix_of(matrix)
    if drawn is None:
        return nothing("No timer or no node: no effect to show.", title)
    rows, columns = drawn.cells.shape
    cell = min(max(6.0 / columns, 0.24), 1.0)
    nodes = [drawn.nodes[j] for j in drawn.columns]
    widest = max(text_width(drawable(node), 9) for node in nodes)
    upright = 0.0 if widest < cell - 0.1 else min(widest, _NODE_WIDTH)
    with canvas(
        max(columns * cell + _LABEL_WIDTH + 1.2, 6.5),
        rows * (0.3 if rows <= 12 else 0.22) + 1.3 + upright + (0.35 if title else 0),
    ) as figure:
        put_title(figure, title)
        axes = figure.subplots()
        _draw_cells(axes, drawn.cells)
        axes.set_xticks(
            range(columns), fitted(nodes, _NODE_WIDTH, 9), fontsize=9, rotation=90 if upright else 0
        )
        _dress(axes, drawn)
        counts = {word: int((drawn.cells == word).sum()) for word in WORST_FIRST}
        handles = [
            Patch(
                facecolor=e.colour,
                edgecolor=e.ink if e.hatch else e.colour,
                hatch=e.hatch,
                label=f"{e.letter} {word} ({counts[word]:,})",
            )
            for word, e in EFFECTS.items()
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
        return painted(figure, caption=drawn.caption(), alt=drawn.alt())


def _draw_cells(axes: Axes, cells: Words) -> None:
    for word, effect in EFFECTS.items():
        places = np.argwhere(cells == word)
        squares = [
            [(j - 0.46, i - 0.44), (j + 0.46, i - 0.44), (j + 0.46, i + 0.44), (j - 0.46, i + 0.44)]
            for i, j in places
        ]
        axes.add_collection(
            PolyCollection(squares, facecolors=effect.colour, hatch=effect.hatch, linewidths=0)
        )
        # the letter as a marker: thousands of texts would take seconds
        axes.scatter(
            places[:, 1],
            places[:, 0],
            marker=_letter(effect.letter),
            color=effect.ink,
            s=3 if word == "untouched" else 30,
            linewidths=0,
        )


def _letter(letter: str) -> Path:
    """Return *letter* in bold as a path around the origin."""
    path = TextPath((0, 0), letter, size=10, prop=FontProperties(weight="bold"))
    box, codes = path.get_extents(), np.asarray(path.codes)
    points = np.asarray(path.vertices) - (np.asarray(box.min) + np.asarray(box.max)) / 2
    points[codes == Path.CLOSEPOLY] = 0  # no points, but a marker is scaled by them
    return Path(points, codes)


def _dress(axes: Axes, drawn: Matrix) -> None:
    rows, columns = len(drawn.rows), len(drawn.columns)
    size = 9 if rows <= 30 else 8
    axes.set_xlim(-0.5, columns - 0.5)
    axes.set_ylim(rows - 0.5, -0.5)
    timers = [drawn.timers[i] for i in drawn.rows]
    axes.set_yticks(range(rows), fitted(timers, _LABEL_WIDTH, size), fontsize=size)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    top = axes.secondary_xaxis("top")
    top.set_xticks(range(columns), [f"{drawn.stopped[j]:,}" for j in drawn.columns])
    top.set_xlabel("timers that stop when the node is lost", fontsize=8)
    right = axes.secondary_yaxis("right")
    right.set_yticks(range(rows), drawn.row_sums())
    for extra in (top, right):
        extra.tick_params(length=0, labelsize=size)
        extra.spines[:].set_visible(False)
