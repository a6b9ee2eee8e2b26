"""Lifting: index triples of BPMN files, written so that nothing of a person's is lost."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import BNode, Dataset

from seams_lab.drift import drift
from seams_lab.errors import UnusableInput
from seams_lab.graph import ModelGraph, load_graph
from seams_lab.lift import LiftPlan, index_triples, plan
from seams_lab.lift.block import BEGIN, END
from seams_lab.payload import SEAM_WORTHY, Payload, parse_payload
from seams_lab.timers import timers
from seams_lab.vocabulary import BPMN, PROC, SEAM, SEAMS_GRAPH

M = "https://example.org/m"
NOON = 1_780_000_000_000_000  # some instant of 2026, in microseconds
TIMER = '<timerEventDefinition><timeDate>"2026-01-01T00:00:00Z"</timeDate></timerEventDefinition>'
MESSAGE, ERROR = "<messageEventDefinition/>", "<errorEventDefinition/>"

# A model as a person writes it: own prefixes, comments, odd spaces.
OWN = """\
# ours — keep   this
@prefix : <https://example.org/> .
@prefix seam: <https://w3id.org/seams/seam#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix proc: <https://w3id.org/seams/proc#> .

<urn:seams:graph:model:m> { :m a seam:Model ;rdfs:label "M"@en   . # a comment
}
GRAPH <urn:seams:graph:seams> { :m seam:notation seam:BPMN ; seam:renderPayload <m.bpmn> . }
"""


def bpmn(*body: str, process: str = 'id="p" name="P"') -> str:
    return f'<definitions xmlns="{BPMN}"><process {process}>{"".join(body)}</process></definitions>'


def el(tag: str, identifier: str, name: str | None = None, body: str = "", **more: str) -> str:
    given_ones = {"id": identifier, "name": name, **more}
    attributes = "".join(
        f" {k}={quoteattr(v)}" for k, v in given_ones.items() if v is not None
    )  # fmt: skip
    return f"<{tag}{attributes}>{body}</{tag}>"


SMALL = bpmn(
    el("startEvent", "s", "Every night", TIMER), el("userTask", "u", "Decide"), el("endEvent", "e")
)


def payload_of(*body: str) -> Payload:
    return parse_payload(bpmn(*body).encode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder with OWN and SMALL."""
    put(tmp_path, OWN)
    (tmp_path / "m.bpmn").write_text(SMALL, "utf-8")
    return tmp_path


def put(folder: Path, text: str, name: str = "m.trig") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def lifted(path: Path) -> LiftPlan:
    result = plan(load_graph(path))
    result.write()
    return result


def quads(path: Path) -> set[tuple[str, ...]]:
    """The file's quads without blank nodes, as rdflib, another parser, reads them."""
    data = Dataset()
    data.parse(path, format="trig", publicID=path.absolute().as_uri())
    found = data.quads((None, None, None, None))
    return {
        (str(s), str(p), str(o), str(g or ""))
        for s, p, o, g in found
        if not isinstance(s, BNode) and not isinstance(o, BNode)
    }


def types(path: Path, identifier: str) -> set[str]:
    rdf_type = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    return {
        o.removeprefix(str(PROC))
        for s, p, o, _ in quads(path)
        if s == f"{M}#{identifier}" and p == rdf_type
    }


def own_part(text: str) -> str:
    """What stands outside the block, told apart by hand."""
    before, begin, rest = text.partition(BEGIN)
    if not begin:
        return text
    after = rest.partition(END)[2]
    return re.sub(r"(\r\n|\n|\r)\Z", "", before, count=1) + re.sub(r"^(\r\n|\n|\r)", "", after)


# ---------------------------------------------------------------------- index triples


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        (el("task", "x"), "Task"),
        (el("userTask", "x"), "UserTask"),
        (el("serviceTask", "x"), "ServiceTask"),
        (el("businessRuleTask", "x"), "BusinessRuleTask"),
        (el("scriptTask", "x"), "Task"),
        (el("manualTask", "x"), "Task"),
        (el("sendTask", "x"), "Task"),
        (el("receiveTask", "x"), "Task"),
        (el("callActivity", "x"), None),
        (el("exclusiveGateway", "x"), None),
        (el("startEvent", "x"), None),
        (el("endEvent", "x"), None),
        (el("startEvent", "x", body=MESSAGE), "MessageCatchEvent"),
        (el("intermediateCatchEvent", "x", body=MESSAGE), "MessageCatchEvent"),
        (el("intermediateThrowEvent", "x", body=MESSAGE), "MessageThrowEvent"),
        (el("endEvent", "x", body=MESSAGE), "MessageThrowEvent"),
        (el("boundaryEvent", "x", body=MESSAGE, attachedToRef="u"), None),
        (el("boundaryEvent", "x", body=ERROR, attachedToRef="u"), "ErrorBoundaryEvent"),
        (el("startEvent", "x", body=TIMER), "TimerStartEvent"),
        (el("startEvent", "x", body=TIMER + MESSAGE), "TimerStartEvent"),
        (el("intermediateCatchEvent", "x", body=TIMER), "TimerCatchEvent"),
        (el("boundaryEvent", "x", body=TIMER, attachedToRef="u"), "TimerCatchEvent"),
    ],
)
def test_an_element_gets_its_type(element: str, expected: str | None) -> None:
    triples = index_triples(payload_of(element, el("userTask", "u")), M, {"p": f"{M}#p"})
    about = {(p, o) for s, p, o in triples if s == f"{M}#x"}
    wanted = {(str(SEAM.inModel), M)}
    if expected:
        wanted.add(("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", str(PROC[expected])))
    assert about == wanted


