"""The whole check: the broken models, the cross-checks, the warnings, one stable list."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path

import pyoxigraph as ox
import pytest
from fixtures.small_models import (
    AT,
    BASE,
    PREFIXES,
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
from hypothesis import given, settings
from hypothesis import strategies as st

from seams_lab.errors import ResolutionError
from seams_lab.findings import CHECKS, SEVERITIES, Finding, Findings
from seams_lab.instants import to_micros, to_text
from seams_lab.lift import plan
from seams_lab.model import load

BROKEN = Path(__file__).parents[1] / "models" / "broken"
FOLDERS = sorted(path for path in BROKEN.iterdir() if path.is_dir())
each_broken = pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)

# ---------------------------------------------------------------- models/broken


def expected(folder: Path) -> list[dict[str, str]]:
    """The findings that a broken model is there to show."""
    rows: list[dict[str, str]] = json.loads((folder / "expected.json").read_text("utf-8"))
    return rows


def told(findings: Findings, folder: Path) -> list[dict[str, str]]:
    """Findings as expected.json has them."""
    return [
        {
            "file": Path(f.file).relative_to(folder).as_posix(),
            "element": f.element,
            "check": f.check,
            "severity": f.severity,
        }
        for f in findings
    ]


def in_order(rows: list[dict[str, str]]) -> list[tuple[str, ...]]:
    """Rows as sorted tuples: a finding that comes twice counts twice."""
    return sorted((r["file"], r["element"], r["check"], r["severity"]) for r in rows)


@each_broken
def test_a_broken_model_shows_its_findings_and_no_others(folder: Path) -> None:
    found = load(folder).check(AT)
    assert in_order(told(found, folder)) == in_order(expected(folder))
    assert found, "a broken model has a finding"


@each_broken
def test_a_finding_says_what_where_and_what_to_do(folder: Path) -> None:
    findings = load(folder).check(AT)
    for finding in findings:
        assert finding.check.partition(":")[0] in CHECKS
        assert finding.severity in SEVERITIES
        for text in (finding.element, finding.message, finding.fix):
            assert text.strip() == text != ""
            assert "\n" not in text
        assert finding.fix[0].islower() or finding.fix.startswith("'")
        assert not finding.fix.endswith(".")
        # The line that is shown quotes the element; it exists in the file that is named.
        assert finding.element in repr(findings)
        lines = Path(finding.file).read_text("utf-8").splitlines()
        name = re.split(r"[#/]", finding.element)[-1]
        assert 1 <= finding.line <= len(lines) or finding.check == "payload-unreferenced" or (
            finding.check == "manifest-checksum"
        )  # fmt: skip
        if finding.line:
            assert name in lines[finding.line - 1]


def test_each_check_is_shown_by_a_broken_model() -> None:
    shown = {row["check"].partition(":")[0] for folder in FOLDERS for row in expected(folder)}
    assert shown == set(CHECKS)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_both_severities_are_shown(severity: str) -> None:
    assert severity in {row["severity"] for folder in FOLDERS for row in expected(folder)}


def readme_table() -> str:
    """The table of models/broken/README.md, made from the models."""
    rows = ["| model | what is wrong | findings |", "|---|---|---|"]
    for folder in FOLDERS:
        head = (folder / "model.trig").read_text("utf-8").partition("\n\n")[0]
        wrong = head.replace("\n# ", " ").removeprefix("# Wrong: ")
        seen = sorted({(r["check"], r["severity"]) for r in expected(folder)})
        findings = ", ".join(f"`{check}` ({severity})" for check, severity in seen)
        rows.append(f"| [{folder.name}]({folder.name}) | {wrong} | {findings} |")
    return "\n".join(rows)


def test_the_readme_lists_the_broken_models() -> None:
    text = (BROKEN / "README.md").read_text("utf-8")
    assert readme_table() in text, f"put this table there:\n{readme_table()}"


#: Model → (file, old text, new text)…: what the fix of its findings says.
MENDS: dict[str, list[tuple[str, str, str]]] = {
    "store_is_sempkm": [("model.trig", '"SemPKM"', '"PostgreSQL 16"')],
    "store_twice": [("model.trig", "seam:storedIn ex:db, ex:files", "seam:storedIn ex:db")],
    "wait_without_store": [("model.trig", "    seam:deployedTo ex:node01 .\n  ex:db",
                            "    seam:storedIn ex:db ; seam:deployedTo ex:node01 .\n  ex:db")],
    "wait_on_two_stores": [("model.trig", "seam:storedIn ex:batch_db", "seam:storedIn ex:db")],
    "scheduler_missing": [("model.trig", "seam:executes ex:nightly_process ;",
                           "seam:executes ex:nightly_process ; "
                           "seam:schedules ex:nightly_process ;")],
    "schedule_not_executed": [("model.trig", "seam:schedules ex:nightly_process ;",
                               "seam:schedules ex:nightly_process ; "
                               "seam:executes ex:nightly_process ;")],
    "container_unplaced": [("model.trig", "    seam:storedIn ex:db .",
                            "    seam:storedIn ex:db ; seam:deployedTo ex:node01 .\n"
                            "  ex:db seam:deployedTo ex:node01 .")],
    "d1_start_not_lifted": [("model.trig", "nightly:every_night seam:inModel",
                             "nightly:every_night a proc:TimerStartEvent ; seam:inModel")],
    "d1_start_lifted_as_catch": [("model.trig", "proc:TimerCatchEvent", "proc:TimerStartEvent")],
    "d6_expression_without_start": [("nightly.bpmn", '"R/P1D"', '"R/2026-11-09T08:00:00Z/P1D"')],
    "d7_both_types": [("model.trig", ", proc:TimerCatchEvent", "")],
    "payload_with_doctype": [("review.bpmn",
                              '<!DOCTYPE definitions [ <!ENTITY wait "PT48H"> ]>', ""),
                             ("review.bpmn", "&wait;", "PT48H")],
    "months_or_minutes": [("review.bpmn", "P10M", "PT10M")],
    "boundary_without_end": [("review.bpmn", '"R/', '"R3/')],
    "timer_unreachable": [("review.bpmn", 'cancelActivity="true"', 'cancelActivity="false"')],
    "firings_missed": [("nightly.bpmn", "2026-01-01T", "2026-10-31T")],
}  # fmt: skip


@pytest.mark.parametrize("name", MENDS)
def test_a_model_that_is_mended_as_the_fix_says_is_clean(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    shutil.copytree(BROKEN / name, folder)
    for file, old, new in MENDS[name]:
        text = (folder / file).read_text("utf-8")
        assert text.count(old) == 1
        (folder / file).write_text(text.replace(old, new), "utf-8")
    assert load(folder).check(AT) == ()


@pytest.mark.parametrize(
    "name",
    ["d1_start_not_lifted", "d2_catch_not_lifted", "drift_unlifted", "d1_start_in_no_model"],
)
def test_lift_mends_what_its_fix_promises(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    shutil.copytree(BROKEN / name, folder)
    before = load(folder).check(AT)
    named = {f.check for f in before if "run seams-lab lift" in f.fix or "inModel" in f.fix}
    plan(load(folder)).write()
    assert named
    assert named & {f.check for f in load(folder).check(AT)} == set()


# ---------------------------------------------------------------- stores (ruling 13, R66, A21)


def stored(*technologies: str | None) -> str:
    """Triples for stores of container c, each with its arch:technology or none."""
    lines = []
    for number, technology in enumerate(technologies):
        said = f'; arch:technology "{technology}"' if technology is not None else ""
        lines.append(f"ex:d{number} a arch:Container {said} ; seam:deployedTo ex:n .")
        lines.append(f"ex:c seam:storedIn ex:d{number} .")
    return "GRAPH <urn:seams:graph:seams> { " + "\n".join(lines) + " }"


@pytest.mark.parametrize(
    ("technologies", "fine"),
    [
        ([], False),
        (["SemPKM"], False),
        ([None], False),
        (["Redis", "SemPKM"], False),
        (["PostgreSQL 16"], True),
        (["postgresql"], True),
        (["POSTGRESQL, TimescaleDB"], True),
        (["SQLite 3"], True),
        (["sqlite"], True),
        (["MySQL"], False),
        (["SemPKM", "PostgreSQL"], True),
        (["PostgreSQL", "SQLite"], False),
        (["PostgreSQL", "PostgreSQL"], False),
    ],
)
@pytest.mark.parametrize("role", ["schedule-store", "wait-store"])
def test_who_keeps_time_needs_exactly_one_relational_store(
    tmp_path: Path, role: str, technologies: list[str | None], fine: bool
) -> None:
    trig, bpmn = (STARTED, STARTED_BPMN) if role == "schedule-store" else (WAITING, WAITING_BPMN)
    trig = change(trig, (" seam:storedIn ex:db ;", "")) + stored(*technologies)
    assert checked(tmp_path, trig, bpmn) == ([] if fine else [("c", role, "error")])


def test_a_container_without_timers_needs_no_store(tmp_path: Path) -> None:
    trig = change(WAITING, (" seam:storedIn ex:db ;", ""), ("  m:t a proc:TimerCatchEvent ; "
                  "seam:inModel ex:m .\n", ""))  # fmt: skip
    bpmn = definitions(process('<startEvent id="s"/><userTask id="u"/><endEvent id="end"/>'))
    assert checked(tmp_path, trig, bpmn) == []


def test_one_finding_for_a_container_that_schedules_and_waits(tmp_path: Path) -> None:
    trig = change(STARTED, (" seam:storedIn ex:db ;", ""), ("  m:end", "  m:t a "
                  "proc:TimerCatchEvent ; seam:inModel ex:m .\n  m:end"))  # fmt: skip
    wait = (
        f'<intermediateCatchEvent id="t">{timer("timeDuration", "PT1H")}</intermediateCatchEvent>'
    )
    bpmn = change(STARTED_BPMN, ("<endEvent", f"{wait}<endEvent"))
    assert checked(tmp_path, trig, bpmn) == [("c", "schedule-store", "error")]


#: Container → store, and whether a timer that waits in one is seen by all of them.
@pytest.mark.parametrize(
    ("stores", "found"),
    [
        ({"c": "db", "c2": "db"}, []),
        ({"c": "db", "c2": "db2"}, [("p", "wait-stores-differ", "error")]),
        ({"c": "db", "c2": "db2", "c3": "db"}, [("p", "wait-stores-differ", "error")]),
        ({"c": "db", "c2": None}, [("c2", "wait-store", "error")]),
        (
            {"c": "db", "c2": "db2", "c3": None},
            [("c3", "wait-store", "error"), ("p", "wait-stores-differ", "error")],
        ),
    ],
)
def test_containers_that_execute_one_waiting_process_share_its_store(
    tmp_path: Path, stores: dict[str, str | None], found: list[tuple[str, str, str]]
) -> None:
    more = ['ex:db2 a arch:Container ; arch:technology "SQLite" .']
    for container, store in stores.items():
        if container != "c":
            more.append(f"ex:{container} a arch:Container ; seam:executes ex:p ; "
                        f"seam:deployedTo ex:n .")  # fmt: skip
            more += [f"ex:{container} seam:storedIn ex:{store} ."] if store else []
    trig = WAITING + "GRAPH <urn:seams:graph:seams> { " + "\n".join(more) + " }"
    assert checked(tmp_path, trig, WAITING_BPMN) == found


def test_stores_may_differ_where_nothing_waits(tmp_path: Path) -> None:
    trig = STARTED + (
        'GRAPH <urn:seams:graph:seams> { ex:db2 a arch:Container ; arch:technology "SQLite" . '
        "ex:c2 a arch:Container ; seam:executes ex:p ; seam:storedIn ex:db2 ; "
        "seam:deployedTo ex:n . }"
    )
    assert checked(tmp_path, trig) == []


@pytest.mark.parametrize(
    "definition",
    [timer("timeDuration", "PT48H"), timer("timeDuration", "P2H"), "<timerEventDefinition/>"],
    ids=["sound", "refused", "empty"],
)
@pytest.mark.parametrize("lifted", [True, False], ids=["lifted", "not lifted"])
def test_a_store_is_asked_for_whatever_else_is_wrong_with_the_timer(
    tmp_path: Path, definition: str, lifted: bool
) -> None:
    trig = change(WAITING, (" seam:storedIn ex:db ;", ""))
    trig = trig if lifted else change(trig, ("m:t a proc:TimerCatchEvent ;", "m:t"))
    bpmn = change(WAITING_BPMN, (timer("timeDuration", "PT48H"), definition))
    assert ("c", "wait-store", "error") in checked(tmp_path, trig, bpmn)


# ---------------------------------------------------------------- placement (ruling 14)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ([], []),
        ([(" ; seam:deployedTo ex:n .\n  ex:db", " .\n  ex:db")], ["c"]),
        ([("  ex:db seam:deployedTo ex:n .\n", "")], ["db"]),
        # A SQLite file lies beside its container and needs no node of its own …
        ([("  ex:db seam:deployedTo ex:n .\n", ""), ('"PostgreSQL"', '"SQLite"')], []),
        # … and no other technology does.
        ([("  ex:db seam:deployedTo ex:n .\n", ""), ('"PostgreSQL"', '"SQLite", "Python"'),
          ("seam:storedIn ex:db", "seam:storedIn ex:db . ex:db seam:executes ex:p ; "
           "seam:storedIn ex:db . ex:c seam:storedIn ex:db")], ["db"]),
    ],
)  # fmt: skip
def test_what_runs_or_stores_a_process_is_deployed(
    tmp_path: Path, changes: list[tuple[str, str]], found: list[str]
) -> None:
    unplaced = [e for e, c, _ in checked(tmp_path, change(STARTED, *changes))
                if c == "container-unplaced"]  # fmt: skip
    assert unplaced == found


def test_a_container_that_neither_runs_nor_stores_may_lie_nowhere(tmp_path: Path) -> None:
    assert checked(tmp_path, STARTED + "GRAPH <urn:g> { ex:web a arch:Container . }") == []


# ---------------------------------------------------------------- processes (ruling 11, A9)

_TWO = definitions(
    process(f'<startEvent id="s">{timer()}</startEvent><endEvent id="end"/>'),
    process('<startEvent id="s2"/>', "q"),
)
_Q = " seam:inModel ex:m ."


@pytest.mark.parametrize(
    ("bpmn", "entries", "detailing", "found"),
    [
        (STARTED_BPMN, "", "ex:p", False),
        (STARTED_BPMN, "", "ex:other_name", False),
        (STARTED_BPMN, "", "ex:p, ex:q", True),
        (STARTED_BPMN, "", "", True),
        (_TWO, f"m:s2{_Q} m:q a proc:Process ;{_Q}", "ex:p", True),
        (_TWO, f"m:s2{_Q}", "ex:p, ex:q", True),
    ],
    ids=["one and one", "another name", "two and one", "none and one", "one and two", "two, two"],
)
def test_a_timer_started_model_is_one_process_in_graph_and_file(
    tmp_path: Path, bpmn: str, entries: str, detailing: str, found: bool
) -> None:
    processes = [p for p in detailing.split(", ") if p]
    details = "".join(f"{p} a proc:Process ; seam:detailedBy ex:m .\n  " for p in processes)
    trig = change(
        STARTED,
        ("  ex:p a proc:Process ; seam:inModel ex:m .\n", f"  {entries}\n"),
        ("  ex:p seam:detailedBy ex:m .", f"  {details}"),
    )
    checks = [(e, s) for e, c, s in checked(tmp_path, trig, bpmn) if c == "process-model"]
    assert checks == ([("m", "error")] if found else [])


@pytest.mark.parametrize(
    ("ids", "names", "clear"),
    [
        (["p"], ["p"], True),
        (["p"], ["renamed"], True),
        (["p", "q"], ["p", "q"], True),
        (["p", "q"], ["p", "renamed"], True),
        (["p", "q"], ["p"], True),  # q is no process of the graph
        (["p"], ["a", "b"], False),
        (["p", "q"], ["a", "b"], False),
        (["p", "q"], ["renamed"], False),
    ],
)
def test_it_is_clear_which_process_holds_a_waiting_timer(
    tmp_path: Path, ids: list[str], names: list[str], clear: bool
) -> None:
    waits = '<userTask id="u"/>' + boundary("t", timer("timeDuration", "PT48H"))
    bpmn = definitions(*(process(waits if i == "p" else "", i) for i in ids))
    details = "".join(
        f"ex:{n} a proc:Process ; seam:detailedBy ex:m . ex:c seam:executes ex:{n} .\n  "
        for n in names
    )
    trig = change(
        WAITING,
        ("  ex:p a proc:Process ; seam:inModel ex:m .\n", ""),
        ("  ex:p seam:detailedBy ex:m .", f"  {details}"),
        ("seam:executes ex:p ; ", ""),
    )
    found = [e for e, c, _ in checked(tmp_path, trig, bpmn) if c == "process-model"]
    assert found == ([] if clear else ["m"])


def test_an_unreferenced_process_is_not_taken_for_the_one_that_is_executed(tmp_path: Path) -> None:
    # Process p is executed, and q, in the same file, is not: its throw timer never runs.
    out = f'<startEvent id="s2"/><endEvent id="x">{timer()}</endEvent>'
    bpmn = definitions(
        process('<startEvent id="s"/><userTask id="u"/><endEvent id="end"/>'
                + boundary("t", timer("timeDuration", "PT48H"))),
        process(out, "q"),
    )  # fmt: skip
    trig = change(WAITING, ("  m:end", "  m:s2 seam:inModel ex:m .\n  m:end"))
    found = checked(tmp_path, trig, bpmn)
    assert ("x", "timer-out-of-scope", "warning") in found
    assert ("q", "drift-unlifted", "warning") in found


# ---------------------------------------------------------------- two triggers (A11, ruling 16)

_BUTTON = (
    "GRAPH <urn:seams:graph:seams> { ex:button a ifml:Event ; seam:triggers ex:p . "
    "ex:ch a comm:Channel . }"
)
_SUBSCRIBED = change(
    WAITING,
    ("m:s seam:inModel", "m:s a proc:MessageCatchEvent ; seam:inModel"),
    ("  ex:p seam:detailedBy", "  m:s seam:subscribesTo ex:ch .\n  ex:p seam:detailedBy"),
)


@pytest.mark.parametrize("button", [True, False], ids=["button", "no button"])
@pytest.mark.parametrize(
    ("how", "starts_itself"),
    [("timer", True), ("channel", True), ("plain subscribed start", True), ("nothing", False),
     ("message without channel", False), ("subscribed catch inside", False)],
)  # fmt: skip
def test_a_process_that_starts_itself_has_no_button(
    tmp_path: Path, how: str, starts_itself: bool, button: bool
) -> None:
    message = '<startEvent id="s"><messageEventDefinition/></startEvent>'
    catch = '<intermediateCatchEvent id="s"><messageEventDefinition/></intermediateCatchEvent>'
    plain = '<startEvent id="s"/>'
    trig, bpmn = {
        "timer": (STARTED, STARTED_BPMN),
        "channel": (_SUBSCRIBED, change(WAITING_BPMN, (plain, message))),
        "plain subscribed start": (_SUBSCRIBED, WAITING_BPMN),
        "nothing": (WAITING, WAITING_BPMN),
        "message without channel": (WAITING, change(WAITING_BPMN, (plain, message))),
        "subscribed catch inside": (_SUBSCRIBED, change(WAITING_BPMN, (plain, catch))),
    }[how]
    more = _BUTTON if button else "GRAPH <urn:seams:graph:seams> { ex:ch a comm:Channel . }"
    found = [("p", "process-two-triggers", "warning")] if button and starts_itself else []
    assert checked(tmp_path, trig + more, bpmn) == found


# ---------------------------------------------------------------- the seams graph (ADR-0001)


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("GRAPH <urn:g> { ex:c seam:presents ex:m . }", True),
        ("ex:c seam:presents ex:m .", True),  # the default graph
        ("GRAPH <urn:seams:graph:manifest> { ex:c seam:presents ex:m . }", True),
        ("GRAPH <urn:seams:graph:seams> { ex:c seam:presents ex:m . }", False),
        ("GRAPH <urn:g> { ex:c seam:inModel ex:m . }", False),
        ('GRAPH <urn:g> { ex:c arch:description "x" . }', False),
        ('GRAPH <urn:g> { ex:c a arch:Container ; arch:dependsOn ex:db . }', False),
    ],
)  # fmt: skip
def test_cross_layer_triples_stand_in_the_seams_graph(
    tmp_path: Path, statement: str, found: bool
) -> None:
    expected_findings = [("c", "seam-misplaced", "warning")] if found else []
    assert checked(tmp_path, STARTED + statement) == expected_findings


def test_a_triple_in_both_places_is_still_misplaced_once_per_graph(tmp_path: Path) -> None:
    copies = (
        "GRAPH <urn:g> { ex:c seam:executes ex:p . } GRAPH <urn:h> { ex:c seam:executes ex:p . }"
    )
    findings = model(tmp_path, STARTED + copies).check(AT)
    assert [f.check for f in findings] == ["seam-misplaced"] * 2
    assert {f.message.rpartition(" ")[2] for f in findings} == {"urn:g", "urn:h"}


@pytest.mark.parametrize("odd", ["<<( ex:a ex:b ex:c )>>", "[]", "()", '"text"', "4", '"x"@en'])
@pytest.mark.filterwarnings("ignore")  # rdflib's, about a term that is no IRI
def test_an_odd_object_is_a_finding_and_never_a_traceback(tmp_path: Path, odd: str) -> None:
    predicates = [
        "schedules",
        "executes",
        "storedIn",
        "deployedTo",
        "renderPayload",
        "detailedBy",
        "notation",
        "inModel",
        "triggers",
        "filePath",
        "checksum",
        "subscribesTo",
    ]
    said = "".join(f"ex:{p} seam:{p} {odd} . ex:all seam:{p} {odd} .\n" for p in predicates)
    findings = model(tmp_path, STARTED + f"GRAPH <urn:seams:graph:seams> {{ {said} }}").check(AT)
    assert {"schedules", "executes", "storedIn", "deployedTo", "all"} <= {
        e for e, _, _ in brief(findings)
    }


# ---------------------------------------------------------------- legal, likely wrong (ruling 10)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("P10M", True), ("P12M", True), ("P30M", True), ("P90M", True), ("P010M", True),
        ("P100M", True), ("P9M", False), ("P1M", False), ("P001M", False), ("PT10M", False),
        ("P10D", False), ("P1Y10M", False), ("P10MT1H", False), ("P10W", False), ("P10Y", False),
    ],
)  # fmt: skip
def test_ten_months_may_mean_ten_minutes(tmp_path: Path, text: str, found: bool) -> None:
    expected_here = [("t", "months-or-minutes", "warning")] if found else []
    bpmn = change(WAITING_BPMN, ("PT48H", text))
    assert checked(tmp_path / "wait", WAITING, bpmn) == expected_here
    assert checked(tmp_path / "cycle", bpmn=cycle(f"R/2026-12-01T09:00:00Z/{text}")) == (
        [("s", "months-or-minutes", "warning")] if found else []
    )


def cycle(text: str) -> str:
    """The timer-started model's BPMN with one cycle."""
    return definitions(
        process(f'<startEvent id="s">{timer("timeCycle", text)}</startEvent><endEvent id="end"/>')
    )


