"""The strict profile: what is accepted, what is refused and with which words and fix."""

from __future__ import annotations

import ast
import builtins
import csv
import pickle
import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from fixtures import documents
from fixtures.documents import CATCH, INTERRUPTING, NON_INTERRUPTING, START
from hypothesis import given, settings
from hypothesis import strategies as st

from seams_lab import expressions, profile
from seams_lab.errors import ResolutionError, UnusableInput
from seams_lab.expressions import (
    DAY,
    FIRST_INSTANT,
    HOUR,
    LAST_INSTANT,
    MINUTE,
    SECOND,
    WEEK,
    TimeCycle,
    TimeDate,
    TimeDuration,
)
from seams_lab.graph import load_graph
from seams_lab.instants import to_micros, to_text
from seams_lab.payload import EXPRESSION_KINDS, parse_payload
from seams_lab.profile import parse, read_timer
from seams_lab.timers import Timer, first_due, timers

FIXTURES = Path(__file__).parent / "fixtures"
STRUCTURE = {
    "NOT_LIFTED", "EVENT_DEFINITION_REF", "MULTIPLE_DEFINITIONS", "BAD_ATTRIBUTE",
    "MISSING_EXPRESSION", "MULTIPLE_EXPRESSIONS",
}  # fmt: skip
NOVEMBER = "2026-11-01T00:00:00Z"


def read(data: bytes, armed_at: str, folder: Path) -> Timer:
    """The one timer of a BPMN file, read from disk as a bare model."""
    path = folder / "model.bpmn"
    path.write_bytes(data)
    [timer] = timers(load_graph(path), to_micros(armed_at))
    return timer


def dues(timer: Timer, armed_at: str) -> list[str]:
    return [to_text(due) for due in first_due(timer, to_micros(armed_at))]


def assert_well_refused(timer: Timer, kind: str | None) -> None:
    """A refusal names the event, what was asked, what it saw and a way out."""
    refusal = timer.refusal
    assert isinstance(refusal, ResolutionError)
    assert refusal.subject == timer.event
    structural = refusal.code in STRUCTURE
    asked = "timerEventDefinition" if structural else kind
    assert refusal.predicate == f"bpmn:{asked}"
    assert refusal.fact.strip()
    assert refusal.fix.strip()
    for part in (refusal.subject, refusal.predicate, refusal.fact, refusal.fix):
        assert part in str(refusal)


# ---------------------------------------------------------------- the table of the profile

with (FIXTURES / "expressions.csv").open(newline="", encoding="utf-8") as stream:
    CASES = list(csv.DictReader(stream))


@pytest.mark.parametrize("case", CASES, ids=[f"{c['id']}: {c['why']}" for c in CASES])
def test_each_case_of_the_profile_from_bpmn_bytes_to_due_times(
    case: dict[str, str], tmp_path: Path
) -> None:
    data = documents.timer(case["position"], case["kind"], case["body_xml"])
    timer = read(data, case["armed_at"], tmp_path)
    assert (timer.verdict, timer.code) == (case["verdict"], case["code"])
    expected = [case[c] for c in ("due1", "due2", "due3") if case[c]]
    assert dues(timer, case["armed_at"]) == expected
    if case["verdict"] == "accept":
        assert timer.refusal is None
        assert expected
    else:
        assert timer.expression is None
        assert_well_refused(timer, case["kind"] or "timeDuration")


def test_the_table_holds_every_code_of_the_profile_but_the_ones_tested_below() -> None:
    elsewhere = {"BAD_ATTRIBUTE"}
    codes = set(re.findall(r"`([A-Z_]{4,})`", str(profile.__doc__)))
    assert codes - elsewhere == {c["code"] for c in CASES if c["code"]}


# ---------------------------------------------------------------- faults of real engines

D_9_10_11 = [f"2026-11-{day:02}T08:00:00Z" for day in (9, 10, 11)]
DAILY = '"R/2026-11-09T08:00:00Z/P1D"'


@dataclass(frozen=True)
class Fault:
    """A fault seen in a real engine: where a timer sits, its text, a code or its due times."""

    row: str
    position: str
    kind: str
    body: str
    expected: str | list[str]
    fix: str = ""
    armed_at: str = NOVEMBER


