"""A BPMN file drawn as SVG: its diagram interchange, with a badge on each timer.

Three steps, each a plain value: a file's tree becomes a `Scene` (boxes and lines, either read
from its ``bpmndi:BPMNPlane`` or laid out here), the scene becomes SVG, the SVG a `Picture`.
Every text of the file is escaped, and every number of it is parsed and printed again, so
nothing in a file can become markup.

The module is longer than most: the notation has about sixty signs, and a table of signs does
not get easier to read when it is spread over files.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from lxml import etree

from seams_lab.errors import UnusableInput
from seams_lab.picture import Picture

BPMN = "{http://www.omg.org/spec/BPMN/20100524/MODEL}"
BPMNDI = "{http://www.omg.org/spec/BPMN/20100524/DI}"
DC = "{http://www.omg.org/spec/DD/20100524/DC}"
DI = "{http://www.omg.org/spec/DD/20100524/DI}"

FARTHEST = 100_000.0  # a coordinate or size beyond this (in diagram units) is not drawn
MOST = 5_000  # shapes, and edges, that are drawn of one diagram

INK, PAPER, FAINT = "#222222", "#ffffff", "#6b6b6b"
FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"

# Tone: (line, fill, text) colours and the glyph, a path in a square of 12 by 12. The colours
# are told apart with any kind of colour vision; the glyph says the same without colour.
TONES: dict[str, tuple[str, str, str, str]] = {
    "ok": ("#1f6fb5", "#e8f2fb", "#111111", "M1,6.5L4.5,10L11,2"),
    "warning": ("#b36b00", "#fff3d9", "#111111", "M6,1L11.5,11H.5ZM6,4.5V7.5M6,9V9.6"),
    "refused": ("#bd1f01", "#fdeae6", "#111111", "M2,2L10,10M10,2L2,10"),
    "off": ("#6b7675", "#f3f4f4", "#333333", "M1,6H11"),
    "dead": ("#111111", "#3a3a3a", "#ffffff", "M6,1V11M2,7L6,11L10,7"),
}

# Signs inside events, drawn around the origin inside a circle of radius 18.
EVENT_SIGNS = {
    "timer": "M0,-9A9,9 0 1 0 .01,-9ZM0,-6V0L4.5,2.5M0,-9V-7M0,9V7M-9,0H-7M9,0H7",
    "message": "M-8,-5.5H8V5.5H-8ZM-8,-5.5L0,1L8,-5.5",
    "error": "M-7,6L-3,-6L2,2L7,-6L3,7L-2,-1Z",
    "signal": "M0,-8L8,6H-8Z",
    "escalation": "M0,-8L6,8L0,2L-6,8Z",
    "terminate": "M0,-9A9,9 0 1 0 .01,-9Z",
    "conditional": "M-6,-8H6V8H-6ZM-4,-4H4M-4,0H4M-4,4H4",
    "link": "M-8,-3H2V-7L9,0L2,7V3H-8Z",
    "compensate": "M0,-6V6L-8,0ZM8,-6V6L0,0Z",
    "cancel": "M-7,-5L-5,-7L0,-2L5,-7L7,-5L2,0L7,5L5,7L0,2L-5,7L-7,5L-2,0Z",
    "multiple": "M0,-8L8,-2L5,7H-5L-8,-2Z",
    "parallelMultiple": "M-2,-8H2V-2H8V2H2V8H-2V2H-8V-2H-2Z",
}
# Signs of tasks, in a square of 16 by 16; the flag says whether the sign is filled.
TASK_SIGNS = {
    "userTask": ("M8,1A3.5,3.5 0 1 0 8.01,1ZM1.5,15C1.5,8 14.5,8 14.5,15Z", False),
    "serviceTask": (
        "M8,3.2A4.8,4.8 0 1 0 8.01,3.2ZM8,6.2A1.8,1.8 0 1 0 8.01,6.2ZM8,.4V3.2M8,12.8V15.6"
        "M.4,8H3.2M12.8,8H15.6M2.6,2.6L4.6,4.6M11.4,11.4L13.4,13.4M13.4,2.6L11.4,4.6"
        "M4.6,11.4L2.6,13.4",
        False,
    ),
    "scriptTask": ("M4,1H14C10,5 14,9 11,15H1C5,10 1,6 4,1ZM5.5,5H11M5,8H11M5,11H10.5", False),
    "manualTask": ("M1,6L5,2H9L8,4H15V6H9M15,6V8H9M14,8V10H9M13,10V12.5H5L1,10Z", False),
    "businessRuleTask": ("M1,2H15V14H1ZM1,5.5H15M1,10H15M5.5,5.5V14", False),
    "sendTask": ("M1,3H15V13H1ZM1,3L8,9L15,3", True),
    "receiveTask": ("M1,3H15V13H1ZM1,3L8,9L15,3", False),
}
GATEWAY_SIGNS = {
    "exclusiveGateway": "M-8,-9L8,9M8,-9L-8,9",
    "parallelGateway": "M0,-11V11M-11,0H11",
    "inclusiveGateway": "M0,-10A10,10 0 1 0 .01,-10Z",
    "complexGateway": "M0,-11V11M-11,0H11M-8,-8L8,8M8,-8L-8,8",
    "eventBasedGateway": "M0,-13A13,13 0 1 0 .01,-13ZM0,-10.5A10.5,10.5 0 1 0 .01,-10.5Z"
    "M0,-7L7,-1.5L4.5,6H-4.5L-7,-1.5Z",
}
EVENTS = {
    "startEvent",
    "endEvent",
    "boundaryEvent",
    "intermediateCatchEvent",
    "intermediateThrowEvent",
    "implicitThrowEvent",
}
SUBPROCESSES = {"subProcess", "transaction", "adHocSubProcess"}
TASKS = {*TASK_SIGNS, "task", "callActivity"}
NODES = {*EVENTS, *GATEWAY_SIGNS, *TASKS, *SUBPROCESSES}
DATA = {
    "dataObject",
    "dataObjectReference",
    "dataInput",
    "dataOutput",
    "dataStore",
    "dataStoreReference",
}
FLOWS = {
    "sequenceFlow",
    "messageFlow",
    "association",
    "dataInputAssociation",
    "dataOutputAssociation",
}


class Box(NamedTuple):
    """A rectangle in diagram units; y grows downwards."""

    x: float
    y: float
    w: float
    h: float

    @property
    def centre(self) -> Point:
        """The middle of the box."""
        return self.x + self.w / 2, self.y + self.h / 2

    def overlap(self, other: Box) -> float:
        """The area that both boxes cover."""
        width = min(self.x + self.w, other.x + other.w) - max(self.x, other.x)
        height = min(self.y + self.h, other.y + other.h) - max(self.y, other.y)
        return max(width, 0.0) * max(height, 0.0)

    def moved(self, dx: float, dy: float) -> Box:
        """The same box elsewhere."""
        return Box(self.x + dx, self.y + dy, self.w, self.h)


Point = tuple[float, float]


@dataclass(frozen=True)
class Badge:
    """What is written beside a timer.

    Parameters
    ----------
    text : str
        A few words: ``daily 08:00Z``, ``NO_START``. More than 34 characters are cut in the
        picture and kept in its text alternative.
    tone : str
        ``ok``, ``warning``, ``refused``, ``off`` (out of scope, not lifted) or ``dead``
        (nobody is left to fire it). Any other tone raises `UnusableInput`.
    """

    text: str
    tone: str

    def __post_init__(self) -> None:
        if self.tone not in TONES:
            raise UnusableInput(
                "Badge",
                f"tone {self.tone!r}",
                f"one of {', '.join(TONES)}",
                "use one of these tones",
            )


@dataclass(frozen=True)
class Shape:
    """One node, pool, lane or artefact: what it is and where it goes."""

    id: str
    tag: str
    name: str
    box: Box
    label: Box | None = None
    element: etree._Element | None = None
    expanded: bool = False
    across: bool = True  # a pool or lane whose name stands in a band at its left


@dataclass(frozen=True)
class Edge:
    """One flow or association: what it is and the points it passes."""

    id: str
    tag: str
    name: str
    points: tuple[Point, ...]
    label: Box | None = None
    element: etree._Element | None = None


@dataclass(frozen=True)
class Scene:
    """What is to be drawn, and what a person should know about it (``notes``)."""

    shapes: tuple[Shape, ...]
    edges: tuple[Edge, ...]
    notes: tuple[str, ...] = ()


class _File:
    """The elements of a file, found once. Holds the tree's elements, so they stay the same."""

    def __init__(self, root: etree._Element) -> None:
        self.everything = list(root.iter("{*}*"))
        self.by_id: dict[str, etree._Element] = {}
        for element in self.everything:
            if element.tag.startswith(BPMN) and (key := element.get("id")):
                self.by_id.setdefault(key, element)
        self.planes = [e for e in self.everything if e.tag == BPMNDI + "BPMNPlane"]

    def find(self, reference: str | None) -> etree._Element | None:
        """The element that a reference, with or without a prefix, names."""
        if not reference:
            return None
        return self.by_id.get(reference, self.by_id.get(reference.rpartition(":")[2]))

    def definitions(self, event: etree._Element) -> list[str]:
        """The kinds of an event's definitions: ``timer``, ``message``, ..."""
        found = []
        for child in event.iterchildren("{*}*"):
            referenced = (
                self.find(_clean(child.text)) if _tag(child) == "eventDefinitionRef" else child
            )
            kind = _tag(referenced)
            if kind.endswith("EventDefinition"):
                found.append(kind.removesuffix("EventDefinition"))
        return found

    def timers(self) -> list[etree._Element]:
        """Every event with a timer definition, in the order of the file."""
        return [e for e in self.everything if _tag(e) in EVENTS and "timer" in self.definitions(e)]

    def ends(self, flow: etree._Element) -> tuple[etree._Element | None, etree._Element | None]:
        """Where a flow or association starts and ends; a data association may name its task
        only by lying in it, and its data only in a child.
        """
        source, target = flow.get("sourceRef"), flow.get("targetRef")
        if _tag(flow).startswith("data"):
            source, target = flow.findtext(BPMN + "sourceRef"), flow.findtext(BPMN + "targetRef")
        ends = self.find(_clean(source)), self.find(_clean(target))
        owner = flow.getparent()
        if _tag(flow) == "dataInputAssociation":
            return ends[0], owner
        if _tag(flow) == "dataOutputAssociation":
            return owner, ends[1]
        return ends


