"""The shapes say what is wrong, and the fast check says exactly what pyshacl says."""

from __future__ import annotations

from collections.abc import Iterable

import pyshacl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rdflib import OWL, RDF, RDFS, XSD, BNode, Dataset, Graph, Literal, Namespace, URIRef
from rdflib.term import Node

from seams_lab.errors import UnusableInput
from seams_lab.shapes import Violation, read_report, violations
from seams_lab.vocabulary import (
    ARCH,
    COMM,
    DEC,
    DEPLOY,
    HYDRA,
    IFML,
    ODRL,
    PROC,
    SEAM,
    SEAMSH,
    SH,
    STATE,
    ontology,
    shapes_graph,
)  # fmt: skip

Triple = tuple[Node, Node, Node]
EX = Namespace("https://example.org/")

PREFIXES = """
@prefix seam: <https://w3id.org/seams/seam#> .
@prefix arch: <https://w3id.org/seams/arch#> .
@prefix proc: <https://w3id.org/seams/proc#> .
@prefix dec: <https://w3id.org/seams/dec#> .
@prefix ifml: <https://w3id.org/seams/ifml#> .
@prefix state: <https://w3id.org/seams/state#> .
@prefix comm: <https://w3id.org/seams/comm#> .
@prefix deploy: <https://w3id.org/seams/deploy#> .
@prefix seamsh: <https://w3id.org/seams/shapes#> .
@prefix hydra: <http://www.w3.org/ns/hydra/core#> .
@prefix odrl: <http://www.w3.org/ns/odrl/2/> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix : <https://example.org/> .
"""

# Uses every seam predicate, and conforms.
CONFORMING = (
    PREFIXES
    + """
:parts a seam:Model ; seam:notation seam:C4 .
:pages a seam:Model ; seam:notation seam:IFML .
:approve_bpmn a seam:Model ; seam:notation seam:BPMN ; seam:renderPayload :approve.bpmn .
:rules_dmn a seam:Model ; seam:notation seam:DMN ; seam:renderPayload :rules.dmn .

:api a arch:Container ; seam:inModel :parts ; deploy:replicas 2 ;
    seam:presents :pages ; seam:exposes :submit, :events ; seam:deployedTo :node ;
    seam:storedIn :db ; seam:executes :approve ; seam:schedules :approve .
:ui a arch:Container ; seam:consumes :submit, :events .
:db a arch:Container ; arch:technology "PostgreSQL" ; seam:deployedTo :node ; deploy:replicas 1 .
:node a arch:DeploymentNode .
:submit a hydra:Operation ; seam:acceptsShape :Expense ; seam:returnsShape :Expense ;
    seam:mediaKind seam:Data ; seam:governedBy :policy ; seam:conformsTo :profile .
:events a comm:Channel ; seam:acceptsShape :Expense .
:policy a odrl:Policy . :profile a seam:Profile .

:approve a proc:Process ; seam:detailedBy :approve_bpmn ; seam:inModel :approve_bpmn .
:daily a proc:TimerStartEvent ; seam:inModel :approve_bpmn .
:check a proc:BusinessRuleTask ; seam:decidedBy :limit ; seam:reads :Expense .
:pay a proc:ServiceTask ; seam:invokes :submit ; seam:writes :Expense ; seam:fires :paying .
:tell a proc:MessageThrowEvent ; seam:publishesTo :events .
:hear a proc:MessageCatchEvent ; seam:subscribesTo :events .
:limit a dec:Decision .
:button a ifml:Event ; seam:triggers :approve, :limit .
:form a ifml:ViewComponent ; seam:visibleWhen :open .
:open a state:State . :paying a state:Transition . :life a state:StateMachine .
:Expense a sh:NodeShape ; seam:lifecycle :life .

# Elements of the right kind that the mutations below point edges at.
:other_bpmn a seam:Model ; seam:notation seam:BPMN ; seam:renderPayload :other.bpmn .
:other a proc:Process ; seam:detailedBy :other_bpmn .
"""
)


def conforming() -> Graph:
    return Graph().parse(data=CONFORMING, format="turtle")


def union(data: Iterable[Triple]) -> Graph:
    """Ontology and data as one plain graph in memory."""
    graph = Graph()
    for triple in (*ontology(), *data):
        graph.add(triple)
    return graph


