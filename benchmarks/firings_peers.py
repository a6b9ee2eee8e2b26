"""Other schedulers and queues of due work, each run the way its documentation says.

A peer fills an empty store with due firings (not timed) and then runs them with some processes on
that store: the time is from the moment when all processes have imported, connected and registered
until the last row is there. Each firing writes one row of one kilobyte in a transaction of its
own, for none of these peers runs a job inside the transaction that takes or ends it.

Where a peer's default would measure only its polling interval or a limit of one job at a time,
the setting is the best of those tried; ``settings`` says which, and it goes into the table.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import importlib.util
import itertools
import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from benchmarks.firings_race import (
    PAYLOAD,
    POSTGRESQL,
    SQLITE,
    Counts,
    Gate,
    Row,
    connected,
    count_rows,
    insert_of,
    kind_of,
    make_rows,
    path_of,
    run_queue,
    watch,
    writer,
)

EPOCH = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
#: Connections a process writes rows with, where jobs of one process run at the same time.
_WRITERS = 4


class Peer(Protocol):
    """One contender. ``module`` is imported only when it is measured."""

    name: str
    module: str
    stores: frozenset[str]
    settings: str
    errors: int
    deadlocks: int

    def prepare(self, url: str, firings: int) -> None:
        """Fill the empty store at *url* with *firings* due firings."""

    def run(self, processes: int) -> float:
        """Run them by so many processes; seconds from the start signal to the last row."""

    def counts(self) -> Counts:
        """What was written."""


@dataclass
class Queue:
    """A peer made of two functions: ``fill(url, firings)`` and ``work(gate, url)``.

    ``work`` is called in each worker process: it gets ready, waits at the gate, then runs what is
    due until it is killed.
    """

    name: str
    module: str
    stores: frozenset[str]
    settings: str
    fill: Callable[[str, int], None]
    work: Callable[[Gate, str], None]
    errors: int = 0
    deadlocks: int = 0
    url: str = field(default="", init=False)
    firings: int = field(default=0, init=False)

    def prepare(self, url: str, firings: int) -> None:
        """Make the table of rows, and let the peer make its own and fill them."""
        self.url, self.firings = url, firings
        make_rows(url)
        self.fill(url, firings)
        if kind_of(url) == POSTGRESQL:
            # A store in use has its planner's figures; one filled a second ago has not yet.
            with connected(url) as connection:
                connection.execute("ANALYZE")

    def run(self, processes: int) -> float:
        """Seconds to the last row; errors and deadlocks are noted in the fields."""
        seconds, self.errors, self.deadlocks = run_queue(
            self.work, self.url, processes, self.firings
        )
        return seconds

    def counts(self) -> Counts:
        """From the rows that the jobs wrote."""
        return count_rows(self.url, self.firings)


def installed(peer: Peer) -> bool:
    """Whether the peer's library is there."""
    return importlib.util.find_spec(peer.module) is not None


def measure(peer: Peer, store_url: str, processes: int, firings: int) -> Row:
    """Fill the empty store at *store_url*, run it, count. RuntimeError when no run came about."""
    peer.prepare(store_url, firings)
    seconds = peer.run(processes)
    counts = peer.counts()
    return Row(
        peer.name, kind_of(store_url), processes, firings, seconds, counts.ran, counts.duplicates,
        counts.missed, peer.errors, peer.deadlocks, peer.settings,
    )  # fmt: skip


async def async_writer(url: str) -> Callable[[str], Awaitable[None]]:
    """As :func:`writer`, for one event loop: a few connections in turn, so that commits overlap.

    SQLite: by a thread. In the loop, a row that waits for the lock would keep the transaction
    that holds it from its end.
    """
    if kind_of(url) == SQLITE:
        write, alone = writer(url), asyncio.Lock()

        async def write_in_thread(job: str) -> None:
            async with alone:
                await asyncio.to_thread(write, job)

        return write_in_thread
    import psycopg

    insert = insert_of(url)
    opened = [await psycopg.AsyncConnection.connect(url, autocommit=True) for _ in range(_WRITERS)]
    turn = itertools.cycle(opened)

    async def write_next(job: str) -> None:
        await next(turn).execute(insert, (job, PAYLOAD))

    return write_next


# ---------------------------------------------------------------------- APScheduler 4

#: What the jobs of this worker process write with: APScheduler finds the job by its name alone.
_APSCHEDULER: dict[str, Callable[[str], Awaitable[None]]] = {}


async def apscheduler_job(job: str) -> None:
    """Write the row of one firing."""
    await _APSCHEDULER["write"](job)


