"""Each statement on the store keeps its promise, alone and while others do the same."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from sqlalchemy import event as sqlalchemy_event
from sqlalchemy import select, text

from seams_lab.runtime import store as module
from seams_lab.runtime.schema import firing, instance, timer, trace, wait
from seams_lab.runtime.store import Store, StoreFailure
from seams_lab.runtime.transaction import Claim, Transaction, WaitClaim, WaitKey
from tests.postgresql import empty_schema

P, Q = "https://example.org/m#P", "https://example.org/m#Q"


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An empty store of each kind."""
    with Store(store_url) as opened:
        yield opened


@pytest.fixture
def on_postgresql(postgresql: str) -> Iterator[Store]:
    """An empty store on PostgreSQL."""
    with empty_schema(postgresql) as address, Store(address) as opened:
        yield opened


def fired(event: str, due: int, waiter: str = "", by: str = "r1", **more: Any) -> dict[str, Any]:
    return {"event": event, "due": due, "waiter": waiter, "instance": f"{event}/{due}",
            "skipped": 0, "fired_at": due + 1, "fired_by": by, **more}  # fmt: skip


def started(id_: str, **changes: Any) -> dict[str, Any]:
    return {"id": id_, "process": P, "correlation_key": f"k-{id_}", "status": "waiting",
            "revision": 0, "checkpoint": "{}", "tasks": "[]", "attempts": 0, "holder": None,
            "token": 0, "claimable_at": None, "created_at": 1, "changed_at": 1,
            **changes}  # fmt: skip


def waiting(instance_: str, task: str, event: str = "e", due: int = 10, **changes: Any) -> Any:
    return {"instance": instance_, "task": task, "event": event, "due": due, "token": 0,
            "claimable_at": due, **changes}  # fmt: skip


def fill(store: Store, instances: list[Any] = (), waits: list[Any] = (), **more: Any) -> None:  # type: ignore[assignment]
    with store.transaction() as tx:
        tx.insert_instances(instances)
        tx.insert_waits(waits)
        tx.insert_firings(more.get("firings", []))
        tx.add_timers("start", more.get("timers", {}))


def rows(store: Store, table: Any, *names: str) -> list[tuple[Any, ...]]:
    with store.reading() as tx:
        return sorted(tuple(row) for row in tx.read(select(*(table.c[name] for name in names))))


def column(store: Store, table: Any, key: str, name: str) -> dict[Any, Any]:
    return dict(rows(store, table, key, name))  # type: ignore[arg-type]