def draw(
    root: etree._Element,
    badges: Mapping[str, Badge] = {},
    *,
    title: str,
    caption: str | None = None,
    plane: int | None = None,
) -> Picture:
    """Draw a BPMN file, with a badge beside each element that *badges* names.

    Parameters
    ----------
    root : lxml.etree._Element
        The ``bpmn:definitions`` of a file that a careful reader has parsed.
    badges : Mapping[str, Badge]
        BPMN id → badge.
    title : str
        What the picture shows, for its tooltip and its text alternative.
    caption : str, optional
        The line under the picture; the title if absent. What the file lacks is added to it.
    plane : int, optional
        Which ``bpmndi:BPMNPlane`` of the file, from 0. By default the first that has a shape.
        A file in which no plane has one is laid out here, and the caption says so.

    Raises
    ------
    UnusableInput
        The file holds nothing that can be drawn, or has no such plane.
    """
    file = _File(root)
    scene = _scene(file, plane)
    canvas = _Canvas(file, scene)
    for shape in scene.shapes:
        canvas.shape(shape, badges.get(shape.id))
    for edge in scene.edges:
        canvas.edge(edge)
    for shape in scene.shapes:
        if shape.id in badges:
            canvas.badge(shape, badges[shape.id])
    timers, shown = file.timers(), {shape.id for shape in scene.shapes}
    hidden = [_title_of(t) for t in timers if t.get("id") not in shown]
    notes = list(scene.notes)
    if hidden:
        notes.append(f"not in this picture: {_some(hidden, 3)}")
    line = ". ".join([_clean(caption) or _clean(title), *notes])
    alt = _alternative(title, scene, timers, badges, notes)
    return Picture.from_svg(canvas.svg(title, alt), caption=line, alt=alt)


