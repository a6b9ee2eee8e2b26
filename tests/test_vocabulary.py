"""The vocabulary: every term is declared and explained, and the queries answer what they say."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from rdflib import OWL, RDF, RDFS, BNode, Dataset, Graph, Literal, Namespace, URIRef

from seams_lab import vocabulary
from seams_lab.errors import UnusableInput
from seams_lab.vocabulary import (
    ARCH,
    COMM,
    DEC,
    DEPLOY,
    IFML,
    PROC,
    SEAM,
    SEAMSH,
    SH,
    STATE,
    ontology,
    query,
    query_names,
    shapes_graph,
)

LAYERS = {"arch": ARCH, "proc": PROC, "dec": DEC, "ifml": IFML, "state": STATE, "comm": COMM,
          "deploy": DEPLOY}  # fmt: skip
OURS = {"seam": SEAM, **LAYERS}

EX = Namespace("https://example.org/")

# Two small systems: a shop whose second process is started over a channel, and a chat.
SYSTEMS = """
@prefix seam: <https://w3id.org/seams/seam#> .
@prefix arch: <https://w3id.org/seams/arch#> .
@prefix proc: <https://w3id.org/seams/proc#> .
@prefix comm: <https://w3id.org/seams/comm#> .
@prefix deploy: <https://w3id.org/seams/deploy#> .
@prefix hydra: <http://www.w3.org/ns/hydra/core#> .
@prefix : <https://example.org/> .
@prefix order: <https://example.org/order_bpmn#> .
@prefix fulfil: <https://example.org/fulfillment_bpmn#> .

