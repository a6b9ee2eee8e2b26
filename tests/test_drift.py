"""Drift: what is said where the graph's index and the BPMN files disagree."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from fixtures.small_models import (
    AT,
    STARTED,
    STARTED_BPMN,
    WAITING,
    WAITING_BPMN,
    boundary,
    brief,
    change,
    checked,
    definitions,
    model,
    process,
    timer,
    write,
)

import seams_lab.drift as drift_module
from seams_lab.drift import drift
from seams_lab.findings import CHECKS, Finding, Findings
from seams_lab.graph import load_graph
from seams_lab.instants import to_micros
from seams_lab.model import Model, load
from seams_lab.timers import timers


def drifted(loaded: Model) -> Findings:
    """The drift alone, which is quicker than the whole check."""
    return Findings(drift(loaded, timers(loaded, to_micros(AT))))


# ---------------------------------------------------------------- D1 to D7: position and index

_HOSTS = '<startEvent id="s"/><userTask id="u"/><serviceTask id="v"/><subProcess id="w"/>'
_WAIT = timer("timeDuration", "PT1H")

#: Position → (the class its entry must have, the content of the process). The event is "e".
POSITIONS: dict[str, tuple[str | None, str]] = {
    "process start": ("Start", f'<startEvent id="e">{timer()}</startEvent>'),
    "catch": ("Catch", f'<intermediateCatchEvent id="e">{_WAIT}</intermediateCatchEvent>'),
    "catch in sub-process": (
        "Catch",
        f'<subProcess id="w"><intermediateCatchEvent id="e">{_WAIT}</intermediateCatchEvent>'
        "</subProcess>",
    ),
    "on user task": ("Catch", _HOSTS + boundary("e", _WAIT)),
    "on user task, interrupting": ("Catch", _HOSTS + boundary("e", _WAIT, True)),
    "on service task": (None, _HOSTS + boundary("e", _WAIT, on="v")),
    "on sub-process": (None, _HOSTS + boundary("e", _WAIT, on="w")),
    "on nothing": (None, _HOSTS + boundary("e", _WAIT, on="nowhere")),
    "event sub-process start": (
        None,
        '<startEvent id="s"/><subProcess id="w" triggeredByEvent="true">'
        f'<startEvent id="e" isInterrupting="false">{_WAIT}</startEvent></subProcess>',
    ),
    "sub-process start": (
        None,
        f'<startEvent id="s"/><subProcess id="w"><startEvent id="e">{_WAIT}</startEvent>'
        "</subProcess>",
    ),
    "throw": (
        None,
        '<startEvent id="s"/>'
        f'<intermediateThrowEvent id="e">{_WAIT}</intermediateThrowEvent>',
    ),
    "end": (None, f'<startEvent id="s"/><endEvent id="e">{_WAIT}</endEvent>'),
}  # fmt: skip
INDEX = {
    "no entry": "",
    "entry without class": "m:e seam:inModel ex:m .",
    "start": "m:e a proc:TimerStartEvent ; seam:inModel ex:m .",
    "catch": "m:e a proc:TimerCatchEvent ; seam:inModel ex:m .",
    "both": "m:e a proc:TimerStartEvent, proc:TimerCatchEvent ; seam:inModel ex:m .",
}


def decided(wanted: str | None, index: str, executed: bool) -> set[tuple[str, str]]:
    """What the rules say of one timer (R30 to R38, D1 to D7, ruling 11a), as a decision table."""
    typed = {"start": {"Start"}, "catch": {"Catch"}, "both": {"Start", "Catch"}}.get(index, set())
    if wanted is None:
        found = {("timer-out-of-scope", "error" if executed else "warning")}
        return found | ({("drift-out-of-scope", "error")} if typed else set())
    if not typed:
        return {("drift-unlifted-timer", "error")}
    if len(typed) == 2:
        return {("drift-both-types", "error")}
    return set() if typed == {wanted} else {("drift-wrong-type", "error")}


_INDEXED = """
GRAPH <urn:seams:graph:model:m> {
  ex:m a seam:Model .
  ex:p a proc:Process ; seam:inModel ex:m .
  INDEX
}
GRAPH <urn:seams:graph:seams> {
  ex:m seam:notation seam:BPMN ; seam:renderPayload <m.bpmn> .
  ex:p seam:detailedBy ex:m .
  EXECUTES
}
"""


@pytest.mark.parametrize("executed", [True, False], ids=["executed", "not executed"])
@pytest.mark.parametrize("index", INDEX)
@pytest.mark.parametrize("position", POSITIONS)
def test_each_position_with_each_index_entry(
    tmp_path: Path, position: str, index: str, executed: bool
) -> None:
    wanted, inside = POSITIONS[position]
    executes = "ex:c a <https://w3id.org/seams/arch#Container> ; seam:executes ex:p ."
    trig = _INDEXED.replace("INDEX", INDEX[index]).replace("EXECUTES", executes if executed else "")
    findings = drifted(model(tmp_path, trig, definitions(process(inside))))
    on_event = {(f.check, f.severity) for f in findings if f.element == "e"}
    assert on_event == decided(wanted, index, executed)
    assert {f.file for f in findings if f.element == "e"} <= {str(tmp_path / "m.bpmn")}
    # Nothing is said twice, in other words, about the event's entry in the graph.
    assert [f for f in findings if f.element.endswith("#e")] == []


NOT_TIMERS = {
    "missing": '<startEvent id="s"/>',
    "plain start": '<startEvent id="e"/>',
    "message start": '<startEvent id="e"><messageEventDefinition/></startEvent>',
    "message catch": '<intermediateCatchEvent id="e"><messageEventDefinition/>'
    "</intermediateCatchEvent>",
    "task": '<startEvent id="s"/><task id="e"/>',
    "flow": '<startEvent id="s"/><sequenceFlow id="e" sourceRef="s" targetRef="s"/>',
}


@pytest.mark.parametrize("index", ["start", "catch", "both"])
@pytest.mark.parametrize("inside", NOT_TIMERS.values(), ids=NOT_TIMERS)
def test_a_timer_class_on_what_is_no_timer(tmp_path: Path, inside: str, index: str) -> None:
    trig = _INDEXED.replace("INDEX", INDEX[index]).replace("EXECUTES", "")
    findings = drifted(model(tmp_path, trig, definitions(process(inside))))
    on_event = [f for f in findings if f.element.endswith("#e")]
    assert [f.check for f in on_event] == ["drift-not-a-timer"] * (2 if index == "both" else 1)
    assert all(f.severity == "error" and f.file.endswith("model.trig") for f in on_event)


@pytest.mark.parametrize(
    "name",
    [
        "ex:lonely",  # no fragment
        "<https://example.org/other#e>",  # no such model
        "<urn:x>",
        "<https://example.org/small/M#e>",  # IRIs are compared letter by letter
        "ex:m",  # the model itself
    ],
)
def test_a_timer_class_on_what_belongs_to_no_bpmn_model(tmp_path: Path, name: str) -> None:
    # Without this an entry like that satisfies the shapes: scheduled, and never fired.
    trig = change(STARTED, ("m:s a proc:TimerStartEvent ;", f"m:s seam:inModel ex:m .\n  {name} a "
                            "proc:TimerStartEvent ;"))  # fmt: skip
    bpmn = definitions(process('<startEvent id="s"/><endEvent id="end"/>'))
    assert [c for _, c, _ in checked(tmp_path, trig, bpmn)] == ["drift-not-a-timer"]


@pytest.mark.parametrize(
    ("entry", "clean"),
    [
        ("m:s a proc:TimerStartEvent ; seam:inModel ex:m .", True),
        ("m:s a proc:TimerStartEvent .", False),
        ("m:s a proc:TimerStartEvent ; seam:inModel ex:other .", False),
        ("m:s a proc:TimerStartEvent ; seam:inModel ex:m, ex:other .", False),
    ],
)
def test_a_timer_entry_is_in_its_own_model_only(tmp_path: Path, entry: str, clean: bool) -> None:
    # The shapes find the process of a timer through seam:inModel.
    trig = change(STARTED, ("m:s a proc:TimerStartEvent ; seam:inModel ex:m .", entry))
    found = [c for _, c, _ in checked(tmp_path, trig) if c.startswith("drift")]
    assert found == ([] if clean else ["drift-unlifted-timer"])


@pytest.mark.parametrize("identifier", ["", ' id=""', ' id="a b"'])
def test_a_timer_whose_id_makes_no_iri_is_an_error(tmp_path: Path, identifier: str) -> None:
    bpmn = change(STARTED_BPMN, ('<startEvent id="s"', f"<startEvent{identifier}"))
    assert "drift-unlifted-timer" in [c for _, c, _ in checked(tmp_path, bpmn=bpmn)]


# ---------------------------------------------------------------- other elements


@pytest.mark.parametrize(
    ("element", "worthy"),
    [
        ("task", True), ("userTask", True), ("serviceTask", True), ("businessRuleTask", True),
        ("scriptTask", True), ("sendTask", True), ("callActivity", True),
        ("exclusiveGateway", True), ("eventBasedGateway", True), ("startEvent", True),
        ("endEvent", True), ("intermediateCatchEvent", True), ("boundaryEvent", True),
        ("subProcess", False), ("sequenceFlow", False), ("dataObject", False),
    ],
)  # fmt: skip
def test_which_elements_need_an_entry(tmp_path: Path, element: str, worthy: bool) -> None:
    bpmn = change(STARTED_BPMN, ("<endEvent", f'<{element} id="x"/><endEvent'))
    expected = [("x", "drift-unlifted", "warning")] if worthy else []
    assert brief(drifted(model(tmp_path / "without", bpmn=bpmn))) == expected
    trig = change(STARTED, ("m:end seam", "m:x seam:inModel ex:m .\n  m:end seam"))
    assert brief(drifted(model(tmp_path / "with", trig, bpmn))) == []


@pytest.mark.parametrize(
    "statement",
    ["m:gone seam:inModel ex:m .", "ex:c seam:reads m:gone .", "m:gone a proc:ServiceTask ."],
    ids=["subject", "object", "typed"],
)
def test_an_entry_for_a_missing_element_dangles(tmp_path: Path, statement: str) -> None:
    trig = change(STARTED, ("  m:end", f"  {statement}\n  m:end"))
    assert ("gone", "drift-dangling", "error") in checked(tmp_path, trig)


def test_ids_are_compared_letter_by_letter_and_as_a_whole(tmp_path: Path) -> None:
    trig = change(STARTED, ("m:end seam:", "m:End seam:inModel ex:m .\n  m:en seam:"))
    assert checked(tmp_path, trig) == [
        ("End", "drift-dangling", "error"),
        ("en", "drift-dangling", "error"),
        ("end", "drift-unlifted", "warning"),
    ]


def test_a_bare_file_has_no_index_to_drift_from(tmp_path: Path) -> None:
    path = tmp_path / "a.bpmn"
    path.write_text(WAITING_BPMN.replace("PT48H", "P2H"), encoding="utf-8")
    assert brief(load(path).check(AT)) == [("t", "expression:BAD_DURATION", "error")]


@pytest.mark.parametrize("whole", [True, False], ids=["folder", "file"])
def test_an_out_of_scope_timer_in_a_bare_file_is_a_warning(tmp_path: Path, whole: bool) -> None:
    (tmp_path / "a.bpmn").write_text(definitions(process(POSITIONS["throw"][1])), encoding="utf-8")
    found = load(tmp_path if whole else tmp_path / "a.bpmn").check(AT)
    assert brief(found) == [("e", "timer-out-of-scope", "warning")]


# ---------------------------------------------------------------- payloads and their paths


def outside(tmp_path: Path) -> Path:
    """A sound BPMN file beside the model's folder, never to be read."""
    path = tmp_path / "secret.bpmn"
    path.write_text(STARTED_BPMN, encoding="utf-8")
    return path