def _alternative(
    title: str,
    scene: Scene,
    timers: Sequence[etree._Element],
    badges: Mapping[str, Badge],
    notes: Sequence[str],
) -> str:
    nodes = sum(shape.tag in NODES for shape in scene.shapes)
    words = [f"{_clean(title)}: a BPMN diagram of {nodes} nodes and {len(scene.edges)} flows"]
    rows = []
    for timer in timers:
        badge = badges.get(timer.get("id", ""))
        said = f"{_clean(badge.text)} [{badge.tone}]" if badge else "no badge"
        rows.append(f"{_title_of(timer)}: {said}")
    words.append(f"{len(rows)} timers: {_some(rows, 200, '; ')}" if rows else "No timers")
    return ". ".join([*words, *notes])


def _title_of(element: etree._Element) -> str:
    name, key = _clean(element.get("name")), _clean(element.get("id"))
    return f"{name} ({key})" if name else key or "(no id)"


def _some(items: Sequence[str], most: int, between: str = ", ") -> str:
    rest = f"{between}and {len(items) - most} more" if len(items) > most else ""
    return between.join(items[:most]) + rest


# ------------------------------------------------------------------ the file → a scene


def _scene(file: _File, wanted: int | None) -> Scene:
    """Read the wanted plane, or lay the file out if it has none that can be used."""
    if wanted is not None and not 0 <= wanted < len(file.planes):
        raise UnusableInput(
            "diagram",
            f"plane {wanted}",
            f"a plane of 0 to {len(file.planes) - 1}"
            if file.planes
            else "no plane, for the file has none",
            "leave plane out to draw the first",
        )
    for index in range(len(file.planes)) if wanted is None else [wanted]:
        scene = _read_plane(file, file.planes[index])
        if scene.shapes:
            others = [_plane_name(p) for i, p in enumerate(file.planes) if i != index]
            more = (f"Other diagrams of the file: {_some(others, 3)}",) if others else ()
            return Scene(scene.shapes, scene.edges, scene.notes + more)
    scene = _lay_out(file)
    if not scene.shapes:
        raise UnusableInput(
            "diagram",
            "no process with a task, event or gateway",
            "a BPMN 2.0 file with at least one",
            "check the namespace of its elements",
        )
    why = "the file's diagram has no usable shape" if file.planes else "the file has no diagram"
    return Scene(scene.shapes, scene.edges, (f"Laid out by seams-lab: {why}", *scene.notes))


def _plane_name(plane: etree._Element) -> str:
    diagram = plane.getparent()
    name = diagram.get("name") if diagram is not None else None
    return _clean(name) or _clean(plane.get("bpmnElement")) or "(no name)"


def _read_plane(file: _File, plane: etree._Element) -> Scene:
    shapes: list[Shape] = []
    edges: list[Edge] = []
    lost = 0
    drawn = {_tail(s.get("bpmnElement")) for s in plane.iterchildren(BPMNDI + "BPMNShape")}
    for mark in plane.iterchildren(BPMNDI + "BPMNShape", BPMNDI + "BPMNEdge"):
        is_shape = mark.tag == BPMNDI + "BPMNShape"
        if len(shapes if is_shape else edges) >= MOST:
            lost += 1
        elif is_shape and (shape := _read_shape(file, mark, drawn)):
            shapes.append(shape)
        elif not is_shape and (edge := _read_edge(file, mark, shapes)):
            edges.append(edge)
        else:
            lost += 1
    edges += _missing_edges(file, shapes, edges)
    notes = []
    if lost:
        notes.append(f"{lost} shapes or edges of the file's diagram cannot be drawn")
    return Scene(tuple(shapes), tuple(edges), tuple(notes))


def _read_shape(file: _File, mark: etree._Element, drawn: set[str]) -> Shape | None:
    box = _bounds(mark)
    if box is None or box.w <= 0 or box.h <= 0:
        return None
    element = file.find(mark.get("bpmnElement"))
    key = element.get("id", "") if element is not None else _clean(mark.get("bpmnElement"))
    expanded = mark.get("isExpanded") in ("true", "1")
    if element is not None and _tag(element) in SUBPROCESSES and mark.get("isExpanded") is None:
        expanded = any(child.get("id") in drawn for child in element.iterchildren("{*}*"))
    turned = mark.get("isHorizontal")
    across = turned in ("true", "1") if turned is not None else box.w >= box.h
    return Shape(
        key,
        _tag(element),
        _name(file, element),
        box,
        _label_bounds(mark),
        element,
        expanded,
        across,
    )


def _read_edge(file: _File, mark: etree._Element, shapes: Sequence[Shape]) -> Edge | None:
    element = file.find(mark.get("bpmnElement"))
    points = []
    for way in mark.iterchildren(DI + "waypoint"):
        x, y = _number(way.get("x")), _number(way.get("y"))
        if x is not None and y is not None:
            points.append((x, y))
    if len(points) < 2:
        return None  # a flow with both ends drawn gets a straight line afterwards
    key = element.get("id", "") if element is not None else _clean(mark.get("bpmnElement"))
    return Edge(
        key, _tag(element), _name(file, element), tuple(points), _label_bounds(mark), element
    )


def _missing_edges(file: _File, shapes: Sequence[Shape], edges: Sequence[Edge]) -> Iterator[Edge]:
    """Straight lines for flows whose ends are drawn and that have no usable edge."""
    at = {shape.id: shape for shape in shapes if shape.tag in NODES}
    known = {edge.id for edge in edges}
    for flow in file.everything:
        if _tag(flow) not in ("sequenceFlow", "messageFlow") or flow.get("id") in known:
            continue
        source, target = (
            at.get(e.get("id", "")) if e is not None else None for e in file.ends(flow)
        )
        if source and target and source is not target:
            line = (source.box.centre, target.box.centre)
            yield Edge(flow.get("id", ""), _tag(flow), _name(file, flow), line, None, flow)


def _bounds(mark: etree._Element) -> Box | None:
    bounds = mark.find(DC + "Bounds")
    if bounds is None:
        return None
    x, y, w, h = (_number(bounds.get(side)) for side in ("x", "y", "width", "height"))
    return None if x is None or y is None or w is None or h is None else Box(x, y, w, h)


