"""How each timer hangs on nodes: node → container → process → timer, the dead path marked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path

from seams_lab.picture import Picture
from seams_lab.plot import layout
from seams_lab.plot.names import counted, fitted, listed, short_names, timer_names
from seams_lab.plot.style import (
    EFFECTS,
    GREY,
    INK,
    MOST_ROWS,
    RED,
    SLATE,
    WORST_FIRST,
    canvas,
    need_columns,
    need_effects,
    nothing,
    painted,
    put_title,
)

HEADINGS = ("node", "container", "process", "timer")
_BOX, _GAP = 1.85, 0.75  # inches: width of a box, space between columns
_STATE_COLOURS = {"stops": RED, "degraded": "#c27c00", "unplaced": SLATE, "untouched": GREY}


@dataclass(frozen=True)
class Edge:
    """A link from box *source* of column *column* to box *target* of the next column.

    *state* is an effect word: what the loss does to everything that hangs on the link.
    """

    column: int
    source: str
    target: str
    stores: bool
    state: str

    @property
    def link(self) -> layout.Link:
        """The two boxes."""
        return self.source, self.target


@dataclass(frozen=True)
class Layers:
    """What `paths` draws: boxes by column from top to bottom, edges, the state of each box.

    *dead* are the nodes that are lost, *named* those of them that the caption names.
    """

    columns: tuple[tuple[str, ...], ...]
    edges: tuple[Edge, ...]
    states: tuple[Mapping[str, str], ...]
    dead: tuple[str, ...]
    named: tuple[str, ...]
    effects: Mapping[str, int]
    ways: Mapping[str, str]
    notes: tuple[str, ...]

    def caption(self) -> str:
        """Return what the loss stops, and what is left off."""
        timers = sum(self.effects.values())
        lost = f"With {listed(self.named)} lost, " if self.named else ""
        stops = "stops" if 1 in (self.effects["stops"], timers) else "stop"
        text = f"{lost}{self.effects['stops']:,} of {counted(timers, 'timer')} {stops}"
        for word in ("degraded", "unplaced"):
            if self.effects[word]:
                text += f", {self.effects[word]:,} {word}"
        return "; ".join([text, *self.notes]) + "."

    def alt(self, most: int = 12) -> str:
        """Return the counts and the timers that stop or degrade, with what they hang on."""
        lines = [self.caption()]
        for word in WORST_FIRST[:-1]:
            names = [name for name in self.columns[3] if self.states[3][name] == word]
            shown = [f"{name} ({self.ways[name]})" for name in names[:most]]
            if len(names) > most:
                shown.append(f"{len(names) - most:,} more")
            if names:
                lines.append(f"{word.capitalize()}: {'; '.join(shown)}.")
        return "\n".join(lines)


def layers_of(paths: pd.DataFrame, dead: Collection[object] = ()) -> Layers | None:
    """Return what `paths` draws, or None where there is no timer."""
    columns = ["node", "role", "container", "process", "event", "effect"]
    table = need_columns(paths, tuple(columns), "paths").astype(object)
    table = table[table["event"].notna()].where(table.notna(), None)
    if "lost" not in table.columns:
        table["lost"] = False
    table = table[[*columns, "lost"]].drop_duplicates()
    need_effects(set(table["effect"]), "paths")
    if table.empty:
        return None
    names, named_dead = _named(table, list(dict.fromkeys(map(str, dead))))
    taken = names.loc[names["lost"].astype(bool) & names["node"].notna(), "node"]
    dead_names = tuple(dict.fromkeys([*named_dead, *taken]))
    effect = _worst(names)
    counts = {word: sum(e == word for e in effect.values()) for word in WORST_FIRST}
    shown, notes = _chosen(names, effect, dead_names)
    states: list[dict[str, str]] = [
        dict.fromkeys(shown["node"].dropna(), "untouched") | dict.fromkeys(dead_names, "stops"),
        *(_together(shown, heading) for heading in HEADINGS[1:3]),
        {timer: effect[timer] for timer in shown["timer"]},
    ]
    edges = _edges(shown, set(dead_names))
    links = [list(dict.fromkeys(e.link for e in edges if e.column == i)) for i in range(3)]
    ordered = layout.order([list(state) for state in states], links)
    return Layers(
        tuple(map(tuple, ordered)),
        edges,
        tuple(states),
        dead_names,
        tuple(named_dead) or dead_names,
        counts,
        _ways(names),
        notes,
    )


def _ways(names: pd.DataFrame) -> dict[str, str]:
    """Return per timer what it hangs on: ``a, b and c (store) > container > process``."""
    found: dict[str, tuple[dict[str, None], ...]] = {}
    for row in names.to_dict("records"):
        parts = found.setdefault(row["timer"], ({}, {}, {}))
        for part, heading in zip(parts, HEADINGS[:3], strict=True):
            if row[heading] is not None:
                store = " (store)" if row["stores"] and heading == "node" else ""
                part[row[heading] + store] = None
    return {
        timer: " > ".join(
            listed(list(part), 4) if part else f"no {heading}"
            for part, heading in zip(parts, HEADINGS[:3], strict=True)
        )
        for timer, parts in found.items()
    }


def _named(table: pd.DataFrame, dead: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return the table, and *dead*, with names as they are written; ``timer`` is the event."""
    names = table[["effect", "lost"]].assign(stores=table["role"] == "stores")
    for heading in HEADINGS[:3]:
        given = [None if name is None else str(name) for name in table[heading]]
        extra = dead if heading == "node" else []
        distinct = list(dict.fromkeys([*(n for n in given if n is not None), *extra]))
        written = dict(zip(distinct, short_names(distinct), strict=True))
        if heading == "node":
            dead = [written[name] for name in dead]
        labels = [None if name is None else written[name] for name in given]
        names[heading] = pd.Series(labels, names.index, object)
    keys = list(zip(table["process"].map(str), table["event"].map(str), strict=True))
    timers = list(dict.fromkeys(keys))
    written_timer = dict(
        zip(timers, timer_names([e for _, e in timers], [p for p, _ in timers]), strict=True)
    )
    names["timer"] = [written_timer[key] for key in keys]
    return names, dead