@pytest.mark.parametrize(
    "body",
    [
        el("serviceTask", "h") + el("boundaryEvent", "x", "X", TIMER, attachedToRef="h"),
        el("boundaryEvent", "x", "X", TIMER, attachedToRef="nothing"),
        el("subProcess", "h", None, el("startEvent", "x", "X", TIMER), triggeredByEvent="true"),
        el("subProcess", "h", None, el("startEvent", "x", "X", TIMER)),
        el("intermediateThrowEvent", "x", "X", TIMER),
        el("endEvent", "x", "X", TIMER),
    ],
)
def test_a_timer_out_of_scope_is_not_lifted(folder: Path, body: str) -> None:
    (folder / "m.bpmn").write_text(bpmn(body, el("userTask", "u")), "utf-8")
    result = lifted(folder)
    about = {q[0] for q in quads(folder / "m.trig")}
    assert f"{M}#x" not in about
    assert f"{M}#u" in about
    assert any("'x'" in note and "out of scope" in note for note in result.notes)


def test_names_become_labels_and_blank_names_none() -> None:
    payload = payload_of(el("userTask", "a", "Line one\nline two"), el("userTask", "b", "  "))
    labels = {s: o for s, p, o in index_triples(payload, M, {}) if p.endswith("#label")}
    assert labels == {f"{M}#a": "Line one\nline two"}


def test_triples_are_sorted_and_the_expression_is_none_of_them() -> None:
    triples = index_triples(parse_payload(SMALL.encode()), M, {"p": "https://example.org/own"})
    assert triples == sorted(triples)
    assert {s for s, _, _ in triples} == {"https://example.org/own", *(f"{M}#{i}" for i in "sue")}
    assert "2026" not in str(triples)


# ---------------------------------------------------------------------- the block


def test_lift_adds_what_is_missing_and_then_nothing(folder: Path) -> None:
    first = lifted(folder)
    trig = folder / "m.trig"
    text = trig.read_bytes()
    assert own_part(text.decode()) == OWN
    assert types(trig, "s") == {"TimerStartEvent"}
    assert types(trig, "u") == {"UserTask"}
    assert (f"{M}#p", str(SEAM.detailedBy), M, str(SEAMS_GRAPH)) in quads(trig)
    assert (f"{M}#u", str(SEAM.inModel), M, "urn:seams:graph:model:m") in quads(trig)
    assert first.files[0].added == len(quads(trig)) - 4
    second = plan(load_graph(folder))
    assert not second.changed
    assert second.write() == []
    assert trig.read_bytes() == text


def test_the_example_model_lacks_nothing(models: Path) -> None:
    result = plan(load_graph(models / "expense"))
    assert (result.changed, result.notes, result.diff()) == (False, [], "")


ENTRY = r"\n  (?:approval|digest|month_end|payout|year_close):\w+ (?:a proc:|rdfs:label)"


@pytest.mark.parametrize(
    ("pattern", "least"),
    [(ENTRY + r"[^\n]*(?:\n    [^\n]*)*\n", 60), (r"a proc:(?!Process)\w+ ;\s*", 15)],
    ids=["all entries", "types only"],
)
def test_the_example_model_comes_back_after_its_index_is_cut(
    models: Path, tmp_path: Path, pattern: str, least: int
) -> None:
    shutil.copytree(models / "expense", tmp_path / "x")
    trig = tmp_path / "x" / "expense.trig"
    whole = quads(trig)
    cut = re.sub(pattern, "", trig.read_text("utf-8"))
    put(tmp_path / "x", cut, "expense.trig")
    assert len(quads(trig)) <= len(whole) - least
    lifted(tmp_path / "x")
    assert own_part(trig.read_text("utf-8")) == cut
    # Two gateways have a label in the TriG file only: their BPMN elements have no name.
    gone = {q[0].rpartition("#")[2] for q in whole - quads(trig) if q[1].endswith("#label")}
    assert gone <= {"split_totals", "join_totals"}
    assert {q for q in whole - quads(trig) if not q[1].endswith("#label")} == set()
    graph = load_graph(tmp_path / "x")
    assert drift(graph, timers(graph, NOON)) == []