FAULTS = [
    Fault("B1", START, "timeCycle", "R5/PT10S", "NOT_A_LITERAL", "choose a start date-time"),
    Fault("B1", START, "timeCycle", "0 0/5 * * * ?", "NOT_A_LITERAL", "cron"),
    Fault("B3", START, "timeCycle", '"R3/2026-11-09T08:00:00Z/P1D"', D_9_10_11),
    Fault("B4", NON_INTERRUPTING, "timeCycle", DAILY, D_9_10_11),
    Fault("B5", START, "timeDate", '"2026-12-01T09:00:00Z"', ["2026-12-01T09:00:00Z"]),
    Fault("B6", CATCH, "timeDuration", '"PT1D"', "BAD_DURATION", 'write "P1D"'),
    Fault("B8", START, "timeCycle", DAILY, D_9_10_11),
    Fault("B9", CATCH, "timeCycle", '"R2/2026-11-09T08:00:00Z/P1D"', "CYCLE_POSITION"),
    Fault("B10 unquoted", CATCH, "timeCycle", "R2/2021-01-07T17:25:16/PT3S", "NOT_A_LITERAL"),
    Fault("B10 quoted", CATCH, "timeCycle", '"R2/2021-01-07T17:25:16/PT3S"', "NO_OFFSET", "Z"),
    Fault("B10 with Z", CATCH, "timeCycle", '"R2/2021-01-07T17:25:16Z/PT3S"', "CYCLE_POSITION"),
    Fault(
        "B11", START, "timeCycle", '"R4/2022-03-11T12:13:00+01:00/PT5M"',
        [f"2022-03-11T11:{m}:00Z" for m in (13, 18, 23, 28)],
    ),
    Fault(
        "B12", START, "timeCycle", '"R/2022-06-01T10:00:00Z/P1D"',
        [f"2022-06-0{day}T10:00:00Z" for day in (1, 2, 3)],
    ),
    Fault(
        "B15", START, "timeCycle", '"R/2022-01-01T10:00:00@Europe/Paris/P1D"', "BAD_DATETIME"
    ),
    Fault(
        "B16 zone", START, "timeCycle", '"R/2022-01-01T10:00:00+02:00[Europe/Berlin]/P1D"',
        "BAD_DATETIME",
    ),
    Fault("B16 day", START, "timeCycle", '"R3/2022-04-027T17:20:00Z/P1D"', "BAD_DATETIME"),
    Fault("B17", CATCH, "timeDate", '"2024-04-31T10:00:00Z"', "BAD_DATETIME"),
    Fault("B18", START, "timeCycle", '"R/2026-11-09T08:00:00Z/PT-0.519S"', "BAD_DURATION"),
    Fault("B19", CATCH, "timeDuration", '"PT0S"', "NOT_POSITIVE"),
    Fault("B19", CATCH, "timeDuration", '"-PT1S"', "BAD_DURATION", 'write "PT1S"'),
    Fault("B19", START, "timeCycle", '"R/2026-11-09T08:00:00Z/PT0S"', "NOT_POSITIVE"),
    Fault(
        "B20", START, "timeCycle", '"R/2026-01-10T20:00:00Z/P1M"',
        [f"2026-0{month}-10T20:00:00Z" for month in (1, 2, 3)],
    ),
    Fault("B21", CATCH, "timeDuration", '"P2M"', ["2027-01-01T00:00:00Z"]),
    Fault("B22", CATCH, "timeDuration", '=duration("PTS15")', "NOT_A_LITERAL", 'write "PT15S"'),
    Fault("B22", CATCH, "timeDuration", '"PTS15"', "BAD_DURATION", 'write "PT15S"'),
    Fault("B23", CATCH, "timeDuration", '"P2W"', ["2026-11-15T00:00:00Z"]),
    Fault("B23", CATCH, "timeDuration", '"P4W"', ["2026-11-29T00:00:00Z"]),
    Fault(
        "B25", START, "timeCycle", '"R/2026-11-09T08:00:00Z/PT5S"',
        [f"2026-11-09T08:00:{s:02}Z" for s in (0, 5, 10)],
    ),
    Fault("B26", START, "timeCycle", DAILY, D_9_10_11),
    Fault(
        "B26", START, "timeCycle", '"R-1/2026-11-09T08:00:00Z/P1D"', "BAD_CYCLE",
        "write R/ for no end",
    ),
    Fault(
        "B27", START, "timeCycle", '"R1/2021-07-01T19:22:00Z/P1DT0S"', ["2021-07-01T19:22:00Z"]
    ),
    Fault("B28", CATCH, "", "<bpmn:timerEventDefinition/>", "MISSING_EXPRESSION", "add one"),
    Fault("B30", CATCH, "timeDate", '"2026-12-01T09:00:00Z"', ["2026-12-01T09:00:00Z"]),
    Fault("B30", CATCH, "timeDuration", '"PT1H"', ["2026-11-01T01:00:00Z"]),
    Fault("B30", START, "timeCycle", DAILY, D_9_10_11),
    Fault(
        "B30", START, "",
        f"<bpmn:timerEventDefinition><bpmn:timeCycle>{DAILY}</bpmn:timeCycle>"
        '<bpmn:timeDuration>"PT1H"</bpmn:timeDuration></bpmn:timerEventDefinition>',
        "MULTIPLE_EXPRESSIONS",
    ),
    Fault("B31", CATCH, "timeDuration", '"PT1M"', ["2026-11-01T00:01:00Z"]),
    Fault("B31", CATCH, "timeDuration", '"P1M"', ["2026-12-01T00:00:00Z"]),
    # A cycle's third part is no time of day; and the other texts of that report.
    Fault("S18", START, "timeCycle", '"R/P1D/T03H59M59S"', "BAD_CYCLE"),
    Fault("S18", START, "timeCycle", '"R/PT20H10M59S"', "NO_START"),
    Fault(
        "S18", START, "timeCycle", '"R5/2024-04-15T18:20:00Z/P10M"',
        ["2024-04-15T18:20:00Z", "2025-02-15T18:20:00Z", "2025-12-15T18:20:00Z",
         "2026-10-15T18:20:00Z", "2027-08-15T18:20:00Z"],
    ),
    Fault("S35", CATCH, "timeDate", '"2024-01-31T10:00:00"', "NO_OFFSET", "such as +01:00"),
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=[f"{f.row} {f.body[:40]}" for f in FAULTS])
def test_faults_of_real_engines_are_refused_or_read_right(fault: Fault, tmp_path: Path) -> None:
    timer = read(documents.timer(fault.position, fault.kind, fault.body), fault.armed_at, tmp_path)
    if isinstance(fault.expected, str):
        assert timer.code == fault.expected
        assert_well_refused(timer, fault.kind)
        assert timer.refusal is not None
        assert fault.fix in timer.refusal.fix
    else:
        found = first_due(timer, to_micros(fault.armed_at), 5)
        assert [to_text(due) for due in found][: max(3, len(fault.expected))] == fault.expected


@pytest.mark.parametrize(
    ("row", "body", "count"),
    [("B11", '"R4/2022-03-11T12:13:00+01:00/PT5M"', 4), ("B25", DAILY, None), ("B26", DAILY, None),
     ("B27", '"R1/2021-07-01T19:22:00Z/P1DT0S"', 1)],
)  # fmt: skip
def test_the_count_is_the_number_of_firings_and_its_absence_means_no_end(
    row: str, body: str, count: int | None, tmp_path: Path
) -> None:
    timer = read(documents.timer(START, "timeCycle", body), NOVEMBER, tmp_path)
    assert isinstance(timer.expression, TimeCycle)
    assert timer.expression.count == count
    how_many = len(first_due(timer, 0, 1000))
    assert how_many == (1000 if count is None else count)


