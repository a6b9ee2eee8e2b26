"""What a model's graph lacks of its index, and where a person has said something else."""

from __future__ import annotations

from collections import Counter

import pyoxigraph as ox

from seams_lab.graph import ModelGraph, local_name
from seams_lab.lift.block import iri_of
from seams_lab.lift.index import (
    DETAILED_BY,
    IN_MODEL,
    LABEL,
    TYPE,
    Triple,
    element_iri,
    index_triples,
    index_type,
    left_out,
)
from seams_lab.payload import Payload
from seams_lab.vocabulary import MANIFEST_GRAPH, PROC, SEAM, SEAMS_GRAPH, model_graph

MODEL = ox.NamedNode(str(SEAM.Model))


def missing(own: ModelGraph, model: str, payload: Payload) -> tuple[set[ox.Quad], list[str]]:
    """Return the quads that the person's own text does not state yet, and notes."""
    if element_iri(model, "x") is None:
        return set(), ["the model's IRI must be absolute and have no '#'; nothing lifted"]
    processes, notes = _processes(own, payload, model)
    notes += left_out(payload, model, processes) + _untyped(own, payload, model)
    graph, seams = _graph_of(own, model), ox.NamedNode(str(SEAMS_GRAPH))
    quads = set()
    for triple in index_triples(payload, model, processes):
        subject, predicate, value = triple
        objection = _objection(own, triple, subject in processes.values())
        if objection:
            notes.append(objection)
        if objection is None and value not in own.pairs(predicate).get(subject, ()):
            term = ox.Literal(value) if predicate == LABEL else ox.NamedNode(value)
            quads.add(ox.Quad(ox.NamedNode(subject), ox.NamedNode(predicate), term, graph))
    for iri in processes.values():
        if model not in own.pairs(DETAILED_BY).get(iri, ()):
            edge = ox.NamedNode(DETAILED_BY)
            quads.add(ox.Quad(ox.NamedNode(iri), edge, ox.NamedNode(model), seams))
    return quads, notes


def _processes(own: ModelGraph, payload: Payload, model: str) -> tuple[dict[str, str], list[str]]:
    """Match ``bpmn:process`` ids with proc:Process IRIs; a new IRI only where none is there.

    The rule is that of `ModelGraph.process_of`: by local name, else the one left on either side.
    """
    inside = [p for p in own.inverse(IN_MODEL).get(model, ()) if p not in own.pairs(DETAILED_BY)]
    named = {*own.inverse(DETAILED_BY).get(model, ()), *inside} & own.process_set
    there = {p for p in named if ":" in p}  # not the blank nodes: they have no name to match
    iris: dict[str, str] = {}
    for identifier in payload.processes:
        same = [p for p in there if own.name(p) == identifier]
        if len(same) == 1:
            iris[identifier] = same[0]
    ids = [i for i in payload.processes if i not in iris]
    left = sorted(there - set(iris.values()))
    if not left:
        new = ((i, element_iri(model, i)) for i in ids)
        return iris | {i: iri for i, iri in new if iri is not None}, []
    if len(left) == len(ids) == 1:
        return iris | {ids[0]: left[0]}, []
    return iris, [
        f"{i!r}: not clear which proc:Process it is ({', '.join(left)}), not lifted; "
        "give one the process's id as its last part"
        for i in ids
    ]


def _graph_of(own: ModelGraph, model: str) -> ox.NamedNode | ox.DefaultGraph:
    """Return the graph that holds the model's elements, else the model, else the usual name."""
    node, shared = ox.NamedNode(model), {str(SEAMS_GRAPH), str(MANIFEST_GRAPH)}
    members = own.store.quads_for_pattern(None, ox.NamedNode(IN_MODEL), node)
    found = [
        iri_of(q.graph_name)
        for q in members
        if iri_of(q.subject).startswith(f"{model}#") and iri_of(q.graph_name) not in shared
    ]
    if not found:
        declared = own.store.quads_for_pattern(node, ox.NamedNode(TYPE), MODEL)
        found = [iri_of(q.graph_name) for q in declared if iri_of(q.graph_name) not in shared]
    if not found:
        return ox.NamedNode(str(model_graph(local_name(model))))
    name = min(Counter(found).items(), key=lambda item: (-item[1], item[0]))[0]
    return ox.NamedNode(name) if name else ox.DefaultGraph()


def _objection(own: ModelGraph, triple: Triple, is_process: bool) -> str | None:
    """Say why a person's own triples speak against one; "" where that needs no note."""
    subject, predicate, value = triple
    stated = own.pairs(predicate).get(subject, ())
    said = [v for v in stated if v != value]
    if predicate == LABEL:
        return "" if said else None
    if predicate == IN_MODEL:
        if value in stated:
            return None
        if is_process:  # it may be drawn in one model and detailed by another
            return "" if said else None
    if predicate == TYPE:
        general = str(PROC.Task) if value.endswith("Task") else None
        said = [v for v in said if v.startswith(str(PROC)) and v != general]
    if not said:
        return None
    names, word = ", ".join(map(local_name, said)), "type" if predicate == TYPE else "model"
    return f"{local_name(subject)!r}: your text gives the {word} {names}, not {local_name(value)}"


def _untyped(own: ModelGraph, payload: Payload, model: str) -> list[str]:
    """Say which elements a person gave a proc: type although lift would give none."""
    timers, notes = {t.id: t for t in payload.timers}, []
    for element in payload.elements.values():
        iri = element_iri(model, element.id)
        if iri is None or index_type(element, timers.get(element.id)) is not None:
            continue
        types = own.pairs(TYPE).get(iri, ())
        said = [local_name(t) for t in types if t.startswith(str(PROC))]
        if said:
            where = timers[element.id].position if element.id in timers else element.tag
            types_said = ", ".join(said)
            notes.append(f"{element.id!r}: your text gives the type {types_said} to a {where}")
    return notes
