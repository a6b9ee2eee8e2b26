"""Lift BPMN elements into a model's graph: index triples, and the TriG block that holds them.

What a person wrote stays byte for byte. What lift adds stands between two comment lines and is
made anew on each run, so that entries of elements that are gone vanish. Where a person has said
something else about an element, lift adds nothing beside it and says so in a note.
"""

from __future__ import annotations

import difflib
import os
import re
import secrets
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

import pyoxigraph as ox
from rdflib import RDF, RDFS

from seams_lab.errors import UnusableInput
from seams_lab.graph import ModelGraph, is_bpmn_name, load_graph, local_name
from seams_lab.payload import SEAM_WORTHY, Element, Payload, TimerElement
from seams_lab.vocabulary import MANIFEST_GRAPH, PROC, SEAM, SEAMS_GRAPH, model_graph

#: Subject, predicate, object: IRIs, except that the object of an rdfs:label is its text.
Triple = tuple[str, str, str]

DEFAULT_BASE = "https://example.org"
BEGIN = "# seams-lab lift: begin (made anew on each run: write your own triples outside)"
END = "# seams-lab lift: end"
MADE = "# seams-lab lift: made for "

_TYPE, _LABEL = str(RDF.type), str(RDFS.label)
_IN_MODEL, _DETAILED_BY = str(SEAM.inModel), str(SEAM.detailedBy)
_WRITTEN = (_TYPE, _LABEL, _IN_MODEL, _DETAILED_BY)
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
_EOL = r"(?:\r\n|\n|\r)"
_MARKER = re.compile(r"(?:^|(?<=[\r\n\ufeff]))[ \t]*#[ \t]*seams-lab lift: (begin|end)\b[^\r\n]*")


# ---------------------------------------------------------------------- BPMN → triples


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
        triples.append((iri, _IN_MODEL, model_iri))
        if element.name.strip():
            triples.append((iri, _LABEL, element.name))
        kind = index_type(element, timer)
        if kind is not None:
            triples.append((iri, _TYPE, kind))
    return sorted(triples)


def _unliftable(payload: Payload, model: str) -> list[str]:
    """Say which elements `index_triples` leaves out, and why."""
    notes = []
    for timer in payload.timers:
        if timer.id not in payload.elements:
            notes.append(f"{timer.id}: a timer without an id, not lifted; give it one")
        elif timer.index_type is None:
            notes.append(f"{timer.id!r}: timer out of scope ({timer.position}), not lifted")
    for element in payload.elements.values():
        if element.tag in SEAM_WORTHY and element_iri(model, element.id) is None:
            notes.append(
                f"{element.id!r} ({element.tag}, line {element.line}): the id cannot stand in "
                "an IRI, not lifted; use letters, digits, '_', '-' and '.'"
            )
    return notes


# ---------------------------------------------------------------------- what is missing


def _processes(own: ModelGraph, payload: Payload, model: str) -> tuple[dict[str, str], list[str]]:
    """Match ``bpmn:process`` ids with proc:Process IRIs; a new IRI only where none is there.

    First by local name, as `ModelGraph.process_of` does; then the one left on either side.
    """
    detailed_by, in_model = own.pairs(_DETAILED_BY), own.pairs(_IN_MODEL)
    there = [
        p
        for p in own.processes
        if model in detailed_by.get(p, ())
        or (p not in detailed_by and model in in_model.get(p, ()))
    ]
    iris: dict[str, str] = {}
    for identifier in payload.processes:
        same = [p for p in there if own.name(p) == identifier]
        if len(same) == 1:
            iris[identifier] = same[0]
    ids = [i for i in payload.processes if i not in iris]
    left = [p for p in there if p not in iris.values()]
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

    def graphs(predicate: str, subject: str | None, value: ox.NamedNode) -> list[str]:
        start = subject or f"{model}#"
        return [
            getattr(q.graph_name, "value", "")
            for q in own.store.quads_for_pattern(None, ox.NamedNode(predicate), value)
            if isinstance(q.subject, ox.NamedNode)
            and (q.subject.value == subject or (not subject and q.subject.value.startswith(start)))
            and getattr(q.graph_name, "value", "") not in shared
        ]

    found = graphs(_IN_MODEL, None, node) or graphs(_TYPE, model, ox.NamedNode(str(SEAM.Model)))
    if not found:
        return ox.NamedNode(str(model_graph(local_name(model))))
    name = min(Counter(found).items(), key=lambda item: (-item[1], item[0]))[0]
    return ox.NamedNode(name) if name else ox.DefaultGraph()


