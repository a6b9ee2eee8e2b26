"""The store's own limit: the two inserts of a firing and nothing else.

Each process goes over the same due firings in the order of their keys and tries to insert each:
the key (event, due) decides who has it, and only who has it inserts the instance with its
checkpoint, in the same transaction. No claim, no lease, no engine, so nothing that keeps this
promise on the same store can be faster. Sorted keys keep transactions of many firings from
deadlock: all lock in one order.
"""

from __future__ import annotations

from typing import Any

from benchmarks.firings_race import (
    PAYLOAD,
    POSTGRESQL,
    Counts,
    Gate,
    connect,
    connected,
    kind_of,
    run_race,
)

#: Firings a transaction.
BATCH = 100
_TABLES = (
    "CREATE TABLE bare_firing (event text, due bigint, instance text NOT NULL,"
    " PRIMARY KEY (event, due))",
    "CREATE TABLE bare_instance (instance text PRIMARY KEY, checkpoint text NOT NULL)",
)
_HOUR = 3_600_000_000
Firing = tuple[str, int]


def due_firings(firings: int) -> list[Firing]:
    """(event, due in microseconds UTC), sorted: a hundred events, each due once an hour."""
    return sorted((f"urn:bench:event{k % 100:03}", k // 100 * _HOUR) for k in range(firings))


def postgresql_batch(connection: Any, batch: list[Firing]) -> int:
    """Two statements over arrays in one transaction; how many firings were won."""
    events, dues = [event for event, _ in batch], [due for _, due in batch]
    with connection.transaction():
        won = connection.execute(
            "INSERT INTO bare_firing SELECT event, due, event || '/' || due"
            " FROM unnest(%s::text[], %s::bigint[]) AS due_now (event, due) ORDER BY event, due"
            " ON CONFLICT DO NOTHING RETURNING instance",
            (events, dues),
        ).fetchall()
        if won:
            connection.execute(
                "INSERT INTO bare_instance SELECT unnest(%s::text[]), %s",
                ([instance for (instance,) in won], PAYLOAD),
            )
    return len(won)


def sqlite_batch(connection: Any, batch: list[Firing]) -> int:
    """The same with rows of values; the write lock is taken at the start."""
    values = [value for event, due in batch for value in (event, due, f"{event}/{due}")]
    connection.execute("BEGIN IMMEDIATE")
    try:
        won = connection.execute(
            f"INSERT INTO bare_firing VALUES {', '.join(['(?, ?, ?)'] * len(batch))}"
            " ON CONFLICT DO NOTHING RETURNING instance",
            values,
        ).fetchall()
        instances = [(instance, PAYLOAD) for (instance,) in won]
        connection.executemany("INSERT INTO bare_instance VALUES (?, ?)", instances)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return len(won)


def race_for(gate: Gate, url: str, firings: int, batch: int) -> None:
    """One process of the race."""
    insert = postgresql_batch if kind_of(url) == POSTGRESQL else sqlite_batch
    due = due_firings(firings)
    connection = connect(url)
    gate.wait()
    for first in range(0, firings, batch):
        insert(connection, due[first : first + batch])
    connection.close()


class BareLoop:
    """A peer like the others (see :mod:`benchmarks.firings_peers`), with nothing to install."""

    module = "sqlite3"
    stores = frozenset({"postgresql", "sqlite"})

    def __init__(self, batch: int = BATCH) -> None:
        self.batch = batch
        self.name = (
            f"bare inserts, {batch} a transaction" if batch > 1 else "bare inserts, one by one"
        )
        self.settings = "psycopg 3 / sqlite3 (WAL, BEGIN IMMEDIATE, synchronous FULL)"
        self.errors = self.deadlocks = 0

    def prepare(self, url: str, firings: int) -> None:
        """Make the two tables, empty."""
        self.url, self.firings = url, firings
        with connected(url) as connection:
            for table in _TABLES:
                connection.execute(table)

    def run(self, processes: int) -> float:
        """Seconds until all processes have gone over all firings."""
        arguments = (self.url, self.firings, self.batch)
        seconds, self.errors, self.deadlocks = run_race(race_for, arguments, processes)
        return seconds

    def counts(self) -> Counts:
        """A firing has one row by its key; one without an instance counts as missed."""
        with connected(self.url) as connection:
            ran, different = connection.execute(
                "SELECT count(*), count(DISTINCT instance) FROM bare_firing"
                " JOIN bare_instance USING (instance)"
            ).fetchone()
        return Counts(ran, ran - different, self.firings - different)