@pytest.mark.parametrize(
    ("period", "found"),
    [("PT59S", True), ("PT1S", True), ("PT60S", False), ("PT1M", False), ("P1M", False),
     ("P1MT1S", False)],
)  # fmt: skip
def test_a_period_under_a_minute_is_seldom_meant(tmp_path: Path, period: str, found: bool) -> None:
    assert checked(tmp_path, bpmn=cycle(f"R/2026-11-02T00:00:00Z/{period}")) == (
        [("s", "short-period", "warning")] if found else []
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [("R/2026-11-02T00:00:00Z/P1D", True), ("R3/2026-11-02T00:00:00Z/P1D", False),
     ("R/2026-01-02T00:00:00Z/P1D", True)],
)  # fmt: skip
def test_a_boundary_cycle_without_end(tmp_path: Path, text: str, found: bool) -> None:
    bpmn = change(WAITING_BPMN, (timer("timeDuration", "PT48H"), timer("timeCycle", text)))
    assert checked(tmp_path, WAITING, bpmn) == (
        [("t", "endless-boundary", "warning")] if found else []
    )
    assert checked(tmp_path / "start", bpmn=cycle(text)) == []


@pytest.mark.parametrize(
    ("text", "at", "found"),
    [
        # The 1,000th and 1,001st firing of an hourly cycle, to the microsecond.
        ("R/2026-01-01T00:00:00Z/PT1H", "2026-02-11T15:00:00Z", False),
        ("R/2026-01-01T00:00:00Z/PT1H", "2026-02-11T15:59:59.999999Z", False),
        ("R/2026-01-01T00:00:00Z/PT1H", "2026-02-11T16:00:00Z", True),
        ("R1000/2026-01-01T00:00:00Z/PT1H", "2030-01-01T00:00:00Z", False),
        ("R1001/2026-01-01T00:00:00Z/PT1H", "2030-01-01T00:00:00Z", True),
        ("R/1900-01-31T00:00:00Z/P1M", "1983-04-30T00:00:00Z", False),
        ("R/1900-01-31T00:00:00Z/P1M", "1983-05-31T00:00:00Z", True),
        ("R/2026-01-01T00:00:00Z/PT1H", "2025-12-31T00:00:00Z", False),
        ("R/0001-01-01T00:00:00Z/P1D", "9999-12-31T23:59:59Z", True),
    ],
)
def test_more_than_a_thousand_missed_firings(
    tmp_path: Path, text: str, at: str, found: bool
) -> None:
    findings = model(tmp_path, bpmn=cycle(text)).check(at)
    assert brief(findings) == ([("s", "many-missed", "warning")] if found else [])


