"""Formats that programs rely on: JSON, CSV, GitHub annotations, SARIF; tables for people."""

from __future__ import annotations

import csv
import io
import json

import pytest

from seams_lab import report
from seams_lab.findings import Finding, Findings

NASTY = Finding(
    "models/a b.bpmn", "Timer,1:x", "expression:NO_START", "error",
    "100% wrong\nsecond line", "write [bold]R/…[/bold]", 7,
)  # fmt: skip
PLAIN = Finding("m.trig", "https://e.org/c", "schedule-store", "warning", "no store", "name one")


def test_json_keeps_every_character() -> None:
    rows = [{"event": "ü\n\"'", "due": ["a", "b"], "kind": None}]
    assert json.loads(report.as_json(rows)) == rows
    assert json.loads(report.as_json([])) == []


def test_csv_has_a_header_without_rows_and_quotes_what_needs_it() -> None:
    assert report.as_csv([], ["event", "due"]) == "event,due"
    text = report.as_csv([{"event": 'a,"b"\nc', "due": ["1", "2"], "kind": None}],
                         ["event", "due", "kind"])  # fmt: skip
    assert list(csv.reader(io.StringIO(text)))[1] == ['a,"b"\nc', "1; 2", ""]


def test_tables_show_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    report.print_table([{"fix": NASTY.fix}], ["fix"])
    assert "write [bold]R/…[/bold]" in capsys.readouterr().out


def test_annotations_are_one_line_each_and_escaped() -> None:
    first, second = report.as_github(Findings([NASTY, PLAIN])).splitlines()
    assert first == "::warning file=m.trig,line=1,title=schedule-store::" + (
        "https://e.org/c: no store. Fix: name one"
    )
    assert second.startswith("::error file=models/a b.bpmn,line=7,title=expression%3ANO_START::")
    assert "100%25 wrong%0Asecond line" in second
    assert report.as_github(Findings()) == ""


def test_sarif_points_at_rule_file_and_line() -> None:
    log = json.loads(report.as_sarif(Findings([NASTY, PLAIN]), "1.2.3"))
    assert log["version"] == "2.1.0"
    run = log["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == ["expression:NO_START", "schedule-store"]
    assert all(rule["shortDescription"]["text"] for rule in run["tool"]["driver"]["rules"])
    result = next(r for r in run["results"] if r["level"] == "error")
    assert rules[result["ruleIndex"]] == result["ruleId"] == "expression:NO_START"
    place = result["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "models/a%20b.bpmn"},
        "region": {"startLine": 7},
    }