def test_b6_two_events_with_one_id_make_the_file_unusable() -> None:
    twice = documents.process('<bpmn:startEvent id="T"/><bpmn:endEvent id="T"/>')
    with pytest.raises(UnusableInput, match="'T'"):
        parse_payload(documents.definitions(twice))


def test_the_missing_start_has_its_exact_words(tmp_path: Path) -> None:
    timer = read(documents.timer(START, "timeCycle", '"R/P1D"'), NOVEMBER, tmp_path)
    assert timer.refusal is not None
    assert timer.refusal.fact == "cycle has no start date-time: 'R/P1D'"
    assert timer.refusal.predicate == "bpmn:timeCycle"
    assert "cycle has no start date-time: 'R/P1D'" in str(timer.refusal)


def test_a_refusal_survives_being_sent_to_another_process() -> None:
    with pytest.raises(ResolutionError) as caught:
        parse("timeCycle", '"R/P1D"', "https://example.org/m#T")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert vars(copy) == vars(caught.value)
    assert str(copy) == str(caught.value)


# ---------------------------------------------------------------- structure and attributes

ONE_HOUR = documents.timer_definition("timeDuration", '"PT1H"')
MESSAGE = "<bpmn:messageEventDefinition/>"
STRUCTURES: list[tuple[str, str, str]] = [
    ("a timer and a message", ONE_HOUR + MESSAGE, "MULTIPLE_DEFINITIONS"),
    ("a timer and a reference", ONE_HOUR + "<bpmn:eventDefinitionRef>X</bpmn:eventDefinitionRef>",
     "MULTIPLE_DEFINITIONS"),
    ("two references", 2 * "<bpmn:eventDefinitionRef>X</bpmn:eventDefinitionRef>",
     "MULTIPLE_DEFINITIONS"),
    ("an expression of another namespace",
     '<bpmn:timerEventDefinition><timeDuration>"PT1H"</timeDuration></bpmn:timerEventDefinition>',
     "MISSING_EXPRESSION"),
    ("a processing instruction", documents.timer_definition("timeDuration", '<?x y?>"PT1H"'),
     "CHILD_NODE"),
    ("an element after the literal",
     documents.timer_definition("timeDuration", '"PT1H"<bpmn:documentation/>'), "CHILD_NODE"),
    ("documentation beside the expression",
     "<bpmn:timerEventDefinition><bpmn:documentation>x</bpmn:documentation>"
     '<bpmn:timeDuration>"PT1H"</bpmn:timeDuration></bpmn:timerEventDefinition>', ""),
    ("a comment beside the expression",
     '<bpmn:timerEventDefinition><!--c--><bpmn:timeDuration>"PT1H"</bpmn:timeDuration>'
     "</bpmn:timerEventDefinition>", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("inside", "code"), [s[1:] for s in STRUCTURES], ids=[s[0] for s in STRUCTURES]
)
def test_an_event_has_exactly_one_definition_with_one_plain_expression(
    inside: str, code: str, tmp_path: Path
) -> None:
    timer = read(documents.event(CATCH, inside), NOVEMBER, tmp_path)
    assert timer.code == code
    if code:
        assert_well_refused(timer, "timeDuration")


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ("", ""),
        ('language=""', ""),
        ('language="python"', ""),
        ('language=" Python "', ""),
        ('xsi:type="bpmn:tFormalExpression"', ""),
        ('xsi:type="bpmn:tFormalExpression" language="Python"', ""),
        ('language="http://www.w3.org/1999/XPath"', "LANGUAGE"),
        ('language="https://www.omg.org/spec/FEEL/20240513"', "LANGUAGE"),
        ('language="python3"', "LANGUAGE"),
    ],
)
def test_only_python_is_a_language(attributes: str, code: str, tmp_path: Path) -> None:
    data = documents.timer(CATCH, "timeDuration", '"PT1H"', attributes)
    timer = read(data, NOVEMBER, tmp_path)
    assert timer.code == code


@pytest.mark.parametrize("kind", EXPRESSION_KINDS)
@pytest.mark.parametrize("position", documents.POSITIONS)
def test_kinds_and_positions(kind: str, position: str, tmp_path: Path) -> None:
    body = {"timeDate": '"2026-12-01T09:00:00Z"', "timeDuration": '"PT1H"', "timeCycle": DAILY}
    refused = {
        (START, "timeDuration"): "START_DURATION",
        (CATCH, "timeCycle"): "CYCLE_POSITION",
        (INTERRUPTING, "timeCycle"): "CYCLE_POSITION",
    }
    expected = refused.get((position, kind), "")
    if position.endswith("subProcess"):
        expected = "NOT_LIFTED"
    timer = read(documents.timer(position, kind, body[kind]), NOVEMBER, tmp_path)
    assert timer.code == expected


def test_a_duration_that_leads_beyond_the_calendar_is_refused_where_it_is_armed(
    tmp_path: Path,
) -> None:
    data = documents.timer(CATCH, "timeDuration", '"P1D"')
    assert read(data, "9999-12-30T23:59:59Z", tmp_path).verdict == "accept"
    late = read(data, "9999-12-31T00:00:00Z", tmp_path)
    assert late.code == "OUT_OF_RANGE"
    assert_well_refused(late, "timeDuration")


@pytest.mark.parametrize(
    ("position", "armed_at", "expected"),
    [
        (START, "2026-11-10T08:00:01Z", ["09", "10", "11"]),  # armed by nothing but its text
        (NON_INTERRUPTING, "2026-11-01T00:00:00Z", ["09", "10", "11"]),
        (NON_INTERRUPTING, "2026-11-10T08:00:00Z", ["10", "11"]),
        (NON_INTERRUPTING, "2026-11-10T08:00:01Z", ["11"]),
        (NON_INTERRUPTING, "2026-11-12T00:00:00Z", []),
    ],
)
def test_a_boundary_cycle_fires_from_its_arming_and_counts_from_its_start(
    position: str, armed_at: str, expected: list[str], tmp_path: Path
) -> None:
    body = '"R3/2026-11-09T08:00:00Z/P1D"'
    timer = read(documents.timer(position, "timeCycle", body), armed_at, tmp_path)
    assert dues(timer, armed_at) == [f"2026-11-{day}T08:00:00Z" for day in expected]


