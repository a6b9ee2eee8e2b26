"""The commands that run a model, as a person uses them: no traceback, exit statuses, signals."""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from seams_lab import cli, clock, runtime_commands
from seams_lab.expressions import SECOND
from seams_lab.instants import to_micros
from seams_lab.runtime import status as status_module
from seams_lab.runtime import store as store_module
from seams_lab.runtime.store import StoreFailure

BPMN = "http://www.omg.org/spec/BPMN/20100524/MODEL"
COMMANDS = ("run", "status", "start", "tasks", "complete", "instances", "retry")
PATIENCE = 60.0


@pytest.fixture(autouse=True)
def _logger() -> Iterator[None]:
    """The commands set the logger up: afterwards it is as it was."""
    logger = logging.getLogger("seams_lab")
    handlers, level = logger.handlers[:], logger.level
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)


@pytest.fixture
def cli_run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Runs a command in this process, through `main`: quicker than a process of its own."""

    def run(*words: object) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["seams-lab", *map(str, words)])
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            with pytest.raises(SystemExit) as ended:
                cli.main()
        assert "Traceback" not in out.getvalue() + err.getvalue()
        return int(ended.value.code or 0), out.getvalue(), err.getvalue()

    return run


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a store that is not there yet; commands find it in SEAMS_STORE.

    By its clock it is 1 December 2026, a quarter past three.
    """
    ahead = (to_micros("2026-12-01T03:15:00Z") - clock.now()) // SECOND
    monkeypatch.setenv("SEAMS_CLOCK_OFFSET", f"{'-' if ahead < 0 else ''}PT{abs(ahead)}S")
    url = f"sqlite:///{tmp_path / 'store.db'}"
    monkeypatch.setenv("SEAMS_STORE", url)
    return url


@pytest.fixture
def expense(models: Path) -> tuple[object, ...]:
    """A model with its options, as `start` and `complete` take them."""
    folder = models / "expense"
    return (folder, "-c", "api", "--handlers", folder / "handlers.py")


# ------------------------------------------------------------------ a day with the commands


def test_an_expense_from_start_to_end(
    cli_run: Callable[..., tuple[int, str, str]], store: str, expense: tuple[Any, ...]
) -> None:
    model, *options = expense
    code, out, _ = cli_run("start", model, "approval_process", "-k", "E-17",
                           "-d", '{"title": "Taxi", "amount": 12}', *options)  # fmt: skip
    assert code == 0
    key = next(line for line in out.splitlines() if line.startswith("instance ")).split()[1]
    assert "task open: Approve expense" in out
    assert "Validate expense: Taxi" in out

    code, out, _ = cli_run("tasks")
    assert (code, out.split("\n")[1].split()[:2]) == (0, [key[:8], "approve_expense"])
    [task] = json.loads(cli_run("tasks", "-f", "json")[1])
    assert (task["instance"], task["key"]) == (key, "E-17")

    code, out, _ = cli_run("complete", model, key[:8], "-d", '{"approved": true}', *options)
    assert code == 0
    assert "approval_process E-17: completed" in out
    code, out, err = cli_run("tasks")
    assert (code, out, err) == (0, "", "note: no open user tasks\n")

    code, out, _ = cli_run("instances", "--key", "E-17", "--trace")
    assert code == 0
    assert "userTask" in out
    assert "approve_expense" in out


