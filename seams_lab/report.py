"""Write results for people (tables) and for programs (JSON, CSV, GitHub annotations, SARIF)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from seams_lab.findings import CHECKS, Findings

Row = dict[str, Any]
# A pipe has no width: wide enough for a path and a sentence, narrow enough to read.
_PIPE_WIDTH = 160


def as_json(rows: Sequence[Row]) -> str:
    """A JSON list, one object per row."""
    return json.dumps(list(rows), indent=2, ensure_ascii=False)


def as_csv(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """CSV with a header, also when there are no rows; lists are joined with a semicolon."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row.get(c), "; ") for c in columns])
    return stream.getvalue().rstrip("\n")


def print_table(rows: Sequence[Row], columns: Sequence[str], *, title: str = "") -> None:
    """Print a table to standard output, as wide as the terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(width=_PIPE_WIDTH, highlight=False)
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        # Text, not markup: what comes from a file is never read as a style.
        table.add_row(*(Text(_cell(row.get(c), ", ")) for c in columns))
    console.print(table)


def _cell(value: Any, separator: str) -> str:
    if value is None:
        return ""
    return separator.join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def as_github(findings: Findings) -> str:
    """Workflow commands that GitHub Actions shows as annotations, one line per finding."""
    lines = []
    for finding in findings:
        place = {"file": finding.file, "line": finding.line or 1, "title": finding.check}
        properties = ",".join(f"{k}={_escaped(str(v), ':,')}" for k, v in place.items())
        text = f"{finding.element}: {finding.message}. Fix: {finding.fix}"
        lines.append(f"::{finding.severity} {properties}::{_escaped(text)}")
    return "\n".join(lines)


def _escaped(text: str, more: str = "") -> str:
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def as_sarif(findings: Findings, version: str) -> str:
    """A SARIF 2.1.0 log (OASIS) with one run."""
    rules = sorted({f.check for f in findings})
    driver = {
        "name": "seams-lab",
        "version": version,
        "rules": [
            {"id": rule, "shortDescription": {"text": CHECKS[rule.partition(":")[0]]}}
            for rule in rules
        ],
    }
    results = [
        {
            "ruleId": finding.check,
            "ruleIndex": rules.index(finding.check),
            "level": finding.severity,
            "message": {"text": f"{finding.element}: {finding.message}. Fix: {finding.fix}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": _uri(finding.file)},
                        "region": {"startLine": finding.line or 1},
                    },
                    "logicalLocations": [{"fullyQualifiedName": finding.element}],
                }
            ],
        }
        for finding in findings
    ]
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(log, indent=2, ensure_ascii=False)


def _uri(file: str) -> str:
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else path.as_posix().replace(" ", "%20")
