"""The words of a model: namespaces, named graphs, and the ontology, shapes and queries.

``ontology/*.ttl``, ``shapes.ttl`` and ``queries/*.rq`` lie beside this file as package data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

import pyoxigraph as ox
from rdflib import Graph, Namespace, URIRef

from seams_lab.errors import UnusableInput

SEAM = Namespace("https://w3id.org/seams/seam#")
ARCH = Namespace("https://w3id.org/seams/arch#")
PROC = Namespace("https://w3id.org/seams/proc#")
DEC = Namespace("https://w3id.org/seams/dec#")
IFML = Namespace("https://w3id.org/seams/ifml#")
STATE = Namespace("https://w3id.org/seams/state#")
COMM = Namespace("https://w3id.org/seams/comm#")
DEPLOY = Namespace("https://w3id.org/seams/deploy#")
SEAMSH = Namespace("https://w3id.org/seams/shapes#")
HYDRA = Namespace("http://www.w3.org/ns/hydra/core#")
ODRL = Namespace("http://www.w3.org/ns/odrl/2/")
SH = Namespace("http://www.w3.org/ns/shacl#")

# XML namespaces of BPMN files.
BPMN = "http://www.omg.org/spec/BPMN/20100524/MODEL"
BPMNDI = "http://www.omg.org/spec/BPMN/20100524/DI"
DC = "http://www.omg.org/spec/DD/20100524/DC"
DI = "http://www.omg.org/spec/DD/20100524/DI"
XSI = "http://www.w3.org/2001/XMLSchema-instance"

#: Holds every triple that crosses layers.
SEAMS_GRAPH = URIRef("urn:seams:graph:seams")
#: Holds one entry per payload: path, media type, checksum.
MANIFEST_GRAPH = URIRef("urn:seams:graph:manifest")
SHAPES_GRAPH = URIRef("urn:seams:graph:shapes")
DEPLOYED_GRAPH = URIRef("urn:seams:graph:deployed")


def model_graph(model_id: str) -> URIRef:
    """Return the named graph that holds the triples inside one ``seam:Model``."""
    return URIRef(f"urn:seams:graph:model:{model_id}")


def ontology_graph(vocabulary: str) -> URIRef:
    """Return the named graph that holds one vocabulary, such as ``"seam"``."""
    return URIRef(f"urn:seams:graph:ontology:{vocabulary}")


@cache
def ontology() -> Graph:
    """Return the triples of every vocabulary in one graph.

    The graph is shared by all callers: copy it before you add to it.
    """
    graph = Graph()
    for file in sorted((files("seams_lab") / "ontology").iterdir(), key=lambda f: f.name):
        if file.name.endswith(".ttl"):
            graph.parse(data=file.read_text("utf-8"), format="turtle")
    return graph


@cache
def shapes_graph() -> Graph:
    """Return the SHACL shapes of the kit (``shapes.ttl``), shared like :func:`ontology`."""
    text = (files("seams_lab") / "shapes.ttl").read_text("utf-8")
    return Graph().parse(data=text, format="turtle")


@cache
def query_names() -> tuple[str, ...]:
    """Return the names that :func:`query` knows, sorted."""
    folder = files("seams_lab") / "queries"
    return tuple(sorted(f.name[:-3] for f in folder.iterdir() if f.name.endswith(".rq")))


def query(name: str, **bindings: URIRef | Iterable[URIRef]) -> str:
    """Return the SPARQL text of ``queries/<name>.rq``, with its variables bound.

    Binding goes through the query's VALUES clause, because ``initBindings`` of a variable that is
    not selected fails on the Oxigraph store. A variable that is not given stays open.

    Parameters
    ----------
    name : str
        One of :func:`query_names`.
    **bindings : URIRef or iterable of URIRef
        Value or values per variable, such as ``node=URIRef("https://example.org/db01")``.

    Raises
    ------
    UnusableInput
        For a name or variable that is not there, no value, or a value that is no absolute IRI.

    Examples
    --------
    >>> text = query("schedules-of-node", node=URIRef("https://example.org/db01"))
    >>> "VALUES ?node { <https://example.org/db01> }" in text
    True
    """
    if name not in query_names():
        raise UnusableInput(
            "query", f"{name!r}", f"one of {', '.join(query_names())}", "use one of these names"
        )
    text = (files("seams_lab") / "queries" / f"{name}.rq").read_text("utf-8")
    for variable, values in bindings.items():
        slot = f"VALUES ?{variable} {{ UNDEF }}"
        if slot not in text:
            open_ones = re.findall(r"VALUES \?(\w+) \{ UNDEF \}", text)
            raise UnusableInput(
                f"query {name}",
                f"no variable {variable!r} to bind",
                f"one of {', '.join(open_ones)}" if open_ones else "no more variables",
                "bind a variable that the query leaves open",
            )
        terms = " ".join(map(_iri, [values] if isinstance(values, str) else values))
        if not terms:  # rdflib cannot run an empty VALUES
            raise UnusableInput(
                f"query {name}", f"nothing to bind {variable!r} to", "at least one IRI",
                "leave the variable out to ask for all",
            )  # fmt: skip
        text = text.replace(slot, f"VALUES ?{variable} {{ {terms} }}")
    return text


def _iri(term: object) -> str:
    """Write one IRI for SPARQL; refuse all else, so that no other text gets into a query."""
    try:
        if isinstance(term, URIRef):
            return str(ox.NamedNode(term))  # checks it: absolute, and no character that ends it
    except ValueError:
        pass
    raise UnusableInput(
        "query", f"{term!r}", "an absolute IRI as rdflib.URIRef", "pass URIRef('https://…')"
    )
