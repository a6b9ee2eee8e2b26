"""SHACL, fast: find the violators of each shape set-wise, then let pyshacl report on just those.

pyshacl looks at one focus node after the other and runs each SPARQL constraint once per focus node,
which takes minutes on a model of some ten thousand triples. So each shape is first translated to a
few queries that select every focus node that *may* violate it. The translation may select too many
nodes and never too few: what it does not understand counts as violated. Then the selected nodes
become the only targets of the shapes, and pyshacl runs once. What is reported is therefore
pyshacl's own report; where nothing is selected, pyshacl does not run at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyoxigraph as ox
from oxrdflib import OxigraphStore
from rdflib import OWL, RDF, RDFS, XSD, BNode, Dataset, Graph, Literal, URIRef
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID
from rdflib.term import Node

from seams_lab.errors import UnusableInput
from seams_lab.vocabulary import SEAMSH, SH, ontology, shapes_graph

_SEVERITIES: dict[Node | None, str] = {SH.Warning: "warning", SH.Info: "info"}
_QUERIED_TARGETS = (SH.targetClass, SH.targetSubjectsOf, SH.targetObjectsOf)
_TARGETS = (*_QUERIED_TARGETS, SH.targetNode)

# What a shape may carry that makes no node violate it.
_HARMLESS = {
    *_TARGETS, RDF.type, RDFS.label, RDFS.comment, SH.path, SH.message, SH.severity,
    SH.name, SH.description, SH.order, SH.group, SH.deactivated,
}  # fmt: skip
# Datatypes of which SPARQL itself can tell an ill-typed literal.
_NUMERIC = {XSD.integer, XSD.decimal, XSD.double, XSD.float}


@dataclass(frozen=True)
class Violation:
    """One result of a SHACL report.

    Parameters
    ----------
    focus : str
        The IRI of the node at fault (``_:id`` for a blank node, the text of a literal).
    shape : str
        The IRI of the shape; for a property shape without a name, of the shape that holds it.
    path : str or None
        The IRI of the predicate at fault; None where there is none, or a path of several steps.
    value : str or None
        The value at fault, written like ``focus``.
    message : str
        What is wrong, as a sentence. Several messages are joined by ``"; "``.
    severity : str
        ``"error"``, ``"warning"`` or ``"info"``.
    """

    focus: str
    shape: str
    path: str | None
    value: str | None
    message: str
    severity: str

    def _order(self) -> tuple[str, ...]:
        return (self.focus, self.shape, self.path or "", self.value or "", self.message)


def violations(data: Graph | Dataset, shapes: Graph | None = None) -> list[Violation]:
    """Check a model against shapes, over the union of the ontology and all its named graphs.

    The result is that of ``pyshacl.validate`` on the same union, with no inference. Literals are
    those that Oxigraph keeps: numbers in their shortest form (``"1.50"`` becomes ``"1.5"``), and
    an ``xsd:string`` is a plain string.

    Parameters
    ----------
    data : Graph or Dataset
        The model. A Dataset on the Oxigraph store is the fast way.
    shapes : Graph, optional
        The shapes; by default those of the kit.

    Returns
    -------
    list of Violation
        Sorted and without duplicates; empty if the model conforms.

    Raises
    ------
    UnusableInput
        For shapes found not to be well formed (those that no node can violate are not looked
        at), and for a graph in memory with an IRI that is none.
    """
    shapes = shapes_graph() if shapes is None else shapes
    union = _union(data)
    try:
        narrowed = _narrowed(shapes, union)
        return [] if narrowed is None else _report(union, narrowed, shapes)
    except SyntaxError as error:  # from a SELECT in the shapes
        raise _not_well_formed(str(error)) from error


def _narrowed(shapes: Graph, union: Graph) -> Graph | None:
    """Return the shapes with possible violators as their only targets; None if there are none."""
    narrowed = Graph()
    narrowed += shapes
    # A shape that is a class targets its instances; these it keeps.
    classes = {RDFS.Class, OWL.Class, *shapes.subjects(RDFS.subClassOf, RDFS.Class)}
    suspicious = any((None, RDF.type, c) in shapes for c in classes)
    for shape in set().union(*(shapes.subjects(target) for target in _TARGETS)):
        for target in _QUERIED_TARGETS:
            narrowed.remove((shape, target, None))
        for node in _Translation(shapes, union).suspects(shape):
            narrowed.add((shape, SH.targetNode, node))
        suspicious |= (shape, SH.targetNode, None) in narrowed
    return narrowed if suspicious else None


class _Flat(Graph):
    """Ontology and model as one flat graph on an Oxigraph store of its own, not to be changed."""

    def __init__(self, store: ox.Store) -> None:
        super().__init__(OxigraphStore(store=store), DATASET_DEFAULT_GRAPH_ID)
        self._size = len(store)

    def __len__(self) -> int:
        # pyshacl asks this many times per result, and the store counts anew each time.
        return self._size

    def triples(self, triple: Any) -> Any:
        # To rdflib a plain string and an xsd:string differ; shapes are written with plain ones.
        for s, p, o in super().triples(triple):
            yield s, p, _plain(o)


def _union(data: Graph | Dataset) -> Graph:
    store = ox.Store()
    filling = Graph(OxigraphStore(store=store), DATASET_DEFAULT_GRAPH_ID)
    filling += ontology()
    if isinstance(data, Dataset) and isinstance(data.store, OxigraphStore):
        quads: Iterable[ox.Quad] = data.store._inner
        store.bulk_extend(ox.Quad(q.subject, q.predicate, q.object) for q in quads)
        return _Flat(store)
    if isinstance(data, Dataset):
        triples = ((s, p, o) for s, p, o, _ in data.quads((None, None, None, None)))
    else:
        triples = (triple for triple in data)
    try:
        filling.addN((s, p, o, filling) for s, p, o in triples)
    except ValueError as error:
        raise UnusableInput("model", str(error), "valid IRIs", "correct the IRI") from error
    return _Flat(store)


@dataclass
class _Translation:
    """Turns one shape into SPARQL that selects every target that may violate it.

    The methods below return filter expressions that are true wherever the variable may hold a
    violator: ``"true"`` for what is not understood, so that pyshacl looks at every target.
    """

    shapes: Graph
    union: Graph
    selects: set[Node] = field(default_factory=set)
    within: list[Node] = field(default_factory=list)
    variables: int = 0

    def suspects(self, shape: Node) -> set[Node]:
        """Return every target of *shape*, its sh:targetNode apart, that may violate it."""
        targets = " UNION ".join(self._targets(shape))
        if not targets:
            return set()
        expression = self._violates(shape, "?this")
        queries = [f"SELECT DISTINCT ?this WHERE {{ {targets} FILTER ({expression}) }}"]
        queries += (
            f"{self._prefixes(constraint)} SELECT DISTINCT ?this WHERE "
            f"{{ {targets} {{ {self.shapes.value(constraint, SH.select)} }} }}"
            for constraint in self.selects
        )
        rows = (row for query in queries for row in self.union.query(query))
        return {_plain(row[0]) for row in rows}  # type: ignore[index]

    def _targets(self, shape: Node) -> Iterator[str]:
        for class_ in self.shapes.objects(shape, SH.targetClass):
            yield f"{{ ?this {RDF.type.n3()}/{RDFS.subClassOf.n3()}* {class_.n3()} }}"
        for predicate in self.shapes.objects(shape, SH.targetSubjectsOf):
            yield f"{{ ?this {predicate.n3()} ?any }}"
        for predicate in self.shapes.objects(shape, SH.targetObjectsOf):
            yield f"{{ ?any {predicate.n3()} ?this }}"

    def _subclasses(self, class_: Node) -> list[str]:
        """Return *class_* and its subclasses, written for SPARQL."""
        below = self.union.transitive_subjects(RDFS.subClassOf, class_)
        return sorted(c.n3() for c in below if isinstance(c, URIRef))

    def _prefixes(self, constraint: Node) -> str:
        value = self.shapes.value
        declarations = {"rdf": str(RDF), "rdfs": str(RDFS), "owl": str(OWL)}  # pyshacl adds these
        declarations |= {
            str(value(declaration, SH.prefix)): str(value(declaration, SH.namespace))
            for holder in self.shapes.objects(constraint, SH.prefixes)
            for declaration in self.shapes.objects(holder, SH.declare)
        }
        return " ".join(f"PREFIX {name}: <{iri}>" for name, iri in declarations.items())

    def _violates(self, shape: Node, this: str) -> str:
        """Translate a shape: true where the node in *this* may violate it."""
        if shape in self.within:  # a shape that refers to itself
            return "true"
        self.within.append(shape)
        path = self.shapes.value(shape, SH.path)
        constraints = list(self.shapes.predicate_objects(shape))
        if path is None:
            expression = _any(self._constraint(p, o, this) for p, o in constraints)
        elif isinstance(path, URIRef):
            self.variables += 1
            edge, value = f"{this} {path.n3()}", f"?v{self.variables}"
            expression = _any(self._on_path(p, o, this, edge, value) for p, o in constraints)
        else:
            expression = "true"
        self.within.pop()
        return expression

    def _on_path(self, parameter: Node, argument: Node, this: str, edge: str, value: str) -> str:
        """Translate one parameter of a property shape; *edge* leads from *this* to *value*."""
        if parameter == SH.minCount and argument == Literal(1):
            return f"NOT EXISTS {{ {edge} {value} }}"
        if parameter == SH.maxCount and argument == Literal(1):
            other = f"{value}_other"
            return f"EXISTS {{ {edge} {value}, {other} FILTER (!sameTerm({value}, {other})) }}"
        if parameter == SH.sparql:  # its $this is the focus node, not the value
            return self._constraint(parameter, argument, this)
        expression = self._constraint(parameter, argument, value)
        if expression in ("true", "false"):
            return expression
        return f"EXISTS {{ {edge} {value} FILTER ({expression}) }}"

    def _constraint(self, parameter: Node, argument: Node, value: str) -> str:
        """Translate one parameter that looks at one value at a time."""
        if parameter in _HARMLESS:
            return "false"
        if parameter == SH["class"]:
            return _all(f"NOT EXISTS {{ {value} a {c} }}" for c in self._subclasses(argument))
        if parameter == SH["or"]:
            return _all(self._violates(member, value) for member in self.shapes.items(argument))
        if parameter == SH.property:
            return self._violates(argument, value)
        if parameter == SH.nodeKind and argument == SH.IRI:
            return f"!isIRI({value})"
        if parameter == SH.datatype and argument in _NUMERIC:
            return f"!(isNumeric({value}) && datatype({value}) = {argument.n3()})"
        if parameter == SH.minInclusive and getattr(argument, "datatype", None) in _NUMERIC:
            return f"!COALESCE({value} >= {argument.n3()}, false)"
        if parameter == SH.sparql and value == "?this" and self._is_set_wise(argument):
            self.selects.add(argument)
            return "false"
        return "true"

    def _is_set_wise(self, constraint: Node) -> bool:
        return (constraint, SEAMSH.setWise, Literal(True)) in self.shapes


def _plain(term: Node) -> Node:
    """Write an xsd:string as a plain literal."""
    return Literal(str(term)) if getattr(term, "datatype", None) == XSD.string else term


def _any(expressions: Iterable[str]) -> str:
    """Join filter expressions by or."""
    parts = set(expressions) - {"false"}
    return "true" if "true" in parts else " || ".join(sorted(parts)) or "false"


def _all(expressions: Iterable[str]) -> str:
    """Join filter expressions by and."""
    parts = set(expressions) - {"true"}
    joined = " && ".join(f"({part})" for part in sorted(parts))
    return "false" if "false" in parts else joined or "true"


def _report(union: Graph, narrowed: Graph, shapes: Graph) -> list[Violation]:
    """Run pyshacl and read its report."""
    # Here, for it takes longer than the check of a small model that conforms.
    import pyshacl
    from pyshacl.errors import ReportableRuntimeError

    try:
        _, report, text = pyshacl.validate(union, shacl_graph=narrowed, inference="none")
    except ReportableRuntimeError as error:
        raise _not_well_formed(str(error)) from error
    if not isinstance(report, Graph):  # an error that pyshacl returns
        raise _not_well_formed(text)
    return read_report(report, shapes)


def _not_well_formed(seen: str) -> UnusableInput:
    return UnusableInput("shapes", seen, "well-formed SHACL shapes", "correct the shapes graph")


def read_report(report: Graph, shapes: Graph) -> list[Violation]:
    """Return the results of a SHACL report graph, sorted and without duplicates."""
    found = set()
    for result in report.subjects(RDF.type, SH.ValidationResult):
        path = report.value(result, SH.resultPath)
        value = report.value(result, SH.value)
        found.add(
            Violation(
                focus=_text(report.value(result, SH.focusNode)),
                shape=_text(_named(report.value(result, SH.sourceShape), shapes)),
                path=str(path) if isinstance(path, URIRef) else None,
                value=None if value is None else _text(value),
                message="; ".join(sorted(map(str, report.objects(result, SH.resultMessage)))),
                severity=_SEVERITIES.get(report.value(result, SH.resultSeverity), "error"),
            )
        )
    return sorted(found, key=Violation._order)


def _named(shape: Node | None, shapes: Graph) -> Node | None:
    """Climb from a property shape without a name to the shape that holds it."""
    while isinstance(shape, BNode):
        holder = shapes.value(predicate=SH.property, object=shape)
        if holder is None:
            break
        shape = holder
    return shape


def _text(term: Node | None) -> str:
    return f"_:{term}" if isinstance(term, BNode) else str(term)
