"""Rounds of the scheduler: what is claimed, in which order, how much at a time, when to wake."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from fixtures.engines import END, START, bpmn, catch, timer

from seams_lab.expressions import SECOND
from seams_lab.instants import to_micros, to_text
from seams_lab.runtime import schema
from seams_lab.runtime.scheduler import WINDOW
from tests.worlds import (
    HOUR,
    LEASE,
    MINUTE,
    T0,
    asking,
    at,
    short,
    ticking,
    verify,
    world,
)


def many(expressions: dict[str, str]) -> str:
    """One process with a start event for each expression, which ends at once."""
    starts = "".join(
        f'<startEvent id="{n}">{timer("timeCycle" if x[0] == "R" else "timeDate", x)}</startEvent>'
        for n, x in expressions.items()
    )
    return bpmn(starts + END, "; ".join(f"{n} e" for n in expressions))


def waiting(*names: str) -> dict[str, str]:
    """A process for each name, which waits ten minutes at an event of that name."""
    return {
        n: bpmn(START + catch(f"w{n}", "timeDuration", "PT10M") + END, f"s w{n}; w{n} e", f"p{n}")
        for n in names
    }


# ---------------------------------------------------------------------- starts


@pytest.mark.parametrize(
    ("seconds", "started"),
    [(-1, 0), (-0.000_001, 0), (0, 1), (0.000_001, 1), (1, 1)],
    ids=["before", "a microsecond before", "at the due time", "just after", "after"],
)
def test_a_timer_is_due_from_its_due_time_on(
    tmp_path: Path, store_url: str, seconds: float, started: int
) -> None:
    with world(tmp_path, store_url, ticking(f"R/{T0}/PT1H")) as made:
        made.clock.set(at(seconds))
        assert len(made.replica()._scheduler.claim_starts()) == started


def test_a_start_is_claimed_with_its_instance_held_and_not_yet_stepped(
    tmp_path: Path, store_url: str
) -> None:
    with world(tmp_path, store_url, ticking(f"R/{T0}/PT1H")) as made:
        made.clock.set(at(5))
        replica = made.replica("mine")
        (work,) = replica._scheduler.claim_starts()
        (row,) = made.rows(schema.instance)
        assert (row.id, row.holder, row.token) == (work.claim.instance, "mine", work.claim.token)
        assert (row.status, row.revision, row.claimable_at) == ("running", 1, at(5) + LEASE)
        assert row.correlation_key == T0
        (fired,) = made.rows(schema.firing)
        assert (fired.instance, fired.fired_by, fired.fired_at) == (row.id, "mine", at(5))
        assert made.rows(schema.trace) == []
        assert replica._scheduler.claim_starts() == []


def test_the_oldest_due_times_come_first_and_a_batch_is_bounded(
    tmp_path: Path, store_url: str
) -> None:
    names = {f"t{n:02}": to_text(at(60 * (29 - n))) for n in range(30)}
    with world(tmp_path, store_url, many(names)) as made:
        made.clock.set(at(3_600))
        replica = made.replica(batch=2)
        window = 2 * WINDOW
        first = {w.start.event for w in replica._scheduler.claim_starts() if w.start}
        assert len(first) == 2
        oldest = sorted(names, key=names.__getitem__)[:window]
        assert {short(event) for event in first} <= set(oldest), "of the oldest few batches"
        claimed = 2
        while work := replica._scheduler.claim_starts():
            assert len(work) <= 2
            claimed += len(work)
        assert claimed == 30
        verify(made, settled=False)


@pytest.mark.parametrize(
    ("events", "batch", "rounds"), [(20, 3, 1), (40, 2, 3)], ids=["one round", "three rounds"]
)
def test_no_event_is_always_the_one_that_is_left_over(
    tmp_path: Path, store_url: str, events: int, batch: int, rounds: int
) -> None:
    """More is due each minute than is claimed: each event gets its turn all the same."""
    names = {f"t{n:02}": f"R/{T0}/PT1M" for n in range(events)}
    with world(tmp_path, store_url, many(names)) as made:
        replica = made.replica(batch=batch)
        for minute in range(60):
            made.clock.set(at(60 * minute))
            for _ in range(rounds):
                replica._scheduler.claim_starts()
        counts = dict.fromkeys(names, 0)
        for row in made.rows(schema.firing):
            counts[short(row.event)] += 1
        assert min(counts.values()) >= 2


def test_replicas_share_a_backlog_and_meet_seldom(tmp_path: Path, store_url: str) -> None:
    with world(tmp_path, store_url, many({f"t{n:02}": T0 for n in range(60)})) as made:
        made.clock.set(at(0))
        replicas = [made.replica(f"r{n}", batch=5) for n in range(3)]
        claimed = [0, 0, 0]
        for _ in range(12):
            for number, replica in enumerate(replicas):
                claimed[number] += len(replica._scheduler.claim_starts())
        assert sum(claimed) == 60
        assert all(claimed)
        made.heal()
        verify(made)


def test_a_replica_that_was_behind_learns_what_others_recorded(
    tmp_path: Path, store_url: str
) -> None:
    with world(tmp_path, store_url, many({f"t{n:02}": f"R/{T0}/PT1H" for n in range(30)})) as made:
        made.clock.set(at(0))
        one, other = made.replica("one", batch=5), made.replica("other", batch=5)
        while one._scheduler.claim_starts():
            pass
        assert other._scheduler.claim_starts() == []
        asked: list[str] = []
        other.store.watch = asked.append
        assert other._scheduler.claim_starts() == []
        assert "lock_timers" not in asked, "it does not ask again for what it knows"
        made.clock.set(at(3_600))
        assert len(other._scheduler.claim_starts()) == 5


# ---------------------------------------------------------------------- waiting timers


def test_a_waiting_timer_is_taken_when_due_with_its_instance(
    tmp_path: Path, store_url: str
) -> None:
    with world(tmp_path, store_url, waiting("a")) as made:
        replica = made.replica("mine")
        found = replica.start_process("pa")
        made.clock.advance(10 * MINUTE - 1)
        assert replica._scheduler.claim_waits(5) == []
        made.clock.advance(1)
        assert replica._scheduler.claim_waits(0) == []
        (work,) = replica._scheduler.claim_waits(5)
        assert work.claim.instance == found.id
        assert [short(w.event) for w in work.claim.waits] == ["wa"]
        assert work.claim.recorded == {w.task for w in work.claim.waits}
        (row,) = made.rows(schema.wait)
        assert (row.holder, row.claimable_at) == ("mine", made.clock.now() + LEASE)
        assert made.replica("other")._scheduler.claim_waits(5) == []
        assert replica._worker.step(work.claim)
        verify(made)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 30])
def test_a_round_is_bounded_and_fair_over_events(
    tmp_path: Path, store_url: str, limit: int
) -> None:
    with world(tmp_path, store_url, waiting("a", "b", "c")) as made:
        replica = made.replica()
        for name, count in (("a", 6), ("b", 2), ("c", 1)):
            for _ in range(count):
                replica.start_process(f"p{name}")
        made.clock.advance(10 * MINUTE)
        work = replica._scheduler.claim_waits(limit)
        taken = [short(w.event) for one in work for w in one.claim.waits]
        assert len(taken) <= limit
        assert len(taken) == len(work) >= min(limit, 4)
        assert len(set(taken)) == min(limit, 3), "each event has its share"


def test_a_wait_whose_instance_is_held_is_left(tmp_path: Path, store_url: str) -> None:
    with world(tmp_path, store_url, waiting("a")) as made:
        replica, other = made.replica("one"), made.replica("other")
        found = replica.start_process("pa")
        made.clock.advance(10 * MINUTE)
        now = made.clock.now()
        with other.store.transaction() as tx:
            assert tx.take_instances([found.id], "other", now, now + LEASE)
        assert replica._scheduler.claim_waits(5) == []
        assert replica.telemetry.counters.claimed_elsewhere == 1
        assert made.rows(schema.wait)[0].holder is None
        made.clock.advance(LEASE)
        assert replica.settle() == 1
        verify(made)


# ---------------------------------------------------------------------- orphans


def test_an_orphan_is_taken_when_its_lease_has_expired_with_a_new_token(
    tmp_path: Path, store_url: str
) -> None:
    with world(tmp_path, store_url, ticking(f"R1/{T0}/PT1H")) as made:
        made.clock.set(at(0))
        gone, other = made.replica("gone"), made.replica("other")
        (first,) = gone._scheduler.claim_starts()
        made.clock.advance(LEASE - 1)
        assert other._scheduler.claim_instances(5) == []
        made.clock.advance(1)
        assert other._scheduler.claim_instances(0) == []
        (work,) = other._scheduler.claim_instances(5)
        assert work.claim.token > first.claim.token
        assert made.rows(schema.instance)[0].holder == "other"
        assert other._worker.step(work.claim)
        assert other._scheduler.claim_instances(5) == []


def test_at_most_so_many_orphans_are_taken_at_a_time(tmp_path: Path, store_url: str) -> None:
    with world(tmp_path, store_url, many({f"t{n}": T0 for n in range(7)})) as made:
        made.clock.set(at(0))
        assert len(made.replica("gone")._scheduler.claim_starts()) == 7
        made.clock.advance(LEASE)
        replica = made.replica("other")
        sizes = []
        while work := replica._scheduler.claim_instances(3):
            sizes.append(len(work))
            for one in work:
                replica._worker.step(one.claim)
        assert sizes == [3, 3, 1]


# ---------------------------------------------------------------------- changed expressions


def test_a_changed_expression_is_not_claimed_until_it_is_accepted_and_then_by_all(
    tmp_path: Path, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Ruling 19b: a rolling deploy never fires one event by two schedules."""
    with world(tmp_path, store_url, ticking(f"R/{T0}/PT1H")) as made:
        old = made.replica("old")
        changed = made.model(ticking("R/2026-11-09T08:30:00Z/PT1H"), "changed")
        new = made.replica("new", graph=changed, join=True)
        assert new.changed == {"m.bpmn#tick": f"timeCycle R/{T0}/PT1H"}
        assert "timer changed m.bpmn#tick here timeCycle R/2026-11-09T08:30:00Z/PT1H" in caplog.text
        made.clock.set(at(1_900))
        assert new.settle() == 0
        assert old.settle() == 1
        assert [row.due for row in made.rows(schema.firing)] == [at(0)]
        accepting = made.replica("accepting", graph=changed, join=True, accept=True)
        assert "timer change accepted m.bpmn#tick" in caplog.text
        assert accepting.changed == {}
        old._scheduler.refresh()
        new._scheduler.refresh()
        assert old.changed
        assert not new.changed
        assert old.settle() == 0
        assert new.settle() == 1
        assert [row.due for row in made.rows(schema.firing)] == [at(0), at(1_800)]
        made.clock.set(at(3_605))
        assert old.settle() == 0, "the old schedule fires no more"
        assert old.next_wake() is None


