"""BPMN → index triples: what the graph says about each element of a BPMN file."""

from __future__ import annotations

from collections.abc import Mapping

import pyoxigraph as ox
from rdflib import RDF, RDFS

from seams_lab.payload import SEAM_WORTHY, Element, Payload, TimerElement
from seams_lab.vocabulary import PROC, SEAM

#: Subject, predicate, object: IRIs, except that the object of an rdfs:label is its text.
Triple = tuple[str, str, str]

TYPE, LABEL = str(RDF.type), str(RDFS.label)
IN_MODEL, DETAILED_BY = str(SEAM.inModel), str(SEAM.detailedBy)
_TASK_TYPES = {
    "userTask": "UserTask", "serviceTask": "ServiceTask", "businessRuleTask": "BusinessRuleTask",
}  # fmt: skip
_EVENT_TYPES = {
    ("intermediateThrowEvent", "messageEventDefinition"): "MessageThrowEvent",
    ("endEvent", "messageEventDefinition"): "MessageThrowEvent",
    ("intermediateCatchEvent", "messageEventDefinition"): "MessageCatchEvent",
    ("startEvent", "messageEventDefinition"): "MessageCatchEvent",
    ("boundaryEvent", "errorEventDefinition"): "ErrorBoundaryEvent",
}


def element_iri(model: str, identifier: str) -> str | None:
    """Return ``<model>#<id>``, or None when the id cannot stand in an IRI as it is."""
    if not identifier:
        return None
    try:
        return ox.NamedNode(f"{model}#{identifier}").value
    except ValueError:
        return None


def index_type(element: Element, timer: TimerElement | None = None) -> str | None:
    """Return the IRI of the proc: class that an element's index entry has, or None.

    *timer* is the element's TimerElement, where it has one; it alone then decides (R30-R34).
    """
    if timer is not None:
        name = timer.index_type
    elif element.tag == "process":
        name = "Process"
    elif element.tag == "task" or element.tag.endswith("Task"):
        name = _TASK_TYPES.get(element.tag, "Task")
    else:
        found = (_EVENT_TYPES.get((element.tag, d)) for d in element.definitions)
        name = next((f for f in found if f), None)
    return None if name is None else str(PROC[name])


def index_triples(
    payload: Payload, model_iri: str, process_iris: Mapping[str, str]
) -> list[Triple]:
    """Return the index triples of a BPMN file, sorted.

    Every seam-worthy element gets seam:inModel, rdfs:label where it has a name and rdf:type
    where proc: has a class. Left out: timers out of scope (rulings 11a), ids that cannot stand
    in an IRI, and processes that *process_iris* (``bpmn:process`` id → IRI) does not hold.
    """
    timers = {t.id: t for t in payload.timers}
    triples: list[Triple] = []
    for element in payload.elements.values():
        timer = timers.get(element.id)
        if element.tag not in SEAM_WORTHY or (timer and timer.index_type is None):
            continue
        if element.tag == "process":
            iri = process_iris.get(element.id)
        else:
            iri = element_iri(model_iri, element.id)
        if iri is None:
            continue
        triples.append((iri, IN_MODEL, model_iri))
        if element.name.strip():
            triples.append((iri, LABEL, element.name))
        kind = index_type(element, timer)
        if kind is not None:
            triples.append((iri, TYPE, kind))
    return sorted(triples)


def left_out(payload: Payload, model: str, processes: Mapping[str, str]) -> list[str]:
    """Say which elements `index_triples` leaves out, and why."""
    notes = []
    for timer in payload.timers:
        if timer.id not in payload.elements:
            notes.append(f"{timer.id}: a timer without an id, not lifted; give it one")
        elif timer.index_type is None:
            notes.append(f"{timer.id!r}: timer out of scope ({timer.position}), not lifted")
    for element in payload.elements.values():
        usable = element.id in processes or element_iri(model, element.id) is not None
        if element.tag in SEAM_WORTHY and not usable:
            notes.append(
                f"{element.id!r} ({element.tag}, line {element.line}): the id cannot stand in "
                "an IRI, not lifted; use letters, digits, '_', '-' and '.'"
            )
    return notes
