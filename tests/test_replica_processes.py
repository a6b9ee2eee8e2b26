"""Replicas as processes: what ends badly is told, and nothing is left behind.

How they take Ctrl-C and the death of their parent is in test_runtime_commands.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from seams_lab import replica_processes


def test_processes_that_fail_are_told_and_end_with_status_2(
    capsys: pytest.CaptureFixture[str], restored_signals: None
) -> None:
    with pytest.raises(typer.Exit) as ended:
        replica_processes.run_processes({"one": ["nonsense"], "two": ["--version"]}, {})
    assert ended.value.exit_code == 2
    assert "note: one ended by status 2" in capsys.readouterr().err


def test_processes_that_end_well_are_no_failure_and_get_the_environment(
    tmp_path: Path, restored_signals: None, capfd: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'nowhere.db'}"
    with pytest.raises(typer.Exit):
        replica_processes.run_processes({"one": ["status"]}, {"SEAMS_STORE": url})
    assert "nowhere.db: no such file" in capfd.readouterr().err
    replica_processes.run_processes({"one": ["--version"]}, {})


@pytest.fixture
def restored_signals() -> Iterator[None]:
    import signal

    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def test_the_end_of_stdin_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [b"x", b""]
    called = []
    monkeypatch.setattr(os, "read", lambda fd, n: answers.pop(0))
    replica_processes.await_end_of_stdin(lambda: called.append(len(answers)))
    assert called == [0]