def together(*jobs: Callable[[], Any]) -> list[Any]:
    """Do all jobs at the same moment, each in a thread; their answers, or what they raised."""
    barrier, answers = threading.Barrier(len(jobs)), [None] * len(jobs)

    def work(place: int, job: Callable[[], Any]) -> None:
        barrier.wait(60)
        try:
            answers[place] = job()
        except BaseException as error:
            answers[place] = error  # type: ignore[call-overload]

    threads = [threading.Thread(target=work, args=each) for each in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return answers


# ---------------------------------------------------------------------- facts and timers


def test_a_fact_is_set_and_replaced(store: Store) -> None:
    for value in ("PT0S", "PT48H"):
        with store.transaction() as tx:
            tx.set_fact("offset", value)
    with store.reading() as tx:
        assert tx.facts()["offset"] == "PT48H"
        assert tx.facts()["version"] == "1"


def test_timers_keep_the_expression_that_was_there_first(store: Store) -> None:
    with store.transaction() as tx:
        tx.add_timers("start", {"b": "B1", "a": "A1"})
        tx.add_timers("wait", {"c": "C2", "a": "A2"})
        tx.add_timers("wait", {})
        assert tx.expressions(["a", "b", "c", "d"]) == {"a": "A1", "b": "B1", "c": "C2"}
        assert tx.expressions(iter(["b", "b"])) == {"b": "B1"}
        assert tx.expressions([]) == {}
    expected = [("a", "start", 0), ("b", "start", 0), ("c", "wait", 0)]
    assert rows(store, timer, "event", "role", "attempts") == expected


def test_an_expression_is_replaced_and_its_failures_forgotten(store: Store) -> None:
    fill(store, timers={"a": "A1", "b": "B1", "c": "C1"})
    with store.transaction() as tx:
        for event in "abc":
            tx.record_start_failure(event, "ValueError: no", 2, 500)
        tx.set_expressions({"b": "B2", "a": "A2", "unknown": "U"})
    with store.transaction() as tx:
        found = tx.lock_timers(["c", "a", "b", "unknown"])
        assert found == {"a": ("A2", 0, None), "b": ("B2", 0, None), "c": ("C1", 2, 500)}
        assert list(found) == ["a", "b", "c"]
    failures = {"a": None, "b": None, "c": "ValueError: no"}
    assert column(store, timer, "event", "failure") == failures


def test_failures_are_cleared_of_the_events_that_are_named(store: Store) -> None:
    fill(store, timers={"a": "A", "b": "B"})
    with store.transaction() as tx:
        tx.record_start_failure("a", "no", 1, 100)
        tx.record_start_failure("b", "no", 3, 300)
        tx.clear_start_failures(["a", "unknown"])
    with store.transaction() as tx:
        assert tx.lock_timers(["a", "b"]) == {"a": ("A", 0, None), "b": ("B", 3, 300)}
    assert column(store, timer, "event", "failure") == {"a": None, "b": "no"}


def test_a_replica_does_not_wait_for_timers_that_another_has_locked(on_postgresql: Store) -> None:
    fill(on_postgresql, timers={"a": "A", "b": "B", "c": "C"})
    with on_postgresql.transaction() as one, on_postgresql.transaction() as other:
        assert set(one.lock_timers(["a", "b"])) == {"a", "b"}
        assert set(other.lock_timers(["a", "b", "c"])) == {"c"}
    with on_postgresql.transaction() as tx:
        assert set(tx.lock_timers(["a", "b", "c"])) == {"a", "b", "c"}


def test_a_replica_waits_for_the_timers_in_a_file(tmp_path: Any) -> None:
    path = tmp_path / "store.db"
    with Store(path) as one, Store(path) as other:
        fill(one, timers={"a": "A"})
        seen: list[Any] = []

        def lock() -> None:
            with other.transaction() as tx:
                seen.append((tx.lock_timers(["a"]), tx.newest_starts(["a"])))

        with one.transaction() as tx:
            tx.lock_timers(["a"])
            waits = threading.Thread(target=lock)
            waits.start()
            waits.join(0.1)
            assert seen == []
            tx.insert_firings([fired("a", 7)])
        waits.join(60)
        assert seen == [({"a": ("A", 0, None)}, {"a": 7})]


# ---------------------------------------------------------------------- firings


def test_the_newest_start_of_each_event(store: Store) -> None:
    fill(store, firings=[fired("a", 5), fired("a", 20), fired("a", 9), fired("b", -3),
                         fired("c", 4, "task"), fired("d", 1), fired("d", 99, "task")])  # fmt: skip
    with store.reading() as tx:
        assert tx.newest_starts(["a", "b", "c", "d", "e"]) == {"a": 20, "b": -3, "d": 1}
        assert tx.newest_starts([]) == {}


def test_a_firing_that_is_there_is_a_result_and_its_batch_mates_go_in(store: Store) -> None:
    """S29, S38: 100 firings, of which one is there already, by hand."""
    fill(store, firings=[fired("e", 50, by="other")])
    with store.transaction() as tx:
        found = tx.insert_firings([fired("e", due) for due in reversed(range(100))])
        assert found == {("e", due, "") for due in range(100)} - {("e", 50, "")}
        tx.set_fact("after", "1")  # the transaction is usable
        assert tx.insert_firings([fired("e", 50)]) == set()
        assert tx.insert_firings([]) == set()
    by = {due: "r1" for due in range(100)} | {50: "other"}
    assert column(store, firing, "due", "fired_by") == by


def test_the_key_of_a_firing_is_event_due_and_waiter(store: Store) -> None:
    keys = {("e", 1, ""), ("e", 2, ""), ("f", 1, ""), ("e", 1, "t"), ("e", 1, "u")}
    with store.transaction() as tx:
        assert tx.insert_firings([fired(*key) for key in keys]) == keys
        assert tx.insert_firings([fired(*key) for key in keys]) == set()


@pytest.mark.parametrize("commits", [True, False])
def test_of_two_replicas_that_insert_one_firing_only_one_gets_it(
    store: Store, commits: bool
) -> None:
    seen: list[Any] = []

    def insert() -> None:
        with store.transaction() as tx:
            seen.append(tx.insert_firings([fired("e", due, by="r2") for due in (1, 2, 3)]))

    other = threading.Thread(target=insert)
    with suppress(KeyError), store.transaction() as tx:
        assert tx.insert_firings([fired("e", 2)]) == {("e", 2, "")}
        other.start()
        other.join(0.2)
        assert seen == []  # it has to wait: whether 2 is there is not known yet
        if not commits:
            raise KeyError("stop")
    other.join(60)
    expected = {("e", 1, ""), ("e", 3, "")} | (set() if commits else {("e", 2, "")})
    assert seen == [expected]
    by = {1: "r2", 2: "r1" if commits else "r2", 3: "r2"}
    assert column(store, firing, "due", "fired_by") == by


def test_each_firing_of_many_replicas_goes_to_exactly_one(store: Store) -> None:
    def replica(name: str) -> Callable[[], list[Any]]:
        def work() -> list[Any]:
            mine: list[Any] = []
            for start in range(0, 60, 5):
                with store.transaction() as tx:
                    batch = [fired("e", due, by=name) for due in range(start, start + 10)]
                    mine += tx.insert_firings(random.Random(name).sample(batch, len(batch)))
            return mine

        return work

    names = ["r1", "r2", "r3"]
    answers = together(*map(replica, names))
    assert sorted(chain(*answers)) == [("e", due, "") for due in range(65)]
    by = {due: name for name, mine in zip(names, answers, strict=True) for _, due, _ in mine}
    assert column(store, firing, "due", "fired_by") == by


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        (0, [("a", 1), ("a", 2), ("a", 3), ("b", 2), ("b", 2), ("b", 9), ("c", 1)]),
        (2, [("a", 2), ("a", 3), ("b", 2), ("b", 2), ("b", 9), ("c", 1)]),
        (3, [("a", 3), ("b", 9), ("c", 1)]),
        (100, [("a", 3), ("b", 9), ("c", 1)]),
    ],
)
def test_pruning_never_takes_an_events_newest_firing(
    store: Store, before: int, kept: list[tuple[str, int]]
) -> None:
    fill(store, firings=[fired("a", 1), fired("a", 2), fired("a", 3), fired("b", 2, "t"),
                         fired("b", 2, "u"), fired("b", 9, "t"), fired("c", 1)])  # fmt: skip
    with store.transaction() as tx:
        assert tx.prune_firings(before) == 7 - len(kept)
    assert rows(store, firing, "event", "due") == kept


# ---------------------------------------------------------------------- taking instances