def test_the_first_due_times_after_an_arming_are_as_many_as_asked_for(tmp_path: Path) -> None:
    timer = read(documents.timer(NON_INTERRUPTING, "timeCycle", DAILY), NOVEMBER, tmp_path)
    found = first_due(timer, to_micros("2026-11-20T00:00:00Z"), 4)
    assert [to_text(due) for due in found] == [f"2026-11-{d}T08:00:00Z" for d in (20, 21, 22, 23)]


# ---------------------------------------------------------------- which rule speaks first

TWO_RULES = [
    # structure before all else, in its own order
    ("boundary non-interrupting on subProcess", "", "<bpmn:timerEventDefinition/>", "NOT_LIFTED"),
    ("boundary non-interrupting on subProcess", "timeDuration", "PT1H", "NOT_LIFTED"),
    (CATCH, "", "<bpmn:timerEventDefinition/>" + MESSAGE, "MULTIPLE_DEFINITIONS"),
    (CATCH, "", 2 * "<bpmn:timerEventDefinition/>", "MULTIPLE_DEFINITIONS"),
    (CATCH, "timeDuration", "<!--c-->", "CHILD_NODE"),
    (CATCH, "timeDuration", "PT1H<!--c-->", "CHILD_NODE"),
    # literal before language, form and position
    (START, "timeDuration", "   ", "EMPTY"),
    (START, "timeDuration", '""', "EMPTY"),
    (START, "timeDuration", "P1X", "NOT_A_LITERAL"),
    (CATCH, "timeCycle", "R/P1D", "NOT_A_LITERAL"),
    # form: head, count, start, end; then the start; then the duration
    (CATCH, "timeCycle", '"R0"', "BAD_CYCLE"),
    (CATCH, "timeCycle", '"R0/2026-11-09T08:00:00Z"', "BAD_CYCLE"),
    (CATCH, "timeCycle", '"R0/P1D/x"', "BAD_CYCLE"),
    (CATCH, "timeCycle", '"x/P1D"', "BAD_CYCLE"),
    (CATCH, "timeCycle", '"R0/P1D"', "BAD_COUNT"),
    (CATCH, "timeCycle", '"R0/2026-11-09T08:00:00/P1D"', "BAD_COUNT"),
    (CATCH, "timeCycle", '"R0/P1D/2026-11-09T08:00:00Z"', "BAD_COUNT"),
    (CATCH, "timeCycle", '"R/P0D"', "NO_START"),
    (CATCH, "timeCycle", '"R/P1X"', "NO_START"),
    (CATCH, "timeCycle", '"R/2026-11-09T08:00:00/2026-11-10T08:00:00Z"', "INTERVAL_FORM"),
    (CATCH, "timeCycle", '"R/P1X/2026-11-10T08:00:00Z"', "INTERVAL_FORM"),
    (CATCH, "timeCycle", '"R/2026-13-09T08:00:00/P1X"', "NO_OFFSET"),
    (CATCH, "timeCycle", '"R/2026-11-09T08:00:00.5/P1D"', "NO_OFFSET"),
    (CATCH, "timeCycle", '"R/2026-13-09T08:00:00Z/P1X"', "BAD_DATETIME"),
    (CATCH, "timeCycle", '"R/9999-12-31T23:59:59-01:00/P1X"', "OUT_OF_RANGE"),
    (CATCH, "timeCycle", '"R/2026-11-09T08:00:00Z/P1X"', "BAD_DURATION"),
    (CATCH, "timeCycle", '"R/2026-11-09T08:00:00Z/P0D"', "NOT_POSITIVE"),
    (START, "timeDuration", '"P1X"', "BAD_DURATION"),
    (START, "timeDuration", '"P0D"', "NOT_POSITIVE"),
    (START, "timeDuration", '"P9999Y"', "OUT_OF_RANGE"),
]


@pytest.mark.parametrize(("position", "kind", "body", "code"), TWO_RULES)
def test_when_two_rules_are_broken_the_documented_first_one_is_reported(
    position: str, kind: str, body: str, code: str, tmp_path: Path
) -> None:
    timer = read(documents.timer(position, kind, body), NOVEMBER, tmp_path)
    assert timer.code == code


def boundary(attributes: str, inside: str) -> bytes:
    return documents.definitions(
        documents.process(
            '<bpmn:userTask id="U"/>'
            f'<bpmn:boundaryEvent id="T" attachedToRef="U" {attributes}>{inside}'
            "</bpmn:boundaryEvent>"
        )
    )


@pytest.mark.parametrize(
    ("inside", "attributes", "code"),
    [
        (ONE_HOUR + MESSAGE, 'cancelActivity="no"', "MULTIPLE_DEFINITIONS"),
        ("<bpmn:timerEventDefinition/>", 'cancelActivity="no"', "BAD_ATTRIBUTE"),
        (documents.timer_definition("timeCycle", "R/P1D"), 'cancelActivity=""', "BAD_ATTRIBUTE"),
        (documents.timer_definition("timeCycle", DAILY, 'language="x"'), "", "LANGUAGE"),
        (documents.timer_definition("timeCycle", '"R/P1D"', 'language="x"'), "", "LANGUAGE"),
        (documents.timer_definition("timeCycle", "R/P1D", 'language="x"'), "", "NOT_A_LITERAL"),
        (documents.timer_definition("timeCycle", '"R/P1D"'), "", "NO_START"),
    ],
)
def test_attributes_have_their_place_in_the_order(
    inside: str, attributes: str, code: str, tmp_path: Path
) -> None:
    timer = read(boundary(attributes, inside), NOVEMBER, tmp_path)
    assert timer.code == code
    assert_well_refused(timer, "timeCycle")


