"""The loop of a replica: rounds of the scheduler, each instance stepped as a task of its own.

The core is synchronous (scheduler, worker, store); this runs it off the event loop. A round is
only begun while few steps are under way, so memory stays bounded however much is due. Between
rounds it sleeps until something can be claimed, at most `poll`: that bounds how long the work of
a replica that died can go unnoticed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from seams_lab.clock import Clock
from seams_lab.expressions import SECOND
from seams_lab.runtime.scheduler import Scheduler, Work
from seams_lab.runtime.store import StoreFailure
from seams_lab.runtime.worker import Worker

T = TypeVar("T")

log = logging.getLogger("seams_lab.runtime")

#: Waiting timers and orphaned instances that one round takes at most.
WAITS, INSTANCES = 32, 16
# A round is begun while fewer steps than this are under way.
_ENOUGH = 32
# How long to wait, in seconds, when something is due but held by another replica, or the store
# fails: doubled each time up to the longest.
_SHORT, _LONG = 0.02, 1.0


class Loop:
    """Runs one replica until it is told to stop.

    Parameters
    ----------
    workers : int
        Steps that run at a time, each on a thread.
    lease, poll : int
        In microseconds.
    """

    def __init__(self, scheduler: Scheduler, worker: Worker, clock: Clock, *, workers: int,
                 lease: int, poll: int) -> None:  # fmt: skip
        self._scheduler, self._worker, self._clock = scheduler, worker, clock
        self._lease, self._poll = lease / SECOND, poll / SECOND
        self._threads = ThreadPoolExecutor(workers, "seams-step")
        # Claiming and renewal have a thread each: steps that block must not hold them up.
        self._claims = ThreadPoolExecutor(1, "seams-claim")
        self._renewals = ThreadPoolExecutor(1, "seams-renew")
        self._steps: set[asyncio.Task[None]] = set()
        self._stop, self._nudge = asyncio.Event(), asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def stop(self) -> None:
        """Stop claiming, finish what runs, give back what has not begun. From any thread."""
        self._signal(self._stop)

    def nudge(self) -> None:
        """Look again now: something new may be due. From any thread."""
        self._signal(self._nudge)

    def _signal(self, event: asyncio.Event) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(event.set)
        else:
            event.set()

    async def run(self) -> None:
        """Run until `stop`."""
        self._loop = asyncio.get_running_loop()
        renewing = asyncio.create_task(self._renew())
        refreshing = asyncio.create_task(self._refresh())
        try:
            pause = _SHORT
            while not self._stop.is_set():
                found = await self._round()
                if found:
                    pause = _SHORT
                    await self._until_few()
                else:
                    pause = min(2 * pause, _LONG)
                    await self._sleep(pause)
        finally:
            if self._steps:
                await asyncio.gather(*self._steps)
            for task in (renewing, refreshing):
                task.cancel()
            await asyncio.gather(renewing, refreshing, return_exceptions=True)
            for threads in (self._threads, self._claims, self._renewals):
                threads.shutdown(wait=True)

    async def _round(self) -> bool:
        """Claim something of each kind, and begin to step it; whether there was anything."""
        found = False
        for claim in (
            self._scheduler.claim_starts,
            lambda: self._scheduler.claim_waits(WAITS),
            lambda: self._scheduler.claim_instances(INSTANCES),
        ):
            if self._stop.is_set():
                break
            try:
                work = await self._call(claim)
            except StoreFailure as error:
                log.warning("store failed: %s", error)
                continue
            self._worker.hold([w.claim for w in work])
            for one in work:
                task = asyncio.create_task(self._step(one))
                self._steps.add(task)
                task.add_done_callback(self._steps.discard)
            found = found or bool(work)
        return found

    async def _step(self, work: Work) -> None:
        try:
            await self._call(lambda: self._begin(work), self._threads)
        except StoreFailure as error:
            log.warning("store failed while instance %s ran: %s", work.claim.instance, error)

    def _begin(self, work: Work) -> None:
        if self._stop.is_set():
            self._worker.give_back([work.claim])
        else:
            self._worker.step(work.claim, work.workflow, work.start)

    async def _until_few(self) -> None:
        while len(self._steps) >= _ENOUGH:
            await asyncio.wait(self._steps, return_when=asyncio.FIRST_COMPLETED)

    async def _sleep(self, pause: float) -> None:
        """Sleep until something can be claimed; not hot, and not longer than `poll`."""
        try:
            wake, now = await self._call(lambda: (self._scheduler.next_wake(), self._clock.now()))
        except StoreFailure:
            wake, now = None, 0
        seconds = self._poll if wake is None else min((wake - now) / SECOND, self._poll)
        # Due already, and yet nothing could be claimed: another replica has it just now.
        seconds = pause if seconds <= 0 else seconds
        waiting = [asyncio.ensure_future(e.wait()) for e in (self._stop, self._nudge)]
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for one in waiting:
            one.cancel()
        self._nudge.clear()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._lease / 3)
            try:
                await self._call(self._worker.renew, self._renewals)
            except StoreFailure as error:
                log.warning("store failed, leases not renewed: %s", error)

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(self._poll)
            try:
                await self._call(self._scheduler.refresh)
            except StoreFailure as error:
                log.warning("store failed: %s", error)

    async def _call(self, function: Callable[[], T], on: ThreadPoolExecutor | None = None) -> T:
        return await asyncio.get_running_loop().run_in_executor(on or self._claims, function)