TAKEABLE = [
    (started("free"), True),
    (started("free later", claimable_at=900), True),
    (started("free failed", status="failed"), True),
    (started("running", status="running", claimable_at=5), True),
    (started("held", holder="r2", token=4, claimable_at=101), False),
    (started("held without end", holder="r2", token=4), False),
    (started("held by me", holder="r1", token=4, claimable_at=101), False),
    (started("expired now", holder="r2", token=4, claimable_at=100), True),
    (started("expired", holder="r2", token=4, claimable_at=1), True),
    (started("completed", status="completed"), False),
    (started("completed and held", status="completed", holder="r2", claimable_at=1), False),
]


def test_what_is_free_or_expired_is_taken_with_a_new_token(store: Store) -> None:
    fill(store, [row for row, _ in TAKEABLE])
    ids = [row["id"] for row, _ in TAKEABLE]
    expected = {row["id"]: row for row, taken in TAKEABLE if taken}
    with store.transaction() as tx:
        taken = tx.take_instances([*ids, "unknown", ids[0]], "r1", 100, 160)
        assert taken.keys() == expected.keys()
        assert tx.take_instances([], "r1", 100, 160) == {}
    for id_, claim in taken.items():
        row = expected[id_]
        assert claim == Claim(id_, P, f"k-{id_}", 0, "{}", row["status"], 0, row["token"] + 1)
    found = rows(store, instance, "id", "holder", "token", "claimable_at")
    for id_, holder, token, at in found:
        before = next(row for row, _ in TAKEABLE if row["id"] == id_)
        if id_ in expected:
            assert (holder, token, at) == ("r1", before["token"] + 1, 160)
        else:
            assert (holder, token, at) == tuple(before[k] for k in ("holder", "token",
                                                                    "claimable_at"))  # fmt: skip


def test_what_is_not_named_is_not_taken(store: Store) -> None:
    fill(store, [started("a"), started("b")])
    with store.transaction() as tx:
        assert tx.take_instances(["a"], "r1", 100, 160).keys() == {"a"}
    assert column(store, instance, "id", "holder") == {"a": "r1", "b": None}


def test_a_replica_skips_what_another_is_just_taking(on_postgresql: Store) -> None:
    fill(on_postgresql, [started("a"), started("b")])
    with on_postgresql.transaction() as one, on_postgresql.transaction() as other:
        assert one.take_instances(["a"], "r1", 100, 160).keys() == {"a"}
        assert other.take_instances(["a", "b"], "r2", 100, 160).keys() == {"b"}
    assert column(on_postgresql, instance, "id", "holder") == {"a": "r1", "b": "r2"}


def test_each_instance_is_taken_by_exactly_one_replica(store: Store) -> None:
    ids = [f"i{n:03}" for n in range(40)]
    fill(store, [started(id_) for id_ in ids])

    def replica(name: str) -> Callable[[], list[str]]:
        def work() -> list[str]:
            mine: list[str] = []
            chosen = random.Random(name)
            for _ in range(30):
                with store.transaction() as tx:
                    mine += tx.take_instances(chosen.sample(ids, 12), name, 100, 160)
            with store.transaction() as tx:
                mine += tx.take_instances(ids, name, 100, 160)
            return mine

        return work

    answers = together(*(replica(f"r{n}") for n in range(3)))
    assert sorted(chain(*answers)) == ids
    holders = {id_: f"r{n}" for n, mine in enumerate(answers) for id_ in mine}
    assert column(store, instance, "id", "holder") == holders
    assert set(column(store, instance, "id", "token").values()) == {1}


def test_a_token_grows_with_each_take(store: Store) -> None:
    fill(store, [started("a")], [waiting("a", "t", due=10)])
    tokens = []
    for now in (100, 200, 300):
        with store.transaction() as tx:
            claim = tx.take_instances(["a"], "r1", now, now + 100)["a"]
            (held,) = tx.take_waits(["a"], ["e"], "r1", now, now + 100)["a"]
            tokens.append((claim.token, held.token))
    assert tokens == [(1, 1), (2, 2), (3, 3)]


# ---------------------------------------------------------------------- taking waits


def test_due_timers_that_are_free_or_expired_are_taken(store: Store) -> None:
    waits = {
        "late": (waiting("a", "late", due=101), False),
        "now": (waiting("a", "now", due=100), True),
        "old": (waiting("a", "old", due=7, token=3), True),
        "held": (waiting("a", "held", token=3, claimable_at=101), False),
        "expired": (waiting("a", "expired", due=9, token=3, claimable_at=100), True),
        "put off": (waiting("a", "put off", claimable_at=None), False),
        "foreign": (waiting("a", "foreign", event="f"), False),
    }
    others = [waiting("b", "other"), waiting("c", "also", due=7), waiting("c", "third", due=7)]
    fill(store, [started("a"), started("b")], [row for row, _ in waits.values()] + others)
    with store.transaction() as tx:
        found = tx.take_waits(["c", "a", "unknown"], ["e", "g"], "r1", 100, 160)
        assert found == {
            "a": [WaitClaim("old", "e", 7, 4), WaitClaim("expired", "e", 9, 4),
                  WaitClaim("now", "e", 100, 1)],
            "c": [WaitClaim("also", "e", 7, 1), WaitClaim("third", "e", 7, 1)],
        }  # fmt: skip
        assert tx.take_waits([], ["e"], "r1", 100, 160) == {}
        assert tx.take_waits(["a"], [], "r1", 100, 160) == {}
        assert tx.take_waits(["a", "c"], ["e"], "r1", 100, 160) == {}
    taken = {"old", "expired", "now", "also", "third"}
    for task, holder, at in rows(store, wait, "task", "holder", "claimable_at"):
        assert (holder == "r1" and at == 160) == (task in taken), task