def test_the_number_missed_is_in_the_message(tmp_path: Path) -> None:
    (finding,) = model(tmp_path, bpmn=cycle("R/2026-01-01T00:00:00Z/PT1H")).check(
        "2026-02-11T16:30:00Z"
    )
    assert "1,001 firings" in finding.message
    assert "skips 1,000" in finding.message


def test_a_waiting_cycle_misses_nothing_before_it_is_armed(tmp_path: Path) -> None:
    text = "R2000000/2026-01-01T00:00:00Z/PT1M"  # ruling 19a
    bpmn = change(WAITING_BPMN, (timer("timeDuration", "PT48H"), timer("timeCycle", text)))
    assert checked(tmp_path, WAITING, bpmn) == []


_DATE, _DURATION, _CYCLE = "timeDate", "timeDuration", "timeCycle"
Due = tuple[str, str, bool]


@pytest.mark.parametrize(
    ("first", "second", "unreachable"),
    [
        # Two durations from one arming: the shorter one comes first.
        ((_DURATION, "PT1H", True), (_DURATION, "PT2H", False), "t2"),
        ((_DURATION, "PT1H", True), (_DURATION, "PT2H", True), "t2"),
        ((_DURATION, "PT1H", False), (_DURATION, "PT2H", True), None),
        ((_DURATION, "PT1H", False), (_DURATION, "PT2H", False), None),
        ((_DURATION, "PT3H", True), (_DURATION, "PT2H", True), "t1"),
        ((_DURATION, "PT60M", True), (_DURATION, "PT1H", False), "t2"),
        ((_DURATION, "PT1H", False), (_DURATION, "PT60M", True), None),
        # Dates and cycles are compared by the calendar.
        ((_DATE, "2026-12-01T00:00:00Z", True), (_DATE, "2026-12-02T00:00:00Z", True), "t2"),
        ((_DATE, "2026-12-02T00:00:00Z", False), (_DATE, "2026-12-01T00:00:00Z", True), "t1"),
        ((_DATE, "2026-12-01T02:00:00+02:00", True), (_DATE, "2026-11-30T23:00:00Z", True), "t1"),
        ((_DATE, "2026-12-01T00:00:00Z", True), (_CYCLE, "R3/2026-12-02T00:00:00Z/P1D", False),
         "t2"),
        # Its first firings come before the date: it is reached.
        ((_DATE, "2026-12-01T00:00:00Z", True), (_CYCLE, "R9/2026-11-30T00:00:00Z/P1D", False),
         None),
        # A date to come and a duration: the instance decides.
        ((_DATE, "2026-11-02T00:00:00Z", True), (_DURATION, "P30D", False), None),
        ((_DURATION, "PT1H", True), (_DATE, "2026-12-01T00:00:00Z", False), None),
        # A date that is past is due at once.
        ((_DATE, "2026-10-01T00:00:00Z", True), (_DURATION, "PT1H", False), "t2"),
        ((_DATE, "2026-11-01T00:00:00Z", True), (_DURATION, "PT1H", False), "t2"),
        ((_DATE, "2026-10-01T00:00:00Z", False), (_DURATION, "PT1H", True), None),
    ],
)  # fmt: skip
def test_a_timer_that_an_earlier_one_cuts_off(
    tmp_path: Path, first: Due, second: Due, unreachable: str | None
) -> None:
    both = "".join(
        boundary(identifier, timer(kind, text), interrupting)
        for identifier, (kind, text, interrupting) in [("t1", first), ("t2", second)]
    )
    bpmn = change(WAITING_BPMN, (boundary("t", timer(_DURATION, "PT48H")), both))
    entries = "".join(f"m:{t} a proc:TimerCatchEvent ; seam:inModel ex:m .\n" for t in ("t1", "t2"))
    trig = change(WAITING, ("m:t a proc:TimerCatchEvent ; seam:inModel ex:m .\n", entries))
    findings = [f for f in model(tmp_path, trig, bpmn).check(AT) if f.check != "endless-boundary"]
    assert [(f.check, f.element, f.severity) for f in findings] == (
        [("unreachable-timer", unreachable, "warning")] if unreachable else []
    )
    for finding in findings:
        assert {"t1": "t2", "t2": "t1"}[finding.element] in finding.message