ESCAPES = {
    "up": "../secret.bpmn",
    "up and down": "../model/../secret.bpmn",
    "absolute": "ABSOLUTE",
    "percent-encoded": "%2e%2e/secret.bpmn",
    "percent-encoded slash": "..%2Fsecret.bpmn",
    "file scheme": "file://ABSOLUTE",
    "NUL": "a%00.bpmn",
    "too long": "x" * 300 + ".bpmn",
    "empty": "",
    "the folder": ".",
    "link out": "link.bpmn",
    "circle of links": "circle.bpmn",
    "folder link out": "up/secret.bpmn",
}


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("manifest", [True, False], ids=["filePath", "relative IRI"])
def test_no_payload_outside_the_folder_is_read(tmp_path: Path, escape: str, manifest: bool) -> None:
    folder = tmp_path / "model"
    name = ESCAPES[escape].replace("ABSOLUTE", str(outside(tmp_path)))
    if manifest:
        literal = name.replace("%00", "\\u0000")
        trig = change(STARTED, ("<m.bpmn>", "payload:m")) + (
            f'GRAPH <urn:seams:graph:manifest> {{ payload:m seam:filePath "{literal}" ; '
            'seam:mediaType "application/xml" . }'
        )
    else:
        trig = change(STARTED, ("<m.bpmn>", f"<{name}>"))
    write(folder, trig, None)
    (folder / "link.bpmn").symlink_to(tmp_path / "secret.bpmn")
    (folder / "circle.bpmn").symlink_to("circle.bpmn")
    (folder / "up").symlink_to(tmp_path)
    loaded = load(folder)
    found = [f for f in loaded.check(AT) if f.check != "payload-unreferenced"]
    checks = ["payload-unusable", *(["manifest-file"] if manifest else [])]
    assert sorted(f.check for f in found) == sorted(checks)
    assert all(f.severity == "error" for f in found)
    assert loaded.timers(AT).empty


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("m.bpmn", "m.bpmn"),
        ("./m.bpmn", "m.bpmn"),
        ("deep/../m.bpmn", "m.bpmn"),
        ("deep/m.bpmn", "deep/m.bpmn"),
        ("a%20file.bpmn", "a file.bpmn"),
        ("gr%C3%BC%C3%9Fe.bpmn", "grüße.bpmn"),
    ],
)
def test_a_relative_payload_iri_is_a_path_from_the_trig_file(
    tmp_path: Path, name: str, file: str
) -> None:
    write(tmp_path / "model", change(STARTED, ("<m.bpmn>", f"<{name}>")), None)
    (tmp_path / "model" / "deep").mkdir()
    (tmp_path / "model" / file).write_text(STARTED_BPMN, encoding="utf-8")
    # However a person names the folder.
    for path in (tmp_path / "model", tmp_path / "model" / "deep" / "..",
                 tmp_path / "model" / "model.trig"):  # fmt: skip
        assert brief(load(path).check(AT)) == []


