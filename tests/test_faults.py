"""Crashes, lost answers, pauses, wrong clocks: what is committed stays whole, and happens once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from fixtures.engines import END, START, USER, boundary, bpmn, catch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seams_lab import clock
from seams_lab.clock import ManualClock
from seams_lab.errors import UnusableInput
from seams_lab.expressions import SECOND
from seams_lab.instants import to_text
from seams_lab.runtime import schema
from seams_lab.runtime.runtime import Runtime
from seams_lab.runtime.scheduler import Work
from seams_lab.runtime.store import Store, StoreClock, StoreFailure
from seams_lab.runtime.worker import Retries
from tests.postgresql import empty_schema
from tests.worlds import (
    HOUR,
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


# ---------------------------------------------------------------------- clocks


def test_a_clock_that_steps_back_doubles_nothing_and_is_told(
    tmp_path: Path, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with world(tmp_path, store_url, ticking(f"R/{T0}/PT10M")) as made:
        made.clock.set(at(3_605))
        replica = made.replica()
        replica.settle()
        assert made.firings() == [("tick", 3_600, 6)]
        for seconds in (5, 1_805, 3_599, 3_600):
            made.clock.set(at(seconds))
            assert replica.settle() == 0
            assert made.replica(join=True).settle() == 0
            told = [(event.rpartition("#")[2], due) for event, due in replica.status().in_future]
            assert told == ([("tick", at(3_600))] if seconds < 3_600 else [])
        assert "clock set back? newest firing of m.bpmn#tick is due 2026-11-09T09:00:00Z" in (
            caplog.text
        )
        made.clock.set(at(4_200))
        assert replica.settle() == 1
        assert made.firings() == [("tick", 3_600, 6), ("tick", 4_200, 0)]
        verify(made)


@pytest.mark.parametrize("first", ["ahead", "behind"])
def test_two_clocks_an_hour_apart_never_double_or_repeat_a_due_time(
    tmp_path: Path, store_url: str, first: str
) -> None:
    """One clock decides per store. Where that is broken, the newest due time still only grows."""
    with world(tmp_path, store_url, ticking(f"R/{T0}/PT10M"), start="2026-11-09T10:00:00Z") as made:
        ahead = made.replica("ahead", clock=ManualClock("2026-11-09T11:00:00Z"))
        behind = made.replica("behind", clock=ManualClock("2026-11-09T10:00:00Z"))
        for one in (ahead, behind) if first == "ahead" else (behind, ahead):
            one.settle()
        dues = [due for _, due, _ in made.firings()]
        assert dues == ([10_800] if first == "ahead" else [7_200, 10_800])
        made.clock.set("2026-11-09T11:00:00Z")
        verify(made)


@pytest.mark.parametrize("hours", [1, -1], ids=["an hour ahead", "an hour behind"])
def test_a_replicas_own_clock_decides_nothing_on_postgresql(
    tmp_path: Path, postgresql: str, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """S27. The store's clock serves due times and leases."""
    host = clock.now
    with empty_schema(postgresql) as url, Store(url) as store:
        now = store.now()
        start = to_text(now // SECOND * SECOND - 90 * SECOND)
        soon = to_text(now // SECOND * SECOND + 1_800 * SECOND)
        texts = {
            "m": ticking(f"R1/{start}/PT1M", nodes=USER, flows="tick u"),
            "n": ticking(f"R1/{soon}/PT1M", identifier="q"),
        }
        with world(tmp_path, url, texts) as made:
            owner = made.replica("owner", clock=StoreClock(store))
            assert len(owner._scheduler.claim_starts()) == 1
            monkeypatch.setattr(clock, "now", lambda: host() + hours * HOUR)
            skewed = made.replica("skewed", clock=StoreClock(store))
            assert skewed.settle() == 0, "nothing is early, and a live lease is not taken"
            assert len(made.rows(schema.firing)) == 1


# ---------------------------------------------------------------------- poison and load


def poisoned(data: dict[str, Any], context: Any) -> None:
    """A handler that always fails."""
    raise ValueError("poison")


MIXED = {
    "good": ticking(
        f"R/{T0}/PT1M",
        nodes='<serviceTask id="ok"/><endEvent id="e"/>',
        flows="tick ok; ok e",
        identifier="good",
    ),
    "bad": ticking(
        f"R/{T0}/PT1H",
        nodes='<serviceTask id="no"/><endEvent id="e"/>',
        flows="tick no; no e",
        identifier="bad",
    ),
    "worse": ticking(f"R/{T0}/PT1H", identifier="worse"),
}


def test_poison_holds_up_nobody_and_is_tried_again_ever_more_slowly(
    tmp_path: Path, store_url: str, effects: Effects, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: dict[str, list[int]] = {"no": [], "worse": []}

    def failing(data: dict[str, Any], context: Any) -> None:
        tries["no"].append(made.clock.now())
        poisoned(data, context)

    handlers = {"ok": effects.handler("ok"), "no": failing}
    with world(tmp_path, store_url, MIXED, handlers=handlers) as made:
        engine = made.loaded(made.graph)[1]
        begin = engine.begin

        def cannot(process: str, *given: Any, **named: Any) -> str:
            if process == "worse":
                tries["worse"].append(made.clock.now())
                raise ValueError("cannot be made")
            return begin(process, *given, **named)

        monkeypatch.setattr(engine, "begin", cannot)
        replica = made.replica(retries=Retries(SECOND, 8 * SECOND, most=6), batch=2)
        made.clock.set(at(0))
        for _ in range(300):
            replica.settle()
            made.clock.advance(SECOND)
        status = replica.status()
        assert effects.calls == ["ok"] * 5, "the healthy one ran each time"
        gaps = {
            key: [(b - a) // SECOND for a, b in itertools.pairwise(t)] for key, t in tries.items()
        }
        assert gaps["no"] == [1, 2, 4, 8, 8], "and then it is left alone"
        assert gaps["worse"][:5] == [1, 2, 4, 8, 8]
        assert set(gaps["worse"][5:]) == {8}
        (failure,) = status.failures.to_dict("records")
        assert failure["attempts"] == 6
        assert "poison" in failure["failure"]
        shown = status.timers.set_index("failure").index.tolist()
        assert sum("cannot be made" in text for text in shown) == 1
        monkeypatch.setattr(engine, "begin", begin)
        made.clock.advance(8 * SECOND)
        replica.settle()
        assert ("tick", 0, 0) in made.firings()
        assert not any(replica.status().timers["failure"])
        verify(made)


def test_a_long_backlog_of_one_event_does_not_hold_up_another(
    tmp_path: Path, store_url: str
) -> None:
    texts = {
        name: bpmn(
            START + catch(f"w_{name}", "timeDuration", "PT10M") + END,
            f"s w_{name}; w_{name} e",
            name,
        )
        for name in ("many", "one")
    }
    with world(tmp_path, store_url, texts) as made:
        replica = made.replica()
        for name in texts:
            replica.start_process(name)
        made.clock.advance(10 * MINUTE)
        (row,) = [r._asdict() for r in made.rows(schema.instance) if r.process == "many"]
        (due,) = [r._asdict() for r in made.rows(schema.wait) if r.instance == row["id"]]
        copies = range(20_000)
        made.execute(sqlalchemy.insert(schema.instance), [row | {"id": f"x{n}"} for n in copies])
        # All of them have waited longer.
        made.execute(
            sqlalchemy.insert(schema.wait),
            [due | {"instance": f"x{n}", "claimable_at": due["due"] - 1 - n} for n in copies],
        )
        work = replica._scheduler.claim_waits(32)
        assert len(work) <= 32, "a round is bounded"
        woken = {wait.event for one in work for wait in one.claim.waits}
        assert {event.rpartition("#")[2] for event in woken} == {"w_many", "w_one"}
        # The copies have one checkpoint, so only one of them could fire.
        (lone,) = [one for one in work if one.claim.process == "one"]
        assert write(replica, [lone]) == [True]
        assert made.firings() == [("w_one", 540, 0)]


# ---------------------------------------------------------------------- names and models


def test_one_event_id_in_two_models_is_two_timers(tmp_path: Path, store_url: str) -> None:
    texts = {"m": ticking(f"R/{T0}/PT1H"), "n": ticking(f"R/{T0}/PT1H", identifier="q")}
    with world(tmp_path, store_url, texts) as made:
        made.clock.set(at(5))
        assert made.replica().settle() == 2
        found = [(row.event, row.due) for row in made.rows(schema.firing)]
        assert found == [("m.bpmn#tick", at()), ("n.bpmn#tick", at())]
        verify(made)


def test_what_a_replica_that_never_comes_back_held_is_finished_by_another(hourly: World) -> None:
    hourly.clock.set(at(5))
    gone = hourly.replica("gone")
    (work,) = gone._scheduler.claim_starts()
    other = hourly.replica("other")
    assert other.settle() == 0, "its lease holds"
    assert other.next_wake() == at(5) + LEASE
    hourly.clock.set(at(5) + LEASE)
    assert other.resume() == 1
    verify(hourly)
    assert other.instance(work.claim.instance).status == "waiting"


def test_a_timer_that_the_model_no_longer_has_is_told_and_deleted_only_when_told_so(
    tmp_path: Path, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The instance stays, and its task can be completed."""
    with world(tmp_path, store_url, QUESTIONS["not interrupting"]) as made:
        made.replica().start_process("p")
        without = made.model(asking(), "without")
        made.clock.advance(HOUR)
        replica = made.replica(graph=without, join=True)
        assert "timer removed m.bpmn#t: 1 instance(s) still wait on it; delete" in caplog.text
        assert replica.settle() == 0
        assert len(made.rows(schema.wait)) == 1, "never silently"
        caplog.clear()
        replica = made.replica(graph=without, join=True, cancel=True)
        assert "timer removed m.bpmn#t: 1 instance(s) still wait on it" in caplog.text
        assert made.rows(schema.wait) == []
        assert replica.settle() == 0
        caplog.clear()
        made.replica(graph=without, join=True)
        assert "timer removed" not in caplog.text


# ---------------------------------------------------------------------- any order of all of this

ACTIONS = st.one_of(
    st.tuples(st.just("advance"), st.sampled_from([1, 10, 61, 300, 600])),
    st.tuples(
        st.sampled_from(["starts", "waits", "instances", "step", "renew", "crash", "complete"]),
        st.integers(0, 2),
    ),
)


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ACTIONS, min_size=5, max_size=40))
def test_replicas_in_any_order(any_order: World, actions: list[tuple[str, int]]) -> None:
    """Three replicas; what each has claimed may be written much later, or never."""
    made, store = any_order, any_order.reader
    made.empty()
    replicas = [made.replica(name, store=store) for name in ("a", "b", "a")]
    queues: list[list[Work]] = [[], [], []]
    for action, number in actions:
        if action == "advance":
            made.clock.advance(number * SECOND)
            continue
        replica, queue = replicas[number], queues[number]
        if action == "starts":
            queue += replica._scheduler.claim_starts()
        elif action == "waits":
            queue += replica._scheduler.claim_waits(2)
        elif action == "instances":
            queue += replica._scheduler.claim_instances(2)
        elif action == "step" and queue:
            write(replica, [queue.pop(0)])
        elif action == "renew":
            replica._worker.hold([one.claim for one in queue])
            replica._worker.renew()
        elif action == "crash":
            replicas[number] = made.replica(replica.name, store=store)
            queue.clear()
        elif action == "complete":
            free = [i for i in replica.instances() if i.tasks and i.holder is None]
            for found in free[:1]:
                replica.complete(found, data={"n": number}, patience=0)
    verify(made, settled=False)
    made.clock.advance(LEASE + SECOND)
    made.replica("survivor", store=store).settle()
    verify(made)


@pytest.fixture(scope="module")
def any_order(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world in memory, with reminders that repeat; its replicas share one connection."""
    text = ticking(
        "R/2026-11-09T08:00:00Z/PT5M",
        nodes='<serviceTask id="a"/><userTask id="u"/><endEvent id="e"/>'
        + boundary("t", "timeCycle", f"R5/{T0}/PT2M") + '<serviceTask id="r"/><endEvent id="f"/>'
        + boundary("stop", "timeDuration", "PT20M", "true") + '<endEvent id="g"/>',
        flows="tick a; a u; u e; t r; r f; stop g",
    )  # fmt: skip
    handlers = {name: lambda data, context: None for name in ("a", "r")}
    folder = tmp_path_factory.mktemp("any_order")
    with world(folder, "sqlite://", text, handlers=handlers) as made:
        yield made