def test_timers_on_two_tasks_do_not_cut_each_other_off(tmp_path: Path) -> None:
    bpmn = change(
        WAITING_BPMN,
        ("<endEvent", '<userTask id="u2"/>' + boundary("t2", timer(_DURATION, "PT1H"), True, "u2")
         + "<endEvent"),
    )  # fmt: skip
    entries = "  m:u2 seam:inModel ex:m .\n  m:t2 a proc:TimerCatchEvent ; seam:inModel ex:m .\n"
    assert checked(tmp_path, change(WAITING, ("  m:end", f"{entries}  m:end")), bpmn) == []


def test_warnings_about_a_timer_hold_in_a_bare_file_too(tmp_path: Path) -> None:
    path = tmp_path / "a.bpmn"
    path.write_text(cycle("R/2026-01-01T00:00:00Z/PT5S"), encoding="utf-8")
    assert brief(load(path).check(AT)) == [
        ("s", "many-missed", "warning"),
        ("s", "short-period", "warning"),
    ]


# ---------------------------------------------------------------- one list, all at once

_TEN_FAULTS = change(
    STARTED,
    ("m:s a proc:TimerStartEvent ;", "m:s a proc:TimerStartEvent, proc:TimerCatchEvent ;"),
    ("  m:end seam:inModel ex:m .", "  m:gone seam:inModel ex:m ."),
    ('"PostgreSQL"', '"SemPKM"'),
    ("<m.bpmn>", "payload:m"),
    ("  ex:db seam:deployedTo ex:n .\n", ""),
) + """
GRAPH <urn:seams:graph:seams> {
  ex:lost a seam:Model ; seam:notation seam:BPMN ; seam:renderPayload <lost.bpmn> .
  ex:button a ifml:Event ; seam:triggers ex:p .
}
GRAPH <urn:g> { payload:m seam:filePath "m.bpmn" ; seam:checksum "sha256:0" .
  ex:n seam:presents ex:m . }
"""  # fmt: skip
_TEN_FAULTS_BPMN = cycle("R/2026-11-02T00:00:00Z/PT5S").replace(
    "</process>", f'<intermediateThrowEvent id="x">{timer()}</intermediateThrowEvent></process>'
)
_ALL_TEN = [
    ("c", "schedule-store", "error"),
    ("db", "container-unplaced", "error"),
    ("end", "drift-unlifted", "warning"),
    ("gone", "drift-dangling", "error"),
    ("lost", "payload-unusable", "error"),
    ("m", "manifest-checksum", "warning"),
    ("m", "manifest-media-type", "warning"),
    ("n", "seam-misplaced", "warning"),
    ("n", "shape:PresentsShape", "error"),
    ("p", "process-two-triggers", "warning"),
    ("s", "drift-both-types", "error"),
    ("s", "short-period", "warning"),
    ("spare.bpmn", "payload-unreferenced", "warning"),
    ("x", "timer-out-of-scope", "error"),
]