# ---------------------------------------------------------------------- writing


def take(store: Store, holder: str, now: int, until: int, *ids: str) -> dict[str, Claim]:
    with store.transaction() as tx:
        return tx.take_instances(ids or ["a"], holder, now, until)


WRITTEN = {"checkpoint": "new", "revision": 1}


def test_a_holder_writes_also_when_its_lease_has_expired(store: Store) -> None:
    fill(store, [started("a"), started("b")])
    claim = take(store, "r1", 100, 101)["a"]
    values = {"status": "running", "revision": 1, "checkpoint": "new", "tasks": "[1]",
              "attempts": 2, "failure": "no", "holder": None, "claimable_at": None,
              "changed_at": 900}  # fmt: skip
    with store.transaction() as tx:
        assert tx.write_instance(claim, "r1", values)
    assert rows(store, instance, "id", *values)[0] == ("a", *values.values())
    assert column(store, instance, "id", "checkpoint") == {"a": "new", "b": "{}"}
    assert column(store, instance, "id", "token") == {"a": 1, "b": 0}
    with store.transaction() as tx:
        assert not tx.write_instance(claim, "r1", values)  # it let go


@pytest.mark.parametrize(
    ("claim", "holder"),
    [
        (Claim("a", P, "k", 0, "", "waiting", 0, 1), "r1"),
        (Claim("a", P, "k", 0, "", "waiting", 0, 3), "r1"),
        (Claim("a", P, "k", 1, "", "waiting", 0, 2), "r1"),
        (Claim("a", P, "k", 0, "", "waiting", 0, 2), "r2"),
        (Claim("b", P, "k", 0, "", "waiting", 0, 2), "r1"),
    ],
    ids=["older token", "newer token", "revision", "holder", "instance"],
)
def test_a_write_needs_holder_token_and_revision(store: Store, claim: Claim, holder: str) -> None:
    fill(store, [started("a")])
    take(store, "r1", 100, 150)
    current = take(store, "r1", 200, 250)["a"]
    assert current.token == 2
    with store.transaction() as tx:
        assert not tx.write_instance(claim, holder, WRITTEN)
    assert column(store, instance, "id", "checkpoint") == {"a": "{}"}
    with store.transaction() as tx:
        assert tx.write_instance(current, "r1", WRITTEN)


@pytest.mark.parametrize("name", ["r1", "r2"])
def test_a_stale_holder_changes_nothing(store: Store, name: str) -> None:
    """S12, S19, S36: it paused past its lease, and another (or itself again) took over."""
    fill(store, [started("a")], [waiting("a", "t")])
    with store.transaction() as tx:
        (stale,) = tx.take_instances(["a"], "r1", 100, 150).values()
        (held,) = tx.take_waits(["a"], ["e"], "r1", 100, 150)["a"]
    assert take(store, name, 149, 200) == {}
    with store.transaction() as tx:
        (current,) = tx.take_instances(["a"], name, 150, 200).values()
        (now_held,) = tx.take_waits(["a"], ["e"], name, 150, 200)["a"]
    before = (rows(store, instance, *instance.c.keys()), rows(store, wait, *wait.c.keys()))
    with store.transaction() as tx:
        both = replace(stale, waits=(held,))
        assert tx.renew("r1", [both], 999) == set()
        assert not tx.write_instance(stale, "r1", WRITTEN)
        assert not tx.delete_held_wait(stale, held, "r1")
        tx.postpone_wait(stale, held, "r1", 999)
    after = (rows(store, instance, *instance.c.keys()), rows(store, wait, *wait.c.keys()))
    assert after == before
    with store.transaction() as tx:
        assert tx.renew(name, [current], 300) == {"a"}
        assert tx.write_instance(current, name, WRITTEN)
        assert tx.delete_held_wait(current, now_held, name)


def test_a_user_task_and_a_timer_never_overwrite_each_other(store: Store) -> None:
    fill(store, [started("a")])
    claim = take(store, "r1", 100, 150)["a"]

    def write(checkpoint: str) -> Callable[[], bool]:
        def work() -> bool:
            with store.transaction() as tx:
                values = {"checkpoint": checkpoint, "revision": claim.revision + 1}
                return tx.write_instance(claim, "r1", values)

        return work

    answers = together(*(write(name) for name in "xyz"))
    assert sorted(answers) == [False, False, True]
    winner = "xyz"[answers.index(True)]
    assert column(store, instance, "id", "checkpoint") == {"a": winner}


# ---------------------------------------------------------------------- renewing


def test_renewing_keeps_what_is_still_held(store: Store) -> None:
    ids = ["kept", "lost", "let go", "retaken", "gone"]
    fill(store, [started(id_) for id_ in ids if id_ != "gone"])
    claims = take(store, "r1", 100, 150, *ids)
    claims["gone"] = Claim("gone", P, "k", 0, "", "waiting", 0, 1)
    take(store, "r2", 150, 250, "lost")
    take(store, "r1", 150, 250, "retaken")
    with store.transaction() as tx:
        tx.write_instance(claims["let go"], "r1", {"holder": None, "claimable_at": None})
    with store.transaction() as tx:
        assert tx.renew("r1", [claims[id_] for id_ in ids], 400) == {"kept"}
        assert tx.renew("r1", [], 400) == set()
    at = {"kept": 400, "lost": 250, "let go": None, "retaken": 250}
    assert column(store, instance, "id", "claimable_at") == at
    assert column(store, instance, "id", "token")["kept"] == 1