def test_a_folder_name_with_odd_letters_is_fine(tmp_path: Path) -> None:
    assert checked(tmp_path / "a b%20ü (1)~#") == []


def test_the_working_folder_itself_is_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert load(".").check(AT) == ()


def test_the_manifest_wins_over_the_relative_iri(tmp_path: Path) -> None:
    trig = STARTED + 'GRAPH <urn:g> { <m.bpmn> seam:filePath "n.bpmn" ; seam:mediaType "x" . }'
    assert ("m", "payload-unusable", "error") in checked(tmp_path / "missing", trig)
    found = checked(tmp_path / "there", trig, None, n__bpmn=STARTED_BPMN)
    assert found == []


@pytest.mark.parametrize(
    "said",
    [
        "ex:m seam:renderPayload <m.bpmn>, <n.bpmn> .",
        'ex:m seam:renderPayload payload:m . payload:m seam:filePath "m.bpmn", "n.bpmn" .',
        "ex:m seam:renderPayload payload:m .",
    ],
    ids=["two payloads", "two paths", "no path"],
)
def test_a_payload_is_named_exactly_once(tmp_path: Path, said: str) -> None:
    trig = change(STARTED, (" ; seam:renderPayload <m.bpmn>", ""), ("  ex:p seam:d", f"  {said}\n"
                  "  ex:p seam:d"))  # fmt: skip
    found = [c for _, c, _ in checked(tmp_path, trig, n__bpmn=STARTED_BPMN)]
    assert found.count("payload-unusable") == 1