def _label_bounds(mark: etree._Element) -> Box | None:
    label = mark.find(BPMNDI + "BPMNLabel")
    box = _bounds(label) if label is not None else None
    return box if box and box.w >= 0 and box.h >= 0 and (box.w or box.h or box.x or box.y) else None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if abs(value) <= FARTHEST else None  # also refuses NaN


def _tag(element: etree._Element | None) -> str:
    """The local name of a BPMN element; empty for anything else."""
    if element is None or not isinstance(element.tag, str) or not element.tag.startswith(BPMN):
        return ""
    return element.tag[len(BPMN) :]


def _tail(reference: str | None) -> str:
    return (reference or "").rpartition(":")[2]


def _name(file: _File, element: etree._Element | None) -> str:
    if element is None:
        return ""
    if _tag(element) == "textAnnotation":
        return _clean(element.findtext(BPMN + "text"))
    name = element.get("name")
    if not name and _tag(element) == "participant":
        process = file.find(element.get("processRef"))
        name = process.get("name") if process is not None else None
    return _clean(name)


# ------------------------------------------------------------------ a layout of our own

GAP, ROW_GAP, COLUMNS, TRACK = 56.0, 14.0, 8, 9.0
NARROWEST = 100.0  # a column leaves room for the badges of its events


@dataclass
class _Grid:
    """One process or sub-process laid out in columns from left to right, its corner at 0, 0."""

    size: tuple[float, float] = (0.0, 0.0)
    boxes: dict[etree._Element, Box] = field(default_factory=dict)
    lines: dict[etree._Element, tuple[Point, ...]] = field(default_factory=dict)


def _lay_out(file: _File) -> Scene:
    """Place every flow node of every process; flows run from left to right.

    Sub-processes are laid out before what holds them, by going backwards through the file.
    """
    containers = [e for e in file.everything if _tag(e) in {"process", *SUBPROCESSES}]
    grids: dict[etree._Element, _Grid] = {}
    for container in reversed(containers):
        grids[container] = _grid(file, container, grids)
    processes = [c for c in containers if _tag(c) == "process" and grids[c].boxes]
    shapes: list[Shape] = []
    edges: list[Edge] = []
    corner: dict[etree._Element, Point] = {}
    y = 0.0
    for process in processes:
        w, h = grids[process].size
        corner[process] = (0.0, y)
        if len(processes) > 1:
            name = _name(file, process) or _clean(process.get("id"))
            frame = Box(0, y, w, h)
            shapes.append(Shape(process.get("id", ""), "process", name, frame, None, process))
        y += h + 40
    for container in containers:
        if container not in corner:
            continue
        dx, dy = corner[container]
        for node, box in grids[container].boxes.items():
            if _tag(node) in SUBPROCESSES:
                corner[node] = (box.x + dx, box.y + dy)
            place, full = box.moved(dx, dy), node in grids and bool(grids[node].boxes)
            shape = Shape(
                node.get("id", ""), _tag(node), _name(file, node), place, None, node, full
            )
            shapes.append(shape)
        for flow, points in grids[container].lines.items():
            moved = tuple((px + dx, py + dy) for px, py in points)
            edges.append(
                Edge(flow.get("id", ""), "sequenceFlow", _name(file, flow), moved, None, flow)
            )
    over = max(len(shapes) - MOST, 0) + max(len(edges) - MOST, 0)
    notes = (f"{over} shapes or flows are left out",) if over else ()
    return Scene(tuple(shapes[:MOST]), tuple(edges[:MOST]), notes)


def _grid(file: _File, container: etree._Element, inner: Mapping[etree._Element, _Grid]) -> _Grid:
    children = [c for c in container.iterchildren("{*}*") if _tag(c) in NODES]
    host = {c: h for c in children if (h := file.find(c.get("attachedToRef"))) in children}
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
    tag = _tag(node)
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


# ------------------------------------------------------------------ a scene → SVG

POOLS, BLOCKS, LINES, VEILS, BODIES, RIMS, WORDS, BADGES = range(8)  # from back to front


