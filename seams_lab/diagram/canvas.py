"""A scene drawn as SVG, in layers, with each badge in a free place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from seams_lab.diagram.box import Box, Point
from seams_lab.diagram.geometry import direction, docked, touches
from seams_lab.diagram.scene import (
    BPMN,
    DATA,
    EVENTS,
    NODES,
    SUBPROCESSES,
    Edge,
    File,
    Scene,
    Shape,
    tag_of,
)
from seams_lab.diagram.signs import EVENT_SIGNS, GATEWAY_SIGNS, TASK_SIGNS, TONES, Badge
from seams_lab.diagram.text import (
    FAINT,
    FONT,
    INK,
    PAPER,
    clean,
    escape,
    fit_text,
    num,
    svg_centred,
    svg_circle,
    svg_path,
    svg_rect,
    svg_sign,
    svg_text,
    width_of,
    wrap_text,
)

POOLS, BLOCKS, LINES, VEILS, BODIES, RIMS, WORDS, BADGES = range(8)  # from back to front


class Canvas:
    """Collects SVG in layers, and remembers what is taken, so that badges find a free place."""

    def __init__(self, file: File, scene: Scene) -> None:
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
        title = f"<title>{escape(f'{hint} ({shape.id})' if shape.name else hint)}</title>"
        kind = shape.tag or "missing"
        self.layers[layer].append(
            f'<g class="{escape(kind)}" data-element="{escape(shape.id)}">{title}{drawing}</g>'
        )

    def _pool(self, shape: Shape) -> None:
        x, y, w, h = shape.box
        drawing = svg_rect(shape.box, fill=PAPER if shape.tag != "lane" else "none", line=FAINT)
        if shape.tag == "process":
            name = fit_text(shape.name, w - 20, 12)
            drawing += svg_text([name], x + 10, y + 8, 12, anchor="start", bold=True)
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
            side = f"M{num(band.x + deep)},{num(y)}V{num(y + h)}"
            turn = f' transform="rotate(-90 {num(cx)} {num(cy)})"'
            words = svg_centred(shape.name, Box(cx - h / 2 + 2, cy - deep / 2, h - 4, deep))
            drawing += svg_path(side, FAINT) + f"<g{turn}>{words}</g>"
        else:
            drawing += svg_path(f"M{num(x)},{num(band.y + deep)}H{num(x + w)}", FAINT)
            drawing += svg_centred(shape.name, band)
        self._put(POOLS, shape, drawing)

    def _block(self, shape: Shape) -> None:
        """An expanded sub-process, or a group: a frame around other shapes."""
        x, y, w, _ = shape.box
        if shape.tag == "group":
            drawing = svg_rect(shape.box, radius=10, fill="none", line=FAINT, dash="8 3 2 3")
        else:
            drawing = svg_rect(shape.box, radius=10, fill="#fbfbfb", dash=self._loose(shape))
            if shape.tag == "transaction":
                drawing += svg_rect(
                    Box(x + 3, y + 3, w - 6, shape.box.h - 6), radius=8, fill="none"
                )
            lines = wrap_text(shape.name, w - 16, 12, 2)
            drawing += svg_text(lines, x + w / 2, y + 7, 12)
            wide = max((width_of(line, 12) for line in lines), default=0.0)
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
            drawing = svg_rect(
                shape.box, radius=4, fill="#f6f6f6", line=FAINT, dash="" if shape.tag else "5 3"
            )
            return drawing + svg_centred(said, shape.box, FAINT)
        drawing = svg_rect(
            shape.box,
            radius=9,
            width=4 if shape.tag == "callActivity" else 1.5,
            dash=self._loose(shape),
        )
        if shape.tag == "transaction":
            drawing += svg_rect(Box(x + 3, y + 3, w - 6, h - 6), radius=7, fill="none")
        top = 0.0
        if shape.tag in TASK_SIGNS:
            path, filled = TASK_SIGNS[shape.tag]
            drawing += svg_sign(path, x + 5, y + 5, 1, filled)
            top = 14.0 if h > 40 else 0.0
        foot = self._foot(shape)
        if foot:
            drawing += svg_sign(foot, x + w / 2, y + h - 9, 1, False)
        words = Box(x + 4, y + top, w - 8, h - top * (1.3 if not foot else 1) - (14 if foot else 0))
        return drawing + svg_centred(shape.name, words)

    def _foot(self, shape: Shape) -> str:
        """The signs at the foot of an activity: collapsed, in parallel, in sequence, loop."""
        signs = "M-6,-6H6V6H-6ZM0,-4V4M-4,0H4" if shape.tag in SUBPROCESSES else ""
        if shape.tag == "adHocSubProcess":
            signs += "M-20,2C-17,-6 -15,5 -11,-2"
        for child in shape.element.iterchildren("{*}*") if shape.element is not None else ():
            if tag_of(child) == "multiInstanceLoopCharacteristics":
                flat = child.get("isSequential") in ("true", "1")
                signs += "M10,-4H20M10,0H20M10,4H20" if flat else "M11,-5V5M15,-5V5M19,-5V5"
            elif tag_of(child) == "standardLoopCharacteristics":
                signs += "M13,4A5,5 0 1 1 17,4M13,0V4H9"
        return signs

    def _event(self, shape: Shape, badge: Badge | None) -> str:
        (x, y), r = shape.box.centre, min(shape.box.w, shape.box.h) / 2
        element, tag = shape.element, shape.tag
        line = TONES[badge.tone][0] if badge else INK
        word = "cancelActivity" if tag == "boundaryEvent" else "isInterrupting"
        calm = element is not None and element.get(word, "").strip() in ("false", "0")
        dash = "4 3" if calm else ""
        drawing = svg_circle(x, y, r, line, 3.5 if tag == "endEvent" else 1.5, dash)
        if tag not in ("startEvent", "endEvent"):
            drawing += svg_circle(x, y, max(r - 3.5, 1), line, 1.2, dash, fill="none")
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
            drawing += svg_sign(
                path, x, y, r / 18, (throws and kind != "timer") or kind == "terminate", line
            )
        return drawing

    def _gateway(self, shape: Shape) -> str:
        (x, y), (left, top, w, h) = shape.box.centre, shape.box
        tips = ((x, top), (left + w, y), (x, top + h), (left, y))
        corners = "M" + "L".join(f"{num(a)},{num(b)}" for a, b in tips) + "Z"
        sign = svg_sign(
            GATEWAY_SIGNS[shape.tag],
            x,
            y,
            min(w, h) / 50,
            False,
            width=1.3 if shape.tag == "eventBasedGateway" else 2.6,
        )
        return svg_path(corners, INK, fill=PAPER, width=1.5) + sign

    def _data(self, shape: Shape) -> str:
        x, y, w, h = shape.box
        if shape.tag.startswith("dataStore"):
            e = min(h / 6, 10)
            arc = f"A{num(w / 2)},{num(e)} 0 0"
            left, right, top, foot = num(x), num(x + w), num(y + e), num(y + h - e)
            path = f"M{left},{top}{arc} 1 {right},{top}V{foot}{arc} 1 {left},{foot}Z"
            path += f"M{left},{top}{arc} 0 {right},{top}"
        else:
            fold = min(w, h) / 3
            left, right, top, foot = num(x), num(x + w), num(y), num(y + h)
            at, low = num(x + w - fold), num(y + fold)
            path = f"M{left},{top}H{at}L{right},{low}V{foot}H{left}ZM{at},{top}V{low}H{right}"
        return svg_path(path, INK, fill=PAPER)

    def _annotation(self, shape: Shape) -> str:
        x, y, w, h = shape.box
        drawing = svg_path(f"M{num(x + 8)},{num(y)}H{num(x)}V{num(y + h)}H{num(x + 8)}", INK)
        lines = wrap_text(shape.name, max(w - 10, 40), 11, max(int(h // 13), 1))
        return drawing + svg_text(lines, x + 6, y + 3, 11, anchor="start")

    def _label(self, shape: Shape) -> None:
        """A name beside its shape: where the file says, or under it."""
        if not shape.name:
            return
        room = max(shape.label.w if shape.label else 0.0, 92.0)
        lines = wrap_text(shape.name, room, 11, 4)
        middle, top = shape.box.centre[0], shape.box.y + shape.box.h + 4
        if shape.label:
            middle, top = shape.label.x + shape.label.w / 2, shape.label.y
        elif shape.tag == "boundaryEvent":  # its flow leaves at the foot
            middle -= shape.box.w / 2 + min(max(width_of(s, 11) for s in lines), room) / 2
            top -= 6
        self._words(lines, middle, top)

    def _words(self, lines: Sequence[str], middle: float, top: float) -> None:
        wide = max((width_of(line, 11) for line in lines), default=0)
        box = Box(middle - wide / 2, top, wide, 13.2 * len(lines))
        self.extent.append(box)
        self.taken.append(box)
        self.layers[VEILS].append(  # keeps a line from crossing the words out
            f'<rect x="{num(box.x - 1)}" y="{num(box.y)}" width="{num(box.w + 2)}" '
            f'height="{num(box.h)}" fill="{PAPER}" fill-opacity=".85"/>'
        )
        self.layers[WORDS].append(svg_text(lines, middle, top, 11))

    # -- lines

    def edge(self, edge: Edge) -> None:
        """Draw one flow with its head, its signs and its name."""
        ends = self.file.ends(edge.element) if edge.element is not None else (None, None)
        source, target = (
            self.shape_at.get(e.get("id", "")) if e is not None else None for e in ends
        )
        points = list(edge.points)
        if target:
            points = docked(points, target)
        if source:
            points = docked(points[::-1], source)[::-1]
        self.extent += [Box(x, y, 0, 0) for x, y in points]
        self.lines += pairwise(points)
        dash = {"messageFlow": "7 4", "sequenceFlow": ""}.get(edge.tag, "2 3")
        line = FAINT if edge.tag not in ("sequenceFlow", "messageFlow") else INK
        way = "M" + "L".join(f"{num(x)},{num(y)}" for x, y in points)
        drawing = svg_path(way, line, width=1.4, dash=dash) + self._head(edge, points, line)
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
        (x, y), (ux, uy) = points[-1], direction(points[-2], points[-1])
        left, right = (
            (x - 9 * ux + 4 * uy, y - 9 * uy - 4 * ux),
            (x - 9 * ux - 4 * uy, y - 9 * uy + 4 * ux),
        )
        wing = f"M{num(left[0])},{num(left[1])}L{num(x)},{num(y)}L{num(right[0])},{num(right[1])}"
        if edge.tag == "messageFlow":
            return svg_path(wing + "Z", line, fill=PAPER) + svg_circle(*points[0], 3.5, line, 1.2)
        if edge.tag == "sequenceFlow" or not edge.tag:
            return svg_path(wing + "Z", line, fill=line)
        return svg_path(wing, line)

    def _start(self, edge: Edge, points: Sequence[Point], source: Shape | None) -> str:
        """The slash of a default flow, or the diamond of a conditional flow from an activity."""
        if edge.element is None or source is None or source.element is None:
            return ""
        (x, y), (ux, uy) = points[0], direction(points[0], points[1])
        if source.element.get("default") == edge.id and edge.id:
            x, y = x + 11 * ux, y + 11 * uy
            dx, dy = 5 * (ux - uy) / 1.4, 5 * (uy + ux) / 1.4
            return svg_path(
                f"M{num(x - dx)},{num(y - dy)}L{num(x + dx)},{num(y + dy)}", INK, width=1.4
            )
        if (
            source.tag not in GATEWAY_SIGNS
            and edge.element.find(BPMN + "conditionExpression") is not None
        ):
            side, tip = (8 * ux - 5 * uy, 8 * uy + 5 * ux), (16 * ux, 16 * uy)
            other = (8 * ux + 5 * uy, 8 * uy - 5 * ux)
            corners = [(x, y), *((x + dx, y + dy) for dx, dy in (side, tip, other))]
            return svg_path(
                "M" + "L".join(f"{num(a)},{num(b)}" for a, b in corners) + "Z", INK, fill=PAPER
            )
        return ""

    def _edge_label(self, edge: Edge, points: Sequence[Point]) -> None:
        if edge.label:
            lines = wrap_text(edge.name, max(edge.label.w, 80), 11, 4)
            self._words(lines, edge.label.x + edge.label.w / 2, edge.label.y)
            return
        pairs = list(pairwise(points))
        a, b = max(pairs, key=lambda pair: math.dist(*pair))
        lines = wrap_text(edge.name, 110, 11, 3)
        lift = 13.2 * len(lines) + 2 if abs(a[0] - b[0]) >= abs(a[1] - b[1]) else 6.6 * len(lines)
        self._words(lines, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2 - lift)

    # -- badges

    def badge(self, shape: Shape, badge: Badge) -> None:
        """Write a badge in the freest place around its shape."""
        line, fill, ink, glyph = TONES[badge.tone]
        words = fit_text(clean(badge.text), 34 * 6.2, 11)
        box = self._free(shape, Box(0, 0, width_of(words, 11) * 1.06 + 28, 20))
        self.taken.append(box)
        self.extent.append(box)
        x, y, _, h = box
        pill = svg_rect(
            box,
            radius=h / 2 if badge.tone in ("ok", "off") else 3,
            fill=fill,
            line=line,
            dash="3 2" if badge.tone == "off" else "",
        )
        sign = svg_sign(glyph, x + 8, y + 4, 1, False, ink if badge.tone == "dead" else line, 1.8)
        said = f"<title>{escape(f'{clean(badge.text)} [{badge.tone}]')}</title>"
        text = svg_text([words], x + 24, y + 3.6, 11, anchor="start", bold=True, ink=ink)
        self.layers[BADGES].append(
            f'<g class="badge {badge.tone}" data-element="{escape(shape.id)}">'
            f"{said}{self._leader(shape.box, box, line)}{pill}{sign}{text}</g>"
        )

    def _leader(self, shape: Box, badge: Box, line: str) -> str:
        """A thin line from a badge that does not stand right beside its shape."""
        (cx, cy), (bx, _) = shape.centre, badge.centre
        x, y = min(max(cx, badge.x), badge.x + badge.w), min(max(cy, badge.y), badge.y + badge.h)
        away = math.dist((x, y), (cx, cy))
        radius = min(shape.w, shape.h) / 2
        if away < radius + 12 and abs(cx - bx) <= badge.w / 2 + radius:
            return ""
        ux, uy = direction((cx, cy), (x, y))
        start = f"M{num(cx + radius * ux)},{num(cy + radius * uy)}"
        return svg_path(f"{start}L{num(x)},{num(y)}", line, width=1, dash="1 2")

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
        lines = [line for line in self.lines if touches(reach, *line)]

        def cost(place: Box) -> float:
            roomy = Box(place.x - 1, place.y - 1, place.w + 2, place.h + 2)
            hidden = sum(roomy.overlap(other) for other in taken)
            crossed = sum(touches(roomy, a, b) for a, b in lines)
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
        style = f"max-width:100%;min-width:{num(min(w * 0.65, 6000))}px;height:auto"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(alt)}" '
            f'viewBox="{num(left)} {num(top)} {num(w)} {num(h)}" '
            f'width="{num(w)}" height="{num(h)}" '
            f'style="{style}" font-family="{escape(FONT)}">'
            f"<title>{escape(clean(title))}</title>"
            + svg_rect(Box(left, top, w, h), radius=8, fill=PAPER, line="none")
            + "".join(part for layer in self.layers for part in layer)
            + "</svg>"
        )
