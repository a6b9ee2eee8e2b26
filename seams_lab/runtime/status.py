"""What the store knows, for a person: what is due next, who holds what, what was skipped, why."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from sqlalchemy import func, select

from seams_lab.due import micros_of, rows_of, utc
from seams_lab.expressions import SECOND, TimerExpression
from seams_lab.graph import local_name
from seams_lab.instants import to_text
from seams_lab.profile import parse
from seams_lab.runtime.schema import firing, instance, timer, wait
from seams_lab.runtime.store import Store
from seams_lab.runtime.transaction import Transaction
from seams_lab.series import NONE, series

#: How many rows the tables of leases, failures and firings have at most.
MOST = 20


@dataclass(frozen=True)
class Status:
    """The state of a store at one instant of the deciding clock.

    Times in the tables are datetime64[us, UTC].

    Attributes
    ----------
    at : int
        Microseconds since the epoch (UTC).
    instances : dict
        Status → number of instances.
    timers : DataFrame
        One row per timer start: ``event``, ``expression``, ``next_due``, ``last_due``,
        ``fired`` (firings recorded), ``skipped`` (missed firings recorded), ``failure``,
        ``contested`` (the other expression that a replica has), ``retry_at``.
    waiting : DataFrame
        One row per event that instances wait on: ``event``, ``instances``, ``next_due``, ``held``,
        ``fired``, ``skipped``, ``contested``.
    leases : DataFrame
        ``instance``, ``process``, ``holder``, ``token``, ``expires``.
    failures : DataFrame
        ``instance``, ``process``, ``attempts``, ``failure``, ``retry_at``.
    firings : DataFrame
        The newest firings: ``event``, ``due``, ``fired_at``, ``late`` (seconds), ``skipped``,
        ``instance``, ``replica``.
    in_future : list of (event, due)
        Newest firings that lie in the future: the clock was set back, and nothing of that event
        fires until it has caught up.
    clock_offset : int
        Microseconds that every replica adds to the store's clock.
    """

    at: int
    store: str
    instances: dict[str, int]
    timers: pd.DataFrame
    waiting: pd.DataFrame
    leases: pd.DataFrame
    failures: pd.DataFrame
    firings: pd.DataFrame
    in_future: list[tuple[str, int]]
    clock_offset: int

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables by name."""
        return {"timers": self.timers, "waiting": self.waiting, "leases": self.leases,
                "failures": self.failures, "firings": self.firings}  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """The state as plain values; instants as text."""
        tables = {name: rows_of(table) for name, table in self.tables.items()}
        return {
            "at": to_text(self.at),
            "store": self.store,
            "clock_offset_seconds": self.clock_offset / SECOND,
            "instances": self.instances,
            "in_future": [{"event": e, "due": to_text(due)} for e, due in self.in_future],
            **tables,
        }

    def headline(self) -> str:
        """The state in one line."""
        counts = ", ".join(f"{n} {status}" for status, n in self.instances.items()) or "none"
        offset = f", clock {self.clock_offset / SECOND:+g} s" if self.clock_offset else ""
        return f"{to_text(self.at // SECOND * SECOND)}{offset}: instances: {counts}"

    def __repr__(self) -> str:
        parts = [self.headline()]
        for event, due in self.in_future:
            parts.append(f"clock set back? newest firing of {event} is due {to_text(due)}")
        parts += [f"{name}\n{table.to_string(index=False)}"
                  for name, table in self.tables.items() if len(table)]  # fmt: skip
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        tables = "".join(
            f"<h4>{name}</h4>{table.to_html(index=False)}"
            for name, table in self.tables.items() if len(table)
        )  # fmt: skip
        return f"<p><b>{html.escape(self.headline())}</b></p>{tables}"


def read_status(store: Store, at: int) -> Status:
    """Read the state of a store; *at* is the deciding clock's instant (microseconds, UTC)."""
    with store.reading() as tx:
        facts = tx.facts()
        counts = tx.read(
            select(instance.c.status, func.count()).group_by(instance.c.status)
            .order_by(instance.c.status)
        )  # fmt: skip
        names = short_names(row.event for row in tx.read(select(timer.c.event)))
        timers, in_future = _timers(tx, at, names)
        return Status(
            at, store.name, {row[0]: row[1] for row in counts}, timers,
            _waiting(tx, names), _leases(tx), _failures(tx), _firings(tx, names), in_future,
            int(facts.get("clock_offset", "0")),
        )  # fmt: skip


def next_due(store: Store, events: Collection[str], at: int) -> int | None:
    """When one of *events* fires next: at or before *at* if one is overdue, None if none will.

    Events are IRIs; instants are microseconds (UTC).
    """
    own = {event: event for event in events}
    with store.reading() as tx:
        found = pd.concat([t[["event", "next_due"]] for t in (_timers(tx, at, own)[0],
                                                              _waiting(tx, own))])  # fmt: skip
    first = found[found["event"].isin(own)]["next_due"].min()
    return None if first is pd.NaT else micros_of(first)


def short_names(events: Iterable[str]) -> dict[str, str]:
    """IRI of an event → its id, or ``model#id`` where several have one id, or all of it.

    >>> short_names(["urn:a/x#tick", "urn:a/y#tick", "urn:a/y#tock"])
    {'urn:a/x#tick': 'x#tick', 'urn:a/y#tick': 'y#tick', 'urn:a/y#tock': 'tock'}
    """
    names = {event: local_name(event) for event in events}
    for longer in (_with_model, str):
        count = Counter(names.values())
        names = {e: longer(e) if count[name] > 1 else name for e, name in names.items()}
    return names


