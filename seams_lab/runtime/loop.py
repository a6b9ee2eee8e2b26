"""The loop of a replica: rounds of the scheduler, each instance stepped as a task of its own.

The core is synchronous (scheduler, worker, store); this runs it off the event loop. A round is
only begun while few steps are under way, so memory stays bounded however much is due. Between
rounds it sleeps until something can be claimed, at most `poll`: that bounds how long the work of
a replica that died can go unnoticed.

Nothing but `stop` ends it. A store that fails, and a fault of a round, are logged and tried again
after a pause that doubles; so a database that restarts is no reason to start a replica anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from seams_lab.clock import Clock
from seams_lab.expressions import SECOND
from seams_lab.runtime.scheduler import Scheduler, Work
from seams_lab.runtime.store import StoreFailure
from seams_lab.runtime.worker import Worker, told

T = TypeVar("T")

log = logging.getLogger("seams_lab.runtime")

#: Waiting timers and orphaned instances that one round takes at most.
WAITS, INSTANCES = 32, 16
#: A round is begun while fewer steps than this are under way.
ENOUGH = 32
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
        self._steps: dict[asyncio.Task[None], tuple[Work, Future[bool]]] = {}
        self._stop, self._nudge = asyncio.Event(), asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._trouble = ""

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
        beside = [
            asyncio.create_task(self._every(self._lease / 3, self._worker.renew, self._renewals)),
            asyncio.create_task(self._every(self._poll, self._scheduler.refresh, self._claims)),
        ]
        try:
            await self._rounds()
        finally:
            # At once, not behind the steps that run: another replica may have time for them.
            await self._give_back([w for w, future in self._steps.values() if future.cancel()])
            if self._steps:
                await asyncio.wait(self._steps)
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            for threads in (self._threads, self._claims, self._renewals):
                threads.shutdown(wait=True)

    async def _rounds(self) -> None:
        pause = 0.0
        while not self._stop.is_set():
            try:
                found = await self._round()
                seconds = 0.0 if found else await self._idle_seconds()
            except Exception as error:
                self._tell(error)
                found, seconds = False, 0.0
            else:
                self._fine()
            if found:
                pause = 0.0
                await self._until_few()
            elif seconds > 0:
                pause = 0.0
                await self._sleep(seconds)
            else:
                # It failed; or something is due, and another replica has it just now.
                pause = min(2 * pause or _SHORT, _LONG, self._poll)
                await self._sleep(pause)

    async def _round(self) -> bool:
        """Claim something of each kind, and begin to step it; whether there was anything.

        Raises the first fault, after the other kinds have had their turn: what is wrong with one
        does not hold up the others. A store that fails, fails for all.
        """
        found, fault = False, None
        for claim in (
            self._scheduler.claim_starts,
            lambda: self._scheduler.claim_waits(WAITS),
            lambda: self._scheduler.claim_instances(INSTANCES),
        ):
            if self._stop.is_set():
                break
            try:
                work = await self._call(claim)
            except StoreFailure:
                raise
            except Exception as error:
                fault = fault or error
                continue
            self._worker.hold([w.claim for w in work])
            if self._stop.is_set():
                await self._give_back(work)
                break
            for one in work:
                self._begin(one)
            found = found or bool(work)
        if fault is not None:
            raise fault
        return found

    def _begin(self, work: Work) -> None:
        future = self._threads.submit(self._worker.step, work.claim, work.start)
        task = asyncio.create_task(self._finish(work, future))
        self._steps[task] = (work, future)
        task.add_done_callback(self._steps.pop)

    async def _finish(self, work: Work, future: Future[bool]) -> None:
        try:
            await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if not future.cancelled():
                raise
        except Exception as error:
            # Its lease ends, and whoever takes it goes on from its last checkpoint.
            self._tell(error, f"instance {work.claim.instance} left where it was: ")

    async def _give_back(self, work: Sequence[Work]) -> None:
        if work:
            try:
                await self._call(lambda: self._worker.give_back([w.claim for w in work]))
            except Exception as error:
                self._tell(error, f"{len(work)} instance(s) not given back: ")

    async def _until_few(self) -> None:
        stop = asyncio.ensure_future(self._stop.wait())
        while len(self._steps) >= ENOUGH and not stop.done():
            await asyncio.wait([stop, *self._steps], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()

    async def _idle_seconds(self) -> float:
        """How long nothing can be claimed, at most `poll`; 0 or less: something is due now."""
        wake, now = await self._call(lambda: (self._scheduler.next_wake(), self._clock.now()))
        return self._poll if wake is None else min((wake - now) / SECOND, self._poll)

    async def _sleep(self, seconds: float) -> None:
        """Sleep until it is time, or `stop` or `nudge` is called."""
        waiting = [asyncio.ensure_future(e.wait()) for e in (self._stop, self._nudge)]
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for one in waiting:
            one.cancel()
        self._nudge.clear()

    async def _every(self, seconds: float, function: Callable[[], None],
                     on: ThreadPoolExecutor) -> None:  # fmt: skip
        """Call it again and again, whatever happens: leases that are not renewed are lost."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await self._call(function, on)
            except Exception as error:
                self._tell(error)

    def _tell(self, error: Exception, what: str = "") -> None:
        """Log what goes wrong; the same again only after it went well in between."""
        text = what + (f"store failed: {error}" if isinstance(error, StoreFailure)
                       else f"fault: {told(error)}")  # fmt: skip
        if text != self._trouble:
            self._trouble = text
            level = logging.WARNING if isinstance(error, StoreFailure) else logging.ERROR
            log.log(level, "%s; tried again", text,
                    exc_info=error if log.isEnabledFor(logging.DEBUG) else None)  # fmt: skip

    def _fine(self) -> None:
        if self._trouble:
            log.info("it works again")
            self._trouble = ""

    async def _call(self, function: Callable[[], T], on: ThreadPoolExecutor | None = None) -> T:
        return await asyncio.get_running_loop().run_in_executor(on or self._claims, function)