def _apscheduler(url: str) -> tuple[Any, Any]:
    from apscheduler import AsyncScheduler
    from apscheduler.datastores.sqlalchemy import SQLAlchemyDataStore
    from apscheduler.eventbrokers.local import LocalEventBroker
    from apscheduler.eventbrokers.psycopg import PsycopgEventBroker
    from sqlalchemy import make_url
    from sqlalchemy.ext.asyncio import create_async_engine

    if kind_of(url) == SQLITE:
        # There is no event broker over SQLite: each process hears only of its own events.
        engine = create_async_engine(f"sqlite+aiosqlite:///{path_of(url)}",
                                     connect_args={"timeout": 30})  # fmt: skip
        broker: Any = LocalEventBroker()
    else:
        engine = create_async_engine(make_url(url).set(drivername="postgresql+psycopg"))
        broker = PsycopgEventBroker.from_async_sqla_engine(engine)
    return AsyncScheduler(SQLAlchemyDataStore(engine), broker), engine


def fill_apscheduler(url: str, firings: int) -> None:
    """A schedule a firing, each with one date, which is past."""
    from apscheduler import ConflictPolicy, Schedule
    from apscheduler.triggers.date import DateTrigger

    async def fill() -> None:
        made, engine = _apscheduler(url)
        async with made as scheduler:
            task = await scheduler.configure_task(apscheduler_job, max_running_jobs=100)
            for k in range(firings):
                trigger = DateTrigger(EPOCH + dt.timedelta(seconds=k))
                schedule = Schedule(id=f"{k:06}", task_id=task.id, trigger=trigger,
                                    args=(f"{k:06}",), job_executor="async")  # fmt: skip
                schedule.next_fire_time = trigger.next()
                await scheduler.data_store.add_schedule(schedule, ConflictPolicy.exception)
        await engine.dispose()

    if kind_of(url) == SQLITE:
        with connected(url):
            pass  # leaves the file in WAL mode, for all who open it later
    asyncio.run(fill())


def work_apscheduler(gate: Gate, url: str) -> None:
    """Scheduler and worker in one: it makes jobs of due schedules and runs them."""

    async def work() -> None:
        _APSCHEDULER["write"] = await async_writer(url)
        async with _apscheduler(url)[0] as scheduler:
            gate.wait()
            await scheduler.run_until_stopped()

    asyncio.run(work())


# ---------------------------------------------------------------------- Procrastinate


def _procrastinate(url: str, write: Callable[[str], Awaitable[None]] | None = None) -> Any:
    from procrastinate import App, PsycopgConnector

    app = App(connector=PsycopgConnector(conninfo=url, min_size=4, max_size=10))

    @app.task(name="firing")
    async def firing(job: str) -> None:
        assert write is not None
        await write(job)

    return app


def fill_procrastinate(url: str, firings: int) -> None:
    """A job a firing, scheduled at one past instant."""
    app = _procrastinate(url)
    with app.open():
        app.schema_manager.apply_schema()
        app.configure_task("firing", schedule_at=EPOCH).batch_defer(
            *({"job": f"{k:06}"} for k in range(firings))
        )


def work_procrastinate(gate: Gate, url: str) -> None:
    """A worker with ten coroutines; each takes the next job when its own is done."""

    async def work() -> None:
        app = _procrastinate(url, await async_writer(url))
        async with app.open_async():
            gate.wait()
            await app.run_worker_async(concurrency=10, install_signal_handlers=False)

    asyncio.run(work())


# ---------------------------------------------------------------------- pgqueuer


def fill_pgqueuer(url: str, firings: int) -> None:
    """A job a firing, in one call; due at once."""
    import asyncpg
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.queries import Queries

    async def fill() -> None:
        connection = await asyncpg.connect(url)
        queries = Queries(AsyncpgDriver(connection))
        await queries.install()
        jobs: list[bytes | None] = [b"%06d" % k for k in range(firings)]
        await queries.enqueue(["firing"] * firings, jobs, [0] * firings)
        await connection.close()

    asyncio.run(fill())


def work_pgqueuer(gate: Gate, url: str) -> None:
    """One queue manager, which takes up to 500 jobs at a time.

    Over asyncpg: with psycopg its listener holds the one connection while it waits, and one
    process ran a ninth of this.
    """
    import asyncpg
    from pgqueuer import PgQueuer
    from pgqueuer.db import AsyncpgDriver

    async def work() -> None:
        write = await async_writer(url)
        manager = PgQueuer(AsyncpgDriver(await asyncpg.connect(url))).qm

        @manager.entrypoint("firing")
        async def firing(job: Any) -> None:
            await write(job.payload.decode())

        gate.wait()
        await manager.run(batch_size=500)

    asyncio.run(work())