@pytest.mark.parametrize(
    ("flag", "interrupting", "code"),
    [
        (None, True, ""),
        ("true", True, ""),
        ("1", True, ""),
        ("false", False, ""),
        ("0", False, ""),
        (" false ", False, ""),
        ("\tfalse", False, ""),
        ("no", True, "BAD_ATTRIBUTE"),
        ("False", True, "BAD_ATTRIBUTE"),
        ("", True, "BAD_ATTRIBUTE"),
        ("false\u00a0", True, "BAD_ATTRIBUTE"),  # XML white space only
    ],
)
def test_cancel_activity_is_an_xs_boolean(
    flag: str | None, interrupting: bool, code: str, tmp_path: Path
) -> None:
    attribute = "" if flag is None else f'cancelActivity="{flag}"'
    timer = read(boundary(attribute, ONE_HOUR), NOVEMBER, tmp_path)
    assert timer.element.interrupting is interrupting
    assert timer.code == code
    cycle = read(
        boundary(attribute, documents.timer_definition("timeCycle", DAILY)), NOVEMBER, tmp_path
    )
    assert cycle.code == (code or ("CYCLE_POSITION" if interrupting else ""))


# ---------------------------------------------------------------- the edges of each form

EDGES: list[tuple[str, str, str]] = [
    ("timeDate", '"2026-12-01T09:00:00+14:00"', ""),
    ("timeDate", '"2026-12-01T09:00:00-14:00"', ""),
    ("timeDate", '"2026-12-01T09:00:00+00:00"', ""),
    ("timeDate", '"2026-12-01T09:00:00-00:01"', ""),
    ("timeDate", '"2026-12-01T09:00:00+13:59"', ""),
    ("timeDate", '"2026-12-01T09:00:00-00:00"', "BAD_DATETIME"),
    ("timeDate", '"2026-12-01T09:00:00+14:01"', "BAD_DATETIME"),
    ("timeDate", '"2026-12-01T09:00:00-14:01"', "BAD_DATETIME"),
    ("timeDate", '"2026-12-01T09:00:00+01:60"', "BAD_DATETIME"),
    ("timeDate", '"2026-12-01T09:00:00z"', "BAD_DATETIME"),
    ("timeDate", '"2026-12-01t09:00:00Z"', "BAD_DATETIME"),
    ("timeDate", '"2026-12-01 09:00:00Z"', "BAD_DATETIME"),
    ("timeDate", '"2026-12-01T09:00Z"', "BAD_DATETIME"),
    ("timeDate", '"2026-12-01Z"', "BAD_DATETIME"),
    ("timeDate", '"2026-W49-2T09:00:00Z"', "BAD_DATETIME"),
    ("timeDate", '"20261201T090000Z"', "BAD_DATETIME"),
    ("timeDate", '"2026-12-01T09:00:00.0Z"', "BAD_DATETIME"),
    ("timeDate", '"2026-12-01T09:00:00,5Z"', "BAD_DATETIME"),
    ("timeDate", '"-2026-12-01T09:00:00Z"', "BAD_DATETIME"),
    ("timeDate", '"0000-12-01T09:00:00Z"', "BAD_DATETIME"),
    ("timeDate", '"2025-02-29T09:00:00Z"', "BAD_DATETIME"),
    ("timeDate", '"1900-02-29T09:00:00Z"', "BAD_DATETIME"),
    ("timeDate", '"2000-02-29T09:00:00Z"', ""),
    ("timeDate", '"2026-00-01T09:00:00Z"', "BAD_DATETIME"),
    ("timeDate", '"2026-12-01T09:60:00Z"', "BAD_DATETIME"),
    ("timeDate", '"2026-12-01T09:00:00 Z"', "BAD_DATETIME"),
    ("timeDate", '" 2026-12-01T09:00:00Z"', "BAD_DATETIME"),
    ("timeDate", '"9999-12-31T23:59:59-00:01"', "OUT_OF_RANGE"),
    ("timeDate", '"0001-01-01T00:00:00+00:01"', "OUT_OF_RANGE"),
    ("timeDate", '"0001-01-01T00:00:00Z"', ""),
    ("timeDate", '"0001-01-01T00:00:00-14:00"', ""),
    ("timeDuration", '"P0000000001D"', ""),
    ("timeDuration", '"PT0.000001S"', ""),
    ("timeDuration", '"PT0.0000001S"', "BAD_DURATION"),
    ("timeDuration", '"PT0.000000S"', "NOT_POSITIVE"),
    ("timeDuration", '"PT1.S"', "BAD_DURATION"),
    ("timeDuration", '"PT.5S"', "BAD_DURATION"),
    ("timeDuration", '"PT1.5M"', "BAD_DURATION"),
    ("timeDuration", '"P0W"', "NOT_POSITIVE"),
    ("timeDuration", '"P"', "BAD_DURATION"),
    ("timeDuration", '"PT"', "BAD_DURATION"),
    ("timeDuration", '"P1W "', "BAD_DURATION"),
    ("timeDuration", '"P1Y2M3DT4H5M6.789S"', ""),
    ("timeDuration", '"P0Y0M0DT0H0M1S"', ""),
    ("timeDuration", '"P1H"', "BAD_DURATION"),
    ("timeDuration", '"P9998Y11M30D"', ""),
    ("timeDuration", '"P9998Y11M31D"', "OUT_OF_RANGE"),
    ("timeDuration", '"P9998Y12M"', "OUT_OF_RANGE"),
    ("timeDuration", '"P9999Y"', "OUT_OF_RANGE"),
    ("timeDuration", '"P5000Y1826213D"', "OUT_OF_RANGE"),
    ("timeDuration", f'"P{"9" * 200}Y"', "OUT_OF_RANGE"),
    ("timeDuration", f'"PT{"9" * 200}S"', "OUT_OF_RANGE"),
    ("timeDuration", f'"PT{"0" * 200}1S"', ""),
    ("timeCycle", '"R1/2026-11-09T08:00:00Z/P1D"', ""),
    ("timeCycle", '"R999999999/2026-11-09T08:00:00Z/P1D"', ""),
    ("timeCycle", '"R1000000000/2026-11-09T08:00:00Z/P1D"', "BAD_COUNT"),
    ("timeCycle", '"R00/2026-11-09T08:00:00Z/P1D"', "BAD_COUNT"),
    ("timeCycle", '"R/2026-11-09T08:00:00Z/PT0.5S"', "BAD_DURATION"),
    ("timeCycle", '"R/2026-11-09T08:00:00Z/P1W"', ""),
    ("timeCycle", '"R/2026-11-09T08:00:00Z/P"', "BAD_DURATION"),
    ("timeCycle", '"R/2026-11-09T08:00:00Z/"', "BAD_DURATION"),
    ("timeCycle", '"R/2026-11-09T08:00:00Z/P1D/"', "BAD_DATETIME"),
    ("timeCycle", '"R//P1D"', "BAD_DATETIME"),
    ("timeCycle", '"R /2026-11-09T08:00:00Z/P1D"', "BAD_CYCLE"),
    ("timeCycle", '"R+1/2026-11-09T08:00:00Z/P1D"', "BAD_CYCLE"),
    ("timeCycle", '"R/2026-11-09T08:00:00Z"', "BAD_CYCLE"),
    ("timeCycle", '"2026-11-09T08:00:00Z/P1D"', "BAD_CYCLE"),
    ("timeCycle", '"R/-P1D"', "NO_START"),
    ("timeCycle", '"R/"', "BAD_CYCLE"),
    ("timeCycle", f'"R/2026-11-09T08:00:00Z/P{"9" * 200}Y"', ""),
]


