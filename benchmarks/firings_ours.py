"""This project's own scheduler as a contender of "firings": the real claims on the real store.

Each of the firings is a timer start of its own that is due once. A worker claims batch after batch
until none is left: lock, read, firing row, instance and checkpoint, all as in production. With the
*no-op engine* the checkpoint is 1 kB of text, as with the other contenders, and nothing runs; with
SpiffWorkflow each instance is then run to its end, and its last state written with its trace.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.firings_race import PAYLOAD, Counts, Gate, connected, run_race

REPO = Path(__file__).resolve().parents[1]
_DUE, _NOW = "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"
_PROCESS = "digest_process"
_LEASE = 30_000_000


class NoEngine:
    """Makes an instance of 1 kB of text."""

    def begin(self, *_: object) -> str:
        """The same text for each instance."""
        return PAYLOAD


class OneProcess:
    """SpiffWorkflow, told to begin the same process for each event."""

    def __init__(self) -> None:
        import seams_lab as sl
        from seams_lab.runtime.engine import Engine

        self.engine = Engine(
            sl.load(REPO / "models" / "expense" / "digest.bpmn"), [_PROCESS],
        )  # fmt: skip

    def begin(self, process: str, data: dict[str, Any], start: str, seed: str) -> str:
        """A new instance of the one process, whatever *start* says."""
        return self.engine.begin(_PROCESS, {"open_expenses": 1}, None, seed)


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
        _LEASE, lambda: os.urandom(16).hex(), batch,
    )  # fmt: skip
    return store, made


def claim_all(gate: Gate, url: str, firings: int, real: bool, batch: int) -> None:
    """What a worker process does: claim until nothing is due any more."""
    # As a service logs: warnings. A line per firing would be one more write per firing.
    logging.getLogger("seams_lab").setLevel(logging.WARNING)
    engine = OneProcess() if real else NoEngine()
    name = f"worker-{os.getpid()}"
    store, mine = scheduler(url, firings, engine, batch, name)
    run = stepper(store, engine, name) if isinstance(engine, OneProcess) else None
    gate.wait()
    while True:
        claimed = mine.claim_starts()
        for work in claimed if run is not None else ():
            run(replace(work.claim, process=_PROCESS), work.start)
        if not claimed:
            if not mine.overdue():
                break
            time.sleep(0.002)  # all that is left is being claimed by others
    store.close()


def stepper(store: Any, one: OneProcess, name: str) -> Any:
    """Steps a claimed instance to its end."""
    import seams_lab as sl
    from seams_lab.runtime.telemetry import Telemetry
    from seams_lab.runtime.worker import Worker

    return Worker(store, one.engine, sl.ManualClock(_NOW), Telemetry(), name, _LEASE).step


class OurScheduler:
    """A peer like the others (see :mod:`benchmarks.firings_peers`), with nothing to install."""

    module = "sqlite3"
    stores = frozenset({"postgresql", "sqlite"})

    def __init__(self, real: bool, batch: int) -> None:
        self.real, self.batch = real, batch
        self.name = "seams-lab, run to the end" if real else "seams-lab, no-op engine"
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
        seconds, self.errors, self.deadlocks = run_race(claim_all, arguments, processes)
        return seconds

    def counts(self) -> Counts:
        """Firings with an instance; one whose instance is missing counts as missed."""
        with connected(self.url) as connection:
            ran, different = connection.execute(
                "SELECT count(*), count(DISTINCT f.event) FROM seams_firing f"
                " JOIN seams_instance i ON i.id = f.instance"
            ).fetchone()
        return Counts(ran, ran - different, self.firings - different)


def engines(count: int) -> dict[str, float]:
    """Milliseconds of processor time per instance, SpiffWorkflow alone beside this engine.

    *start and serialise*: ``BpmnWorkflow(spec)`` and its serialiser, specification included;
    here `Engine.begin`, what a claim writes. *run*: the same with all steps in between; here
    begin, restore, steps, checkpoint.
    """
    from SpiffWorkflow.bpmn import BpmnWorkflow
    from SpiffWorkflow.bpmn.parser import BpmnParser
    from SpiffWorkflow.bpmn.serializer import BpmnWorkflowSerializer

    # SpiffWorkflow cannot serialise a service task, waits for a timer start and for a plain task:
    # script tasks that do nothing, behind a plain start event, take their places.
    text = (REPO / "models" / "expense" / "digest.bpmn").read_text("utf-8")
    text = re.sub(r"<bpmn:timerEventDefinition.*?</bpmn:timerEventDefinition>", "", text,
                  flags=re.DOTALL)  # fmt: skip
    text = re.sub(r"<bpmn:serviceTask (.*?)</bpmn:serviceTask>",
                  r"<bpmn:scriptTask \1<bpmn:script>pass</bpmn:script></bpmn:scriptTask>", text,
                  flags=re.DOTALL)  # fmt: skip
    parser = BpmnParser()
    parser.add_bpmn_str(text.encode())
    spec, serializer = parser.get_spec(_PROCESS), BpmnWorkflowSerializer()
    one = OneProcess()

    def plain(run: bool) -> None:
        workflow = BpmnWorkflow(spec)
        if run:
            workflow.task_tree.data["open_expenses"] = 1
            workflow.do_engine_steps()
        serializer.serialize_json(workflow)

    def ours(run: bool) -> None:
        begun = one.begin(_PROCESS, {}, "", "seed")
        if run:
            workflow = one.engine.restore(_PROCESS, begun)
            one.engine.steps(workflow, lambda: 0, lambda step: None)
            one.engine.checkpoint(workflow)

    return {
        "SpiffWorkflow, start and serialise": _best(lambda: plain(False), count),
        "seams-lab, begin": _best(lambda: ours(False), count),
        "SpiffWorkflow, start, run and serialise": _best(lambda: plain(True), count),
        "seams-lab, begin, restore, run and checkpoint": _best(lambda: ours(True), count),
    }


def _best(work: Callable[[], None], count: int, rounds: int = 5) -> float:
    def once() -> float:
        begin = time.process_time()
        for _ in range(count):
            work()
        return (time.process_time() - begin) / count * 1_000

    return min(once() for _ in range(rounds))