@pytest.mark.parametrize(
    "own",
    [
        OWN,
        OWN.rstrip("\n"),
        OWN.replace("\n", "\r\n"),
        OWN.replace("\n", "\r"),
        "\ufeff" + OWN,
        OWN + "\n\n\n# the last word",
        OWN + "@prefix rdf: <https://example.org/other#> .\n@base <https://example.org/> .",
        OWN.replace("a seam:Model", "a seam:Model, [ ], _:b ; :x 'x\"\\\\u00e9', '''a\n# b'''"),
    ],
    ids=[
        "plain",
        "no final newline",
        "CRLF",
        "CR",
        "BOM",
        "comment at the end",
        "prefixes",
        "blank",
    ],
)
def test_own_text_stays_byte_for_byte(folder: Path, own: str) -> None:
    trig = put(folder, own)
    graph = ModelGraph(folder, (trig,), ox.Store(), {})
    plan(graph).write()
    text = trig.read_bytes().decode()
    assert text != own
    assert own_part(text) == own
    assert ("\r\n" in own) == ("\r\n" in text)
    assert not re.search(r"\r\n", text) or not re.search(r"(?<!\r)\n", text)
    assert not plan(graph).changed
    (folder / "m.bpmn").write_text(bpmn(el("userTask", "later")), "utf-8")
    plan(graph).write()
    text = trig.read_bytes().decode()
    assert own_part(text) == own
    assert ("#later>" in text, "#s>" in text) == (True, False)


def test_a_block_that_is_not_needed_goes_without_a_trace(folder: Path) -> None:
    for own in (OWN, OWN.rstrip("\n"), OWN.replace("\n", "\r\n")):
        trig = put(folder, own)
        (folder / "m.bpmn").write_text(SMALL, "utf-8")
        lifted(folder)
        (folder / "m.bpmn").write_text(f'<definitions xmlns="{BPMN}"/>', "utf-8")
        result = lifted(folder)
        assert trig.read_bytes().decode() == own
        assert result.files[0].removed > 5


def test_stale_entries_vanish_and_renamed_labels_follow(folder: Path) -> None:
    lifted(folder)
    (folder / "m.bpmn").write_text(bpmn(el("userTask", "u", "Decide twice")), "utf-8")
    lifted(folder)
    triples = quads(folder / "m.trig")
    assert f"{M}#s" not in {q[0] for q in triples}
    assert {q[2] for q in triples if q[0] == f"{M}#u" and q[1].endswith("label")} == {
        "Decide twice"
    }


@pytest.mark.parametrize("own", [OWN, OWN + "# no line end after this"])
def test_text_after_the_block_stays_after_it(folder: Path, own: str) -> None:
    trig = put(folder, own)
    lifted(folder)
    tail = "GRAPH :g { :a :b :c } # mine"
    put(folder, trig.read_text("utf-8") + tail)
    (folder / "m.bpmn").write_text(bpmn(el("userTask", "u", "Other")), "utf-8")
    lifted(folder)
    assert trig.read_text("utf-8").endswith(f"{END}\n{tail}")
    (folder / "m.bpmn").write_text(f'<definitions xmlns="{BPMN}"/>', "utf-8")
    lifted(folder)
    # The last line end before the block divides the two texts, where the first has none.
    assert trig.read_text("utf-8") == own + ("" if own.endswith("\n") else "\n") + tail


@pytest.mark.parametrize(
    "damage",
    [
        lambda t: t.replace(END, ""),
        lambda t: t.replace(BEGIN, ""),
        lambda t: t + BEGIN,
        lambda t: t + t[t.index(BEGIN) :],
        lambda t: t.replace(BEGIN, "X").replace(END, BEGIN).replace("X", END),
        # The lines are there, but inside a literal, or around more than the block.
        lambda t: OWN.replace('"M"', f'"""M\n{BEGIN}\ntext of mine\n{END}\n"""'),
        lambda t: t.replace(f"{BEGIN}\n", "").replace("# ours", f"{BEGIN}\n# ours"),
        lambda t: t.replace(f"{BEGIN}\n", f"{BEGIN}\n[] <urn:p> <urn:o> .\n"),
        lambda t: t.replace(f"{BEGIN}\n", f"{BEGIN}\n<urn:mine> <urn:p> <urn:o> .\n"),
        lambda t: t.replace(f"{BEGIN}\n", f"{BEGIN}\n<urn:mine> a <urn:Mine> .\n"),
    ],
)
def test_a_damaged_block_is_refused_and_the_file_untouched(
    folder: Path, damage: Callable[[str], str]
) -> None:
    lifted(folder)
    trig = folder / "m.trig"
    text = damage(trig.read_text("utf-8"))
    put(folder, text)
    with pytest.raises(UnusableInput, match=r"m\.trig.*block"):
        lifted(folder)
    assert trig.read_text("utf-8") == text


# ---------------------------------------------------------------------- what a person wrote


def with_own(folder: Path, text: str, graph: str = "urn:seams:graph:model:m") -> str:
    own = OWN + f"GRAPH <{graph}> {{ {text} }}\n"
    put(folder, own)
    return own


@pytest.mark.parametrize(
    ("said", "has", "noted"),
    [
        ("TimerCatchEvent", {"TimerCatchEvent"}, True),
        ("TimerStartEvent", {"TimerStartEvent"}, False),
        ("TimerStartEvent, proc:TimerCatchEvent", {"TimerStartEvent", "TimerCatchEvent"}, True),
        ("UserTask", {"UserTask"}, True),
    ],
)
def test_a_wrong_type_is_left_and_reported(
    folder: Path, said: str, has: set[str], noted: bool
) -> None:
    with_own(folder, f"<{M}#s> a proc:{said} .")
    result = lifted(folder)
    assert types(folder / "m.trig", "s") == has
    assert [n for n in result.notes if "'s'" in n and "type" in n] == result.notes
    assert bool(result.notes) == noted


