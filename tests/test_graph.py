"""The graph: facts, payload paths, and resolvers that answer or refuse."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from fixtures.small_models import (
    BASE,
    PREFIXES,
    STARTED,
    STARTED_BPMN,
    change,
    definitions,
    model,
    process,
    write,
)

from seams_lab.errors import ResolutionError, UnusableInput
from seams_lab.graph import ModelGraph, is_bpmn_name, load_graph, local_name
from seams_lab.vocabulary import ARCH, PROC, SEAM


def seams(*statements: str) -> str:
    """Statements in the seams graph."""
    return "GRAPH <urn:seams:graph:seams> {\n" + "\n".join(statements) + "\n}\n"


# ---------------------------------------------------------------- scheduling_container (R59, R60)


@pytest.mark.parametrize(
    "containers",
    [[], ["c"], ["c", "b"], ["z", "a", "m2", "c"]],
    ids=lambda c: f"{len(c)}",
)
def test_one_container_schedules_a_process_or_the_resolver_refuses(
    tmp_path: Path, containers: list[str]
) -> None:
    trig = change(STARTED, (" seam:schedules ex:p ;", ""))
    graph = model(tmp_path, trig + seams(*(f"ex:{c} seam:schedules ex:p ." for c in containers)))
    process_iri = f"{BASE}p"
    if len(containers) == 1:
        assert graph.scheduling_container(process_iri) == f"{BASE}c"
        return
    with pytest.raises(ResolutionError) as caught:
        graph.scheduling_container(process_iri)
    error = caught.value
    assert (error.subject, error.predicate) == (process_iri, "seam:schedules")
    assert error.code == ("SEVERAL_SCHEDULERS" if containers else "NO_SCHEDULER")
    if containers:
        assert error.fact == ", ".join(sorted(f"{BASE}{c}" for c in containers))
    assert str(error).startswith(f"{process_iri}: seam:schedules: ")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_schedule_said_in_two_graphs_is_one_schedule(tmp_path: Path) -> None:
    graph = model(tmp_path, STARTED + "GRAPH <urn:g> { ex:c seam:schedules ex:p . }")
    assert graph.scheduling_container(f"{BASE}p") == f"{BASE}c"


def test_who_executes_is_no_answer_to_who_schedules(tmp_path: Path) -> None:
    graph = model(tmp_path, change(STARTED, (" seam:schedules ex:p ;", "")))
    assert graph.executing_containers(f"{BASE}p") == (f"{BASE}c",)
    with pytest.raises(ResolutionError, match="no container schedules it"):
        graph.scheduling_container(f"{BASE}p")


def test_a_process_that_is_not_there_has_no_scheduler(tmp_path: Path) -> None:
    with pytest.raises(ResolutionError) as caught:
        model(tmp_path).scheduling_container("urn:nothing")
    assert caught.value.subject == "urn:nothing"


# ---------------------------------------------------------------- store_container (ruling 13)


@pytest.mark.parametrize(
    ("technologies", "answer"),
    [
        ({"d": "PostgreSQL 16"}, "d"),
        ({"d": "Amazon RDS for postgresql"}, "d"),
        ({"d": "SQLITE"}, "d"),
        ({"d": "SQLite", "e": "SemPKM"}, "d"),
        ({"d": "SemPKM", "e": "SQLite"}, "e"),
        ({}, "NO_STORE"),
        ({"d": "SemPKM"}, "NO_STORE"),
        ({"d": "MySQL"}, "NO_STORE"),
        ({"d": ""}, "NO_STORE"),
        ({"d": "SQLite", "e": "PostgreSQL"}, "SEVERAL_STORES"),
        ({"d": "SQLite", "e": "SQLite"}, "SEVERAL_STORES"),
    ],
)
def test_one_relational_store_or_the_resolver_refuses(
    tmp_path: Path, technologies: dict[str, str], answer: str
) -> None:
    said = [
        f'ex:{store} arch:technology "{text}" . ex:c seam:storedIn ex:{store} .'
        for store, text in technologies.items()
    ]
    trig = change(STARTED, (" seam:storedIn ex:db ;", "")) + seams(*said)
    graph = model(tmp_path, trig)
    container = f"{BASE}c"
    if len(answer) == 1:
        assert graph.store_container(container) == f"{BASE}{answer}"
        return
    with pytest.raises(ResolutionError) as caught:
        graph.store_container(container, "seam:executes")
    error = caught.value
    assert (error.subject, error.predicate, error.code) == (container, "seam:executes", answer)
    for store in technologies:
        assert f"{BASE}{store}" in error.fact
    assert error.fix


def test_a_store_is_asked_for_by_its_own_predicate_unless_another_is_given(tmp_path: Path) -> None:
    graph = model(tmp_path)
    with pytest.raises(ResolutionError) as caught:
        graph.store_container("urn:x")
    assert caught.value.predicate == "seam:storedIn"


@pytest.mark.parametrize(
    ("texts", "relational"),
    [
        (['"PostgreSQL"'], True), (['"sqlite3"'], True), (['"A"', '"postgreSQL 9"'], True),
        ([], False), (['"SemPKM"'], False), (['"Post"', '"greSQL"'], False),
    ],
)  # fmt: skip
def test_a_technology_names_a_relational_store(
    tmp_path: Path, texts: list[str], relational: bool
) -> None:
    graph = model(tmp_path, STARTED + seams(*(f"ex:x arch:technology {t} ." for t in texts)))
    assert graph.is_relational(f"{BASE}x") is relational


# ---------------------------------------------------------------- process_of (ruling 11)


@pytest.mark.parametrize(
    ("detailing", "held", "answers"),
    [
        (["p"], ["p"], {"p": "p"}),
        (["other"], ["p"], {"p": "other"}),
        (["p", "q"], ["p", "q"], {"p": "p", "q": "q"}),
        (["p", "other"], ["p", "q"], {"p": "p", "q": "other"}),
        (["p"], ["p", "q"], {"p": "p", "q": None}),
        (["a", "b"], ["p"], {"p": None}),
        (["a"], ["p", "q"], {"p": None, "q": None}),
        ([], ["p"], {"p": None}),
        (["P"], ["p", "q"], {"p": None}),
    ],
)
def test_which_process_of_the_graph_a_bpmn_process_is(
    tmp_path: Path, detailing: list[str], held: list[str], answers: dict[str, str | None]
) -> None:
    details = "".join(f"ex:{n} a proc:Process ; seam:detailedBy ex:m .\n" for n in detailing)
    trig = change(STARTED, ("  ex:p seam:detailedBy ex:m .\n", details),
                  ("  ex:p a proc:Process ; seam:inModel ex:m .\n", ""))  # fmt: skip
    graph = model(tmp_path, trig, definitions(*(process("", i) for i in held)))
    for bpmn_process, name in answers.items():
        wanted = f"{BASE}{name}" if name else None
        assert graph.process_of(f"{BASE}m", bpmn_process) == wanted


def test_what_is_no_process_does_not_count(tmp_path: Path) -> None:
    trig = STARTED + seams(
        "ex:t a proc:Task ; seam:detailedBy ex:m .", "ex:x seam:detailedBy ex:m ."
    )
    assert model(tmp_path, trig).process_of(f"{BASE}m", "p") == f"{BASE}p"


def test_in_a_bare_file_a_process_is_itself(tmp_path: Path) -> None:
    (tmp_path / "a.bpmn").write_text(definitions(process("", "p"), process("", "q")), "utf-8")
    graph = load_graph(tmp_path / "a.bpmn")
    assert [graph.process_of("a.bpmn", p) for p in ("p", "q")] == ["p", "q"]


# ---------------------------------------------------------------- facts


def test_facts_are_sorted_and_come_from_all_graphs(tmp_path: Path) -> None:
    trig = STARTED + "GRAPH <urn:g> { ex:c seam:executes ex:a . ex:b seam:executes ex:p . }"
    graph = model(tmp_path, trig)
    assert graph.pairs(str(SEAM.executes)) == {
        f"{BASE}b": (f"{BASE}p",),
        f"{BASE}c": (f"{BASE}a", f"{BASE}p"),
    }
    assert graph.inverse(str(SEAM.executes)) == {
        f"{BASE}a": (f"{BASE}c",),
        f"{BASE}p": (f"{BASE}b", f"{BASE}c"),
    }
    assert list(graph.inverse(str(SEAM.executes))) == sorted(graph.inverse(str(SEAM.executes)))
    assert graph.pairs("urn:none") == {}
    assert graph.processes == (f"{BASE}p",)
    assert graph.containers == (f"{BASE}c", f"{BASE}db")
    assert graph.nodes == (f"{BASE}n",)
    assert graph.typed(str(PROC.TimerStartEvent)) == (f"{BASE}m#s",)
    assert graph.technology(f"{BASE}db") == ("PostgreSQL",)
    assert graph.pairs(str(ARCH.technology)) == {f"{BASE}db": ("PostgreSQL",)}


def test_mentioned_iris_are_subjects_and_objects_but_no_predicates(tmp_path: Path) -> None:
    subjects, objects = model(tmp_path).mentioned
    assert f"{BASE}m#s" in subjects - objects
    assert f"{BASE}n" in subjects & objects
    assert str(SEAM.executes) not in subjects | objects
    assert "PostgreSQL" not in subjects | objects


def test_a_label_or_the_short_name(tmp_path: Path) -> None:
    trig = STARTED + 'ex:c <http://www.w3.org/2000/01/rdf-schema#label> "The api" .'
    graph = model(tmp_path, trig)
    assert (graph.label(f"{BASE}c"), graph.label(f"{BASE}db")) == ("The api", "db")


@pytest.mark.parametrize(
    ("iri", "name"),
    [("https://e.org/a/b#c", "c"), ("https://e.org/a/b", "b"), ("https://e.org/a/", "a"),
     ("https://e.org/a#", "a"), ("urn:x:y", "y"), ("plain", "plain"), ("a.bpmn", "a.bpmn"),
     ("#", "#"), ("", "")],
)  # fmt: skip
def test_local_name(iri: str, name: str) -> None:
    assert local_name(iri) == name


@pytest.mark.parametrize(
    ("name", "found"),
    [("c", "c"), (f"{BASE}c", "c"), ("The api", "c"), ("db", "db")],
)
def test_find_takes_an_iri_a_short_name_or_a_label(tmp_path: Path, name: str, found: str) -> None:
    trig = STARTED + 'ex:c <http://www.w3.org/2000/01/rdf-schema#label> "The api" .'
    graph = model(tmp_path, trig)
    assert graph.find(name, graph.containers, "container") == f"{BASE}{found}"


def test_find_says_what_there_is_and_what_may_be_meant(tmp_path: Path) -> None:
    trig = STARTED + "<urn:other:db> a arch:Container . ex:worker a arch:Container ."
    graph = model(tmp_path, trig)
    with pytest.raises(UnusableInput, match="did you mean 'worker'"):
        graph.find("wroker", graph.containers, "container")
    with pytest.raises(UnusableInput, match=f"names several: {BASE}db, urn:other:db"):
        graph.find("db", graph.containers, "container")
    with pytest.raises(UnusableInput, match="a model with a node"):
        graph.find("x", (), "node")


# ---------------------------------------------------------------- where something is said


def test_locate_prefers_the_line_that_an_element_begins(tmp_path: Path) -> None:
    text = PREFIXES + (
        "# m:s in a comment\n"
        "GRAPH <urn:g> { ex:c seam:reads m:s .\n"
        "  m:s a proc:TimerStartEvent ;\n"
        f"    seam:inModel <{BASE}m> .\n"
        "  <#here> seam:inModel <m.bpmn> , <../up> .\n"
        f"  <{BASE}m#end> seam:inModel ex:m . }}\n"
    )
    (tmp_path / "a.trig").write_text(text, "utf-8")
    graph = load_graph(tmp_path)
    first = PREFIXES.count("\n") + 1
    folder = tmp_path.as_uri()
    places = {
        f"{BASE}m#s": first + 2,
        f"{BASE}c": first + 1,
        f"{BASE}m": first + 3,
        f"{BASE}m#end": first + 5,
        f"{folder}/a.trig#here": first + 4,
        f"{folder}/m.bpmn": first + 4,
        f"{folder.rpartition('/')[0]}/up": first + 4,
    }
    for iri, line in places.items():
        assert graph.locate(iri) == (str(tmp_path / "a.trig"), line), iri
    # The same local name elsewhere is something else.
    assert graph.locate("https://example.org/else#s") == (str(tmp_path / "a.trig"), 0)


@pytest.mark.parametrize("declared", ["@base <https://e.org/x/> .", "BASE <https://e.org/x/>"])
def test_locate_knows_the_base_of_a_file(tmp_path: Path, declared: str) -> None:
    text = f"{declared}\n@prefix p: <y/> .\n<a> <b> <c> .\np:z <b> <#d> .\n"
    (tmp_path / "a.trig").write_text(text, "utf-8")
    graph = load_graph(tmp_path)
    (subjects, _) = graph.mentioned
    assert subjects == {"https://e.org/x/a", "https://e.org/x/y/z"}
    assert [graph.locate(iri)[1] for iri in sorted(subjects)] == [3, 4]
    assert graph.locate("https://e.org/x/#d")[1] == 4


def test_locate_tells_files_apart_by_their_own_prefixes(tmp_path: Path) -> None:
    for name in "ab":
        text = f"PREFIX x: <https://example.org/{name}#>\nx:same a x:thing .\n"
        (tmp_path / f"{name}.trig").write_text(text, "utf-8")
    graph = load_graph(tmp_path)
    for name in "ab":
        assert graph.locate(f"https://example.org/{name}#same") == (
            str(tmp_path / f"{name}.trig"),
            2,
        )
    assert graph.locate("urn:nowhere") == (str(tmp_path), 0)


# ---------------------------------------------------------------- loading


def test_what_can_be_loaded(tmp_path: Path) -> None:
    write(tmp_path)
    assert load_graph(tmp_path).bpmn_models == (f"{BASE}m",)
    assert load_graph(str(tmp_path / "model.trig")).bpmn_models == (f"{BASE}m",)
    assert load_graph(tmp_path / "m.bpmn").bpmn_models == ("m.bpmn",)
    assert isinstance(load_graph(tmp_path), ModelGraph)
    (tmp_path / "model.trig").unlink()
    (tmp_path / "b.bpmn").write_text("broken", "utf-8")
    assert load_graph(tmp_path).bpmn_models == ("b.bpmn", "m.bpmn")


@pytest.mark.parametrize(
    ("name", "content", "seen"),
    [
        ("nothing_there", None, "no such file or folder"),
        ("a.trig", "ex:undeclared a ex:b .", "not readable as TriG"),
        ("a.trig", "<a> <b> <c", "not readable as TriG"),
        ("a.trig", b"<urn:a> <urn:b> '\xff' .", "not readable as TriG"),
        ("a.bpmn", "<definitions", "not well-formed XML"),
        ("a.txt", "text", "not well-formed XML"),
        ("folder", "folder", "no .trig and no .bpmn file"),
    ],
)
def test_what_cannot_be_loaded_gets_one_clear_error(
    tmp_path: Path, name: str, content: str | bytes | None, seen: str
) -> None:
    path = tmp_path / name
    if content == "folder":
        path.mkdir()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        path.write_text(content, "utf-8")
    with pytest.raises(UnusableInput, match=seen) as caught:
        load_graph(path)
    assert str(path) in str(caught.value)


def test_trig_files_of_a_folder_are_read_together(tmp_path: Path) -> None:
    head, tail = STARTED.split("GRAPH <urn:seams:graph:seams>")
    write(tmp_path, head)
    (tmp_path / "seams.trig").write_text(f"{PREFIXES}GRAPH <urn:seams:graph:seams>{tail}", "utf-8")
    graph = load_graph(tmp_path)
    assert graph.scheduling_container(f"{BASE}p") == f"{BASE}c"
    assert graph.is_whole
    alone = load_graph(tmp_path / "model.trig")
    assert not alone.is_whole
    assert alone.bpmn_models == ()


def test_a_payload_is_read_once_and_refused_the_same_each_time(tmp_path: Path) -> None:
    graph = load_graph(write(tmp_path))
    first = graph.payload(f"{BASE}m")
    (tmp_path / "m.bpmn").unlink()
    assert graph.payload(f"{BASE}m") is first
    gone = load_graph(tmp_path)
    for _ in range(2):
        with pytest.raises(UnusableInput, match="no such file"):
            gone.payload(f"{BASE}m")


def test_an_unknown_model_has_no_payload(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="0 values of seam:renderPayload"):
        model(tmp_path).payload("urn:x")


@pytest.mark.parametrize(
    ("name", "is_bpmn"),
    [("a.bpmn", True), ("A.BPMN", True), ("a.bpmn2", True), ("a.bpmn20.xml", True),
     ("a.xml", False), ("bpmn", False), ("a.bpmn.bak", False)],
)  # fmt: skip
def test_bpmn_names(name: str, is_bpmn: bool) -> None:
    assert is_bpmn_name(name) is is_bpmn


def test_the_dataset_is_the_same_graph(tmp_path: Path) -> None:
    graph = model(tmp_path)
    rows = graph.dataset.query(f"SELECT ?c WHERE {{ ?c <{SEAM.schedules}> <{BASE}p> }}")
    assert [str(row[0]) for row in rows] == [f"{BASE}c"]  # type: ignore[index]
    assert len(graph.store) == len(list(graph.dataset.quads()))
    assert STARTED_BPMN.count("timerEventDefinition") == 2


def test_locate_reads_several_prefixes_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.trig").write_text(
        "@prefix a: <https://a.org/> . @prefix : <https://e.org/> .\n:c a:p :d .\n"
    )
    graph = load_graph(tmp_path)
    assert [graph.locate(f"https://{iri}")[1] for iri in ("e.org/c", "e.org/d", "a.org/p")] == [
        2
    ] * 3