def _with_model(event: str) -> str:
    return f"{local_name(event.rpartition('#')[0])}#{local_name(event)}"


def _timers(
    tx: Transaction, at: int, names: dict[str, str]
) -> tuple[pd.DataFrame, list[tuple[str, int]]]:
    mine = firing.c.event == timer.c.event
    rows = tx.read(
        select(
            timer.c.event, timer.c.expression, timer.c.contested, timer.c.failure, timer.c.retry_at,
            select(func.max(firing.c.due)).where(mine).scalar_subquery().label("last"),
            select(func.count()).select_from(firing).where(mine).scalar_subquery().label("fired"),
            select(func.sum(firing.c.skipped)).where(mine).scalar_subquery().label("skipped"),
        )
        .where(timer.c.role == "start")
        .order_by(timer.c.event)
    )  # fmt: skip
    nexts = [NONE] * len(rows)
    if rows:
        coming = series([_expression(row.event, row.expression) for row in rows], at)
        # What is due and not yet recorded is what fires next.
        latest, later = coming.latest(at).tolist(), coming.next(at).tolist()
        nexts = [now if now != NONE and (row.last is None or now > row.last) else then
                 for row, now, then in zip(rows, latest, later, strict=True)]  # fmt: skip
    frame = pd.DataFrame(
        {
            "event": [_name(row.event, names) for row in rows],
            "expression": [row.expression for row in rows],
            "next_due": utc(nexts),
            "last_due": _utc([row.last for row in rows]),
            "fired": [row.fired for row in rows],
            "skipped": [int(row.skipped or 0) for row in rows],
            "failure": [row.failure or "" for row in rows],
            "contested": [row.contested or "" for row in rows],
            "retry_at": _utc([row.retry_at for row in rows]),
        }
    )
    return frame, [(row.event, row.last) for row in rows if row.last is not None and row.last > at]


def _name(event: str, names: dict[str, str]) -> str:
    return names.get(event) or local_name(event)


def _expression(event: str, stored: str) -> TimerExpression:
    kind, _, text = stored.partition(" ")
    return parse(kind, f'"{text}"', event)


def _waiting(tx: Transaction, names: dict[str, str]) -> pd.DataFrame:
    rows = tx.read(
        select(wait.c.event, func.count().label("n"), func.min(wait.c.due).label("due"),
               func.count(wait.c.holder).label("held"))
        .group_by(wait.c.event).order_by(func.min(wait.c.due), wait.c.event)
    )  # fmt: skip
    fired = {
        row.event: (row.n, int(row.skipped))
        for row in tx.read(
            select(firing.c.event, func.count().label("n"),
                   func.sum(firing.c.skipped).label("skipped"))
            .where(firing.c.waiter != "").group_by(firing.c.event)
        )
    }  # fmt: skip
    events = [row.event for row in rows]
    contested = {
        row.event: row.contested
        for row in tx.read(
            select(timer.c.event, timer.c.contested).where(timer.c.contested.is_not(None))
        )
    }
    return pd.DataFrame(
        {
            "event": [_name(e, names) for e in events],
            "instances": [row.n for row in rows],
            "next_due": _utc([row.due for row in rows]),
            "held": [row.held for row in rows],
            "fired": [fired.get(e, (0, 0))[0] for e in events],
            "skipped": [fired.get(e, (0, 0))[1] for e in events],
            "contested": [contested.get(e, "") for e in events],
        }
    )


def _leases(tx: Transaction) -> pd.DataFrame:
    rows = tx.read(
        select(instance).where(instance.c.holder.is_not(None))
        .order_by(instance.c.claimable_at).limit(MOST)
    )  # fmt: skip
    return pd.DataFrame(
        {
            "instance": [row.id for row in rows],
            "process": [local_name(row.process) for row in rows],
            "holder": [row.holder for row in rows],
            "token": [row.token for row in rows],
            "expires": _utc([row.claimable_at for row in rows]),
        }
    )


def _failures(tx: Transaction) -> pd.DataFrame:
    rows = tx.read(
        select(instance).where(instance.c.failure.is_not(None))
        .order_by(instance.c.changed_at.desc()).limit(MOST)
    )  # fmt: skip
    return pd.DataFrame(
        {
            "instance": [row.id for row in rows],
            "process": [local_name(row.process) for row in rows],
            "attempts": [row.attempts for row in rows],
            "failure": [row.failure for row in rows],
            "retry_at": _utc([row.claimable_at for row in rows]),
        }
    )


def _firings(tx: Transaction, names: dict[str, str]) -> pd.DataFrame:
    rows = tx.read(
        select(firing)
        .order_by(firing.c.fired_at.desc(), firing.c.event, firing.c.due.desc())
        .limit(MOST)
    )
    return pd.DataFrame(
        {
            "event": [_name(row.event, names) for row in rows],
            "due": _utc([row.due for row in rows]),
            "fired_at": _utc([row.fired_at for row in rows]),
            "late": [(row.fired_at - row.due) / SECOND for row in rows],
            "skipped": [row.skipped for row in rows],
            "instance": [row.instance for row in rows],
            "replica": [row.fired_by for row in rows],
        }
    )


def _utc(values: list[Any]) -> pd.Series:
    return utc([NONE if value is None else value for value in values])