def test_a_general_type_is_joined_by_the_exact_one(folder: Path) -> None:
    with_own(folder, f"<{M}#u> a proc:Task .")
    assert lifted(folder).notes == []
    assert types(folder / "m.trig", "u") == {"Task", "UserTask"}


def test_a_type_where_lift_gives_none_is_reported(folder: Path) -> None:
    with_own(folder, f"<{M}#e> a proc:TimerCatchEvent .")
    assert lifted(folder).notes == [
        "m: 'e': your text gives the type TimerCatchEvent to a endEvent"
    ]
    assert types(folder / "m.trig", "e") == {"TimerCatchEvent"}


@pytest.mark.parametrize("label", ['"Entscheiden"@de', '"Something else"', '"Decide"'])
def test_a_label_of_ones_own_is_the_only_one(folder: Path, label: str) -> None:
    with_own(folder, f"<{M}#u> rdfs:label {label} .")
    lifted(folder)
    found = [q for q in quads(folder / "m.trig") if q[0] == f"{M}#u" and q[1].endswith("#label")]
    assert [q[2] for q in found] == [label.split('"')[1]]


def test_an_element_in_another_model_is_left_and_reported(folder: Path) -> None:
    with_own(folder, f"<{M}#u> seam:inModel :other .")
    result = lifted(folder)
    found = [
        q[2] for q in quads(folder / "m.trig") if q[0] == f"{M}#u" and q[1] == str(SEAM.inModel)
    ]
    assert found == ["https://example.org/other"]
    assert result.notes == ["m: 'u': your text gives the model other, not m"]


@pytest.mark.parametrize(
    "own",
    [
        ":nightly a proc:Process . :nightly seam:detailedBy :m .",
        ":nightly a proc:Process ; seam:inModel :m .",
        ":p a proc:Process ; seam:detailedBy :m . ",
    ],
)
def test_a_process_that_is_there_is_used(folder: Path, own: str) -> None:
    with_own(folder, own)
    lifted(folder)
    graph = load_graph(folder)
    name = own.split()[0].replace(":", "https://example.org/")
    assert graph.processes == (name,)
    assert graph.process_of(M, "p") == name
    assert graph.pairs(str(SEAM.inModel))[name] == (M,)
    assert graph.pairs(str(SEAM.detailedBy)) == {name: (M,)}


def test_a_process_drawn_in_another_model_stays_there(folder: Path) -> None:
    with_own(folder, ":n a proc:Process ; seam:inModel :map ; seam:detailedBy :m .")
    assert lifted(folder).notes == []
    graph = load_graph(folder)
    assert graph.pairs(str(SEAM.inModel))["https://example.org/n"] == ("https://example.org/map",)


def test_a_process_without_an_iri_is_not_taken(folder: Path) -> None:
    with_own(folder, "[] a proc:Process ; seam:detailedBy :m .")
    lifted(folder)
    assert load_graph(folder).process_of(M, "p") == f"{M}#p"
    assert not plan(load_graph(folder)).changed


TWO = f'<definitions xmlns="{BPMN}"><process id="a"/><process id="b" name="B"/></definitions>'


@pytest.mark.parametrize(
    ("own", "expected", "notes"),
    [
        ("", {"a": f"{M}#a", "b": f"{M}#b"}, 0),
        (
            ":b a proc:Process ; seam:detailedBy :m .",
            {"a": f"{M}#a", "b": "https://example.org/b"},
            0,
        ),
        (
            ":b a proc:Process ; seam:detailedBy :m . :x a proc:Process ; seam:detailedBy :m .",
            {"a": "https://example.org/x", "b": "https://example.org/b"},
            0,
        ),
        (":x a proc:Process ; seam:detailedBy :m .", {"a": None, "b": None}, 2),
        (
            ":x a proc:Process ; seam:detailedBy :m . :y a proc:Process ; seam:detailedBy :m .",
            {"a": None, "b": None},
            2,
        ),
    ],
)
def test_processes_are_matched_by_name_and_never_guessed(
    folder: Path, own: str, expected: dict[str, str | None], notes: int
) -> None:
    with_own(folder, own)
    (folder / "m.bpmn").write_text(TWO, "utf-8")
    result = lifted(folder)
    graph = load_graph(folder)
    assert {i: graph.process_of(M, i) for i in "ab"} == expected
    assert len(result.notes) == notes


@pytest.mark.parametrize(
    ("own", "where"),
    [
        ("", "urn:seams:graph:model:m"),
        (f"GRAPH :mine {{ <{M}#e> seam:inModel :m }}", "https://example.org/mine"),
        (f"<{M}#e> seam:inModel :m .", ""),
        (f"GRAPH <{SEAMS_GRAPH}> {{ <{M}#e> seam:inModel :m }}", "urn:seams:graph:model:m"),
    ],
)
def test_entries_go_to_the_graph_where_the_others_are(folder: Path, own: str, where: str) -> None:
    trig = put(folder, OWN + own)
    lifted(folder)
    text = trig.read_text("utf-8").partition(BEGIN)[2]
    found = {
        getattr(q.graph_name, "value", "")
        for q in ox.parse(input=text, format=ox.RdfFormat.TRIG)
        if q.predicate.value == str(SEAM.inModel)
    }
    assert found == {where}


