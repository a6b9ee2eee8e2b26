"""The tables of the shared store, and how a store is made, recognised and refused.

Every instant is an integer: microseconds since the epoch, UTC (ruling 18). The column
``claimable_at`` says from when a replica may take a row: its due time while nobody holds it, the
lease's expiry while someone does, the time of the next try after a failure; NULL when there is
nothing to take. A ``token`` grows with each take and is never used twice (ruling 21).
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    insert,
    inspect,
    select,
    text,
)

from seams_lab.errors import UnusableInput

VERSION = 1
_FORMAT = "seams-lab store"

metadata = MetaData()

#: What is true of the whole store: its format and version, the clock's offset.
meta = Table(
    "seams_meta",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

#: The timers that replicas agreed on (`role`: start or wait; `expression`: its kind and text),
#: with the failures of starts before their commit. `contested`: what a replica has instead, and
#: which one, where they do not agree (ruling 19b).
timer = Table(
    "seams_timer",
    metadata,
    Column("event", Text, primary_key=True),
    Column("role", Text, nullable=False),
    Column("expression", Text, nullable=False),
    Column("contested", Text),
    Column("attempts", Integer, nullable=False),
    Column("failure", Text),
    Column("retry_at", BigInteger),
)

#: Every firing that was committed. `waiter` is empty for a timer start, whose key is (event, due);
#: for a wake it is the task that waited. `skipped` counts the missed ones just before it.
firing = Table(
    "seams_firing",
    metadata,
    Column("event", Text, primary_key=True),
    Column("due", BigInteger, primary_key=True),
    Column("waiter", Text, primary_key=True),
    Column("instance", Text, nullable=False),
    Column("skipped", BigInteger, nullable=False),
    Column("fired_at", BigInteger, nullable=False),
    Column("fired_by", Text, nullable=False),
)

#: Process instances. `status`: running (has steps to do), waiting, completed, failed.
instance = Table(
    "seams_instance",
    metadata,
    Column("id", Text, primary_key=True),
    Column("process", Text, nullable=False),
    Column("correlation_key", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("checkpoint", Text, nullable=False),
    Column("tasks", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("failure", Text),
    Column("holder", Text),
    Column("token", BigInteger, nullable=False),
    Column("claimable_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Index("seams_instance_key", "correlation_key"),
    Index("seams_instance_claimable", "claimable_at"),
    Index("seams_instance_status", "status", "changed_at"),
)

#: Timers that instances wait on: equal to those of the instance's newest checkpoint.
wait = Table(
    "seams_wait",
    metadata,
    Column("instance", Text, primary_key=True),
    Column("task", Text, primary_key=True),
    Column("event", Text, nullable=False),
    Column("due", BigInteger, nullable=False),
    Column("holder", Text),
    Column("token", BigInteger, nullable=False),
    Column("claimable_at", BigInteger),
    Index("seams_wait_claimable", "event", "claimable_at"),
)

#: What each instance did, element by element, written with the checkpoint of that revision.
trace = Table(
    "seams_trace",
    metadata,
    Column("instance", Text, primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("element", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("due", BigInteger),
    Column("replica", Text, nullable=False),
    Column("note", Text, nullable=False),
)


def prepare(connection: Connection, where: str, create: bool) -> None:
    """Make the tables in an empty store; recognise those of a store made before.

    Raises
    ------
    UnusableInput
        When the tables are of another version, or not seams-lab's, or (with *create* false) not
        there.
    """
    if connection.dialect.name == "postgresql":
        # Replicas that start together: CREATE TABLE IF NOT EXISTS alone can still collide.
        connection.execute(text("SELECT pg_advisory_xact_lock(7323672001)"))
    present = set(inspect(connection).get_table_names()) & set(metadata.tables)
    if not present and create:
        metadata.create_all(connection)
        connection.execute(
            insert(meta),
            [{"key": "format", "value": _FORMAT}, {"key": "version", "value": str(VERSION)}],
        )
        return
    if not present:
        raise UnusableInput(
            where, "no seams-lab tables", "a store that a replica has used",
            "check the address, or start a replica first: seams-lab run MODEL --store ...",
        )  # fmt: skip
    known = _facts(connection) if meta.name in present else {}
    if known.get("format") != _FORMAT:
        raise UnusableInput(
            where, f"tables named {', '.join(sorted(present))} that seams-lab did not make",
            "an empty database or a seams-lab store", "use another database or schema",
        )  # fmt: skip
    if known.get("version") != str(VERSION):
        raise UnusableInput(
            where, f"a store of version {known.get('version')}", f"version {VERSION}",
            "run the seams-lab that made it, or use a new database",
        )  # fmt: skip
    missing = set(metadata.tables) - present
    if missing:
        raise UnusableInput(
            where, f"a store without the table {', '.join(sorted(missing))}",
            "all tables of its version", "restore the database from a backup",
        )  # fmt: skip


def _facts(connection: Connection) -> dict[str, str]:
    names = {column["name"] for column in inspect(connection).get_columns(meta.name)}
    if not {"key", "value"} <= names:
        return {}
    return {key: value for key, value in connection.execute(select(meta.c.key, meta.c.value))}
