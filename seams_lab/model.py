"""`Model`: what a notebook holds. Load it, look at it, ask it."""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from seams_lab import clock
from seams_lab.check import check
from seams_lab.diagram import Badge, draw
from seams_lab.due import utc
from seams_lab.errors import UnusableInput
from seams_lab.explain import notes
from seams_lab.expressions import DAY, TimeDate, TimeDuration, TimerExpression
from seams_lab.findings import Findings
from seams_lab.graph import ModelGraph, load_graph
from seams_lab.instants import Instant, to_micros, to_text
from seams_lab.picture import Picture
from seams_lab.series import NONE
from seams_lab.timers import Timer, first_due, timer_series, timers
from seams_lab.vocabulary import SEAM


class Model(ModelGraph):
    """A model of processes, their timers, and the containers and nodes that run them.

    Make one with `load`. It is a `ModelGraph` (facts and resolvers) with the questions that a
    notebook asks; the functions `due_times`, `impact`, `plot` take it as their first argument.
    """

    def timers(self, at: Instant | None = None) -> pd.DataFrame:
        """List every timer, one row each.

        Parameters
        ----------
        at : str, datetime or int, optional
            When waiting timers are taken to be reached; now by default.

        Returns
        -------
        DataFrame
            ``event`` and ``process`` (short names), ``kind``, ``position``, ``expression`` (as in
            the file), ``meaning`` (in words), ``verdict`` (accept, refuse, not lifted), ``code``
            and ``reason`` of a refusal, ``first_due`` and ``next_due`` (the first one ``>= at``;
            datetime64[us, UTC]), ``container``, ``nodes``, ``store``.
        """
        instant = moment(at, "at")
        records = timers(self, instant)
        firsts = [(first_due(t, instant, 1) or [NONE])[0] for t in records]
        accepted = [t for t in records if t.verdict == "accept"]
        coming = iter(timer_series(accepted, instant).next(instant - 1).tolist())
        nexts = [next(coming) if t.verdict == "accept" else NONE for t in records]
        rows = [describe(self, t) for t in records]
        columns = ["event", "process", "kind", "position", "expression", "meaning", "verdict",
                   "code", "reason"]  # fmt: skip
        frame = pd.DataFrame([[row[c] for c in columns] for row in rows], columns=columns)
        frame["first_due"] = utc(firsts)
        frame["next_due"] = utc(nexts)
        for column in ("container", "nodes", "store"):
            frame[column] = [", ".join(row[column]) for row in rows]
        return frame

    def check(self, at: Instant | None = None, *, ci: bool = False) -> Findings:
        """Report everything that is wrong, all at once; see `check.check`."""
        return check(self, moment(at, "at"), ci=ci)

    def diagram(self, model: str | None = None, at: Instant | None = None) -> Picture:
        """Draw a BPMN file with a badge on each timer.

        *model* is the short name or IRI of a seam:Model, of a process, or of a bare file; it can
        be left out when there is only one.
        """
        chosen = self._bpmn_model(model)
        payload = self.payload(chosen)
        badges = {t.id: _badge(t) for t in timers(self, moment(at, "at")) if t.model == chosen}
        return draw(payload.root, badges, title=self.label(chosen))

    def _bpmn_model(self, name: str | None) -> str:
        if name is None and len(self.bpmn_models) == 1:
            return self.bpmn_models[0]
        if name is None:
            names = ", ".join(self.name(m) for m in self.bpmn_models)
            raise UnusableInput(
                "diagram", "no name", f"one of {names}", "name the BPMN file to draw"
            )
        detailed = self.pairs(str(SEAM.detailedBy))
        for process in self.processes:
            if name in (process, self.name(process)) and len(detailed.get(process, ())) == 1:
                return detailed[process][0]
        return self.find(name, self.bpmn_models, "BPMN model")

    @property
    def facts(self) -> dict[str, list[str]]:
        """Short names of what the model holds: processes, timers, containers, nodes, stores."""
        stores = {s for found in self.pairs(str(SEAM.storedIn)).values() for s in found}
        processes: Iterable[str] = self.processes
        if self.bare:
            processes = [p for m in self.bpmn_models for p in self._payload_processes(m)]
        return {
            "processes": [self.name(p) for p in processes],
            "timers": [t.id for t in timers(self, 0)],
            "containers": [self.name(c) for c in self.containers],
            "nodes": [self.name(n) for n in self.nodes],
            "stores": [self.name(s) for s in sorted(stores)],
        }

    def _payload_processes(self, model: str) -> tuple[str, ...]:
        try:
            return self.payload(model).processes
        except UnusableInput:
            return ()

    def __repr__(self) -> str:
        lines = [
            f"  {what:<11}{len(names):>3}  {_listed(names)}" for what, names in self.facts.items()
        ]
        return "\n".join([f"Model {self.root.name or self.root}", *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left">{what}</th><td>{len(names)}</td>'
            f'<td style="text-align:left">{html.escape(_listed(names))}</td></tr>'
            for what, names in self.facts.items()
        )
        title = html.escape(self.root.name or str(self.root))
        return f"<table><caption>Model <b>{title}</b></caption><tbody>{rows}</tbody></table>"


def load(path: str | Path) -> Model:
    """Load a model from a folder, a ``.trig`` file or a bare BPMN file.

    Raises
    ------
    UnusableInput
        When nothing there can be used; faults in a usable model are left to `Model.check`.
    """
    return load_graph(path, Model)


def moment(instant: Instant | None, what: str) -> int:
    """*instant* in microseconds (UTC); the host's clock where it is None."""
    return clock.now() if instant is None else to_micros(instant, what)


def describe(model: ModelGraph, timer: Timer) -> dict[str, Any]:
    """One timer as plain values: what the tables and the command line show."""
    deployed, stored = model.pairs(str(SEAM.deployedTo)), model.pairs(str(SEAM.storedIn))
    nodes = sorted({n for c in timer.containers for n in deployed.get(c, ())})
    stores = sorted({s for c in timer.containers for s in stored.get(c, ())})
    return {
        "event": timer.id,
        "event_iri": timer.event,
        "process": model.name(timer.process),
        "kind": timer.element.kind,
        "position": timer.element.position,
        "expression": timer.element.body or "",
        "meaning": timer.expression.in_words if timer.expression else "",
        "verdict": timer.verdict,
        "code": timer.code,
        "reason": timer.refusal.fact if timer.refusal else "",
        "fix": timer.refusal.fix if timer.refusal else "",
        "container": [model.name(c) for c in timer.containers],
        "nodes": [model.name(n) for n in nodes],
        "store": [model.name(s) for s in stores],
        "file": timer.file,
        "line": timer.element.line,
    }


def timer_records(model: ModelGraph, at: int) -> list[dict[str, Any]]:
    """Every timer as `describe` has it, with its first three due times and `explain.notes`."""
    return [
        describe(model, t)
        | {
            "due": [to_text(d) for d in first_due(t, at)],
            "notes": notes(t.expression, at) if t.expression else [],
        }
        for t in timers(model, at)
    ]


def _listed(names: list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" … ({len(names) - most} more)" if len(names) > most else "")


def _badge(timer: Timer) -> Badge:
    if timer.verdict == "not lifted":
        return Badge("not lifted", "off")
    if timer.expression is None:
        return Badge(timer.code, "refused")
    return Badge(_short(timer.expression), "ok")


def _short(expression: TimerExpression) -> str:
    """A few words for a badge."""
    if isinstance(expression, TimeDate):
        return to_text(expression.at).replace("T", " ").replace(":00Z", "Z")
    every = expression.duration.in_words.removeprefix("1 ")
    if isinstance(expression, TimeDuration):
        return f"after {expression.duration.in_words}"
    whole_days = expression.duration.micros % DAY == 0
    return f"every {every}" + (f" {to_text(expression.start)[11:16]}Z" if whole_days else "")
