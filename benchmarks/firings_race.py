"""What all contenders of "firings" share: the rows they write, their processes, the time they take.

Time is the wall's, whatever ``--cpu`` says: the work is done by other processes, and much of it
is waiting for the disk.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import sqlite3
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any

import psycopg

#: One kilobyte of text, which PostgreSQL keeps in the row as it is (it packs above 2 kB).
PAYLOAD = "0123456789abcdef" * 64
#: What each job writes. Neither key nor constraint: a job that ran twice has two rows.
ROWS = "bench_row"
POSTGRESQL, SQLITE = "postgresql", "sqlite"

_POLL, _START, _PATIENCE, _SETTLE, _AGAIN = 0.01, 60.0, 60.0, 0.5, 0.1
_TOLD = 4_000


@dataclass(frozen=True)
class Counts:
    """Rows written, rows beyond the first of a firing, firings without a row."""

    ran: int
    duplicates: int
    missed: int


@dataclass(frozen=True)
class Row:
    """One measurement: *seconds* (wall) from the start signal to the last row of *firings*.

    ``errors`` counts what the contender raised or logged as an error, ``deadlocks`` those records
    (warnings too) that speak of a deadlock or of a locked database.
    """

    who: str
    store: str
    processes: int
    firings: int
    seconds: float
    ran: int
    duplicates: int
    missed: int
    errors: int = 0
    deadlocks: int = 0
    note: str = ""

    @property
    def rate(self) -> float:
        """Different firings that were run, a second."""
        return (self.firings - self.missed) / self.seconds if self.seconds else 0.0


# ---------------------------------------------------------------------- the store


def kind_of(url: str) -> str:
    """``postgresql`` or ``sqlite``; ValueError for any other address."""
    kind = url.partition(":")[0].partition("+")[0]
    if kind not in (POSTGRESQL, SQLITE):
        raise ValueError(f"need the address of PostgreSQL or SQLite, not {url!r}")
    return kind


def path_of(url: str) -> str:
    """The file of a SQLite address."""
    return url.partition(":///")[2]


def connect(url: str) -> Any:
    """A connection of psycopg or sqlite3 in autocommit mode, as durable as its server's default.

    SQLite: WAL, each commit synchronised (FULL), and half a minute's wait for a lock.
    """
    if kind_of(url) == POSTGRESQL:
        return psycopg.connect(url, autocommit=True)
    connection = sqlite3.connect(path_of(url), timeout=30, check_same_thread=False)
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    return connection


@contextmanager
def connected(url: str) -> Iterator[Any]:
    """A connection, closed at the end: sqlite3's own context manager does not."""
    connection = connect(url)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def empty_database(server: str) -> Iterator[str]:
    """Make an empty database on a PostgreSQL server; yields its address, drops it at the end.

    A schema would not do: some contenders make schemas and types of their own.
    """
    name = f"bench_{uuid.uuid4().hex}"
    with connected(server) as connection:
        old = connection.info.dbname
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            yield server.replace(f"/{old}?", f"/{name}?", 1)
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def make_rows(url: str) -> None:
    """Make the table that the jobs write to. ``n`` lets the parent see progress without a scan."""
    number = "bigserial" if kind_of(url) == POSTGRESQL else "integer"
    # SQLite numbers rows by itself; the column is there only to have one insert for both.
    with connected(url) as connection:
        connection.execute(f"CREATE TABLE {ROWS} (n {number}, job text, payload text)")


def insert_of(url: str) -> str:
    """The insert of one row, (job, payload)."""
    mark = "%s" if kind_of(url) == POSTGRESQL else "?"
    return f"INSERT INTO {ROWS} (job, payload) VALUES ({mark}, {mark})"


def writer(url: str) -> Callable[[str], None]:
    """A function that writes the row of a job at once; for one thread."""
    connection, insert = connect(url), insert_of(url)

    def write(job: str) -> None:
        connection.execute(insert, (job, PAYLOAD))

    return write


def count_rows(url: str, firings: int) -> Counts:
    """Count what was written for *firings* firings."""
    with connected(url) as connection:
        found = connection.execute(f"SELECT count(*), count(DISTINCT job) FROM {ROWS}").fetchone()
    ran, different = found
    return Counts(ran, ran - different, firings - different)


# ---------------------------------------------------------------------- processes


class Gate:
    """What a worker process holds: the start signal, and what is counted for the parent."""

    def __init__(self, context: Any) -> None:
        self.ready = context.Semaphore(0)
        self.open = context.Event()
        self.done = context.Semaphore(0)
        self.errors = context.Value("i", 0)
        self.deadlocks = context.Value("i", 0)
        self.told = context.Array("c", _TOLD)

    def wait(self) -> None:
        """Say that this process has imported and connected; wait until all others have."""
        self.ready.release()
        self.open.wait()

    def count(self, text: str, error: bool) -> None:
        """Count one complaint; the first error is kept in words."""
        if any(word in text.lower() for word in ("deadlock", "locked")):
            with self.deadlocks.get_lock():
                self.deadlocks.value += 1
        if error:
            with self.errors.get_lock():
                self.errors.value += 1
                if not self.told.value:
                    self.told.value = text.encode("utf-8", "replace")[-_TOLD + 1 :]