def test_all_findings_are_reported_at_once(tmp_path: Path) -> None:
    assert checked(tmp_path, _TEN_FAULTS, _TEN_FAULTS_BPMN, spare__bpmn="") == _ALL_TEN


def test_a_check_twice_says_the_same_in_the_same_order(tmp_path: Path) -> None:
    loaded = model(tmp_path, _TEN_FAULTS, _TEN_FAULTS_BPMN, spare__bpmn="")
    first = loaded.check(AT)
    assert loaded.check(AT) == first
    assert load(tmp_path).check(AT) == first
    keys = [(f.file, f.element, f.check) for f in first]
    assert keys == sorted(keys)
    assert len(set(first)) == len(first)


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32), parts=st.integers(1, 3))
def test_neither_the_order_nor_the_file_of_a_triple_matters(
    tmp_path_factory: pytest.TempPathFactory, seed: int, parts: int
) -> None:
    """Shuffle all quads over some files: the findings are the same, apart from their place."""
    folder = tmp_path_factory.mktemp("shuffled")
    write(folder, _TEN_FAULTS, _TEN_FAULTS_BPMN, spare__bpmn="")
    text, base = PREFIXES + _TEN_FAULTS, folder.as_uri() + "/"
    quads = list(ox.parse(text, format=ox.RdfFormat.TRIG, base_iri=base))
    (folder / "model.trig").unlink()
    rng = random.Random(seed)
    rng.shuffle(quads)
    for part in range(parts):
        lines = [
            f"GRAPH {q.graph_name} {{ {q.subject} {q.predicate} {q.object} . }}\n"
            for q in quads[part::parts]
        ]
        (folder / f"{rng.choice('abc')}{part}.trig").write_text("".join(lines), encoding="utf-8")
    found = load(folder).check(AT)
    assert brief(found) == _ALL_TEN
    assert {Path(f.file).suffix for f in found} == {".trig", ".bpmn"}


