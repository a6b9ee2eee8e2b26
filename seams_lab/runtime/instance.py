"""A process instance as a person reads it: what it waits on, what it did, why it failed."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from sqlalchemy import select

from seams_lab.due import utc
from seams_lab.graph import local_name
from seams_lab.instants import to_text
from seams_lab.runtime.engine import UserTask
from seams_lab.runtime.schema import instance, trace, wait
from seams_lab.runtime.store import Store
from seams_lab.runtime.transaction import Transaction
from seams_lab.series import NONE


@dataclass(frozen=True)
class Instance:
    """What the store says about one process instance at one moment.

    ``status``: running (has steps to do), waiting (on a timer or a person), completed, failed.
    Instants are microseconds since the epoch (UTC). ``waits`` are (event IRI, due time) in order;
    ``holder`` is the replica that holds its claim, if any; ``retry_at`` when a failed one is
    tried again (None: left alone).
    """

    id: str
    process: str
    correlation_key: str
    status: str
    revision: int
    created_at: int
    changed_at: int
    tasks: tuple[UserTask, ...] = ()
    waits: tuple[tuple[str, int], ...] = ()
    attempts: int = 0
    failure: str | None = None
    holder: str | None = None
    retry_at: int | None = None
    #: What it did: one row per element, in order (`at` and `due` are datetime64[us, UTC]).
    trace: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False, compare=False)

    def lines(self) -> list[str]:
        """The instance in a few lines of text."""
        found = [f"{local_name(self.process)} {self.correlation_key}: {self.status}"]
        found += [f"task open: {t.name or local_name(t.element)}" for t in self.tasks]
        found += [f"waits: {local_name(event)} due {to_text(due)}" for event, due in self.waits]
        if self.failure:
            again = f"again at {to_text(self.retry_at)}" if self.retry_at else "not tried again"
            found.append(f"failed {self.attempts}×: {self.failure} ({again})")
        if self.holder:
            found.append(f"held by {self.holder}")
        return found

    def __repr__(self) -> str:
        return f"<Instance {self.id} " + "; ".join(self.lines()) + ">"

    def _repr_html_(self) -> str:
        first, *rest = map(html.escape, self.lines())
        items = "".join(f"<li>{line}</li>" for line in rest)
        shown = self.trace.to_html(index=False) if len(self.trace) else ""
        return f"<p><b>{first}</b> <code>{html.escape(self.id)}</code></p><ul>{items}</ul>{shown}"


def read_instances(
    store: Store, *, ids: Sequence[str] | None = None, correlation_key: str | None = None,
    status: str | None = None, processes: Sequence[str] | None = None, limit: int = 1_000,
    with_tasks: bool = False, with_trace: bool = False,
) -> list[Instance]:  # fmt: skip
    """Read instances, the newest first, at most *limit*; *with_tasks*: only those with open ones.

    *with_trace* also reads what each did.
    """
    query = select(instance).order_by(instance.c.created_at.desc(), instance.c.id).limit(limit)
    if ids is not None:
        query = query.where(instance.c.id.in_(ids))
    if correlation_key is not None:
        query = query.where(instance.c.correlation_key == correlation_key)
    if status is not None:
        query = query.where(instance.c.status == status)
    if processes is not None:
        query = query.where(instance.c.process.in_(processes))
    if with_tasks:
        query = query.where(instance.c.tasks != "[]", instance.c.status != "completed")
    with store.reading() as tx:
        rows = tx.read(query)
        found = [row.id for row in rows]
        waits = _waits(tx, found)
        traces = {i: _trace(tx, i) for i in found} if with_trace else {}
    return [_instance(row, waits.get(row.id, ()), traces) for row in rows]


def _waits(tx: Transaction, ids: list[str]) -> dict[str, tuple[tuple[str, int], ...]]:
    found: dict[str, list[tuple[str, int]]] = {}
    query = select(wait.c.instance, wait.c.event, wait.c.due).order_by(wait.c.due, wait.c.event)
    for start in range(0, len(ids), 500):
        for row in tx.read(query.where(wait.c.instance.in_(ids[start : start + 500]))):
            found.setdefault(row.instance, []).append((row.event, row.due))
    return {key: tuple(rows) for key, rows in found.items()}


def _trace(tx: Transaction, instance_id: str) -> pd.DataFrame:
    query = (
        select(trace.c.at, trace.c.kind, trace.c.element, trace.c.name, trace.c.due, trace.c.note,
               trace.c.replica, trace.c.revision)
        .where(trace.c.instance == instance_id)
        .order_by(trace.c.revision, trace.c.position)
    )  # fmt: skip
    rows = [tuple(row) for row in tx.read(query)]
    frame = pd.DataFrame(rows, columns=["at", "kind", "element", "name", "due", "note", "replica",
                                        "revision"])  # fmt: skip
    frame["at"] = utc(frame["at"].tolist())
    frame["due"] = utc([NONE if row[4] is None else row[4] for row in rows])
    frame["element"] = [local_name(e) for e in frame["element"]]
    return frame


def _instance(row: Any, waits: tuple[tuple[str, int], ...],
              traces: dict[str, pd.DataFrame]) -> Instance:  # fmt: skip
    return Instance(
        id=row.id,
        process=row.process,
        correlation_key=row.correlation_key,
        status=row.status,
        revision=row.revision,
        created_at=row.created_at,
        changed_at=row.changed_at,
        tasks=tuple(UserTask(**task) for task in json.loads(row.tasks)),
        waits=waits,
        attempts=row.attempts,
        failure=row.failure,
        holder=row.holder,
        retry_at=row.claimable_at if row.status == "failed" and row.holder is None else None,
        trace=traces.get(row.id, pd.DataFrame()),
    )


def ids_like(store: Store, start: str) -> list[str]:
    """Ids of at most three instances that begin with *start*."""
    query = select(instance.c.id).where(instance.c.id.startswith(start, autoescape=True))
    with store.reading() as tx:
        return [row.id for row in tx.read(query.order_by(instance.c.id).limit(3))]
