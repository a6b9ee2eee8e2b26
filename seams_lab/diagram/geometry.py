"""Where lines meet shapes, and whether they do."""

from __future__ import annotations

import math

from seams_lab.diagram.box import Box, Point
from seams_lab.diagram.scene import EVENTS, Shape
from seams_lab.diagram.signs import GATEWAY_SIGNS


def _depth(shape: Shape, point: Point) -> float:
    """How far out a point lies: 0 at the middle of the shape, 1 on its outline."""
    (cx, cy), w, h = shape.box.centre, shape.box.w / 2, shape.box.h / 2
    dx, dy = abs(point[0] - cx) / w, abs(point[1] - cy) / h
    if shape.tag in EVENTS:
        return math.hypot(point[0] - cx, point[1] - cy) / min(w, h)
    return dx + dy if shape.tag in GATEWAY_SIGNS else max(dx, dy)


def docked(points: list[Point], shape: Shape) -> list[Point]:
    """Let a line that ends well inside a shape (some tools write its middle) end on its outline."""
    if _depth(shape, points[-1]) >= 0.8:
        return points
    while len(points) > 2 and _depth(shape, points[-2]) < 1:
        points = [*points[:-2], points[-1]]
    (cx, cy), (qx, qy), depth = shape.box.centre, points[-2], _depth(shape, points[-2])
    if depth <= 1:
        return points
    return [*points[:-1], (cx + (qx - cx) / depth, cy + (qy - cy) / depth)]


def direction(a: Point, b: Point) -> Point:
    """The step of length 1 from one point towards another."""
    length = math.dist(a, b)
    return ((b[0] - a[0]) / length, (b[1] - a[1]) / length) if length else (1.0, 0.0)


def touches(box: Box, a: Point, b: Point) -> bool:
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