class _Canvas:
    """Collects SVG in layers, and remembers what is taken, so that badges find a free place."""

    def __init__(self, file: _File, scene: Scene) -> None:
        self.file = file
        self.layers: list[list[str]] = [[] for _ in range(8)]
        self.blocks: list[tuple[float, str]] = []  # sub-processes, largest first
        self.extent: list[Box] = []
        self.taken: list[Box] = []
        self.bands: list[Box] = []
        self.lines: list[tuple[Point, Point]] = []
        self.shape_at = {s.id: s for s in scene.shapes if s.tag in NODES and not s.expanded}

    # -- shapes

    def shape(self, shape: Shape, badge: Badge | None) -> None:
        """Draw one shape with its name."""
        self.extent.append(shape.box)
        if shape.tag in ("participant", "lane", "process"):
            self._pool(shape)
        elif shape.expanded or shape.tag == "group":
            self._block(shape)
        else:
            self.taken.append(shape.box)
            if shape.tag in EVENTS:
                self._put(RIMS, shape, self._event(shape, badge))
                self._label(shape)
            elif shape.tag in GATEWAY_SIGNS:
                self._put(BODIES, shape, self._gateway(shape))
                self._label(shape)
            elif shape.tag in DATA:
                self._put(BODIES, shape, self._data(shape))
                self._label(shape)
            elif shape.tag == "textAnnotation":
                self._put(BODIES, shape, self._annotation(shape))
            else:
                self._put(BODIES, shape, self._task(shape))

    def _put(self, layer: int, shape: Shape | Edge, drawing: str) -> None:
        hint = shape.name or shape.id
        title = f"<title>{_escape(f'{hint} ({shape.id})' if shape.name else hint)}</title>"
        kind = shape.tag or "missing"
        self.layers[layer].append(
            f'<g class="{_escape(kind)}" data-element="{_escape(shape.id)}">{title}{drawing}</g>'
        )

    def _pool(self, shape: Shape) -> None:
        x, y, w, h = shape.box
        drawing = _rect(shape.box, fill=PAPER if shape.tag != "lane" else "none", line=FAINT)
        if shape.tag == "process":
            name = _fit(shape.name, w - 20, 12)
            drawing += _text([name], x + 10, y + 8, 12, anchor="start", bold=True)
            self._put(POOLS, shape, drawing)
            return
        deep = min(28.0, (w if shape.across else h) / 2)
        band = Box(x, y, deep, h) if shape.across else Box(x, y, w, deep)
        step = (deep, 0.0) if shape.across else (0.0, deep)
        for _ in range(4):  # some tools let a lane begin where its pool begins
            if any(band.overlap(other) > 0.3 * band.w * band.h for other in self.bands):
                band = band.moved(*step)
        self.bands.append(band)
        cx, cy = band.centre
        if shape.across:
            side = f"M{_n(band.x + deep)},{_n(y)}V{_n(y + h)}"
            turn = f' transform="rotate(-90 {_n(cx)} {_n(cy)})"'
            words = _centred(shape.name, Box(cx - h / 2 + 2, cy - deep / 2, h - 4, deep))
            drawing += _path(side, FAINT) + f"<g{turn}>{words}</g>"
        else:
            drawing += _path(f"M{_n(x)},{_n(band.y + deep)}H{_n(x + w)}", FAINT)
            drawing += _centred(shape.name, band)
        self._put(POOLS, shape, drawing)

    def _block(self, shape: Shape) -> None:
        """An expanded sub-process, or a group: a frame around other shapes."""
        x, y, w, _ = shape.box
        if shape.tag == "group":
            drawing = _rect(shape.box, radius=10, fill="none", line=FAINT, dash="8 3 2 3")
        else:
            drawing = _rect(shape.box, radius=10, fill="#fbfbfb", dash=self._loose(shape))
            if shape.tag == "transaction":
                drawing += _rect(Box(x + 3, y + 3, w - 6, shape.box.h - 6), radius=8, fill="none")
            lines = _wrap(shape.name, w - 16, 12, 2)
            drawing += _text(lines, x + w / 2, y + 7, 12)
            wide = max((_width(line, 12) for line in lines), default=0.0)
            self.taken.append(Box(x + (w - wide) / 2, y + 7, wide, 14.4 * len(lines)))
        layer = self.layers[BLOCKS]
        self._put(BLOCKS, shape, drawing)
        self.blocks.append((-w * shape.box.h, layer.pop()))

    def _loose(self, shape: Shape) -> str:
        by_event = shape.element is not None and shape.element.get("triggeredByEvent") in (
            "true",
            "1",
        )
        return "2 3" if by_event else ""

    def _task(self, shape: Shape) -> str:
        x, y, w, h = shape.box
        if shape.tag not in NODES:  # nothing we know, or no such element in the file
            said = shape.name or (shape.tag and shape.id) or f"{shape.id} (not in the file)"
            drawing = _rect(
                shape.box, radius=4, fill="#f6f6f6", line=FAINT, dash="" if shape.tag else "5 3"
            )
            return drawing + _centred(said, shape.box, FAINT)
        drawing = _rect(
            shape.box,
            radius=9,
            width=4 if shape.tag == "callActivity" else 1.5,
            dash=self._loose(shape),
        )
        if shape.tag == "transaction":
            drawing += _rect(Box(x + 3, y + 3, w - 6, h - 6), radius=7, fill="none")
        top = 0.0
        if shape.tag in TASK_SIGNS:
            path, filled = TASK_SIGNS[shape.tag]
            drawing += _sign(path, x + 5, y + 5, 1, filled)
            top = 14.0 if h > 40 else 0.0
        foot = self._foot(shape)
        if foot:
            drawing += _sign(foot, x + w / 2, y + h - 9, 1, False)
        words = Box(x + 4, y + top, w - 8, h - top * (1.3 if not foot else 1) - (14 if foot else 0))
        return drawing + _centred(shape.name, words)

    def _foot(self, shape: Shape) -> str:
        """The signs at the foot of an activity: collapsed, in parallel, in sequence, loop."""
        signs = "M-6,-6H6V6H-6ZM0,-4V4M-4,0H4" if shape.tag in SUBPROCESSES else ""
        for child in shape.element.iterchildren("{*}*") if shape.element is not None else ():
            if _tag(child) == "multiInstanceLoopCharacteristics":
                flat = child.get("isSequential") in ("true", "1")
                signs += "M10,-4H20M10,0H20M10,4H20" if flat else "M11,-5V5M15,-5V5M19,-5V5"
            elif _tag(child) == "standardLoopCharacteristics":
                signs += "M13,4A5,5 0 1 1 17,4M13,0V4H9"
        return signs

    def _event(self, shape: Shape, badge: Badge | None) -> str:
        (x, y), r = shape.box.centre, min(shape.box.w, shape.box.h) / 2
        element, tag = shape.element, shape.tag
        line = TONES[badge.tone][0] if badge else INK
        word = "cancelActivity" if tag == "boundaryEvent" else "isInterrupting"
        calm = element is not None and element.get(word, "").strip() in ("false", "0")
        dash = "4 3" if calm else ""
        drawing = _circle(x, y, r, line, 3.5 if tag == "endEvent" else 1.5, dash)
        if tag not in ("startEvent", "endEvent"):
            drawing += _circle(x, y, max(r - 3.5, 1), line, 1.2, dash, fill="none")
        kinds = self.file.definitions(element) if element is not None else []
        if kinds:
            kind = kinds[0] if len(kinds) == 1 else "multiple"
            if (
                element is not None
                and len(kinds) > 1
                and element.get("parallelMultiple") in ("true", "1")
            ):
                kind = "parallelMultiple"
            throws = tag in ("endEvent", "intermediateThrowEvent", "implicitThrowEvent")
            path = EVENT_SIGNS.get(kind, EVENT_SIGNS["multiple"])
            drawing += _sign(
                path, x, y, r / 18, (throws and kind != "timer") or kind == "terminate", line
            )
        return drawing

    def _gateway(self, shape: Shape) -> str:
        (x, y), (left, top, w, h) = shape.box.centre, shape.box
        corners = (
            f"M{_n(x)},{_n(top)}L{_n(left + w)},{_n(y)}L{_n(x)},{_n(top + h)}L{_n(left)},{_n(y)}Z"
        )
        sign = _sign(
            GATEWAY_SIGNS[shape.tag],
            x,
            y,
            min(w, h) / 50,
            False,
            width=1.3 if shape.tag == "eventBasedGateway" else 2.6,
        )
        return _path(corners, INK, fill=PAPER, width=1.5) + sign

    def _data(self, shape: Shape) -> str:
        x, y, w, h = shape.box
        if shape.tag.startswith("dataStore"):
            e = min(h / 6, 10)
            arc = f"A{_n(w / 2)},{_n(e)} 0 0"
            left, right, top, foot = _n(x), _n(x + w), _n(y + e), _n(y + h - e)
            path = f"M{left},{top}{arc} 1 {right},{top}V{foot}{arc} 1 {left},{foot}Z"
            path += f"M{left},{top}{arc} 0 {right},{top}"
        else:
            c = min(w, h) / 3
            path = (
                f"M{_n(x)},{_n(y)}H{_n(x + w - c)}L{_n(x + w)},{_n(y + c)}V{_n(y + h)}H{_n(x)}Z"
                f"M{_n(x + w - c)},{_n(y)}V{_n(y + c)}H{_n(x + w)}"
            )
        return _path(path, INK, fill=PAPER)

    def _annotation(self, shape: Shape) -> str:
        x, y, w, h = shape.box
        drawing = _path(f"M{_n(x + 8)},{_n(y)}H{_n(x)}V{_n(y + h)}H{_n(x + 8)}", INK)
        lines = _wrap(shape.name, max(w - 10, 40), 11, max(int(h // 13), 1))
        return drawing + _text(lines, x + 6, y + 3, 11, anchor="start")

    def _label(self, shape: Shape) -> None:
        """A name beside its shape: where the file says, or under it."""
        if not shape.name:
            return
        room = max(shape.label.w if shape.label else 0.0, 92.0)
        lines = _wrap(shape.name, room, 11, 4)
        middle, top = shape.box.centre[0], shape.box.y + shape.box.h + 4
        if shape.label:
            middle, top = shape.label.x + shape.label.w / 2, shape.label.y
        elif shape.tag == "boundaryEvent":  # its flow leaves at the foot
            middle -= shape.box.w / 2 + min(max(_width(s, 11) for s in lines), room) / 2
            top -= 6
        self._words(lines, middle, top)

    def _words(self, lines: Sequence[str], middle: float, top: float) -> None:
        wide = max((_width(line, 11) for line in lines), default=0)
        box = Box(middle - wide / 2, top, wide, 13.2 * len(lines))
        self.extent.append(box)
        self.taken.append(box)
        self.layers[VEILS].append(  # keeps a line from crossing the words out
            f'<rect x="{_n(box.x - 1)}" y="{_n(box.y)}" width="{_n(box.w + 2)}" '
            f'height="{_n(box.h)}" fill="{PAPER}" fill-opacity=".85"/>'
        )
        self.layers[WORDS].append(_text(lines, middle, top, 11))

    # -- lines

    def edge(self, edge: Edge) -> None:
        """Draw one flow with its head, its signs and its name."""
        ends = self.file.ends(edge.element) if edge.element is not None else (None, None)
        source, target = (
            self.shape_at.get(e.get("id", "")) if e is not None else None for e in ends
        )
        points = list(edge.points)
        if target:
            points = _docked(points, target)
        if source:
            points = _docked(points[::-1], source)[::-1]
        self.extent += [Box(x, y, 0, 0) for x, y in points]
        self.lines += pairwise(points)
        dash = {"messageFlow": "7 4", "sequenceFlow": ""}.get(edge.tag, "2 3")
        line = FAINT if edge.tag not in ("sequenceFlow", "messageFlow") else INK
        way = "M" + "L".join(f"{_n(x)},{_n(y)}" for x, y in points)
        drawing = _path(way, line, width=1.4, dash=dash) + self._head(edge, points, line)
        if edge.tag == "sequenceFlow":
            drawing += self._start(edge, points, source)
        self._put(LINES, edge, drawing)
        if edge.name:
            self._edge_label(edge, points)

    def _head(self, edge: Edge, points: Sequence[Point], line: str) -> str:
        if edge.tag == "association" and (
            edge.element is None or edge.element.get("associationDirection") in (None, "None")
        ):
            return ""
        (x, y), (ux, uy) = points[-1], _direction(points[-2], points[-1])
        left, right = (
            (x - 9 * ux + 4 * uy, y - 9 * uy - 4 * ux),
            (x - 9 * ux - 4 * uy, y - 9 * uy + 4 * ux),
        )
        wing = f"M{_n(left[0])},{_n(left[1])}L{_n(x)},{_n(y)}L{_n(right[0])},{_n(right[1])}"
        if edge.tag == "messageFlow":
            return _path(wing + "Z", line, fill=PAPER) + _circle(*points[0], 3.5, line, 1.2)
        if edge.tag == "sequenceFlow" or not edge.tag:
            return _path(wing + "Z", line, fill=line)
        return _path(wing, line)

    def _start(self, edge: Edge, points: Sequence[Point], source: Shape | None) -> str:
        """The slash of a default flow, or the diamond of a conditional flow from an activity."""
        if edge.element is None or source is None or source.element is None:
            return ""
        (x, y), (ux, uy) = points[0], _direction(points[0], points[1])
        if source.element.get("default") == edge.id and edge.id:
            x, y = x + 11 * ux, y + 11 * uy
            dx, dy = 5 * (ux - uy) / 1.4, 5 * (uy + ux) / 1.4
            return _path(f"M{_n(x - dx)},{_n(y - dy)}L{_n(x + dx)},{_n(y + dy)}", INK, width=1.4)
        if (
            source.tag not in GATEWAY_SIGNS
            and edge.element.find(BPMN + "conditionExpression") is not None
        ):
            side, tip = (8 * ux - 5 * uy, 8 * uy + 5 * ux), (16 * ux, 16 * uy)
            other = (8 * ux + 5 * uy, 8 * uy - 5 * ux)
            corners = [(x, y), *((x + dx, y + dy) for dx, dy in (side, tip, other))]
            return _path(
                "M" + "L".join(f"{_n(a)},{_n(b)}" for a, b in corners) + "Z", INK, fill=PAPER
            )
        return ""

    def _edge_label(self, edge: Edge, points: Sequence[Point]) -> None:
        if edge.label:
            lines = _wrap(edge.name, max(edge.label.w, 80), 11, 4)
            self._words(lines, edge.label.x + edge.label.w / 2, edge.label.y)
            return
        pairs = list(pairwise(points))
        a, b = max(pairs, key=lambda pair: math.dist(*pair))
        lines = _wrap(edge.name, 110, 11, 3)
        lift = 13.2 * len(lines) + 2 if abs(a[0] - b[0]) >= abs(a[1] - b[1]) else 6.6 * len(lines)
        self._words(lines, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2 - lift)

    # -- badges

    def badge(self, shape: Shape, badge: Badge) -> None:
        """Write a badge in the freest place around its shape."""
        line, fill, ink, glyph = TONES[badge.tone]
        words = _fit(_clean(badge.text), 34 * 6.2, 11)
        box = self._free(shape, Box(0, 0, _width(words, 11) * 1.06 + 28, 20))
        self.taken.append(box)
        self.extent.append(box)
        x, y, _, h = box
        pill = _rect(
            box,
            radius=h / 2 if badge.tone in ("ok", "off") else 3,
            fill=fill,
            line=line,
            dash="3 2" if badge.tone == "off" else "",
        )
        sign = _sign(glyph, x + 8, y + 4, 1, False, ink if badge.tone == "dead" else line, 1.8)
        said = f"<title>{_escape(f'{_clean(badge.text)} [{badge.tone}]')}</title>"
        text = _text([words], x + 24, y + 3.6, 11, anchor="start", bold=True, ink=ink)
        self.layers[BADGES].append(
            f'<g class="badge {badge.tone}" data-element="{_escape(shape.id)}">'
            f"{said}{self._leader(shape.box, box, line)}{pill}{sign}{text}</g>"
        )

    def _leader(self, shape: Box, badge: Box, line: str) -> str:
        """A thin line from a badge that does not stand right beside its shape."""
        (cx, cy), (bx, by) = shape.centre, badge.centre
        x, y = min(max(cx, badge.x), badge.x + badge.w), min(max(cy, badge.y), badge.y + badge.h)
        away = math.dist((x, y), (cx, cy))
        radius = min(shape.w, shape.h) / 2
        if away < radius + 12 and abs(cx - bx) <= badge.w / 2 + radius:
            return ""
        ux, uy = _direction((cx, cy), (x, y))
        start = f"M{_n(cx + radius * ux)},{_n(cy + radius * uy)}"
        return _path(f"{start}L{_n(x)},{_n(y)}", line, width=1, dash="1 2")

    def _free(self, shape: Shape, box: Box) -> Box:
        x, y, w, h = shape.box
        cx, cy = shape.box.centre
        below, above, right, left = y + h + 3, y - box.h - 3, x + w + 3, x - box.w - 3
        middle, late, early = cx - box.w / 2, cx + 5, cx - box.w - 5
        beside = cy - box.h / 2
        spots = (
            *((middle, above), (late, below), (early, below), (middle, below)),
            *((x + w - box.w, above), (x, above), (right, beside), (left, beside)),
            *((right, cy + 2), (left, cy + 2), (late, below + 24), (early, below + 24)),
            *((middle, below + 32), (middle, above - 22), (late, below + 44), (middle, below + 46)),
        )
        reach = Box(x - box.w - 10, y - 60, w + 2 * box.w + 20, h + 140)
        taken = [other for other in self.taken if reach.overlap(other)]
        lines = [line for line in self.lines if _touches(reach, *line)]

        def cost(place: Box) -> float:
            roomy = Box(place.x - 1, place.y - 1, place.w + 2, place.h + 2)
            hidden = sum(roomy.overlap(other) for other in taken)
            crossed = sum(_touches(roomy, a, b) for a, b in lines)
            return hidden + 60 * crossed + 0.2 * math.dist(place.centre, shape.box.centre)

        return min((Box(a, b, box.w, box.h) for a, b in spots), key=cost)

    # -- the whole

    def svg(self, title: str, alt: str) -> str:
        """Put the layers together."""
        self.layers[BLOCKS] = [drawing for _, drawing in sorted(self.blocks, key=lambda b: b[0])]
        left, top = min(b.x for b in self.extent) - 16, min(b.y for b in self.extent) - 16
        right = max(b.x + b.w for b in self.extent) + 16
        bottom = max(b.y + b.h for b in self.extent) + 16
        w, h = right - left, bottom - top
        # The picture shrinks with its column, and scrolls rather than become too small to read.
        style = f"max-width:100%;min-width:{_n(min(w * 0.65, 6000))}px;height:auto"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{_escape(alt)}" '
            f'viewBox="{_n(left)} {_n(top)} {_n(w)} {_n(h)}" width="{_n(w)}" height="{_n(h)}" '
            f'style="{style}" font-family="{_escape(FONT)}">'
            f"<title>{_escape(_clean(title))}</title>"
            + _rect(Box(left, top, w, h), radius=8, fill=PAPER, line="none")
            + "".join(part for layer in self.layers for part in layer)
            + "</svg>"
        )


# ------------------------------------------------------------------ geometry


def _depth(shape: Shape, point: Point) -> float:
    """How far out a point lies: 0 at the middle of the shape, 1 on its outline."""
    (cx, cy), w, h = shape.box.centre, shape.box.w / 2, shape.box.h / 2
    dx, dy = abs(point[0] - cx) / w, abs(point[1] - cy) / h
    if shape.tag in EVENTS:
        return math.hypot(point[0] - cx, point[1] - cy) / min(w, h)
    return dx + dy if shape.tag in GATEWAY_SIGNS else max(dx, dy)


def _docked(points: list[Point], shape: Shape) -> list[Point]:
    """Let a line that ends well inside a shape (some tools write its middle) end on its outline."""
    if _depth(shape, points[-1]) >= 0.8:
        return points
    while len(points) > 2 and _depth(shape, points[-2]) < 1:
        points = [*points[:-2], points[-1]]
    (cx, cy), (qx, qy), depth = shape.box.centre, points[-2], _depth(shape, points[-2])
    if depth <= 1:
        return points
    return [*points[:-1], (cx + (qx - cx) / depth, cy + (qy - cy) / depth)]


def _direction(a: Point, b: Point) -> Point:
    length = math.dist(a, b)
    return ((b[0] - a[0]) / length, (b[1] - a[1]) / length) if length else (1.0, 0.0)


def _touches(box: Box, a: Point, b: Point) -> bool:
    """Whether a line crosses a box (Liang and Barsky's clipping)."""
    start, end = 0.0, 1.0
    for low, size, p, q in ((box.x, box.w, a[0], b[0]), (box.y, box.h, a[1], b[1])):
        step = q - p
        if not step:
            if not low <= p <= low + size:
                return False
            continue
        near, far = sorted(((low - p) / step, (low + size - p) / step))
        start, end = max(start, near), min(end, far)
    return start <= end


# ------------------------------------------------------------------ text and SVG


def _clean(text: str | None) -> str:
    """One line of printable text: white space joined, controls and direction marks left out."""
    shown = (
        c if c.isspace() or unicodedata.category(c)[0] != "C" else "" for c in (text or "")[:2000]
    )
    return " ".join("".join(shown).split())


def _escape(text: str) -> str:
    return html.escape(text, quote=True)


def _n(value: float) -> str:
    """A number in one fixed form: at most one decimal, never ``-0``."""
    return f"{value + 0.0:.1f}".removesuffix(".0").replace("-0", "0", 1 if abs(value) < 0.05 else 0)


def _width(text: str, size: float) -> float:
    """About how wide a text is in a plain sans-serif font."""
    em = 0.0
    for c in text:
        if unicodedata.east_asian_width(c) in "WF":
            em += 1.0
        elif c in "iljI.,:;'|! ftr()[]":
            em += 0.32
        else:
            em += 0.86 if c in "mwMW@%" else 0.7 if c.isupper() else 0.56
    return em * size


def _fit(text: str, room: float, size: float) -> str:
    """The text, cut with an ellipsis if it is wider than the room."""
    if _width(text, size) <= room:
        return text
    while text and _width(text + "…", size) > room:
        text = text[:-1]
    return text.rstrip() + "…"


def _wrap(text: str, room: float, size: float, most: int) -> list[str]:
    """Lines no wider than the room, at most *most*; the last one is cut if need be."""
    lines: list[str] = []
    line = ""
    for word in text[:400].split():
        while _width(word, size) > room and len(word) > 1:
            cut = max(_prefix(word, room - (_width(line + " ", size) if line else 0), size), 0)
            if not line:
                cut = max(cut, 1)
            if cut > 2 or not line:
                line, word = f"{line} {word[:cut]}".strip(), word[cut:]
            lines.append(line)
            line = ""
        if line and _width(f"{line} {word}", size) > room:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    lines += [line] if line else []
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], _fit(" ".join(lines[most - 1 :]), room, size)]