# ---------------------------------------------------------------------- several files and models


def test_each_model_goes_to_the_file_that_declares_it(tmp_path: Path) -> None:
    prefixes = OWN.partition("\n\n")[0]
    for name in "abc":
        (tmp_path / f"{name}.bpmn").write_text(bpmn(el("userTask", f"task_{name}")), "utf-8")
    model = (
        "GRAPH :g{0} {{ :{0} a seam:Model }} GRAPH <urn:seams:graph:seams> "
        "{{ :{0} seam:notation seam:BPMN ; seam:renderPayload <{0}.bpmn> }}\n"
    )
    put(tmp_path, prefixes + "\n" + model.format("a") + model.format("b"), "1.trig")
    # The third is typed here; its notation stands in the first file.
    put(tmp_path, prefixes + "\nGRAPH :gc { :c a seam:Model }", "2.trig")
    more = model.format("c").partition("} ")[2]
    put(tmp_path, (tmp_path / "1.trig").read_text("utf-8") + more, "1.trig")
    put(tmp_path, "# nothing\n", "3.trig")
    result = lifted(tmp_path)
    assert [f.path.name for f in result.files if f.changed] == ["1.trig", "2.trig"]
    first, second = ((tmp_path / n).read_text("utf-8") for n in ("1.trig", "2.trig"))
    assert "task_a" in first
    assert "task_b" in first
    assert "task_c" not in first
    assert "task_c" in second
    assert not plan(load_graph(tmp_path)).changed


def test_what_another_file_states_is_not_stated_again(folder: Path) -> None:
    prefixes = OWN.partition("\n\n")[0]
    put(
        folder,
        f"{prefixes}\n<{M}#u> a proc:UserTask ; seam:inModel :m ; rdfs:label 'D' .",
        "z.trig",
    )
    lifted(folder)
    assert "#u>" not in (folder / "m.trig").read_text("utf-8")
    assert (folder / "z.trig").read_text("utf-8").startswith(prefixes)


def test_a_bpmn_file_that_cannot_be_read_is_noted_and_its_entries_stay(folder: Path) -> None:
    shutil.copy(folder / "m.bpmn", folder / "n.bpmn")
    put(folder, OWN + OWN.replace(":m", ":n").replace("m.bpmn", "n.bpmn").replace("el:m", "el:n"))
    (folder / "n.bpmn").write_text(bpmn(el("userTask", "other")), "utf-8")
    lifted(folder)
    before = quads(folder / "m.trig")
    (folder / "m.bpmn").write_text("<broken", "utf-8")
    (folder / "n.bpmn").write_text(bpmn(el("userTask", "new")), "utf-8")
    result = lifted(folder)
    assert len(result.unread) == 1
    assert "m.bpmn" in result.unread[0]
    after = quads(folder / "m.trig")
    assert {q for q in before if q[0].startswith(f"{M}#")} <= after
    assert {"https://example.org/n#new"} == {q[0] for q in after - before}


def test_an_entry_that_stays_goes_once_a_person_states_it(folder: Path) -> None:
    lifted(folder)
    (folder / "m.bpmn").write_text("<broken", "utf-8")
    put(folder, f"GRAPH <urn:seams:graph:model:m> {{ <{M}#u> a <{PROC.UserTask}> }}", "z.trig")
    assert lifted(folder).files[0].removed == 1
    assert types(folder / "m.trig", "u") == set()


def test_a_bpmn_file_that_no_model_names_is_noted(folder: Path) -> None:
    (folder / "extra.bpmn").write_text(SMALL, "utf-8")
    assert [n for n in plan(load_graph(folder)).notes if "extra.bpmn" in n]


# ---------------------------------------------------------------------- hostile names and ids

HOSTILE = ["x y", "a>b", 'q"q', "h#h", "%zz", "{c}", "back\\slash", "a|b", "^", "`", "a\u0085", ""]


@pytest.mark.parametrize("identifier", HOSTILE)
def test_an_id_that_cannot_stand_in_an_iri_is_reported(folder: Path, identifier: str) -> None:
    (folder / "m.bpmn").write_text(
        bpmn(el("userTask", identifier), el("userTask", "fine")), "utf-8"
    )
    result = lifted(folder)
    assert [n for n in result.notes if repr(identifier) in n and "cannot stand in an IRI" in n]
    about = {q[0] for q in quads(folder / "m.trig") if q[0].startswith(f"{M}#")}
    assert about == {f"{M}#p", f"{M}#fine"}


def test_a_timer_without_an_id_is_reported(folder: Path) -> None:
    (folder / "m.bpmn").write_text(bpmn(f"<startEvent>{TIMER}</startEvent>"), "utf-8")
    assert any("without an id" in note for note in lifted(folder).notes)


