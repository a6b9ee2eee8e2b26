"""A BPMN file drawn as SVG: its diagram interchange, with a badge on each timer.

Three steps, each a plain value: a file's tree becomes a `Scene` (`interchange`, or `layout`
for a file without a diagram), the scene becomes SVG (`canvas`), the SVG a `Picture`. Every
text of the file is escaped, and every number of it is parsed and printed again, so nothing
in a file can become markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lxml import etree

from seams_lab.diagram.canvas import Canvas
from seams_lab.diagram.interchange import plane_name, read_plane
from seams_lab.diagram.layout import lay_out
from seams_lab.diagram.scene import NODES, File, Scene
from seams_lab.diagram.signs import TONES, Badge
from seams_lab.diagram.text import clean
from seams_lab.errors import UnusableInput
from seams_lab.picture import Picture

__all__ = ["TONES", "Badge", "draw"]


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
    file = File(root)
    scene = _scene(file, plane)
    canvas = Canvas(file, scene)
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
    line = ". ".join([clean(caption) or clean(title), *notes])
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
    words = [f"{clean(title)}: a BPMN diagram of {nodes} nodes and {len(scene.edges)} flows"]
    rows = []
    for timer in timers:
        badge = badges.get(timer.get("id", ""))
        said = f"{clean(badge.text)} [{badge.tone}]" if badge else "no badge"
        rows.append(f"{_title_of(timer)}: {said}")
    words.append(f"{len(rows)} timers: {_some(rows, 200, '; ')}" if rows else "No timers")
    return ". ".join([*words, *notes])


def _title_of(element: etree._Element) -> str:
    name, key = clean(element.get("name")), clean(element.get("id"))
    return f"{name} ({key})" if name else key or "(no id)"


def _some(items: Sequence[str], most: int, between: str = ", ") -> str:
    rest = f"{between}and {len(items) - most} more" if len(items) > most else ""
    return between.join(items[:most]) + rest


def _scene(file: File, wanted: int | None) -> Scene:
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
        scene = read_plane(file, file.planes[index])
        if scene.shapes:
            others = [plane_name(p) for i, p in enumerate(file.planes) if i != index]
            more = (f"Other diagrams of the file: {_some(others, 3)}",) if others else ()
            return Scene(scene.shapes, scene.edges, scene.notes + more)
    scene = lay_out(file)
    if not scene.shapes:
        raise UnusableInput(
            "diagram",
            "no process with a task, event or gateway",
            "a BPMN 2.0 file with at least one",
            "check the namespace of its elements",
        )
    why = "the file's diagram has no usable shape" if file.planes else "the file has no diagram"
    return Scene(scene.shapes, scene.edges, (f"Laid out by seams-lab: {why}", *scene.notes))
