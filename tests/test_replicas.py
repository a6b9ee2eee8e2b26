"""Three replicas as processes on one store, a cycle of a second, and one of them killed.

What must hold is read from the tables: each due time was fired once or is counted as skipped.
Nothing here depends on how fast the machine is: a slow one skips more, and says so.
"""

from __future__ import annotations

import collections
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from seams_lab import clock
from seams_lab.expressions import SECOND
from seams_lab.instants import to_text
from seams_lab.runtime.runtime import Runtime
from seams_lab.runtime.schema import firing, instance
from seams_lab.runtime.store import Store

BPMN = "http://www.omg.org/spec/BPMN/20100524/MODEL"
PATIENCE = 180.0

HANDLERS = """
import time

def work(data, context):
    time.sleep(0.4)

handlers = {"work": work}
"""


def write_model(folder: Path, start: int) -> Path:
    """A process that starts every second and works for 0.4 s."""
    path = folder / "beat.bpmn"
    path.write_text(
        f"""<definitions xmlns="{BPMN}"><process id="beat" isExecutable="true">
        <startEvent id="tick"><timerEventDefinition>
          <timeCycle>"R/{to_text(start)}/PT1S"</timeCycle></timerEventDefinition></startEvent>
        <sequenceFlow id="f1" sourceRef="tick" targetRef="work"/>
        <serviceTask id="work"/>
        <sequenceFlow id="f2" sourceRef="work" targetRef="end"/>
        <endEvent id="end"/></process></definitions>"""
    )
    (folder / "handlers.py").write_text(HANDLERS)
    return path


@pytest.fixture
def replica(tmp_path: Path, store_url: str) -> Iterator[Callable[[Path, str], Any]]:
    """Starts a replica as a process; what is left of them ends with the test."""
    started = []

    def start(model: Path, name: str) -> subprocess.Popen[bytes]:
        words = ["run", model, "--handlers", tmp_path / "handlers.py", "--name", name,
                 "--lease", "2", "--poll", "0.5", "--store", store_url]  # fmt: skip
        with (tmp_path / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "seams_lab", *map(str, words)],
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


def rows(store: Store, query: Any) -> list[Any]:
    with store.reading() as tx:
        return list(tx.read(query))


def until(condition: Callable[[], Any]) -> Any:
    """What *condition* says as soon as it says anything."""
    ends = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < ends, "nothing happened for very long"
        time.sleep(0.05)
    return found


def firings(store: Store) -> list[Any]:
    return rows(store, select(firing).order_by(firing.c.due))


