"""What is drawn, as plain values: boxes, lines, and the elements of a file behind them."""

from __future__ import annotations

from dataclasses import dataclass

from lxml import etree

from seams_lab.diagram.box import Box, Point
from seams_lab.diagram.signs import GATEWAY_SIGNS, TASK_SIGNS
from seams_lab.diagram.text import clean

BPMN = "{http://www.omg.org/spec/BPMN/20100524/MODEL}"


BPMNDI = "{http://www.omg.org/spec/BPMN/20100524/DI}"


MOST = 5_000  # shapes, and edges, that are drawn of one diagram


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


class File:
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
                self.find(clean(child.text)) if tag_of(child) == "eventDefinitionRef" else child
            )
            kind = tag_of(referenced)
            if kind.endswith("EventDefinition"):
                found.append(kind.removesuffix("EventDefinition"))
        return found

    def timers(self) -> list[etree._Element]:
        """Every event with a timer definition, in the order of the file."""
        return [
            e for e in self.everything if tag_of(e) in EVENTS and "timer" in self.definitions(e)
        ]

    def ends(self, flow: etree._Element) -> tuple[etree._Element | None, etree._Element | None]:
        """Where a flow or association starts and ends; a data association may name its task
        only by lying in it, and its data only in a child.
        """
        source, target = flow.get("sourceRef"), flow.get("targetRef")
        if tag_of(flow).startswith("data"):
            source, target = flow.findtext(BPMN + "sourceRef"), flow.findtext(BPMN + "targetRef")
        ends = self.find(clean(source)), self.find(clean(target))
        owner = flow.getparent()
        if tag_of(flow) == "dataInputAssociation":
            return ends[0], owner
        if tag_of(flow) == "dataOutputAssociation":
            return owner, ends[1]
        return ends


def tag_of(element: etree._Element | None) -> str:
    """The local name of a BPMN element; empty for anything else."""
    if element is None or not isinstance(element.tag, str) or not element.tag.startswith(BPMN):
        return ""
    return element.tag[len(BPMN) :]


def name_of(file: File, element: etree._Element | None) -> str:
    """What is written at an element."""
    if element is None:
        return ""
    if tag_of(element) == "textAnnotation":
        return clean(element.findtext(BPMN + "text"))
    name = element.get("name")
    if not name and tag_of(element) == "participant":
        process = file.find(element.get("processRef"))
        name = process.get("name") if process is not None else None
    return clean(name)
