"""The scheduler: finds what is due and claims it, in bounded rounds, through the store alone.

Three claims, each one transaction:

- a **timer start** by its firing row (event, due) with the new instance and its first checkpoint
  (R69). Only the newest due time can be claimed; the row counts the skipped ones, and an older due
  time can never be inserted any more (ruling 19);
- a **waiting timer** by a lease on its row and on its instance, with tokens (R72, ruling 21);
- an **instance** with steps to do, whose replica did not come back (ruling 19c).

Nothing that decides is kept in memory: each claim asks the store again. What is remembered (the
newest due time seen) only saves questions whose answer cannot change.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from seams_lab.clock import Clock
from seams_lab.instants import to_text
from seams_lab.runtime.engine import Engine, Fired
from seams_lab.runtime.store import Store
from seams_lab.runtime.telemetry import Outcome, Telemetry
from seams_lab.runtime.transaction import Claim, Transaction
from seams_lab.runtime.worker import Retries, firing_row, told
from seams_lab.series import NONE
from seams_lab.timers import Timer, timer_series

log = logging.getLogger("seams_lab.timer")

#: How many batches of due starts, the oldest ones, replicas choose from.
WINDOW = 8


@dataclass(frozen=True)
class Work:
    """A claimed instance to step, and the firing that has just started it, if one has."""

    claim: Claim
    start: Fired | None = None


@dataclass
class _Batch:
    """What the transaction of one batch of starts decided."""

    work: list[Work]
    known: dict[str, int]
    elsewhere: list[tuple[str, int]]
    failures: list[tuple[str, str, int]]
    retry_at: dict[str, int]


class Scheduler:
    """Claims due work for one replica.

    Parameters
    ----------
    starts, waits : sequence of Timer
        The timer starts that the replica's container schedules; the timers that instances of the
        processes it executes wait on.
    processes : sequence of str
        The processes whose instances it may resume.
    lease : int
        Length of a lease, in microseconds.
    batch : int
        How many starts one transaction claims at most.
    """

    def __init__(
        self, store: Store, engine: Engine, clock: Clock, telemetry: Telemetry, replica: str,
        starts: Sequence[Timer], waits: Sequence[Timer], processes: Sequence[str], lease: int,
        new_id: Callable[[], str], batch: int = 100, retries: Retries | None = None,
    ) -> None:  # fmt: skip
        self._store, self._engine, self._clock = store, engine, clock
        self._telemetry, self._replica, self._lease = telemetry, replica, lease
        self._retries, self._new_id, self._batch = retries or Retries(), new_id, batch
        self._processes = sorted(processes)
        self._starts = sorted(starts, key=lambda t: t.event)
        self._series = timer_series(self._starts, 0)
        self._row = {timer.event: row for row, timer in enumerate(self._starts)}
        self._expressions = {t.event: stored_text(t) for t in [*starts, *waits]}
        self._wait_events = sorted(t.event for t in waits)
        # Hints, per row of _starts: the newest due time known to be recorded, the time of a retry.
        self._newest = np.full(len(self._starts), NONE)
        self._retry_at = np.full(len(self._starts), NONE)
        self._open = np.ones(len(self._starts), bool)
        # Whether the last batch met another replica; where this one begins.
        self._lost, self._turn = False, zlib.crc32(replica.encode())
        #: Events whose expression in the store is another one, with that expression (ruling 19b).
        self.changed: dict[str, str] = {}

    @property
    def starts(self) -> tuple[Timer, ...]:
        """The timer starts that it schedules, by event."""
        return tuple(self._starts)

    def overdue(self) -> int:
        """How many timer starts are due now and not known to be recorded."""
        return int(np.count_nonzero(self._unrecorded(self._series.latest(self._clock.now()))))

    def _unrecorded(self, latest: Any) -> Any:
        """Which timer starts have a newest due time that is not known to be recorded."""
        return self._open & (latest > self._newest)

    def refresh(self) -> None:
        """Look again which expressions the store holds; stop claiming those that differ.

        Also which firings others have recorded, so that what is done is not asked about again.
        """
        with self._store.reading() as tx:
            stored = tx.expressions(self._expressions)
        changed = {e: x for e, x in stored.items() if x != self._expressions[e]}
        self._learn(np.arange(len(self._starts)))
        new = sorted(changed.keys() - self.changed.keys())
        if new:
            with self._store.transaction() as tx:
                tx.contest({e: f"{self._expressions[e]} ({self._replica})" for e in new})
        for event in new:
            log.warning(
                "timer changed %s here %s store %s: not claimed until the change is accepted",
                event, self._expressions[event], changed[event],
            )  # fmt: skip
        for event in sorted(self.changed.keys() - changed.keys()):
            log.info("timer agreed %s %s", event, self._expressions[event])
        self.changed = changed
        self._open = np.array([t.event not in changed for t in self._starts], bool)

    def accept(self) -> list[str]:
        """Make this replica's expressions the store's; returns the events that changed."""
        events = sorted(self.changed)
        with self._store.transaction() as tx:
            tx.set_expressions({event: self._expressions[event] for event in events})
        self.refresh()
        return events

    # ------------------------------------------------------------------ timer starts

    def claim_starts(self) -> list[Work]:
        """Claim due timer starts: at most one batch, the oldest due times first.

        Returns the instances started, held by this replica and not stepped yet.
        """
        if not self._starts:
            return []
        now = self._clock.now()
        latest = self._series.latest(now)
        window = self._due_rows(latest, now)
        if self._lost and len(window):
            self._learn(window)
            window = self._due_rows(latest, now)
        # Replicas begin with different batches, so that they seldom want the same one; each with
        # another one each time, so that none stays unclaimed.
        batches = -(-len(window) // self._batch)
        self._turn += 1
        for number in range(batches):
            first = (self._turn + number) % batches * self._batch
            rows = window[first : first + self._batch]
            due = {self._starts[row].event: int(latest[row]) for row in rows}
            began = self._telemetry.mark()
            with self._store.transaction() as tx:
                batch = self._claim(tx, due, now)
            self._settle(batch, due, now, began)
            self._lost = len(batch.work) < len(due)
            if batch.work:
                return batch.work
        return []

    def _due_rows(self, latest: Any, now: int) -> Any:
        """Rows of _starts that may be claimed: a few batches.

        The oldest due times first; of equal ones, those that fired longest ago, so that no event
        is always the one that is left over.
        """
        rows = np.flatnonzero(self._unrecorded(latest) & (self._retry_at <= now))
        order = np.lexsort((rows, self._newest[rows], latest[rows]))
        return rows[order][: WINDOW * self._batch]

    def _learn(self, rows: Any) -> None:
        """Read which due times others have recorded, without any lock."""
        if not len(rows):
            return
        with self._store.reading() as tx:
            newest = tx.newest_starts([self._starts[row].event for row in rows])
        for event, due in newest.items():
            row = self._row[event]
            self._newest[row] = max(due, self._newest[row])

    def _claim(self, tx: Transaction, due: dict[str, int], now: int) -> _Batch:
        locked = tx.lock_timers(due)
        newest = tx.newest_starts(locked)
        batch = _Batch([], dict(newest), [], [], {})
        events = []
        for event, (expression, _, retry_at) in locked.items():
            if expression != self._expressions[event]:
                continue
            if newest.get(event, NONE) >= due[event]:
                batch.elsewhere.append((event, due[event]))
            elif retry_at is not None and retry_at > now:
                batch.retry_at[event] = retry_at
            else:
                events.append(event)
        started = self._started(events, locked, newest, due, now, batch)
        inserted = tx.insert_firings([row for _, row, _ in started])
        won = []
        for work, row, instance in started:
            key = (row["event"], row["due"], "")
            batch.known[row["event"]] = row["due"]
            if key in inserted:
                won.append(instance)
                batch.work.append(work)
            else:
                batch.elsewhere.append((row["event"], row["due"]))
        tx.insert_instances(won)
        recovered = [w.start.event for w in batch.work if w.start and locked[w.start.event][1]]
        if recovered:
            tx.clear_start_failures(recovered)
        for event, failure, attempts in batch.failures:
            batch.retry_at[event] = self._retries.at(attempts, now)
            tx.record_start_failure(event, failure, attempts, batch.retry_at[event])
        return batch

    def _started(self, events: list[str], locked: dict[str, tuple[str, int, int | None]],
                 newest: dict[str, int], due: dict[str, int], now: int,
                 batch: _Batch) -> list[tuple[Work, dict[str, Any], dict[str, Any]]]:  # fmt: skip
        """Make the instances of due starts: (work, firing row, instance row) each.

        One that cannot be made goes to the batch's failures and holds up no other.
        """
        if not events:
            return []
        rows = np.array([self._row[event] for event in events])
        since = np.array([newest.get(event, NONE) for event in events])
        skipped = self._series[rows].skipped(since, now).tolist()
        made = []
        key_of = lru_cache(to_text)  # firings of one round mostly share few due times
        until = now + self._lease
        for event, missed in zip(events, skipped, strict=True):
            timer = self._starts[self._row[event]]
            try:
                key = self._new_id()
                checkpoint = self._engine.begin(timer.process, {}, event, key)
            except Exception as error:
                batch.failures.append((event, told(error), locked[event][1] + 1))
                continue
            claim = Claim(key, timer.process, key_of(due[event]), 1, checkpoint,
                          "running", 0, 1)  # fmt: skip
            start = Fired(event, due[event], missed)
            made.append((
                Work(claim, start),
                firing_row(start, "", key, now, self._replica),
                first_row(claim, self._replica, now, until),
            ))  # fmt: skip
        return made

    def _settle(self, batch: _Batch, due: dict[str, int], now: int, began: Any) -> None:
        """After the commit: remember, log, count."""
        for event, newest in batch.known.items():
            self._newest[self._row[event]] = max(newest, self._newest[self._row[event]])
        for event, at in batch.retry_at.items():
            self._retry_at[self._row[event]] = at
        outcomes = []
        for work in batch.work:
            start = work.start
            assert start is not None
            outcomes.append(Outcome(start.event, start.due, work.claim.instance))
            self._telemetry.fired(start.event, start.due, work.claim.instance, now)
            if start.skipped:
                self._telemetry.missed(start.event, start.skipped)
        for event, at in batch.elsewhere:
            outcomes.append(Outcome(event, at, None))
            self._telemetry.claimed_elsewhere(event, at)
        for event, failure, attempts in batch.failures:
            outcomes.append(Outcome(event, due[event], None))
            self._telemetry.start_failed(event, due[event], failure, attempts)
        self._telemetry.claim_spans(outcomes, began)

    # ------------------------------------------------------------------ waiting timers, instances

    def claim_waits(self, limit: int) -> list[Work]:
        """Take the leases of at most *limit* due timers, with their instances."""
        events = [e for e in self._wait_events if e not in self.changed]
        if not events or limit < 1:
            return []
        now = self._clock.now()
        began = self._telemetry.mark()
        with self._store.transaction() as tx:
            ready = tx.ready_waits(events, now, limit)
            if not ready:
                return []
            until = now + self._lease
            ids = {key.instance for key in ready}
            claims = tx.take_instances(ids, self._replica, now, until)
            taken = tx.take_waits(claims, events, self._replica, now, until) if claims else {}
        got = {(i, w.task) for i, waits in taken.items() for w in waits}
        outcomes = [Outcome(w.event, w.due, i) for i, waits in taken.items() for w in waits]
        for key in ready:
            if (key.instance, key.task) not in got:
                outcomes.append(Outcome(key.event, key.due, None))
                self._telemetry.claimed_elsewhere(key.event, key.due)
        self._telemetry.claim_spans(outcomes, began)
        return [
            Work(replace(claim, waits=tuple(taken.get(key, ()))))
            for key, claim in sorted(claims.items())
        ]

    def claim_instances(self, limit: int) -> list[Work]:
        """Take at most *limit* instances that have steps to do and that nobody holds any more."""
        if limit < 1:
            return []
        now = self._clock.now()
        with self._store.transaction() as tx:
            ready = tx.ready_instances(self._processes, now, limit)
            if not ready:
                return []
            claims = tx.take_instances(ready, self._replica, now, now + self._lease)
        return [Work(claim) for _, claim in sorted(claims.items())]

    def next_wake(self) -> int | None:
        """When something can next be claimed: a due time, a lease's expiry, a retry; or None."""
        now = self._clock.now()
        candidates = []
        if self._starts and self._open.any():
            # What is due already and not known to be recorded waits for its retry, or for now.
            overdue = self._unrecorded(self._series.latest(now))
            if overdue.any():
                candidates.append(int(np.maximum(self._retry_at[overdue], now).min()))
            coming = self._series.next(now)[self._open]
            coming = coming[coming != NONE]
            if len(coming):
                candidates.append(int(coming.min()))
        events = [e for e in self._wait_events if e not in self.changed]
        with self._store.reading() as tx:
            first = tx.next_claimable(events, self._processes)
        if first is not None:
            candidates.append(first)
        return min(candidates, default=None)


def stored_text(timer: Timer) -> str:
    """A timer's expression as the store keeps it: ``timeCycle R/2026-11-09T08:00:00Z/P1D``."""
    assert timer.expression is not None
    return f"{timer.element.kind} {timer.expression.text}"


def first_row(claim: Claim, replica: str, now: int, until: int) -> dict[str, Any]:
    """The row of a new instance that its replica holds."""
    return {
        "id": claim.instance, "process": claim.process, "correlation_key": claim.correlation_key,
        "status": claim.status, "revision": claim.revision, "checkpoint": claim.checkpoint,
        "tasks": "[]", "attempts": 0, "holder": replica, "token": claim.token,
        "claimable_at": until, "created_at": now, "changed_at": now,
    }  # fmt: skip