GRAPH <urn:seams:graph:model:shop> {
    :web_ui a arch:Container .
    :order_api a arch:Container ; arch:dependsOn :order_db .
    :order_db a arch:Container .
    :web01 a arch:DeploymentNode . :app01 a arch:DeploymentNode . :db01 a arch:DeploymentNode .
    :rack a arch:DeploymentNode ; arch:contains :db01 .
    :order_db deploy:dependsOn :mailer .
}
GRAPH <urn:seams:graph:model:order_bpmn> {
    :order_process a proc:Process ; seam:inModel :order_bpmn .
    order:placed a proc:MessageThrowEvent ; seam:inModel :order_bpmn .
}
GRAPH <urn:seams:graph:model:fulfillment_bpmn> {
    :fulfillment_process a proc:Process ; seam:inModel :fulfillment_bpmn .
    fulfil:placed a proc:MessageCatchEvent ; seam:inModel :fulfillment_bpmn .
}
GRAPH <urn:seams:graph:seams> {
    :order_events a comm:Channel .
    :place_order a hydra:Operation .
    :order_api seam:exposes :place_order ; seam:deployedTo :app01 ;
        seam:executes :order_process, :fulfillment_process .
    :web_ui seam:consumes :place_order ; seam:deployedTo :web01 .
    :order_db seam:deployedTo :db01 .
    :order_process seam:detailedBy :order_bpmn .
    :fulfillment_process seam:detailedBy :fulfillment_bpmn .
    order:placed seam:publishesTo :order_events .
    fulfil:placed seam:subscribesTo :order_events .

    :chat_ui seam:consumes :send_message ; seam:deployedTo :chat_web .
    :chat_api seam:exposes :send_message ; seam:executes :send_message_process ;
        seam:schedules :digest_process ; seam:deployedTo :chat_app, :chat_spare .
    :message_db seam:deployedTo :chat_db .
}
GRAPH <urn:seams:graph:model:chat> { :chat_api arch:dependsOn :message_db . }
"""


@pytest.fixture(params=["Oxigraph", "default"])
def systems(request: pytest.FixtureRequest) -> Dataset:
    """Both systems in one dataset, on each of the two stores."""
    dataset = Dataset(store=request.param, default_union=True)
    dataset.parse(data=SYSTEMS, format="trig")
    return dataset


def answers(dataset: Dataset, text: str) -> list[tuple[str, ...]]:
    """Rows of local names, in the order of the query."""
    return [
        tuple(re.split(r"[/#]", term)[-1] for term in row)
        for row in dataset.query(text)  # type: ignore[union-attr]
    ]


def declared(namespace: Namespace) -> set[URIRef]:
    return {
        term for term in ontology().subjects(RDF.type) if isinstance(term, URIRef)
        and term.startswith(namespace)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "version"),
    [("seam", "1.6"), ("proc", "1.1"), ("arch", "1.0"), ("dec", "1.0"), ("ifml", "1.0"),
     ("state", "1.0"), ("comm", "1.0"), ("deploy", "1.0")],
)  # fmt: skip
def test_each_vocabulary_names_itself_and_its_version(name: str, version: str) -> None:
    header = URIRef(f"https://w3id.org/seams/{name}")
    assert (header, RDF.type, OWL.Ontology) in ontology()
    assert list(ontology().objects(header, OWL.versionInfo)) == [Literal(version)]


@pytest.mark.parametrize("name", OURS)
def test_each_term_has_one_label_and_a_comment(name: str) -> None:
    terms = declared(OURS[name])
    assert terms
    for term in terms:
        assert len(list(ontology().objects(term, RDFS.label))) == 1, term
        (comment,) = ontology().objects(term, RDFS.comment)
        assert str(comment).endswith("."), term


def test_seam_predicates_have_no_domain_or_range_and_layers_do() -> None:
    typed = set(ontology().subjects(RDFS.domain)) | set(ontology().subjects(RDFS.range))
    assert not {term for term in typed if str(term).startswith(SEAM)}
    assert (ARCH.contains, RDFS.range, ARCH.Element) in ontology()
    assert {DEPLOY.replicas, COMM.hasChannel, STATE["from"]} <= typed


@pytest.mark.parametrize(
    ("term", "kind"),
    [
        (SEAM.schedules, OWL.ObjectProperty),
        (SEAM.storedIn, OWL.ObjectProperty),
        (SEAM.filePath, OWL.DatatypeProperty),
        (SEAM.mediaType, OWL.DatatypeProperty),
        (SEAM.checksum, OWL.DatatypeProperty),
        (PROC.TimerStartEvent, OWL.Class),
        (PROC.TimerCatchEvent, OWL.Class),
        (SEAM.BPMN, SEAM.Notation),
    ],
)
def test_the_terms_of_timers_and_manifests_are_there(term: URIRef, kind: URIRef) -> None:
    assert (term, RDF.type, kind) in ontology()


def test_subclasses_that_shapes_rely_on() -> None:
    assert set(ontology().subjects(RDFS.subClassOf, PROC.Task)) == {
        PROC.ServiceTask, PROC.UserTask, PROC.BusinessRuleTask,
    }  # fmt: skip
    assert ARCH.Container in set(ontology().subjects(RDFS.subClassOf, ARCH.Element))


def prefixed_names(text: str) -> set[URIRef]:
    """Every term of our namespaces that a SPARQL text names by a prefix."""
    code = re.sub(r"#[^>\n]*$", "", text, flags=re.M)
    found = re.findall(r"(?<![\w<:/])(\w+):(\w+)", code)
    return {OURS[prefix][name] for prefix, name in found if prefix in OURS}


def test_shapes_and_queries_use_declared_terms_only() -> None:
    used = {
        term for triple in shapes_graph() for term in triple
        if isinstance(term, URIRef) and any(term.startswith(n) and term != n for n in OURS.values())
    }  # fmt: skip
    for select in shapes_graph().objects(None, SH.select):
        used |= prefixed_names(str(select))
    for name in query_names():
        in_query = prefixed_names(query(name))
        assert in_query, name
        used |= in_query
    assert used <= set().union(*map(declared, OURS.values()))
    assert {SEAM.schedules, SEAM.storedIn, PROC.TimerStartEvent, DEPLOY.replicas} <= used


def test_every_seam_predicate_has_a_shape_of_its_name() -> None:
    exempt = {SEAM.realizes, SEAM.filePath, SEAM.mediaType, SEAM.checksum}
    for predicate in ontology().subjects(RDF.type, OWL.ObjectProperty):
        if str(predicate).startswith(SEAM) and predicate not in exempt:
            local = str(predicate).removeprefix(SEAM)
            shape = SEAMSH[f"{local[0].upper()}{local[1:]}Shape"]
            assert (shape, SH.targetSubjectsOf, predicate) in shapes_graph()


def test_every_file_beside_the_code_is_read() -> None:
    folder = files("seams_lab") / "ontology"
    for file in folder.iterdir():
        graph = Graph().parse(data=file.read_text("utf-8"), format="turtle")
        (header,) = graph.subjects(RDF.type, OWL.Ontology)
        assert (header, RDF.type, OWL.Ontology) in ontology(), file.name


@pytest.mark.parametrize("name", query_names())
def test_each_query_says_its_question_variables_and_caveats(name: str) -> None:
    head = [line for line in query(name).splitlines() if line.startswith("#")]
    for word in ("Question:", "Bind:", "Answer:", "Caveats:"):
        assert any(line.startswith(f"# {word}") for line in head), word


@pytest.mark.parametrize(
    ("node", "impacted"),
    [
        ("db01", {"order_db", "order_api", "web_ui", "order_process", "fulfillment_process"}),
        ("app01", {"order_api", "web_ui", "order_process", "fulfillment_process"}),
        ("web01", {"web_ui"}),
        ("chat_db", {"message_db", "chat_api", "chat_ui", "send_message_process"}),
        ("rack", set()),  # does not walk arch:contains
        ("nowhere", set()),
    ],
)
def test_impact_of_a_node(systems: Dataset, node: str, impacted: set[str]) -> None:
    rows = answers(systems, query("impact-of-node", node=EX[node]))
    assert rows == [(node, name) for name in sorted(impacted)]


def test_schedules_of_a_node(systems: Dataset) -> None:
    rows = answers(systems, query("schedules-of-node", node=EX.chat_app))
    assert rows == [("chat_app", "chat_api", "digest_process")]
    assert answers(systems, query("schedules-of-node", node=EX.app01)) == []  # executes only
    assert answers(systems, query("schedules-of-node", node=EX.chat_db)) == []


def test_an_unbound_query_covers_everything(systems: Dataset) -> None:
    assert answers(systems, query("schedules-of-node")) == [
        ("chat_app", "chat_api", "digest_process"),
        ("chat_spare", "chat_api", "digest_process"),
    ]
    each = {
        row
        for node in ("db01", "app01", "web01", "chat_db", "chat_app", "chat_spare", "chat_web")
        for row in answers(systems, query("impact-of-node", node=EX[node]))
    }
    assert set(answers(systems, query("impact-of-node"))) == each


def test_several_values_at_once(systems: Dataset) -> None:
    both = query("schedules-of-node", node=[EX.chat_app, EX.chat_spare, EX.db01])
    assert len(answers(systems, both)) == 2


def test_started_processes(systems: Dataset) -> None:
    expected = [("order_process", "order_events", "fulfillment_process")]
    assert answers(systems, query("started-processes", process=EX.order_process)) == expected
    assert answers(systems, query("started-processes")) == expected
    assert answers(systems, query("started-processes", process=EX.fulfillment_process)) == []


@pytest.mark.parametrize("break_it", [
    (EX.order_events, RDF.type, COMM.Channel),
    (EX["fulfillment_bpmn#placed"], RDF.type, PROC.MessageCatchEvent),
    (EX["fulfillment_bpmn#placed"], SEAM.subscribesTo, EX.order_events),
    (EX.fulfillment_process, SEAM.detailedBy, EX.fulfillment_bpmn),
])  # fmt: skip
def test_a_process_is_started_only_over_a_whole_chain(
    systems: Dataset, break_it: tuple[URIRef, URIRef, URIRef]
) -> None:
    systems.remove((*break_it, None))
    assert answers(systems, query("started-processes")) == []


@pytest.mark.parametrize(
    "value",
    [
        URIRef("https://example.org/a> } ?s ?p ?o { <urn:x"),
        URIRef("https://example.org/a b"),
        URIRef('https://example.org/"'),
        URIRef("https://example.org/\\u003E"),
        URIRef("https://example.org/\n"),
        URIRef("https://example.org/\ud800"),
        URIRef("relative"),
        URIRef(""),
        "https://example.org/plain-text",
        Literal("https://example.org/"),
        BNode("b"),
        [EX.fine, Literal("not")],
        [None],
    ],
)
def test_only_an_absolute_iri_gets_into_a_query(value: object) -> None:
    with pytest.raises(UnusableInput, match="absolute IRI"):
        query("impact-of-node", node=value)  # type: ignore[arg-type]


def test_a_wrong_name_or_variable_is_refused_with_those_that_exist() -> None:
    with pytest.raises(UnusableInput, match="impact-of-node, schedules-of-node"):
        query("../shapes")
    with pytest.raises(UnusableInput, match=r"no variable 'nod' to bind; expected one of node"):
        query("impact-of-node", nod=EX.db01)
    with pytest.raises(UnusableInput, match="nothing to bind 'node' to"):
        query("impact-of-node", node=[])


def test_named_graphs() -> None:
    assert str(vocabulary.model_graph("order_bpmn")) == "urn:seams:graph:model:order_bpmn"
    assert str(vocabulary.ontology_graph("seam")) == "urn:seams:graph:ontology:seam"
    assert str(vocabulary.SEAMS_GRAPH) == "urn:seams:graph:seams"