def test_a_change_between_two_looks_is_seen_in_the_transaction_of_the_claim(
    tmp_path: Path, store_url: str
) -> None:
    with world(tmp_path, store_url, ticking(f"R/{T0}/PT1H")) as made:
        old = made.replica("old")
        changed = made.model(ticking("R/2026-11-09T08:30:00Z/PT1H"), "changed")
        made.replica("new", graph=changed, join=True, accept=True)
        made.clock.set(at(5))
        assert old._scheduler.claim_starts() == [], "it has not looked, and yet claims nothing"
        assert made.rows(schema.firing) == []


def test_a_changed_wait_is_left_to_replicas_that_agree(tmp_path: Path, store_url: str) -> None:
    def text(length: str) -> str:
        return bpmn(START + catch("w", "timeDuration", length) + END, "s w; w e")

    with world(tmp_path, store_url, text("PT10M")) as made:
        made.replica("old").start_process("p")
        new = made.replica("new", graph=made.model(text("PT20M"), "changed"), join=True)
        made.clock.advance(10 * MINUTE)
        assert new.settle() == 0
        assert made.replica("old").settle() == 1


# ---------------------------------------------------------------------- failures, waking


def test_a_start_that_cannot_be_made_is_recorded_and_holds_up_no_other(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    with world(tmp_path, store_url, many({"bad": T0, "good": T0})) as made:
        replica = made.replica()
        engine = made.loaded(made.graph)[1]
        begin = engine.begin

        def fails(process: str, data: object, start: str, *rest: object) -> str:
            if start.endswith("#bad"):
                raise ValueError("no such\nthing")
            return begin(process, data, start, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(engine, "begin", fails)
        made.clock.set(at(0))
        assert replica.settle() == 1
        (row,) = [r for r in made.rows(schema.timer) if r.event == "m.bpmn#bad"]
        assert (row.failure, row.attempts) == ("ValueError: no such thing", 1)
        assert row.retry_at == at(1)
        assert "timer start failed m.bpmn#bad" in caplog.text
        assert replica.next_wake() == at(1)
        assert made.replica("other").settle() == 0, "another replica heeds the pause too"
        (row,) = [r for r in made.rows(schema.timer) if r.event == "m.bpmn#bad"]
        assert row.attempts == 1
        made.clock.set(at(1))
        monkeypatch.setattr(engine, "begin", begin)
        assert made.replica("other").settle() == 1
        (row,) = [r for r in made.rows(schema.timer) if r.event == "m.bpmn#bad"]
        assert (row.failure, row.attempts, row.retry_at) == (None, 0, None)


@pytest.mark.parametrize(
    ("text", "now", "wake"),
    [
        (f"R/{T0}/PT1H", "2026-11-09T07:00:00Z", T0),
        (f"R/{T0}/PT1H", T0, T0),
        (f"R/{T0}/PT1H", "2026-11-09T08:10:00Z", "2026-11-09T08:10:00Z"),
        (f"R1/{T0}/PT1H", "2026-11-09T07:00:00Z", T0),
    ],
    ids=["coming", "now", "overdue: at once", "the only one"],
)
def test_it_wakes_when_something_can_next_be_claimed(
    tmp_path: Path, store_url: str, text: str, now: str, wake: str
) -> None:
    with world(tmp_path, store_url, ticking(text), start=now) as made:
        assert made.replica().next_wake() == to_micros(wake)


def test_it_wakes_for_waits_leases_and_what_comes_after(tmp_path: Path, store_url: str) -> None:
    texts = {**waiting("a"), "t": ticking(f"R/{T0}/PT1H", identifier="q"), "u": asking()}
    with world(tmp_path, store_url, texts, start="2026-11-09T08:00:01Z") as made:
        replica = made.replica()
        replica.settle()
        assert replica.next_wake() == at(3_600)
        replica.start_process("pa")
        assert replica.next_wake() == at(601)
        made.clock.set(at(601))
        assert replica._scheduler.claim_waits(5)
        assert replica.next_wake() == at(601) + LEASE
        made.clock.advance(LEASE)
        replica.settle()
        assert replica.next_wake() == at(0) + HOUR


def test_a_container_without_timers_claims_nothing_and_asks_nothing(
    tmp_path: Path, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with world(tmp_path, store_url, asking()) as made, caplog.at_level(logging.DEBUG):
        replica = made.replica()
        asked: list[str] = []
        replica.store.watch = asked.append
        assert replica._scheduler.claim_starts() == []
        assert replica._scheduler.claim_waits(5) == []
        assert asked == []
        assert replica.next_wake() is None


def test_what_is_claimed_elsewhere_is_counted_and_no_error(
    tmp_path: Path, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with world(tmp_path, store_url, ticking(f"R/{T0}/PT1H")) as made:
        made.clock.set(at(5))
        one, other = made.replica("one"), made.replica("other")
        with caplog.at_level(logging.DEBUG, "seams_lab.timer"):
            one.settle()
            assert f"timer fire m.bpmn#tick due {T0} instance " in caplog.text
            assert other._scheduler.claim_starts() == []
        assert f"timer claimed elsewhere m.bpmn#tick due {T0}" in caplog.text
        assert [r.levelname for r in caplog.records if "elsewhere" in r.message] == ["DEBUG"]
        assert one.telemetry.counters.fired == other.telemetry.counters.claimed_elsewhere == 1
        assert other.telemetry.counters.fired == 0
        assert one.telemetry.counters.lateness_max == 5 * SECOND
