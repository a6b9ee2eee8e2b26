"""What a drawn BPMN file shows: its own geometry, its badges, and nothing that it smuggles in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from seams_lab.diagram import TONES, Badge, draw
from seams_lab.errors import UnusableInput
from seams_lab.picture import Picture

MODEL = "http://www.omg.org/spec/BPMN/20100524/MODEL"
SVG = "{http://www.w3.org/2000/svg}"
SPACES = (
    f'xmlns="{MODEL}" xmlns:di="http://www.omg.org/spec/BPMN/20100524/DI" '
    'xmlns:dc="http://www.omg.org/spec/DD/20100524/DC" '
    'xmlns:dd="http://www.omg.org/spec/DD/20100524/DI"'
)
TIMER = '<timerEventDefinition><timeDuration>"PT48H"</timeDuration></timerEventDefinition>'
Rect = tuple[float, float, float, float]


def bpmn(process: str, *planes: str, around: str = "") -> etree._Element:
    """The tree of a file with one process and any number of diagrams."""
    diagrams = "".join(
        f'<di:BPMNDiagram name="plane {i}"><di:BPMNPlane>{plane}</di:BPMNPlane></di:BPMNDiagram>'
        for i, plane in enumerate(planes)
    )
    return etree.fromstring(
        f'<definitions {SPACES}><process id="p" name="P">{process}</process>{around}{diagrams}'
        "</definitions>"
    )


def shape(key: str, x: object, y: object, w: object, h: object, more: str = "") -> str:
    """A shape of a diagram."""
    bounds = f'<dc:Bounds x="{x}" y="{y}" width="{w}" height="{h}"/>'
    return f'<di:BPMNShape bpmnElement="{key}"{more}>{bounds}</di:BPMNShape>'


def edge(key: str, *points: tuple[object, object]) -> str:
    """A line of a diagram."""
    ways = "".join(f'<dd:waypoint x="{x}" y="{y}"/>' for x, y in points)
    return f'<di:BPMNEdge bpmnElement="{key}">{ways}</di:BPMNEdge>'


def groups(picture: Picture) -> dict[str, etree._Element]:
    """The drawing of each element, by its id; badges under ``badge <id>``."""
    found = {}
    for group in etree.fromstring(picture.data).iter(SVG + "g"):
        if key := group.get("data-element"):
            badge = (group.get("class") or "").startswith("badge ")
            name = f"badge {key}" if badge else key
            assert name not in found, "drawn once"
            found[name] = group
    return found


def numbers(element: etree._Element, *names: str) -> list[float]:
    """Attributes as numbers."""
    return [float(element.get(name, "nan")) for name in names]


def rect(group: etree._Element) -> Rect:
    """Where a drawing's first rectangle, circle or path lies."""
    for part in group.iter(SVG + "rect", SVG + "circle", SVG + "path"):
        if part.tag == SVG + "rect":
            x, y, w, h = numbers(part, "x", "y", "width", "height")
            return x, y, w, h
        if part.tag == SVG + "circle":
            cx, cy, r = numbers(part, "cx", "cy", "r")
            return cx - r, cy - r, 2 * r, 2 * r
        way = [float(n) for n in re.findall(r"-?[\d.]+", part.get("d", ""))]
        xs, ys = way[0::2], way[1::2]
        return min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)
    raise AssertionError("nothing drawn")


def points(group: etree._Element) -> list[tuple[float, float]]:
    """The corners of a drawn line."""
    way = group.find(SVG + "path")
    assert way is not None
    pairs = re.findall(r"(-?[\d.]+),(-?[\d.]+)", way.get("d", ""))
    return [(float(x), float(y)) for x, y in pairs]


def overlaps(a: Rect, b: Rect) -> bool:
    """Whether two rectangles share more than an edge."""
    wide = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    high = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    return wide > 0.1 and high > 0.1


def words(group: etree._Element) -> str:
    """The text that is drawn, lines joined."""
    return " ".join(text.text or "" for text in group.iter(SVG + "text"))


# A task with a reminder, drawn by its file.
REMINDER = (
    '<userTask id="t" name="Approve"/>'
    '<boundaryEvent id="b" name="Late" attachedToRef="t" cancelActivity="false">'
    f'{TIMER}</boundaryEvent><endEvent id="e"/>'
    '<sequenceFlow id="f" sourceRef="t" targetRef="e"/>'
)
REMINDER_PLANE = (
    shape("t", 100, 50, 120, 80)
    + shape("b", 142, 112, 36, 36)
    + shape("e", 300, 72, 36, 36)
    + edge("f", (220, 90), (260, 90), (260.25, 95), (300, 90))
)