@pytest.mark.parametrize(
    "name",
    [
        '" . <urn:evil> <urn:p> <urn:o> . "',
        '"""', "\\", "\\u0041", "} GRAPH <urn:x> {", f"a&#10;{END}&#10;b",
        "\u2028\u0085\u202e\ufeff", "<b>&amp;", "'", "\U0001f600",
    ],
)  # fmt: skip
def test_a_name_is_data(folder: Path, name: str) -> None:
    raw = bpmn(el("userTask", "x", "NAME")).replace(
        '"NAME"', quoteattr(name).replace("&amp;#10;", "&#10;")
    )
    (folder / "m.bpmn").write_text(raw, "utf-8")
    lifted(folder)
    wanted = name.replace("&#10;", "\n")
    found = {(q[1], q[2]) for q in quads(folder / "m.trig") if q[0] == f"{M}#x"}
    assert {o for p, o in found if p.endswith("#label")} == {wanted}
    assert {q[0] for q in quads(folder / "m.trig")} == {M, f"{M}#p", f"{M}#x"}
    assert not plan(load_graph(folder)).changed


@pytest.mark.parametrize("model", ["https://example.org/a#m", "_:m"])
def test_a_model_whose_elements_cannot_be_named_is_noted(folder: Path, model: str) -> None:
    term = model if model.startswith("_:") else f"<{model}>"
    put(folder, OWN.replace(":m ", f"{term} "))
    result = lifted(folder)
    assert not result.changed
    assert any("absolute" in note for note in result.notes)


def test_a_model_with_a_relative_iri_carries_no_path_of_this_machine(folder: Path) -> None:
    trig = put(folder, OWN.replace(":m ", "<model> "))
    lifted(folder)
    text = trig.read_text("utf-8")
    assert "<./model#u>" in text
    assert str(folder) not in text
    base = folder.as_uri()
    assert f"{base}/model#u" in {q[0] for q in quads(trig)}
    assert not plan(load_graph(folder)).changed


def test_a_block_that_would_say_something_else_is_not_written(folder: Path) -> None:
    own = OWN.replace(":m ", "<model> ") + "@base <https://example.org/elsewhere/> .\n"
    trig = put(folder, own)
    with pytest.raises(UnusableInput, match="absolute IRIs or no @base"):
        lifted(folder)
    assert trig.read_text("utf-8") == own


# ---------------------------------------------------------------------- bare BPMN files


def test_a_bare_file_gets_a_trig_file_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "month end.bpmn"
    file.write_text(SMALL, "utf-8")
    result = lifted(file)
    trig = tmp_path / "month end.trig"
    assert result.files[0].path == trig
    assert result.files[0].old is None
    graph = load_graph(trig)
    model = "https://example.org/month%20end"
    assert graph.bpmn_models == (model,)
    assert graph.payload(model).path == str(file)
    assert graph.process_of(model, "p") == f"{model}#p"
    assert graph.typed(str(PROC.TimerStartEvent)) == (f"{model}#s",)
    assert str(tmp_path) not in trig.read_text("utf-8")
    # Again, by each of the three names: nothing changes.
    for path in (file, trig, tmp_path):
        assert not plan(load_graph(path)).changed
    assert trig.stat().st_mode & 0o666 == file.stat().st_mode & 0o666


def test_an_own_edit_of_a_made_file_stays_when_its_bpmn_file_is_lifted_again(
    tmp_path: Path,
) -> None:
    file = tmp_path / "m.bpmn"
    file.write_text(SMALL, "utf-8")
    lifted(file)
    trig = tmp_path / "m.trig"
    put(tmp_path, trig.read_text("utf-8").replace('"P"', '"My own name"') + "# mine\n")
    file.write_text(bpmn(el("userTask", "later")), "utf-8")
    lifted(file)
    text = trig.read_text("utf-8")
    assert '"My own name"' in text
    assert text.endswith("# mine\n")
    assert f"{M}#later" in text
    assert f"{M}#s" not in text


@pytest.mark.parametrize(
    ("name", "base", "model"),
    [
        ("m.bpmn", None, "https://example.org/m"),
        ("m.bpmn20.xml", None, "https://example.org/m"),
        ("m.bpmn", "https://acme.example/models/orders", "https://acme.example/models/orders"),
        ("m.bpmn", "urn:acme:orders", "urn:acme:orders"),
        ("a:b?c#d.bpmn", None, "https://example.org/a%3Ab%3Fc%23d"),
        ("mé.bpmn", None, "https://example.org/m%C3%A9"),
    ],
)
def test_the_base_names_the_model(tmp_path: Path, name: str, base: str | None, model: str) -> None:
    (tmp_path / name).write_text(SMALL, "utf-8")
    written = plan(load_graph(tmp_path / name), base).write()
    graph = load_graph(written[0])
    assert graph.bpmn_models == (model,)
    assert graph.typed(str(PROC.UserTask)) == (f"{model}#u",)
    assert not plan(load_graph(tmp_path / name), base).changed


def test_a_folder_of_bare_files_gets_one_trig_file_each(tmp_path: Path) -> None:
    for name in ("a.bpmn", "b.bpmn", "b.bpmn2", "broken.bpmn"):
        (tmp_path / name).write_text(SMALL, "utf-8")
    (tmp_path / "broken.bpmn").write_text("<x", "utf-8")
    result = plan(load_graph(tmp_path), "https://acme.example/")
    assert [p.name for p in result.write()] == ["a.trig", "b.trig"]
    assert len(result.unread) == 1
    assert [n for n in result.remarks if "b.bpmn2" in n]
    models = ("https://acme.example/a", "https://acme.example/b")
    assert load_graph(tmp_path).bpmn_models == models
    assert not plan(load_graph(tmp_path)).changed