@pytest.mark.parametrize(("kind", "body", "code"), EDGES, ids=[f"{e[1][:48]}" for e in EDGES])
def test_the_edges_of_each_form(kind: str, body: str, code: str) -> None:
    if not code:
        assert parse(kind, body).text == body.strip().strip("\"'")
        return
    with pytest.raises(ResolutionError) as caught:
        parse(kind, body, "https://example.org/m#T")
    error = caught.value
    assert (error.code, error.predicate) == (code, f"bpmn:{kind}")
    assert error.subject == "https://example.org/m#T"
    assert error.fix


LITERALS = [
    ('"PT1H"', True),
    ("'PT1H'", True),
    ('\t "PT1H" \t', True),
    ("\"PT1H'", False),
    ('""PT1H""', False),
    ('"""PT1H"""', False),
    ("'''PT1H'''", False),
    ('("PT1H")', False),
    ('"PT1H"  # an hour', False),
    ('"PT1H";', False),
    ('u"PT1H"', False),
    ('rb"PT1H"', False),
    ('"PT1\\H"', False),
    ('"PT1H\\n"', False),
    ('"PT1H\n"', False),
    ('"PT1H"\r', False),
    ('"PT1H"\x0b', False),
    ('"PT1H"\x0c', False),
    ('"PT1H"\x1c', False),
    ('"PT1H"\u00a0', False),
    ('"PT1H"\u2028', False),
    ('"PT1H\x00"', False),
    ('"PT1H\x7f"', False),
    ("\u201cPT1H\u201d", False),
    ('"PT\uff11H"', False),
    ("PT1H", False),
    ('"PT1H" if True else ""', False),
    ('["PT1H"][0]', False),
    ('"PT1H".upper()', False),
    ('lambda: "PT1H"', False),
]


@pytest.mark.parametrize(("body", "fine"), LITERALS)
def test_only_one_plain_quoted_ascii_string_is_a_literal(body: str, fine: bool) -> None:
    if fine:
        assert parse("timeDuration", body) == parse("timeDuration", '"PT1H"')
        return
    with pytest.raises(ResolutionError) as caught:
        parse("timeDuration", body)
    assert caught.value.code == "NOT_A_LITERAL"
    assert str(caught.value).isascii()
    assert str(caught.value).isprintable()


def test_a_body_has_at_most_256_characters_not_counting_blanks_around_it() -> None:
    longest = f'"PT{"0" * (256 - 6)}1S"'
    assert len(longest) == 256
    assert parse("timeDuration", longest) == TimeDuration(
        expressions.Duration(0, SECOND, longest[1:-1]), longest[1:-1]
    )
    assert parse("timeDuration", " " * 500 + longest + "\t" * 500).text == longest[1:-1]
    for body in (f'"PT{"0" * (257 - 6)}1S"', " " * 9 + f'"PT{"0" * (257 - 6)}1S"'):
        with pytest.raises(ResolutionError) as caught:
            parse("timeDuration", body)
        assert caught.value.code == "NOT_A_LITERAL"
        assert "257 characters" in caught.value.fact


@pytest.mark.parametrize(
    "body",
    [
        "-" * 200_000 + "1",
        "[" * 100_000,
        '"' * 100_001,
        " " * 1_000_000,
        " " * 500_000 + '"PT1H',
        '"' + " " * 500_000,
        '"PT' + "1" * 500_000 + 'S"',
        "a.b(" * 50_000,
        '"R' + "9" * 100_000 + '/P1D"',
        "=f(" + " " * 200_000 + "'",
    ],
    ids=lambda body: f"{body[:6]!r}...{len(body)}",
)
def test_huge_texts_are_refused_and_shortened_in_the_message(body: str) -> None:
    for kind in EXPRESSION_KINDS:
        with pytest.raises(ResolutionError) as caught:
            parse(kind, body)
        assert len(str(caught.value)) < 600


def test_an_unknown_kind_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="timeDate"):
        parse("timeSpan", '"P1D"')


# ---------------------------------------------------------------- any text whatever

