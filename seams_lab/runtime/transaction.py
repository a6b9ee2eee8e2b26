"""One transaction on the store: every statement is one method, every conflict a normal result.

Rows go in as one JSON parameter, so that a batch is one statement on SQLite and on PostgreSQL.
Locks are taken in one order everywhere (timers by event; instances by id; then their waits), so
that replicas wait for each other but never in a circle. What a competitor holds is skipped, not
waited for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    and_,
    bindparam,
    delete,
    exists,
    func,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from seams_lab.runtime.rows import as_names, as_rows, insert_each, insert_rows, rows_of
from seams_lab.runtime.schema import firing, instance, meta, timer, trace, wait


class WaitKey(NamedTuple):
    """A waiting timer that could be taken."""

    instance: str
    task: str
    event: str
    due: int


@dataclass(frozen=True, slots=True)
class WaitClaim:
    """A waiting timer that this replica may fire: its lease, by token."""

    task: str
    event: str
    due: int
    token: int


@dataclass(frozen=True, slots=True)
class Claim:
    """An instance that this replica may step, by token, and the due timers taken with it.

    ``recorded`` are all tasks of its rows in the table of waiting timers.
    """

    instance: str
    process: str
    correlation_key: str
    revision: int
    checkpoint: str
    status: str
    attempts: int
    token: int
    waits: tuple[WaitClaim, ...] = ()
    recorded: frozenset[str] = frozenset()


class Transaction:
    """One open transaction; made by `Store.transaction`."""

    def __init__(self, connection: Connection, watch: Callable[[str], None] | None) -> None:
        self._connection, self._watch = connection, watch
        self._dialect = connection.dialect.name

    def _run(self, name: str, statement: Any, parameters: Any = None) -> Any:
        if self._watch:
            self._watch(name)
        return self._connection.execute(statement, parameters or {})

    # ------------------------------------------------------------------ the store as a whole

    def facts(self) -> dict[str, str]:
        """What is true of the whole store."""
        found = self._run("facts", select(meta.c.key, meta.c.value))
        return {row.key: row.value for row in found}

    def set_fact(self, key: str, value: str) -> None:
        """Set one fact of the whole store."""
        statement = self._upsert(meta, ["key"], ["value"])
        self._run("set_fact", statement, {"key": key, "value": value})

    # ------------------------------------------------------------------ timers

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
            .values(expression=rows.c.expression, attempts=0, failure=None, retry_at=None)
        )
        values = [{"event": e, "expression": x} for e, x in sorted(expressions.items())]
        self._run("set_expressions", statement, as_rows(values))

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

    # ------------------------------------------------------------------ instances

    def insert_instances(self, rows: Sequence[dict[str, Any]]) -> None:
        """Insert new instances, each with its first checkpoint."""
        columns = ("id", "process", "correlation_key", "status", "revision", "checkpoint", "tasks",
                   "attempts", "holder", "token", "claimable_at", "created_at",
                   "changed_at")  # fmt: skip
        self._insert("insert_instances", instance, sorted(rows, key=lambda r: str(r["id"])),
                     columns)  # fmt: skip

    def ready_waits(self, events: Sequence[str], now: int, limit: int) -> list[WaitKey]:
        """Find due timers that can be taken, oldest first, fairly over *events*.

        Each event with something due gets an equal share of *limit*. The cost grows with the
        number of events and with *limit*, not with the backlog.
        """
        rows = rows_of(self._dialect, ("event",))
        oldest = (
            select(func.min(wait.c.claimable_at))
            .where(wait.c.event == rows.c.event, wait.c.claimable_at <= bindparam("now"))
            .scalar_subquery()
        )
        inner = select(rows.c.event, oldest.label("oldest")).subquery()
        query = (
            select(inner.c.event)
            .where(inner.c.oldest.is_not(None))
            .order_by(inner.c.oldest, inner.c.event)
            .limit(bindparam("limit"))
        )
        parameters = as_names(events) | {"now": now, "limit": limit}
        active = self._run("ready_events", query, parameters).scalars().all()
        if not active:
            return []
        share = -(-limit // len(active))
        parameters = as_names(active) | {"now": now, "share": share}
        found = self._run("ready_waits", text(_READY[self._dialect]), parameters)
        ordered = sorted(found, key=lambda r: (r.claimable_at, r.instance, r.task))
        # The share is rounded up. What is over the limit goes from the end of each event's.
        seen: Counter[str] = Counter()
        turns = []
        for place, row in enumerate(ordered):
            turns.append((seen[row.event], place))
            seen[row.event] += 1
        chosen = [ordered[place] for place in sorted(place for _, place in sorted(turns)[:limit])]
        return [WaitKey(row.instance, row.task, row.event, row.due) for row in chosen]

    def ready_instances(self, processes: Sequence[str], now: int, limit: int) -> list[str]:
        """Find instances with steps to do that can be taken, oldest first."""
        statement = (
            select(instance.c.id)
            .where(instance.c.claimable_at <= now, instance.c.process.in_(processes))
            .order_by(instance.c.claimable_at, instance.c.id)
            .limit(limit)
        )
        return list(self._run("ready_instances", statement).scalars().all())

    def take_instances(
        self, ids: Iterable[str], holder: str, now: int, until: int
    ) -> dict[str, Claim]:
        """Take the instances that nobody holds, or whose lease has expired.

        An instance that has ended, or that another replica holds or is just taking, is left out.
        """
        rows = rows_of(self._dialect, ("id",))
        free = (
            select(instance.c.id)
            .where(
                instance.c.id.in_(select(rows.c.id)),
                instance.c.status != "completed",
                or_(instance.c.holder.is_(None), instance.c.claimable_at <= now),
            )
            .order_by(instance.c.id)
            .with_for_update(skip_locked=True)
        )
        found = self._run("lock_instances", free, as_names(ids, "id")).scalars().all()
        if not found:
            return {}
        statement = (
            update(instance)
            .where(instance.c.id.in_(select(rows.c.id)))
            .values(holder=holder, token=instance.c.token + 1, claimable_at=until)
            .returning(
                instance.c.id,
                instance.c.process,
                instance.c.correlation_key,
                instance.c.revision,
                instance.c.checkpoint,
                instance.c.status,
                instance.c.attempts,
                instance.c.token,
            )
        )
        taken = self._run("take_instances", statement, as_names(found, "id"))
        return {row.id: Claim(*row) for row in taken}

    def take_waits(
        self, instances: Iterable[str], events: Sequence[str], holder: str, now: int, until: int
    ) -> dict[str, list[WaitClaim]]:
        """Take the due timers of instances that this transaction has taken.

        Only those of *events*, and only when due and unheld or with an expired lease (R72).
        """
        rows = rows_of(self._dialect, ("id",))
        statement = (
            update(wait)
            .where(
                wait.c.instance.in_(select(rows.c.id)),
                wait.c.event.in_(events),
                wait.c.claimable_at <= now,
            )
            .values(holder=holder, token=wait.c.token + 1, claimable_at=until)
            .returning(wait.c.instance, wait.c.task, wait.c.event, wait.c.due, wait.c.token)
        )
        taken: dict[str, list[WaitClaim]] = {}
        for row in self._run("take_waits", statement, as_names(instances, "id")):
            taken.setdefault(row.instance, []).append(WaitClaim(*row[1:]))
        for claims in taken.values():
            claims.sort(key=lambda w: (w.due, w.task))
        return taken

    def write_instance(self, claim: Claim, holder: str, values: dict[str, Any]) -> bool:
        """Write an instance, if *holder* still holds *claim* and its revision is the newest.

        Holding means that holder and token are unchanged; a lease's expiry alone loses nothing
        (ruling 21).
        """
        statement = (
            update(instance)
            .where(
                instance.c.id == bindparam("b_id"),
                instance.c.holder == bindparam("b_holder"),
                instance.c.token == bindparam("b_token"),
                instance.c.revision == bindparam("b_revision"),
            )
            .values({name: bindparam(f"v_{name}") for name in values})
        )
        parameters = {"b_id": claim.instance, "b_holder": holder, "b_token": claim.token,
                      "b_revision": claim.revision}  # fmt: skip
        parameters |= {f"v_{name}": value for name, value in values.items()}
        return bool(self._run("write_instance", statement, parameters).rowcount == 1)

    def renew(self, holder: str, claims: Sequence[Claim], until: int) -> set[str]:
        """Lengthen the leases of instances and their timers; returns those still held."""
        held = self._renew("renew_instances", instance, ("id",), holder, until,
                           [{"id": c.instance, "token": c.token} for c in claims])  # fmt: skip
        waits = [{"instance": c.instance, "task": w.task, "token": w.token}
                 for c in claims for w in c.waits]  # fmt: skip
        if waits:
            self._renew("renew_waits", wait, ("instance", "task"), holder, until, waits)
        return held

    def _renew(self, name: str, table: Any, key: tuple[str, ...], holder: str, until: int,
               values: list[dict[str, Any]]) -> set[str]:  # fmt: skip
        rows = rows_of(self._dialect, (*key, "token"))
        statement = (
            update(table)
            .where(*(table.c[part] == rows.c[part] for part in key))
            .where(table.c.token == rows.c.token, table.c.holder == holder)
            .values(claimable_at=until)
            .returning(table.c[key[0]])
        )
        ordered = sorted(values, key=lambda row: [row[part] for part in key])
        return set(self._run(name, statement, as_rows(ordered)).scalars().all())

    # ------------------------------------------------------------------ waiting timers

    def waits_of(self, ids: Iterable[str]) -> dict[str, set[str]]:
        """The waiting tasks of each instance, as they are recorded."""
        rows = rows_of(self._dialect, ("id",))
        statement = select(wait.c.instance, wait.c.task).where(
            wait.c.instance.in_(select(rows.c.id))
        )
        found: dict[str, set[str]] = {}
        for row in self._run("waits_of", statement, as_names(ids, "id")):
            found.setdefault(row.instance, set()).add(row.task)
        return found

    def delete_held_wait(self, claim: Claim, held: WaitClaim, holder: str) -> bool:
        """Delete a timer that was fired, if *holder* still holds its lease."""
        statement = delete(wait).where(
            wait.c.instance == claim.instance,
            wait.c.task == held.task,
            wait.c.holder == holder,
            wait.c.token == held.token,
        )
        return bool(self._run("delete_held_wait", statement).rowcount == 1)

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

    def postpone_wait(self, claim: Claim, held: WaitClaim, holder: str, until: int | None) -> None:
        """Give a timer back, to be taken again at *until*, if *holder* still holds its lease."""
        statement = (
            update(wait)
            .where(
                wait.c.instance == claim.instance,
                wait.c.task == held.task,
                wait.c.holder == holder,
                wait.c.token == held.token,
            )
            .values(holder=None, claimable_at=until)
        )
        self._run("postpone_wait", statement)

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

    # ------------------------------------------------------------------ trace, next wake-up

    def insert_trace(self, rows: Sequence[dict[str, Any]]) -> None:
        """Insert what an instance did since its last checkpoint."""
        columns = ("instance", "revision", "position", "element", "kind", "name", "at", "due",
                   "replica", "note")  # fmt: skip
        self._insert("insert_trace", trace, rows, columns)

    def next_claimable(self, events: Sequence[str], processes: Sequence[str]) -> int | None:
        """When the first waiting timer or instance can be taken, or None."""
        rows = rows_of(self._dialect, ("event",))
        first = (
            select(func.min(wait.c.claimable_at))
            .where(wait.c.event == rows.c.event)
            .scalar_subquery()
        )
        each = select(first.label("at")).select_from(rows).subquery()
        at = self._run("next_wait", select(func.min(each.c.at)), as_names(events)).scalar()
        statement = select(func.min(instance.c.claimable_at)).where(
            instance.c.process.in_(processes)
        )
        other = self._run("next_instance", statement).scalar()
        return min((x for x in (at, other) if x is not None), default=None)

    def revive(self, instance_id: str, now: int) -> bool:
        """Let an instance that failed be tried again now; its timers too."""
        failed = update(instance).where(instance.c.id == instance_id,
                                        instance.c.status == "failed",
                                        instance.c.holder.is_(None))  # fmt: skip
        again = failed.values(attempts=0, claimable_at=now)
        if self._run("revive", again).rowcount != 1:
            return False
        waits = update(wait).where(wait.c.instance == instance_id, wait.c.claimable_at.is_(None))
        self._run("revive_waits", waits.values(claimable_at=wait.c.due))
        return True

    def prune_firings(self, before: int) -> int:
        """Delete firings due before an instant, but never an event's newest one (ruling 20)."""
        later = firing.alias("later")
        newer = exists().where(later.c.event == firing.c.event, later.c.due > firing.c.due)
        statement = delete(firing).where(and_(firing.c.due < before, newer))
        return int(self._run("prune_firings", statement).rowcount)

    def checkpoint(self, instance_id: str) -> tuple[str, str] | None:
        """The process and the newest checkpoint of an instance, or None."""
        statement = select(instance.c.process, instance.c.checkpoint).where(
            instance.c.id == instance_id
        )
        row = self._run("checkpoint", statement).one_or_none()
        return None if row is None else (row.process, row.checkpoint)

    def read(self, statement: Any, parameters: Any = None) -> list[Any]:
        """Rows of a query that only looks (`status.py`)."""
        return list(self._run("read", statement, parameters))

    # ------------------------------------------------------------------ building blocks

    def _insert(self, name: str, table: Any, values: Sequence[dict[str, Any]],
                columns: tuple[str, ...], returning: Any = None) -> Any:  # fmt: skip
        """Insert rows in their order; a row whose key is taken is left out."""
        if not values:
            return []
        if self._dialect == "sqlite" and returning is None:
            # Its driver runs prepared statements in a loop faster than it reads JSON.
            if self._watch:
                self._watch(name)
            rows = [tuple(map(row.get, columns)) for row in values]
            return self._connection.exec_driver_sql(insert_each(table, columns), rows)
        return self._run(name, insert_rows(self._dialect, table, columns, returning),
                         as_rows(values))  # fmt: skip

    def _upsert(self, table: Any, key: list[str], columns: list[str]) -> Any:
        dialect = postgresql if self._dialect == "postgresql" else sqlite
        statement = dialect.insert(table)
        changed = {name: statement.excluded[name] for name in columns}
        return statement.on_conflict_do_update(index_elements=key, set_=changed)


# The first few of each event, by the index on (event, claimable_at): the one statement that the
# two databases spell differently.
_READY = {
    "postgresql": """
        SELECT w.instance, w.task, w.event, w.due, w.claimable_at
        FROM json_to_recordset(CAST(:rows AS json)) AS r(event text)
        CROSS JOIN LATERAL (
            SELECT instance, task, event, due, claimable_at FROM seams_wait
            WHERE event = r.event AND claimable_at <= :now
            ORDER BY claimable_at LIMIT :share) AS w""",
    "sqlite": """
        SELECT w.instance, w.task, w.event, w.due, w.claimable_at
        FROM json_each(:rows) AS r
        JOIN seams_wait AS w ON w.rowid IN (
            SELECT x.rowid FROM seams_wait AS x
            WHERE x.event = json_extract(r.value, '$.event') AND x.claimable_at <= :now
            ORDER BY x.claimable_at LIMIT :share)""",
}
