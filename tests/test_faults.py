"""Crashes, lost answers, pauses, wrong clocks: what is committed stays whole, and happens once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fixtures.engines import boundary

from seams_lab.errors import UnusableInput
from seams_lab.expressions import SECOND
from seams_lab.runtime.runtime import Runtime
from seams_lab.runtime.scheduler import Work
from seams_lab.runtime.store import StoreFailure
from tests.worlds import (
    LEASE,
    MINUTE,
    T0,
    Cutter,
    Killer,
    Loser,
    Meanwhile,
    World,
    asking,
    at,
    killed,
    ticking,
    verify,
    world,
)

#: Every hour: a handler, then a question with a reminder after ten minutes, which has a handler.
HOURLY = ticking(
    f"R/{T0}/PT1H",
    nodes='<serviceTask id="a"/><userTask id="u"/><serviceTask id="b"/><endEvent id="e"/>'
    + boundary("t", "timeDuration", "PT10M") + '<serviceTask id="r"/><endEvent id="f"/>',
    flows="tick a; a u; u b; b e; t r; r f",
)  # fmt: skip
Act = Callable[[Runtime], Any]


@dataclass
class Effects:
    """Handlers that count how often each element's ran."""

    calls: list[str]

    def handler(self, name: str) -> Callable[..., None]:
        """A handler that counts."""
        return lambda data, context: self.calls.append(name)

    def all(self, *names: str) -> dict[str, Callable[..., None]]:
        """Handlers that count, by element."""
        return {name: self.handler(name) for name in names}


@pytest.fixture
def effects() -> Effects:
    """What handlers did."""
    return Effects([])


@pytest.fixture
def hourly(tmp_path: Path, store_url: str, effects: Effects) -> Iterator[World]:
    """A world of HOURLY on each kind of store."""
    handlers = effects.all("a", "b", "r")
    with world(tmp_path, store_url, HOURLY, handlers=handlers) as made:
        yield made


# ---------------------------------------------------------------------- what is interrupted


@dataclass(frozen=True)
class Scene:
    """What a replica does when it is interrupted.

    ``before`` leads to it, ``act`` is it, ``after`` is what a person does again when nothing came
    of it.
    """

    before: Callable[[World], None]
    act: Act
    after: Act = lambda replica: None


def _reached_reminder(made: World) -> None:
    made.clock.set(at(5))
    made.replica("first").settle()
    made.clock.set(at(605))


def _asked(made: World) -> None:
    made.clock.set(at(5))
    made.replica("first").settle()
    made.clock.set(at(300))


def _orphaned(made: World) -> None:
    made.clock.set(at(5))
    replica = made.replica("first")
    assert replica._scheduler.claim_starts()
    made.clock.advance(LEASE + SECOND)


def _complete(replica: Runtime) -> None:
    replica.complete(replica.instances()[0], data={"answer": 1})


def _complete_again(replica: Runtime) -> None:
    if len(replica.tasks()):
        _complete(replica)


SCENES = {
    "timer start": Scene(lambda made: made.clock.set(at(2.5 * 3600)), lambda r: r.settle()),
    "wake": Scene(_reached_reminder, lambda r: r.settle()),
    "completion": Scene(_asked, _complete, _complete_again),
    "resume": Scene(_orphaned, lambda r: r.resume()),
    "process start": Scene(
        lambda made: None,
        lambda r: r.start_process("p", {"x": 1}, correlation_key="mine"),
        lambda r: (
            r.instances(correlation_key="mine")
            or r.start_process("p", {"x": 1}, correlation_key="mine")
        ),
    ),
}
each_scene = pytest.mark.parametrize("scene", SCENES.values(), ids=list(SCENES))


@dataclass(frozen=True)
class Result:
    """What a scene leads to, whatever happens on the way."""

    firings: list[Any]
    paths: list[list[str]]
    statuses: dict[str, int]


def result(made: World) -> Result:
    """What the store holds, without what depends on who did it and when."""
    return Result(made.firings(), made.paths(), dict(made.statuses()))


def undisturbed(made: World, scene: Scene) -> Result:
    """Play a scene with nothing in its way."""
    scene.before(made)
    scene.act(made.replica("victim"))
    made.heal()
    verify(made)
    found = result(made)
    made.empty()
    return found


@each_scene
def test_a_replica_may_die_between_any_two_words(
    hourly: World, scene: Scene, effects: Effects
) -> None:
    expected = undisturbed(hourly, scene)
    effects.calls.clear()
    scene.before(hourly)
    begun, earlier = hourly.save(), list(effects.calls)
    seen = set()
    for point in itertools.count(1):
        hourly.rewind(begun)
        effects.calls[:] = earlier
        killer = Killer(point)
        died = killed(hourly.replica("victim"), scene.act, killer)
        verify(hourly, settled=False)
        survivor = hourly.heal()
        scene.after(survivor)
        verify(hourly)
        assert result(hourly) == expected, f"killed at {killer.name} ({point})"
        for element in ("a", "b", "r"):
            ran = effects.calls.count(element)
            done = sum(element in path for path in hourly.paths())
            assert done <= ran <= done + died, "one crash repeats at most what was under way"
        if not died:
            break
        seen.add(killer.name)
    assert {"commit", "committed", "write_instance", "insert_trace"} <= seen
    assert point > 10