def plain_pyshacl(data: Iterable[Triple], shapes: Graph | None = None) -> list[Violation]:
    """What pyshacl alone says: the reference."""
    shapes = shapes_graph() if shapes is None else shapes
    copy = Graph()
    copy += shapes  # pyshacl adds to the shapes graph
    _, report, text = pyshacl.validate(union(data), shacl_graph=copy, inference="none")
    assert isinstance(report, Graph), text
    return read_report(report, shapes)


def in_oxigraph(data: Iterable[Triple], *, copies: bool = True) -> Dataset:
    """The triples in named graphs of the fast store, some of them in two graphs."""
    dataset = Dataset(store="Oxigraph", default_union=True)
    for number, triple in enumerate(data):
        dataset.add((*triple, EX[f"graph{number % 3}"]))
        if copies and number % 2:
            dataset.add((*triple, EX.another))
    return dataset


def test_the_model_conforms_and_no_shape_is_idle_in_it() -> None:
    assert violations(conforming()) == []
    assert plain_pyshacl(conforming()) == []
    everything = union(conforming())
    for shape in shapes_graph().subjects(RDF.type, SH.NodeShape):
        if isinstance(shape, BNode):
            continue
        targets = [
            *(everything.subjects(p) for p in shapes_graph().objects(shape, SH.targetSubjectsOf)),
            *(
                everything.subjects(RDF.type, c)
                for c in shapes_graph().objects(shape, SH.targetClass)
            ),
        ]
        assert any(list(nodes) for nodes in targets), shape