VALID = [
    ("timeDate", '"2026-12-01T09:00:00Z"'),
    ("timeDate", "'2026-12-01T09:00:00-05:30'"),
    ("timeDuration", '"P1Y2M3DT4H5M6.789S"'),
    ("timeDuration", '"P3W"'),
    ("timeCycle", '"R/2026-11-09T08:00:00Z/P1D"'),
    ("timeCycle", '"R17/2026-11-09T08:00:00+01:00/P1M2DT3H"'),
]
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=60)
PIECES = st.sampled_from(
    ["P", "T", "R", "Y", "M", "W", "D", "H", "S", "Z", "/", "-", "+", ":", ".", ",", '"', "'",
     "\\", "0", "1", "9" * 30, "9" * 400, "2026-11-09T08:00:00Z", "2026-11-09T08:00:00", "P1D",
     "R/", "R5/", " ", "\n", "\t", "\x00", "\ud800", "\u0664", "\u00b2", "\ufeff", "__import__",
     "(", ")", "=", "duration(", "* ", "1e9", "_", "Europe/Berlin"]
)  # fmt: skip
SOUP = st.lists(PIECES, max_size=14).map("".join)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, str]:
    """A valid text with a few pieces cut out, doubled, replaced or put in."""
    kind, body = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(body)))
        to = draw(st.integers(at, min(len(body), at + 3)))
        new = draw(st.one_of(st.just(""), st.just(body[at:to] * 2), PIECES))
        body = body[:at] + new + body[to:]
    return draw(st.sampled_from([kind, *EXPRESSION_KINDS])), body


def outcome(kind: str, body: str) -> ResolutionError | None:
    """The refusal of a text or None; every other exception fails the test."""
    try:
        expression = parse(kind, body)
    except ResolutionError as error:
        refusal = error
    else:
        assert expression.kind == kind
        assert expression.in_words
        return None
    assert refusal.code in set(re.findall(r"[A-Z_]{4,}", str(profile.__doc__)))
    assert refusal.fix
    assert refusal.predicate == f"bpmn:{kind}"
    assert str(refusal).isascii()
    return refusal


def assert_fix_parses(kind: str, fix: str) -> None:
    """What a fix claims to be right is accepted."""
    claimed = re.match(r'write ("[^"]*")', fix)
    if claimed:
        parse(kind, claimed[1])


@settings(max_examples=250)
@given(st.sampled_from(EXPRESSION_KINDS), ANY_TEXT | SOUP | SOUP.map(lambda s: f'"{s}"'))
def test_any_text_is_accepted_or_refused_and_a_suggested_text_is_fine(kind: str, body: str) -> None:
    refusal = outcome(kind, body)
    if refusal is not None:
        assert_fix_parses(kind, refusal.fix)


@settings(max_examples=600)
@given(mutated())
def test_near_misses_are_accepted_or_refused_and_a_suggested_text_is_fine(
    case: tuple[str, str],
) -> None:
    kind, body = case
    refusal = outcome(kind, body)
    if refusal is not None:
        assert_fix_parses(kind, refusal.fix)
        return
    # What is accepted is one plain string of Python, as plain SpiffWorkflow will read it.
    assert ast.literal_eval(body.strip(" \t")) == parse(kind, body).text


@settings(max_examples=200)
@given(SOUP | st.sampled_from([body for _, body in VALID]), st.booleans())
def test_one_rule_serves_the_text_and_the_xml_element(soup: str, in_cdata: bool) -> None:
    """Through XML, where it can carry the text, the outcome is the same."""
    if not all(c in string.printable and c not in "\r\x0b\x0c" for c in soup):
        return
    xml = soup.replace("&", "&amp;").replace("<", "&lt;")
    if in_cdata and soup:
        xml = f"<![CDATA[{soup}]]>"
    data = documents.timer(CATCH, "timeDuration", xml)
    [element] = parse_payload(data).timers
    try:
        expected: object = parse("timeDuration", soup)
    except ResolutionError as refusal:
        expected = refusal.code
    try:
        found: object = read_timer(element)
    except ResolutionError as refusal:
        found = refusal.code
    assert found == expected


FIXES = [
    ("timeDuration", "PT48H", 'write "PT48H"'),
    ("timeDuration", '"pt48h"', 'write "PT48H"'),
    ("timeDuration", '"48H"', 'write "PT48H"'),
    ("timeDuration", '"2D"', 'write "P2D"'),
    ("timeDuration", '"PT10D"', 'write "P10D"'),
    ("timeDuration", '"P0.5D"', 'write "PT12H"'),
    ("timeDuration", '"P1W2D"', 'write "P9D"'),
    ("timeDuration", '"PT1,5S"', 'write "PT1.5S"'),
    ("timeDuration", '"P1DT"', 'write "P1D"'),
    ("timeDuration", '"+P1D"', 'write "P1D"'),
    ("timeDuration", '"P5H"', 'write "PT5H"'),
    ("timeDuration", '=duration("PT48H")', 'write "PT48H"'),
    ("timeDuration", '"PT48H",', 'write "PT48H"'),
    ("timeDuration", '\n  "PT48H"\n', 'write "PT48H"'),
    ("timeDuration", "PT1D", 'write "P1D"'),
    ("timeDuration", '"0H"', "write it as in"),  # PT0H would be refused in its turn
    ("timeDuration", '"999999999999999S"', "write it as in"),  # and this is beyond the calendar
    ("timeCycle", '"R3/2026-11-09T08:00:00Z/PT1D"', 'write "R3/2026-11-09T08:00:00Z/P1D"'),
    ("timeCycle", "R/2026-11-09T08:00:00Z/PT1D", 'write "R/2026-11-09T08:00:00Z/P1D"'),
    ("timeCycle", '"R/2026-11-09T08:00:00Z/PT1,5S"', "write it as in"),
    ("timeCycle", "R/2026-11-09T08:00:00Z/P1D", 'write "R/2026-11-09T08:00:00Z/P1D"'),
    ("timeCycle", '"R-1/2026-11-09T08:00:00Z/P1D"', "write R/ for no end"),
    ("timeCycle", '"0 0 9 * * ?"', "cron is not BPMN"),
    ("timeCycle", "0 0 9 * * MON-FRI", "cron is not BPMN"),
    ("timeCycle", '"R3/P1D/2026-11-12T08:00:00Z"', "write R3/<start>/P1D"),
    ("timeDate", "2026-12-01T09:00:00Z", 'write "2026-12-01T09:00:00Z"'),
]