def test_shapes_and_lines_lie_where_the_file_puts_them() -> None:
    drawn = groups(draw(bpmn(REMINDER, REMINDER_PLANE), title="T"))
    assert rect(drawn["t"]) == (100, 50, 120, 80)
    assert rect(drawn["b"]) == (142, 112, 36, 36)
    assert rect(drawn["e"]) == (300, 72, 36, 36)
    assert points(drawn["f"]) == [(220, 90), (260, 90), (260.2, 95), (300, 90)]
    assert words(drawn["t"]) == "Approve"


def test_negative_coordinates_are_inside_the_picture() -> None:
    plane = shape("t", -500, -300, 120, 80) + shape("e", 0, 0, 36, 36)
    svg = etree.fromstring(draw(bpmn(REMINDER, plane), title="T").data)
    left, top, wide, high = (float(n) for n in svg.get("viewBox", "").split())
    assert left < -500
    assert top < -300
    assert left + wide > 36
    assert top + high > 36


def test_a_badge_stands_by_its_timer_and_off_the_other_shapes() -> None:
    picture = draw(bpmn(REMINDER, REMINDER_PLANE), {"b": Badge("after 48 h", "ok")}, title="T")
    drawn = groups(picture)
    place = rect(drawn["badge b"])
    assert words(drawn["badge b"]) == "after 48 h"
    assert overlaps(place, (142 - 20, 112 - 30, 36 + 40, 36 + 60)), "near"
    assert not any(overlaps(place, rect(drawn[key])) for key in "tbe")


def test_a_badge_keeps_off_the_flows() -> None:
    down = '<task id="r"/><sequenceFlow id="g" sourceRef="b" targetRef="r"/>'
    plane = REMINDER_PLANE + shape("r", 100, 220, 120, 80) + edge("g", (160, 148), (160, 220))
    blocked = plane + edge("h", (165, 140), (400, 175))  # through the place at the right
    for lines in (plane, blocked):
        picture = draw(bpmn(REMINDER + down, lines), {"b": Badge("after 48 h", "ok")}, title="T")
        drawn = groups(picture)
        x, y, w, h = rect(drawn["badge b"])
        for key in "gh":
            for (ax, ay), (bx, by) in pairwise(points(drawn[key])) if key in drawn else ():
                steps = [i / 200 for i in range(201)]
                on = [(ax + (bx - ax) * t, ay + (by - ay) * t) for t in steps]
                assert not [p for p in on if x < p[0] < x + w and y < p[1] < y + h]


def test_each_tone_has_a_colour_a_sign_and_words_of_its_own() -> None:
    seen = []
    for tone in TONES:
        picture = draw(bpmn(REMINDER, REMINDER_PLANE), {"b": Badge("x", tone)}, title="T")
        group = groups(picture)["badge b"]
        pill = group.find(SVG + "rect")
        sign = group.find(f"{SVG}g/{SVG}path")
        assert pill is not None
        assert sign is not None
        seen.append((pill.get("stroke"), sign.get("d")))
        assert f"x [{tone}]" in picture.alt
    for colours_or_signs in zip(*seen, strict=True):
        assert len(set(colours_or_signs)) == len(TONES) == 5


def test_an_unknown_tone_is_refused() -> None:
    with pytest.raises(UnusableInput, match="tone 'green'"):
        Badge("x", "green")


@pytest.mark.parametrize(
    ("event", "dashed"),
    [
        ('<boundaryEvent id="x" attachedToRef="t" cancelActivity="false">', True),
        ('<boundaryEvent id="x" attachedToRef="t" cancelActivity="0">', True),
        ('<boundaryEvent id="x" attachedToRef="t" cancelActivity="true">', False),
        ('<boundaryEvent id="x" attachedToRef="t" cancelActivity="1">', False),
        ('<boundaryEvent id="x" attachedToRef="t">', False),
        ('<startEvent id="x" isInterrupting="false">', True),
        ('<startEvent id="x" isInterrupting="true">', False),
        ('<startEvent id="x" cancelActivity="false">', False),
    ],
)
def test_only_what_does_not_interrupt_is_dashed(event: str, dashed: bool) -> None:
    tag = event.split()[0].strip("<")
    root = bpmn(f'<task id="t"/>{event}{TIMER}</{tag}>', shape("x", 0, 0, 36, 36))
    circles = list(groups(draw(root, title="T"))["x"].iter(SVG + "circle"))
    assert {circle.get("stroke-dasharray") is not None for circle in circles} == {dashed}


