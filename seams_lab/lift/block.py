"""The block of a TriG text that lift owns; what stands outside it stays byte for byte."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pyoxigraph as ox

from seams_lab.errors import UnusableInput
from seams_lab.lift.index import DETAILED_BY, IN_MODEL, LABEL, TYPE
from seams_lab.vocabulary import PROC

BEGIN = "# seams-lab lift: begin (made anew on each run: write your own triples outside)"
END = "# seams-lab lift: end"

# All that a block may hold, in the order in which it is written.
_WRITTEN = (TYPE, LABEL, IN_MODEL, DETAILED_BY)
_EOL = r"(?:\r\n|\n|\r)"
_MARKER = re.compile(r"(?:^|(?<=[\r\n\ufeff]))[ \t]*#[ \t]*seams-lab lift: (begin|end)\b[^\r\n]*")


@dataclass(frozen=True)
class Source:
    """One TriG file, taken apart.

    ``old`` is the text on disk (None: no file yet); ``before`` and ``after`` are a person's own
    text around the block, ``lead`` the line end that sets the block off; ``own`` are the quads
    of that text, ``held`` those that only the block states.
    """

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


def iri_of(term: object) -> str:
    """The IRI of a node; "" for blank nodes and the default graph."""
    return term.value if isinstance(term, ox.NamedNode) else ""


def _base(path: Path) -> str:
    return Path(os.path.abspath(path)).as_uri()


def _damaged(path: Path, seen: str) -> UnusableInput:
    return UnusableInput(
        str(path), seen, "no block, or one whole block as lift wrote it",
        f"delete the block with both lines ({BEGIN[:25]!r} and {END!r}) and lift again",
    )  # fmt: skip


def take_apart(path: Path, text: str, old: str | None) -> Source:
    """Take a TriG text apart; raises UnusableInput when it or its block is damaged."""
    marks = list(_MARKER.finditer(text))
    if not marks:
        eol = re.search(_EOL, text)
        own = parse(text, path)
        return Source(path, old, text, eol[0] if eol else "\n", "", own, set())
    if [m[1] for m in marks] != ["begin", "end"]:
        raise _damaged(path, f"marker lines {', '.join(m[1] for m in marks)}")
    before, after = text[: marks[0].start()], text[marks[1].end() :]
    lead = re.search(rf"{_EOL}\Z", before)
    before = before[: lead.start()] if lead else before
    after = re.sub(f"^{_EOL}", "", after)
    try:
        own, whole = parse(f"{before}\n{after}", path), parse(text, path)
    except UnusableInput as error:
        raise _damaged(path, f"text outside the block that fails ({error.seen})") from None
    held = set(ground(whole)) - set(ground(own))
    if not is_union(whole, own, held):
        # The marker lines stand inside a literal, or the block holds blank nodes.
        raise _damaged(path, "text between the marker lines that is not a block of triples")
    for quad in sorted(held, key=str):
        is_kind = iri_of(quad.object).startswith(str(PROC))
        if quad.predicate.value not in _WRITTEN or (quad.predicate.value == TYPE and not is_kind):
            raise UnusableInput(
                str(path), f"a triple in the block that lift did not write: {quad}",
                "your own triples outside the block", "move it out of the block",
            )  # fmt: skip
    return Source(path, old, before, lead[0] if lead else "", after, own, held)


def parse(text: str, path: Path) -> list[ox.Quad]:
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


def ground(quads: Iterable[ox.Quad]) -> list[ox.Quad]:
    """The quads without a blank node: those that can be compared by value."""
    plain = (ox.NamedNode, ox.Literal, ox.DefaultGraph)
    return [
        q for q in quads if all(isinstance(t, plain) for t in (q.subject, q.object, q.graph_name))
    ]


def is_union(whole: Sequence[ox.Quad], own: Sequence[ox.Quad], more: set[ox.Quad]) -> bool:
    """Whether a text says what *own* and *more* say; blank nodes are only counted."""
    said, of_own = ground(whole), ground(own)
    return set(said) == {*of_own, *more} and len(whole) - len(said) == len(own) - len(of_own)


def _block(quads: Iterable[ox.Quad], here: str, eol: str) -> str:
    """Write quads between the marker lines: full IRIs, so that no prefix of the file matters.

    IRIs under *here*, the folder's own IRI, are written relative to it: a model that is named
    that way must not carry the path of one machine.
    """

    def term(node: object) -> str:
        if iri_of(node).startswith(here):
            return f"<./{iri_of(node)[len(here) :]}>"
        return "a" if iri_of(node) == TYPE else str(node)

    def order(quad: ox.Quad) -> tuple[str, str, int, str]:
        graph = term(quad.graph_name) if iri_of(quad.graph_name) else ""
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


def read_text(path: Path) -> str:
    """Return a file's text with its line ends and BOM; raises UnusableInput if it has none."""
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