@pytest.mark.parametrize(("kind", "body", "fix"), FIXES)
def test_the_fix_says_what_was_probably_meant(kind: str, body: str, fix: str) -> None:
    with pytest.raises(ResolutionError) as caught:
        parse(kind, body)
    assert caught.value.fix.startswith(fix)
    assert_fix_parses(kind, caught.value.fix)


# ---------------------------------------------------------------- nothing is ever evaluated

CODE = [
    "__import__('os').system('touch {mark}') or 'PT48H'",
    "open('{mark}', 'w') and 'PT48H'",
    "(lambda: open('{mark}', 'w'))() and 'PT48H'",
    "[open(p, 'w') for p in ['{mark}']] and 'PT48H'",
    "f\"{{open('{mark}', 'w')}}\"",
    "exec(\"open('{mark}', 'w')\") or 'PT48H'",
    "'PT48H' if open('{mark}', 'w') else ''",
    "().__class__.__base__.__subclasses__()",
    "'%s' % open('{mark}', 'w')",
    "\"PT48H\" + str(open('{mark}', 'w'))",
]


@pytest.mark.parametrize("code", CODE)
@pytest.mark.parametrize("kind", EXPRESSION_KINDS)
def test_code_is_refused_and_never_runs(
    code: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    data = documents.timer(CATCH, kind, f"<![CDATA[{code.format(mark=mark)}]]>")

    def trap(name: str) -> Callable[..., object]:
        def sprung(*_: object, **__: object) -> object:
            raise AssertionError(f"{name} was called")

        return sprung

    path = tmp_path / "model.bpmn"
    path.write_bytes(data)
    graph = load_graph(path)
    with monkeypatch.context() as patch:
        for name in ("eval", "exec", "compile"):
            patch.setattr(builtins, name, trap(name))
        for name in ("literal_eval", "parse"):
            patch.setattr(ast, name, trap(name))
        [timer] = timers(graph, 0)
    assert timer.code == "NOT_A_LITERAL"
    assert not mark.exists()


# ---------------------------------------------------------------- what is written is what is read

AMOUNT = st.integers(0, 10**6) | st.sampled_from([0, 1, 10**30])
PADDING = st.sampled_from(["", "", "0", "000"])


@st.composite
def durations(draw: st.DrawFn, fraction: bool) -> tuple[str, int, int]:
    """A valid positive duration with its months and microseconds."""
    if draw(st.integers(0, 4)) == 0:
        weeks = draw(st.integers(1, 10**6))
        return f"P{draw(PADDING)}{weeks}W", 0, weeks * WEEK
    units = {"Y": (12, 0), "M": (1, 0), "D": (0, DAY), "TH": (0, HOUR), "TM": (0, MINUTE)}
    text, time, months, micros = "P", "", 0, 0
    for unit, (month, micro) in units.items():
        if draw(st.booleans()):
            amount = draw(AMOUNT)
            months, micros = months + amount * month, micros + amount * micro
            part = f"{draw(PADDING)}{amount}{unit[-1]}"
            text, time = (text, time + part) if unit[0] == "T" else (text + part, time)
    if draw(st.booleans()) or months + micros == 0:
        amount = draw(st.integers(1, 10**6))
        time += f"{draw(PADDING)}{amount}"
        micros += amount * SECOND
        if fraction and draw(st.booleans()):
            digits = draw(st.text("0123456789", min_size=1, max_size=6))
            time, micros = f"{time}.{digits}", micros + int(digits.ljust(6, "0"))
        time += "S"
    return text + (f"T{time}" if time else ""), months, micros


@st.composite
def date_times(draw: st.DrawFn) -> tuple[str, int, int]:
    """A valid date-time with its instant (microseconds, UTC) and offset in minutes."""
    moment = draw(st.datetimes()).replace(microsecond=0)
    offset = draw(st.integers(-840, 840))
    at = (moment - expressions.EPOCH).days * DAY + (moment - expressions.EPOCH).seconds * SECOND
    if not FIRST_INSTANT <= at - offset * MINUTE <= LAST_INSTANT:
        offset = 0
    zone = "Z"
    if offset or draw(st.booleans()):
        zone = f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
    return moment.isoformat() + zone, at - offset * MINUTE, offset


@st.composite
def quoted(draw: st.DrawFn, text: str) -> str:
    mark = draw(st.sampled_from("\"'"))
    blank = st.text(" \t", max_size=3)
    return draw(blank) + mark + text + mark + draw(blank)


@given(st.data(), date_times())
def test_a_date_is_read_as_written(data: st.DataObject, written: tuple[str, int, int]) -> None:
    text, at, offset = written
    assert parse("timeDate", data.draw(quoted(text))) == TimeDate(at, offset, text)


@given(st.data(), durations(fraction=True))
def test_a_duration_is_read_as_written(data: st.DataObject, written: tuple[str, int, int]) -> None:
    text, months, micros = written
    body = data.draw(quoted(text))
    if months < 12 * 5000 and micros < 4999 * 365 * DAY:
        expected = TimeDuration(expressions.Duration(months, micros, text), text)
        assert parse("timeDuration", body) == expected
    elif months >= 12 * 9999 or micros > LAST_INSTANT - FIRST_INSTANT:
        with pytest.raises(ResolutionError) as caught:
            parse("timeDuration", body)
        assert caught.value.code == "OUT_OF_RANGE"


@given(
    st.data(),
    st.none() | st.integers(1, 999_999_999),
    date_times(),
    durations(fraction=False),
)
def test_a_cycle_is_read_as_written(
    data: st.DataObject,
    count: int | None,
    start: tuple[str, int, int],
    period: tuple[str, int, int],
) -> None:
    text = f"R{'' if count is None else count}/{start[0]}/{period[0]}"
    duration = expressions.Duration(period[1], period[2], period[0])
    expected = TimeCycle(start[1], start[2], duration, count, text)
    assert parse("timeCycle", data.draw(quoted(text))) == expected
