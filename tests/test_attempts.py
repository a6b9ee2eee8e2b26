"""Started once, ran perhaps twice: what an attempt may repeat, and what is never written twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fixtures.engines import boundary, bpmn
from sqlalchemy import update

from seams_lab.runtime import schema
from seams_lab.runtime.tasks import TaskContext
from tests.worlds import LEASE, T0, Killed, Killer, asking, at, killed, ticking, verify, world

CHAIN = ticking(
    f"R/{T0}/P1D",
    nodes='<serviceTask id="a"/><serviceTask id="b"/><endEvent id="e"/>',
    flows="tick a; a b; b e",
)


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
