"""Statements on timers and their firings: who may claim a due time of a timer start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import and_, delete, exists, func, select, update

from seams_lab.runtime.rows import as_names, as_rows, rows_of
from seams_lab.runtime.schema import firing, timer
from seams_lab.runtime.statements import Statements


class FiringStatements(Statements):
    """Part of `Transaction`: timers, firings, failures of starts."""

    def add_timers(self, role: str, expressions: dict[str, str]) -> None:
        """Record the expressions of events that the store does not know yet."""
        rows = [
            {"event": event, "role": role, "expression": expression, "attempts": 0}
            for event, expression in sorted(expressions.items())
        ]
        self._insert("add_timers", timer, rows, ("event", "role", "expression", "attempts"))

    def expressions(self, events: Iterable[str]) -> dict[str, str]:
        """The recorded expression of each event."""
        rows = rows_of(self._dialect, ("event",))
        statement = select(timer.c.event, timer.c.expression).join(
            rows, rows.c.event == timer.c.event
        )
        found = self._run("expressions", statement, as_names(events))
        return {row.event: row.expression for row in found}

    def set_expressions(self, expressions: dict[str, str]) -> None:
        """Replace the recorded expressions of events (ruling 19b), forgetting their failures."""
        rows = rows_of(self._dialect, ("event", "expression"))
        statement = (
            update(timer)
            .where(timer.c.event == rows.c.event)
            .values(
                expression=rows.c.expression,
                contested=None,
                attempts=0,
                failure=None,
                retry_at=None,
            )
        )
        values = [{"event": e, "expression": x} for e, x in sorted(expressions.items())]
        self._run("set_expressions", statement, as_rows(values))

    def contest(self, expressions: dict[str, str]) -> None:
        """Record that a replica has other expressions for events than the store."""
        rows = rows_of(self._dialect, ("event", "expression"))
        statement = (
            update(timer).where(timer.c.event == rows.c.event).values(contested=rows.c.expression)
        )
        values = [{"event": e, "expression": x} for e, x in sorted(expressions.items())]
        self._run("contest", statement, as_rows(values))

    def lock_timers(self, events: Iterable[str]) -> dict[str, tuple[str, int, int | None]]:
        """Lock the timers of events, but not those that another replica has locked.

        Returns event → (expression, failed attempts, time of the next try).
        """
        rows = rows_of(self._dialect, ("event",))
        statement = (
            select(timer.c.event, timer.c.expression, timer.c.attempts, timer.c.retry_at)
            .where(timer.c.event.in_(select(rows.c.event)))
            .order_by(timer.c.event)
            .with_for_update(skip_locked=True)
        )
        found = self._run("lock_timers", statement, as_names(events)).all()
        return {event: (expression, tries, at) for event, expression, tries, at in found}

    def newest_starts(self, events: Iterable[str]) -> dict[str, int]:
        """The newest recorded due time of each timer start. Lock the timers first."""
        rows = rows_of(self._dialect, ("event",))
        newest = (
            select(func.max(firing.c.due))
            .where(firing.c.event == rows.c.event, firing.c.waiter == "")
            .scalar_subquery()
        )
        query = select(rows.c.event, newest)
        found = self._run("newest_starts", query, as_names(events)).all()
        return {event: due for event, due in found if due is not None}

    def insert_firings(self, rows: Sequence[dict[str, Any]]) -> set[tuple[str, int, str]]:
        """Insert firings; returns the keys (event, due, waiter) of those that were not there."""
        columns = ("event", "due", "waiter", "instance", "skipped", "fired_at", "fired_by")
        ordered = sorted(rows, key=lambda r: (r["event"], r["due"], r["waiter"]))
        found = self._insert(
            "insert_firings", firing, ordered, columns, (firing.c.event, firing.c.due,
                                                         firing.c.waiter),
        )  # fmt: skip
        return set(map(tuple, found))

    def record_start_failure(self, event: str, failure: str, attempts: int, retry_at: int) -> None:
        """Record that a start failed before its commit, and when it is tried again."""
        values = {"failure": failure, "attempts": attempts, "retry_at": retry_at}
        self._run("record_start_failure",
                  update(timer).where(timer.c.event == event).values(**values))  # fmt: skip

    def clear_start_failures(self, events: Iterable[str]) -> None:
        """Forget the failures of events whose start was committed."""
        rows = rows_of(self._dialect, ("event",))
        statement = (
            update(timer)
            .where(timer.c.event.in_(select(rows.c.event)), timer.c.attempts > 0)
            .values(attempts=0, failure=None, retry_at=None)
        )
        self._run("clear_start_failures", statement, as_names(events))

    def prune_firings(self, before: int) -> int:
        """Delete firings due before an instant, but never an event's newest one (ruling 20)."""
        later = firing.alias("later")
        newer = exists().where(later.c.event == firing.c.event, later.c.due > firing.c.due)
        statement = delete(firing).where(and_(firing.c.due < before, newer))
        return int(self._run("prune_firings", statement).rowcount)
