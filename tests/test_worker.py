"""The worker: what one step writes together, what it drops, how failures are tried again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fixtures.engines import END, START, boundary, bpmn

from seams_lab.errors import UnusableInput
from seams_lab.expressions import SECOND
from seams_lab.runtime import schema
from seams_lab.runtime.worker import Retries, told
from tests.worlds import LEASE, MINUTE, World, asking, ticking, verify, world

OURS = UnusableInput("x", "y", "z", "w")
TWO = bpmn(START + '<serviceTask id="a"/><serviceTask id="b"/>' + END, "s a; a b; b e")
ANSWERED = bpmn(
    START + '<userTask id="u" name="Answer"/><serviceTask id="b"/>' + END
    + boundary("t", "timeDuration", "PT10M") + '<serviceTask id="r"/><endEvent id="f"/>',
    "s u; u b; b e; t r; r f",
)  # fmt: skip


def fails(data: dict[str, Any], context: Any) -> None:
    """A handler that always fails."""
    raise ValueError("no\n  luck")


def row_of(made: World) -> Any:
    """The only instance."""
    (row,) = made.rows(schema.instance)
    return row


@pytest.mark.parametrize(
    ("attempts", "seconds"), [(1, 1), (2, 2), (3, 4), (9, 256), (10, 300), (60, 300), (9999, 300)]
)
def test_the_pause_doubles_up_to_its_longest(attempts: int, seconds: int) -> None:
    assert Retries().at(attempts, 7) == 7 + seconds * SECOND


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("a\n b"), "ValueError: a b"),
        (ValueError(), "ValueError: ValueError"),
        (OURS, " ".join(str(OURS).split())),
    ],
    ids=["lines", "no text", "one of ours"],
)  # fmt: skip
def test_an_error_is_told_in_one_line(error: Exception, line: str) -> None:
    assert told(error) == line
    assert "\n" not in told(error)


def test_each_effect_is_a_checkpoint_and_each_revision_has_its_trace(
    tmp_path: Path, store_url: str
) -> None:
    seen: list[tuple[int, list[str]]] = []

    def handler(data: dict[str, Any], context: Any) -> dict[str, Any]:
        seen.append((row_of(made).revision, [r.element for r in made.rows(schema.trace)]))
        return {context.name or "x": made.clock.now()}

    handlers = {"a": handler, "b": handler}
    with world(tmp_path, store_url, TWO, handlers=handlers) as made:
        made.replica("mine").start_process("p")
        assert seen == [(1, []), (2, ["m.bpmn#s", "m.bpmn#a"])]
        rows = [(r.revision, r.position, r.element.rpartition("#")[2], r.replica)
                for r in made.rows(schema.trace)]  # fmt: skip
        assert rows == [(2, 0, "s", "mine"), (2, 1, "a", "mine"), (3, 0, "b", "mine"),
                        (4, 0, "e", "mine")]  # fmt: skip
        assert (row_of(made).status, row_of(made).holder) == ("completed", None)
        verify(made)


def test_without_handlers_there_is_one_checkpoint_and_the_trace_says_so(
    tmp_path: Path, store_url: str
) -> None:
    with world(tmp_path, store_url, TWO) as made:
        made.replica().start_process("p")
        assert row_of(made).revision == 2
        notes = {r.element.rpartition("#")[2]: r.note for r in made.rows(schema.trace)}
        assert notes == {"s": "", "a": "no handler", "b": "no handler", "e": ""}


def test_a_failing_handler_goes_back_to_the_last_checkpoint_and_is_tried_again(
    tmp_path: Path, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[int] = []
    handlers: dict[str, Any] = {"a": lambda data, context: ran.append(context.attempt),
                                "b": fails}  # fmt: skip
    with world(tmp_path, store_url, TWO, handlers=handlers) as made:
        replica = made.replica(retries=Retries(SECOND, 4 * SECOND, 4))
        found = replica.start_process("p")
        assert (found.status, found.attempts) == ("failed", 1)
        assert "no luck" in str(found.failure)
        assert found.retry_at == made.clock.now() + SECOND
        assert [r.element for r in made.rows(schema.trace)] == ["m.bpmn#s", "m.bpmn#a"]
        for pause, attempts in ((1, 2), (2, 3), (4, 4)):
            made.clock.advance(pause * SECOND - 1)
            assert replica.settle() == 0
            made.clock.advance(1)
            assert replica.settle() == 1
            assert replica.instance(found.id).attempts == attempts
        assert replica.instance(found.id).retry_at is None
        made.clock.advance("P1D")
        assert replica.settle() == 0, "it is left alone"
        assert replica.next_wake() is None
        assert [r.levelname for r in caplog.records if "instance failed" in r.message] == [
            "WARNING", "WARNING", "WARNING", "ERROR",
        ]  # fmt: skip
        assert ran == [1], "what was committed is not done again"
        verify(made)
        handlers["b"] = None
        made.handlers["b"] = lambda data, context: None
        made._engines.clear()
        again = made.replica("again")
        again.retry(found.id)
        assert again.settle() == 1
        assert row_of(made).status == "completed"
        assert (row_of(made).attempts, row_of(made).failure) == (0, None)
        verify(made)


def test_a_failing_wake_keeps_its_timer_and_is_tried_again_by_it(
    tmp_path: Path, store_url: str
) -> None:
    made_to_fail = [True]

    def handler(data: dict[str, Any], context: Any) -> None:
        if made_to_fail:
            made_to_fail.pop()
            fails(data, context)

    with world(tmp_path, store_url, ANSWERED, handlers={"r": handler}) as made:
        replica = made.replica()
        found = replica.start_process("p")
        made.clock.advance(10 * MINUTE)
        assert replica.settle() == 1
        assert made.firings() == []
        (wait,) = made.rows(schema.wait)
        assert (wait.holder, wait.claimable_at) == (None, made.clock.now() + SECOND)
        assert replica.instance(found.id).status == "failed"
        assert [t.element for t in replica.instance(found.id).tasks] == ["m.bpmn#u"]
        verify(made)
        made.clock.advance(SECOND)
        assert replica.settle() == 1
        assert len(made.firings()) == 1
        assert replica.instance(found.id).status == "waiting"
        verify(made)


def test_a_completion_stands_though_the_handler_behind_it_fails(
    tmp_path: Path, store_url: str
) -> None:
    with world(tmp_path, store_url, ANSWERED, handlers={"b": fails}) as made:
        replica = made.replica()
        found = replica.start_process("p")
        done = replica.complete(found, data={"x": 1})
        assert done.status == "failed"
        assert done.tasks == ()
        assert made.rows(schema.wait) == [], "the reminder went with the task"
        assert replica.data(found)["x"] == 1
        verify(made)


@pytest.mark.parametrize(
    "data", [{"x": object()}, {"x": float("nan")}, {1: 2}], ids=["an object", "nan", "a number"]
)
def test_data_that_cannot_be_kept_changes_nothing_and_holds_nothing(
    tmp_path: Path, store_url: str, data: dict[Any, Any]
) -> None:
    with world(tmp_path, store_url, ANSWERED) as made:
        replica = made.replica()
        found = replica.start_process("p")
        with pytest.raises(UnusableInput):
            replica.complete(found, data=data)
        verify(made)
        assert row_of(made).status == "waiting"
        assert made.paths() == [["s"]]
        assert replica.complete(found, data={"x": 1}).status == "completed"


def test_a_timer_cancelled_by_an_earlier_one_of_the_same_wake_does_not_fire(
    tmp_path: Path, store_url: str
) -> None:
    text = asking(
        boundary("late", "timeDuration", "PT10M") + boundary("stop", "timeDuration", "PT5M", "1"),
        "late f; stop g", '<endEvent id="f"/><endEvent id="g"/>',
    )  # fmt: skip
    with world(tmp_path, store_url, text) as made:
        replica = made.replica()
        replica.start_process("p")
        made.clock.advance(60 * MINUTE)
        assert replica.settle() == 1
        assert [event for event, _, _ in made.firings()] == ["stop"]
        assert made.paths() == [["s", "stop", "g"]]
        verify(made)


def test_timers_of_one_wake_fire_in_the_order_of_their_due_times(
    tmp_path: Path, store_url: str
) -> None:
    text = asking(
        boundary("b", "timeDuration", "PT2M") + boundary("a", "timeDuration", "PT3M"),
        "b f; a g", '<endEvent id="f"/><endEvent id="g"/>',
    )  # fmt: skip
    with world(tmp_path, store_url, text) as made:
        replica = made.replica()
        replica.start_process("p")
        made.clock.advance(60 * MINUTE)
        assert replica.settle() == 1
        assert made.paths() == [["s", "b", "f", "a", "g"]]
        verify(made)


def test_a_boundary_cycle_fires_the_newest_counts_the_rest_and_waits_on(
    tmp_path: Path, store_url: str
) -> None:
    """Ruling 19a: what lies before the arming is neither fired nor missed."""
    text = asking(
        boundary("t", "timeCycle", "R5/2026-11-09T07:58:00Z/PT1M"), "t f", '<endEvent id="f"/>'
    )
    with world(tmp_path, store_url, text, start="2026-11-09T07:59:30Z") as made:
        replica = made.replica()
        found = replica.start_process("p")
        made.clock.set("2026-11-09T08:01:10Z")
        assert replica.settle() == 1
        assert made.firings() == [("t", 60, 1)]
        assert replica.telemetry.counters.missed == 1
        (waiting,) = replica.instance(found.id).waits
        assert waiting == ("m.bpmn#t", made.clock.now() + 50 * SECOND)
        made.clock.advance("PT1H")
        replica.settle()
        assert made.firings() == [("t", 60, 1), ("t", 120, 0)]
        assert replica.instance(found.id).waits == ()
        verify(made)


def test_what_is_given_back_can_be_taken_at_once(tmp_path: Path, store_url: str) -> None:
    with world(tmp_path, store_url, ANSWERED) as made:
        one, other = made.replica("one"), made.replica("other")
        one.start_process("p")
        made.clock.advance(10 * MINUTE)
        work = one._scheduler.claim_waits(5)
        one._worker.give_back([w.claim for w in work])
        (row,) = made.rows(schema.wait)
        assert (row.holder, row.claimable_at) == (None, row.due)
        assert other.settle() == 1
        one._worker.give_back([w.claim for w in work])
        verify(made)


@pytest.mark.parametrize("claim", ["a wake", "a start"])
def test_what_is_given_back_can_be_written_no_more(
    tmp_path: Path, store_url: str, claim: str
) -> None:
    """Token and revision are still the same; the holder is not."""
    texts = {"m": ANSWERED, "n": ticking("R1/2026-11-09T08:00:00Z/PT1H", identifier="q")}
    with world(tmp_path, store_url, texts) as made:
        replica = made.replica()
        replica.start_process("p")
        made.clock.advance(10 * MINUTE)
        wake = claim == "a wake"
        scheduler = replica._scheduler
        (work,) = scheduler.claim_waits(5) if wake else scheduler.claim_starts()
        replica._worker.give_back([work.claim])
        held = made.dump()
        assert not replica._worker.step(work.claim, work.start)
        assert made.dump() == held


@pytest.mark.parametrize("lost", ["another lease", "another firing"])
def test_a_wake_that_is_no_longer_its_own_is_dropped_as_a_whole(
    tmp_path: Path, store_url: str, lost: str
) -> None:
    """The instance is still held; the timer has a newer lease, or its firing is recorded."""
    with world(tmp_path, store_url, ANSWERED) as made:
        replica = made.replica()
        replica.start_process("p")
        made.clock.advance(10 * MINUTE)
        (work,) = replica._scheduler.claim_waits(5)
        (held,) = work.claim.waits
        if lost == "another lease":
            made.execute(schema.wait.update().values(token=held.token + 1))
        else:
            there = {"event": held.event, "due": held.due, "waiter": held.task, "skipped": 0,
                     "instance": work.claim.instance, "fired_at": 0, "fired_by": "x"}  # fmt: skip
            made.execute(schema.firing.insert(), [there])
        before = made.dump()
        assert not replica._worker.step(work.claim)
        assert made.dump() == before
        assert replica.telemetry.counters.fired == 0


def test_a_renewed_claim_is_not_taken(tmp_path: Path, store_url: str) -> None:
    with world(tmp_path, store_url, ANSWERED) as made:
        one, other = made.replica("one"), made.replica("other")
        one.start_process("p")
        made.clock.advance(10 * MINUTE)
        work = one._scheduler.claim_waits(5)
        one._worker.hold([w.claim for w in work])
        for _ in range(9):
            made.clock.advance(LEASE // 3)
            one._worker.renew()
            assert other.settle() == 0
        assert [one._worker.step(w.claim) for w in work] == [True]
        one._worker.renew()
        assert row_of(made).holder is None, "what is given back is renewed no more"
        verify(made)


def test_two_steps_of_one_claim_count_once(tmp_path: Path, store_url: str) -> None:
    """The revision guards also against the same replica (ruling 22)."""
    with world(tmp_path, store_url, ANSWERED) as made:
        replica = made.replica()
        replica.start_process("p")
        made.clock.advance(10 * MINUTE)
        (work,) = replica._scheduler.claim_waits(5)
        assert replica._worker.step(work.claim)
        held = made.dump()
        assert not replica._worker.step(work.claim)
        assert made.dump() == held
        assert replica.telemetry.counters.claimed_elsewhere == 1