@each_scene
@pytest.mark.parametrize("happened", [True, False], ids=["committed", "not committed"])
def test_the_answer_of_any_commit_may_be_lost(hourly: World, scene: Scene, happened: bool) -> None:
    """The replica does not know whether it happened; it goes on, and looks in the store."""
    expected = undisturbed(hourly, scene)
    scene.before(hourly)
    begun = hourly.save()
    for point in itertools.count(1):
        hourly.rewind(begun)
        replica = hourly.replica("victim")
        replica.store.watch = loser = Loser(point, happened)
        try:
            scene.act(replica)
        except StoreFailure:
            assert loser.hit
        replica.store.watch = None
        replica.settle()
        verify(hourly, settled=False)
        hourly.clock.advance(LEASE + SECOND)
        replica.settle()
        scene.after(replica)
        verify(hourly)
        assert result(hourly) == expected, f"commit {point}"
        if not loser.hit:
            break
    assert point > 3


@each_scene
def test_the_connection_may_be_cut_before_any_word(hourly: World, scene: Scene) -> None:
    expected = undisturbed(hourly, scene)
    scene.before(hourly)
    begun = hourly.save()
    for point in itertools.count(1):
        hourly.rewind(begun)
        replica = hourly.replica("victim")
        replica.store.watch = cutter = Cutter(replica.store, point)
        try:
            scene.act(replica)
        except StoreFailure:
            assert cutter.hit
        replica.store.watch = None
        replica.settle()
        hourly.clock.advance(LEASE + SECOND)
        replica.settle()
        scene.after(replica)
        verify(hourly)
        assert result(hourly) == expected, f"cut at {point}"
        cutter.end()
        if not cutter.hit:
            break
    assert point > 6


def test_a_replica_that_died_while_it_loaded_leaves_a_usable_store(hourly: World) -> None:
    for point in itertools.count(1):
        killer = Killer(point)
        with suppress(BaseException):
            hourly.replica("victim", watch=killer)
        hourly.clock.set(at(5))
        hourly.replica("other").settle()
        verify(hourly)
        assert hourly.firings() == [("tick", 0, 0)]
        hourly.empty()
        if not killer.dead:
            break
    assert point > 5


def test_replicas_may_die_one_after_the_other(hourly: World) -> None:
    """Each gets one word further than the one before it; in the end all is done, once."""
    hourly.clock.set(at(5))
    for point in itertools.count(1):
        if not killed(hourly.replica("same name"), lambda r: r.settle(), Killer(point)):
            break
        hourly.clock.advance(LEASE + SECOND)
        verify(hourly, settled=False)
    verify(hourly)
    assert ("tick", 0, 0) in hourly.firings()
    assert hourly.paths() == [["tick", "a", "t", "r", "f"]] or hourly.paths() == [["tick", "a"]]


# ---------------------------------------------------------------------- zombies

CLAIMS: dict[str, tuple[Callable[[World], None], Callable[[Runtime], list[Work]]]] = {
    "timer start": (lambda made: made.clock.set(at(5)), lambda r: r._scheduler.claim_starts()),
    "wake": (_reached_reminder, lambda r: r._scheduler.claim_waits(10)),
    "resume": (_orphaned, lambda r: r._scheduler.claim_instances(10)),
}
each_claim = pytest.mark.parametrize("claim", CLAIMS, ids=list(CLAIMS))
each_name = pytest.mark.parametrize("names", [("a", "b"), ("same", "same")],
                                    ids=["two names", "same name"])  # fmt: skip


def write(replica: Runtime, work: list[Work]) -> list[bool]:
    """Step what was claimed, as the loop does; whether each write counted."""
    return [replica._worker.step(one.claim, one.start) for one in work]


@each_claim
@each_name
@pytest.mark.parametrize("order", ["other wrote", "other took", "nobody took"])
def test_a_replica_that_slept_past_its_lease_writes_only_what_is_still_its_own(
    hourly: World, claim: str, names: tuple[str, str], order: str
) -> None:
    before, take = CLAIMS[claim]
    before(hourly)
    zombie, other = hourly.replica(names[0]), hourly.replica(names[1])
    work = take(zombie)
    assert len(work) == 1
    hourly.clock.advance(LEASE)
    theirs = []
    if order == "other wrote":
        assert other.settle() == 1
    elif order == "other took":
        theirs = [*other._scheduler.claim_waits(10), *other._scheduler.claim_instances(10)]
        assert len(theirs) == 1
    held = hourly.dump()
    counted = write(zombie, work)
    zombie._worker.renew()
    if order == "nobody took":
        assert counted == [True]
        assert other.settle() == 0
    else:
        assert counted == [False]
        assert hourly.dump() == held, "the zombie's write affects nothing"
        assert write(other, theirs) == [True] * len(theirs)
    verify(hourly)
    assert len(hourly.paths()) == 1
    assert sum(hourly.paths()[0].count(x) for x in ("a", "r")) == (2 if claim == "wake" else 1)