# What is added and removed (Turtle), and the findings that follow: shape, focus, value, message.
Expected = tuple[str, str, str | None, str]
CASES: list[tuple[str, str, list[Expected]]] = [
    (":bare a seam:Model .", "", [
        ("ModelShape", "bare", None, "A model names its notation; this one names none."),
    ]),
    (":parts seam:notation seam:IFML .", "", [
        ("ModelShape", "parts", None, "A model has exactly one notation; this one has several."),
    ]),
    (":rules_dmn seam:renderPayload :two.dmn .", "", [
        ("ModelShape", "rules_dmn", None,
         "A model has one payload file; this one names several."),
    ]),
    ("", ":approve_bpmn seam:renderPayload :approve.bpmn .", [
        ("ModelShape", "approve_bpmn", "approve_bpmn",
         "A BPMN or DMN model names its XML file with seam:renderPayload; this one does not."),
    ]),
    ("", ":rules_dmn seam:renderPayload :rules.dmn .", [
        ("ModelShape", "rules_dmn", "rules_dmn",
         "A BPMN or DMN model names its XML file with seam:renderPayload; this one does not."),
    ]),
    (":node seam:notation seam:C4 .", "", [
        ("NotationShape", "node", "node", "Only a seam:Model has a notation."),
    ]),
    (":parts seam:notation :UML .", ":parts seam:notation seam:C4 .", [
        ("NotationShape", "parts", "UML", "notation points at a seam:Notation."),
    ]),
    (":node seam:renderPayload :file .", "", [
        ("RenderPayloadShape", "node", "node", "Only a seam:Model has a payload."),
    ]),
    (':rules_dmn seam:renderPayload "rules.dmn" .', ":rules_dmn seam:renderPayload :rules.dmn .", [
        ("RenderPayloadShape", "rules_dmn", "rules.dmn",
         "renderPayload points at a file by its IRI."),
    ]),
    (":ui seam:detailedBy :node .", "", [
        ("DetailedByShape", "ui", "node", "detailedBy points at a seam:Model."),
    ]),
    (':ui seam:inModel "parts" .', "", [
        ("InModelShape", "ui", "parts", "inModel points at a seam:Model."),
    ]),
    (":node seam:presents :pages .", "", [
        ("PresentsShape", "node", "node", "Only an arch:Container presents a user interface."),
    ]),
    (":ui seam:presents :form .", "", [
        ("PresentsShape", "ui", "form", "presents points at a seam:Model."),
    ]),
    (":node seam:exposes :submit .", "", [
        ("ExposesShape", "node", "node", "Only an arch:Container exposes something."),
    ]),
    (":ui seam:exposes :api .", "", [
        ("ExposesShape", "ui", "api", "exposes points at a hydra:Operation or a comm:Channel."),
    ]),
    (":node seam:consumes :submit .", "", [
        ("ConsumesShape", "node", "node", "Only an arch:Container consumes something."),
    ]),
    (":ui seam:consumes :api .", "", [
        ("ConsumesShape", "ui", "api", "consumes points at a hydra:Operation or a comm:Channel."),
    ]),
    (":approve seam:deployedTo :node .", "", [
        ("DeployedToShape", "approve", "approve",
         "Only an arch:Container, a store included, is deployed to a node."),
    ]),
    (":ui seam:deployedTo :db .", "", [
        ("DeployedToShape", "ui", "db", "deployedTo points at an arch:DeploymentNode."),
    ]),
    (":node seam:storedIn :db .", "", [
        ("StoredInShape", "node", "node", "Only an arch:Container keeps its state in a store."),
    ]),
    (":ui seam:storedIn :node .", "", [
        ("StoredInShape", "ui", "node", "storedIn points at the arch:Container that is the store."),
    ]),
    (":node seam:executes :approve .", "", [
        ("ExecutesShape", "node", "node", "Only an arch:Container executes a process."),
    ]),
    (":ui seam:executes :check .", "", [
        ("ExecutesShape", "ui", "check", "executes points at a proc:Process."),
    ]),
    (":node deploy:replicas 1 .", "", [
        ("ReplicasShape", "node", "node", "Only an arch:Container has replicas."),
    ]),
    (':ui deploy:replicas "3" .', "", [
        ("ReplicasShape", "ui", "3", "replicas is a whole number (xsd:integer)."),
        ("ReplicasShape", "ui", "3", "replicas is at least 1."),
    ]),
    (":ui deploy:replicas 1.5 .", "", [
        ("ReplicasShape", "ui", "1.5", "replicas is a whole number (xsd:integer)."),
    ]),
    (":ui deploy:replicas 0 .", "", [
        ("ReplicasShape", "ui", "0", "replicas is at least 1."),
    ]),
    (":ui deploy:replicas 1, 2 .", "", [
        ("ReplicasShape", "ui", None,
         "A container states its replicas once; this one does so several times."),
    ]),
    (":node seam:schedules :approve ; seam:executes :approve .", ":api seam:schedules :approve .", [
        ("ExecutesShape", "node", "node", "Only an arch:Container executes a process."),
        ("SchedulesShape", "node", "node", "Only an arch:Container schedules a process."),
    ]),
    (":odd seam:detailedBy :approve_bpmn . :ui seam:executes :odd ; seam:schedules :odd .", "", [
        ("ExecutesShape", "ui", "odd", "executes points at a proc:Process."),
        ("SchedulesShape", "ui", "odd", "schedules points at a proc:Process."),
    ]),
    (":ui seam:schedules :approve .", ":api seam:schedules :approve .", [
        ("SchedulesShape", "ui", "approve",
         "A container schedules only what it executes; it does not execute this process."),
    ]),
    (":api seam:executes :other ; seam:schedules :other .", "", [
        ("SchedulesShape", "api", "other",
         "Only a process whose model holds a timer start event is scheduled; "
         "this one holds none."),
    ]),
    ("", ":api seam:schedules :approve .", [
        ("TimerStartedProcessShape", "approve", "approve",
         "A process with a timer start event is scheduled by exactly one container; "
         "none schedules this one."),
    ]),
    (":ui seam:executes :approve ; seam:schedules :approve .", "", [
        ("TimerStartedProcessShape", "approve", name,
         "A process with a timer start event is scheduled by exactly one container; "
         f"several schedule this one, among them https://example.org/{name}.")
        for name in ("api", "ui")
    ]),
    (":node seam:triggers :approve .", "", [
        ("TriggersShape", "node", "node", "Only an ifml:Event triggers something."),
    ]),
    (":button seam:triggers :check .", "", [
        ("TriggersShape", "button", "check",
         "triggers points at a proc:Process or a dec:Decision."),
    ]),
    (":node seam:visibleWhen :open .", "", [
        ("VisibleWhenShape", "node", "node",
         "Only an ifml:ViewComponent is visible in some states."),
    ]),
    (":form seam:visibleWhen :paying .", "", [
        ("VisibleWhenShape", "form", "paying", "visibleWhen points at a state:State."),
    ]),
    (":pay seam:decidedBy :limit .", "", [
        ("DecidedByShape", "pay", "pay",
         "Only a proc:BusinessRuleTask is decided by a decision."),
    ]),
    (":check seam:decidedBy :rules_dmn .", "", [
        ("DecidedByShape", "check", "rules_dmn", "decidedBy points at a dec:Decision."),
    ]),
    (":check seam:invokes :submit .", "", [
        ("InvokesShape", "check", "check", "Only a proc:ServiceTask invokes an operation."),
    ]),
    (":pay seam:invokes :events .", "", [
        ("InvokesShape", "pay", "events", "invokes points at a hydra:Operation."),
    ]),
    (":hear seam:publishesTo :events .", "", [
        ("PublishesToShape", "hear", "hear",
         "Only a proc:MessageThrowEvent publishes to a channel."),
    ]),
    (":tell seam:publishesTo :submit .", "", [
        ("PublishesToShape", "tell", "submit", "publishesTo points at a comm:Channel."),
    ]),
    (":tell seam:subscribesTo :events .", "", [
        ("SubscribesToShape", "tell", "tell",
         "Only a proc:MessageCatchEvent subscribes to a channel."),
    ]),
    (":hear seam:subscribesTo :submit .", "", [
        ("SubscribesToShape", "hear", "submit", "subscribesTo points at a comm:Channel."),
    ]),
    (":hear seam:fires :paying .", "", [
        ("FiresShape", "hear", "hear", "Only a proc:Task fires a transition."),
    ]),
    (":pay seam:fires :open .", "", [
        ("FiresShape", "pay", "open", "fires points at a state:Transition."),
    ]),
    (":check seam:reads :limit .", "", [
        ("ReadsShape", "check", "limit", "reads points at a sh:NodeShape."),
    ]),
    (":check seam:writes :limit .", "", [
        ("WritesShape", "check", "limit", "writes points at a sh:NodeShape."),
    ]),
    (":check seam:lifecycle :life .", "", [
        ("LifecycleShape", "check", "check", "Only a sh:NodeShape has a lifecycle."),
    ]),
    (":Expense seam:lifecycle :open .", "", [
        ("LifecycleShape", "Expense", "open", "lifecycle points at a state:StateMachine."),
    ]),
    (":check seam:acceptsShape :Expense .", "", [
        ("AcceptsShapeShape", "check", "check",
         "Only a hydra:Operation or a comm:Channel accepts a shape."),
    ]),
    (":events seam:acceptsShape :life .", "", [
        ("AcceptsShapeShape", "events", "life", "acceptsShape points at a sh:NodeShape."),
    ]),
    (":events seam:returnsShape :Expense .", "", [
        ("ReturnsShapeShape", "events", "events", "Only a hydra:Operation returns a shape."),
    ]),
    (":submit seam:returnsShape :life .", "", [
        ("ReturnsShapeShape", "submit", "life", "returnsShape points at a sh:NodeShape."),
    ]),
    (":submit seam:mediaKind seam:BPMN .", "", [
        ("MediaKindShape", "submit", "BPMN", "mediaKind points at a seam:MediaKind."),
    ]),
    (":submit seam:governedBy :profile .", "", [
        ("GovernedByShape", "submit", "profile", "governedBy points at an odrl:Policy."),
    ]),
    (":submit seam:conformsTo :policy .", "", [
        ("ConformsToShape", "submit", "policy", "conformsTo points at a seam:Profile."),
    ]),
]  # fmt: skip