def _worst(names: pd.DataFrame) -> dict[str, str]:
    """Return the worst effect of each timer."""
    worst: dict[str, str] = {}
    for name, word in zip(names["timer"], names["effect"], strict=True):
        worst[name] = min(worst.get(name, word), word, key=WORST_FIRST.index)
    return worst


def _together(names: pd.DataFrame, heading: str) -> dict[str, str]:
    """Return the state of each name: the effect its timers share, else ``degraded``."""
    known = names[names[heading].notna()]
    return {
        str(name): _shared(set(words))
        for name, words in known.groupby(heading, sort=False)["effect"]
    }


def _shared(words: set[str]) -> str:
    if len(words) == 1:
        return next(iter(words))
    return "degraded" if words & {"stops", "degraded"} else "untouched"


def _chosen(
    names: pd.DataFrame, effect: Mapping[str, str], dead: tuple[str, ...]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the rows that are drawn, and notes on what is left off.

    Of more than 60 timers the affected stay, of more than 60 nodes or containers the first.
    """
    shown, notes = names, []
    if len(effect) > MOST_ROWS:
        affected = [t for t, word in effect.items() if word != "untouched"] or list(effect)
        affected.sort(key=lambda timer: WORST_FIRST.index(effect[timer]))
        kept = set(affected[:MOST_ROWS])
        rest = [sum(effect[t] == word for t in effect if t not in kept) for word in WORST_FIRST]
        left = [f"{n:,} {word}" for n, word in zip(rest, WORST_FIRST, strict=True) if n]
        notes.append(f"{listed(left)} timers left off")
        shown = names[names["timer"].isin(kept)]
    for heading in HEADINGS[:2]:
        every = list(dict.fromkeys([*(dead if heading == "node" else ()), *shown[heading]]))
        every = [name for name in every if name is not None]
        if len(every) > MOST_ROWS:
            notes.append(f"{counted(len(every) - MOST_ROWS, heading)} left off")
            shown = shown[shown[heading].isin(every[:MOST_ROWS]) | shown[heading].isna()]
    return shown, tuple(notes)


def _edges(names: pd.DataFrame, dead: set[str]) -> tuple[Edge, ...]:
    edges: dict[tuple[int, str, str, bool], set[str]] = {}
    for row in names.to_dict("records"):
        for i in range(3):
            source, target = row[HEADINGS[i]], row[HEADINGS[i + 1]]
            if source is not None and target is not None:
                key = (i, source, target, bool(row["stores"]) and i == 0)
                edges.setdefault(key, set()).add(row["effect"])
    return tuple(
        Edge(i, a, b, stores, ("stops" if a in dead else "untouched") if i == 0 else _shared(words))
        for (i, a, b, stores), words in edges.items()
    )


def paths(
    paths: pd.DataFrame, *, dead: Collection[object] = (), title: str | None = None
) -> Picture:
    """Draw node → container → process → timer, and what the loss of nodes does along it.

    Parameters
    ----------
    paths : DataFrame
        A row per way from a node to a timer: ``node``, ``role`` (``runs``, or ``stores``
        where the node holds the container's store), ``container``, ``process``, ``event``,
        ``effect`` of the loss, and, if there, ``lost``: whether the node is lost (also with
        one that contains it). A missing node or container is drawn as none.
    dead : collection of str
        The nodes whose loss is asked about; drawn as lost even where *paths* lacks them.
    title : str, optional
        Written above.

    Returns
    -------
    Picture
        Of more than 60 timers only the affected are drawn, 60 at most.

    Raises
    ------
    UnusableInput
        If a column is missing or an effect is unknown.
    """
    drawn = layers_of(paths, dead)
    if drawn is None:
        return nothing("No timer hangs on any node.", title)
    tallest = max(map(len, drawn.columns))
    gap = 0.42 if tallest <= 14 else 0.27
    top, bottom = (0.85 if title else 0.5), 0.6
    width = 4 * _BOX + 3 * _GAP + 1.2
    height = (tallest - 1) * gap + 0.4 + top + bottom
    with canvas(width, height) as figure:
        put_title(figure, title)
        figure.set_layout_engine("none")
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        axes.set_xlim(-0.1, width - 0.1)  # data are inches, y down from the first box
        axes.set_ylim(height - top - 0.2, -top - 0.2)
        _draw(axes, drawn, gap)
        _draw_legend(figure, drawn)
        return painted(figure, caption=drawn.caption(), alt=drawn.alt())


def _draw(axes: Axes, drawn: Layers, gap: float) -> None:
    links = [list(dict.fromkeys(e.link for e in drawn.edges if e.column == i)) for i in range(3)]
    heights = layout.place(drawn.columns, links, gap)
    worst_last = sorted(drawn.edges, key=lambda e: -WORST_FIRST.index(e.state))
    for edge in worst_last:
        _draw_edge(axes, edge, heights)
    size = 8.5 if gap > 0.3 else 8
    for i, column in enumerate(drawn.columns):
        x = i * (_BOX + _GAP)
        axes.text(
            x + _BOX / 2,
            -0.38,
            HEADINGS[i],
            ha="center",
            va="center",
            fontsize=10,
            fontweight="bold",
        )
        for name, label in zip(column, fitted(column, _BOX - 0.16, size), strict=True):
            y, state = heights[i][name], drawn.states[i][name]
            _draw_box(axes, x, y, label, state, size, crossed=i == 0 and name in drawn.dead)
            if i == 3:
                effect = EFFECTS[state]
                axes.text(
                    x + _BOX + 0.08,
                    y,
                    f"{effect.mark} {state}",
                    va="center",
                    fontsize=size,
                    color=SLATE if state == "untouched" else INK,
                    fontweight="bold" if state == "stops" else "normal",
                )
        if not column:
            axes.text(x + _BOX / 2, 0, "none", ha="center", va="center", color=SLATE)


def _draw_edge(axes: Axes, edge: Edge, heights: list[Mapping[str, float]]) -> None:
    nudge = 0.05 if edge.stores else 0.0  # a node may both run and store one container
    x0 = edge.column * (_BOX + _GAP) + _BOX
    y0 = heights[edge.column][edge.source] + nudge
    x1, y1 = x0 + _GAP, heights[edge.column + 1][edge.target] + nudge
    bend = _GAP / 2
    curve = Path(
        [(x0, y0), (x0 + bend, y0), (x1 - bend, y1), (x1, y1)],
        [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4],
    )
    dashes = ":" if edge.stores else "--" if edge.state == "stops" else "-"
    width = 1.8 if edge.state in ("stops", "degraded") else 1.1
    axes.add_patch(
        PathPatch(
            curve,
            fill=False,
            edgecolor=_STATE_COLOURS[edge.state],
            linestyle=dashes,
            linewidth=width + 0.4 * edge.stores,
        )
    )
    if edge.column == 0 and edge.state == "stops":
        axes.plot((x0 + x1) / 2, (y0 + y1) / 2, marker="x", color=RED, markersize=6, mew=1.8)


def _draw_box(
    axes: Axes, x: float, y: float, label: str, state: str, size: float, *, crossed: bool
) -> None:
    half = 0.105 if size < 8.5 else 0.13
    edge = _STATE_COLOURS[state]
    face = {"stops": "#f9e3df", "degraded": "#fff1d6"}.get(state, "white")
    axes.add_patch(
        FancyBboxPatch(
            (x, y - half),
            _BOX,
            2 * half,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor=face,
            edgecolor=edge,
            zorder=3,
            linewidth=1.6 if state in ("stops", "degraded") else 1.0,
            linestyle="--" if state == "unplaced" else "-",
        )
    )
    if crossed:
        for ys in ((y - half, y + half), (y + half, y - half)):
            axes.plot((x, x + _BOX), ys, color=RED, linewidth=0.9, alpha=0.55, zorder=4)
    axes.text(x + _BOX / 2, y, label, ha="center", va="center", fontsize=size, zorder=5)


def _draw_legend(figure: Figure, drawn: Layers) -> None:
    lines = [
        Line2D([], [], color=GREY, label="runs on, executes, fires"),
        Line2D([], [], color=GREY, linestyle=":", linewidth=1.6, label="keeps its state on"),
        Line2D([], [], color=RED, linestyle="--", marker="x", label="lost"),
        Line2D([], [], color=_STATE_COLOURS["degraded"], label="partly lost"),
    ]
    hurt = drawn.effects["stops"] + drawn.effects["degraded"]
    figure.legend(
        handles=lines if drawn.dead or hurt else lines[:2],
        loc="lower center",
        ncols=4,
        frameon=False,
        fontsize=8.5,
        handlelength=3,
    )
