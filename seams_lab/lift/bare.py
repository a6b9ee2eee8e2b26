"""New TriG files for BPMN files that none names, and those that lift made earlier."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote

import pyoxigraph as ox
from rdflib import RDFS

from seams_lab.errors import UnusableInput
from seams_lab.graph import ModelGraph, load_graph, local_name
from seams_lab.lift.block import read_text, take_apart
from seams_lab.lift.index import element_iri
from seams_lab.lift.planning import payload_paths, plan_sources
from seams_lab.lift.result import LiftPlan
from seams_lab.payload import Payload
from seams_lab.vocabulary import SEAM, SEAMS_GRAPH, model_graph

DEFAULT_BASE = "https://example.org"
MADE = "# seams-lab lift: made for "


def plan_bare(graph: ModelGraph, base: str | None) -> LiftPlan:
    """Plan a ``<stem>.trig`` beside each bare BPMN file; see `plan` for *base*."""
    if base is not None and ("?" in base or not element_iri(base, "x")):
        raise UnusableInput(
            "base", repr(base), "an absolute IRI without '?' and '#'",
            "pass something like https://example.org/expense",
        )  # fmt: skip
    plans: list[LiftPlan] = []
    unread: list[str] = []
    remarks: list[str] = []
    taken: set[Path] = set()
    for name, path in sorted(graph.bare.items()):
        try:
            payload = graph.payload(name)
        except UnusableInput as error:
            unread.append(str(error))
            continue
        stem = re.sub(r"\.(bpmn|bpmn2|bpmn20\.xml|xml)$", "", path.name, flags=re.IGNORECASE)
        stem = stem or path.name
        target = path.with_name(f"{stem}.trig")
        if target in taken:
            remarks.append(f"{name}: {target.name} is made for another file; rename one of them")
            continue
        taken.add(target)
        if base is not None and len(graph.bare) == 1:
            model = base
        else:
            model = f"{(base or DEFAULT_BASE).rstrip('/')}/{_quoted(stem)}"
        if os.path.lexists(target):
            plans.append(_plan_again(path, None if base is None else model, target))
        else:
            _refuse_named(path)
            source = take_apart(target, _head(path, payload, model), None)
            plans.append(plan_sources(path.parent, [source]))
    return LiftPlan(
        tuple(f for p in plans for f in p.files),
        (*unread, *(u for p in plans for u in p.unread)),
        (*remarks, *(r for p in plans for r in p.remarks)),
    )


def _plan_again(path: Path, model: str | None, target: Path) -> LiftPlan:
    """Plan for the TriG file that lift made earlier for a BPMN file; refuse any other one."""
    old = read_text(target)
    named = payload_paths(load_graph(target)).get(path.resolve())
    if MADE not in old or named is None or model not in (None, named):
        raise UnusableInput(
            str(target), "there already, and not made by lift for this file and base",
            "no file of that name, or one that lift made",
            f"lift {target.name} itself, or rename one of the two",
        )  # fmt: skip
    return plan_sources(path.parent, [take_apart(target, old, old)])


def _refuse_named(path: Path) -> None:
    """Refuse a BPMN file that a TriG file beside it already names."""
    if not any(path.parent.glob("*.trig")):
        return
    model = payload_paths(load_graph(path.parent)).get(path.resolve())
    if model is not None:
        raise UnusableInput(
            str(path), f"already the file of the model {model}",
            "a BPMN file that no TriG file beside it names", "lift that TriG file or the folder",
        )  # fmt: skip


def _quoted(name: str) -> str:
    try:
        return quote(name, safe="")
    except UnicodeEncodeError:
        raise UnusableInput(
            repr(name), "a file name that is not Unicode", "a name in UTF-8", "rename the file"
        ) from None


def _head(path: Path, payload: Payload, model: str) -> str:
    """The own text of a new TriG file: the model and its BPMN file, by a relative IRI."""
    names = [payload.elements[p].name.strip() for p in payload.processes]
    label = names[0] if len(names) == 1 and names[0] else path.name
    file, node = _quoted(path.name), ox.NamedNode(model)
    return f"""\
{MADE}{file}. It is yours to edit, outside the block below.

@prefix rdfs: <{RDFS}> .
@prefix seam: <{SEAM}> .

GRAPH {ox.NamedNode(str(model_graph(local_name(model))))} {{
  {node} a seam:Model ;
    rdfs:label {ox.Literal(label)} .
}}

GRAPH {ox.NamedNode(str(SEAMS_GRAPH))} {{
  {node} seam:notation seam:BPMN ;
    seam:renderPayload <{file}> .
}}
"""