def test_a_lease_that_has_not_expired_cannot_be_taken(hourly: World) -> None:
    _reached_reminder(hourly)
    owner, other = hourly.replica("a"), hourly.replica("b")
    work = owner._scheduler.claim_waits(10)
    hourly.clock.advance(LEASE - 1)
    assert other.settle() == 0
    hourly.clock.advance(1)
    assert other.settle() == 1
    assert write(owner, work) == [False]
    verify(hourly)


# ---------------------------------------------------------------------- a task and its timer


QUESTIONS = {
    "not interrupting": asking(
        boundary("t", "timeDuration", "PT10M"), "t r; r f",
        '<serviceTask id="r"/><endEvent id="f"/>',
    ),
    "interrupting": asking(
        boundary("t", "timeDuration", "PT10M", "true"), "t r; r f",
        '<serviceTask id="r"/><endEvent id="f"/>',
    ),
}  # fmt: skip
OUTCOMES = {
    "not interrupting": [["s", "u", "e"], ["s", "t", "r", "f", "u", "e"]],
    "interrupting": [["s", "u", "e"], ["s", "t", "r", "f"]],
}


def _answer(replica: Runtime) -> None:
    with suppress(UnusableInput):
        replica.complete(replica.instances()[0], data={"x": 1}, patience=5)


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("first", ["answer", "timer"])
def test_an_answer_and_its_timer_meet_at_each_word(
    tmp_path: Path, store_url: str, effects: Effects, kind: str, first: str
) -> None:
    acts: dict[str, Act] = {"answer": _answer, "timer": lambda r: r.settle()}
    second = "timer" if first == "answer" else "answer"
    found = set()
    with world(tmp_path, store_url, QUESTIONS[kind], handlers=effects.all("r")) as made:
        made.replica("first").start_process("p")
        made.clock.advance(10 * MINUTE)
        begun = made.save()
        for point in itertools.count(1):
            made.rewind(begun)
            one, other = made.replica("one"), made.replica("other")
            meanwhile = Meanwhile(point, lambda other=other: acts[second](other))
            one.store.watch = meanwhile
            acts[first](one)
            meanwhile.end()
            if not meanwhile.hit:
                acts[second](other)
            verify(made, settled=False)
            survivor = made.heal()
            _answer(survivor)
            verify(made)
            (path,) = made.paths()
            assert path in OUTCOMES[kind]
            found.add(tuple(path))
            assert len(made.firings()) == ("t" in path)
            assert made.statuses() == {"completed": 1}
            if not meanwhile.hit:
                break
    assert point > 8
    assert len(found) == 2, "each of the two was first at some point"


def test_two_answers_to_one_task_are_one(tmp_path: Path, store_url: str) -> None:
    with world(tmp_path, store_url, asking()) as made:
        made.replica("first").start_process("p")
        begun = made.save()
        for point in itertools.count(1):
            made.rewind(begun)
            one, other = made.replica("one"), made.replica("other")
            errors: list[UnusableInput] = []

            def also(other: Runtime = other, errors: list[UnusableInput] = errors) -> None:
                try:
                    other.complete(other.instances()[0], data={"by": "other"})
                except UnusableInput as error:
                    errors.append(error)

            one.store.watch = meanwhile = Meanwhile(point, also)
            try:
                one.complete(one.instances()[0], data={"by": "one"})
            except UnusableInput as error:
                errors.append(error)
            meanwhile.end()
            verify(made)
            assert made.paths() == [["s", "u", "e"]]
            assert len(errors) == meanwhile.hit, "exactly one of two answers is refused"
            if not meanwhile.hit:
                break
    assert point > 8


@pytest.mark.parametrize("claim", ["timer start", "wake", "resume"])
def test_two_replicas_meet_at_each_word_of_one_firing(hourly: World, claim: str) -> None:
    before, _ = CLAIMS[claim]
    before(hourly)
    begun = hourly.save()
    for point in itertools.count(1):
        hourly.rewind(begun)
        one, other = hourly.replica("one"), hourly.replica("other")
        one.store.watch = meanwhile = Meanwhile(point, other.settle)
        one.settle()
        meanwhile.end()
        verify(hourly, settled=False)
        hourly.heal()
        verify(hourly)
        assert len(hourly.paths()) == 1
        assert len(hourly.firings()) == (2 if claim == "wake" else 1)
        if not meanwhile.hit:
            break
    assert point > 8
