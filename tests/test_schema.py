"""The tables of the store: made once, recognised, and refused where they are not ours."""

from __future__ import annotations

import multiprocessing
import queue
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import create_engine, inspect, text

from seams_lab.errors import UnusableInput
from seams_lab.runtime import schema
from seams_lab.runtime.schema import VERSION, metadata
from seams_lab.runtime.store import Store, StoreFailure

FORMAT = "seams-lab store"
NO_TABLE = "no seams-lab tables"
NOT_OURS = "that seams-lab did not make"


def with_connection(url: str, do: Callable[[Any], Any]) -> Any:
    """Do something on a connection of somebody else, and commit."""
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.begin() as connection:
            return do(connection)
    finally:
        engine.dispose()


def execute(url: str, *statements: str) -> None:
    with_connection(url, lambda c: [c.execute(text(statement)) for statement in statements])


def tables(url: str) -> set[str]:
    return with_connection(url, lambda c: set(inspect(c).get_table_names()))


def facts(url: str) -> dict[str, str]:
    with Store(url, create=False) as store, store.reading() as tx:
        return tx.facts()


def test_an_empty_database_gets_every_table_and_its_version(store_url: str) -> None:
    Store(store_url).close()
    assert tables(store_url) == set(metadata.tables)
    assert len(metadata.tables) == 6
    assert facts(store_url) == {"format": FORMAT, "version": str(VERSION)}


def test_opening_again_keeps_what_is_there(store_url: str) -> None:
    for number in range(3):
        with Store(store_url) as store, store.transaction() as tx:
            assert tx.facts().get("opened", "0") == str(number)
            tx.set_fact("opened", str(number + 1))


def test_a_database_is_shared_with_the_tables_of_others(store_url: str) -> None:
    execute(store_url, "CREATE TABLE customer (id integer)", "INSERT INTO customer VALUES (7)")
    for _ in range(2):
        Store(store_url).close()
    assert tables(store_url) == {"customer", *metadata.tables}
    found = with_connection(store_url, lambda c: c.execute(text("SELECT id FROM customer")).all())
    assert [tuple(row) for row in found] == [(7,)]


@pytest.mark.parametrize("before", [(), ("CREATE TABLE customer (id integer)",)])
def test_a_store_that_must_be_there_is_not_made(store_url: str, before: tuple[str, ...]) -> None:
    execute(store_url, *before, "CREATE TABLE gone (id integer)", "DROP TABLE gone")
    there = tables(store_url)
    with pytest.raises(UnusableInput) as caught:
        Store(store_url, create=False)
    assert caught.value.seen == NO_TABLE
    assert "seams-lab run MODEL --store" in caught.value.fix
    assert tables(store_url) == there
    Store(store_url).close()
    Store(store_url, create=False).close()


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("version", ["0", str(VERSION + 1), "", "newest", None])
def test_a_store_of_another_version_is_refused(
    store_url: str, version: str | None, create: bool
) -> None:
    Store(store_url).close()
    change = f"UPDATE seams_meta SET value = '{version}' WHERE key = 'version'"
    execute(store_url, change if version is not None else change.split(" SET")[0].replace(
        "UPDATE", "DELETE FROM") + " WHERE key = 'version'")  # fmt: skip
    with pytest.raises(UnusableInput) as caught:
        Store(store_url, create=create)
    assert caught.value.seen == f"a store of version {version}"
    assert caught.value.expected == f"version {VERSION}"


META = "CREATE TABLE seams_meta (key text PRIMARY KEY, value text)"


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE seams_meta (id integer)",),
        ("CREATE TABLE seams_meta (key text)",),
        (META,),
        (META, "INSERT INTO seams_meta VALUES ('format', 'seams-lab  store'), ('version', '1')"),
        (META, "INSERT INTO seams_meta VALUES ('version', '1')"),
        ("CREATE TABLE seams_timer (id integer)",),
        ("CREATE TABLE seams_wait (id integer)", "CREATE TABLE seams_trace (id integer)"),
    ],
)
def test_tables_of_our_names_that_others_made_are_refused(
    store_url: str, statements: tuple[str, ...], create: bool
) -> None:
    execute(store_url, *statements)
    there = tables(store_url)
    with pytest.raises(UnusableInput, match=NOT_OURS) as caught:
        Store(store_url, create=create)
    assert all(name in caught.value.seen for name in there)
    assert tables(store_url) == there


@pytest.mark.parametrize("name", sorted(metadata.tables))
def test_a_store_that_lost_a_table_is_refused_and_not_repaired(store_url: str, name: str) -> None:
    Store(store_url).close()
    execute(store_url, f"DROP TABLE {name}")
    with pytest.raises(UnusableInput) as caught:
        Store(store_url)
    if name == "seams_meta":
        assert NOT_OURS in caught.value.seen
    else:
        assert caught.value.seen == f"a store without the table {name}"
    assert name not in tables(store_url)


def test_a_store_that_could_not_be_made_leaves_no_table(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_FORMAT", None)
    with pytest.raises(StoreFailure):
        Store(store_url)
    assert tables(store_url) == set()
    monkeypatch.undo()
    Store(store_url).close()


# ---------------------------------------------------------------------- together


def open_when_all_are_there(url: str, barrier: Any, outcomes: Any) -> None:
    """Open an empty store at the same moment as the others."""
    barrier.wait(60)
    try:
        with Store(url) as store, store.reading() as tx:
            outcomes.put(tx.facts()["version"])
    except BaseException as error:
        outcomes.put(f"{type(error).__name__}: {error}")


@pytest.mark.parametrize("round_", range(3))
def test_threads_that_open_an_empty_store_together_all_get_it(store_url: str, round_: int) -> None:
    barrier, outcomes = threading.Barrier(6), queue.Queue[str]()
    given = (store_url, barrier, outcomes)
    threads = [threading.Thread(target=open_when_all_are_there, args=given) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [outcomes.get(timeout=1) for _ in threads] == [str(VERSION)] * 6
    assert facts(store_url) == {"format": FORMAT, "version": str(VERSION)}


@pytest.mark.slow
def test_processes_that_open_an_empty_store_together_all_get_it(store_url: str) -> None:
    spawn = multiprocessing.get_context("spawn")
    barrier, outcomes = spawn.Barrier(2), spawn.Queue()
    given = (store_url, barrier, outcomes)
    processes = [spawn.Process(target=open_when_all_are_there, args=given) for _ in range(2)]
    for process in processes:
        process.start()
    assert [outcomes.get(timeout=60) for _ in processes] == [str(VERSION)] * 2
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    outcomes.close()