def test_run_once_says_what_it_runs_and_what_came_of_it(
    cli_run: Callable[..., tuple[int, str, str]], store: str, expense: tuple[Any, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    code, out, err = cli_run("run", *expense, "--once")
    lines = err.splitlines()
    assert code == 0
    assert lines[0].startswith(f"container api of {expense[0]}: 4 process(es), 2 timer start(s), 2")
    assert f"state in {store}" in lines[0]
    assert (
        "timer fire https://example.org/expense/digest#every_morning due 2026-11-30T08:00:00Z"
        in err
    )
    assert "every_morning 21 firing(s)" in err
    assert "Collect open expenses" in out
    # Each start that is due has fired: a second time there is nothing to do.
    code, out, err = cli_run("run", *expense, "--once")
    assert (code, out) == (0, "")
    assert err.splitlines()[-1] == "note: 0 step(s)"
    assert ", next 2026-12-01T08:00:00Z; state in " in err


def test_run_once_with_a_failure_ends_with_status_1(
    cli_run: Callable[..., tuple[int, str, str]], store: str, expense: tuple[Any, ...],
    tmp_path: Path,
) -> None:  # fmt: skip
    handlers = tmp_path / "handlers.py"
    handlers.write_text("handlers = {'collect_open_expenses': lambda data, context: 1 / 0}")
    code, _, err = cli_run("run", *expense[:3], "--handlers", handlers, "--once")
    assert code == 1
    assert "ZeroDivisionError" in err
    assert "1 failed" in err.splitlines()[-1]
    [failed] = json.loads(cli_run("instances", "--status", "failed", "-f", "json")[1])
    code, _, err = cli_run("retry", failed["instance"][:8])
    assert (code, "is tried again" in err) == (0, True)
    code, _, err = cli_run("run", *expense, "--once")
    assert (code, err.splitlines()[-1]) == (0, "note: 1 step(s)")
    code, _, err = cli_run("retry", failed["instance"][:8])
    assert (code, "not failed" in err) == (2, True)


@pytest.fixture
def used(cli_run: Callable[..., tuple[int, str, str]], store: str, expense: tuple[Any, ...]) -> str:
    """A store with firings, an open task and a waiting timer."""
    cli_run("run", *expense, "--once")
    cli_run("start", expense[0], "approval_process", "-k", "E-1", *expense[1:])
    return store


# ------------------------------------------------------------------ formats


def test_status_in_each_format(cli_run: Callable[..., tuple[int, str, str]], used: str) -> None:
    code, out, _ = cli_run("status")
    assert code == 0
    assert "instances: " in out.splitlines()[0]
    assert [line for line in out.splitlines() if line.strip() in ("timers", "waiting", "firings")]
    assert "leases" not in out
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 120
    found = json.loads(cli_run("status", "-f", "json")[1])
    assert [row["event"] for row in found["timers"]] == ["every_morning", "year_ends"]
    rows = list(csv.DictReader(io.StringIO(cli_run("status", "-f", "csv")[1])))
    assert {row["table"] for row in rows} == {"timers", "waiting", "firings"}
    assert {row["event"] for row in rows if row["table"] == "timers"} == {
        "every_morning",
        "year_ends",
    }


@pytest.mark.parametrize("table", list(runtime_commands.Table))
def test_status_of_one_table(
    cli_run: Callable[..., tuple[int, str, str]], used: str, table: str
) -> None:
    everything = json.loads(cli_run("status", "-f", "json")[1])
    assert json.loads(cli_run("status", "-t", table, "-f", "json")[1]) == everything[table]
    rows = list(csv.DictReader(io.StringIO(cli_run("status", "-t", table, "-f", "csv")[1])))
    assert len(rows) == len(everything[table])
    if rows:
        assert rows[0].keys() == everything[table][0].keys()
    assert "instances: " not in cli_run("status", "-t", table)[1]


def test_the_tables_are_those_of_the_status() -> None:
    fields = status_module.Status.__dataclass_fields__
    assert set(runtime_commands.Table) < fields.keys()


def test_instances_with_their_traces_are_one_document(
    cli_run: Callable[..., tuple[int, str, str]], used: str
) -> None:
    [one] = json.loads(cli_run("instances", "-k", "E-1", "--trace", "-f", "json")[1])
    assert [step["element"] for step in one["trace"]][:2] == [
        "expense_submitted",
        "validate_expense",
    ]
    assert "trace" not in json.loads(cli_run("instances", "-k", "E-1", "-f", "json")[1])[0]
    text = cli_run("instances", "-k", "E-1", "--trace", "-f", "csv")[1]
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["instance"] for row in rows} == {one["instance"]}
    assert [row["element"] for row in rows] == [step["element"] for step in one["trace"]]


def test_instances_says_what_it_leaves_off_and_when_there_are_none(
    cli_run: Callable[..., tuple[int, str, str]], used: str
) -> None:
    code, out, err = cli_run("instances", "--limit", "1", "-f", "json")
    assert (code, len(json.loads(out))) == (0, 1)
    assert "at most 1 are listed" in err
    assert cli_run("instances", "-k", "nobody") == (0, "", "note: no such instances\n")


# ------------------------------------------------------------------ watching


def test_watch_looks_again_until_ctrl_c_also_when_the_store_fails(
    cli_run: Callable[..., tuple[int, str, str]], used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, looks = status_module.read_status, 0

    def look(*words: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks == 2:
            raise StoreFailure("db: gone")
        return real(*words)

    def sleep(seconds: float) -> None:
        if looks == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(status_module, "read_status", look)
    monkeypatch.setattr(runtime_commands.time, "sleep", sleep)
    code, out, err = cli_run("status", "--watch")
    assert (code, looks) == (0, 3)
    assert out.count("instances: ") == 2
    # What clears a terminal is not written into a pipe.
    assert "\x1b" not in out
    assert err == "note: db: gone; tried again\n"


# ------------------------------------------------------------------ what cannot be used


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "MODEL"), "expected one of api, report_worker"),
        (("run", "MODEL", "-c", "nope"), "container 'nope'"),
        (("run", "MODEL", "-c", "api", "--handlers", "nope.py"), "no such file"),
        (("run", "MODEL", "-c", "api", "--store", "mysql://x/y"), "use SQLite or PostgreSQL"),
        (("run", "MODEL", "-c", "api", "--store", "sqlite:////no/such/x.db"), "make the folder"),
        (("run", "MODEL", "-c", "api", "--store", "sqlite://", "-n", "2"), "a store in memory"),
        (("run", "MODEL", "-c", "api", "--lease", "0"), "--lease"),
        (("run", "nowhere"), "nowhere"),
        (("status", "--store", "sqlite:////no/such/x.db"), "no such file"),
        (("status", "--store", "postgresql://u:secret@localhost:1/x"), "u:***@localhost"),
        (("status", "--format", "xml"), "--format"),
        (("status", "--table", "all"), "--table"),
        (("tasks",), "no such file"),
        (("instances",), "no such file"),
        (("retry", "abc"), "no such file"),
        (("start", "MODEL", "nope", "-c", "api"), "process 'nope'"),
        (("start", "MODEL", "approval_process", "-c", "api", "-d", "[1]"), "--data"),
        (("complete", "MODEL", "abc", "-c", "api"), "instance 'abc'"),
        (("complete", "MODEL", "", "-c", "api"), "instance ''"),
    ],
)
def test_what_cannot_be_used_is_said_and_status_2(
    cli_run: Callable[..., tuple[int, str, str]], store: str, models: Path,
    words: tuple[str, ...], said: str,
) -> None:  # fmt: skip
    code, out, err = cli_run(*(models / "expense" if w == "MODEL" else w for w in words))
    assert (code, out) == (2, "")
    assert said in err
    assert "secret" not in err


