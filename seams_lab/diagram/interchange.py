"""A scene read from a file's diagram interchange (`bpmndi:BPMNPlane`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lxml import etree

from seams_lab.diagram.box import Box
from seams_lab.diagram.scene import (
    BPMNDI,
    MOST,
    NODES,
    SUBPROCESSES,
    Edge,
    File,
    Scene,
    Shape,
    name_of,
    tag_of,
)
from seams_lab.diagram.text import clean

DC = "{http://www.omg.org/spec/DD/20100524/DC}"


DI = "{http://www.omg.org/spec/DD/20100524/DI}"


FARTHEST = 100_000.0  # a coordinate or size beyond this (in diagram units) is not drawn


def plane_name(plane: etree._Element) -> str:
    """What to call a plane: the name of its diagram, or the id of what it shows."""
    diagram = plane.getparent()
    name = diagram.get("name") if diagram is not None else None
    return clean(name) or clean(plane.get("bpmnElement")) or "(no name)"


def read_plane(file: File, plane: etree._Element) -> Scene:
    """The shapes and lines of one plane; the notes say how many cannot be drawn."""
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


def _read_shape(file: File, mark: etree._Element, drawn: set[str]) -> Shape | None:
    box = _bounds(mark)
    if box is None or box.w < 1 or box.h < 1:
        return None
    element = file.find(mark.get("bpmnElement"))
    key = element.get("id", "") if element is not None else clean(mark.get("bpmnElement"))
    expanded = mark.get("isExpanded") in ("true", "1")
    if element is not None and tag_of(element) in SUBPROCESSES and mark.get("isExpanded") is None:
        expanded = any(child.get("id") in drawn for child in element.iterchildren("{*}*"))
    turned = mark.get("isHorizontal")
    across = turned in ("true", "1") if turned is not None else box.w >= box.h
    return Shape(
        key,
        tag_of(element),
        name_of(file, element),
        box,
        _label_bounds(mark),
        element,
        expanded,
        across,
    )


def _read_edge(file: File, mark: etree._Element, shapes: Sequence[Shape]) -> Edge | None:
    element = file.find(mark.get("bpmnElement"))
    points = []
    for way in mark.iterchildren(DI + "waypoint"):
        x, y = _number(way.get("x")), _number(way.get("y"))
        if x is not None and y is not None:
            points.append((x, y))
    if len(points) < 2:
        return None  # a flow with both ends drawn gets a straight line afterwards
    key = element.get("id", "") if element is not None else clean(mark.get("bpmnElement"))
    return Edge(
        key, tag_of(element), name_of(file, element), tuple(points), _label_bounds(mark), element
    )


def _missing_edges(file: File, shapes: Sequence[Shape], edges: Sequence[Edge]) -> Iterator[Edge]:
    """Straight lines for flows whose ends are drawn and that have no usable edge."""
    at = {shape.id: shape for shape in shapes if shape.tag in NODES}
    known = {edge.id for edge in edges}
    for flow in file.everything:
        if tag_of(flow) not in ("sequenceFlow", "messageFlow") or flow.get("id") in known:
            continue
        source, target = (
            at.get(e.get("id", "")) if e is not None else None for e in file.ends(flow)
        )
        if source and target and source is not target:
            line = (source.box.centre, target.box.centre)
            yield Edge(flow.get("id", ""), tag_of(flow), name_of(file, flow), line, None, flow)


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


def _tail(reference: str | None) -> str:
    return (reference or "").rpartition(":")[2]
