"""How a statement reaches the database: the base of what a transaction can do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from seams_lab.runtime.rows import as_rows, insert_each, insert_rows


class Statements:
    """A connection inside a transaction, and whoever watches its statements."""

    def __init__(self, connection: Connection, watch: Callable[[str], None] | None) -> None:
        self._connection, self._watch = connection, watch
        self._dialect = connection.dialect.name

    def _run(self, name: str, statement: Any, parameters: Any = None) -> Any:
        if self._watch:
            self._watch(name)
        return self._connection.execute(statement, parameters or {})

    def read(self, statement: Any, parameters: Any = None) -> list[Any]:
        """Rows of a query that only looks (`status.py`)."""
        return list(self._run("read", statement, parameters))

    def _insert(self, name: str, table: Any, values: Sequence[dict[str, Any]],
                columns: tuple[str, ...], returning: Any = None) -> Any:  # fmt: skip
        """Insert rows in their order; a row whose key is taken is left out."""
        if not values:
            return []
        if self._dialect == "sqlite" and returning is None:
            # Its driver runs prepared statements in a loop faster than it reads JSON.
            if self._watch:
                self._watch(name)
            rows = [tuple(map(row.get, columns)) for row in values]
            return self._connection.exec_driver_sql(insert_each(table, columns), rows)
        return self._run(name, insert_rows(self._dialect, table, columns, returning),
                         as_rows(values))  # fmt: skip

    def _upsert(self, table: Any, key: list[str], columns: list[str]) -> Any:
        dialect = postgresql if self._dialect == "postgresql" else sqlite
        statement = dialect.insert(table)
        changed = {name: statement.excluded[name] for name in columns}
        return statement.on_conflict_do_update(index_elements=key, set_=changed)
