"""The shared store: transactions over SQLite and PostgreSQL.

A `Store` opens transactions; a `Transaction` (in `transaction.py`) has one method per statement.
Nothing else in the runtime speaks SQL.
"""

from __future__ import annotations

import importlib.util
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event, make_url, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from seams_lab import clock
from seams_lab.errors import SeamsError, UnusableInput
from seams_lab.runtime.schema import prepare
from seams_lab.runtime.transaction import Transaction

#: Called with the name of each statement before it is sent, with "commit" before COMMIT and with
#: "committed" after it. Tests stop a replica there, or lose the answer.
Watch = Callable[[str], None]

# How long a SQLite writer waits for the one write lock before it gives up the round.
_BUSY_SECONDS = 30
_CONNECT_SECONDS = 10
_READING = {"seams_reading": True}
_SNAPSHOT = {"isolation_level": "REPEATABLE READ"}


class StoreFailure(SeamsError):
    """The database refused, failed or went away; the transaction is not known to have happened.

    ``unknown`` says that COMMIT was sent and its answer is missing: it may have happened.
    """

    def __init__(self, message: str, unknown: bool = False) -> None:
        self.unknown = unknown
        super().__init__(message)


class Store:
    """One database that replicas share.

    Parameters
    ----------
    url : str
        ``sqlite:///seams.db`` (a file; several processes may share it), ``sqlite://`` (in
        memory, for this process alone), ``postgresql://user@host/database``, or the path of a
        SQLite file.
    create : bool
        Make the tables when there are none.

    Raises
    ------
    UnusableInput
        When the address cannot be used, or the tables there are older or not seams-lab's.
    StoreFailure
        When the database cannot be reached.
    """

    def __init__(self, url: str | Path, *, create: bool = True) -> None:
        address = _address(str(url))
        self.is_sqlite = address.get_backend_name() == "sqlite"
        in_memory = self.is_sqlite and address.database in (None, "", ":memory:")
        #: How the store is named in messages: without a password.
        self.name = _hidden(_shown(address))
        if self.is_sqlite and not in_memory:
            _require_file(address, self.name, create)
        self.watch: Watch | None = None
        # One connection, so one transaction at a time.
        self._alone = threading.RLock() if in_memory else nullcontext()
        self._engine = _engine(address, in_memory)
        try:
            with self._connection() as connection:
                prepare(connection, self.name, create)
        except BaseException as error:
            self._engine.dispose()
            if _is_no_database(error):
                raise UnusableInput(
                    self.name, "a file that is not a SQLite database",
                    "a seams-lab store, or no file", "check the address, or name another file",
                ) from None  # fmt: skip
            raise

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Open a transaction: all of it happens, or nothing does.

        SQLite takes its write lock at once (``BEGIN IMMEDIATE``); PostgreSQL works at READ
        COMMITTED, where ``ON CONFLICT DO NOTHING`` keeps the transaction usable.

        Raises
        ------
        StoreFailure
            When the database fails; a conflict is a result of its method and raises nothing.
        """
        with self._connection() as connection:
            yield Transaction(connection, self.watch)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Open a transaction that only looks: one moment, and it waits for no writer."""
        options = _READING if self.is_sqlite else _SNAPSHOT
        with self._connection(options) as connection:
            yield Transaction(connection, self.watch)

    @contextmanager
    def _connection(self, options: dict[str, Any] | None = None) -> Iterator[Any]:
        committing = False
        try:
            with self._alone, self._engine.connect() as plain:
                connection = plain.execution_options(**options) if options else plain
                with connection.begin():
                    yield connection
                    committing = True
                    if self.watch:
                        self.watch("commit")
                if self.watch:
                    self.watch("committed")
        except DBAPIError as error:
            lost = committing and not _refused(error)
            raise StoreFailure(f"{self.name}: {_first_line(error)}", unknown=lost) from error
        except SQLAlchemyError as error:
            raise StoreFailure(f"{self.name}: {_first_line(error)}") from error

    def now(self) -> int:
        """The store's own clock, in microseconds (UTC).

        PostgreSQL's ``clock_timestamp()``; the host's clock for SQLite, which has none (ruling
        17). It decides due times and leases, so that replicas whose hosts disagree still agree.
        """
        if self.is_sqlite:
            return clock.now()
        query = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)"
        with self._connection(_READING) as connection:
            return int(connection.scalar(text(query)))

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({self.name!r})"