def test_each_unusable_payload_is_reported_and_the_rest_still_checked(tmp_path: Path) -> None:
    trig = (
        STARTED
        + """
    GRAPH <urn:seams:graph:seams> {
      ex:gone a seam:Model ; seam:notation seam:BPMN ; seam:renderPayload <gone.bpmn> .
      ex:torn a seam:Model ; seam:notation seam:BPMN ; seam:renderPayload <torn.bpmn> .
    }"""
    )
    bpmn = change(STARTED_BPMN, ("2026-12-01T09:00:00Z", "2026-12-01"))
    assert checked(tmp_path, trig, bpmn, torn__bpmn="<definitions") == [
        ("gone", "payload-unusable", "error"),
        ("s", "expression:BAD_DATETIME", "error"),
        ("torn", "payload-unusable", "error"),
    ]


# ---------------------------------------------------------------- files that no model names


@pytest.mark.parametrize(
    ("name", "seen"),
    [("x.bpmn", True), ("X.BPMN", True), ("x.bpmn20.xml", True), ("x.xml", False)],
)
def test_a_bpmn_file_that_no_model_names(tmp_path: Path, name: str, seen: bool) -> None:
    write(tmp_path)
    (tmp_path / name).write_text(STARTED_BPMN, encoding="utf-8")
    expected = [(name, "payload-unreferenced", "warning")] if seen else []
    assert brief(load(tmp_path).check(AT)) == expected


