"""The shared store: addresses, all or nothing, what a failure says, the clock, and reading."""

from __future__ import annotations

import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from seams_lab import clock
from seams_lab.errors import UnusableInput
from seams_lab.expressions import HOUR
from seams_lab.runtime import store as module
from seams_lab.runtime.store import Store, StoreClock, StoreFailure
from tests.postgresql import empty_schema

# ruff: noqa: PT012 (it is the block, a transaction, that raises)


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An empty store of each kind."""
    with Store(store_url) as opened:
        yield opened


@pytest.fixture
def in_a_file(tmp_path: Path) -> Iterator[Store]:
    """An empty store in a file."""
    with Store(tmp_path / "store.db") as opened:
        yield opened


@pytest.fixture
def on_postgresql(postgresql: str) -> Iterator[Store]:
    """An empty store on PostgreSQL."""
    with empty_schema(postgresql) as address, Store(address) as opened:
        yield opened


def facts(store: Store) -> dict[str, str]:
    with store.reading() as tx:
        return {k: v for k, v in tx.facts().items() if k not in ("format", "version")}


def execute(tx: Any, statement: str, **values: Any) -> Any:
    return tx._connection.execute(text(statement), values)


# ---------------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    ("address", "seen", "fix"),
    [
        ("", "''", "write the address as shown"),
        ("  ", "'  '", "write the address as shown"),
        ("mysql://u:secret@h/d", "mysql://...", "use SQLite or PostgreSQL"),
        ("file:///u:secret@h", "file://...", "use SQLite or PostgreSQL"),
        ("postgre sql://u:secret@h/d", "'postgre sql://u:***@h/d'", "write the address as shown"),
        ("://u:secret@h/d", "'://u:***@h/d'", "write the address as shown"),
        ("postgresql:/u:secret@h/d", "'postgresql:/u:***@h/d'", "write the address as shown"),
        ("postgresql:u:secret@h/d", "'postgresql:u:***@h/d'", "write the address as shown"),
        ("postgresql://u:secret@h:x/d", "'postgresql://u:***@h:x/d'", "write the address as"),
        ("postgresql://u:a@secret@h/d", "'postgresql://u:***@h/d'", "as %40"),
        ("postgresql://h:x/d?password=secret", "'postgresql://h:x/d?password=***'", "write the"),
        ("sqlite://u:secret@h/d", "'sqlite://u:***@h/d'", "sqlite:///FILE"),
        ("sqlite://seams.db", "'sqlite://seams.db'", "sqlite:///FILE"),
        ("sqlite:seams.db", "'sqlite:seams.db'", "write the address as shown"),
    ],
)
def test_an_address_that_cannot_be_used_is_quoted_without_its_password(
    address: str, seen: str, fix: str
) -> None:
    with pytest.raises(UnusableInput) as caught:
        Store(address)
    error = caught.value
    assert (error.where, error.seen) == ("store", seen)
    assert fix in error.fix
    assert "sqlite:///FILE" in error.expected
    assert "postgresql://USER@HOST/DATABASE" in error.expected
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:secret@127.0.0.1:1/d",
        "postgres://u:secret@127.0.0.1:1/d",
        "postgresql+asyncpg://u:secret@127.0.0.1:1/d",
        "postgresql://u@127.0.0.1:1/d?password=secret&connect_timeout=5",
        "postgresql://u:se%40cret@127.0.0.1:1/d",
        "postgresql://u:secret@127.0.0.1:1/d?nothing=1",
    ],
)
def test_a_server_that_is_not_there_is_a_failure_without_the_password(address: str) -> None:
    start = r"^postgresql://u.*@127\.0\.0\.1:1/d"
    with pytest.raises(StoreFailure, match=start) as caught:
        Store(address)
    assert "secret" not in str(caught.value)
    assert "cret" not in str(caught.value)
    assert "***" in str(caught.value) or "@127" in str(caught.value)
    assert not caught.value.unknown
    assert "\n" not in str(caught.value)


def test_postgresql_without_its_driver_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnusableInput, match="psycopg") as caught:
        Store("postgresql://u:secret@127.0.0.1:1/d")
    assert caught.value.fix == "pip install 'seams-lab[postgresql]'"


@pytest.mark.parametrize("make", ["{}", "sqlite:///{}", "sqlite+aiosqlite:///{}"])
def test_a_file_is_named_by_its_path_or_its_address(tmp_path: Path, make: str) -> None:
    path = tmp_path / "seams.db"
    with Store(make.format(path)) as store:
        assert store.is_sqlite
        assert repr(store) == f"Store('sqlite:///{path}')"
    assert path.is_file()
    Store(path, create=False).close()


def test_a_file_of_another_kind_is_refused_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are notes, and no database at all.\n" * 200)
    for create in (True, False):
        with pytest.raises(UnusableInput, match="not a SQLite database") as caught:
            Store(path, create=create)
        assert caught.value.where == f"sqlite:///{path}"
    assert path.read_text().startswith("These are notes")


@pytest.mark.parametrize(
    ("place", "create", "seen"),
    [
        ("none/seams.db", True, "no folder '{}/none'"),
        ("none/seams.db", False, "no such file"),
        ("seams.db", False, "no such file"),
        (".", True, "a folder"),
        (".", False, "a folder"),
    ],
)
def test_a_place_where_no_store_can_be_is_refused(
    tmp_path: Path, place: str, create: bool, seen: str
) -> None:
    with pytest.raises(UnusableInput) as caught:
        Store(tmp_path / place, create=create)
    assert caught.value.seen == seen.format(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "seams.db"
    path.touch()
    with pytest.raises(UnusableInput, match="no seams-lab tables"):
        Store(path, create=False)
    Store(path).close()
    Store(path, create=False).close()


def test_every_connection_to_a_file_syncs_each_commit(in_a_file: Store) -> None:
    with in_a_file.reading() as first, in_a_file.reading() as second:
        for tx in (first, second):
            assert execute(tx, "PRAGMA synchronous").scalar() == 2
            assert execute(tx, "PRAGMA journal_mode").scalar() == "wal"


# ---------------------------------------------------------------------- all or nothing


class Stop(BaseException):
    """Something that no `except Exception` sees."""


@pytest.mark.parametrize(
    "raised", [ValueError("no"), KeyboardInterrupt(), SystemExit(3), GeneratorExit(), Stop()],
    ids=repr,
)  # fmt: skip
def test_what_interrupts_a_transaction_undoes_all_of_it(
    store: Store, raised: BaseException
) -> None:
    with pytest.raises(type(raised)) as caught, store.transaction() as tx:
        tx.set_fact("first", "1")
        tx.set_fact("second", "2")
        raise raised
    assert caught.value is raised
    assert facts(store) == {}
    with store.transaction() as tx:
        tx.set_fact("third", "3")
    assert facts(store) == {"third": "3"}


def test_a_statement_that_fails_undoes_those_before_it(store: Store) -> None:
    with pytest.raises(StoreFailure) as caught, store.transaction() as tx:
        tx.set_fact("first", "1")
        execute(tx, "INSERT INTO seams_meta VALUES ('version', '2')")
    assert str(caught.value).startswith(f"{store.name}: ")
    assert "\n" not in str(caught.value)
    assert not caught.value.unknown
    assert facts(store) == {}


def test_nothing_is_seen_before_the_commit(store: Store) -> None:
    with store.transaction() as tx:
        tx.set_fact("first", "1")
        assert facts(store) == {}
    assert facts(store) == {"first": "1"}


def test_a_statement_that_is_wrong_is_a_failure_too(store: Store) -> None:
    with pytest.raises(StoreFailure, match="no_such_table"), store.transaction() as tx:
        execute(tx, "SELECT * FROM no_such_table")
    with pytest.raises(StoreFailure), store.transaction() as tx:
        execute(tx, "SELECT :given")  # not given: the library notices, not the database
    assert facts(store) == {}


# ---------------------------------------------------------------------- failures, and what they say


def test_a_connection_that_is_ended_within_a_transaction(on_postgresql: Store) -> None:
    for at_commit in (False, True):
        with pytest.raises(StoreFailure) as caught, on_postgresql.transaction() as tx:
            tx.set_fact("first", "1")
            pid = execute(tx, "SELECT pg_backend_pid()").scalar()
            with on_postgresql.transaction() as other:
                execute(other, "SELECT pg_terminate_backend(:pid, 10000)", pid=pid)
            if not at_commit:
                tx.set_fact("second", "2")
        assert not caught.value.unknown, at_commit
        assert facts(on_postgresql) == {}


def test_a_connection_that_ended_while_nobody_used_it_is_replaced(on_postgresql: Store) -> None:
    with on_postgresql.transaction() as tx, on_postgresql.transaction() as other:
        pids = [execute(each, "SELECT pg_backend_pid()").scalar() for each in (tx, other)]
    address = on_postgresql._engine.url.set(drivername="postgresql")
    with psycopg.connect(address.render_as_string(hide_password=False)) as connection:
        for pid in pids:
            connection.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
    with on_postgresql.transaction() as tx, on_postgresql.transaction() as other:
        tx.set_fact("first", "1")
        other.set_fact("second", "2")
    assert facts(on_postgresql) == {"first": "1", "second": "2"}


def test_a_commit_whose_answer_is_lost_is_unknown(on_postgresql: Store) -> None:
    with pytest.raises(StoreFailure) as caught, on_postgresql.transaction() as tx:
        tx.set_fact("first", "1")
        driver = tx._connection.connection.driver_connection
        with socket.socket(fileno=driver.pgconn.socket) as line:
            line.shutdown(socket.SHUT_RD)  # COMMIT goes out, and nothing comes in
            line.detach()
    assert caught.value.unknown
    for _ in range(600):  # the server works on it by itself
        if facts(on_postgresql):
            break
        time.sleep(0.05)
    assert facts(on_postgresql) == {"first": "1"}


def test_a_line_that_breaks_before_the_commit_is_known(on_postgresql: Store) -> None:
    with pytest.raises(StoreFailure) as caught, on_postgresql.transaction() as tx:
        tx.set_fact("first", "1")
        driver = tx._connection.connection.driver_connection
        with socket.socket(fileno=driver.pgconn.socket) as line:
            line.shutdown(socket.SHUT_RDWR)
            line.detach()
        tx.set_fact("second", "2")
    assert not caught.value.unknown
    assert facts(on_postgresql) == {}


def test_a_commit_that_is_refused_is_known(store: Store) -> None:
    if store.is_sqlite:

        def no_commit(action: int, argument: str | None, *_: Any) -> int:
            denied = action == sqlite3.SQLITE_TRANSACTION and argument == "COMMIT"
            return sqlite3.SQLITE_DENY if denied else sqlite3.SQLITE_OK
    else:
        with store.transaction() as tx:
            execute(tx, "CREATE TABLE parent (id int PRIMARY KEY)")
            execute(tx, "CREATE TABLE child (id int REFERENCES parent DEFERRABLE "
                        "INITIALLY DEFERRED)")  # fmt: skip
    with pytest.raises(StoreFailure) as caught, store.transaction() as tx:
        tx.set_fact("first", "1")
        if store.is_sqlite:
            driver = tx._connection.connection.driver_connection
            driver.set_authorizer(no_commit)
        else:
            execute(tx, "INSERT INTO child VALUES (1)")
    if store.is_sqlite:
        driver.set_authorizer(None)
    assert not caught.value.unknown
    assert facts(store) == {}


def test_a_writer_gives_up_waiting_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BUSY_SECONDS", 0.05)
    path = tmp_path / "store.db"
    with Store(path) as one, Store(path) as other:
        with one.transaction() as tx:
            tx.set_fact("first", "1")
            with pytest.raises(StoreFailure, match="locked") as caught, other.transaction():
                pytest.fail("two writers")
            assert not caught.value.unknown
        with other.transaction() as tx:
            assert tx.facts()["first"] == "1"
            tx.set_fact("second", "2")
        assert facts(one) == {"first": "1", "second": "2"}


def test_a_writer_waits_for_another(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Store(path) as one, Store(path) as other:
        seen: list[str] = []

        def write() -> None:
            with other.transaction() as tx:
                seen.append(tx.facts()["first"])

        with one.transaction() as tx:
            waiting = threading.Thread(target=write)
            waiting.start()
            waiting.join(0.1)
            assert seen == []
            tx.set_fact("first", "1")
        waiting.join(60)
        assert seen == ["1"]


def test_a_full_disk_undoes_the_transaction(in_a_file: Store) -> None:
    with pytest.raises(StoreFailure, match="full") as caught, in_a_file.transaction() as tx:
        tx.set_fact("first", "1")
        pages = execute(tx, "PRAGMA page_count").scalar()
        execute(tx, f"PRAGMA max_page_count = {pages + 2}")
        tx.set_fact("long", "x" * 1_000_000)
    assert not caught.value.unknown
    assert facts(in_a_file) == {}
    with in_a_file.transaction() as tx:
        execute(tx, "PRAGMA max_page_count = 1000000")
        tx.set_fact("long", "x" * 1_000_000)
    assert facts(in_a_file).keys() == {"long"}


# ---------------------------------------------------------------------- the watch


def test_the_watch_sees_each_statement_before_it_is_sent_then_the_commit(store: Store) -> None:
    seen: list[tuple[str, bool]] = []
    with Store(store.name.replace("***@", "@").replace("+psycopg", "")) as other:
        store.watch = lambda name: seen.append((name, "first" in facts(other)))
        with store.transaction() as tx:
            tx.set_fact("first", "1")
            tx.facts()
        with store.reading() as tx:
            tx.facts()
        store.watch = None
        assert seen == [
            ("set_fact", False), ("facts", False), ("commit", False), ("committed", True),
            ("facts", True), ("commit", True), ("committed", True),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("point", "happened"),
    [("add_timers", False), ("facts", False), ("commit", False), ("committed", True)],
)
@pytest.mark.parametrize("raised", [ValueError("stop"), Stop()], ids=repr)
def test_a_replica_that_stops_at_a_point(
    store: Store, point: str, happened: bool, raised: BaseException
) -> None:
    def stop(name: str) -> None:
        if name == point:
            raise raised

    store.watch = stop
    with pytest.raises(type(raised)), store.transaction() as tx:
        tx.set_fact("first", "1")
        tx.add_timers("start", {"e": "timeDate 2026-11-09T08:00:00Z"})
        tx.facts()
    store.watch = None
    assert facts(store) == ({"first": "1"} if happened else {})
    with store.reading() as tx:
        assert len(tx.expressions(["e"])) == happened


def test_the_watch_hears_of_no_commit_when_there_is_none(store: Store) -> None:
    seen: list[str] = []
    store.watch = seen.append
    with pytest.raises(ValueError, match="no"), store.transaction() as tx:
        tx.facts()
        raise ValueError("no")
    assert seen == ["facts"]


# ---------------------------------------------------------------------- the clock


def test_a_file_goes_by_the_clock_of_its_host(
    in_a_file: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "now", lambda: 1234567)
    assert in_a_file.now() == 1234567


def test_postgresql_goes_by_its_own_clock(
    on_postgresql: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = clock.now()
    monkeypatch.setattr(clock, "now", lambda: 0)
    readings = [on_postgresql.now() for _ in range(20)]
    assert all(type(reading) is int for reading in readings)
    assert all(abs(reading - host) < HOUR for reading in readings)
    assert readings == sorted(readings)
    assert any(reading % 1_000 for reading in readings)


def test_the_clock_goes_on_within_a_transaction(store: Store) -> None:
    with store.transaction() as tx:
        tx.facts()
        first = store.now()
        for _ in range(10_000):
            if store.now() > first:
                break
        else:
            pytest.fail("it stands still")


@pytest.mark.parametrize("offset", [0, HOUR, -HOUR])
def test_a_stores_clock_adds_the_offset(
    in_a_file: Store, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    monkeypatch.setattr(clock, "now", lambda: 2 * HOUR)
    ticking = StoreClock(in_a_file, offset)
    assert (ticking.now(), ticking.offset) == (2 * HOUR + offset, offset)
    assert repr(ticking) == f"StoreClock({in_a_file.name!r}, offset={offset})"
    assert StoreClock(in_a_file).now() == 2 * HOUR


# ---------------------------------------------------------------------- reading


def test_reading_a_file_waits_for_no_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BUSY_SECONDS", 0.05)
    path = tmp_path / "store.db"
    with Store(path) as one, Store(path) as other, one.transaction() as tx:
        tx.set_fact("first", "1")
        assert facts(one) == {}
        assert facts(other) == {}


def test_reading_a_file_sees_one_moment(in_a_file: Store) -> None:
    with in_a_file.reading() as reader:
        before = reader.facts()
        with in_a_file.transaction() as writer:
            writer.set_fact("first", "1")
        assert reader.facts() == before
        assert facts(in_a_file) == {"first": "1"}


# ---------------------------------------------------------------------- in memory


@pytest.mark.parametrize("address", ["sqlite://", "sqlite:///:memory:", ":memory:"])
def test_a_store_in_memory_is_of_its_own(address: str, tmp_path: Path) -> None:
    with Store(address) as one, Store(address) as other:
        with one.transaction() as tx:
            tx.set_fact("first", "1")
        assert facts(one) == {"first": "1"}
        assert facts(other) == {}
    assert not Path(":memory:").exists()


def test_threads_share_a_store_in_memory() -> None:
    with Store("sqlite://") as store:
        failures: list[BaseException] = []

        def count(name: str) -> None:
            try:
                for number in range(50):
                    with store.transaction() as tx:
                        total = int(tx.facts().get("total", "0"))
                        tx.set_fact(name, str(number))
                        tx.set_fact("total", str(total + 1))
                    with store.reading() as tx:
                        tx.facts()
                    store.now()
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=count, args=(f"t{n}",)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert facts(store) == {f"t{n}": "49" for n in range(6)} | {"total": "300"}


def test_another_thread_waits_for_the_transaction_in_memory() -> None:
    with Store("sqlite://") as store:
        seen: list[dict[str, str]] = []
        with store.transaction() as tx:
            tx.set_fact("first", "1")
            reader = threading.Thread(target=lambda: seen.append(facts(store)))
            reader.start()
            reader.join(0.1)
            assert seen == []
            tx.set_fact("second", "2")
        reader.join(60)
        assert seen == [{"first": "1", "second": "2"}]


# ---------------------------------------------------------------------- the end


def test_closing_lets_go_of_the_database(store_url: str) -> None:
    with Store(store_url) as store, store.transaction() as tx:
        tx.set_fact("first", "1")
    with Store(store_url) as again:
        assert facts(again) == {"first": "1"}
        with again.transaction() as tx:
            if not again.is_sqlite:
                mine = "SELECT count(*) FROM pg_locks WHERE pid <> pg_backend_pid()"
                assert execute(tx, mine + " AND relation = 'seams_meta'::regclass").scalar() == 0
    if again.is_sqlite:
        folder = Path(store_url.removeprefix("sqlite:///")).parent
        assert [path.name for path in folder.iterdir()] == ["store.db"]  # no log is left
