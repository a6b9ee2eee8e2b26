"""Statements on leases: finding, taking, keeping and giving back instances and waiting timers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sqlalchemy import bindparam, delete, func, or_, select, text, update

from seams_lab.runtime.rows import as_names, as_rows, rows_of
from seams_lab.runtime.schema import instance, wait
from seams_lab.runtime.statements import Statements


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


class ClaimStatements(Statements):
    """Part of `Transaction`: leases on instances and on the timers that they wait on."""

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
        taken = self._run("take_instances", statement, as_names(found, "id")).all()
        recorded = self.waits_of(found)
        return {
            row.id: replace(Claim(*row), recorded=frozenset(recorded.get(row.id, ())))
            for row in taken
        }

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

    def delete_held_wait(self, claim: Claim, held: WaitClaim, holder: str) -> bool:
        """Delete a timer that was fired, if *holder* still holds its lease."""
        statement = delete(wait).where(
            wait.c.instance == claim.instance,
            wait.c.task == held.task,
            wait.c.holder == holder,
            wait.c.token == held.token,
        )
        return bool(self._run("delete_held_wait", statement).rowcount == 1)

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
