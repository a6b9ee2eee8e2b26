"""Drift: where the graph's index and the BPMN files disagree (ADR-0006, D1 to D7).

A `.driftignore` file in the model's folder hides findings of this module, one pattern a line:

    # comment
    approval#legacy_*               # any drift finding on these elements
    approval#scan drift-unlifted    # only this check

A comment begins a line or follows two spaces. A pattern is matched (with * and ?) against the
element's id, ``<model's short name>#<id>`` and IRI, or against the name of a BPMN file. Findings
on timers cannot be hidden: a schedule would stop silently.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from rdflib import RDF

from seams_lab.errors import UnusableInput
from seams_lab.findings import Finding
from seams_lab.graph import ModelGraph, is_bpmn_name, local_name
from seams_lab.lift.index import element_iri
from seams_lab.payload import SEAM_WORTHY, Payload
from seams_lab.profile import not_lifted_fix, not_lifted_reason
from seams_lab.timers import INDEX_TYPES, Timer
from seams_lab.vocabulary import SEAM

IGNORE_FILE = ".driftignore"
_HIDEABLE = {"drift-dangling", "drift-unlifted", "payload-unreferenced"}
_POSITIONS = {
    "TimerStartEvent": "a process-level start event with one timer definition",
    "TimerCatchEvent": "an intermediate catch event, or a boundary event on a user task, "
    "with one timer definition",
}


def drift(graph: ModelGraph, timers: Iterable[Timer], *, ci: bool = False) -> list[Finding]:
    """Return every disagreement between index and payloads.

    *timers* are those of `timers.timers(graph, at)`; *ci* raises the manifest's findings on
    media types and checksums from warning to error.
    """
    by_model: dict[str, list[Timer]] = {}
    for timer in timers:
        by_model.setdefault(timer.model, []).append(timer)
    typed = _typed_by_model(graph)
    found = [*_manifest(graph, ci), *_unreferenced(graph), *_of_no_model(graph, typed)]
    subjects, objects = (_by_model(graph, iris) for iris in graph.mentioned)
    for model in graph.bpmn_models:
        try:
            payload = graph.payload(model)
        except UnusableInput as error:
            found.append(_unusable(graph, model, error))
            continue
        own_timers = by_model.get(model, [])
        found += _expressions(graph, own_timers)
        if model not in graph.bare:
            found += _timer_types(own_timers, payload)
            found += _not_in_model(graph, own_timers)
            found += _not_timers(graph, typed.get(model, []), payload, own_timers)
            lifted = subjects.get(model, set())
            found += _dangling(graph, model, payload, lifted | objects.get(model, set()))
            found += _unlifted(graph, model, payload, lifted)
    return _without_ignored(graph, found)


def on_graph(
    graph: ModelGraph, iri: str, check: str, severity: str, message: str, fix: str
) -> Finding:
    """A finding about something in the TriG files, with its place there."""
    file, line = graph.locate(iri)
    return Finding(file, iri, check, severity, message, fix, line)


def _unusable(graph: ModelGraph, model: str, error: UnusableInput) -> Finding:
    message = f"{error.where}: {error.seen}; expected {error.expected}"
    if model in graph.bare:
        return Finding(str(graph.bare[model]), "", "payload-unusable", "error", message, error.fix)
    return on_graph(graph, model, "payload-unusable", "error", message, error.fix)


# ---------------------------------------------------------------------- phase 1: the manifest


def _manifest(graph: ModelGraph, ci: bool) -> Iterator[Finding]:
    media = graph.pairs(str(SEAM.mediaType))
    checksums = graph.pairs(str(SEAM.checksum))
    stern = "error" if ci else "warning"
    for entry, files in graph.pairs(str(SEAM.filePath)).items():
        if entry not in media:
            yield on_graph(
                graph, entry, "manifest-media-type", stern,
                "the manifest entry has no media type", "add seam:mediaType",
            )  # fmt: skip
        for relative in files:
            path = graph.inside(relative)
            if path is None or not os.path.isfile(path):
                yield on_graph(
                    graph, entry, "manifest-file", "error",
                    f"the manifest names {relative!r}, which is not a file of this model",
                    "correct seam:filePath, relative to the model's folder",
                )  # fmt: skip
                continue
            for wanted in checksums.get(entry, ()):
                actual = f"sha256:{_sha256(path)}"
                if wanted.lower().removeprefix("sha256:") != actual.removeprefix("sha256:"):
                    yield Finding(
                        str(path), entry, "manifest-checksum", stern,
                        f"the file's checksum is {actual}, the manifest has {wanted!r}",
                        f'after reviewing the change, write seam:checksum "{actual}"',
                    )  # fmt: skip


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _unreferenced(graph: ModelGraph) -> Iterator[Finding]:
    if graph.bare or not graph.is_whole:
        return  # a TriG file that was not read may name the others
    used = set()
    for model in graph.bpmn_models:
        try:
            used.add(os.path.realpath(graph.payload_path(model)))
        except UnusableInput:
            continue
    for path in sorted(graph.root.iterdir()):
        if is_bpmn_name(path.name) and path.is_file() and os.path.realpath(path) not in used:
            yield Finding(
                str(path), path.name, "payload-unreferenced", "warning",
                "no seam:Model names this BPMN file, so nothing runs it",
                "name it with seam:renderPayload, move it away, or list it in .driftignore",
            )  # fmt: skip


# ---------------------------------------------------------------------- phase 2: the elements


def _by_model(graph: ModelGraph, iris: Iterable[str]) -> dict[str, set[str]]:
    """Model → the fragments of its elements among *iris*."""
    models = set(graph.bpmn_models)
    found: dict[str, set[str]] = {}
    for iri in iris:
        model, mark, fragment = iri.partition("#")
        if mark and model in models:
            found.setdefault(model, set()).add(fragment)
    return found


def _dangling(
    graph: ModelGraph, model: str, payload: Payload, named: set[str]
) -> Iterator[Finding]:
    # A missing element that is typed as a timer is reported once, as drift-not-a-timer.
    types = graph.pairs(str(RDF.type))
    for fragment in sorted(named - payload.elements.keys()):
        iri = f"{model}#{fragment}"
        if not INDEX_TYPES.keys() & set(types.get(iri, ())):
            yield on_graph(
                graph, iri, "drift-dangling", "error",
                f"{payload.path} has no element {fragment!r}",
                "remove the entry, or correct the id; renaming an element means renaming its IRI",
            )  # fmt: skip


def _unlifted(
    graph: ModelGraph, model: str, payload: Payload, lifted: set[str]
) -> Iterator[Finding]:
    # Timers are left to _timer_types: there an omission is an error, or right.
    timers = {t.id for t in payload.timers}
    for element in payload.elements.values():
        if element.tag not in SEAM_WORTHY or element.id in lifted or element.id in timers:
            continue
        if element.tag == "process" and graph.process_of(model, element.id):
            continue
        iri = element_iri(model, element.id)
        yield Finding(
            payload.path, element.id, "drift-unlifted", "warning",
            f"the {element.tag} has no entry in the graph",
            f"run seams-lab lift, or state <{iri}> seam:inModel <{model}>" if iri else
            "give it another id: this one cannot stand in an IRI",
            element.line,
        )  # fmt: skip


def _timer_types(timers: list[Timer], payload: Payload) -> Iterator[Finding]:
    for timer in timers:
        wanted, has = timer.element.index_type, timer.index_types
        if wanted is None and has:
            yield _on_timer(
                timer, "drift-out-of-scope",
                f"the graph types it proc:{has[0]}, but {not_lifted_reason(timer.element)}",
                f"remove the type; {not_lifted_fix(timer.element)}",
            )  # fmt: skip
        elif wanted is not None and not has:
            yield _on_timer(
                timer, "drift-unlifted-timer",
                f"a timer on {timer.element.position} without proc:{wanted} in the graph: "
                "nothing would fire it",
                f"run seams-lab lift, or state <{timer.event}> a proc:{wanted}"
                if timer.id in payload.elements
                else "give the event an id, then run seams-lab lift",
            )  # fmt: skip
        elif len(has) == 2:
            yield _on_timer(
                timer, "drift-both-types",
                "the graph types it proc:TimerStartEvent and proc:TimerCatchEvent",
                f"keep proc:{wanted}",
            )  # fmt: skip
        elif wanted is not None and has != (wanted,):
            yield _on_timer(
                timer, "drift-wrong-type",
                f"the graph types it proc:{has[0]}, but it is {_POSITIONS[wanted]}",
                f"type it proc:{wanted}",
            )  # fmt: skip


def _not_in_model(graph: ModelGraph, timers: list[Timer]) -> Iterator[Finding]:
    """A timer's entry without its seam:inModel: no query finds the process that it starts."""
    in_model = graph.pairs(str(SEAM.inModel))
    for timer in timers:
        wanted, said = timer.element.index_type, in_model.get(timer.event, ())
        if wanted in timer.index_types and said != (timer.model,):
            yield _on_timer(
                timer, "drift-unlifted-timer",
                f"its entry has seam:inModel {', '.join(said) or 'nothing'}, not {timer.model}: "
                "nothing would fire it",
                f"state <{timer.event}> seam:inModel <{timer.model}>, and no other model",
            )  # fmt: skip


