"""From TriG files to a plan: each model's missing triples go to the file that declares it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyoxigraph as ox

from seams_lab.errors import UnusableInput
from seams_lab.graph import ModelGraph, is_bpmn_name
from seams_lab.lift.block import Source, ground, iri_of, is_union, parse
from seams_lab.lift.index import DETAILED_BY, IN_MODEL, TYPE
from seams_lab.lift.missing import MODEL, missing
from seams_lab.lift.result import FileLift, LiftPlan
from seams_lab.vocabulary import SEAM


def plan_sources(root: Path, sources: Sequence[Source]) -> LiftPlan:
    """Plan for TriG files that are read together; *root* is the model's folder."""
    store = ox.Store()
    store.extend(q for s in sources for q in s.own)
    own = ModelGraph(root, tuple(s.path for s in sources), store, {})
    held = {q for s in sources for q in s.held if q not in store}
    quads: dict[Path, set[ox.Quad]] = {s.path: set() for s in sources}
    notes: dict[Path, list[str]] = {s.path: [] for s in sources}
    unread: list[str] = []
    homes = _homes(sources)
    for model in own.bpmn_models:
        home = homes[model]
        try:
            payload = own.payload(model)
        except UnusableInput as error:
            unread.append(str(error))
            quads[home] |= _entries(model, held)
            continue
        found, remarks = missing(own, model, payload)
        quads[home] |= found
        notes[home] += [f"{own.name(model)}: {r}" for r in remarks]
    files = tuple(_file(s, quads[s.path], notes[s.path]) for s in sources)
    return LiftPlan(files, tuple(unread), tuple(_unnamed(own)))


def _homes(sources: Sequence[Source]) -> dict[str, Path]:
    """Model → the file that declares it: says that it is a seam:Model, else its notation."""
    typed: dict[str, Path] = {}
    noted: dict[str, Path] = {}
    for source in sources:
        for quad in source.own:
            subject = str(getattr(quad.subject, "value", ""))
            if quad.predicate.value == TYPE and quad.object == MODEL:
                typed.setdefault(subject, source.path)
            elif quad.predicate.value == str(SEAM.notation):
                noted.setdefault(subject, source.path)
    return noted | typed


def _entries(model: str, held: set[ox.Quad]) -> set[ox.Quad]:
    """A model's entries in the blocks so far, for when its BPMN file cannot be read now."""
    members = {
        q.subject
        for q in held
        if iri_of(q.object) == model and q.predicate.value in (IN_MODEL, DETAILED_BY)
    }
    return {q for q in held if q.subject in members or iri_of(q.subject).startswith(f"{model}#")}


def _unnamed(own: ModelGraph) -> list[str]:
    """Say which BPMN files in the folder no model names."""
    if not own.is_whole:
        return []  # other TriG files, which are not looked at here, may name them
    named = payload_paths(own)
    return [
        f"{path.name}: no model names this BPMN file; lift it by its own name to add one"
        for path in sorted(own.root.iterdir())
        if is_bpmn_name(path.name) and path.resolve() not in named
    ]


def payload_paths(graph: ModelGraph) -> dict[Path, str]:
    """BPMN file → model, for the models whose file can be told."""
    paths = {}
    for model in graph.bpmn_models:
        try:
            paths[graph.payload_path(model).resolve()] = model
        except UnusableInput:
            continue
    return paths


def _file(source: Source, quads: set[ox.Quad], notes: Sequence[str]) -> FileLift:
    new = source.text(quads)
    whole = parse(new, source.path)
    if not is_union(whole, source.own, quads):
        raise UnusableInput(
            str(source.path), "a text in which the block would say something else",
            "the block after the last triple, and absolute IRIs or no @base",
            "move the block to the end of the file, and name models by absolute IRIs",
        )  # fmt: skip
    now: set[ox.Quad] = set() if source.old is None else {*ground(source.own), *source.held}
    then = set(ground(whole))
    return FileLift(source.path, source.old, new, len(then - now), len(now - then), tuple(notes))