def _objection(own: ModelGraph, triple: Triple, is_process: bool) -> str | None:
    """Say why a person's own triples speak against one; "" where that needs no note."""
    subject, predicate, value = triple
    said = [v for v in own.pairs(predicate).get(subject, ()) if v != value]
    if predicate == _LABEL:
        return "" if said else None
    if predicate == _IN_MODEL and is_process:
        return "" if said else None  # it may be drawn in one model and detailed by another
    if predicate == _TYPE:
        general = str(PROC.Task) if value.endswith("Task") else None
        said = [v for v in said if v.startswith(str(PROC)) and v != general]
    if not said:
        return None
    names, word = ", ".join(map(local_name, said)), "type" if predicate == _TYPE else "model"
    return f"{local_name(subject)}: your text gives the {word} {names}, not {local_name(value)}"


def _untyped(own: ModelGraph, payload: Payload, model: str) -> list[str]:
    """Say which elements a person gave a proc: type although lift would give none."""
    timers, notes = {t.id: t for t in payload.timers}, []
    for element in payload.elements.values():
        iri = element_iri(model, element.id)
        if iri is None or index_type(element, timers.get(element.id)) is not None:
            continue
        types = own.pairs(_TYPE).get(iri, ())
        said = [local_name(t) for t in types if t.startswith(str(PROC))]
        if said:
            where = timers[element.id].position if element.id in timers else element.tag
            notes.append(f"{element.id}: your text gives the type {', '.join(said)} to a {where}")
    return notes


def _missing(
    own: ModelGraph, model: str, payload: Payload
) -> tuple[set[ox.Quad], list[str]]:
    """Return the quads that the person's own text does not state yet, and notes."""
    if element_iri(model, "x") is None:
        return set(), ["the model's IRI must be absolute and have no '#'; nothing lifted"]
    processes, notes = _processes(own, payload, model)
    notes += _unliftable(payload, model) + _untyped(own, payload, model)
    graph, seams = _graph_of(own, model), ox.NamedNode(str(SEAMS_GRAPH))
    quads = set()
    for triple in index_triples(payload, model, processes):
        subject, predicate, value = triple
        objection = _objection(own, triple, subject in processes.values())
        if objection:
            notes.append(objection)
        if objection is None and value not in own.pairs(predicate).get(subject, ()):
            term = ox.Literal(value) if predicate == _LABEL else ox.NamedNode(value)
            quads.add(ox.Quad(ox.NamedNode(subject), ox.NamedNode(predicate), term, graph))
    for iri in processes.values():
        if model not in own.pairs(_DETAILED_BY).get(iri, ()):
            edge = ox.NamedNode(_DETAILED_BY)
            quads.add(ox.Quad(ox.NamedNode(iri), edge, ox.NamedNode(model), seams))
    return quads, notes


# ---------------------------------------------------------------------- the block in the text


@dataclass(frozen=True)
class _Source:
    """One TriG file, taken apart: own text before and after the block, own and block's quads."""

    path: Path
    old: str | None
    before: str
    lead: str
    after: str
    own: list[ox.Quad]
    held: set[ox.Quad]

    def text(self, quads: Iterable[ox.Quad]) -> str:
        """Return the file's text with a block of these quads, or without one if there are none."""
        found = re.search(_EOL, self.before + self.after) or re.search(_EOL, self.lead)
        eol = found[0] if found else "\n"
        block = _block(quads, _base(self.path.parent) + "/", eol)
        if block:
            return self.before + self.lead + block + self.after
        ended = not self.before or not self.after or self.before.endswith(("\r", "\n"))
        return self.before + ("" if ended else self.lead or eol) + self.after