# ---------------------------------------------------------------------- huey


def _huey(url: str, write: Callable[[str], None] | None, durable: bool = True) -> tuple[Any, Any]:
    from huey import SqliteHuey

    huey = SqliteHuey("bench", filename=path_of(url), fsync=durable, timeout=30)

    @huey.task(name="firing")
    def firing(job: str) -> None:
        assert write is not None
        write(job)

    return huey, firing


def fill_huey(url: str, firings: int) -> None:
    """A task a firing with a past ``eta``: huey puts those into its queue right away."""
    huey, firing = _huey(url, None, durable=False)
    for k in range(firings):
        firing.schedule((f"{k:06}",), eta=EPOCH)
    huey.storage.close()


def fill_huey_schedule(url: str, firings: int) -> None:
    """The same in its schedule, as if the ``eta`` had passed since: its scheduler moves them."""
    huey, firing = _huey(url, None, durable=False)
    for k in range(firings):
        task = firing.s(f"{k:06}")
        task.eta = EPOCH.replace(tzinfo=None)
        huey.add_schedule(task)
    huey.storage.close()


def work_huey(gate: Gate, url: str) -> None:
    """A consumer with one worker thread and its scheduler thread."""
    huey, _ = _huey(url, writer(url))
    consumer = huey.create_consumer(workers=1, periodic=False, initial_delay=0.01)
    watch(gate, "huey", "huey.consumer")
    gate.wait()
    consumer.run()


# ---------------------------------------------------------------------- DBOS


def _dbos(url: str, executor: str) -> Any:
    from dbos import DBOS

    # A smaller pool than its own 20: four processes must fit into a server's 100 connections.
    return DBOS(config={
        "name": "bench", "system_database_url": url, "executor_id": executor,
        "application_version": "1", "log_level": "WARNING",
        "max_executor_threads": 8, "sys_db_pool_size": 10,
    })  # fmt: skip


def fill_dbos(url: str, firings: int) -> None:
    """A queued workflow a firing, by its client."""
    from dbos import DBOS, DBOSClient

    _dbos(url, "fill")
    DBOS.launch()
    # Closed until the start signal: its workers look for work as soon as they are launched.
    DBOS.register_queue("bench", worker_concurrency=0, polling_interval_sec=0.01)
    DBOS.destroy()
    client = DBOSClient(system_database_url=url, application_name="bench")
    for k in range(firings):
        client.enqueue({"workflow_name": "firing", "queue_name": "bench", "app_version": "1"},
                       f"{k:06}")  # fmt: skip
    client.destroy()


def work_dbos(gate: Gate, url: str) -> None:
    """One executor of eight threads; each job a workflow with one step."""
    from dbos import DBOS

    local = threading.local()
    _dbos(url, f"worker-{os.getpid()}")
    watch(gate, "dbos")

    @DBOS.step(name="write")
    def write(job: str) -> None:
        if not hasattr(local, "write"):
            local.write = writer(url)
        local.write(job)

    @DBOS.workflow(name="firing")
    def firing(job: str) -> None:
        write(job)

    DBOS.launch()
    gate.wait()
    queue = DBOS.retrieve_queue("bench")
    assert queue is not None
    queue.set_worker_concurrency(1_000)  # of each worker; each of them sets the same
    threading.Event().wait()


# ---------------------------------------------------------------------- all


def peers() -> list[Queue]:
    """All peers, installed or not."""
    postgresql, sqlite = frozenset({POSTGRESQL}), frozenset({SQLITE})
    return [
        Queue("pgqueuer", "pgqueuer", postgresql,
              "batches of 500, asyncpg, jobs as coroutines, notifications",
              fill_pgqueuer, work_pgqueuer),
        Queue("Procrastinate", "procrastinate", postgresql,
              "10 coroutines a process, notifications",
              fill_procrastinate, work_procrastinate),
        Queue("huey, queued", "huey", sqlite,
              "1 thread a process, looks every 10 ms, full sync",
              fill_huey, work_huey),
        Queue("huey, scheduled", "huey", sqlite,
              "the same, from its schedule, which it reads every second",
              fill_huey_schedule, work_huey),
        Queue("DBOS", "dbos", postgresql | sqlite,
              "8 threads a process, takes up to 1,000, looks every 10 ms",
              fill_dbos, work_dbos),
        Queue("APScheduler 4", "apscheduler", postgresql | sqlite,
              "100 jobs at once a process, jobs as coroutines",
              fill_apscheduler, work_apscheduler),
    ]  # fmt: skip