@pytest.mark.parametrize(
    ("tag", "rings", "width"),
    [("startEvent", 1, 1.5), ("endEvent", 1, 3.5), ("intermediateCatchEvent", 2, 1.5),
     ("intermediateThrowEvent", 2, 1.5), ("boundaryEvent", 2, 1.5)],
)  # fmt: skip
def test_events_have_one_thin_two_thin_or_one_thick_ring(
    tag: str, rings: int, width: float
) -> None:
    root = bpmn(f'<{tag} id="x"/>', shape("x", 0, 0, 36, 36))
    circles = list(groups(draw(root, title="T"))["x"].iter(SVG + "circle"))
    assert len(circles) == rings
    assert float(circles[0].get("stroke-width", "0")) == width


@pytest.mark.parametrize("kind", ["message", "signal", "escalation", "error", "link"])
def test_the_sign_of_what_throws_is_filled_and_of_what_catches_is_not(kind: str) -> None:
    fills = []
    for tag in ("intermediateCatchEvent", "intermediateThrowEvent"):
        root = bpmn(f'<{tag} id="x"><{kind}EventDefinition/></{tag}>', shape("x", 0, 0, 36, 36))
        (sign,) = groups(draw(root, title="T"))["x"].iter(SVG + "path")
        fills.append(sign.get("fill"))
    assert fills[0] == "none"
    assert fills[1] not in ("none", None)


def test_a_definition_by_reference_shows_its_sign() -> None:
    root = bpmn(
        '<intermediateCatchEvent id="x"><eventDefinitionRef>d</eventDefinitionRef>'
        "</intermediateCatchEvent>",
        shape("x", 0, 0, 36, 36),
        around='<timerEventDefinition id="d"/>',
    )
    picture = draw(root, title="T")
    assert list(groups(picture)["x"].iter(SVG + "path"))
    assert "1 timers: x: no badge" in picture.alt


HOSTILE = """</text></svg><script>alert('1')</script>" onload="x" & ]]> \u202e\u0085 'q'"""


def test_hostile_text_stays_text() -> None:
    name = etree.Element("x", name=HOSTILE).get("name")
    root = bpmn(REMINDER, REMINDER_PLANE)
    for element in root.iter(
        "{*}userTask", "{*}boundaryEvent", "{*}sequenceFlow", "{*}BPMNDiagram"
    ):
        element.set("name", str(name))
    badge = Badge(HOSTILE, "refused")
    picture = draw(root, {"b": badge}, title=HOSTILE, caption=HOSTILE)
    svg = etree.fromstring(picture.data)
    assert {etree.QName(e).localname for e in svg.iter()} <= {
        "svg", "g", "title", "text", "path", "rect", "circle",
    }  # fmt: skip
    assert not [a for e in svg.iter() for a in e.attrib if str(a).startswith("on")]
    assert "<script>alert('1')</script>" in words(groups(picture)["t"]).replace("> <", "><") + str(
        svg.get("aria-label")
    )
    assert b"<script" not in picture.data
    assert "<script" not in picture.to_html()
    assert "\u202e" not in picture.data.decode() + picture.caption + picture.alt


def test_hostile_ids_stay_ids() -> None:
    root = bpmn(REMINDER, REMINDER_PLANE)
    for element in root.iter("{*}userTask"):
        element.set("id", HOSTILE)
    for element in root.iter("{*}BPMNShape"):
        if element.get("bpmnElement") == "t":
            element.set("bpmnElement", HOSTILE)
    assert b"<script" not in draw(root, title="T").data


