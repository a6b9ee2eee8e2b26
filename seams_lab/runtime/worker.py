"""The worker: steps one claimed instance until it waits or ends, and writes what it did.

Each checkpoint is written in one transaction with everything that must agree with it: the trace
rows, the firing rows of timers that woke it, the rows of timers it waits on. The write counts only
while the claim and the revision are unchanged (rulings 21 and 22); otherwise all of it is dropped.

A checkpoint is written after each element that had an effect, so that a crash repeats at most the
one effect that was under way: a handler *runs* again, and its effect may happen again (ruling 26).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from seams_lab.clock import Clock
from seams_lab.errors import SeamsError
from seams_lab.expressions import SECOND
from seams_lab.runtime.engine import Engine, Fired, Step
from seams_lab.runtime.store import Store, StoreFailure
from seams_lab.runtime.telemetry import Telemetry
from seams_lab.runtime.transaction import Claim, Transaction, WaitClaim


class ClaimLost(SeamsError):
    """Another replica has taken the instance: what this one did is dropped."""


@dataclass(frozen=True)
class Retries:
    """How a failing instance or start is tried again: after 1 s, 2 s, 4 s, … at most `longest`.

    Instants and lengths in microseconds. After `most` tries an instance is left alone until
    `Runtime.retry`.
    """

    first: int = SECOND
    longest: int = 300 * SECOND
    most: int = 20

    def at(self, attempts: int, now: int) -> int:
        """When to try again after the given number of failures."""
        return now + min(self.first << min(attempts - 1, 40), self.longest)


@dataclass
class _Run:
    """What a step of one instance has done since its last checkpoint."""

    claim: Claim
    now: int
    trace: list[dict[str, Any]] = field(default_factory=list)
    fired: list[tuple[WaitClaim, Fired]] = field(default_factory=list)
    due: dict[str, int] = field(default_factory=dict)


class Worker:
    """Steps instances for one replica."""

    def __init__(
        self, store: Store, engine: Engine, clock: Clock, telemetry: Telemetry, replica: str,
        lease: int, retries: Retries | None = None,
    ) -> None:  # fmt: skip
        self._store, self._engine, self._clock = store, engine, clock
        self._telemetry, self._replica, self._lease = telemetry, replica, lease
        self._retries = retries or Retries()
        self._held: dict[str, Claim] = {}
        self._lock = threading.Lock()

    def hold(self, claims: Sequence[Claim]) -> None:
        """Count claims as held from now, so that `renew` lengthens them while they queue."""
        with self._lock:
            self._held.update({claim.instance: claim for claim in claims})

    def renew(self) -> None:
        """Lengthen the lease of every claim held; call it at a third of the lease (ruling 21).

        A claim that is no longer held is dropped: its step notices when it writes.
        """
        with self._lock:
            claims = [self._held[key] for key in sorted(self._held)]
        if not claims:
            return
        until = self._clock.now() + self._lease
        with self._store.transaction() as tx:
            kept = tx.renew(self._replica, claims, until)
        with self._lock:
            for claim in claims:
                if claim.instance not in kept and self._held.get(claim.instance) == claim:
                    del self._held[claim.instance]

    def step(self, claim: Claim, start: Fired | None = None, workflow: Any = None) -> bool:
        """Step a claimed instance until it waits or ends, and give the claim back.

        *start* is the firing that has just begun it, *workflow* its state where the caller has
        it. Returns whether it went well: a failure is recorded on the instance and a lost claim
        dropped, neither is raised.

        Raises
        ------
        StoreFailure
            When the database fails; the claim then expires, and whoever takes it goes on.
        """
        self.hold([claim])
        run = _Run(claim, self._clock.now())
        try:
            if workflow is None:
                workflow = self._restore(claim)
            if start is not None:
                with self._telemetry.fire_span(start.event, start.due, claim.instance):
                    self._advance(workflow, run)
            else:
                self._wake(workflow, run)
                self._advance(workflow, run)
            self._save(workflow, run, done=True)
        except ClaimLost:
            for held in run.claim.waits:
                self._telemetry.claimed_elsewhere(held.event, held.due)
            return False
        except StoreFailure:
            raise
        except Exception as error:
            self._fail(run, error)
            return False
        finally:
            with self._lock:
                self._held.pop(claim.instance, None)
        return True

    def complete(self, claim: Claim, task: str, data: dict[str, Any]) -> bool:
        """Complete a user task of a claimed instance, then step it on.

        The completion is written first: a handler that fails behind it does not undo it.

        Raises
        ------
        UnusableInput
            When the task is not open or the data cannot be kept; nothing has changed then.
        """
        self.hold([claim])
        run = _Run(claim, self._clock.now())
        try:
            workflow = self._restore(claim)
            open_tasks = {t.task: t for t in self._engine.user_tasks(workflow)}
            self._engine.complete(workflow, task, data, run.now)
            done = open_tasks[task]
            self._record(run, Step(done.element, "userTask", done.name))
            self._save(workflow, run, done=False)
        except BaseException:
            self._release(run)
            raise
        return self.step(run.claim, workflow=workflow)

    # ------------------------------------------------------------------ one run

    def _restore(self, claim: Claim) -> Any:
        workflow = self._engine.restore(claim.process, claim.checkpoint)
        self._engine.seed(workflow, f"{claim.instance}/{claim.revision}")
        return workflow

    def _wake(self, workflow: Any, run: _Run) -> None:
        """Fire the timers taken, one by one in the order of their due times.

        An earlier one may cancel a later one: that one then no longer waits, and has not fired.
        """
        for held in run.claim.waits:
            with self._telemetry.fire_span(held.event, held.due, run.claim.instance):
                fired = self._engine.fire(workflow, held.task, run.now)
                if fired is not None:
                    run.fired.append((held, fired))
                    run.due[fired.event] = fired.due
                    self._advance(workflow, run)

    def _advance(self, workflow: Any, run: _Run) -> None:
        def on_step(step: Step) -> None:
            if step.effect:
                # A handler may take long: it is done now, and what follows is counted from now.
                run.now = self._clock.now()
            self._record(run, step)
            if step.effect:
                self._save(workflow, run, done=False)

        self._engine.steps(workflow, lambda: run.now, on_step, instance=run.claim.instance,
                           attempt=run.claim.attempts + 1)  # fmt: skip

    def _record(self, run: _Run, step: Step) -> None:
        run.trace.append(
            {
                "instance": run.claim.instance,
                "revision": run.claim.revision + 1,
                "position": len(run.trace),
                "element": step.element,
                "kind": step.kind,
                "name": step.name,
                "at": run.now,
                "due": run.due.get(step.element),
                "replica": self._replica,
                "note": step.note,
            }
        )

    def _save(self, workflow: Any, run: _Run, done: bool) -> None:
        """Write a checkpoint with all that must agree with it; give the claim back when *done*."""
        claim, engine = run.claim, self._engine
        waiting = {w.task: w for w in engine.waiting(workflow)}
        tasks = [
            {"task": t.task, "element": t.element, "name": t.name}
            for t in engine.user_tasks(workflow)
        ]
        values = {
            "revision": claim.revision + 1,
            "checkpoint": engine.checkpoint(workflow),
            "tasks": json.dumps(tasks),
            "status": "running",
            "attempts": 0,
            "failure": None,
            "changed_at": run.now,
        }
        if done:
            values |= {"status": "completed" if engine.is_ended(workflow) else "waiting",
                       "holder": None, "claimable_at": None}  # fmt: skip
        with self._store.transaction() as tx:
            if not tx.write_instance(claim, self._replica, values):
                raise ClaimLost(f"instance {claim.instance} was taken by another replica")
            self._write_firings(tx, run)
            known = claim.recorded - {held.task for held, _ in run.fired}
            gone = known - waiting.keys()
            if gone:
                tx.delete_waits(claim.instance, gone)
            tx.insert_waits([
                {"instance": claim.instance, "task": w.task, "event": w.event, "due": w.due,
                 "token": 0, "claimable_at": w.due}
                for w in waiting.values() if w.task not in known
            ])  # fmt: skip
            tx.insert_trace(run.trace)
        self._committed(run, frozenset(waiting), done)
        engine.seed(workflow, f"{claim.instance}/{run.claim.revision}")

    def _write_firings(self, tx: Transaction, run: _Run) -> None:
        rows = []
        for held, fired in run.fired:
            if not tx.delete_held_wait(run.claim, held, self._replica):
                raise ClaimLost(f"timer {held.event} was taken by another replica")
            rows.append(firing_row(fired, held.task, run.claim.instance, run.now, self._replica))
        if len(tx.insert_firings(rows)) != len(rows):
            raise ClaimLost(f"a timer of instance {run.claim.instance} has fired already")

    def _committed(self, run: _Run, waiting: frozenset[str], done: bool) -> None:
        fired = {held.task for held, _ in run.fired}
        for _, one in run.fired:
            self._telemetry.fired(one.event, one.due, run.claim.instance, run.now)
            if one.skipped:
                self._telemetry.missed(one.event, one.skipped)
        run.claim = replace(
            run.claim,
            revision=run.claim.revision + 1,
            attempts=0,
            # Timers that are taken and did not fire yet.
            waits=tuple(w for w in run.claim.waits if w.task in waiting - fired),
            recorded=waiting,
        )
        run.fired.clear()
        run.trace.clear()
        with self._lock:
            if not done and run.claim.instance in self._held:
                self._held[run.claim.instance] = run.claim

    def _fail(self, run: _Run, error: Exception) -> None:
        """Go back to the last checkpoint and record why; try again later, ever more slowly."""
        claim, now = run.claim, self._clock.now()
        attempts = claim.attempts + 1
        again = None if attempts >= self._retries.most else self._retries.at(attempts, now)
        values = {
            "status": "failed",
            "failure": told(error),
            "attempts": attempts,
            "holder": None,
            # The timers bring it back where there are any; both would count as two tries.
            "claimable_at": None if claim.waits else again,
            "changed_at": now,
        }
        with self._store.transaction() as tx:
            if not tx.write_instance(claim, self._replica, values):
                return
            for held in claim.waits:
                tx.postpone_wait(claim, held, self._replica, again)
        self._telemetry.failed(claim.instance, told(error), again)

    def _release(self, run: _Run) -> None:
        """Give an unchanged claim back at once."""
        with self._lock:
            self._held.pop(run.claim.instance, None)
        self.give_back([run.claim])

    def give_back(self, claims: Sequence[Claim]) -> None:
        """Give claims back that were not stepped, so that another replica need not wait."""
        with self._store.transaction() as tx:
            now = self._clock.now()
            for claim in sorted(claims, key=lambda c: c.instance):
                again = None if claim.status == "waiting" else now
                values = {"holder": None, "claimable_at": again}
                if tx.write_instance(claim, self._replica, values):
                    for held in claim.waits:
                        tx.postpone_wait(claim, held, self._replica, held.due)


def firing_row(fired: Fired, waiter: str, instance: str, now: int, replica: str) -> dict[str, Any]:
    """The row of a firing; *waiter* is empty for a timer start."""
    return {"event": fired.event, "due": fired.due, "waiter": waiter, "instance": instance,
            "skipped": fired.skipped, "fired_at": now, "fired_by": replica}  # fmt: skip


def told(error: Exception) -> str:
    """An error as one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if isinstance(error, SeamsError) else f"{type(error).__name__}: {text}"