def _typed_by_model(graph: ModelGraph) -> dict[str, list[tuple[str, str]]]:
    """Model → the IRIs named ``<model>#<id>`` that have a timer class, with that class."""
    found: dict[str, list[tuple[str, str]]] = {}
    for kind, word in INDEX_TYPES.items():
        for event in graph.typed(kind):
            model, mark, _ = event.partition("#")
            found.setdefault(model if mark else "", []).append((event, word))
    return found


def _of_no_model(graph: ModelGraph, typed: dict[str, list[tuple[str, str]]]) -> Iterator[Finding]:
    """A timer class on something that is not named as an element of a BPMN model."""
    for model in sorted(typed.keys() - set(graph.bpmn_models)):
        for event, word in typed[model]:
            yield on_graph(
                graph, event, "drift-not-a-timer", "error",
                f"the graph types it proc:{word}, and it is an element of no BPMN model",
                "name it <model>#<id>, after its seam:Model and the event's id",
            )  # fmt: skip


def _not_timers(
    graph: ModelGraph, typed: list[tuple[str, str]], payload: Payload, timers: list[Timer]
) -> Iterator[Finding]:
    known = {t.event for t in timers}
    for event, word in typed:
        if event in known:
            continue
        element = payload.elements.get(event.rpartition("#")[2])
        what = (
            f"a {element.tag} with {len(element.definitions)} event definitions, no timer"
            if element else "missing"
        )  # fmt: skip
        yield on_graph(
            graph, event, "drift-not-a-timer", "error",
            f"the graph types it proc:{word}, which is {_POSITIONS[word]}; in "
            f"{payload.path} the element is {what}",
            "remove the type, or give the element its timer",
        )  # fmt: skip


