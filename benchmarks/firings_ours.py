"""This project's own scheduler as a contender of "firings": the real claims on the real store.

Each of the firings is a timer start of its own that is due once. A worker claims batch after batch
until none is left: lock, read, firing row, instance and checkpoint, all as in production. With the
*no-op engine* an instance is 1 kB of text, as with the other contenders; with SpiffWorkflow it is
a new instance of the expense model's digest and its serialised state, made anew for each firing.
"""

from __future__ import annotations

import logging
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.firings_race import PAYLOAD, Counts, Gate, connected, workers

REPO = Path(__file__).resolve().parents[1]
_DUE, _NOW = "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"
_PROCESS = "digest_process"


class NoEngine:
    """Makes an instance of 1 kB of text, and runs nothing."""

    def new_workflow(self, *_: object, **__: object) -> None:
        """An instance that is nothing."""

    def checkpoint(self, _: object) -> str:
        """The same text for each instance."""
        return PAYLOAD


class OneProcess:
    """SpiffWorkflow, told to start the same process for each event."""

    def __init__(self) -> None:
        import seams_lab as sl
        from seams_lab.runtime.engine import Engine

        self._engine = Engine(sl.load(REPO / "models" / "expense" / "digest.bpmn"), [_PROCESS])
        self.checkpoint = self._engine.checkpoint

    def new_workflow(self, process: str, data: dict[str, Any], now: int, start: str) -> Any:
        """A new instance of the one process, whatever *start* says."""
        return self._engine.new_workflow(_PROCESS, data, now)


def scheduler(url: str, firings: int, engine: Any, batch: int, name: str) -> tuple[Any, Any]:
    """A store and a scheduler on it with *firings* due timers."""
    import seams_lab as sl
    from seams_lab.profile import parse
    from seams_lab.runtime.scheduler import Scheduler
    from seams_lab.runtime.store import Store
    from seams_lab.runtime.telemetry import Telemetry
    from seams_lab.timers import timers

    like = timers(sl.load(REPO / "models" / "expense" / "year_close.bpmn"), 0)[0]
    due = parse("timeDate", f'"{_DUE}"')
    mine = [
        replace(like, event=f"urn:bench:{number:06}#start", expression=due)
        for number in range(firings)
    ]
    store = Store(url)
    made = Scheduler(
        store, engine, sl.ManualClock(_NOW), Telemetry(), name, mine, [], [like.process],
        30_000_000, lambda: os.urandom(16).hex(), batch,
    )  # fmt: skip
    return store, made


def claim_all(gate: Gate, url: str, firings: int, real: bool, batch: int) -> None:
    """What a worker process does: claim until nothing is due any more."""
    # As a service logs: warnings. A line per firing would be one more write per firing.
    logging.getLogger("seams_lab").setLevel(logging.WARNING)
    engine = OneProcess() if real else NoEngine()
    store, mine = scheduler(url, firings, engine, batch, f"worker-{os.getpid()}")
    gate.wait()
    while True:
        if not mine.claim_starts():
            if not mine.overdue():
                break
            time.sleep(0.002)  # all that is left is being claimed by others
    store.close()


class OurScheduler:
    """A peer like the others (see :mod:`benchmarks.firings_peers`), with nothing to install."""

    module = "sqlite3"
    stores = frozenset({"postgresql", "sqlite"})

    def __init__(self, real: bool, batch: int) -> None:
        self.real, self.batch = real, batch
        self.name = "seams-lab, SpiffWorkflow" if real else "seams-lab, no-op engine"
        self.settings = f"{batch} a transaction; lock, read, two inserts, commit"
        self.errors = self.deadlocks = 0

    def prepare(self, url: str, firings: int) -> None:
        """Make the store, with the timers that a first replica records in it."""
        from seams_lab.runtime.scheduler import stored_text

        self.url, self.firings = url, firings
        store, mine = scheduler(url, firings, NoEngine(), self.batch, "first")
        with store.transaction() as tx:
            tx.add_timers("start", {t.event: stored_text(t) for t in mine.starts})
        store.close()

    def run(self, processes: int) -> float:
        """Seconds until all processes have found nothing more to claim."""
        arguments = (self.url, self.firings, self.real, self.batch)
        with workers(claim_all, arguments, processes) as crew:
            crew.start()
            seconds = crew.finish()
            self.errors, self.deadlocks = crew.gate.errors.value, crew.gate.deadlocks.value
        return seconds

    def counts(self) -> Counts:
        """Firings with an instance; one whose instance is missing counts as missed."""
        with connected(self.url) as connection:
            ran, different = connection.execute(
                "SELECT count(*), count(DISTINCT f.event) FROM seams_firing f"
                " JOIN seams_instance i ON i.id = f.instance"
            ).fetchone()
        return Counts(ran, ran - different, self.firings - different)


def start_and_serialise(count: int) -> tuple[float, float]:
    """Seconds that *count* instances take: plain SpiffWorkflow, and this project's engine.

    Plain: ``BpmnWorkflow(spec)`` and its own serialiser, specification included.
    """
    from SpiffWorkflow.bpmn import BpmnWorkflow
    from SpiffWorkflow.bpmn.parser import BpmnParser
    from SpiffWorkflow.bpmn.serializer import BpmnWorkflowSerializer

    parser = BpmnParser()
    # Plain SpiffWorkflow cannot serialise a service task: a plain task takes its place.
    text = (REPO / "models" / "expense" / "digest.bpmn").read_text("utf-8")
    parser.add_bpmn_str(text.replace("serviceTask", "task").encode())
    spec, serializer = parser.get_spec(_PROCESS), BpmnWorkflowSerializer()
    mine = OneProcess()

    def plain() -> None:
        for _ in range(count):
            serializer.serialize_json(BpmnWorkflow(spec))

    def ours() -> None:
        for _ in range(count):
            mine.checkpoint(mine.new_workflow(_PROCESS, {}, 0, ""))

    return _best(plain), _best(ours)


def _best(work: Any, rounds: int = 5) -> float:
    def once() -> float:
        begin = time.process_time()
        work()
        return time.process_time() - begin

    return min(once() for _ in range(rounds))