def _base(path: Path) -> str:
    return Path(os.path.abspath(path)).as_uri()


def _damaged(path: Path, seen: str) -> UnusableInput:
    return UnusableInput(
        str(path), seen, "no block, or one whole block as lift wrote it",
        f"delete the block with both lines ({BEGIN[:25]!r} and {END!r}) and lift again",
    )  # fmt: skip


def _source(path: Path, text: str, old: str | None) -> _Source:
    """Take a TriG text apart; raises UnusableInput when it or its block is damaged."""
    marks = list(_MARKER.finditer(text))
    if not marks:
        eol = re.search(_EOL, text)
        own = _quads(text, path)
        return _Source(path, old, text, eol[0] if eol else "\n", "", own, set())
    if [m[1] for m in marks] != ["begin", "end"]:
        raise _damaged(path, f"marker lines {', '.join(m[1] for m in marks)}")
    before, after = text[: marks[0].start()], text[marks[1].end() :]
    lead = re.search(f"{_EOL}$(?!\n)", before)
    before = before[: lead.start()] if lead else before
    after = re.sub(f"^{_EOL}", "", after)
    try:
        own, whole = _quads(f"{before}\n{after}", path), _quads(text, path)
    except UnusableInput as error:
        raise _damaged(path, f"text outside the block that fails ({error.seen})") from None
    held = set(_ground(whole)) - set(_ground(own))
    if not _is_union(whole, own, held):
        # The marker lines stand inside a literal, or the block holds blank nodes.
        raise _damaged(path, "text between the marker lines that is not a block of triples")
    for quad in sorted(held, key=str):
        kind = getattr(quad.object, "value", "").startswith(str(PROC))
        if quad.predicate.value not in _WRITTEN or (quad.predicate.value == _TYPE and not kind):
            raise UnusableInput(
                str(path), f"a triple in the block that lift did not write: {quad}",
                "your own triples outside the block", "move it out of the block",
            )  # fmt: skip
    return _Source(path, old, before, lead[0] if lead else "", after, own, held)


def _quads(text: str, path: Path) -> list[ox.Quad]:
    """Parse TriG; blank nodes get new names, so that those of several files stay apart."""
    try:
        return list(
            ox.parse(
                input=text.removeprefix("\ufeff").encode(),
                format=ox.RdfFormat.TRIG,
                base_iri=_base(path),
                rename_blank_nodes=True,
            )
        )
    except (SyntaxError, ValueError) as error:
        raise UnusableInput(
            str(path), f"not readable as TriG ({error})", "RDF in TriG, UTF-8",
            "mend the line that the message names",
        ) from None  # fmt: skip


def _ground(quads: Iterable[ox.Quad]) -> list[ox.Quad]:
    """The quads without a blank node: those that can be compared by value."""
    plain = (ox.NamedNode, ox.Literal, ox.DefaultGraph)
    return [
        q for q in quads if all(isinstance(t, plain) for t in (q.subject, q.object, q.graph_name))
    ]


def _is_union(whole: Sequence[ox.Quad], own: Sequence[ox.Quad], more: set[ox.Quad]) -> bool:
    ground = _ground(own)
    return (
        set(_ground(whole)) == set(ground) | more
        and len(whole) - len(_ground(whole)) == len(own) - len(ground)
    )