def changed(add: str, remove: str) -> Graph:
    graph = conforming()
    unwanted = Graph().parse(data=PREFIXES + remove, format="turtle")
    assert all(triple in graph for triple in unwanted)
    graph -= unwanted
    return graph.parse(data=PREFIXES + add, format="turtle")


def local(text: str | None) -> str | None:
    return None if text is None else text.removeprefix(EX).rpartition("#")[2]


@pytest.mark.parametrize(
    ("add", "remove", "expected"), CASES, ids=[f"{c[2][-1][0]}-{n}" for n, c in enumerate(CASES)]
)
def test_each_shape_says_what_is_wrong(add: str, remove: str, expected: list[Expected]) -> None:
    data = changed(add, remove)
    found = violations(in_oxigraph(data))
    assert [(local(v.shape), local(v.focus), local(v.value), v.message) for v in found] == expected
    assert {v.severity for v in found} == {"error"}
    assert found == violations(data) == plain_pyshacl(data)


def test_the_cases_bring_out_every_message_of_every_shape() -> None:
    said = {(shape, message) for case in CASES for shape, _, _, message in case[2]}
    shapes = shapes_graph()
    written = set()
    for holder, message in shapes.subject_objects(SH.message):
        while isinstance(holder, BNode):
            holder = next(iter(shapes.subjects(object=holder)))
        written.add((str(holder).removeprefix(SEAMSH), str(message)))
    fixed = {pair for pair in written if "{" not in pair[1]}
    assert fixed <= said
    assert {shape for shape, _ in written} == {shape for shape, _ in said}
    assert all(message.endswith(".") for _, message in written)
    assert {shape for shape, _ in said} == {
        str(s).removeprefix(SEAMSH) for s in shapes.subjects(RDF.type, SH.NodeShape)
    }


