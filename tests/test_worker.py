"""The worker: what an instance did is written with its checkpoint, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fixtures.engines import boundary, bpmn
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update

from seams_lab.errors import UnusableInput
from seams_lab.expressions import SECOND
from seams_lab.runtime import schema
from seams_lab.runtime.tasks import TaskContext
from seams_lab.runtime.worker import Retries
from tests.worlds import (
    LEASE,
    T0,
    Killed,
    Killer,
    World,
    asking,
    at,
    killed,
    ticking,
    verify,
    world,
)

CHAIN = ticking(
    f"R/{T0}/P1D",
    nodes='<serviceTask id="a"/><serviceTask id="b"/><endEvent id="e"/>',
    flows="tick a; a b; b e",
)


# ---------------------------------------------------------------------- trace and checkpoints


def test_each_element_has_one_row_in_order_with_the_revision_that_wrote_it(
    tmp_path: Path, store_url: str
) -> None:
    handlers = {"a": lambda data, context: None, "b": lambda data, context: None}
    with world(tmp_path, store_url, CHAIN, start=T0, handlers=handlers) as made:
        made.replica("me").settle()
        rows = [(r.revision, r.position, r.element, r.kind, r.replica)
                for r in made.rows(schema.trace)]  # fmt: skip
        assert rows == [
            (2, 0, "m.bpmn#tick", "startEvent", "me"),
            (2, 1, "m.bpmn#a", "serviceTask", "me"),
            (3, 0, "m.bpmn#b", "serviceTask", "me"),
            (4, 0, "m.bpmn#e", "endEvent", "me"),
        ]
        verify(made)


def test_what_a_slow_handler_leads_to_is_counted_from_its_end(
    tmp_path: Path, store_url: str
) -> None:
    def slow(data: dict[str, Any], context: TaskContext) -> None:
        made.clock.advance("PT2H")

    text = asking(boundary("t", "timeDuration", "PT1H"), "t x", '<endEvent id="x"/>')
    text = text.replace('sourceRef="s" targetRef="u"', 'sourceRef="s" targetRef="slow"').replace(
        "</process>",
        '<serviceTask id="slow"/><sequenceFlow id="z" sourceRef="slow" targetRef="u"/></process>',
    )
    with world(tmp_path, store_url, text, start=T0, handlers={"slow": slow}) as made:
        made.replica().start_process("p")
        done = {r.element: r.at for r in made.rows(schema.trace)}
        assert done["m.bpmn#slow"] == at(7_200)
        assert [w.due for w in made.rows(schema.wait)] == [at(3 * 3_600)]


def test_a_checkpoint_is_refused_when_the_revision_has_moved(
    tmp_path: Path, store_url: str
) -> None:
    """S2: not even the holder overwrites what it has not read."""
    with world(tmp_path, store_url, CHAIN, start=T0) as made:
        replica = made.replica()
        [work] = replica._scheduler.claim_starts()
        made.execute(update(schema.instance).values(revision=7))
        before = made.dump()
        assert not replica._worker.step(work.claim, work.start)
        assert made.dump() == before


@pytest.mark.parametrize("column", ["token", "holder"])
def test_a_step_writes_nothing_once_its_claim_is_another_one(
    tmp_path: Path, store_url: str, column: str
) -> None:
    """S12, S13, S19, S36: compared are holder and token, not the expiry."""
    with world(tmp_path, store_url, CHAIN, start=T0) as made:
        replica = made.replica()
        [work] = replica._scheduler.claim_starts()
        made.clock.advance(10 * LEASE)
        made.execute(update(schema.instance).values({column: 99 if column == "token" else "x"}))
        before = made.dump()
        assert not replica._worker.step(work.claim, work.start)
        assert made.dump() == before


def test_an_expired_lease_that_nobody_took_loses_nothing(tmp_path: Path, store_url: str) -> None:
    with world(tmp_path, store_url, CHAIN, start=T0) as made:
        replica = made.replica()
        [work] = replica._scheduler.claim_starts()
        made.clock.advance(10 * LEASE)
        assert replica._worker.step(work.claim, work.start)
        verify(made)


# ---------------------------------------------------------------------- attempts and effects


def test_the_key_of_a_task_is_the_same_for_each_attempt(tmp_path: Path, store_url: str) -> None:
    """Also of a task that was made after the last checkpoint, and for another replica."""
    keys: dict[str, set[str]] = {"a": set(), "b": set()}

    def seen(data: dict[str, Any], context: TaskContext) -> None:
        keys[context.element.rpartition("#")[2]].add(context.key)

    with world(tmp_path, store_url, CHAIN, start=T0, handlers={"a": seen, "b": seen}) as made:
        for point in range(1, 60):
            made.empty()
            replica = made.replica("victim")
            replica._new_id = replica._scheduler._new_id = lambda: "the one"
            died = killed(replica, lambda r: r.settle(), Killer(point))
            made.heal()
            if not died:
                break
        else:
            pytest.fail("it never got through")
        started = [key for key in keys["a"] | keys["b"] if key.startswith("the one/")]
        assert len(started) == 2, "one key for each of the two tasks"


def test_a_crash_repeats_at_most_the_handler_that_was_under_way(
    tmp_path: Path, store_url: str
) -> None:
    ran: list[str] = []

    def dies_once(data: dict[str, Any], context: TaskContext) -> None:
        ran.append("b")
        if ran.count("b") == 1:
            raise Killed("power cut")

    handlers = {"a": lambda data, context: ran.append("a"), "b": dies_once}
    with world(tmp_path, store_url, CHAIN, start=T0, handlers=handlers) as made:
        with pytest.raises(Killed):
            made.replica("victim").settle()
        made.heal()
        assert ran == ["a", "b", "b"], "started once, b ran twice"
        assert made.paths() == [["tick", "a", "b", "e"]]
        verify(made)


def test_handlers_get_a_copy_and_return_what_changes(tmp_path: Path, store_url: str) -> None:
    def spoil(data: dict[str, Any], context: TaskContext) -> dict[str, Any]:
        data["list"].append("spoilt")
        return {"said": context.name}

    text = bpmn('<startEvent id="s"/><serviceTask id="t" name="Say it"/><endEvent id="e"/>',
                "s t; t e")  # fmt: skip
    with world(tmp_path, store_url, text, handlers={"t": spoil}) as made:
        replica = made.replica()
        one = replica.start_process("p", {"list": []})
        assert replica.data(one) == {"list": [], "said": "Say it"}


# ---------------------------------------------------------------------- failures


def failing(tmp_path: Path, url: str, error: Exception | Any) -> World:
    def boom(data: dict[str, Any], context: TaskContext) -> Any:
        if isinstance(error, Exception):
            raise error
        return error

    return World(tmp_path, url, CHAIN, T0, {"a": boom})


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no\n such  thing"), "ValueError: no such thing"),
        (KeyError("x"), "KeyError: 'x'"),
        ({"x": {1}}, "set"),
        ("text", "text"),
    ],
    ids=["raises", "without words", "returns no data", "returns no mapping"],
)
def test_a_handler_that_fails_fails_its_own_instance_in_one_line(
    tmp_path: Path, store_url: str, error: Any, told: str
) -> None:
    made = failing(tmp_path, store_url, error)
    replica = made.replica()
    replica.settle()
    [one] = replica.instances()
    assert (one.status, one.attempts, one.holder) == ("failed", 1, None)
    assert one.failure is not None
    assert told in one.failure
    assert "\n" not in one.failure
    assert one.retry_at == at(1)
    made.close()


def test_an_instance_is_tried_a_bounded_number_of_times_ever_more_slowly(
    tmp_path: Path, store_url: str
) -> None:
    made = failing(tmp_path, store_url, ValueError("no"))
    retries = Retries(first=SECOND, longest=8 * SECOND, most=6)
    replica = made.replica(retries=retries)
    gaps = []
    replica.settle()
    while (again := replica.instances()[0].retry_at) is not None:
        gaps.append((again - made.clock.now()) // SECOND)
        made.clock.set(again - 1)
        assert replica.settle() == 0
        made.clock.set(again)
        replica.settle()
    assert gaps == [1, 2, 4, 8, 8]
    assert replica.instances()[0].attempts == 6
    made.clock.advance("PT1H")
    assert replica.settle() == 0
    assert replica.telemetry.counters.failed == 6
    made.close()


@given(st.integers(1, 10_000), st.integers(1, 10**9), st.integers(0, 10**6))
def test_a_retry_is_later_than_now_and_never_later_than_the_longest(
    attempts: int, first: int, more: int
) -> None:
    retries = Retries(first, first + more)
    delays = [retries.at(n, 1_000) - 1_000 for n in (attempts, attempts + 1)]
    assert first <= delays[0] <= delays[1] <= first + more


def test_a_failing_wake_keeps_its_timer_and_is_tried_again(tmp_path: Path, store_url: str) -> None:
    fails = [True]

    def remind(data: dict[str, Any], context: TaskContext) -> None:
        if fails:
            raise OSError("mail is down")

    nodes = '<serviceTask id="r"/><endEvent id="x"/>'
    text = asking(boundary("t", "timeDuration", "PT1H"), "t r; r x", nodes)
    with world(tmp_path, store_url, text, start=T0, handlers={"r": remind}) as made:
        replica = made.replica()
        one = replica.start_process("p")
        made.clock.advance("PT1H")
        replica.settle()
        assert replica.instance(one.id).status == "failed"
        assert [w.claimable_at for w in made.rows(schema.wait)] == [at(3_601)]
        assert made.firings() == [], "not fired before it is committed"
        fails.clear()
        made.clock.advance("PT1S")
        replica.settle()
        after = replica.instance(one.id)
        assert (after.status, after.failure, after.attempts) == ("waiting", None, 0)
        assert made.firings() == [("t", 3_600, 0)]


# ---------------------------------------------------------------------- leases


def test_a_claim_that_is_held_is_renewed_and_one_that_is_lost_is_not(
    tmp_path: Path, store_url: str
) -> None:
    texts = {n: ticking(f"R/{T0}/P1D", identifier=n) for n in ("one", "two")}
    with world(tmp_path, store_url, texts, start=T0) as made:
        replica = made.replica()
        work = replica._scheduler.claim_starts()
        replica._worker.hold([w.claim for w in work])
        lost = work[0].claim.instance
        made.execute(update(schema.instance).where(schema.instance.c.id == lost).values(token=9))
        made.clock.advance(LEASE // 3)
        replica._worker.renew()
        until = {r.id: r.claimable_at for r in made.rows(schema.instance)}
        assert until[lost] == at() + LEASE
        assert until[work[1].claim.instance] == at() + LEASE // 3 + LEASE


def test_what_is_given_back_can_be_taken_at_once(tmp_path: Path, store_url: str) -> None:
    with world(tmp_path, store_url, CHAIN, start=T0) as made:
        first = made.replica("first")
        [work] = first._scheduler.claim_starts()
        first._worker.give_back([work.claim])
        assert made.replica("second").resume() == 1
        verify(made)


def test_data_that_cannot_be_kept_leaves_the_task_open(tmp_path: Path, store_url: str) -> None:
    with world(tmp_path, store_url, asking(), start=T0) as made:
        replica = made.replica()
        one = replica.start_process("p")
        before = [r._asdict() | {"token": 0} for r in made.rows(schema.instance)]
        with pytest.raises(UnusableInput):
            replica.complete(one, data={"x": float("nan")})
        assert [r._asdict() | {"token": 0} for r in made.rows(schema.instance)] == before