def _block(quads: Iterable[ox.Quad], here: str, eol: str) -> str:
    """Write quads between the marker lines: full IRIs, so that no prefix of the file matters.

    IRIs under *here*, the folder's own IRI, are written relative to it: a model that is named
    that way must not carry the path of one machine.
    """

    def term(node: ox.NamedNode | ox.Literal | ox.DefaultGraph) -> str:
        if isinstance(node, ox.NamedNode) and node.value.startswith(here):
            return f"<./{node.value[len(here):]}>"
        return "a" if isinstance(node, ox.NamedNode) and node.value == _TYPE else str(node)

    def order(quad: ox.Quad) -> tuple[str, str, int, str]:
        graph = term(quad.graph_name) if isinstance(quad.graph_name, ox.NamedNode) else ""
        place = _WRITTEN.index(quad.predicate.value)
        return graph, term(quad.subject), place, term(quad.object)

    lines = []
    for graph, members in groupby(sorted(quads, key=order), key=lambda q: order(q)[0]):
        lines += [f"GRAPH {graph} {{"] if graph else []
        for subject, about in groupby(members, key=lambda q: term(q.subject)):
            pairs = [f"{term(q.predicate)} {term(q.object)}" for q in about]
            lines.append(f"  {subject} " + f" ;{eol}    ".join(pairs) + " .")
        lines += ["}"] if graph else []
    return eol.join([BEGIN, *lines, END, ""]) if lines else ""


# ---------------------------------------------------------------------- the plan


@dataclass(frozen=True)
class FileLift:
    """What lift does to one TriG file.

    ``old`` is the text now (None: the file is new), ``new`` the text after; ``added`` and
    ``removed`` count triples; ``notes`` say what was not lifted, and why.
    """

    path: Path
    old: str | None
    new: str
    added: int
    removed: int
    notes: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return self.old != self.new

    def __repr__(self) -> str:
        state = "new" if self.old is None else "changed" if self.changed else "as it was"
        return f"<FileLift {self.path}: {state}, +{self.added} -{self.removed} triples>"


@dataclass(frozen=True)
class LiftPlan:
    """What lift would write: look at it, show `diff`, then `write`.

    ``unread`` holds the messages of BPMN files that cannot be read: their index entries, if
    any, stay as they are. ``remarks`` are notes that belong to no TriG file.
    """

    files: tuple[FileLift, ...]
    unread: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return any(f.changed for f in self.files)

    @property
    def notes(self) -> list[str]:
        """Every note, the unreadable files first."""
        return [*self.unread, *self.remarks, *(n for f in self.files for n in f.notes)]

    def diff(self) -> str:
        """Return a unified diff of all changes; "" when there are none."""
        return "".join(_diff(f) for f in self.files if f.changed)

    def write(self) -> list[Path]:
        """Write the changed files, each in one step, and return their paths.

        Raises UnusableInput, before anything is written, for a file that is a link, read-only
        or no longer as it was planned for; and when the folder cannot be written to.
        """
        changed = [f for f in self.files if f.changed]
        for file in changed:
            _refuse_unwritable(file)
        for file in changed:
            _replace(file)
        return [f.path for f in changed]

    def __repr__(self) -> str:
        added, removed = (sum(getattr(f, w) for f in self.files) for w in ("added", "removed"))
        return (
            f"<LiftPlan: {sum(f.changed for f in self.files)} of {len(self.files)} file(s) "
            f"change, +{added} -{removed} triples, {len(self.notes)} note(s)>"
        )


def plan(graph: ModelGraph, base: str | None = None) -> LiftPlan:
    """Work out which index triples a model's files lack, and the text that adds them.

    Parameters
    ----------
    graph : ModelGraph
        From `load_graph`. For BPMN files that no TriG file names, a new ``<stem>.trig`` beside
        each is planned.
    base : str, optional
        For such new files only: the model's IRI is ``<base>/<stem>``, by default
        ``https://example.org/<stem>``.

    Raises
    ------
    UnusableInput
        For a TriG file that cannot be read or whose block is damaged, a *base* that is not
        usable, and a ``<stem>.trig`` that somebody else wrote.
    """
    if graph.bare:
        return _plan_bare(graph, base)
    if base is not None:
        raise UnusableInput(
            "base", base, "no base: the TriG file names its models itself", "leave it out"
        )
    sources = []
    for path in graph.sources:
        text = _read(path)
        sources.append(_source(path, text, text))
    return _plan_sources(graph.root, sources)