@pytest.mark.parametrize(
    "bounds",
    [
        "",
        '<dc:Bounds x="nan" y="0" width="36" height="36"/>',
        '<dc:Bounds x="0" y="-inf" width="36" height="36"/>',
        '<dc:Bounds x="0" y="0" width="1e300" height="36"/>',
        '<dc:Bounds x="100001" y="0" width="36" height="36"/>',
        '<dc:Bounds x="0" y="0" width="-36" height="36"/>',
        '<dc:Bounds x="0" y="0" width="36" height="0"/>',
        '<dc:Bounds x="0" y="0" width="5e-324" height="36"/>',
        '<dc:Bounds x="0" y="0" width="36"/>',
        '<dc:Bounds x="a few" y="0" width="36" height="36"/>',
    ],
)
def test_a_shape_without_usable_bounds_is_left_out_and_said(bounds: str) -> None:
    broken = f'<di:BPMNShape bpmnElement="b">{bounds}</di:BPMNShape>'
    plane = shape("t", 0, 0, 120, 80) + broken
    picture = draw(bpmn(REMINDER, plane), {"b": Badge("after 48 h", "ok")}, title="T")
    assert "b" not in groups(picture)
    assert picture.caption == (
        "T. 1 shapes or edges of the file's diagram cannot be drawn. not in this picture: Late (b)"
    )
    assert "Late (b): after 48 h [ok]" in picture.alt


def test_a_shape_of_a_missing_element_is_marked() -> None:
    plane = shape("t", 0, 0, 120, 80) + shape("gone", 200, 0, 120, 80)
    assert words(groups(draw(bpmn(REMINDER, plane), title="T"))["gone"]) == "gone (not in the file)"


def test_a_flow_without_a_line_joins_its_shapes_straight() -> None:
    plane = shape("t", 0, 0, 100, 80) + shape("e", 200, 22, 36, 36)
    assert points(groups(draw(bpmn(REMINDER, plane), title="T"))["f"]) == [(100, 40), (200, 40)]


def test_a_line_that_ends_in_the_middle_of_a_shape_is_cut_at_its_outline() -> None:
    plane = shape("t", 0, 0, 100, 80) + shape("e", 200, 22, 36, 36) + edge("f", (50, 40), (218, 40))
    assert points(groups(draw(bpmn(REMINDER, plane), title="T"))["f"]) == [(100, 40), (200, 40)]


ZOO_NODES = [
    "task", "userTask", "serviceTask", "scriptTask", "manualTask", "businessRuleTask", "sendTask",
    "receiveTask", "callActivity", "subProcess", "transaction", "adHocSubProcess",
    "exclusiveGateway", "parallelGateway", "inclusiveGateway", "complexGateway",
    "eventBasedGateway", "startEvent", "endEvent", "intermediateCatchEvent",
    "intermediateThrowEvent", "boundaryEvent",
]  # fmt: skip
ZOO_REST = ["dataObjectReference", "dataStoreReference", "dataInput", "textAnnotation", "group"]


def test_every_kind_of_element_is_drawn() -> None:
    tags = [*ZOO_NODES, *ZOO_REST, "lane"]
    process = "".join(f'<{tag} id="{tag}" name="n"/>' for tag in tags)
    flows = "".join(
        f'<{tag} id="{tag}" sourceRef="task" targetRef="userTask"/>'
        for tag in ("sequenceFlow", "association")
    )
    around = (
        '<collaboration><participant id="pool" name="n" processRef="p"/>'
        '<messageFlow id="messageFlow" sourceRef="task" targetRef="pool"/></collaboration>'
    )
    plane = "".join(shape(tag, 150 * i, 0, 100, 80) for i, tag in enumerate(tags))
    plane += shape("pool", 0, 200, 900, 90)
    lines = ("sequenceFlow", "association", "messageFlow")
    plane += "".join(edge(tag, (0, 300), (90, 300)) for tag in lines)
    drawn = groups(draw(bpmn(process + flows, plane, around=around), title="T"))
    assert drawn.keys() == {*tags, "pool", *lines}
    dashes = {tag: drawn[tag][1].get("stroke-dasharray") for tag in lines}
    assert dashes["sequenceFlow"] is None
    assert len(set(dashes.values())) == 3


def test_each_kind_of_node_looks_like_no_other() -> None:
    looks = set()
    for tag in ZOO_NODES:
        root = bpmn(f'<{tag} id="x"/>', shape("x", 0, 0, 100, 80))
        group = groups(draw(root, title="T"))["x"]
        looks.add(b"".join(etree.tostring(part) for part in group))
    alike = 2  # without a definition, the three kinds of event amid a process look the same
    assert len(looks) == len(ZOO_NODES) - alike


def test_the_first_plane_with_shapes_is_drawn_and_the_others_named() -> None:
    planes = ("", shape("t", 0, 0, 120, 80), shape("e", 0, 0, 36, 36))
    root = bpmn(REMINDER, *planes)
    assert groups(draw(root, title="T")).keys() == {"t"}
    assert "Other diagrams of the file: plane 0, plane 2" in draw(root, title="T").caption
    assert groups(draw(root, title="T", plane=2)).keys() == {"e"}
    with pytest.raises(UnusableInput, match="plane 3"):
        draw(root, title="T", plane=3)