@settings(max_examples=12)
@given(at=st.integers(to_micros("0001-01-01"), to_micros("9999-12-31")))
def test_the_instant_of_the_check_changes_only_the_findings_that_count_from_it(at: int) -> None:
    loaded = load(BROKEN / "d6_expressions_refused")
    assert in_order(told(loaded.check(to_text(at)), loaded.root)) == in_order(
        expected(BROKEN / "d6_expressions_refused")
    )


def test_what_the_check_calls_an_error_the_resolver_refuses() -> None:
    for name, predicate in [("store_is_sempkm", "seam:schedules"),
                            ("wait_without_store", "seam:executes")]:  # fmt: skip
        loaded = load(BROKEN / name)
        (finding,) = loaded.check(AT)
        with pytest.raises(ResolutionError) as caught:
            loaded.store_container(finding.element, predicate)
        assert caught.value.fact in finding.message
        assert predicate in finding.message
        assert finding.fix == caught.value.fix


def test_a_finding_of_a_shape_names_the_predicate_with_its_prefix(tmp_path: Path) -> None:
    trig = STARTED + "GRAPH <urn:g> { ex:c <https://w3id.org/seams/deploy#replicas> 0 . }"
    (finding,) = model(tmp_path, trig).check(AT)
    assert isinstance(finding, Finding)
    assert (finding.check, finding.fix) == ("shape:ReplicasShape", "correct deploy:replicas of c")
    assert finding.element == f"{BASE}c"