def _prefix(word: str, room: float, size: float) -> int:
    used = 0.0
    for i, c in enumerate(word):
        used += _width(c, size)
        if used > room:
            return i
    return len(word)


def _text(
    lines: Iterable[str],
    x: float,
    top: float,
    size: float,
    *,
    anchor: str = "middle",
    bold: bool = False,
    ink: str = INK,
) -> str:
    style = ' font-weight="600"' if bold else ""
    return "".join(
        f'<text x="{_n(x)}" y="{_n(top + size * (0.92 + 1.2 * i))}" font-size="{_n(size)}" '
        f'text-anchor="{anchor}" fill="{ink}"{style}>{_escape(line)}</text>'
        for i, line in enumerate(lines)
        if line
    )


def _centred(text: str, box: Box, ink: str = INK) -> str:
    """Text in the middle of a box, in the largest of three sizes that holds it all."""
    for size in (12.0, 11.0, 9.5):
        most = max(int(box.h // (size * 1.2)), 1)
        lines = _wrap(text, box.w, size, most)
        if not any(line.endswith("…") for line in lines):
            break
    return _text(
        lines, box.x + box.w / 2, box.y + (box.h - len(lines) * size * 1.2) / 2, size, ink=ink
    )


def _stroke(line: str, fill: str, width: float, dash: str) -> str:
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'fill="{fill}" stroke="{line}" stroke-width="{_n(width)}"{dashes}'


def _rect(
    box: Box,
    *,
    radius: float = 0,
    fill: str = PAPER,
    line: str = INK,
    width: float = 1.5,
    dash: str = "",
) -> str:
    x, y, w, h = (_n(v) for v in (box.x, box.y, max(box.w, 0.1), max(box.h, 0.1)))
    return (
        f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="{_n(radius)}" '
        f"{_stroke(line, fill, width, dash)}/>"
    )


def _circle(
    x: float, y: float, r: float, line: str, width: float, dash: str = "", fill: str = PAPER
) -> str:
    return f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(r)}" {_stroke(line, fill, width, dash)}/>'


def _path(way: str, line: str, *, fill: str = "none", width: float = 1.2, dash: str = "") -> str:
    return f'<path d="{way}" {_stroke(line, fill, width, dash)} stroke-linejoin="round"/>'


def _sign(
    way: str, x: float, y: float, scale: float, filled: bool, line: str = INK, width: float = 1.2
) -> str:
    """One of the signs above, moved to its place; a filled envelope shows its fold in white."""
    size = "" if scale == 1 else f" scale({scale:.3f})"
    fold = filled and way in (EVENT_SIGNS["message"], TASK_SIGNS["sendTask"][0])
    inner = _path(way, PAPER if fold else line, fill=line if filled else "none", width=width)
    return f'<g transform="translate({_n(x)} {_n(y)}){size}">{inner}</g>'