def test_a_folder_with_a_bpmn_name_is_no_file(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "x.bpmn").mkdir()
    assert load(tmp_path).check(AT) == ()


def test_one_trig_file_of_several_does_not_judge_files_that_others_name(tmp_path: Path) -> None:
    write(tmp_path, other__bpmn=STARTED_BPMN)
    text = (tmp_path / "model.trig").read_text(encoding="utf-8")
    text = text.replace("/small/", "/other/").replace("<m.bpmn>", "<other.bpmn>")
    (tmp_path / "other.trig").write_text(text, encoding="utf-8")
    (tmp_path / ".driftignore").write_text("other#*\n", encoding="utf-8")
    assert load(tmp_path / "model.trig").check(AT) == ()
    assert brief(load(tmp_path).check(AT)) == [("*", "driftignore-unused", "warning")]
    (tmp_path / "third.bpmn").write_text(STARTED_BPMN, encoding="utf-8")
    assert load(tmp_path / "model.trig").check(AT) == ()
    assert ("third.bpmn", "payload-unreferenced", "warning") in brief(load(tmp_path).check(AT))


# ---------------------------------------------------------------- manifest

_SHA = hashlib.sha256(STARTED_BPMN.encode()).hexdigest()


def manifest(*facts: str) -> str:
    """The model with one manifest entry."""
    return change(STARTED, ("<m.bpmn>", "payload:m")) + (
        f'GRAPH <urn:seams:graph:manifest> {{ payload:m seam:filePath "m.bpmn" ; '
        f"{' ; '.join(facts)} . }}"
    )


@pytest.mark.parametrize("ci", [False, True], ids=["dev", "ci"])
@pytest.mark.parametrize(
    ("facts", "wrong"),
    [
        (['seam:mediaType "application/xml"', f'seam:checksum "sha256:{_SHA}"'], []),
        (['seam:mediaType "application/xml"', f'seam:checksum "SHA256:{_SHA.upper()}"'], []),
        (['seam:mediaType "application/xml"', f'seam:checksum "{_SHA}"'], []),
        (['seam:mediaType "application/xml"'], []),
        ([f'seam:checksum "sha256:{_SHA}"'], ["manifest-media-type"]),
        (['seam:mediaType "a"', f'seam:checksum "sha256:{_SHA[:-1]}0"'], ["manifest-checksum"]),
        (['seam:mediaType "a"', f'seam:checksum "md5:{_SHA}"'], ["manifest-checksum"]),
        (['seam:mediaType "a"', 'seam:checksum ""'], ["manifest-checksum"]),
        (['seam:checksum "x"'], ["manifest-checksum", "manifest-media-type"]),
    ],
)
def test_manifest_facts_are_warnings_and_in_ci_errors(
    tmp_path: Path, facts: list[str], wrong: list[str], ci: bool
) -> None:
    assert _SHA[-1] != "0"
    found = checked(tmp_path, manifest(*facts), ci=ci)
    assert found == [("m", check, "error" if ci else "warning") for check in wrong]


@pytest.mark.parametrize("ci", [False, True], ids=["dev", "ci"])
def test_other_severities_do_not_depend_on_ci(tmp_path: Path, ci: bool) -> None:
    trig = change(
        manifest('seam:mediaType "a"'),
        ("  m:end", "  m:gone seam:inModel ex:m .\n  m:x"),
        ("m:s a proc:TimerStartEvent", "m:s a proc:TimerCatchEvent"),
        (" seam:schedules ex:p ;", ""),
    )
    trig += 'GRAPH <urn:g> { payload:x seam:filePath "x.png" ; seam:mediaType "image/png" . }'
    assert checked(tmp_path, trig, y__bpmn="", ci=ci) == [
        ("end", "drift-unlifted", "warning"),
        ("gone", "drift-dangling", "error"),
        ("s", "drift-wrong-type", "error"),
        ("x", "drift-dangling", "error"),
        ("x", "manifest-file", "error"),
        ("y.bpmn", "payload-unreferenced", "warning"),
    ]