class StoreClock:
    """The deciding clock of a store: the store's own, plus an offset (rulings 16 and 17)."""

    def __init__(self, store: Store, offset: int = 0) -> None:
        self._store, self.offset = store, offset

    def now(self) -> int:
        """The current instant, in microseconds (UTC)."""
        return self._store.now() + self.offset

    def __repr__(self) -> str:
        return f"StoreClock({self._store.name!r}, offset={self.offset})"


def _address(text_: str) -> URL:
    usable = "sqlite:///FILE, sqlite://, postgresql://USER@HOST/DATABASE or the path of a file"
    seen, fix = repr(_hidden(text_)), "write the address as shown"
    if not text_.strip() or re.match(r"(postgres|postgresql|sqlite)(\+\w+)?:(?!//)", text_):
        raise UnusableInput("store", seen, usable, fix)
    if "://" not in text_:
        return URL.create("sqlite", database=text_)
    try:
        address = make_url(text_)
    except (ArgumentError, ValueError):  # ValueError: of a port that is no number
        raise UnusableInput("store", seen, usable, fix) from None
    backend = address.get_backend_name()
    if backend in ("postgresql", "postgres"):
        if "@" in (address.host or ""):
            fix = "write an @ of the password as %40"
            raise UnusableInput("store", seen, usable, fix)
        return address.set(drivername="postgresql+psycopg")
    if backend == "sqlite":
        if address.host or address.username or address.password or address.port:
            raise UnusableInput("store", seen, usable, "write three slashes: sqlite:///FILE")
        return address.set(drivername="sqlite")
    raise UnusableInput("store", f"{backend}://...", usable, "use SQLite or PostgreSQL")


def _hidden(text_: str) -> str:
    """An address, also one that cannot be read, without what may be a password."""
    text_ = re.sub(r"^([^:]*:/*[^:]*:).*@", r"\1***@", text_, flags=re.DOTALL)
    return re.sub(r"(?i)(password=)[^&]*", r"\1***", text_)


def _shown(address: URL) -> str:
    """An address without its driver and its password."""
    plain = address.set(drivername=address.get_backend_name())
    return plain.render_as_string(hide_password=True)


def _require_file(address: URL, name: str, create: bool) -> None:
    path = Path(address.database or "")
    if path.is_dir():
        raise UnusableInput(name, "a folder", "a file", "name a file in it: FOLDER/seams.db")
    if not create and not path.is_file():
        raise UnusableInput(
            name, "no such file", "a store that a replica has used",
            "check the address, or start a replica first: seams-lab run MODEL --store ...",
        )  # fmt: skip
    if not path.parent.is_dir():
        raise UnusableInput(
            name, f"no folder {str(path.parent)!r}", "an existing folder", "make the folder first"
        )


def _engine(address: URL, in_memory: bool) -> Engine:
    if address.get_backend_name() != "sqlite":
        if importlib.util.find_spec("psycopg") is None:
            raise UnusableInput(
                "store", "PostgreSQL, and its driver is not installed", "the package psycopg",
                "pip install 'seams-lab[postgresql]'",
            )  # fmt: skip
        return create_engine(
            address,
            pool_size=20,
            max_overflow=20,
            pool_pre_ping=True,
            connect_args={"connect_timeout": _CONNECT_SECONDS},
        )
    arguments: dict[str, Any] = {"timeout": _BUSY_SECONDS, "check_same_thread": False}
    if in_memory:
        engine = create_engine(address, connect_args=arguments, poolclass=StaticPool)
    else:
        engine = create_engine(address, connect_args=arguments)

    @event.listens_for(engine, "connect")
    def _on_connect(connection: sqlite3.Connection, _: object) -> None:
        # The driver must not begin transactions by itself: a deferred one that upgrades to
        # writing fails at once when another writer came between.
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode=WAL")
        # An acknowledged commit survives a power cut.
        connection.execute("PRAGMA synchronous=FULL")

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Any) -> None:
        reading = connection.get_execution_options().get("seams_reading")
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    return engine


def _refused(error: DBAPIError) -> bool:
    """Whether the database answered, and said no: then nothing was committed."""
    return bool(getattr(error.orig, "sqlstate", None)) or isinstance(error.orig, sqlite3.Error)


def _is_no_database(error: BaseException) -> bool:
    code = getattr(getattr(error.__cause__, "orig", None), "sqlite_errorcode", None)
    return isinstance(error, StoreFailure) and code == sqlite3.SQLITE_NOTADB


def _first_line(error: SQLAlchemyError) -> str:
    cause = getattr(error, "orig", None) or error
    lines = str(cause).strip().splitlines()
    return lines[0] if lines else type(cause).__name__