def test_renewing_keeps_the_timers_of_the_instance_alone(store: Store) -> None:
    """A task's name is unique in its instance only."""
    fill(store, [started("a"), started("b")], [waiting("a", "t"), waiting("a", "u", event="f"),
                                               waiting("b", "t")])  # fmt: skip
    with store.transaction() as tx:
        claims = tx.take_instances(["a", "b"], "r1", 100, 150)
        held = tx.take_waits(["a", "b"], ["e"], "r1", 100, 150)
        both = replace(claims["a"], waits=tuple(held["a"]))
        assert tx.renew("r1", [both], 400) == {"a"}
    expected = [("a", "t", 400), ("a", "u", 10), ("b", "t", 150)]
    assert rows(store, wait, "instance", "task", "claimable_at") == expected


# ---------------------------------------------------------------------- waiting timers


def test_waits_are_read_and_deleted_by_instance(store: Store) -> None:
    fill(store, waits=[waiting("a", "t"), waiting("a", "u"), waiting("a", "v"), waiting("b", "t")])
    with store.transaction() as tx:
        tx.insert_waits([waiting("a", "t", due=99)])  # it is there already
        tx.delete_waits("a", {"u", "v", "unknown"})
        tx.delete_waits("b", [])
        assert tx.waits_of(["a", "b", "c"]) == {"a": {"t"}, "b": {"t"}}
        assert tx.waits_of(["b"]) == {"b": {"t"}}
        assert tx.waits_of([]) == {}
    assert rows(store, wait, "instance", "due", "claimable_at", "token", "holder") == [
        ("a", 10, 10, 0, None), ("b", 10, 10, 0, None),
    ]  # fmt: skip


@pytest.mark.parametrize("until", [500, None])
def test_a_timer_that_is_given_back_is_taken_again_then(store: Store, until: int | None) -> None:
    fill(store, [started("a")], [waiting("a", "t")])
    with store.transaction() as tx:
        (claim,) = tx.take_instances(["a"], "r1", 100, 150).values()
        (held,) = tx.take_waits(["a"], ["e"], "r1", 100, 150)["a"]
        tx.postpone_wait(claim, held, "r2", 400)
        tx.postpone_wait(claim, WaitClaim("t", "e", 10, held.token + 1), "r1", 400)
        assert tx.take_waits(["a"], ["e"], "r1", 149, 150) == {}
        tx.postpone_wait(claim, held, "r1", until)
    assert rows(store, wait, "holder", "token", "claimable_at") == [(None, 1, until)]
    with store.transaction() as tx:
        assert tx.take_waits(["a"], ["e"], "r2", 499, 600) == {}
        later = tx.take_waits(["a"], ["e"], "r2", 500, 600)
        assert later == ({"a": [WaitClaim("t", "e", 10, 2)]} if until else {})


def test_unknown_events_are_counted_by_instances_of_the_processes(store: Store) -> None:
    fill(store, [started("a"), started("b"), started("c", process=Q)],
         [waiting("a", "t", "old"), waiting("a", "u", "old"), waiting("b", "t", "old"),
          waiting("a", "v", "known"), waiting("b", "v", "gone"), waiting("c", "t", "foreign"),
          waiting("c", "u", "old")])  # fmt: skip
    with store.transaction() as tx:
        assert tx.unknown_waits([P], iter(["known"])) == {"gone": 1, "old": 2}
        assert list(tx.unknown_waits([P, Q], ["old"])) == ["foreign", "gone", "known"]
        assert tx.unknown_waits([], []) == {}
        assert tx.delete_waits_of_events(["gone", "old", "unknown"]) == 5
        assert tx.delete_waits_of_events([]) == 0
    assert rows(store, wait, "instance", "task") == [("a", "v"), ("c", "t")]


# ---------------------------------------------------------------------- what is ready


def test_ready_waits_are_due_and_of_the_events_oldest_first(store: Store) -> None:
    fill(store, waits=[
        waiting("c", "t", due=100), waiting("a", "t", due=30), waiting("b", "u", "f", due=30),
        waiting("b", "t", due=101), waiting("d", "t", due=1, claimable_at=70),
        waiting("d", "u", due=1, claimable_at=None), waiting("d", "v", "g", due=2),
    ])  # fmt: skip
    with store.reading() as tx:
        expected = [WaitKey("a", "t", "e", 30), WaitKey("b", "u", "f", 30),
                    WaitKey("d", "t", "e", 1), WaitKey("c", "t", "e", 100)]  # fmt: skip
        assert tx.ready_waits(["f", "e", "unknown"], 100, 10) == expected
        assert tx.ready_waits(["e", "e"], 100, 10) == [w for w in expected if w.event == "e"]
        assert tx.ready_waits(["e", "f"], 29, 10) == []
        assert tx.ready_waits([], 100, 10) == []


