"""The race of firings: rows are counted right, and no process outlives its measurement."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("psycopg")

from benchmarks import firings
from benchmarks.firings_bare import BareLoop, due_firings
from benchmarks.firings_peers import Queue, installed, measure, peers
from benchmarks.firings_race import (
    PAYLOAD,
    Counts,
    Gate,
    Row,
    connected,
    count_rows,
    insert_of,
    kind_of,
    make_rows,
    path_of,
    run_queue,
    workers,
    writer,
)

BOTH = frozenset({"sqlite", "postgresql"})


def row(who: str = "a", store: str = "sqlite", **values: object) -> Row:
    """A measurement with nothing wrong."""
    given = {
        "processes": 1,
        "firings": 100,
        "seconds": 2.0,
        "ran": 100,
        "duplicates": 0,
        "missed": 0,
    }
    return Row(who, store, **(given | values))  # type: ignore[arg-type]


def write_rows(url: str, jobs: str) -> None:
    """A row for each word."""
    with connected(url) as connection:
        for job in jobs.split():
            connection.execute(insert_of(url), (job, PAYLOAD))


# ------------------------------------------------- workers that tests send through the gate


def write_once(gate: Gate, url: str) -> None:
    """Ten firings, one row each."""
    write = writer(url)
    gate.wait()
    for job in range(10):
        write(str(job))


def fail_at_start(gate: Gate, url: str) -> None:
    """Never comes to the gate."""
    raise ValueError("no such peer")


def fail_once(gate: Gate, url: str) -> None:
    """Fails after the start with a lock, and does its work when begun again."""
    gate.wait()
    with connected(url) as connection:
        begun = connection.execute("SELECT count(*) FROM bench_row WHERE job = 'x'").fetchone()[0]
    if not begun:
        writer(url)("x")
        raise ValueError("database is locked")
    writer(url)("y")


def wait_for_ever(gate: Gate, url: str) -> None:
    """Stands at a gate that never opens."""
    gate.wait()


# ------------------------------------------------- counting


@pytest.mark.parametrize(
    ("jobs", "counts"),
    [
        ("", Counts(0, 0, 3)),
        ("a b c", Counts(3, 0, 0)),
        ("a b", Counts(2, 0, 1)),
        ("a b b c", Counts(4, 1, 0)),
        ("a a a", Counts(3, 2, 2)),
    ],
)
def test_rows_are_counted(store_url: str, jobs: str, counts: Counts) -> None:
    make_rows(store_url)
    write_rows(store_url, jobs)
    assert count_rows(store_url, 3) == counts


def test_a_row_holds_one_kilobyte(store_url: str) -> None:
    make_rows(store_url)
    write_rows(store_url, "a")
    with connected(store_url) as connection:
        (payload,) = connection.execute("SELECT payload FROM bench_row").fetchone()
    assert payload == PAYLOAD
    assert len(payload) == 1_024


@pytest.mark.parametrize("url", ["mysql://host/db", "", "store.db"])
def test_another_store_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="PostgreSQL or SQLite"):
        kind_of(url)


def test_sqlite_is_as_durable_as_postgresql(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    with connected(url) as connection:
        asked = [connection.execute(f"PRAGMA {name}").fetchone()[0]
                 for name in ("journal_mode", "synchronous")]  # fmt: skip
    assert asked == ["wal", 2]
    assert path_of(url) == str(tmp_path / "a.db")


@pytest.mark.parametrize(
    ("values", "rate"), [({}, 50.0), ({"missed": 40}, 30.0), ({"seconds": 0.0}, 0.0)]
)
def test_the_rate_is_of_firings_that_ran(values: dict[str, object], rate: float) -> None:
    assert row(**values).rate == rate


# ------------------------------------------------- processes


def test_time_ends_with_the_last_row_and_duplicates_show(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    make_rows(url)
    seconds, errors, deadlocks = run_queue(write_once, url, processes=2, firings=10)
    assert count_rows(url, 10) == Counts(20, 10, 0)
    assert 0 < seconds < 5
    assert (errors, deadlocks) == (0, 0)


def test_a_worker_that_fails_is_begun_again_and_counted(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    make_rows(url)
    assert run_queue(fail_once, url, processes=1, firings=2)[1:] == (1, 1)
    assert count_rows(url, 2) == Counts(2, 0, 0)


def test_a_worker_that_cannot_start_is_told_with_its_error(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match=r"(?s)did not come to the start.*no such peer"),
        workers(fail_at_start, (f"sqlite:///{tmp_path / 'a.db'}",), 1) as crew,
    ):
        crew.start()
    assert multiprocessing.active_children() == []


def fail_in_parent() -> None:
    """Begin two processes and fail before the start signal."""
    with workers(wait_for_ever, ("",), 2) as crew:
        assert all(process.is_alive() for process in crew.processes)
        raise ZeroDivisionError


def test_no_process_is_left_when_the_parent_fails() -> None:
    with pytest.raises(ZeroDivisionError):
        fail_in_parent()
    assert multiprocessing.active_children() == []


def test_no_process_is_left_when_the_parent_is_killed(repo: Path) -> None:
    script = (
        "import os\n"
        "from benchmarks.firings_race import workers\n"
        "from tests.test_benchmarks_firings import wait_for_ever\n"
        "if __name__ == '__main__':\n"
        "    with workers(wait_for_ever, ('',), 1) as crew:\n"
        "        crew.gate.ready.acquire()\n"
        "        os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, "-c", script]
    # The worker holds the pipes too: that run() comes back says that the worker has ended.
    done = subprocess.run(command, cwd=repo, capture_output=True, timeout=20)
    assert done.returncode == -9


# ------------------------------------------------- contenders


def test_due_firings_are_different_and_sorted() -> None:
    due = due_firings(250)
    assert len(set(due)) == 250
    assert due == sorted(due)


def test_racing_processes_insert_each_firing_once(store_url: str) -> None:
    found = measure(BareLoop(batch=7), store_url, processes=2, firings=100)
    assert (found.ran, found.duplicates, found.missed) == (100, 0, 0)
    assert (found.errors, found.deadlocks) == (0, 0)
    assert found.rate > 0


@pytest.mark.parametrize(
    ("peer", "kind"), [(peer, kind) for peer in peers() for kind in sorted(peer.stores)],
    ids=lambda value: value if isinstance(value, str) else value.name,
)  # fmt: skip
@pytest.mark.slow
def test_a_peer_runs_all_that_is_due(peer: Queue, kind: str) -> None:
    if not installed(peer):
        pytest.skip(f"{peer.name} is not installed")
    with firings.stores() as new_store:
        found = measure(peer, new_store(kind), processes=1, firings=20)
    assert (found.ran, found.duplicates, found.missed) == (20, 0, 0)


# ------------------------------------------------- the table


def absent() -> Queue:
    """A peer whose library is nowhere."""
    return Queue("nobody", "no_such_library", BOTH, "", lambda *_: None, lambda *_: None)


def test_a_peer_that_is_not_installed_is_named() -> None:
    found = list(firings.measured([absent()], lambda kind: kind, 10, (1, 2)))
    assert found == ["nobody: not installed"]


def test_a_peer_that_fails_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    made: list[str] = []

    def new_store(kind: str) -> str:
        made.append(kind)
        if len(made) == 1:
            raise OSError("no room\nat all\nleft")
        return f"sqlite:///{tmp_path / str(len(made))}"

    bare = BareLoop()
    bare.stores = frozenset({"sqlite"})
    failed, ran = firings.measured([bare], new_store, 10, (1, 2))
    assert failed == f"{bare.name} on sqlite, 1 processes: OSError: no room left"
    assert isinstance(ran, Row)


def test_the_table_puts_process_counts_side_by_side() -> None:
    rows = [row(note="as told"), row(processes=2, seconds=1.0, duplicates=3, firings=1_000),
            row("b", missed=100, errors=2, deadlocks=1), "c: not installed"]  # fmt: skip
    lines = firings.table(rows).splitlines()
    assert lines[2] == "| a | sqlite | 1 / 2 | 50 / 1,000 | 0 / 3 | 0 | 0 | 0 | as told |"
    assert lines[3] == "| b | sqlite | 1 | 0 | 0 | 100 | 2 | 1 |  |"
    assert lines[-1] == "c: not installed"
