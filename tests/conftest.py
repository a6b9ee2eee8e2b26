"""What all tests share: where the project lies, and property tests that repeat exactly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.postgresql import empty_schema, serve_postgresql

REPO = Path(__file__).resolve().parents[1]

# The same examples in each run, on each machine; no time limit, for machines differ.
# `--hypothesis-profile explore` looks further, with new examples each time.
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, print_blob=True, database=None
)
settings.register_profile(
    "explore", derandomize=False, deadline=None, print_blob=True, database=None, max_examples=2000
)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def repo() -> Path:
    """The root of the project."""
    return REPO


@pytest.fixture(scope="session")
def models(repo: Path) -> Path:
    """The folder of example models."""
    return repo / "models"


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a PostgreSQL server that these tests started."""
    with serve_postgresql() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty store, of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.db'}"
        return
    with empty_schema(request.getfixturevalue("postgresql")) as address:
        yield address
