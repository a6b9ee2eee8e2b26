"""A layout of our own, for files without a diagram: columns from left to right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lxml import etree

from seams_lab.diagram.box import Box, Point
from seams_lab.diagram.scene import (
    BPMN,
    EVENTS,
    MOST,
    NODES,
    SUBPROCESSES,
    TASKS,
    Edge,
    File,
    Scene,
    Shape,
    name_of,
    tag_of,
)
from seams_lab.diagram.signs import GATEWAY_SIGNS
from seams_lab.diagram.text import clean

GAP, ROW_GAP, COLUMNS, TRACK = 56.0, 14.0, 8, 9.0


NARROWEST = 100.0  # a column leaves room for the badges of its events


@dataclass
class _Grid:
    """One process or sub-process laid out in columns from left to right, its corner at 0, 0."""

    size: tuple[float, float] = (0.0, 0.0)
    boxes: dict[etree._Element, Box] = field(default_factory=dict)
    lines: dict[etree._Element, tuple[Point, ...]] = field(default_factory=dict)


def lay_out(file: File) -> Scene:
    """Place every flow node of every process; flows run from left to right.

    Sub-processes are laid out before what holds them, by going backwards through the file.
    """
    containers = [e for e in file.everything if tag_of(e) in {"process", *SUBPROCESSES}]
    grids: dict[etree._Element, _Grid] = {}
    for container in reversed(containers):
        grids[container] = _grid(file, container, grids)
    processes = [c for c in containers if tag_of(c) == "process" and grids[c].boxes]
    shapes: list[Shape] = []
    edges: list[Edge] = []
    corner: dict[etree._Element, Point] = {}
    y = 0.0
    for process in processes:
        w, h = grids[process].size
        corner[process] = (0.0, y)
        if len(processes) > 1:
            name = name_of(file, process) or clean(process.get("id"))
            frame = Box(0, y, w, h)
            shapes.append(Shape(process.get("id", ""), "process", name, frame, None, process))
        y += h + 40
    for container in containers:
        if container not in corner:
            continue
        dx, dy = corner[container]
        for node, box in grids[container].boxes.items():
            if tag_of(node) in SUBPROCESSES:
                corner[node] = (box.x + dx, box.y + dy)
            place, full = box.moved(dx, dy), node in grids and bool(grids[node].boxes)
            shape = Shape(
                node.get("id", ""), tag_of(node), name_of(file, node), place, None, node, full
            )
            shapes.append(shape)
        for flow, points in grids[container].lines.items():
            moved = tuple((px + dx, py + dy) for px, py in points)
            edges.append(
                Edge(flow.get("id", ""), "sequenceFlow", name_of(file, flow), moved, None, flow)
            )
    over = max(len(shapes) - MOST, 0) + max(len(edges) - MOST, 0)
    notes = (f"{over} shapes or flows are left out",) if over else ()
    return Scene(tuple(shapes[:MOST]), tuple(edges[:MOST]), notes)


def _grid(file: File, container: etree._Element, inner: Mapping[etree._Element, _Grid]) -> _Grid:
    children = [c for c in container.iterchildren("{*}*") if tag_of(c) in NODES]
    owners = {c for c in children if tag_of(c) in TASKS | SUBPROCESSES}
    host = {c: h for c in children if (h := file.find(c.get("attachedToRef"))) in owners}
    nodes = [c for c in children if c not in host]
    number = {node: i for i, node in enumerate(nodes)}
    guests: dict[etree._Element, list[etree._Element]] = {}
    for guest, owner in host.items():
        guests.setdefault(owner, []).append(guest)
    flows = []
    for flow in container.iterchildren(BPMN + "sequenceFlow"):
        source, target = file.ends(flow)
        if source is not None and target in number and host.get(source, source) in number:
            flows.append((flow, source, target))
    ranks = _ranks(len(nodes), [(number[host.get(s, s)], number[t]) for _, s, t in flows])
    cells: dict[tuple[int, int], list[etree._Element]] = {}
    for node, rank in zip(nodes, ranks, strict=True):
        cells.setdefault((rank // COLUMNS, rank % COLUMNS), []).append(node)
    return _place(cells, guests, flows, inner, top=36.0)


def _ranks(count: int, arcs: Sequence[tuple[int, int]]) -> list[int]:
    """The column of each node: one more than its farthest predecessor, loops left out.

    Nodes without any flow follow in bands of their own.
    """
    after: list[list[int]] = [[] for _ in range(count)]
    entered = [False] * count
    for source, target in arcs:
        after[source].append(target)
        entered[target] = True
    state, finished = [0] * count, list[int]()
    back: set[tuple[int, int]] = set()
    for start in sorted(range(count), key=lambda n: (entered[n], n)):
        if state[start]:
            continue
        state[start], stack = 1, [(start, iter(after[start]))]
        while stack:
            node, targets = stack[-1]
            fresh = next((t for t in targets if not _seen(state, back, node, t)), None)
            if fresh is None:
                state[node] = 2
                finished.append(stack.pop()[0])
            else:
                state[fresh] = 1
                stack.append((fresh, iter(after[fresh])))
    ranks = [0] * count
    for node in reversed(finished):
        for target in after[node]:
            if (node, target) not in back:
                ranks[target] = max(ranks[target], ranks[node] + 1)
    alone = [n for n in range(count) if not after[n] and not entered[n]]
    bands = -(-(max(ranks, default=0) + 1) // COLUMNS) if len(alone) < count else 0
    for i, node in enumerate(alone):
        ranks[node] = bands * COLUMNS + i
    return ranks


def _seen(state: list[int], back: set[tuple[int, int]], node: int, target: int) -> bool:
    if state[target] == 1:
        back.add((node, target))
    return state[target] != 0


def _place(
    cells: Mapping[tuple[int, int], list[etree._Element]],
    guests: Mapping[etree._Element, list[etree._Element]],
    flows: Sequence[tuple[etree._Element, etree._Element, etree._Element]],
    inner: Mapping[etree._Element, _Grid],
    top: float,
) -> _Grid:
    """Give cells (band, column) their boxes, and flows their points."""
    sizes = {n: _size(n, guests.get(n, ()), inner) for stack in cells.values() for n in stack}
    widths = [NARROWEST] * (max((c for _, c in cells), default=0) + 1)
    for (_, column), stack in cells.items():
        widths[column] = max(widths[column], *(sizes[n][0] for n in stack))
    lefts = [GAP + sum(widths[:c]) + GAP * c for c in range(len(widths))]
    spot = {node: cell for cell, stack in cells.items() for node in stack}
    spot |= {event: spot[owner] for owner, events in guests.items() for event in events}
    detours = Counter(spot[s][0] for _, s, t in flows if not _is_next(spot[s], spot[t]))
    grid, exits, floors, y = _Grid(), dict[etree._Element, float](), list[float](), top
    for band in range(max((b for b, _ in cells), default=-1) + 1):
        stacks = [cells.get((band, column), []) for column in range(len(lefts))]
        tall = max(sum(sizes[n][2] + ROW_GAP for n in stack) for stack in stacks)
        for left, wide, stack in zip(lefts, widths, stacks, strict=True):
            at = y + (tall - sum(sizes[n][2] + ROW_GAP for n in stack)) / 2
            for i, node in enumerate(stack):
                w, h, room = sizes[node]
                grid.boxes[node] = Box(left + (wide - w) / 2, at + (room - h) / 2, w, h)
                exits[node] = left + wide + 0.6 * GAP * (i + 1) / (len(stack) + 1)
                at += room + ROW_GAP
        floors.append(y + tall)
        y += tall + TRACK * (detours[band] + 1)
    stubs = {}
    for owner, events in guests.items():
        box = grid.boxes[owner]
        for i, event in enumerate(events):
            middle = box.x + box.w * (i + 1) / (len(events) + 1)
            grid.boxes[event] = Box(middle - 18, box.y + box.h - 18, 36, 36)
            exits[event], stubs[event] = exits[owner] + 4 * (i % 3 + 1), 30 + 8.0 * (i % 3)
    _route(grid, flows, stubs, exits, spot, lefts, floors)
    grid.size = (lefts[-1] + widths[-1] + GAP, y + 10) if cells else (0.0, 0.0)
    return grid


def _is_next(source: tuple[int, int], target: tuple[int, int]) -> bool:
    return target == (source[0], source[1] + 1)


def _size(
    node: etree._Element, guests: Sequence[etree._Element], inner: Mapping[etree._Element, _Grid]
) -> tuple[float, float, float]:
    """Width, height, and the height that is kept free for it with its labels and badges."""
    tag = tag_of(node)
    w, h, spare = (
        (36.0, 36.0, 36.0)
        if tag in EVENTS
        else ((50.0, 50.0, 30.0) if tag in GATEWAY_SIGNS else (120.0, 76.0, 14.0))
    )
    if tag in SUBPROCESSES and inner[node].boxes:
        w, h = inner[node].size
    if guests:
        w, spare = max(w, 130.0 * len(guests)), 64.0
    return w, h, h + 2 * spare


def _route(
    grid: _Grid,
    flows: Sequence[tuple[etree._Element, etree._Element, etree._Element]],
    stubs: Mapping[etree._Element, float],
    exits: Mapping[etree._Element, float],
    spot: Mapping[etree._Element, tuple[int, int]],
    lefts: Sequence[float],
    floors: Sequence[float],
) -> None:
    """Lines run in the gaps between columns; one that does not go to the next column takes a
    track of its own under its band, so no line crosses a node. *stubs* says how far a line
    goes down from a boundary event before it turns.
    """
    tracks = [0] * len(floors)
    for flow, source, target in flows:
        a, b = grid.boxes[source], grid.boxes[target]
        ty, out = b.centre[1], exits[source]
        points = [(a.x + a.w, a.centre[1])]
        if source in stubs:
            points = [(a.centre[0], a.y + a.h), (a.centre[0], a.y + a.h + stubs[source])]
        points.append((out, points[-1][1]))
        band = spot[source][0]
        if _is_next(spot[source], spot[target]):
            points.append((out, ty))
        else:
            tracks[band] += 1
            floor = floors[band] + TRACK * tracks[band]
            enter = lefts[spot[target][1]] - GAP * (0.2 + 0.06 * (tracks[band] % 3))
            points += [(out, floor), (enter, floor), (enter, ty)]
        grid.lines[flow] = (*points, (b.x, ty))