@pytest.mark.parametrize("seconds", [12, pytest.param(60, marks=pytest.mark.slow)])
def test_each_second_is_fired_once_or_counted_as_skipped(
    tmp_path: Path,
    store_url: str,
    replica: Callable[[Path, str], Any],
    seconds: int,
    record_property: Callable[[str, object], None],
) -> None:
    """Also when the replica that is at work is killed: the others take over what it held."""
    start = (clock.now() // SECOND + 1) * SECOND
    model = write_model(tmp_path, start)
    names = ["one", "two", "three"]
    with Store(store_url) as store:
        processes = {name: replica(model, name) for name in names}

        def covered() -> int:
            found = firings(store)
            return (found[-1].due - found[0].due) // SECOND if found else 0

        def holder() -> str | None:
            held = rows(store, select(instance.c.holder).where(instance.c.holder.is_not(None)))
            return held[0].holder if held else None

        until(lambda: covered() >= seconds // 2)
        victim = until(holder).rpartition("-")[0]
        processes[victim].kill()
        killed_at = clock.now()
        until(lambda: covered() >= seconds)
        # What the dead replica held was taken over and came to its end.
        until(
            lambda: all(
                row.status == "completed"
                for row in rows(store, select(instance).where(instance.c.created_at < killed_at))
            )
        )
        survivors = {name: p for name, p in processes.items() if name != victim}
        for process in survivors.values():
            process.send_signal(signal.SIGTERM)
        codes = {name: process.wait(PATIENCE) for name, process in survivors.items()}
        logs = "".join((tmp_path / f"{name}.log").read_text() for name in names)
        assert codes == dict.fromkeys(survivors, 0), logs
        assert "Traceback" not in logs
        assert processes[victim].wait() == -signal.SIGKILL
        with Runtime.load(model, store=store, handlers={"work": lambda data, context: None}) as r:
            r.resume()

        fired = firings(store)
        instances = rows(store, select(instance))

    # Fired and skipped together are every second from the start to the last firing, no one twice.
    expected = start
    for row in fired:
        assert row.skipped == (row.due - expected) // SECOND >= 0, to_text(row.due)
        expected = row.due + SECOND
    assert len(fired) + sum(row.skipped for row in fired) == (expected - start) // SECOND
    assert all(row.due % SECOND == 0 for row in fired)
    # Nothing before its time, and one instance for each firing, which came to its end.
    assert [to_text(row.due) for row in fired if row.fired_at < row.due] == []
    assert sorted(row.instance for row in fired) == sorted(row.id for row in instances)
    assert {row.correlation_key for row in instances} == {to_text(row.due) for row in fired}
    assert {row.status for row in instances} == {"completed"}

    late = sorted((row.fired_at - row.due) / SECOND for row in fired[1:])
    figures = {
        "fired": len(fired),
        "skipped before the first": fired[0].skipped,
        "skipped after it": sum(row.skipped for row in fired[1:]),
        "lateness, median and largest, s": (late[len(late) // 2], late[-1]),
        "by replica": dict(collections.Counter(r.fired_by.rpartition("-")[0] for r in fired)),
        "killed": victim,
    }
    for name, value in figures.items():
        record_property(name, value)
    print(store_url.partition(":")[0], figures)


def test_replicas_end_when_the_process_that_started_them_is_killed(tmp_path: Path) -> None:
    """No orphan goes on: each notices that the pipe from its parent is closed."""
    model = write_model(tmp_path, (clock.now() // SECOND + 1) * SECOND)
    url = f"sqlite:///{tmp_path / 'store.db'}"
    words = [sys.executable, "-m", "seams_lab", "run", str(model), "--replicas", "2",
             "--handlers", str(tmp_path / "handlers.py"), "--store", url, "--poll", "0.5",
             "--lease", "2"]  # fmt: skip
    log = tmp_path / "log"
    with log.open("wb") as stream, subprocess.Popen(words, stdout=stream, stderr=stream) as parent:
        until(lambda: log.read_text().count(" runs ") == 2)
        children = children_of(parent.pid)
        parent.kill()
    assert len(children) == 2
    until(lambda: log.read_text().count(" stopped") == 2)
    until(lambda: not any(map(is_running, children)))


def test_a_replica_that_dies_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    start = (clock.now() // SECOND + 1) * SECOND
    model = write_model(tmp_path, start)
    url = f"sqlite:///{tmp_path / 'store.db'}"
    words = [sys.executable, "-m", "seams_lab", "run", str(model), "-n", "2", "--store", url,
             "--handlers", str(tmp_path / "handlers.py"), "--poll", "0.5",
             "--lease", "2"]  # fmt: skip
    log = tmp_path / "log"
    with log.open("wb") as stream, subprocess.Popen(words, stdout=stream, stderr=stream) as parent:
        until(lambda: log.read_text().count(" runs ") == 2)
        os.kill(children_of(parent.pid)[-1], signal.SIGKILL)
        until(lambda: "ended by SIGKILL; 1 go on" in log.read_text())
        seen = log.read_text().count("timer fire")
        until(lambda: log.read_text().count("timer fire") > seen)
        parent.send_signal(signal.SIGTERM)
        assert parent.wait(PATIENCE) == 0, log.read_text()
    text = log.read_text()
    assert "Traceback" not in text
    assert text.count("stopping: ") == 1


def children_of(pid: int) -> list[int]:
    return [one for one, (parent, _) in processes_now().items() if parent == pid]


def is_running(pid: int) -> bool:
    _, state = processes_now().get(pid, (0, "Z"))
    return not state.startswith("Z")


def processes_now() -> dict[int, tuple[int, str]]:
    """Process id → (id of its parent, state), of all processes."""
    shown = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True,
                           check=True)  # fmt: skip
    lines = (line.split() for line in shown.stdout.splitlines())
    return {int(pid): (int(parent), state) for pid, parent, state in lines}
