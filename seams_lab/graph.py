"""The model as a graph: named graphs read once, facts as plain tables, questions as resolvers.

A resolver answers one question about the model or raises ResolutionError; none guesses. Facts
are strings (IRIs), sorted, so that every answer has a stable order.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urljoin

import oxrdflib
import pyoxigraph as ox
from rdflib import RDF, RDFS, Dataset

from seams_lab.errors import ResolutionError, UnusableInput
from seams_lab.payload import Payload, read_payload
from seams_lab.vocabulary import ARCH, PROC, SEAM

Pairs = dict[str, tuple[str, ...]]

RELATIONAL = ("postgresql", "sqlite")


class ModelGraph:
    """A model: the graph of its TriG files and the BPMN payloads that they name.

    Build one with `load_graph`. BPMN files are read when they are first asked for.
    """

    def __init__(
        self, root: Path, sources: tuple[Path, ...], store: ox.Store, bare: dict[str, Path]
    ) -> None:
        self.root, self.sources, self.store = root, sources, store
        #: Bare BPMN files (no TriG names them): model name → path.
        self.bare = bare
        self._pairs: dict[str, Pairs] = {}
        self._payloads: dict[str, Payload | UnusableInput] = {}
        self._paths = dict(bare)

    @cached_property
    def dataset(self) -> Dataset:
        """The same quads as an rdflib Dataset (default graph = union of all), for SPARQL."""
        return Dataset(store=oxrdflib.OxigraphStore(store=self.store), default_union=True)

    # ------------------------------------------------------------------ facts

    def pairs(self, predicate: str) -> Pairs:
        """Subject → sorted objects of one predicate, over all named graphs."""
        if predicate not in self._pairs:
            found: dict[str, set[str]] = {}
            for quad in self.store.quads_for_pattern(None, ox.NamedNode(predicate), None):
                found.setdefault(_text(quad.subject), set()).add(_text(quad.object))
            self._pairs[predicate] = {s: tuple(sorted(o)) for s, o in sorted(found.items())}
        return self._pairs[predicate]

    def inverse(self, predicate: str) -> Pairs:
        """Object → sorted subjects of one predicate."""
        key = f"^{predicate}"
        if key not in self._pairs:
            found: dict[str, list[str]] = {}
            for subject, objects in self.pairs(predicate).items():
                for item in objects:
                    found.setdefault(item, []).append(subject)
            self._pairs[key] = {o: tuple(found[o]) for o in sorted(found)}
        return self._pairs[key]

    @cached_property
    def mentioned(self) -> tuple[frozenset[str], frozenset[str]]:
        """The IRIs that the graph has as subjects, and as objects."""
        subjects, objects = set(), set()
        for quad in self.store:
            subjects.add(quad.subject)
            objects.add(quad.object)
        return (
            frozenset(s.value for s in subjects if isinstance(s, ox.NamedNode)),
            frozenset(o.value for o in objects if isinstance(o, ox.NamedNode)),
        )

    def locate(self, iri: str) -> tuple[str, int]:
        """The TriG file and line that first name an IRI; line 0 where none is found."""
        default = str(self.sources[0] if len(self.sources) == 1 else self.root)
        subjects, others = self._places
        return subjects.get(iri) or others.get(iri) or (default, 0)

    @cached_property
    def _places(self) -> tuple[dict[str, tuple[str, int]], dict[str, tuple[str, int]]]:
        """Where each IRI first begins a line, as subjects do, and where it first stands at all."""
        subjects: dict[str, tuple[str, int]] = {}
        others: dict[str, tuple[str, int]] = {}
        for source in () if self.bare else self.sources:
            text = source.read_text("utf-8", "replace")
            said = _BASE.search(text)
            base = urljoin(_base_of(source), said[1] if said else "")
            prefixes = {name: urljoin(base, iri) for name, iri in _PREFIX.findall(text)}
            for number, line in enumerate(text.splitlines(), 1):
                if line.lstrip().lower().startswith(("#", "@", "prefix", "base")):
                    continue
                for word in _NAME.finditer(line):
                    full, prefix, local = word.groups()
                    if full is None and prefix not in prefixes:
                        continue
                    if full is None:
                        iri = prefixes[prefix] + local
                    else:  # urljoin is slow, and does nothing to an absolute IRI
                        iri = full if _ABSOLUTE.match(full) else urljoin(base, full)
                    begins = not line[: word.start()].strip()
                    (subjects if begins else others).setdefault(iri, (str(source), number))
        return subjects, others

    def typed(self, kind: str) -> tuple[str, ...]:
        """The sorted IRIs with one rdf:type."""
        return self.inverse(str(RDF.type)).get(kind, ())

    @property
    def processes(self) -> tuple[str, ...]:
        """Every proc:Process."""
        return self.typed(str(PROC.Process))

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every arch:DeploymentNode."""
        return self.typed(str(ARCH.DeploymentNode))

    @property
    def containers(self) -> tuple[str, ...]:
        """Every arch:Container."""
        return self.typed(str(ARCH.Container))

    @cached_property
    def bpmn_models(self) -> tuple[str, ...]:
        """Every seam:Model in BPMN notation, and the bare BPMN files."""
        return (*self.inverse(str(SEAM.notation)).get(str(SEAM.BPMN), ()), *sorted(self.bare))

    def name(self, iri: str) -> str:
        """The short name of an IRI: its fragment or last path segment."""
        return local_name(iri)

    def label(self, iri: str) -> str:
        """The rdfs:label, or the short name."""
        return next(iter(self.pairs(str(RDFS.label)).get(iri, ())), self.name(iri))

    # ------------------------------------------------------------------ payloads

    def payload(self, model: str) -> Payload:
        """Return the BPMN file of a model.

        Raises UnusableInput when the model names none or several, when the file is missing or
        outside the model's folder, or when `read_payload` refuses it.
        """
        if model not in self._payloads:
            try:
                self._payloads[model] = read_payload(self.payload_path(model))
            except UnusableInput as error:
                self._payloads[model] = error
        found = self._payloads[model]
        if isinstance(found, UnusableInput):
            raise found
        return found

    def payload_path(self, model: str) -> Path:
        """Return where a model's BPMN file lies; raises UnusableInput as `payload` does."""
        if model not in self._paths:
            self._paths[model] = self._payload_path(model)
        return self._paths[model]

    def _payload_path(self, model: str) -> Path:
        names = self.pairs(str(SEAM.renderPayload)).get(model, ())
        if len(names) != 1:
            raise UnusableInput(
                model, f"{len(names)} values of seam:renderPayload", "exactly one",
                "name the model's BPMN file once",
            )  # fmt: skip
        files = self.pairs(str(SEAM.filePath)).get(names[0], ())
        base = _base_of(self.root) + "/"
        if len(files) == 1:
            relative = files[0]
        elif not files and names[0].startswith(base):
            relative = unquote(names[0][len(base) :])
        else:
            raise UnusableInput(
                names[0], f"{len(files)} values of seam:filePath",
                "one manifest entry, or a relative IRI beside the TriG file",
                "add seam:filePath with the file's path relative to the model's folder",
            )  # fmt: skip
        path = self.inside(relative)
        if path is None:
            raise UnusableInput(
                names[0], f"path {relative!r} is not inside the model's folder",
                "a path inside it", "move the file into the model's folder",
            )  # fmt: skip
        return path

    def inside(self, relative: str) -> Path | None:
        """A path in the model's folder; None for one that leads out of it or is no path."""
        # Shown as the person named the model; compared with links and dots resolved.
        path = self.root / relative
        try:
            real = os.path.realpath(path)
        except ValueError:  # a NUL in the name
            return None
        inside = real == self._real_root or real.startswith(os.path.join(self._real_root, ""))
        return path if inside else None

    @cached_property
    def _real_root(self) -> str:
        return os.path.realpath(self.root)

    @cached_property
    def is_whole(self) -> bool:
        """Whether all TriG files of the folder were read, rather than one of several."""
        return set(self.sources) == set(self.root.glob("*.trig"))

    # ------------------------------------------------------------------ resolvers

    def process_of(self, model: str, bpmn_process: str) -> str | None:
        """Return the proc:Process of a BPMN process element, or None (rulings 11).

        The one whose local name is the element's id; else, where one process is left in the
        graph and one in the file, these two. In a bare file the element's id itself. Raises
        UnusableInput as `payload` does.
        """
        if model in self.bare:
            return bpmn_process
        detailed = [
            p for p in self.inverse(str(SEAM.detailedBy)).get(model, ()) if p in self.process_set
        ]
        same = [p for p in detailed if self.name(p) == bpmn_process]
        if len(same) == 1:
            return same[0]
        held, names = self.payload(model).processes, {self.name(p) for p in detailed}
        left = [p for p in detailed if self.name(p) not in held]
        left_in_file = [p for p in held if p not in names]
        return left[0] if len(left) == 1 and left_in_file == [bpmn_process] else None

    @cached_property
    def process_set(self) -> frozenset[str]:
        """The processes, for membership tests."""
        return frozenset(self.processes)

    def executing_containers(self, process: str) -> tuple[str, ...]:
        """The containers that seam:executes a process, sorted."""
        return self.inverse(str(SEAM.executes)).get(process, ())

    def scheduling_container(self, process: str) -> str:
        """Return the one container that runs a process's timer starts (R59).

        Raises
        ------
        ResolutionError
            With predicate ``seam:schedules`` when there is none or more than one; the fact is
            the sorted container IRIs.
        """
        found = self.inverse(str(SEAM.schedules)).get(process, ())
        if len(found) != 1:
            raise ResolutionError(
                process, "seam:schedules", ", ".join(found) or "no container schedules it",
                code="NO_SCHEDULER" if not found else "SEVERAL_SCHEDULERS",
                fix="name exactly one container that seam:schedules it",
            )  # fmt: skip
        return found[0]

    def store_container(self, container: str, predicate: str = "seam:storedIn") -> str:
        """Return the one relational store that keeps a container's workflow state (ruling 13).

        *predicate* is what the error names: the reason why a store is needed.

        Raises
        ------
        ResolutionError
            When the container is seam:storedIn no relational store, or in several.
        """
        stores = self.pairs(str(SEAM.storedIn)).get(container, ())
        relational = [s for s in stores if self.is_relational(s)]
        if len(relational) == 1:
            return relational[0]
        if relational:
            fact = "several relational stores: " + ", ".join(relational)
        else:
            kinds = [f"{s} ({', '.join(self.technology(s)) or 'no technology'})" for s in stores]
            fact = "no relational store, only " + ", ".join(kinds) if stores else "no store"
        raise ResolutionError(
            container, predicate, fact, code="NO_STORE" if not relational else "SEVERAL_STORES",
            fix="name exactly one PostgreSQL or SQLite container with seam:storedIn",
        )  # fmt: skip

    def technology(self, container: str) -> tuple[str, ...]:
        """The arch:technology texts of a container."""
        return self.pairs(str(ARCH.technology)).get(container, ())

    def is_relational(self, container: str) -> bool:
        """Whether a store keeps workflow state: its technology names PostgreSQL or SQLite."""
        technology = " ".join(self.technology(container)).lower()
        return any(kind in technology for kind in RELATIONAL)

    def find(self, name: str, among: Iterable[str], what: str) -> str:
        """Return the IRI that a person meant by an IRI, short name or label.

        Raises UnusableInput for a name that fits none or several of *among*.
        """
        among = tuple(among)
        if name in among:
            return name
        hits = [iri for iri in among if self.name(iri) == name]
        hits = hits or [iri for iri in among if self.label(iri) == name]
        if len(hits) == 1:
            return hits[0]
        known = [self.name(iri) for iri in among]
        near = difflib.get_close_matches(name, known, 1)
        raise UnusableInput(
            f"{what} {name!r}",
            "names several: " + ", ".join(hits) if hits else "not in the model",
            ("one of " + ", ".join(known[:12]) + (" …" if len(known) > 12 else ""))
            if known else f"a model with a {what}",
            "use the full IRI" if hits else f"did you mean {near[0]!r}?" if near
            else "use one of these names",
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<ModelGraph {self.root}: {len(self.store)} triples, {len(self.bpmn_models)} BPMN>"


def local_name(iri: str) -> str:
    """The fragment or last path segment of an IRI.

    >>> local_name("https://example.org/expense/approval#reminder_due")
    'reminder_due'
    """
    return iri.rstrip("/#").rpartition("#")[2].rpartition("/")[2].rpartition(":")[2] or iri


# Declarations, and a name: the full IRI, or its prefix and local part.
_PREFIX = re.compile(r"(?im)(?:^|\.)\s*@?prefix\s+([\w.-]*):\s*<([^>]*)>")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BASE = re.compile(r"(?im)^\s*@?base\s+<([^>]*)>")
_NAME = re.compile(r"<([^<>\"{}|^`\s]*)>|([\w.-]*):([\w.-]*\w)")


def _base_of(path: Path) -> str:
    # Not Path.absolute: dots are resolved in the relative IRIs of a TriG file, so here too.
    return Path(os.path.abspath(path)).as_uri()


def _text(term: object) -> str:
    return str(getattr(term, "value", term))


Graph = TypeVar("Graph", bound=ModelGraph)


def load_graph(path: str | Path, kind: type[Graph] = ModelGraph) -> Graph:  # type: ignore[assignment]
    """Read a model: a folder, a ``.trig`` file, or a bare BPMN file.

    A folder's ``*.trig`` files are read together; in a folder without one every BPMN file is
    read bare. A bare BPMN file has timers and due times, and no containers or nodes. *kind* is
    the class to make.

    Raises
    ------
    UnusableInput
        For a path that is none of these, TriG that cannot be parsed, and a single BPMN file
        that `read_payload` refuses.
    """
    path = Path(path)
    if path.is_dir():
        trigs = tuple(sorted(path.glob("*.trig")))
        bpmns = tuple(sorted(p for p in path.iterdir() if is_bpmn_name(p.name)))
        root = path
    elif path.is_file():
        trigs = (path,) if path.suffix.lower() == ".trig" else ()
        bpmns = () if trigs else (path,)
        root = path.parent
    else:
        raise UnusableInput(
            str(path), "no such file or folder", "a folder, a .trig file or a .bpmn file",
            "check the path",
        )  # fmt: skip
    if not trigs and not bpmns:
        raise UnusableInput(
            str(path), "no .trig and no .bpmn file in this folder", "a model's folder",
            "name the folder that directly holds the files",
        )  # fmt: skip
    store = ox.Store()
    for trig in trigs:
        _load_trig(store, trig)
    bare = {} if trigs else {p.name: p for p in bpmns}
    graph = kind(root, trigs or bpmns, store, bare)
    if path.is_file() and bare:
        graph.payload(path.name)
    return graph


def is_bpmn_name(name: str) -> bool:
    """Whether a file name looks like BPMN (.bpmn, .bpmn2, .bpmn20.xml)."""
    return name.lower().endswith((".bpmn", ".bpmn2", ".bpmn20.xml"))


def _load_trig(store: ox.Store, path: Path) -> None:
    try:
        store.load(path=path, format=ox.RdfFormat.TRIG, base_iri=_base_of(path))
    except (SyntaxError, ValueError, OSError) as error:
        raise UnusableInput(
            str(path), f"not readable as TriG ({error})", "RDF in TriG, UTF-8",
            "mend the line that the message names",
        ) from None  # fmt: skip