def test_a_checksum_is_of_bytes_and_the_fix_gives_the_right_one(tmp_path: Path) -> None:
    loaded = model(tmp_path, manifest('seam:mediaType "a"', 'seam:checksum "sha256:0"'))
    (finding,) = loaded.check(AT)
    assert f"sha256:{_SHA}" in finding.fix
    assert "'sha256:0'" in finding.message
    fixed = manifest('seam:mediaType "a"', finding.fix.partition("write ")[2])
    assert checked(tmp_path, fixed) == []


# ---------------------------------------------------------------- .driftignore

#: A model with one finding of each kind that can be hidden, and of each that cannot.
_DIRTY = change(
    WAITING, ("  m:end seam:inModel ex:m .", "  m:gone seam:inModel ex:m ."),
    ("m:t a proc:TimerCatchEvent", "m:t a proc:TimerStartEvent"),
)  # fmt: skip
_DANGLING = ("gone", "drift-dangling", "error")
_UNLIFTED = ("end", "drift-unlifted", "warning")
_SPARE = ("spare.bpmn", "payload-unreferenced", "warning")
_TIMER = ("t", "drift-wrong-type", "error")
_HIDEABLE = {_DANGLING, _UNLIFTED, _SPARE}


def with_ignore(folder: Path, text: str) -> set[tuple[str, str, str]]:
    """What drift there is in the dirty model with a .driftignore."""
    write(folder, _DIRTY, WAITING_BPMN, spare__bpmn="")
    (folder / ".driftignore").write_text(text, encoding="utf-8")
    return set(brief(drifted(load(folder))))


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("", set()),
        ("# end\n\n   \n  # m#end\n", set()),
        ("end", {_UNLIFTED}),
        ("end\n", {_UNLIFTED}),
        ("\ufeffend\n", {_UNLIFTED}),
        ("end\r\nm#gone\r\n", {_UNLIFTED, _DANGLING}),
        ("m#end", {_UNLIFTED}),
        ("m#e?d", {_UNLIFTED}),
        ("m#*", {_UNLIFTED, _DANGLING}),
        ("*", _HIDEABLE),
        ("https://example.org/small/m#gone", {_DANGLING}),
        ("https://example.org/small/m#end", {_UNLIFTED}),
        ("*.bpmn", {_SPARE}),
        ("spare.bpmn  # kept for the archive", {_SPARE}),
        ("* drift-unlifted", {_UNLIFTED}),
        ("* drift-unlifted drift-dangling", {_UNLIFTED, _DANGLING}),
        ("*   drift-unlifted  # all", {_UNLIFTED}),
    ],
)
def test_what_a_line_of_driftignore_hides(
    tmp_path: Path, text: str, hidden: set[tuple[str, str, str]]
) -> None:
    assert with_ignore(tmp_path, text) == (_HIDEABLE | {_TIMER}) - hidden


@pytest.mark.parametrize(
    "line",
    ["t", "m#t", "END", "other#end", "m#en", "nd", "end drift-dangling", "end no-such-check",
     "* drift-wrong-type", "* expression:NO_START", "* manifest-file", "* driftignore-unused"],
)  # fmt: skip
def test_a_line_that_hides_nothing_is_reported(tmp_path: Path, line: str) -> None:
    unused = (line.split()[0].rpartition("#")[2], "driftignore-unused", "warning")
    assert with_ignore(tmp_path, line) == _HIDEABLE | {_TIMER, unused}


def test_each_unused_line_is_reported_with_its_number(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / ".driftignore").write_text("# c\nnot_here\n\nnor#this\n", encoding="utf-8")
    found = load(tmp_path).check(AT)
    assert [(f.element, f.line) for f in found] == [("nor#this", 4), ("not_here", 2)]
    assert {f.file for f in found} == {str(tmp_path / ".driftignore")}


