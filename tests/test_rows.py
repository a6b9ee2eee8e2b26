"""Many rows as one parameter: what goes in comes out, in order, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select

from seams_lab.runtime.rows import as_names, as_rows, insert_each, insert_rows, rows_of
from seams_lab.runtime.schema import firing, metadata, trace
from seams_lab.runtime.store import Store

LAST = 253_402_300_799_999_999  # 9999-12-31T23:59:59.999999Z, in microseconds

TEXTS = [
    "",
    " ",
    "plain",
    'it\'s "quoted" and \\back\\slashed\\u0041',
    "two\nlines\ttab\r",
    "Ünïcödé Ω 日本 🙂",
    "42",
    "1e3",
    "null",
    "true",
    '{"a": [1, 2]}',
    "[1]",
    "$.event :rows %s %(rows)s ? --",
    "x" * 100_000,
]


@pytest.fixture
def connection(store_url: str) -> Iterator[Any]:
    """An open connection to a store of each kind."""
    with Store(store_url) as store, store.transaction() as tx:
        yield tx._connection


def read(connection: Any, values: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    rows = rows_of(connection.dialect.name, names)
    found = connection.execute(select(*(rows.c[name] for name in names)), as_rows(values))
    return [tuple(row) for row in found]


@pytest.mark.parametrize("value", TEXTS, ids=lambda value: repr(value[:20]))
def test_a_text_comes_back_as_it_was(connection: Any, value: str) -> None:
    assert read(connection, [{"event": value}], "event") == [(value,)]


@pytest.mark.parametrize("name", ["due", "token", "claimable_at", "fired_at", "at", "skipped"])
@pytest.mark.parametrize("value", [0, 1, -1, 2**31, 2**53 + 1, LAST, 2**63 - 1, -(2**63)])
def test_a_long_integer_comes_back_exactly(connection: Any, name: str, value: int) -> None:
    found = read(connection, [{name: value}], name)
    assert found == [(value,)]
    assert type(found[0][0]) is int


@pytest.mark.parametrize("name", ["revision", "position", "attempts"])
def test_an_integer_comes_back_as_one(connection: Any, name: str) -> None:
    assert read(connection, [{name: 2**31 - 1}], name) == [(2**31 - 1,)]


def test_each_integer_of_the_tables_is_read_as_one(connection: Any) -> None:
    columns = {c.name for table in metadata.tables.values() for c in table.columns
               if c.type.python_type is int}  # fmt: skip
    for name in sorted(columns - {"retry_at"}):  # retry_at is never given by rows
        assert read(connection, [{name: 7}], name) == [(7,)], name


def test_nothing_comes_back_as_null(connection: Any) -> None:
    values = [{"event": None, "due": None}, {}]
    assert read(connection, values, "event", "due") == [(None, None), (None, None)]


def test_rows_keep_their_order_and_their_doubles(connection: Any) -> None:
    values = [{"event": event, "due": due} for due, event in enumerate("cabbac")]
    assert read(connection, values, "event", "due") == [(v["event"], v["due"]) for v in values]
    assert read(connection, [], "event") == []


def test_names_are_sorted_and_each_is_there_once(connection: Any) -> None:
    assert as_names(["b", "a", "b"]) == as_rows([{"event": "a"}, {"event": "b"}])
    assert as_names(iter(["b", "a"]), "id") == as_rows([{"id": "a"}, {"id": "b"}])


COLUMNS = tuple(column.name for column in firing.columns)


def row(event: str, due: int, by: str = "r1") -> dict[str, Any]:
    return {"event": event, "due": due, "waiter": "", "instance": "i", "skipped": 0,
            "fired_at": LAST, "fired_by": by}  # fmt: skip


def test_a_row_whose_key_is_taken_is_left_out_and_the_others_go_in(connection: Any) -> None:
    statement = insert_rows(connection.dialect.name, firing, COLUMNS, (firing.c.due,))
    first = connection.execute(statement, as_rows([row("e", 1), row("e", 2)])).scalars().all()
    again = [row("e", 3, "r2"), row("e", 2, "r2"), row("e", 3, "r3"), row("f", 2, "r2")]
    second = connection.execute(statement, as_rows(again)).scalars().all()
    assert (first, second) == ([1, 2], [3, 2])
    found = connection.execute(select(firing.c.event, firing.c.due, firing.c.fired_by))
    expected = {("e", 1, "r1"), ("e", 2, "r1"), ("e", 3, "r2"), ("f", 2, "r2")}
    assert {tuple(each) for each in found} == expected


def test_rows_one_by_one_give_the_same_table_as_rows_at_once() -> None:
    columns = tuple(column.name for column in trace.columns)
    values = [
        dict.fromkeys(columns, value) | {"revision": 1, "position": n, "at": LAST, "due": due}
        for n, (value, due) in enumerate(zip(TEXTS, [None, 0, LAST] * 5, strict=False))
    ]
    values.append(values[0] | {"name": "late"})
    found = []
    for one_by_one in (True, False):
        with Store("sqlite://") as store, store.transaction() as tx:
            if one_by_one:
                rows = [tuple(value[name] for name in columns) for value in values]
                tx._connection.exec_driver_sql(insert_each(trace, columns), rows)
            else:
                tx._connection.execute(insert_rows("sqlite", trace, columns), as_rows(values))
            found.append([tuple(each) for each in tx.read(select(trace))])
    assert found[0] == found[1]
    assert len(found[0]) == len(TEXTS)