def _expressions(graph: ModelGraph, timers: list[Timer]) -> Iterator[Finding]:
    for timer in timers:
        if timer.refusal is None:
            continue
        if timer.element.index_type is None:
            executed = bool(graph.executing_containers(timer.process))
            yield _on_timer(
                timer, "timer-out-of-scope", timer.refusal.fact, timer.refusal.fix,
                "error" if executed else "warning",
            )  # fmt: skip
        else:
            yield _on_timer(
                timer, f"expression:{timer.code}",
                f"{timer.refusal.predicate}: {timer.refusal.fact}", timer.refusal.fix,
            )  # fmt: skip


def _on_timer(timer: Timer, check: str, message: str, fix: str, severity: str = "error") -> Finding:
    return Finding(timer.file, timer.id, check, severity, message, fix, timer.element.line)


# ---------------------------------------------------------------------- .driftignore


def _without_ignored(graph: ModelGraph, found: list[Finding]) -> list[Finding]:
    path = graph.root / IGNORE_FILE
    if not path.is_file():
        return found
    rules = []
    for number, line in enumerate(path.read_text("utf-8-sig", "replace").splitlines(), 1):
        words = line.split("  #")[0].split() if not line.lstrip().startswith("#") else []
        if words:
            rules.append((number, words[0], set(words[1:])))
    hidden: set[int] = set()
    kept = []
    for finding in found:
        hits = {n for n, pattern, checks in rules if _matches(graph, finding, pattern, checks)}
        hidden |= hits
        if not hits:
            kept.append(finding)
    for number, pattern, _ in rules if graph.is_whole else ():
        if number not in hidden:
            kept.append(
                Finding(
                    str(path), pattern, "driftignore-unused", "warning",
                    "this line hides nothing; findings on timers are never hidden",
                    "remove the line", number,
                )
            )  # fmt: skip
    return kept


def _matches(graph: ModelGraph, finding: Finding, pattern: str, checks: set[str]) -> bool:
    if finding.check not in _HIDEABLE or (checks and finding.check not in checks):
        return False
    names = {finding.element, finding.element.rpartition("#")[2]}
    for model in (m for m in graph.bpmn_models if _is_file_of(graph, m, finding.file)):
        names |= {f"{local_name(model)}#{finding.element}", f"{model}#{finding.element}"}
    if "#" in finding.element:
        owner, _, fragment = finding.element.rpartition("#")
        names.add(f"{local_name(owner)}#{fragment}")
    return any(fnmatchcase(name, pattern) for name in names)


def _is_file_of(graph: ModelGraph, model: str, file: str) -> bool:
    try:
        return graph.payload(model).path == file
    except UnusableInput:
        return False