@pytest.mark.parametrize(
    "base", ["", "orders", "https://e.org/#", "https://e.org/?a", "https://e.org/ x"]
)
def test_a_base_that_is_no_iri_is_refused(tmp_path: Path, base: str) -> None:
    (tmp_path / "m.bpmn").write_text(SMALL, "utf-8")
    with pytest.raises(UnusableInput, match="base"):
        plan(load_graph(tmp_path), base)


def test_a_base_for_a_model_that_has_its_iri_is_refused(folder: Path) -> None:
    with pytest.raises(UnusableInput, match="base"):
        plan(load_graph(folder), "https://acme.example/m")


@pytest.mark.parametrize("text", [OWN, "# something else\n"])
def test_a_trig_file_of_somebody_else_is_not_touched(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.bpmn").write_text(SMALL, "utf-8")
    trig = put(tmp_path, text)
    with pytest.raises(UnusableInput, match=r"m\.trig.*not made by lift"):
        lifted(tmp_path / "m.bpmn")
    assert trig.read_text("utf-8") == text


def test_a_made_file_is_not_brought_up_to_date_for_another_file_or_base(tmp_path: Path) -> None:
    (tmp_path / "m.bpmn").write_text(SMALL, "utf-8")
    lifted(tmp_path / "m.bpmn")
    with pytest.raises(UnusableInput, match="for this file and base"):
        plan(load_graph(tmp_path / "m.bpmn"), "https://acme.example/m")
    shutil.copy(tmp_path / "m.bpmn", tmp_path / "other.bpmn")
    text = (tmp_path / "m.trig").read_text("utf-8")
    put(tmp_path, text.replace("<m.bpmn>", "<other.bpmn>"))
    with pytest.raises(UnusableInput, match="for this file and base"):
        lifted(tmp_path / "m.bpmn")


def test_a_bpmn_file_that_a_model_beside_it_names_is_not_made_a_second_model(folder: Path) -> None:
    (folder / "m.trig").rename(folder / "all.trig")
    with pytest.raises(UnusableInput, match=r"m\.bpmn.*https://example\.org/m"):
        lifted(folder / "m.bpmn")


# ---------------------------------------------------------------------- writing


def test_a_failure_while_writing_leaves_the_old_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    result = plan(load_graph(folder))
    for name in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(UnusableInput, match="No space left"):
                result.write()
        assert (folder / "m.trig").read_text("utf-8") == OWN
        assert sorted(p.name for p in folder.iterdir()) == ["m.bpmn", "m.trig"]


def test_the_file_is_whole_at_every_moment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    real = os.replace

    def replace(source: Path, target: Path) -> None:
        assert Path(source).parent == Path(target).parent
        seen.append((Path(source).read_text("utf-8"), Path(target).read_text("utf-8")))
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    result = lifted(folder)
    assert seen == [(result.files[0].new, OWN)]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_the_mode_of_the_file_stays(folder: Path, mode: int) -> None:
    (folder / "m.trig").chmod(mode)
    lifted(folder)
    assert stat.S_IMODE((folder / "m.trig").stat().st_mode) == mode


def test_a_link_a_read_only_file_and_a_changed_file_are_refused(folder: Path) -> None:
    trig = folder / "m.trig"
    trig.chmod(0o444)
    with pytest.raises(UnusableInput, match="read-only"):
        lifted(folder)
    trig.chmod(0o644)
    late = plan(load_graph(folder))
    put(folder, OWN + "# mine, a moment ago\n")
    with pytest.raises(UnusableInput, match="no longer as it was"):
        late.write()
    trig.rename(folder / "real.txt")
    trig.symlink_to(folder / "real.txt")
    with pytest.raises(UnusableInput, match="symbolic link"):
        lifted(folder)
    assert (folder / "real.txt").read_text("utf-8") == OWN + "# mine, a moment ago\n"


def test_nothing_is_written_when_one_of_the_files_cannot_be(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.bpmn").write_text(SMALL, "utf-8")
    result = plan(load_graph(tmp_path))
    put(tmp_path, "# came in between\n", "b.trig")
    with pytest.raises(UnusableInput, match=r"b\.trig.*there now"):
        result.write()
    assert not (tmp_path / "a.trig").exists()
    assert (tmp_path / "b.trig").read_text("utf-8") == "# came in between\n"


@pytest.mark.parametrize("own", [OWN, OWN.rstrip("\n"), OWN.replace("\n", "\r\n"), None])
@pytest.mark.skipif(shutil.which("patch") is None, reason="needs the program patch")
def test_the_diff_can_be_applied(folder: Path, own: str | None) -> None:
    if own is None:
        (folder / "m.trig").unlink()
    else:
        put(folder, own)
    result = plan(load_graph(folder))
    ends = "\n\\ No newline at end of file\n" in result.diff()
    assert ends == (own is not None and not own.endswith("\n"))
    command = ["patch", "--binary", "-s", str(folder / "m.trig")]
    subprocess.run(command, input=result.diff().encode(), check=True, cwd=folder)
    assert (folder / "m.trig").read_bytes().decode() == result.files[0].new


def test_the_plan_says_what_it_would_do(folder: Path) -> None:
    result = plan(load_graph(folder))
    count = result.files[0].added
    assert repr(result) == f"<LiftPlan: 1 of 1 file(s) change, +{count} -0 triples, 0 note(s)>"
    assert f"changed, +{count} -0 triples" in repr(result.files[0])
    assert "as it was" in repr((lifted(folder), plan(load_graph(folder)))[1].files[0])


def test_a_trig_file_that_is_not_utf8_is_refused(folder: Path) -> None:
    graph = load_graph(folder)
    (folder / "m.trig").write_bytes(OWN.encode("utf-16"))
    with pytest.raises(UnusableInput, match=r"m\.trig.*UTF-8"):
        plan(graph)


# ---------------------------------------------------------------------- laws

IDS = st.text('abcXYZ_-.019é "<>#%', min_size=1, max_size=6)
NAMES = st.none() | st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=12
)
BODIES = st.sampled_from(["", TIMER, MESSAGE, ERROR, TIMER + MESSAGE])


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A BPMN file: any seam-worthy element, any nesting of one level, any definition."""
    parts = []
    for identifier in draw(st.lists(IDS, max_size=7, unique=True)):
        tag = draw(st.sampled_from(sorted(SEAM_WORTHY - {"process", "collaboration"})))
        body = draw(BODIES) if tag.endswith("Event") else ""
        more = {"attachedToRef": draw(IDS)} if tag == "boundaryEvent" else {}
        name = draw(NAMES)
        name = name if name is None or not re.search("[\ufffe\uffff]", name) else "x"
        part = el(tag, f"i{identifier}", name, body, **more)
        inside = draw(st.booleans())
        parts.append(el("subProcess", f"sub{len(parts)}", None, part) if inside else part)
    return bpmn(*parts, process=f"id={quoteattr(draw(st.sampled_from(['p', 'q q'])))}")


@st.composite
def hand_written(draw: st.DrawFn, document: str) -> str:
    """OWN with some true, some wrong and some odd triples on elements of the document."""
    lines = []
    for identifier in parse_payload(document.encode()).elements:
        if re.fullmatch(r"[\w.-]+", identifier) and draw(st.booleans()):
            kinds = ["UserTask", "Task", "TimerStartEvent", "TimerCatchEvent"]
            said = draw(
                st.sampled_from(
                    [f"a proc:{draw(st.sampled_from(kinds))}", "seam:inModel :m", "seam:inModel :k",
                     'rdfs:label "own"@en', 'rdfs:comment "# not lifted"', ":likes _:b"]
                )
            )  # fmt: skip
            lines.append(
                f"<{M}#{identifier}> {said} .{draw(st.sampled_from(['', ' # mine', '  ']))}"
            )
    eol = draw(st.sampled_from(["\n", "\r\n"]))
    text = eol.join([*OWN.splitlines(), "GRAPH :own {", *lines, "}", ""])
    return text if draw(st.booleans()) else text.rstrip("\r\n")


@given(st.data())
def test_lifting_is_idempotent_and_loses_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("law")
    trig = folder / "m.trig"
    document = data.draw(documents())
    own = data.draw(hand_written(document))
    (folder / "m.bpmn").write_bytes(document.encode())
    trig.write_bytes(own.encode())
    stated = quads(trig)
    lifted(folder)
    text = trig.read_bytes().decode()
    assert own_part(text) == own
    assert stated <= quads(trig)
    assert not plan(load_graph(folder)).changed
    # Every element that can be lifted is now a subject; no other element of the model is.
    payload = parse_payload(document.encode())
    outside = {t.id for t in payload.timers if t.index_type is None}
    by_hand = {q[0] for q in stated}
    wanted = {
        f"{M}#{e.id}"
        for e in payload.elements.values()
        if e.tag in SEAM_WORTHY and e.id not in outside and not re.search(r'[ "<>#%]', e.id)
    }
    found = {q[0] for q in quads(trig) if q[0].startswith(f"{M}#")}
    assert found == wanted | {s for s in by_hand if s.startswith(f"{M}#")}
    # No element gets a second timer class from lift.
    timer_types = {"TimerStartEvent", "TimerCatchEvent"}
    for iri in found:
        said = {q[2] for q in stated if q[0] == iri and q[1].endswith("#type")}
        now = {q[2] for q in quads(trig) if q[0] == iri and q[1].endswith("#type")}
        if {s.rpartition("#")[2] for s in said} & timer_types:
            assert now == said
    # Another document later: the block follows it, the own text still stays.
    later = data.draw(documents())
    (folder / "m.bpmn").write_bytes(later.encode())
    lifted(folder)
    assert own_part(trig.read_bytes().decode()) == own
    fresh = folder / "fresh"
    fresh.mkdir()
    (fresh / "m.bpmn").write_bytes(later.encode())
    (fresh / "m.trig").write_bytes(own.encode())
    lifted(fresh)
    assert (fresh / "m.trig").read_bytes() == trig.read_bytes()