def _plan_sources(root: Path, sources: Sequence[_Source]) -> LiftPlan:
    store = ox.Store()
    store.extend(q for s in sources for q in s.own)
    own = ModelGraph(root, tuple(s.path for s in sources), store, {})
    held = {q for s in sources for q in s.held if q not in store}
    quads: dict[Path, set[ox.Quad]] = {s.path: set() for s in sources}
    notes: dict[Path, list[str]] = {s.path: [] for s in sources}
    unread: list[str] = []
    for model in own.bpmn_models:
        home = _home(model, sources)
        try:
            payload = own.payload(model)
        except UnusableInput as error:
            unread.append(str(error))
            quads[home] |= _entries(model, held)
            continue
        found, remarks = _missing(own, model, payload)
        quads[home] |= found
        notes[home] += [f"{own.name(model)}: {r}" for r in remarks]
    files = tuple(_file(s, quads[s.path], notes[s.path]) for s in sources)
    return LiftPlan(files, tuple(unread), tuple(_unnamed(own)))


def _home(model: str, sources: Sequence[_Source]) -> Path:
    """The file that declares a model: says that it is one, else its notation."""
    for predicate in (_TYPE, str(SEAM.notation)):
        for source in sources:
            for q in source.own:
                is_model = predicate != _TYPE or q.object == ox.NamedNode(str(SEAM.Model))
                said = getattr(q.subject, "value", None) == model
                if said and q.predicate.value == predicate and is_model:
                    return source.path
    raise AssertionError(f"no file declares {model}")  # it came from one of them


def _entries(model: str, held: set[ox.Quad]) -> set[ox.Quad]:
    """A model's entries in the blocks so far, for when its BPMN file cannot be read now."""
    members = {
        q.subject
        for q in held
        if q.object == ox.NamedNode(model) and q.predicate.value in (_IN_MODEL, _DETAILED_BY)
    }
    return {q for q in held if q.subject in members or q.subject.value.startswith(f"{model}#")}


def _unnamed(own: ModelGraph) -> list[str]:
    """Say which BPMN files in the folder no model names."""
    if set(own.sources) != set(own.root.glob("*.trig")):
        return []  # other TriG files, which are not looked at here, may name them
    named = _payload_paths(own)
    return [
        f"{path.name}: no model names this BPMN file; lift it by its own name to add one"
        for path in sorted(own.root.iterdir())
        if is_bpmn_name(path.name) and path.resolve() not in named
    ]


def _payload_paths(graph: ModelGraph) -> dict[Path, str]:
    """BPMN file → model, for the models whose file can be told."""
    paths = {}
    for model in graph.bpmn_models:
        try:
            paths[graph.payload_path(model).resolve()] = model
        except UnusableInput:
            continue
    return paths


def _file(source: _Source, quads: set[ox.Quad], notes: Sequence[str]) -> FileLift:
    new = source.text(quads)
    whole = _quads(new, source.path)
    if not _is_union(whole, source.own, quads):
        raise UnusableInput(
            str(source.path), "a text in which the block would say something else",
            "the block after the last triple, and absolute IRIs or no @base",
            "move the block to the end of the file, and name models by absolute IRIs",
        )  # fmt: skip
    now = set() if source.old is None else set(_ground(source.own)) | source.held
    then = set(_ground(whole))
    return FileLift(
        source.path, source.old, new, len(then - now), len(now - then), tuple(notes)
    )


# ---------------------------------------------------------------------- BPMN files without TriG