def test_the_path_is_the_predicate_at_fault() -> None:
    (found,) = violations(changed(":ui seam:deployedTo :db .", ""))
    assert found.path == str(SEAM.deployedTo)
    moved = changed(":ui seam:schedules :approve .", ":api seam:schedules :approve .")
    (found,) = violations(moved)
    assert found.path == str(SEAM.schedules)
    (found,) = violations(changed("", ":api seam:schedules :approve ."))
    assert found.path is None


# Fast and plain say the same, on models broken at random.

PREDICATES = [
    *sorted(p for p in ontology().subjects(RDF.type, OWL.ObjectProperty) if p.startswith(SEAM)),
    RDF.type, RDFS.subClassOf, DEPLOY.replicas,
]  # fmt: skip
CLASSES = [
    SEAM.Model, SEAM.Notation, ARCH.Container, ARCH.DeploymentNode, ARCH.Element, PROC.Process,
    PROC.Task, PROC.UserTask, PROC.ServiceTask, PROC.BusinessRuleTask, PROC.TimerStartEvent,
    PROC.TimerCatchEvent, PROC.MessageThrowEvent, PROC.MessageCatchEvent, DEC.Decision, IFML.Event,
    IFML.ViewComponent, STATE.State, STATE.Transition, STATE.StateMachine, COMM.Channel,
    HYDRA.Operation, ODRL.Set, SH.NodeShape, EX.ClassOfTheirOwn,
]  # fmt: skip
NODES: list[Node] = sorted({s for s in conforming().subjects() if isinstance(s, URIRef)})
NODES += [EX.unknown, BNode("b1"), BNode("b2"), SEAM.BPMN, SEAM.Data]
LITERALS = [
    Literal("text"), Literal("text", lang="en"), Literal(0), Literal(1), Literal(-1), Literal(3),
    Literal("2.5", datatype=XSD.decimal), Literal("3"), Literal(True),
    Literal("2026-11-09T08:00:00Z", datatype=XSD.dateTime),
]  # fmt: skip