@pytest.mark.parametrize("body", ["", "<documentation>nothing</documentation>"])
def test_a_file_with_nothing_to_draw_is_refused(body: str) -> None:
    with pytest.raises(UnusableInput, match="no process with a task"):
        draw(bpmn(body), title="T")


def test_the_same_file_gives_the_same_bytes_by_any_prefix() -> None:
    badges = {"b": Badge("after 48 h", "ok")}
    text = etree.tostring(bpmn(REMINDER, REMINDER_PLANE)).decode()
    other = text.replace("di:", "zz:").replace(":di=", ":zz=")
    one, two = (draw(etree.fromstring(t), badges, title="T") for t in (text, other))
    assert one == draw(etree.fromstring(text), badges, title="T")
    assert one == two


# ---------------------------------------------------------------- files without a diagram


def laid_out(count: int, arcs: Iterable[tuple[int, int]], tags: list[str]) -> etree._Element:
    """A process of nodes n0, n1, ... with flows between them, and no diagram."""
    nodes = "".join(f'<{tags[i % len(tags)]} id="n{i}" name="Node {i}"/>' for i in range(count))
    flows = "".join(
        f'<sequenceFlow id="f{i}" sourceRef="n{a}" targetRef="n{b}"/>'
        for i, (a, b) in enumerate(arcs)
    )
    return bpmn(nodes + flows)


def crosses(a: tuple[float, float], b: tuple[float, float], box: Rect) -> bool:
    """Whether a level or upright line runs through the inside of a box."""
    x, y, w, h = box
    span = (min(a[0], b[0]), min(a[1], b[1]), abs(a[0] - b[0]), abs(a[1] - b[1]))
    grown = (span[0] - 0.2, span[1] - 0.2, span[2] + 0.4, span[3] + 0.4)
    return overlaps(grown, (x + 1, y + 1, w - 2, h - 2))


@given(
    count=st.integers(1, 24),
    data=st.data(),
    tags=st.permutations(["task", "intermediateCatchEvent", "exclusiveGateway"]),
)
def test_a_layout_has_every_node_once_apart_from_the_others_and_off_the_lines(
    count: int, data: st.DataObject, tags: list[str]
) -> None:
    node = st.integers(0, count - 1)
    arcs = data.draw(st.lists(st.tuples(node, node), max_size=2 * count))
    picture = draw(laid_out(count, arcs, tags), title="T")
    drawn = groups(picture)
    assert "Laid out by seams-lab: the file has no diagram" in picture.caption
    assert drawn.keys() == {f"n{i}" for i in range(count)} | {f"f{i}" for i in range(len(arcs))}
    boxes = [rect(drawn[f"n{i}"]) for i in range(count)]
    assert not [pair for pair in combinations(boxes, 2) if overlaps(*pair)]
    for i, _ in enumerate(arcs):
        line = points(drawn[f"f{i}"])
        for a, b in pairwise(line):
            assert a[0] == b[0] or a[1] == b[1], "level or upright"
            assert not [box for box in boxes if crosses(a, b, box)]


def test_flows_run_from_left_to_right() -> None:
    drawn = groups(draw(laid_out(4, [(0, 1), (1, 2), (0, 2), (2, 3)], ["task"]), title="T"))
    lefts = [rect(drawn[f"n{i}"])[0] for i in range(4)]
    assert lefts == sorted(set(lefts))


def test_flows_that_go_around_have_a_height_each() -> None:
    arcs = [(0, 1), (1, 2), (2, 3), (2, 0), (3, 0), (3, 1)]
    drawn = groups(draw(laid_out(4, arcs, ["task"]), title="T"))
    lowest = [max(y for _, y in points(drawn[f"f{i}"])) for i in (3, 4, 5)]
    assert len(set(lowest)) == 3
    assert min(lowest) > max(rect(drawn[f"n{i}"])[1] + 76 for i in range(4))


