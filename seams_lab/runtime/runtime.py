"""`Runtime`: one replica of a container. Load a model, start processes, let its timers fire."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from seams_lab.clock import Clock, offset_from_environment
from seams_lab.due import utc
from seams_lab.errors import UnusableInput
from seams_lab.expressions import SECOND
from seams_lab.graph import ModelGraph, load_graph, local_name
from seams_lab.instants import Instant, to_text
from seams_lab.picture import Picture
from seams_lab.runtime.deployment import Deployment, deployment
from seams_lab.runtime.drawing import instance_diagram
from seams_lab.runtime.engine import Engine, Handler
from seams_lab.runtime.instance import Instance, read_instances
from seams_lab.runtime.loop import INSTANCES, WAITS, Loop
from seams_lab.runtime.pace import manual, pass_time
from seams_lab.runtime.scheduler import Scheduler, Work, first_row, stored_text
from seams_lab.runtime.status import Status, read_status
from seams_lab.runtime.store import Store, StoreClock
from seams_lab.runtime.telemetry import Telemetry
from seams_lab.runtime.timeline import read_timeline
from seams_lab.runtime.transaction import Claim
from seams_lab.runtime.worker import Retries, Worker

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

log = logging.getLogger("seams_lab.runtime")

#: Names the store where no `store` is given.
STORE_VARIABLE = "SEAMS_STORE"


class Runtime:
    """One replica: a container's part of a model, on a store that its replicas share.

    Make one with `Runtime.load`. Everything here is synchronous and may be called from any
    thread; `run` is the replica's loop, as a coroutine.

    Examples
    --------
    >>> clock = ManualClock("2026-11-09T07:59:00Z")                       # doctest: +SKIP
    >>> runtime = Runtime.load("models/expense", "api", clock=clock)      # doctest: +SKIP
    >>> clock.advance("PT2M"); runtime.settle()                           # doctest: +SKIP
    >>> runtime.instances(correlation_key="2026-11-09T08:00:00Z")         # doctest: +SKIP
    """

    def __init__(
        self, graph: ModelGraph, found: Deployment, store: Store, engine: Engine, clock: Clock,
        telemetry: Telemetry, name: str, lease: int, poll: int, workers: int, batch: int,
        retries: Retries, new_id: Callable[[], str],
    ) -> None:  # fmt: skip
        self.graph, self.store, self.clock, self.name = graph, store, clock, name
        self.container, self.processes = found.container, found.processes
        self.telemetry = telemetry
        self._engine, self._lease, self._new_id, self.deployment = engine, lease, new_id, found
        self._worker = Worker(store, engine, clock, telemetry, name, lease, retries)
        self._scheduler = Scheduler(store, engine, clock, telemetry, name, found.starts,
                                    found.waits, found.processes, lease, new_id, batch,
                                    retries)  # fmt: skip
        self._loop_settings = {"workers": workers, "lease": lease, "poll": poll}
        self._loop: Loop | None = None
        self._owns_store = False

    @classmethod
    def load(
        cls, model: ModelGraph | str | Path, container: str | None = None,
        store: Store | str | Path | None = None, *, clock: Clock | None = None,
        handlers: Mapping[str, Handler] | None = None, name: str | None = None,
        lease: float = 30.0, poll: float = 5.0, workers: int = 4, batch: int = 100,
        retries: Retries | None = None, allow_scripts: bool = False, accept_changes: bool = False,
        cancel: bool = False, replace_offset: bool = False,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None, new_id: Callable[[], str] | None = None,
    ) -> Runtime:  # fmt: skip
        """Check a model and prepare one replica of a container; nothing runs yet.

        Parameters
        ----------
        model : Model, str or Path
        container : str, optional
            Short name or IRI; may be left out when only one container executes processes.
        store : Store, str or Path, optional
            As `Store` takes it; by default what ``SEAMS_STORE`` says, else a store in memory.
        clock : Clock, optional
            The deciding clock; by default the store's own plus ``SEAMS_CLOCK_OFFSET`` (ruling 17).
        handlers : mapping, optional
            Element id or IRI → function(data, context), for service and business rule tasks. A
            task without one completes without doing anything, and its trace row says so.
        name : str, optional
            Names the replica in the store; made unique by itself.
        lease, poll : float
            Seconds: how long a claim lasts unless it is renewed; the longest sleep of the loop.
        workers : int
            Steps that run at a time.
        batch : int
            Timer starts that one transaction claims at most.
        retries : Retries, optional
            How failures are tried again.
        allow_scripts : bool
            Run script tasks: code in the model, with all rights of this process.
        accept_changes : bool
            Make this model's changed timer expressions valid for every replica (ruling 19b).
        cancel : bool
            Delete waiting timers of events that the model no longer has (ruling 23).
        replace_offset : bool
            Make this replica's clock offset valid for the store.

        Raises
        ------
        ResolutionError
            For whatever `check` calls an error, and for what cannot be run.
        UnusableInput
            For an unusable file, container, store or clock offset.
        """
        graph = model if isinstance(model, ModelGraph) else load_graph(model)
        opened = store if isinstance(store, Store) else Store(_store_address(store))
        try:
            own = clock or StoreClock(opened, offset_from_environment())
            found = deployment(graph, container, own.now())
            engine = Engine(graph, found.processes, handlers, allow_scripts=allow_scripts)
            runtime = cls(
                graph, found, opened, engine, own, Telemetry(tracer_provider, meter_provider),
                f"{name or 'replica'}-{secrets.token_hex(4)}", round(lease * SECOND),
                round(poll * SECOND), workers, batch, retries or Retries(),
                new_id or (lambda: secrets.token_hex(16)),
            )  # fmt: skip
            runtime._join(accept_changes, cancel, replace_offset)
        except BaseException:
            if opened is not store:
                opened.close()
            raise
        runtime._owns_store = opened is not store
        return runtime

    def _join(self, accept_changes: bool, cancel: bool, replace_offset: bool) -> None:
        """Agree with the other replicas on clock and expressions; report what is odd."""
        offset = getattr(self.clock, "offset", 0)
        with self.store.transaction() as tx:
            stored = tx.facts().get("clock_offset")
            if stored is None or replace_offset:
                tx.set_fact("clock_offset", str(offset))
            elif int(stored) != offset:
                raise UnusableInput(
                    "SEAMS_CLOCK_OFFSET", f"{offset / SECOND:g} s",
                    f"the offset of the store's other replicas, {int(stored) / SECOND:g} s",
                    "set the same offset everywhere, or replace it: --replace-offset",
                )  # fmt: skip
            for role, timers in (
                ("start", self.deployment.starts),
                ("wait", self.deployment.waits),
            ):
                tx.add_timers(role, {t.event: stored_text(t) for t in timers})
        self._scheduler.refresh()
        if accept_changes and self._scheduler.changed:
            for event in self._scheduler.accept():
                log.warning("timer change accepted %s", event)
        status = self.status()
        for event, due in status.in_future:
            log.warning("clock set back? newest firing of %s is due %s, in the future",
                        event, to_text(due))  # fmt: skip
        self._report_removed(cancel)
        if missing := self._engine.unhandled():
            log.warning("no handler, so these complete without doing anything: %s",
                        ", ".join(local_name(e) for e in missing))  # fmt: skip

    def _report_removed(self, cancel: bool) -> None:
        known = {t.event for t in self.deployment.waits}
        with self.store.reading() as tx:
            removed = tx.unknown_waits(self.processes, known)
        for event, count in removed.items():
            log.warning("timer removed %s: %d instance(s) still wait on it%s", event, count,
                        "" if cancel else "; delete their rows with cancel")  # fmt: skip
        if removed and cancel:
            with self.store.transaction() as tx:
                tx.delete_waits_of_events(removed)

    # ------------------------------------------------------------------ processes and tasks

    def start_process(
        self, process: str, data: Mapping[str, Any] | None = None, *,
        correlation_key: str | None = None, start: str | None = None,
    ) -> Instance:  # fmt: skip
        """Start a process and step it until it waits or ends.

        Parameters
        ----------
        process : str
            Short name or IRI of a process that the container executes.
        data : mapping, optional
            Process data: whatever JSON can hold.
        correlation_key : str, optional
            By which the instance is found; its own id by default.
        start : str, optional
            Id of the start event, where the process has several.

        Raises
        ------
        UnusableInput
            For an unknown process or start event, or data that cannot be kept.
        """
        iri = self.graph.find(process, self.processes, "process")
        now = self.clock.now()
        key = self._new_id()
        checkpoint = self._engine.begin(iri, dict(data or {}), start, key)
        claim = Claim(key, iri, correlation_key or key, 1, checkpoint, "running", 0, 1)  # fmt: skip
        self._worker.hold([claim])
        with self.store.transaction() as tx:
            tx.insert_instances([first_row(claim, self.name, now, now + self._lease)])
        self._worker.step(claim)
        self._nudge()
        return self.instance(key)

    def tasks(self) -> pd.DataFrame:
        """List the open user tasks: ``instance``, ``task``, ``element``, ``name``, ``process``,
        ``correlation_key``, ``since`` (datetime64[us, UTC], when its instance last changed)."""
        rows = [
            (i.id, t.task, local_name(t.element), t.name, self.graph.name(i.process),
             i.correlation_key, i.changed_at)
            for i in read_instances(self.store, processes=self.processes, with_tasks=True)
            for t in i.tasks
        ]  # fmt: skip
        frame = pd.DataFrame(rows, columns=["instance", "task", "element", "name", "process",
                                            "correlation_key", "since"])  # fmt: skip
        frame["since"] = utc(frame["since"].tolist())
        return frame

    def complete(
        self, instance: str | Instance, task: str | None = None,
        data: Mapping[str, Any] | None = None, *, patience: float = 30.0,
    ) -> Instance:  # fmt: skip
        """Complete an open user task with data, and step its instance on.

        Parameters
        ----------
        instance : str or Instance
        task : str, optional
            Id of the task or of its BPMN element; may be left out when only one is open.
        patience : float
            Seconds to wait while another replica holds the instance.

        Raises
        ------
        UnusableInput
            When there is no such instance or open task, or it stays held.
        """
        key = instance.id if isinstance(instance, Instance) else instance
        claim = self._take(key, patience)
        try:
            found = self._open_task(key, task)
        except BaseException:
            self._worker.give_back([claim])
            raise
        self._worker.complete(claim, found, dict(data or {}))
        self._nudge()
        return self.instance(key)

    def _take(self, key: str, patience: float) -> Claim:
        waited = 0.0
        while True:
            now = self.clock.now()
            with self.store.transaction() as tx:
                claims = tx.take_instances([key], self.name, now, now + self._lease)
            if claims:
                return claims[key]
            seen = self.instance(key)
            if seen.status == "completed" or waited >= patience:
                raise UnusableInput(
                    f"instance {key}",
                    "completed" if seen.status == "completed" else f"held by {seen.holder}",
                    "an instance with an open task",
                    "look at its status" if seen.status == "completed" else "try again",
                )  # fmt: skip
            time.sleep(0.05)
            waited += 0.05

    def _open_task(self, key: str, task: str | None) -> str:
        tasks = self.instance(key).tasks
        fits = [t.task for t in tasks
                if task in (None, t.task, t.element, local_name(t.element))]  # fmt: skip
        if len(fits) == 1:
            return fits[0]
        names = ", ".join(f"{local_name(t.element)} ({t.task})" for t in tasks) or "none"
        raise UnusableInput(
            f"instance {key}",
            f"no open task {task!r}" if task and not fits else f"{len(fits)} open tasks fit",
            f"one of its open tasks: {names}", "name the task by its id",
        )  # fmt: skip

    # ------------------------------------------------------------------ looking

    def instance(self, key: str) -> Instance:
        """One instance with its trace.

        Raises UnusableInput when the store has no such instance.
        """
        found = read_instances(self.store, ids=[key], with_trace=True)
        if not found:
            raise _no_instance(key)
        return found[0]

    def instances(
        self, *, correlation_key: str | None = None, status: str | None = None,
        process: str | None = None, limit: int = 1_000,
    ) -> list[Instance]:  # fmt: skip
        """List instances, the newest first; a firing is found by its due time as the key."""
        processes = [self.graph.find(process, self.processes, "process")] if process else None
        return read_instances(self.store, correlation_key=correlation_key, status=status,
                              processes=processes or self.processes, limit=limit)  # fmt: skip

    def data(self, instance: str | Instance) -> dict[str, Any]:
        """The data of an instance, as of its last checkpoint."""
        key = instance.id if isinstance(instance, Instance) else instance
        with self.store.reading() as tx:
            found = tx.checkpoint(key)
        if found is None:
            raise _no_instance(key)
        return self._engine.data(self._engine.restore(*found))

    def status(self) -> Status:
        """What the store knows: instances, timers and when they are next due, leases, skips."""
        return read_status(self.store, self.clock.now())

    def diagram(self, instance: str | Instance) -> Picture:
        """Draw an instance's BPMN file with what is done, open and waiting; see `drawing`."""
        key = instance.id if isinstance(instance, Instance) else instance
        return instance_diagram(self.graph, self.instance(key))

    def timeline(self) -> pd.DataFrame:
        """What happened, for `plot.timeline`; the columns are those of `read_timeline`."""
        known = {t.event: t.expression for t in (*self.deployment.starts, *self.deployment.waits)
                 if t.expression}  # fmt: skip
        return read_timeline(self.graph, self.store, self.processes, known, self.clock.now())

    # ------------------------------------------------------------------ running

    def resume(self) -> int:
        """Take over and step instances whose replica did not come back; returns how many."""
        return self._work_off(lambda: self._scheduler.claim_instances(INSTANCES))

    def settle(self) -> int:
        """Do everything that is due at the clock's present instant; returns how many steps.

        Fires due timers, wakes waiting instances and resumes orphaned ones until nothing is left
        to claim. It is what `run` does, once and in this thread: for notebooks and tests, with a
        clock that stands still meanwhile.
        """
        self._scheduler.refresh()
        return self._work_off(
            lambda: [
                *self._scheduler.claim_starts(),
                *self._scheduler.claim_waits(WAITS),
                *self._scheduler.claim_instances(INSTANCES),
            ]
        )

    def _work_off(self, claim: Callable[[], list[Work]]) -> int:
        done = 0
        while work := claim():
            self._worker.hold([w.claim for w in work])
            for one in work:
                self._worker.step(one.claim, one.start)
            done += len(work)
        return done

    def run_until(self, instant: Instant) -> int:
        """Let a ManualClock pass to an instant and do what falls due on the way; see `pace`."""
        return pass_time(manual(self.clock, "run_until"), instant, self.next_wake, self.settle)

    def next_wake(self) -> int | None:
        """When something can next be claimed, in microseconds (UTC); None when nothing waits."""
        return self._scheduler.next_wake()

    @property
    def changed(self) -> dict[str, str]:
        """Events not claimed because the store holds another expression (ruling 19b)."""
        return dict(self._scheduler.changed)

    def retry(self, instance: str | Instance) -> None:
        """Let a failed instance be tried again now."""
        key = instance.id if isinstance(instance, Instance) else instance
        with self.store.transaction() as tx:
            revived = tx.revive(key, self.clock.now())
        if not revived:
            raise UnusableInput(
                f"instance {key}", self.instance(key).status, "a failed instance that nobody holds",
                "look at its status",
            )  # fmt: skip
        self._nudge()

    async def run(self) -> None:
        """Run the replica until `stop`: claim, step, sleep until something is next due."""
        self._loop = Loop(self._scheduler, self._worker, self.clock,
                          **self._loop_settings)  # fmt: skip
        log.info("replica %s runs %s", self.name, self.graph.name(self.container) or "all")
        await self._loop.run()
        log.info("replica %s stopped", self.name)

    def run_forever(self) -> None:
        """Run the replica in this thread until `stop`."""
        asyncio.run(self.run())

    def stop(self) -> None:
        """Stop the loop gracefully: no new claims, running steps end, the rest is given back."""
        if self._loop is not None:
            self._loop.stop()

    def _nudge(self) -> None:
        if self._loop is not None:
            self._loop.nudge()

    def close(self) -> None:
        """Close the store, if this runtime opened it."""
        if self._owns_store:
            self.store.close()

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        what = self.graph.name(self.container) if self.container else "all processes"
        return f"<Runtime {self.name}: {what} on {self.store.name}>"


def _no_instance(key: str) -> UnusableInput:
    return UnusableInput(
        f"instance {key}", "not in the store", "an instance's id", "list them: instances()"
    )


def _store_address(given: str | Path | None) -> str | Path:
    return given if given is not None else os.environ.get(STORE_VARIABLE) or "sqlite://"