node = st.sampled_from(NODES)
term = st.one_of(node, node, st.sampled_from(LITERALS))
edge = st.tuples(node, st.sampled_from(PREDICATES), term)
typing = st.tuples(node, st.just(RDF.type), st.sampled_from(CLASSES))
subclass = st.tuples(
    st.sampled_from(CLASSES), st.just(RDFS.subClassOf), st.sampled_from(CLASSES)
)  # may go round in circles
to_break = st.lists(st.sampled_from(sorted(conforming(), key=str)), max_size=6, unique=True)
# An example takes long: a part of what the profile asks for will do.
fewer = settings(
    max_examples=settings.default.max_examples // 3,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
much_fewer = settings(fewer, max_examples=settings.default.max_examples // 10)


@st.composite
def broken_models(draw: st.DrawFn) -> list[Triple]:
    """The conforming model with triples dropped, given another end or subject, and added."""
    triples: list[Triple] = sorted(conforming(), key=str)
    for old in draw(to_break):
        triples.remove(old)
        s, p, o = old
        match draw(st.sampled_from(["drop", "retarget", "resubject", "retype"])):
            case "retarget":
                triples.append((s, p, draw(term)))
            case "resubject":
                triples.append((draw(node), p, o))
            case "retype":
                triples.append((s, RDF.type, draw(st.sampled_from(CLASSES))))
    return triples + draw(st.lists(st.one_of(edge, typing, subclass), max_size=6))


@fewer
@given(broken_models())
def test_the_fast_check_says_what_pyshacl_alone_says(triples: list[Triple]) -> None:
    expected = plain_pyshacl(triples)
    assert violations(in_oxigraph(triples)) == expected
    memory = Graph()
    for triple in triples:
        memory.add(triple)
    assert violations(memory) == expected


def test_a_memory_dataset_is_read_as_the_union_of_its_graphs() -> None:
    dataset = Dataset()  # default_union is off, and it holds a triple in the default graph
    for number, triple in enumerate(conforming()):
        graph = dataset.graph(EX[f"graph{number % 3}"]) if number % 4 else dataset.default_graph
        graph.add(triple)
    assert violations(dataset) == []
    dataset.graph(EX.graph1).add((EX.ui, SEAM.deployedTo, EX.db))
    assert [v.message for v in violations(dataset)] == [
        "deployedTo points at an arch:DeploymentNode."
    ]


def test_an_ill_typed_number_is_found_and_quoted_as_written() -> None:
    data = changed(':ui deploy:replicas "many"^^xsd:integer .', "")
    found = violations(in_oxigraph(data))
    assert found == plain_pyshacl(data)
    assert {v.value for v in found} == {"many"}
    assert "replicas is a whole number (xsd:integer)." in {v.message for v in found}


# A person's own shapes: all that the translation does not know goes to pyshacl.

OWN_SHAPES = {
    "literals as focus nodes": """
        :S a sh:NodeShape ; sh:targetObjectsOf seam:reads, deploy:replicas ;
            sh:class sh:NodeShape .
    """,
    "blank nodes as focus nodes": """
        :S a sh:NodeShape ; sh:targetClass arch:Element ; sh:nodeKind sh:IRI .
    """,
    "constraints that are not translated": """
        :S a sh:NodeShape ; sh:targetSubjectsOf seam:executes ;
            sh:property [ sh:path deploy:replicas ; sh:hasValue 2 ] ;
            sh:property [ sh:path seam:deployedTo ; sh:minCount 2 ] ;
            sh:property [ sh:path rdfs:label ; sh:pattern "^[a-z]" ; sh:in ( "a" "b" ) ] .
    """,
    "strings": """
        :S a sh:NodeShape ; sh:targetSubjectsOf arch:technology ;
            sh:property [ sh:path arch:technology ; sh:in ( "PostgreSQL" ) ;
                sh:datatype xsd:string ] .
        :T a sh:NodeShape ; sh:targetObjectsOf seam:reads ; sh:in ( "text" :Expense ) .
    """,
    "a constraint that a node without values violates": """
        :S a sh:NodeShape ; sh:targetClass arch:Container ; sh:property [
            sh:path seam:deployedTo ; sh:hasValue :node ; sh:class arch:DeploymentNode ] .
    """,
    "paths of several steps": """
        :S a sh:NodeShape ; sh:targetClass proc:Process ;
            sh:property [ sh:path ( seam:detailedBy seam:notation ) ; sh:minCount 1 ] ;
            sh:property [ sh:path [ sh:inversePath seam:executes ] ;
                sh:minCount 1 ; sh:maxCount 1 ] .
    """,
    "property shapes with targets and names of their own": """
        :P a sh:PropertyShape ; sh:targetClass arch:Container ;
            sh:path seam:deployedTo ; sh:minCount 1 .
        :S a sh:NodeShape ; sh:targetSubjectsOf seam:storedIn ; sh:property :P .
    """,
    "a shape that is a class": """
        arch:DeploymentNode a sh:NodeShape, rdfs:Class ;
            sh:property [ sh:path [ sh:inversePath seam:deployedTo ] ; sh:maxCount 1 ] .
    """,
    "single nodes as targets": """
        :S a sh:NodeShape ; sh:targetNode :ui, :nowhere, 5, "5" ; sh:class arch:Container ;
            sh:targetClass arch:DeploymentNode .
    """,
    "not, and, xone, node": """
        :S a sh:NodeShape ; sh:targetClass arch:Container ; sh:node :Placed ;
            sh:not [ sh:property [ sh:path seam:storedIn ; sh:minCount 1 ] ] .
        :Placed a sh:NodeShape ; sh:xone ( [ sh:class arch:Person ]
            [ sh:and ( [ sh:property [ sh:path seam:deployedTo ; sh:minCount 1 ] ] ) ] ) .
    """,
    "or of whole shapes": """
        :S a sh:NodeShape ; sh:targetClass arch:Element ; sh:or (
            [ sh:property [ sh:path seam:deployedTo ; sh:minCount 1 ;
                sh:class arch:DeploymentNode ] ]
            [ sh:property [ sh:path seam:consumes ; sh:minCount 1 ; sh:maxCount 1 ] ]
            [ sh:class arch:DeploymentNode ; sh:nodeKind sh:IRI ] ) .
    """,
    "properties of properties": """
        :S a sh:NodeShape ; sh:targetClass arch:Container ;
            sh:property [ sh:path seam:executes ;
                sh:property [ sh:path seam:detailedBy ; sh:minCount 1 ;
                    sh:property [ sh:path seam:notation ; sh:maxCount 1 ;
                        sh:class seam:Notation ] ] ] .
    """,
    "a shape within itself": """
        :S a sh:NodeShape ; sh:targetClass arch:Container ; sh:or (
            [ sh:property [ sh:path seam:storedIn ; sh:property :P ; sh:minCount 1 ] ]
            [ sh:property [ sh:path seam:deployedTo ; sh:minCount 1 ; sh:maxCount 1 ] ] ) .
        :P a sh:PropertyShape ; sh:path seam:storedIn ; sh:property :P .
    """,
    "two classes, and severities": """
        :S a sh:NodeShape ; sh:targetSubjectsOf seam:executes ; sh:severity sh:Warning ;
            sh:class arch:Container, arch:System ;
            sh:property [ sh:path seam:deployedTo ; sh:minCount 3 ;
                sh:severity sh:Info ; sh:message "a", "b" ] .
    """,
    "closed": """
        :S a sh:NodeShape ; sh:targetClass arch:Container ;
            sh:closed true ; sh:ignoredProperties ( ) .
    """,
    "a SELECT that needs its $this": """
        :S a sh:NodeShape ; sh:targetClass proc:Process ; sh:sparql [ sh:message "no {$this}" ;
            sh:select '''SELECT $this WHERE {
                FILTER NOT EXISTS { ?c <https://w3id.org/seams/seam#schedules> $this }
            }''' ] .
    """,
    "a SELECT inside a property of a property": """
        :S a sh:NodeShape ; sh:targetClass arch:Container ; sh:property [ sh:path seam:executes ;
            sh:property [ sh:path seam:detailedBy ; sh:sparql [ seamsh:setWise true ;
                sh:select '''SELECT $this ?value WHERE {
                    $this <https://w3id.org/seams/seam#detailedBy> ?value
                }''' ] ] ] .
    """,
    "numbers": """
        :S a sh:NodeShape ; sh:targetSubjectsOf deploy:replicas ;
            sh:property [ sh:path deploy:replicas ;
                sh:datatype xsd:decimal ; sh:minInclusive 1.5 ; sh:maxInclusive 2 ] .
    """,
    "a least value": """
        :S a sh:NodeShape ; sh:targetSubjectsOf deploy:replicas ;
            sh:property [ sh:path deploy:replicas ; sh:minInclusive 1 ] .
    """,
    "a switched-off shape": """
        :S a sh:NodeShape ; sh:targetClass arch:Container ;
            sh:class arch:Person ; sh:deactivated true .
    """,
    "no constraint at all": ":S a sh:NodeShape ; sh:targetClass arch:Container .",
}
SILENT = {"a switched-off shape", "no constraint at all"}


@pytest.mark.parametrize("name", OWN_SHAPES)
@much_fewer
@given(triples=broken_models())
def test_own_shapes_are_checked_as_pyshacl_alone_does(name: str, triples: list[Triple]) -> None:
    shapes = Graph().parse(data=PREFIXES + OWN_SHAPES[name], format="turtle")
    assert violations(in_oxigraph(triples), shapes) == plain_pyshacl(triples, shapes)


@pytest.mark.parametrize("name", OWN_SHAPES)
def test_own_shapes_find_something(name: str) -> None:
    shapes = Graph().parse(data=PREFIXES + OWN_SHAPES[name], format="turtle")
    data = changed(
        """
        [] a arch:Container ; rdfs:label "Nameless" ; seam:executes :nothing, :bare ;
            deploy:replicas 3, "some" ; seam:reads "text" ; arch:technology "SQLite", "PostgreSQL" .
        :bare a proc:Process ; seam:detailedBy :lost .
        :lost a arch:Person ; seam:executes :odd ; seam:notation seam:C4, :odd .
        :ui seam:storedIn :db .
        """,
        "",
    )
    found = violations(in_oxigraph(data), shapes)
    assert bool(found) == (name not in SILENT)
    assert found == plain_pyshacl(data, shapes)


def test_severities_and_messages_are_those_of_the_shape() -> None:
    shapes = Graph().parse(
        data=PREFIXES + OWN_SHAPES["two classes, and severities"], format="turtle"
    )
    found = {(v.severity, v.message) for v in violations(conforming(), shapes)}
    assert ("info", "a; b") in found
    assert {severity for severity, _ in found} == {"info", "warning"}


# The point of it: pyshacl sees few nodes.


def many(processes: int) -> Graph:
    graph = conforming()
    for number in range(processes):
        p, m = EX[f"p{number}"], EX[f"p{number}_bpmn"]
        graph += [
            (p, RDF.type, PROC.Process), (p, SEAM.detailedBy, m), (m, RDF.type, SEAM.Model),
            (m, SEAM.notation, SEAM.BPMN), (m, SEAM.renderPayload, EX[f"p{number}.bpmn"]),
            (EX[f"start{number}"], RDF.type, PROC.TimerStartEvent),
            (EX[f"start{number}"], SEAM.inModel, m),
            (EX[f"c{number}"], RDF.type, ARCH.Container), (EX[f"c{number}"], SEAM.executes, p),
            (EX[f"c{number}"], SEAM.schedules, p), (EX[f"c{number}"], DEPLOY.replicas, Literal(2)),
        ]  # fmt: skip
    return graph


@pytest.fixture
def targets(monkeypatch: pytest.MonkeyPatch) -> list[set[Node]]:
    """The focus nodes of each run of pyshacl."""
    runs: list[set[Node]] = []
    original = pyshacl.validate

    def spy(data: Graph, *, shacl_graph: Graph, **options: object) -> object:
        assert not list(shacl_graph.subjects(SH.targetClass))
        assert not list(shacl_graph.subjects(SH.targetSubjectsOf))
        runs.append(set(shacl_graph.objects(None, SH.targetNode)))
        return original(data, shacl_graph=shacl_graph, **options)

    monkeypatch.setattr(pyshacl, "validate", spy)
    return runs


def test_pyshacl_does_not_run_on_a_model_that_conforms(targets: list[set[Node]]) -> None:
    assert violations(in_oxigraph(many(50))) == []
    assert targets == []


def test_pyshacl_sees_the_violators_and_no_other_node(targets: list[set[Node]]) -> None:
    data = many(50)
    data.remove((EX.c7, SEAM.schedules, EX.p7))
    data.remove((EX.c8, SEAM.executes, EX.p8))
    data.set((EX.c9, DEPLOY.replicas, Literal(0)))
    data.remove((EX.p11_bpmn, SEAM.renderPayload, None))
    data.add((EX.c12, SEAM.schedules, EX.p7))  # does not execute it
    data.add((EX.c13, SEAM.schedules, EX.p14))
    data.remove((EX.start15, RDF.type, None))
    expected = violations(in_oxigraph(data))
    assert {local(v.focus) for v in expected} == {
        "c8", "c9", "p11_bpmn", "c12", "c13", "p14", "c15",
    }  # fmt: skip
    (nodes,) = targets
    assert {str(n) for n in nodes} == {v.focus for v in expected}


def test_the_model_and_the_shapes_are_left_as_they_were() -> None:
    dataset = in_oxigraph(changed(":ui seam:deployedTo :db .", ""))
    before = set(dataset.quads((None, None, None, None)))
    shapes, words = set(shapes_graph()), set(ontology())
    assert violations(dataset)
    assert set(dataset.quads((None, None, None, None))) == before
    assert set(shapes_graph()) == shapes
    assert set(ontology()) == words


@pytest.mark.parametrize(
    "constraint",
    [
        "sh:minLength 1, 2",
        'sh:sparql [ sh:select "SELECT $this WHERE { VALUES ?x { 1 } }" ]',
        'sh:sparql [ sh:select "SELEC" ]',
        'sh:sparql [ seamsh:setWise true ; sh:select "SELEC" ]',
    ],
)
def test_shapes_that_are_not_well_formed_are_one_clear_error(constraint: str) -> None:
    text = f"{PREFIXES} :S a sh:NodeShape ; sh:targetClass arch:Container ; {constraint} ."
    with pytest.raises(UnusableInput, match="well-formed SHACL shapes"):
        violations(conforming(), Graph().parse(data=text, format="turtle"))


def test_an_iri_that_is_none_is_one_clear_error() -> None:
    data = conforming()
    data.add((URIRef("not an IRI"), RDF.type, ARCH.Container))
    with pytest.raises(UnusableInput, match="valid IRIs"):
        violations(data)