def test_two_lines_for_one_finding_are_both_used(tmp_path: Path) -> None:
    assert with_ignore(tmp_path, "end\nm#end\n") == (_HIDEABLE | {_TIMER}) - {_UNLIFTED}


def test_a_pattern_names_any_of_the_models_that_share_a_file(tmp_path: Path) -> None:
    trig = STARTED + (
        "GRAPH <urn:seams:graph:seams> { ex:z a seam:Model ; seam:notation seam:BPMN ; "
        "seam:renderPayload <m.bpmn> . }"
    )
    write(tmp_path, trig)
    unlifted = ("end", "drift-unlifted", "warning")
    assert unlifted in brief(load(tmp_path).check(AT))
    (tmp_path / ".driftignore").write_text("z#end\n", encoding="utf-8")
    found = brief(load(tmp_path).check(AT))
    assert unlifted not in found
    assert "driftignore-unused" not in [c for _, c, _ in found]


def test_a_driftignore_that_is_a_folder_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / ".driftignore").mkdir()
    assert load(tmp_path).check(AT) == ()


def test_bare_files_leave_a_driftignore_alone(tmp_path: Path) -> None:
    (tmp_path / "a.bpmn").write_text(WAITING_BPMN, encoding="utf-8")
    (tmp_path / ".driftignore").write_text("m#end\n", encoding="utf-8")
    assert load(tmp_path).check(AT) == ()


def test_every_hideable_check_and_no_other_can_be_hidden() -> None:
    assert {check for _, check, _ in _HIDEABLE} == drift_module._HIDEABLE
    assert CHECKS.keys() > drift_module._HIDEABLE


# ---------------------------------------------------------------- where a finding is


def test_a_finding_names_the_line_of_the_element(tmp_path: Path) -> None:
    bpmn = STARTED_BPMN.replace("<startEvent", "\n\n<startEvent").replace(
        "2026-12-01T", "2026-12-01"
    )
    (finding,) = model(tmp_path, bpmn=bpmn).check(AT)
    assert (finding.file, finding.line) == (str(tmp_path / "m.bpmn"), 3)


def test_a_finding_about_the_graph_names_the_file_that_says_it(tmp_path: Path) -> None:
    # Two models whose elements have the same ids, in two files; one entry dangles in each.
    for name in "ab":
        write(tmp_path, change(STARTED, ("  m:end", "  m:gone seam:inModel ex:m .\n  m:end")))
        whole = (tmp_path / "model.trig").read_text(encoding="utf-8")
        whole = whole.replace("/small/", f"/{name}/").replace("m.bpmn", f"{name}.bpmn")
        (tmp_path / f"{name}.trig").write_text("# gone\n" * (name == "b") + whole, encoding="utf-8")
        os.replace(tmp_path / "m.bpmn", tmp_path / f"{name}.bpmn")
    (tmp_path / "model.trig").unlink()
    places = {(f.element, Path(f.file).name, f.line) for f in load(tmp_path).check(AT)}
    lines = (tmp_path / "a.trig").read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "m:gone" in text)
    assert places == {
        ("https://example.org/a/m#gone", "a.trig", line),
        ("https://example.org/b/m#gone", "b.trig", line + 1),
    }


def test_an_id_that_cannot_stand_in_an_iri_is_told_to_change(tmp_path: Path) -> None:
    found = [f for f in drift_of_ids(tmp_path, "good", "no spaces") if f.check == "drift-unlifted"]
    assert {f.element: "seams-lab lift" in f.fix for f in found} == {
        "good": True,
        "no spaces": False,
    }


def drift_of_ids(folder: Path, *ids: str) -> list[Finding]:
    tasks = "".join(f'<userTask id="{i}"/>' for i in ids)
    (folder / "m.bpmn").write_text(
        '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL">'
        f'<process id="p">{tasks}</process></definitions>'
    )
    (folder / "m.trig").write_text(
        "@prefix seam: <https://w3id.org/seams/seam#> ."
        "@prefix proc: <https://w3id.org/seams/proc#> ."
        "<https://e.org/m> a seam:Model ; seam:notation seam:BPMN ; seam:renderPayload <m.bpmn> ."
        "<https://e.org/p> a proc:Process ; seam:detailedBy <https://e.org/m> ."
    )
    graph = load_graph(folder)
    return drift(graph, timers(graph, 0))
