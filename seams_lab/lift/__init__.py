"""Lift BPMN elements into a model's graph: index triples, and the TriG block that holds them.

What a person wrote stays byte for byte. What lift adds stands between two comment lines and is
made anew on each run, so that entries of elements that are gone vanish. Where a person has said
something else about an element, lift adds nothing beside it and says so in a note.
"""

from __future__ import annotations

from seams_lab.errors import UnusableInput
from seams_lab.graph import ModelGraph
from seams_lab.lift.bare import plan_bare
from seams_lab.lift.block import read_text, take_apart
from seams_lab.lift.index import element_iri, index_triples, index_type
from seams_lab.lift.planning import plan_sources
from seams_lab.lift.result import FileLift, LiftPlan

__all__ = ["FileLift", "LiftPlan", "element_iri", "index_triples", "index_type", "plan"]


def plan(graph: ModelGraph, base: str | None = None) -> LiftPlan:
    """Work out which index triples a model's files lack, and the text that adds them.

    Parameters
    ----------
    graph : ModelGraph
        From `load_graph`. For BPMN files that no TriG file names, a new ``<stem>.trig`` beside
        each is planned.
    base : str, optional
        For such new files only: the model's IRI; with several files ``<base>/<stem>``. By
        default ``https://example.org/<stem>``.

    Raises
    ------
    UnusableInput
        For a TriG file that cannot be read or whose block is damaged, a *base* that is not
        usable, and a ``<stem>.trig`` that somebody else wrote.
    """
    if graph.bare:
        return plan_bare(graph, base)
    if base is not None:
        raise UnusableInput(
            "base", base, "no base: the TriG file names its models itself", "leave it out"
        )
    sources = []
    for path in graph.sources:
        text = read_text(path)
        sources.append(take_apart(path, text, text))
    return plan_sources(graph.root, sources)