def test_a_layout_holds_sub_processes_boundaries_and_several_processes() -> None:
    sub = (
        f'<startEvent id="s"/><subProcess id="sub"><task id="in"/><subProcess id="deep">'
        f'<endEvent id="deepest"/></subProcess></subProcess>'
        f'<boundaryEvent id="b" attachedToRef="sub">{TIMER}</boundaryEvent>'
        f'<boundaryEvent id="stray" attachedToRef="nowhere">{TIMER}</boundaryEvent>'
        '<boundaryEvent id="loop" attachedToRef="loop"/><endEvent id="e"/>'
        '<sequenceFlow id="f" sourceRef="b" targetRef="e"/>'
    )
    drawn = groups(draw(bpmn(sub, around='<process id="q"><task id="u"/></process>'), title="T"))
    wanted = {"s", "sub", "in", "deep", "deepest", "b", "stray", "loop", "e", "f", "u", "p", "q"}
    assert drawn.keys() == wanted
    for inner, outer in [
        ("in", "sub"),
        ("deep", "sub"),
        ("deepest", "deep"),
        ("sub", "p"),
        ("u", "q"),
    ]:
        x, y, w, h = rect(drawn[inner])
        ox, oy, ow, oh = rect(drawn[outer])
        assert ox < x
        assert oy < y
        assert x + w < ox + ow
        assert y + h < oy + oh
    _, y, _, h = rect(drawn["b"])
    _, sub_y, _, sub_h = rect(drawn["sub"])
    assert y + h / 2 == pytest.approx(sub_y + sub_h), "on the edge of its activity"
    assert not overlaps(rect(drawn["p"]), rect(drawn["q"]))


def test_a_long_chain_and_deep_nesting_do_not_exhaust_the_stack() -> None:
    chain = laid_out(3000, [(i, i + 1) for i in range(2999)], ["task"])
    assert len(groups(draw(chain, title="T"))) == 5999
    deep = "<subProcess>" * 200 + '<task id="t"/>' + "</subProcess>" * 200
    assert "t" in groups(draw(bpmn(deep), title="T"))


def test_sixty_timers_keep_their_badges_apart_and_large_enough() -> None:
    timers = "".join(
        f'<intermediateCatchEvent id="n{i}" name="Wait {i}">{TIMER}</intermediateCatchEvent>'
        for i in range(60)
    )
    flows = "".join(
        f'<sequenceFlow id="f{i}" sourceRef="n{i}" targetRef="n{i + 1}"/>' for i in range(59)
    )
    badges = {f"n{i}": Badge(f"daily {i:02}:00Z", list(TONES)[i % 5]) for i in range(60)}
    picture = draw(bpmn(timers + flows), badges, title="T")
    places = [rect(group) for key, group in groups(picture).items() if key.startswith("badge ")]
    assert len(places) == 60
    assert not [pair for pair in combinations(places, 2) if overlaps(*pair)]
    svg = etree.fromstring(picture.data)
    found = re.search(r"min-width:([\d.]+)px", svg.get("style", ""))
    assert found
    smallest = float(found[1]) / float(svg.get("width", "0")) * 11
    assert smallest > 7, "a badge's letters, in pixels, however narrow the page"
    assert all(f"n{i}): daily {i:02}:00Z [{list(TONES)[i % 5]}]" in picture.alt for i in range(60))


def test_the_picture_says_what_it_shows_without_being_seen() -> None:
    picture = draw(
        bpmn(REMINDER, REMINDER_PLANE), {"b": Badge("after 48 h", "ok")}, title="T", caption="C"
    )
    svg = etree.fromstring(picture.data)
    assert picture.caption == "C"
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == picture.alt
    assert picture.alt == (
        "T: a BPMN diagram of 3 nodes and 1 flows. 1 timers: Late (b): after 48 h [ok]"
    )
    assert svg.findtext(SVG + "title") == "T"


# ---------------------------------------------------------------- the model of the project


@pytest.mark.parametrize("name", ["approval", "digest", "month_end", "payout", "year_close"])
def test_the_expense_model_draws_each_node_by_its_own_diagram(models: Path, name: str) -> None:
    root = etree.parse(models / "expense" / f"{name}.bpmn").getroot()
    picture = draw(root, title=name)
    assert picture.caption == name, "nothing to add"
    process = root.find(f"{{{MODEL}}}process")
    assert process is not None
    drawn = groups(picture)
    assert drawn.keys() == {child.get("id") for child in process}
    boxes = [
        rect(drawn[str(child.get("id"))])
        for child in process
        if child.tag not in (f"{{{MODEL}}}sequenceFlow", f"{{{MODEL}}}boundaryEvent")
    ]
    assert not [pair for pair in combinations(boxes, 2) if overlaps(*pair)]
