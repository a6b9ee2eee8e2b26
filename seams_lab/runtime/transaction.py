"""One transaction on the store: every statement is one method, every conflict a normal result.

Rows go in as one JSON parameter, so that a batch is one statement on SQLite and on PostgreSQL.
Locks are taken in one order everywhere (timers by event; instances by id; then their waits), so
that replicas wait for each other but never in a circle. What a competitor holds is skipped, not
waited for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import delete, func, select

from seams_lab.runtime.claim_statements import Claim, ClaimStatements, WaitClaim, WaitKey
from seams_lab.runtime.firing_statements import FiringStatements
from seams_lab.runtime.rows import as_names, rows_of
from seams_lab.runtime.schema import instance, meta, trace, wait

__all__ = ["Claim", "Transaction", "WaitClaim", "WaitKey"]


class Transaction(FiringStatements, ClaimStatements):
    """One open transaction; made by `Store.transaction`."""

    def facts(self) -> dict[str, str]:
        """What is true of the whole store."""
        found = self._run("facts", select(meta.c.key, meta.c.value))
        return {row.key: row.value for row in found}

    def set_fact(self, key: str, value: str) -> None:
        """Set one fact of the whole store."""
        statement = self._upsert(meta, ["key"], ["value"])
        self._run("set_fact", statement, {"key": key, "value": value})

    def insert_instances(self, rows: Sequence[dict[str, Any]]) -> None:
        """Insert new instances, each with its first checkpoint."""
        columns = ("id", "process", "correlation_key", "status", "revision", "checkpoint", "tasks",
                   "attempts", "holder", "token", "claimable_at", "created_at",
                   "changed_at")  # fmt: skip
        self._insert("insert_instances", instance, sorted(rows, key=lambda r: str(r["id"])),
                     columns)  # fmt: skip

    def delete_waits(self, instance_id: str, tasks: Iterable[str]) -> None:
        """Delete timers that an instance does not wait on any more."""
        statement = delete(wait).where(
            wait.c.instance == instance_id, wait.c.task.in_(sorted(tasks))
        )
        self._run("delete_waits", statement)

    def insert_waits(self, rows: Sequence[dict[str, Any]]) -> None:
        """Insert timers that an instance waits on from now."""
        columns = ("instance", "task", "event", "due", "token", "claimable_at")
        self._insert("insert_waits", wait, rows, columns)

    def unknown_waits(self, processes: Sequence[str], known: Iterable[str]) -> dict[str, int]:
        """Waiting timers of events that are not *known*: event → how many instances wait."""
        statement = (
            select(wait.c.event, func.count(wait.c.instance.distinct()))
            .join(instance, instance.c.id == wait.c.instance)
            .where(instance.c.process.in_(processes))
            .group_by(wait.c.event)
        )
        counts = {event: count for event, count in self._run("unknown_waits", statement)}
        return {event: counts[event] for event in sorted(counts.keys() - set(known))}

    def delete_waits_of_events(self, events: Iterable[str]) -> int:
        """Delete the timers of events that the model no longer has (ruling 23)."""
        rows = rows_of(self._dialect, ("event",))
        statement = delete(wait).where(wait.c.event.in_(select(rows.c.event)))
        return int(self._run("delete_waits_of_events", statement, as_names(events)).rowcount)

    def insert_trace(self, rows: Sequence[dict[str, Any]]) -> None:
        """Insert what an instance did since its last checkpoint."""
        columns = ("instance", "revision", "position", "element", "kind", "name", "at", "due",
                   "replica", "note")  # fmt: skip
        self._insert("insert_trace", trace, rows, columns)

    def checkpoint(self, instance_id: str) -> tuple[str, str] | None:
        """The process and the newest checkpoint of an instance, or None."""
        statement = select(instance.c.process, instance.c.checkpoint).where(
            instance.c.id == instance_id
        )
        row = self._run("checkpoint", statement).one_or_none()
        return None if row is None else (row.process, row.checkpoint)