def _plan_bare(graph: ModelGraph, base: str | None) -> LiftPlan:
    base = DEFAULT_BASE if base is None else base.rstrip("/")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[^#?]+", base) or not element_iri(base, "x"):
        raise UnusableInput(
            "base", repr(base), "an absolute IRI without '?' and '#'",
            "pass something like https://example.org/expense",
        )  # fmt: skip
    plans, unread, remarks, taken = [], [], [], set()
    for name, path in sorted(graph.bare.items()):
        try:
            payload = graph.payload(name)
        except UnusableInput as error:
            unread.append(str(error))
            continue
        stem = re.sub(r"\.(bpmn|bpmn2|bpmn20\.xml|xml)$", "", path.name, flags=re.IGNORECASE)
        target = path.with_name(f"{stem}.trig")
        if target in taken:
            remarks.append(f"{name}: {target.name} is made for another file; rename one of them")
            continue
        taken.add(target)
        plans.append(_plan_new(path, payload, f"{base}/{_quoted(stem)}", target))
    return LiftPlan(
        tuple(f for p in plans for f in p.files),
        (*unread, *(u for p in plans for u in p.unread)),
        (*remarks, *(r for p in plans for r in p.remarks)),
    )


def _plan_new(path: Path, payload: Payload, model: str, target: Path) -> LiftPlan:
    """Plan the TriG file of one bare BPMN file, or bring up to date the one made earlier."""
    if not os.path.lexists(target):
        _refuse_named(path)
        return _plan_sources(path.parent, [_source(target, _head(path, payload, model), None)])
    old = _read(target)
    source = _source(target, old, old)
    named = _payload_paths(load_graph(target))
    if MADE not in old or named.get(path.resolve()) != model:
        raise UnusableInput(
            str(target), "there already, and not made by lift for this file and base",
            f"no file of that name, or one that lift made for {model}",
            f"lift {target.name} itself, or rename one of the two",
        )  # fmt: skip
    return _plan_sources(path.parent, [source])


def _refuse_named(path: Path) -> None:
    """Refuse a BPMN file that a TriG file beside it already names."""
    if not any(path.parent.glob("*.trig")):
        return
    model = _payload_paths(load_graph(path.parent)).get(path.resolve())
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


# ---------------------------------------------------------------------- reading and writing


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UnusableInput(
            str(path), error.strerror or str(error), "a readable file", "check its permissions"
        ) from None
    except UnicodeDecodeError as error:
        raise UnusableInput(
            str(path), f"not UTF-8 ({error.reason} at byte {error.start})", "RDF in TriG, UTF-8",
            "save it as UTF-8",
        ) from None  # fmt: skip


def _diff(file: FileLift) -> str:
    def lines(text: str) -> list[str]:
        return re.findall(r"[^\n]*\n|[^\n]+", text)

    old, new = lines(file.old or ""), lines(file.new)
    before = "/dev/null" if file.old is None else str(file.path)
    changes = difflib.unified_diff(old, new, before, str(file.path))
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in changes
    )


def _refuse_unwritable(file: FileLift) -> None:
    path = file.path
    seen = None
    if path.is_symlink():
        seen, fix = "a symbolic link", "lift the file that it leads to"
    elif file.old is None:
        if path.exists():
            seen, fix = "there now, and was not when lift looked", "lift again"
    elif not path.is_file() or _read(path) != file.old:
        seen, fix = "no longer as it was when lift looked", "lift again"
    elif not path.stat().st_mode & stat.S_IWUSR or not os.access(path, os.W_OK):
        seen, fix = "read-only", "make it writable"
    if seen:
        raise UnusableInput(str(path), seen, "a plain file that lift may write", fix)


def _replace(file: FileLift) -> None:
    """Write a file in one step: a crash leaves the old text or the new, never a part."""
    temporary = file.path.with_name(f".seams-lab-{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as stream:
            stream.write(file.new.encode())
            stream.flush()
            os.fsync(stream.fileno())
        if file.old is not None:
            temporary.chmod(stat.S_IMODE(file.path.stat().st_mode))
        os.replace(temporary, file.path)
    except OSError as error:
        raise UnusableInput(
            str(file.path), f"cannot be written ({error.strerror or error})",
            "a folder that lift may write to", "check its permissions and free space",
        ) from None  # fmt: skip
    finally:
        temporary.unlink(missing_ok=True)