class _Complaints(logging.Handler):
    """Counts warnings and errors of any logger in place of printing them."""

    def __init__(self, gate: Gate) -> None:
        super().__init__(logging.WARNING)
        self.gate = gate

    def emit(self, record: logging.LogRecord) -> None:
        raised = record.exc_info[1] if record.exc_info else None
        text = f"{record.getMessage()} {raised!r}" if raised else record.getMessage()
        self.gate.count(text, record.levelno >= logging.ERROR)


def watch(gate: Gate, *names: str) -> None:
    """Count the complaints of these loggers in place of printing them; of all for no name."""
    for logger in map(logging.getLogger, names or (None,)):
        logger.handlers[:] = [_Complaints(gate)]


def _end_with_parent() -> None:
    """End this process at once when its parent has ended in whatever way."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _enter(work: Callable[..., None], gate: Gate, arguments: tuple[Any, ...]) -> None:
    """The life of a worker process. One that fails is begun again, as by a supervisor."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    watch(gate)
    while True:
        try:
            work(gate, *arguments)
            gate.done.release()
            return
        except Exception:
            gate.count(traceback.format_exc(), error=True)
            if not gate.open.is_set():
                raise SystemExit(1) from None  # never came to the start: nothing to measure
            time.sleep(_AGAIN)


class Workers:
    """Processes that stand at the gate; :meth:`start` opens it and the clock runs."""

    def __init__(self, gate: Gate, processes: list[Any]) -> None:
        self.gate = gate
        self.processes = processes
        self.begin = 0.0

    def start(self) -> None:
        """Wait until all are ready, then let them run; RuntimeError when one is not."""
        self._all(self.gate.ready, _START, "did not come to the start")
        self.begin = time.perf_counter()
        self.gate.open.set()

    def finish(self) -> float:
        """Seconds until each has done all of its work; RuntimeError when one has not."""
        self._all(self.gate.done, _START + _PATIENCE, "did not finish")
        return time.perf_counter() - self.begin

    def _all(self, signal: Any, patience: float, what: str) -> None:
        end = time.perf_counter() + patience
        for _ in self.processes:
            while not signal.acquire(timeout=0.2):
                dead = any(process.exitcode for process in self.processes)
                if dead or time.perf_counter() > end:
                    told = self.gate.told.value.decode("utf-8", "replace")
                    raise RuntimeError(f"a worker process {what}: {told or 'it said nothing'}")

    def written(self, url: str, firings: int) -> float:
        """Seconds until each of *firings* has a row, or until the last row when no more come."""
        if kind_of(url) == POSTGRESQL:
            seen = f"SELECT coalesce(pg_sequence_last_value('{ROWS}_n_seq'), 0)"
        else:
            seen = f"SELECT coalesce(max(rowid), 0) FROM {ROWS}"
        last, at = 0, self.begin
        with connected(url) as connection:
            while True:
                look = time.perf_counter()
                rows = connection.execute(seen).fetchone()[0]
                now = time.perf_counter()
                if rows > last:
                    last, at = rows, now
                # A scan only near the end, for it takes time from those that are measured.
                if rows >= firings and not count_rows(url, firings).missed:
                    return now - self.begin
                alive = any(process.is_alive() for process in self.processes)
                if not alive or now - at > _PATIENCE:
                    return at - self.begin
                time.sleep(max(_POLL, 10 * (time.perf_counter() - look)))


@contextmanager
def workers(work: Callable[..., None], arguments: tuple[Any, ...], processes: int) -> Iterator[
    Workers
]:  # fmt: skip
    """Begin *processes* new ones that call ``work(gate, *arguments)``; at the end none is left.

    They are ended at once: a contender that shuts down slowly costs nobody time, and what it has
    not committed does not count.
    """
    context = multiprocessing.get_context("spawn")  # a fork would hand on our connections
    gate = Gate(context)
    begun = [context.Process(target=_enter, args=(work, gate, arguments), daemon=True)
             for _ in range(processes)]  # fmt: skip
    try:
        for process in begun:
            process.start()
        yield Workers(gate, begun)
    finally:
        for process in begun:
            if process.pid is not None:
                process.kill()
                process.join()
                process.close()


def run_queue(work: Callable[..., None], url: str, processes: int, firings: int) -> tuple[
    float, int, int
]:  # fmt: skip
    """Let workers run what is due in *url*: seconds to the last row, errors, deadlocks.

    Afterwards they go on for half a second: a firing that is run twice shows in this time.
    """
    with workers(work, (url,), processes) as crew:
        crew.start()
        seconds = crew.written(url, firings)
        time.sleep(_SETTLE)
        return seconds, crew.gate.errors.value, crew.gate.deadlocks.value


def run_race(work: Callable[..., None], arguments: tuple[Any, ...], processes: int) -> tuple[
    float, int, int
]:  # fmt: skip
    """Let workers go over all there is: seconds until each has finished, errors, deadlocks."""
    with workers(work, arguments, processes) as crew:
        crew.start()
        seconds = crew.finish()
        return seconds, crew.gate.errors.value, crew.gate.deadlocks.value