def test_a_missing_driver_is_one_clear_line(
    cli_run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module.importlib.util, "find_spec", lambda name: None)
    code, out, err = cli_run("status", "--store", "postgresql://u@localhost/x")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "pip install 'seams-lab[postgresql]'" in err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches(command: str) -> None:
    shown = CliRunner().invoke(cli.app, [command, "--help"])
    assert shown.exit_code == 0
    assert f"Example: seams-lab {command}" in shown.output
    assert "until-stdin-ends" not in shown.output


# ------------------------------------------------------------------ signals, in real processes


HANDLERS = """
import pathlib, time

def work(data, context):
    pathlib.Path("entered").touch()
    time.sleep({seconds})
    print("worked", flush=True)

handlers = {{"work": work}}
"""


@contextmanager
def replica(folder: Path, due: str, seconds: float = 0) -> Iterator[tuple[Any, Path]]:
    """A replica as a process, whose one task takes so long; with its log."""
    (folder / "m.bpmn").write_text(
        f"""<definitions xmlns="{BPMN}"><process id="p" isExecutable="true">
        <startEvent id="s"><timerEventDefinition><timeDate>"{due}"</timeDate>
        </timerEventDefinition></startEvent><sequenceFlow id="f1" sourceRef="s" targetRef="work"/>
        <serviceTask id="work"/><sequenceFlow id="f2" sourceRef="work" targetRef="e"/>
        <endEvent id="e"/></process></definitions>"""
    )
    (folder / "handlers.py").write_text(HANDLERS.format(seconds=seconds))
    words = [sys.executable, "-m", "seams_lab", "run", "m.bpmn", "--handlers", "handlers.py",
             "--store", "sqlite:///s.db", "--poll", "3600"]  # fmt: skip
    path = [os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])]
    log = folder / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            words, stdout=stream, stderr=stream, cwd=folder, start_new_session=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
        )  # fmt: skip
    try:
        yield process, log
    finally:
        process.kill()
        process.wait()


def until(condition: Callable[[], Any]) -> None:
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends, "nothing happened for very long"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_an_idle_replica_cleanly(tmp_path: Path, number: int) -> None:
    with replica(tmp_path, "9000-01-01T00:00:00Z") as (process, log):
        until(lambda: " runs " in log.read_text())
        process.send_signal(number)
        # Long before the poll of an hour is over.
        assert process.wait(PATIENCE) == 0
        text = log.read_text()
    assert "note: stopping: " in text
    assert text.rstrip().endswith("stopped")
    assert "Traceback" not in text


def test_the_first_ctrl_c_lets_a_step_end(tmp_path: Path) -> None:
    with replica(tmp_path, "2000-01-01T00:00:00Z", seconds=1.5) as (process, log):
        until((tmp_path / "entered").exists)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
        assert "worked" in log.read_text()


def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    with replica(tmp_path, "2000-01-01T00:00:00Z", seconds=3_600) as (process, log):
        until((tmp_path / "entered").exists)
        process.send_signal(signal.SIGINT)
        until(lambda: "stopping" in log.read_text())
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 128 + signal.SIGINT
        assert "Traceback" not in log.read_text()


def test_log_lines_are_written_at_once(tmp_path: Path) -> None:
    """Into a file too, where Python would otherwise keep them for a while."""
    with replica(tmp_path, "2000-01-01T00:00:00Z", seconds=3_600) as (process, log):
        until((tmp_path / "entered").exists)
        assert "timer fire " in log.read_text()
        assert process.poll() is None