@pytest.mark.parametrize("limit", [1, 2, 5, 7, 8, 9, 10, 13, 100])
def test_each_event_gets_an_equal_share(store: Store, limit: int) -> None:
    """Seven events wait; the first three of them have a long and old backlog."""
    old = [waiting(f"i{n}", "old", f"e{n % 3}", due=n) for n in range(90)]
    new = [waiting(f"i{n}", "new", f"e{3 + n % 4}", due=500 + n) for n in range(8)]
    fill(store, waits=old + new)
    with store.reading() as tx:
        found = tx.ready_waits([f"e{n}" for n in range(9)], 1_000, limit)
    counts = [sum(key.event == f"e{n}" for key in found) for n in range(7)]
    share = -(-limit // 7)
    assert len(found) == min(limit, 3 * share + 4 * min(share, 2))
    if limit < 7:
        assert counts == [1] * limit + [0] * (7 - limit)
    assert all(min(limit // 7, 2) <= count <= share for count in counts)
    assert found == sorted(found, key=lambda key: (key.due, key.instance, key.task))
    for n, count in enumerate(counts):  # of each event, the oldest
        dues = [key.due for key in found if key.event == f"e{n}"]
        assert dues == list(range(n, 90, 3) if n < 3 else range(500 + n - 3, 508, 4))[:count]


def test_a_long_backlog_of_one_event_does_not_hide_another(store: Store) -> None:
    fill(store, waits=[waiting(f"i{n:05}", "t", "many", due=n) for n in range(20_000)]
         + [waiting("z", "t", "one", due=25_000)])  # fmt: skip
    with store.reading() as tx:
        for limit in (2, 50):
            found = tx.ready_waits(["many", "one"], 30_000, limit)
            assert found[-1] == WaitKey("z", "t", "one", 25_000)
            assert [key.due for key in found[:-1]] == list(range(limit // 2))


def test_ready_instances_can_be_taken_oldest_first(store: Store) -> None:
    fill(store, [started("d", claimable_at=100), started("b", claimable_at=7), started("idle"),
                 started("c", claimable_at=101), started("a", claimable_at=7, process=Q),
                 started("held", claimable_at=99, holder="r1")])  # fmt: skip
    with store.reading() as tx:
        assert tx.ready_instances([P, Q], 100, 10) == ["a", "b", "held", "d"]
        assert tx.ready_instances([P], 100, 2) == ["b", "held"]
        assert tx.ready_instances([P, Q], 6, 10) == []
        assert tx.ready_instances([], 100, 10) == []


def test_the_next_moment_at_which_something_can_be_taken(store: Store) -> None:
    def upcoming(events: str, *processes: str) -> int | None:
        with store.reading() as tx:
            return tx.next_claimable(list(events), list(processes))

    assert upcoming("ef", P, Q) is None
    fill(store, [started("a", claimable_at=50), started("b", claimable_at=40, process=Q),
                 started("idle")],
         [waiting("a", "t", "e", due=60), waiting("b", "t", "f", due=45),
          waiting("b", "u", "e", due=1, claimable_at=None)])  # fmt: skip
    assert upcoming("ef", P, Q) == 40
    assert upcoming("ef", P) == 45
    assert upcoming("e", P) == 50
    assert upcoming("e") == 60
    assert upcoming("", P) == 50
    assert upcoming("g") is None


# ---------------------------------------------------------------------- failed instances, trace


def test_a_failed_instance_is_tried_again_with_its_timers(store: Store) -> None:
    fill(store, [started("a", status="failed", attempts=5), started("b", status="failed")],
         [waiting("a", "t", due=10, claimable_at=None), waiting("a", "u", due=20),
          waiting("b", "t", due=30, claimable_at=None)])  # fmt: skip
    with store.transaction() as tx:
        assert tx.revive("a", 100)
    expected = [("a", 100, 0), ("b", None, 0)]
    assert rows(store, instance, "id", "claimable_at", "attempts")[:1] == expected[:1]
    assert column(store, instance, "id", "claimable_at")["b"] is None
    assert rows(store, wait, "instance", "task", "claimable_at")[:2] == [
        ("a", "t", 10), ("a", "u", 20),
    ]  # fmt: skip
    with store.reading() as tx:
        assert tx.ready_instances([P], 100, 5) == ["a"]
        assert tx.next_claimable(["e"], []) == 10
        assert tx.ready_waits(["e"], 100, 5) == [WaitKey("a", "t", "e", 10),
                                                 WaitKey("a", "u", "e", 20)]  # fmt: skip


@pytest.mark.parametrize(
    "row",
    [
        started("a"),
        started("a", status="running", claimable_at=7),
        started("a", status="completed"),
        started("a", status="failed", holder="r2", token=3, claimable_at=150),
        started("another", status="failed"),
    ],
    ids=lambda row: f"{row['id']} {row['status']} {row['holder']}",
)
def test_what_has_not_failed_or_is_held_is_not_revived(store: Store, row: Any) -> None:
    fill(store, [row], [waiting("a", "t", claimable_at=None)])
    before = rows(store, instance, *instance.c.keys())
    with store.transaction() as tx:
        assert not tx.revive("a", 100)
    assert rows(store, instance, *instance.c.keys()) == before
    assert column(store, wait, "task", "claimable_at") == {"t": None}


def test_the_checkpoint_of_an_instance(store: Store) -> None:
    fill(store, [started("a", checkpoint='{"x": "ü"}')])
    with store.reading() as tx:
        assert tx.checkpoint("a") == (P, '{"x": "ü"}')
        assert tx.checkpoint("b") is None


def test_an_instance_that_is_there_is_not_replaced(store: Store) -> None:
    fill(store, [started("a")])
    fill(store, [started("b"), started("a", checkpoint="new")])
    assert column(store, instance, "id", "checkpoint") == {"a": "{}", "b": "{}"}


def test_the_trace_keeps_what_was_done(store: Store) -> None:
    done = [
        {"instance": "a", "revision": 1, "position": n, "element": f"E{n}", "kind": "task",
         "name": "Näme", "at": 5, "due": due, "replica": "r1", "note": ""}
        for n, due in enumerate([None, 7])
    ]  # fmt: skip
    with store.transaction() as tx:
        tx.insert_trace(done)
        tx.insert_trace([done[0] | {"name": "again"}])
        tx.insert_trace([])
    expected = [tuple(row[c] for c in trace.c.keys()) for row in done]  # noqa: SIM118
    assert sorted(rows(store, trace, *trace.c.keys()), key=lambda r: r[2]) == expected


# ---------------------------------------------------------------------- cost


def grow(store: Store, number: int) -> None:
    """Fill the big tables by the database itself: half of the waits are of one event."""
    series = (f"generate_series(1, {number}) AS s(n)" if not store.is_sqlite else
              "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < "
              f"{number}) SELECT n FROM s)")  # fmt: skip
    process = f"'{P}'"
    with store.transaction() as tx:
        for statement in (
            "INSERT INTO seams_instance (id, process, correlation_key, status, revision, "
            "checkpoint, tasks, attempts, token, claimable_at, created_at, changed_at) SELECT "
            f"'i' || n, {process}, 'k' || n, 'waiting', 0, '', '', 0, 0, "
            f"CASE WHEN n % 100 = 0 THEN n END, n, n FROM {series}",
            "INSERT INTO seams_wait (instance, task, event, due, token, claimable_at) SELECT "
            f"'i' || n, 't' || n, CASE WHEN n % 2 = 0 THEN 'e' ELSE 'e' || n % 50 END, n, 0, n "
            f"FROM {series}",
            "INSERT INTO seams_firing (event, due, waiter, instance, skipped, fired_at, fired_by)"
            f" SELECT 'e' || n % 50, n, '', 'i' || n, 0, n, 'r1' FROM {series}",
        ):
            tx._connection.execute(text(statement.replace(":", "\\:")))
        tx._connection.execute(text("ANALYZE"))


CHEAP: dict[str, Callable[[Transaction], Any]] = {
    "ready_waits": lambda tx: tx.ready_waits(["e", "e1", "e3"], 40_000, 50),
    "ready_instances": lambda tx: tx.ready_instances([P], 40_000, 50),
    "take_instances": lambda tx: tx.take_instances(["i5", "i77"], "r1", 100, 160),
    "take_waits": lambda tx: tx.take_waits(["i5", "i77"], ["e", "e5"], "r1", 100, 160),
    "write_instance": lambda tx: tx.write_instance(
        Claim("i5", P, "k", 0, "", "waiting", 0, 1), "r1", WRITTEN
    ),
    "renew": lambda tx: tx.renew(
        "r1", [Claim("i5", P, "k", 0, "", "waiting", 0, 1, (WaitClaim("t5", "e", 5, 1),))], 200
    ),
    "waits_of": lambda tx: tx.waits_of(["i5", "i77"]),
    "delete_waits": lambda tx: tx.delete_waits("i5", ["t5"]),
    "next_claimable": lambda tx: tx.next_claimable(["e", "e1", "e3"], [P]),
    "newest_starts": lambda tx: tx.newest_starts(["e1", "e3"]),
    "revive": lambda tx: tx.revive("i5", 100),
    "checkpoint": lambda tx: tx.checkpoint("i5"),
}


def plans(store: Store, call: Callable[[Transaction], Any]) -> list[str]:
    """How the database would do each statement of a call."""
    sent: list[tuple[str, Any]] = []
    explain = "EXPLAIN QUERY PLAN " if store.is_sqlite else "EXPLAIN "

    def note(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        sent.append((statement, parameters))

    with store.transaction() as tx:
        sqlalchemy_event.listen(store._engine, "before_cursor_execute", note)
        try:
            call(tx)
        finally:
            sqlalchemy_event.remove(store._engine, "before_cursor_execute", note)
        return [
            " ".join(str(part) for part in row)
            for statement, parameters in sent
            for row in tx._connection.exec_driver_sql(explain + statement, parameters)
        ]


def scans(plan: list[str]) -> list[str]:
    """The steps that read a whole table of instances, waits or firings."""
    names = ("seams_instance", "seams_wait", "seams_firing", " w", " x", "firing", "wait")
    full = [line for line in plan if "Seq Scan on seams_" in line]
    full += [line for line in plan if "SCAN " in line and any(
        line.split("SCAN ")[1].split()[0] == name.strip() for name in names)]  # fmt: skip
    return full


def test_a_round_reads_no_table_as_a_whole(store: Store) -> None:
    grow(store, 40_000)
    for name, call in CHEAP.items():
        found = plans(store, call)
        assert any("seams_" in line for line in found), name
        walk = name in ("ready_instances", "next_claimable")
        whole = [line for line in scans(found) if not (walk and "INDEX" in line)]
        assert whole == [], (name, found)
    for sight in ("SELECT * FROM seams_wait", "SELECT count(*) FROM seams_instance"):
        assert scans(plans(store, lambda tx, q=sight: tx.read(text(q))))  # it would be seen


# ---------------------------------------------------------------------- no circle of waiting


def test_replicas_never_wait_for_each_other_in_a_circle(on_postgresql: Store) -> None:
    store = on_postgresql
    ids, events = [f"i{n:02}" for n in range(24)], [f"e{n}" for n in range(12)]
    fill(store, [started(id_) for id_ in ids], [waiting(id_, "t") for id_ in ids],
         timers=dict.fromkeys(events, "x"))  # fmt: skip

    def round_(tx: Transaction, some: random.Random, name: str, now: int) -> None:
        locked = tx.lock_timers(some.sample(events, 6))
        dues = [(event, now // 4 + k) for event in events for k in range(2)]
        batch = some.sample(dues, 12)
        new = tx.insert_firings([fired(event, due, by=name) for event, due in batch])
        tx.clear_start_failures(locked)
        for event in list(locked)[:2]:
            tx.record_start_failure(event, "no", 1, now)
        fresh = [started(f"{event}/{due}") for event, due, _ in new]
        tx.insert_instances(some.sample(fresh, len(fresh)))

    def step(tx: Transaction, some: random.Random, name: str, now: int) -> None:
        claims = tx.take_instances(some.sample(ids, 10), name, now, now + 3)
        held = tx.take_waits(some.sample(list(claims), len(claims)), ["e"], name, now, now + 3)
        tx.renew(name, some.sample(list(claims.values()), len(claims)), now + 4)
        for id_ in sorted(claims):
            values = {"holder": None, "claimable_at": None, "revision": claims[id_].revision + 1}
            assert tx.write_instance(claims[id_], name, values)
            for each in held.get(id_, ()):
                tx.postpone_wait(claims[id_], each, name, now)

    def replica(name: str) -> Callable[[], int]:
        def work() -> int:
            some, done = random.Random(name), 0
            for now in range(100, 140):
                for part in (round_, step):
                    with store.transaction() as tx:
                        part(tx, some, name, now)
                    done += 1
            return done

        return work

    assert together(*(replica(f"r{n}") for n in range(4))) == [80] * 4


# ---------------------------------------------------------------------- models

KEYS = st.tuples(st.sampled_from("ab"), st.integers(-2, 3), st.sampled_from(["", "t"]))


@given(st.lists(st.lists(KEYS, max_size=8), max_size=6))
@settings(max_examples=60)
def test_firings_are_a_set(batches: list[list[tuple[str, int, str]]]) -> None:
    known: set[tuple[str, int, str]] = set()
    with Store("sqlite://") as store:
        for batch in batches:
            with store.transaction() as tx:
                assert tx.insert_firings([fired(*key) for key in batch]) == set(batch) - known
            known |= set(batch)
        assert rows(store, firing, "event", "due", "waiter") == sorted(known)
        with store.reading() as tx:
            starts: dict[str, int] = {}
            for event, due, waiter in sorted(known):
                if not waiter:
                    starts[event] = max(due, starts.get(event, due))
            assert tx.newest_starts("abc") == starts


IDS, HOLDERS = st.sampled_from("xyz"), st.sampled_from(["r1", "r2"])


class Leases(RuleBasedStateMachine):
    """Leases as the rulings say: who holds what, until when, by which token."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store("sqlite://")
        self.now = 100
        self.model = {id_: {"holder": None, "until": None, "token": 0, "revision": 0}
                      for id_ in "xyz"}  # fmt: skip
        self.claims: list[tuple[str, Claim]] = []
        fill(self.store, [started(id_) for id_ in "xyz"])

    def teardown(self) -> None:
        self.store.close()

    def holds(self, holder: str, claim: Claim) -> bool:
        row = self.model[claim.instance]
        return (row["holder"], row["token"]) == (holder, claim.token)

    @rule(step=st.integers(0, 30))
    def time_goes_on(self, step: int) -> None:
        self.now += step

    @rule(ids=st.sets(IDS, min_size=1), holder=HOLDERS, length=st.integers(1, 40))
    def take(self, ids: set[str], holder: str, length: int) -> None:
        free = {id_ for id_ in ids if self.model[id_]["holder"] is None
                or self.model[id_]["until"] <= self.now}  # type: ignore[operator]  # fmt: skip
        with self.store.transaction() as tx:
            taken = tx.take_instances(ids, holder, self.now, self.now + length)
        assert taken.keys() == free
        for id_, claim in taken.items():
            row = self.model[id_]
            assert claim.token > row["token"]  # type: ignore[operator]
            assert claim.revision == row["revision"]
            row |= {"holder": holder, "until": self.now + length, "token": claim.token}
            self.claims.append((holder, claim))

    @rule(data=st.data(), length=st.integers(1, 40))
    def renew(self, data: st.DataObject, length: int) -> None:
        if not self.claims:
            return
        some = data.draw(st.lists(st.sampled_from(self.claims), max_size=4))
        for holder in ("r1", "r2"):
            mine = [claim for by, claim in some if by == holder]
            held = {claim.instance for claim in mine if self.holds(holder, claim)}
            with self.store.transaction() as tx:
                assert tx.renew(holder, mine, self.now + length) == held
            for id_ in held:
                self.model[id_]["until"] = self.now + length

    @rule(data=st.data(), lets_go=st.booleans())
    def write(self, data: st.DataObject, lets_go: bool) -> None:
        if not self.claims:
            return
        holder, claim = data.draw(st.sampled_from(self.claims))
        row = self.model[claim.instance]
        wins = self.holds(holder, claim) and row["revision"] == claim.revision
        values: dict[str, Any] = {"revision": claim.revision + 1}
        if lets_go:
            values |= {"holder": None, "claimable_at": None}
        with self.store.transaction() as tx:
            assert tx.write_instance(claim, holder, values) == wins
        if wins:
            row["revision"] = claim.revision + 1
            if lets_go:
                row |= {"holder": None, "until": None}

    @invariant()
    def the_store_says_the_same(self) -> None:
        found = rows(self.store, instance, "id", "holder", "claimable_at", "token", "revision")
        expected = [(id_, *row.values()) for id_, row in sorted(self.model.items())]
        assert found == expected


Leases.TestCase.settings = settings(max_examples=40, stateful_step_count=25)
TestLeases = Leases.TestCase


# ---------------------------------------------------------------------- a store that is busy


def test_a_lock_that_is_not_given_is_a_failure_and_no_conflict(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BUSY_SECONDS", 0.05)
    path = tmp_path / "store.db"
    with Store(path) as one, Store(path) as other:
        fill(one, [started("a")])
        with one.transaction() as tx:
            assert tx.take_instances(["a"], "r1", 100, 160)
            with pytest.raises(StoreFailure, match="locked"):
                take(other, "r2", 100, 160)
        assert take(other, "r2", 100, 160) == {}
