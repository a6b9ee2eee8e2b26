"""The loop of a replica: stopping, renewing, sleeping, and what it does when things fail."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from seams_lab import clock
from seams_lab.clock import SystemClock
from seams_lab.expressions import SECOND
from seams_lab.runtime.loop import ENOUGH, Loop
from seams_lab.runtime.runtime import Runtime
from seams_lab.runtime.scheduler import Work
from seams_lab.runtime.store import Store, StoreFailure
from seams_lab.runtime.transaction import Claim

BPMN = "http://www.omg.org/spec/BPMN/20100524/MODEL"
PATIENCE = 30.0


def until(condition: Callable[[], Any]) -> Any:
    """What *condition* says as soon as it says anything."""
    ends = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < ends, "nothing happened for very long"
        time.sleep(0.005)
    return found


# ------------------------------------------------------------------ stubs


def work(name: str) -> Work:
    return Work(Claim(name, "p", name, 1, "", "running", 0, 1))


class StubScheduler:
    """Gives what `starts` says, one answer for each round; an exception is raised."""

    def __init__(self, *starts: list[Work] | Exception, wake: int | None = None) -> None:
        self.starts, self.wake = list(starts), wake
        self.rounds = self.looks = self.refreshed = 0
        self.taken = 0
        self.waits: Callable[[], list[Work]] = list

    def claim_starts(self) -> list[Work]:
        self.rounds += 1
        found = self.starts.pop(0) if self.starts else []
        if isinstance(found, Exception):
            raise found
        self.taken += len(found)
        return found

    def claim_waits(self, limit: int) -> list[Work]:
        return self.waits()

    def claim_instances(self, limit: int) -> list[Work]:
        return []

    def next_wake(self) -> int | None:
        self.looks += 1
        return self.wake

    def refresh(self) -> None:
        self.refreshed += 1


class StubWorker:
    """Steps that block until `go`; keeps what was done, in order."""

    def __init__(self) -> None:
        self.go, self.begun, self.done = threading.Event(), [], []
        self.given_back: list[str] = []
        self.renewals = 0
        self.fault: Exception | None = None

    def hold(self, claims: list[Claim]) -> None:
        pass

    def step(self, claim: Claim, start: Any) -> bool:
        self.begun.append(claim.instance)
        assert self.go.wait(PATIENCE)
        if self.fault is not None:
            raise self.fault
        self.done.append(claim.instance)
        return True

    def give_back(self, claims: list[Claim]) -> None:
        self.given_back += [claim.instance for claim in claims]

    def renew(self) -> None:
        self.renewals += 1
        if self.fault is not None:
            raise self.fault


@contextmanager
def running(
    scheduler: Any, worker: Any, *, workers: int = 2, lease: float = 30, poll: float = 30
) -> Iterator[Loop]:
    """A loop in a thread of its own; at the end it is stopped and must have ended well."""
    loop = Loop(scheduler, worker, SystemClock(), workers=workers, lease=int(lease * SECOND),
                poll=int(poll * SECOND))  # fmt: skip
    fault: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(loop.run())
        except BaseException as error:
            fault.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield loop
    finally:
        loop.stop()
        worker.go.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert fault == []


# ------------------------------------------------------------------ stopping


def test_stop_ends_what_runs_and_gives_back_what_is_queued_at_once() -> None:
    scheduler, worker = StubScheduler([work(n) for n in "abcde"]), StubWorker()
    with running(scheduler, worker, workers=2) as loop:
        until(lambda: len(worker.begun) == 2)
        loop.stop()
        # While the two still run.
        until(lambda: len(worker.given_back) == 3)
        assert worker.done == []
        rounds = scheduler.rounds
    assert sorted(worker.done) == sorted(worker.begun) == ["a", "b"]
    assert sorted(worker.given_back) == ["c", "d", "e"]
    assert scheduler.rounds == rounds


def test_what_is_claimed_while_it_is_told_to_stop_is_given_back() -> None:
    scheduler, worker = StubScheduler(), StubWorker()
    with running(scheduler, worker) as loop:
        entered = threading.Event()

        def claim() -> list[Work]:
            entered.set()
            loop.stop()
            time.sleep(0.1)
            return [work("late")]

        scheduler.waits = claim
        loop.nudge()
        assert entered.wait(PATIENCE)
    assert (worker.begun, worker.given_back) == ([], ["late"])


def test_stop_wakes_a_loop_that_sleeps_and_one_that_waits_for_its_steps() -> None:
    for starts in ([], [[work(str(n)) for n in range(ENOUGH)]]):
        scheduler, worker = StubScheduler(*starts), StubWorker()
        with running(scheduler, worker, poll=3_600) as loop:
            until(lambda w=worker, s=scheduler: len(w.begun) == 2 or s.looks)
            loop.stop()
            if starts:
                until(lambda w=worker: len(w.given_back) == ENOUGH - 2)


def test_a_stop_before_the_first_round_is_heard() -> None:
    scheduler, worker = StubScheduler([work("a")]), StubWorker()
    loop = Loop(scheduler, worker, SystemClock(), workers=1, lease=SECOND, poll=SECOND)  # type: ignore[arg-type]
    loop.stop()
    asyncio.run(loop.run())
    assert (scheduler.rounds, worker.begun) == (0, [])


# ------------------------------------------------------------------ sleeping


def test_it_sleeps_until_something_is_due_and_does_not_poll_hot() -> None:
    scheduler, worker = StubScheduler(wake=clock.now() + 3_600 * SECOND), StubWorker()
    with running(scheduler, worker, poll=3_600):
        until(lambda: scheduler.looks)
        time.sleep(0.3)
        assert scheduler.rounds == scheduler.looks == 1


def test_it_is_awake_when_something_is_due() -> None:
    due = clock.now() + SECOND // 2
    scheduler, worker = StubScheduler([], wake=due), StubWorker()
    with running(scheduler, worker, poll=3_600):
        until(lambda: scheduler.rounds == 2)
        # It may look a moment early, never an hour late.
        assert clock.now() >= due - SECOND // 10


def test_it_looks_at_least_once_in_a_poll() -> None:
    scheduler, worker = StubScheduler(wake=None), StubWorker()
    with running(scheduler, worker, poll=0.05):
        until(lambda: scheduler.rounds >= 3 and scheduler.refreshed >= 2)


def test_a_nudge_wakes_it() -> None:
    scheduler, worker = StubScheduler(), StubWorker()
    with running(scheduler, worker, poll=3_600) as loop:
        until(lambda: scheduler.looks)
        scheduler.starts.append([work("new")])
        loop.nudge()
        until(lambda: worker.begun == ["new"])


def test_what_is_due_and_held_by_another_is_not_asked_for_hot() -> None:
    """The pause doubles: 0.02, 0.04, … s, so about five rounds in half a second."""
    scheduler, worker = StubScheduler(wake=0), StubWorker()
    with running(scheduler, worker):
        until(lambda: scheduler.rounds >= 2)
        time.sleep(0.5)
        assert scheduler.rounds <= 8


# ------------------------------------------------------------------ how much at a time


def test_steps_under_way_are_bounded() -> None:
    """However much is due: nothing is claimed while enough steps are under way."""
    scheduler = StubScheduler(*([work(f"{n}-{k}") for k in range(10)] for n in range(50)))
    worker = StubWorker()
    with running(scheduler, worker, workers=2):
        until(lambda: scheduler.taken >= ENOUGH)
        time.sleep(0.2)
        assert scheduler.taken < ENOUGH + 10
        assert len(worker.begun) == 2
        worker.go.set()
        until(lambda: len(worker.done) == 500)


def test_a_step_that_blocks_holds_up_no_other() -> None:
    scheduler, worker = StubScheduler([work("slow")]), StubWorker()
    with running(scheduler, worker, workers=2) as loop:
        until(lambda: worker.begun == ["slow"])
        scheduler.starts.append([work("next")])
        loop.nudge()
        until(lambda: worker.begun == ["slow", "next"])


# ------------------------------------------------------------------ failures


@pytest.mark.parametrize(
    ("fault", "level", "said"),
    [
        (StoreFailure("db: gone"), logging.WARNING, "store failed: db: gone; tried again"),
        (RuntimeError("boom"), logging.ERROR, "fault: RuntimeError: boom; tried again"),
    ],
)
def test_a_round_that_fails_is_told_once_and_tried_again_ever_more_slowly(
    caplog: pytest.LogCaptureFixture, fault: Exception, level: int, said: str
) -> None:
    caplog.set_level(logging.INFO, "seams_lab.runtime")
    scheduler, worker = StubScheduler(*[fault] * 4, [work("a")]), StubWorker()
    began = time.monotonic()
    with running(scheduler, worker, poll=3_600):
        until(lambda: worker.begun == ["a"])
    # 0.02 + 0.04 + 0.08 + 0.16 s
    assert time.monotonic() - began >= 0.3
    assert [(r.levelno, r.getMessage()) for r in caplog.records] == [
        (level, said),
        (logging.INFO, "it works again"),
    ]
    assert worker.done == ["a"]


def test_a_fault_of_one_kind_of_claim_does_not_hold_up_the_others() -> None:
    scheduler, worker = StubScheduler(*[RuntimeError("boom")] * 100), StubWorker()
    waiting = [[work("waited")]]
    scheduler.waits = lambda: waiting.pop() if waiting else []
    with running(scheduler, worker):
        until(lambda: worker.begun == ["waited"])


def test_a_step_that_fails_is_told_and_the_loop_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    scheduler, worker = StubScheduler([work("a")]), StubWorker()
    worker.fault = StoreFailure("db: gone")
    worker.go.set()
    with running(scheduler, worker, poll=0.05):
        until(lambda: worker.begun and scheduler.rounds >= 3)
    assert "instance a left where it was: store failed: db: gone" in caplog.text


def test_renewal_goes_on_after_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    """A renewal that ended silently would lose every lease from then on."""
    scheduler, worker = StubScheduler(), StubWorker()
    worker.fault = ValueError("odd")
    with running(scheduler, worker, lease=0.06):
        until(lambda: worker.renewals >= 3)
    assert "ValueError: odd" in caplog.text


# ------------------------------------------------------------------ two replicas on one store


def model(folder: Path) -> Path:
    path = folder / "once.bpmn"
    path.write_text(
        f"""<definitions xmlns="{BPMN}"><process id="once" isExecutable="true">
        <startEvent id="begin"><timerEventDefinition>
          <timeDate>"2000-01-01T00:00:00Z"</timeDate></timerEventDefinition></startEvent>
        <sequenceFlow id="f1" sourceRef="begin" targetRef="work"/><serviceTask id="work"/>
        <sequenceFlow id="f2" sourceRef="work" targetRef="end"/><endEvent id="end"/>
        </process></definitions>"""
    )
    return path


@contextmanager
def replica(store: Store, path: Path, name: str, handler: Any, **settings: Any) -> Iterator[Any]:
    """A runtime whose loop runs in a thread."""
    runtime = Runtime.load(path, store=store, name=name, handlers={"work": handler}, **settings)
    thread = threading.Thread(target=runtime.run_forever)
    thread.start()
    until(lambda: runtime._loop is not None and runtime._loop._loop is not None)
    try:
        yield runtime
    finally:
        runtime.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_a_lease_is_renewed_while_a_handler_blocks(tmp_path: Path) -> None:
    """A handler may take twice as long as a lease: nobody else begins its work."""
    ran: list[str] = []

    def handler_of(name: str) -> Callable[[Any, Any], None]:
        def handler(data: Any, context: Any) -> None:
            ran.append(name)
            time.sleep(4)

        return handler

    quick = {"lease": 2.0, "poll": 0.1}
    with Store(f"sqlite:///{tmp_path / 'store.db'}") as store:
        with replica(store, model(tmp_path), "first", handler_of("first"), **quick) as first:
            until(lambda: ran)
            with replica(store, model(tmp_path), "second", handler_of("second"), **quick) as second:
                until(lambda: first.instances()[0].status == "completed")
                assert second.telemetry.counters.fired == 0
        assert ran == ["first"]


def test_what_is_given_back_is_taken_by_another_replica_at_once(tmp_path: Path) -> None:
    """Long before the lease would end, and while the first still runs its one step."""
    release, entered = threading.Event(), threading.Event()

    def blocks(data: Any, context: Any) -> None:
        entered.set()
        assert release.wait(PATIENCE)

    folder = tmp_path / "models"
    folder.mkdir()
    path = model(folder)
    (folder / "twice.bpmn").write_text(path.read_text().replace('id="once"', 'id="twice"'))
    with Store(f"sqlite:///{tmp_path / 'store.db'}") as store:
        settings = {"lease": 3_600.0, "poll": 0.1}
        with replica(store, folder, "first", blocks, workers=1, **settings) as first:
            try:
                assert entered.wait(PATIENCE)
                assert [i.status for i in first.instances()] == ["running", "running"]
                with replica(store, folder, "second", lambda data, context: None, **settings):
                    first.stop()
                    until(lambda: any(i.status == "completed" for i in first.instances()))
            finally:
                release.set()
        states = {i.status for i in first.instances()}
    assert states == {"completed"}
