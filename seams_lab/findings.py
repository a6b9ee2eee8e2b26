"""Findings: what a check has to say, in one record type, and the list of all checks."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import pandas as pd

SEVERITIES = ("error", "warning")

#: Every check and what it looks for. `expression:CODE` and `shape:NAME` stand for families.
CHECKS = {
    "payload-unusable": "a BPMN file is missing, outside the model, or refused by the reader",
    "payload-unreferenced": "a BPMN file beside the model that no seam:Model names",
    "manifest-file": "a manifest entry whose file is missing or outside the model",
    "manifest-media-type": "a manifest entry without seam:mediaType",
    "manifest-checksum": "a manifest entry whose checksum is not the file's",
    "drift-dangling": "an index entry for an element that the BPMN file does not have",
    "drift-unlifted": "an element that deserves an index entry and has none",
    "drift-unlifted-timer": "a timer in scope without its class or seam:inModel (D1, D2)",
    "drift-wrong-type": "a timer with the other timer class in the index (D1, D2)",
    "drift-both-types": "a timer with both timer classes in the index (D7)",
    "drift-not-a-timer": "a timer class on an element that is missing or no such timer (D3, D4)",
    "drift-out-of-scope": "a timer class on a timer that must not be lifted (D5)",
    "driftignore-unused": "a line of .driftignore that hides nothing",
    "expression": "a timer expression outside the profile; the code says which rule (D6)",
    "timer-out-of-scope": "a timer the profile has no place for, in a process (ruling 11a)",
    "shape": "a SHACL shape of the seams vocabulary that does not hold",
    "seam-misplaced": "a cross-layer triple outside the seams graph",
    "process-model": "a model with timers whose process cannot be told (ruling 11)",
    "schedule-store": "a scheduling container without exactly one relational store (R66)",
    "wait-store": "a container that executes waiting timers without exactly one relational store",
    "wait-stores-differ": "containers that execute one waiting process on different stores",
    "wait-not-executed": "a process with waiting timers that no container executes",
    "container-unplaced": "a container that runs or stores processes and is deployed nowhere",
    "process-two-triggers": "a process that starts itself and that a UI event triggers too (A11)",
    "months-or-minutes": "a duration of 10 or more months, perhaps minutes meant",
    "short-period": "a cycle with a period under one minute",
    "endless-boundary": "a cycle with no end on a boundary event",
    "unreachable-timer": "a timer that is never due before an interrupting one on the same task",
    "many-missed": "a cycle that missed more than 1,000 firings at the instant of the check",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: where, which check, how bad, what is wrong, what to do.

    ``element`` is an element id, an IRI, or empty; ``line`` is 0 where there is none.
    """

    file: str
    element: str
    check: str
    severity: str
    message: str
    fix: str
    line: int = 0


class Findings(tuple[Finding, ...]):
    """All findings of a model, sorted and without duplicates; empty means clean."""

    __slots__ = ()

    def __new__(cls, findings: Iterable[Finding] = ()) -> Findings:
        """Sort *findings* by file, element and check, and drop repeated ones."""
        # Of repeated ones the first line stays, in whatever order they were found.
        last_first = sorted(findings, key=lambda f: (f.line, f.fix), reverse=True)
        unique = {(f.file, f.element, f.check, f.severity, f.message): f for f in last_first}
        return super().__new__(cls, (unique[key] for key in sorted(unique)))

    @property
    def errors(self) -> Findings:
        """Those of severity error."""
        return Findings(f for f in self if f.severity == "error")

    @property
    def warnings(self) -> Findings:
        """Those of severity warning."""
        return Findings(f for f in self if f.severity == "warning")

    def to_frame(self) -> pd.DataFrame:
        """Return a DataFrame: file, line, element, check, severity, message, fix."""
        columns = ["file", "line", "element", "check", "severity", "message", "fix"]
        return pd.DataFrame([asdict(f) for f in self], columns=columns)

    def summary(self) -> str:
        """How many of each severity, in words."""
        if not self:
            return "no findings"
        return ", ".join(
            f"{len(some)} {word}" + ("s" if len(some) > 1 else "")
            for some, word in [(self.errors, "error"), (self.warnings, "warning")]
            if some
        )

    def __repr__(self) -> str:
        lines = [
            f"{f.severity}: {f.file}: {f.element}: {f.check}: {f.message}. Fix: {f.fix}"
            for f in self
        ]
        return "\n".join([self.summary(), *lines])

    def _repr_html_(self) -> str:
        rows = "".join(_row(f) for f in self)
        table = (
            "<table><thead><tr><th>where</th><th>check</th><th>what is wrong, and the fix</th></tr>"
            f"</thead><tbody>{rows}</tbody></table>"
        )
        return f"<p>{html.escape(self.summary())}</p>" + (table if self else "")


def _row(finding: Finding) -> str:
    """One finding as a table row: three columns that wrap, so that none is cut off."""
    place = finding.file + (f":{finding.line}" if finding.line else "")
    columns = [
        f"<code>{html.escape(finding.element)}</code><br>{html.escape(place)}",
        f"<b>{finding.severity}</b><br>{html.escape(finding.check)}",
        f"{html.escape(finding.message)}<br>Fix: {html.escape(finding.fix)}",
    ]
    cells = "".join(f'<td style="text-align:left;vertical-align:top">{c}</td>' for c in columns)
    return f"<tr>{cells}</tr>"
