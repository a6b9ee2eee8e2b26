"""Many rows as one parameter: a JSON text that SQLite and PostgreSQL read as a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Integer, Text, bindparam, cast, column, func, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.expression import FromClause

_INTEGERS = ("revision", "position", "attempts")
_BIG = ("due", "token", "skipped", "fired_at", "at", "claimable_at", "created_at", "changed_at")
_TYPES: dict[str, Any] = dict.fromkeys(_INTEGERS, Integer) | dict.fromkeys(_BIG, BigInteger)


def rows_of(dialect: str, names: tuple[str, ...]) -> FromClause:
    """The JSON parameter ``rows`` (a list of objects) as a table with the columns *names*."""
    if dialect == "postgresql":
        columns = [column(name, _TYPES.get(name, Text)) for name in names]
        document = cast(bindparam("rows", type_=Text), postgresql.JSON)
        function = func.json_to_recordset(document).table_valued(*columns, name="r")
        return function.render_derived(with_types=True)
    each = func.json_each(bindparam("rows", type_=Text)).table_valued("value", name="each_row")
    values = [
        func.json_extract(each.c.value, f"$.{name}", type_=_TYPES.get(name, Text)).label(name)
        for name in names
    ]
    return select(*values).select_from(each).subquery("r")


def as_rows(values: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The parameter that `rows_of` reads."""
    return {"rows": json.dumps(values)}


def as_names(values: Iterable[str], name: str = "event") -> dict[str, str]:
    """The parameter for rows of one column, sorted."""
    return as_rows([{name: value} for value in sorted(set(values))])


@lru_cache(maxsize=64)
def insert_rows(dialect: str, table: Any, columns: tuple[str, ...], returning: Any = None) -> Any:
    """Insert the rows in their order; one whose key is taken is left out."""
    rows = rows_of(dialect, columns)
    make = postgresql.insert if dialect == "postgresql" else sqlite.insert
    # WHERE true: without it SQLite's parser takes ON CONFLICT for a join's condition.
    chosen = select(*(rows.c[name] for name in columns)).where(text("true"))
    statement = make(table).from_select(list(columns), chosen).on_conflict_do_nothing()
    return statement.returning(*returning) if returning is not None else statement


@lru_cache(maxsize=64)
def insert_each(table: Any, columns: tuple[str, ...]) -> str:
    """Insert one row, given as a tuple (SQLite); one whose key is taken is left out."""
    values: dict[str, Any] = {name: bindparam(name) for name in columns}
    statement = sqlite.insert(table).values(values).on_conflict_do_nothing()
    compiled = statement.compile(dialect=sqlite.dialect(paramstyle="qmark"))
    assert tuple(compiled.positiontup or ()) == columns
    return str(compiled)
