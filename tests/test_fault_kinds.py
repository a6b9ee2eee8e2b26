"""Faults that engines have shipped, one kind each; an id such as S19 names the public report."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.engines import START, boundary, bpmn, timer

from seams_lab.clock import ManualClock, SystemClock
from seams_lab.errors import ResolutionError
from seams_lab.expressions import SECOND
from seams_lab.instants import to_micros, to_text
from seams_lab.runtime import schema
from seams_lab.runtime.runtime import Runtime
from tests.worlds import (
    LEASE,
    MINUTE,
    T0,
    Killer,
    World,
    asking,
    at,
    killed,
    ticking,
    verify,
    world,
)

ASKED = '<userTask id="u"/><endEvent id="e"/>'
REMINDED = asking(
    boundary("t", "timeDuration", "PT10M"), "t r; r f", '<serviceTask id="r"/><endEvent id="f"/>'
)


def firings(made: World) -> list[tuple[str, int]]:
    """(due as text, skipped) of each start, in order."""
    return [(to_text(row.due), row.skipped) for row in made.rows(schema.firing)]


def ticks(first: str, period: str, count: int) -> Iterator[str]:
    """Instants at which a replica looks."""
    stepping = ManualClock(first)
    for _ in range(count):
        yield to_text(stepping.now())
        stepping.advance(period)


#: Kind → (expression of a start, when a replica looks, what fires: due and skipped).
LOOKS: dict[str, tuple[str, list[str], list[tuple[str, int]]]] = {
    "S1 a flood after an outage": (
        "R/2022-07-04T00:40:00+08:00/PT5M",
        ["2022-07-03T16:40:00Z", "2022-07-03T16:45:01Z", "2022-07-03T16:50:00Z",
         "2022-07-03T16:55:00Z", "2022-07-03T17:12:23Z"],
        [("2022-07-03T16:40:00Z", 0), ("2022-07-03T16:45:00Z", 0), ("2022-07-03T16:50:00Z", 0),
         ("2022-07-03T16:55:00Z", 0), ("2022-07-03T17:10:00Z", 2)],
    ),
    "S3 the grid moves to the deployment": (
        "R/2023-07-01T00:00:00+02:00/PT15M",
        ["2023-07-01T06:10:00Z", "2023-07-01T06:14:59Z", "2023-07-01T06:15:00Z",
         "2023-07-01T06:25:00Z", "2023-07-01T06:30:00Z"],
        [("2023-07-01T06:00:00Z", 32), ("2023-07-01T06:15:00Z", 0), ("2023-07-01T06:30:00Z", 0)],
    ),
    "S6 a bounded cycle that began before": (
        f"R3/{T0}/PT10M",
        ["2026-11-09T08:25:00Z", "2026-11-09T08:30:00Z", "2026-11-10T08:30:00Z"],
        [("2026-11-09T08:20:00Z", 2)],
    ),
    "S11 three and one more": (
        "R3/2036-11-15T11:00:00Z/PT10S", list(ticks("2036-11-15T10:59:58Z", "PT1S", 50)),
        [("2036-11-15T11:00:00Z", 0), ("2036-11-15T11:00:10Z", 0), ("2036-11-15T11:00:20Z", 0)],
    ),
    "S11 one and one more": (
        "R1/2036-11-15T11:00:00Z/PT10S", list(ticks("2036-11-15T10:59:58Z", "PT1S", 20)),
        [("2036-11-15T11:00:00Z", 0)],
    ),
    "S15 now as the due time": (
        "R1/2021-07-01T19:22:00Z/P1D", ["2021-08-05T00:00:00Z", "2021-08-06T00:00:00Z"],
        [("2021-07-01T19:22:00Z", 0)],
    ),
    "S31 a busy worker loses periods": (
        f"R/{T0}/PT1M", [T0, "2026-11-09T08:30:59Z"],
        [(T0, 0), ("2026-11-09T08:30:00Z", 29)],
    ),
    "S32 summer time begins": (
        "R/2024-03-30T02:30:00+01:00/P1D", list(ticks("2024-03-30T00:00:00Z", "PT30M", 120)),
        [("2024-03-30T01:30:00Z", 0), ("2024-03-31T01:30:00Z", 0), ("2024-04-01T01:30:00Z", 0)],
    ),
    "S34 summer time ends": (
        "R25/2026-11-01T00:00:00-07:00/PT1H", list(ticks("2026-11-01T06:30:00Z", "PT30M", 70)),
        [(instant, 0) for instant in ticks("2026-11-01T07:00:00Z", "PT1H", 25)],
    ),
    "S39 a suspended machine": (
        f"R/{T0}/PT10S", [T0, "2026-11-09T09:18:00Z"],
        [(T0, 0), ("2026-11-09T09:18:00Z", 467)],
    ),
    "S44 the 31st of the month": (
        "R6/2024-01-31T10:00:00Z/P1M", list(ticks("2024-01-31T00:00:00Z", "P1D", 200)),
        [("2024-01-31T10:00:00Z", 0), ("2024-02-29T10:00:00Z", 0), ("2024-03-31T10:00:00Z", 0),
         ("2024-04-30T10:00:00Z", 0), ("2024-05-31T10:00:00Z", 0), ("2024-06-30T10:00:00Z", 0)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "looks", "expected"), LOOKS.values(), ids=list(LOOKS))
def test_what_fires_is_the_newest_due_time_and_the_rest_is_counted(
    tmp_path: Path, store_url: str, text: str, looks: list[str], expected: list[tuple[str, int]],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    with world(tmp_path, store_url, ticking(text), start=looks[0]) as made:
        replica = made.replica()
        for instant in looks:
            made.clock.set(instant)
            replica._scheduler.claim_starts()
        assert firings(made) == expected
        missed = [r.getMessage() for r in caplog.records if "timer missed" in r.getMessage()]
        assert missed == [f"timer missed m.bpmn#tick {n} firing(s)" for _, n in expected if n]
        if text.startswith(("R1/", "R3/")):
            made.clock.advance(LEASE)
            replica.settle()
            assert replica.next_wake() is None, "a series that has ended wakes nobody"
        if "P1" not in text:
            verify(made, settled=False)


@pytest.mark.parametrize("row", ["S39"])
def test_a_gap_of_years_costs_no_more_than_one_of_seconds(
    tmp_path: Path, store_url: str, row: str
) -> None:
    with world(tmp_path, store_url, ticking("R/1990-01-01T00:00:00Z/PT1S")) as made:
        replica = made.replica()
        statements: list[str] = []
        replica.store.watch = statements.append
        made.clock.set("2026-01-01T00:00:00Z")
        replica.settle()
        first, statements[:] = list(statements), []
        made.clock.advance(2 * SECOND)
        replica.settle()
        assert statements == first
        seconds = (to_micros("2026-01-01T00:00:00Z") - to_micros("1990-01-01T00:00:00Z")) // SECOND
        assert [skipped for _, skipped in firings(made)] == [seconds, 1]


@pytest.mark.parametrize("row", ["S4"])
def test_lateness_does_not_move_the_grid_and_a_firing_names_its_own_start(
    tmp_path: Path, store_url: str, row: str
) -> None:
    starts = "".join(
        f'<startEvent id="{name}">{timer("timeCycle", f"R/{T0}/{period}")}</startEvent>'
        for name, period in (("ten", "PT10S"), ("hour", "PT1H"))
    )
    text = bpmn(
        f'<startEvent id="none"/>{starts}<endEvent id="e"/>', "none e; ten e; hour e"
    )  # fmt: skip
    with world(tmp_path, store_url, text) as made:
        replica = made.replica()
        replica.start_process("p", start="none", correlation_key="by hand")
        made.clock.set(at(0))
        for _ in range(100):
            replica._scheduler.claim_starts()
            made.clock.advance(3_300_000)
        made.heal()
        verify(made)
        dues = [row.due for row in made.rows(schema.firing) if row.event == "m.bpmn#ten"]
        assert {(due - at()) % (10 * SECOND) for due in dues} == {0}
        assert len(dues) >= 33
        began = {row.instance: row.element for row in made.rows(schema.trace) if row.position == 0}
        for row_ in made.rows(schema.firing):
            assert began[row_.instance] == row_.event
        assert sum(element == "m.bpmn#none" for element in began.values()) == 1


@pytest.mark.parametrize("row", ["S5"])
def test_one_due_time_is_one_row_however_often_it_is_inserted(
    tmp_path: Path, store_url: str, row: str
) -> None:
    with world(tmp_path, store_url, ticking("R/2026-01-10T20:00:00Z/P1M")) as made:
        for name in ("a", "b", "a"):
            made.replica(name).settle()
        (fired,) = made.rows(schema.firing)
        with made.reader.transaction() as tx:
            assert tx.insert_firings([dict(fired._mapping)]) == set()
        assert firings(made) == [("2026-10-10T20:00:00Z", 9)]


@pytest.mark.parametrize("row", ["S8"])
def test_many_timers_due_at_once_are_one_wake_up_and_few_writes(
    tmp_path: Path, store_url: str, row: str
) -> None:
    names = [f"t{n}" for n in range(250)]
    starts = "".join(
        f'<startEvent id="{n}">{timer("timeDate", T0)}</startEvent>' for n in names
    )  # fmt: skip
    text = bpmn(starts + '<endEvent id="e"/>', "; ".join(f"{n} e" for n in names))
    with world(tmp_path, store_url, text) as made:
        one, other = made.replica("one"), made.replica("other")
        assert one.next_wake() == at(0)
        made.clock.set(at(0))
        for replica, expected in ((one, 3), (other, 0)):
            seen: list[str] = []
            replica.store.watch = seen.append
            rounds = 0
            while replica._scheduler.claim_starts():
                rounds += 1
            assert (rounds, seen.count("insert_firings")) == (expected, expected)
        assert len(made.rows(schema.firing)) == 250


@pytest.mark.parametrize("name", ["same", "other"])
@pytest.mark.parametrize("word", ["commit", "committed"], ids=["S10 before", "S10 after"])
def test_what_was_in_flight_is_not_stuck_after_a_restart(
    tmp_path: Path, store_url: str, word: str, name: str
) -> None:
    with world(
        tmp_path, store_url, ticking(f"R1/{T0}/PT1H", nodes=ASKED, flows="tick u; u e")
    ) as made:
        made.clock.set(at(0))
        assert killed(made.replica("same"), lambda r: r._scheduler.claim_starts(), Killer(1, word))
        again = made.replica(name)
        assert again.settle() == (word == "commit")
        made.clock.advance(LEASE)
        assert again.settle() == (word == "committed")
        verify(made)
        assert made.statuses() == {"waiting": 1}


LONG = {
    "S12 longer than the lease, not renewed": False,
    "S13 longer than the lease, renewed": True,
}  # fmt: skip


@pytest.mark.parametrize("renewed", LONG.values(), ids=list(LONG))
def test_a_step_longer_than_its_lease_is_committed_once(
    tmp_path: Path, store_url: str, renewed: bool
) -> None:
    ran: list[str] = []

    def slow(data: dict[str, Any], context: Any) -> None:
        ran.append(context.instance)
        if len(ran) > 1:
            return
        for _ in range(6):
            made.clock.advance(LEASE // 3)
            if renewed:
                owner._worker.renew()
            other.settle()

    text = ticking(
        f"R1/{T0}/PT1H", nodes='<serviceTask id="r"/><endEvent id="e"/>', flows="tick r; r e"
    )
    with world(tmp_path, store_url, text, handlers={"r": slow}) as made:
        owner, other = made.replica("owner"), made.replica("other")
        made.clock.set(at(0))
        owner.settle()
        verify(made)
        assert len(ran) == (1 if renewed else 2)
        assert made.paths() == [["tick", "r", "e"]]
        writers = {row.replica for row in made.rows(schema.trace)}
        assert writers == {"owner" if renewed else "other"}


@pytest.mark.parametrize("row", ["S22", "S41"])
def test_a_handler_that_blocks_the_only_worker_does_not_starve_the_renewal(
    tmp_path: Path, row: str
) -> None:
    """On the host's clock: two replicas with one worker each, a lease shorter than the handler.

    S41: renewed at a third of the lease; at its whole length the other would take it.
    """
    lease, longer = 3.0, 4.5
    ran: list[str] = []
    running, ended = threading.Event(), threading.Event()

    def blocking(data: dict[str, Any], context: Any) -> None:
        ran.append(context.instance)
        running.set()
        ended.wait(longer)

    start = to_text(SystemClock().now() // SECOND * SECOND)
    text = ticking(
        f"R1/{start}/PT1H", nodes='<serviceTask id="r"/><endEvent id="e"/>', flows="tick r; r e"
    )
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with world(tmp_path, url, text) as made:
        options: dict[str, Any] = {"handlers": {"r": blocking}, "lease": lease, "poll": 0.05,
                                   "workers": 1}  # fmt: skip
        replicas = [Runtime.load(made.graph, store=url, **options) for _ in range(2)]

        async def both() -> None:
            tasks = [asyncio.create_task(replica.run()) for replica in replicas]
            assert await asyncio.to_thread(running.wait, 30)
            await asyncio.sleep(longer + 0.2)
            for replica in replicas:
                replica.stop()
            await asyncio.gather(*tasks)

        asyncio.run(both())
        assert len(ran) == 1
        assert made.statuses() == {"completed": 1}
        for replica in replicas:
            replica.close()


@pytest.mark.parametrize("row", ["S16"])
def test_a_due_time_is_computed_once_and_no_reload_moves_it(
    tmp_path: Path, store_url: str, row: str
) -> None:
    with world(tmp_path, store_url, REMINDED) as made:
        found = made.replica().start_process("p")
        for seconds in range(7):
            made.clock.advance(seconds * SECOND)
            made.replica().settle()
            (waiting,) = made.replica().instance(found.id).waits
            assert waiting == ("m.bpmn#t", at(-60) + 10 * MINUTE)
    with world(tmp_path, store_url, asking(
        boundary("t", "timeCycle", f"R3/{T0}/PT10S"), "t f", '<endEvent id="f"/>'
    )) as made:  # fmt: skip
        made.empty()
        made.replica().start_process("p")
        for instant in ticks("2026-11-09T07:59:00Z", "PT3S", 40):
            made.clock.set(instant)
            made.replica().settle()
        assert [due for _, due, _ in made.firings()] == [0, 10, 20]
        verify(made)


@pytest.mark.parametrize("row", ["S17"])
def test_a_series_does_not_wait_for_its_instances(tmp_path: Path, store_url: str, row: str) -> None:
    text = ticking(f"R3/{T0}/PT1M", nodes=ASKED, flows="tick u; u e")
    with world(tmp_path, store_url, text) as made:
        replica = made.replica()
        for minutes in range(5):
            made.clock.set(at(60 * minutes))
            replica.settle()
        assert [due for _, due, _ in made.firings()] == [0, 60, 120]
        assert made.statuses() == {"waiting": 3}
        verify(made)


REFUSED = {
    "S5 it depends on now": "R/P1M",
    "S11 none at all": f"R0/{T0}/PT10S",
    "S16 no start": "R3/PT10S",
    "S18 two lengths": "R/P1D/T03H59M59S",
    "S18 hours without T": "R/PT20H10M59S",
    "S35 no offset": "2024-01-31T10:00:00",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=list(REFUSED))
def test_what_engines_guess_about_is_refused_with_its_place_and_starts_nothing(
    tmp_path: Path, store_url: str, text: str
) -> None:
    kind = "timeDate" if text.startswith("2") else "timeCycle"
    good = ticking(f"R/{T0}/PT1M", identifier="q")
    with world(tmp_path, store_url, {"m": ticking(text, kind), "n": good}) as made:
        with pytest.raises(ResolutionError) as refusal:
            Runtime.load(made.graph, store=store_url, clock=made.clock)
        assert "m.bpmn#tick" in str(refusal.value)
        assert text in str(refusal.value)
        assert made.rows(schema.timer) == []


@pytest.mark.parametrize("row", ["S18"])
def test_a_replica_sleeps_until_the_very_next_due_time(
    tmp_path: Path, store_url: str, row: str
) -> None:
    text = ticking("R5/2024-04-15T18:20:00Z/PT7S")
    with world(tmp_path, store_url, text, start="2024-04-15T18:19:00Z") as made:
        replica = made.replica()
        woken = []
        while (wake := replica.next_wake()) is not None:
            woken.append(to_text(wake))
            made.clock.set(wake)
            assert replica.settle() == 1
        assert woken == list(ticks("2024-04-15T18:20:00Z", "PT7S", 5))


@pytest.mark.parametrize("row", ["S19"])
def test_a_claim_of_a_due_time_that_has_passed_on_affects_nothing(
    tmp_path: Path, store_url: str, row: str
) -> None:
    """A start by its due time, a wait by its task: neither is a state that comes back."""
    text = ticking(
        f"R/{T0}/PT1H", nodes=ASKED + boundary("t", "timeCycle", f"R/{T0}/PT1M")
        + '<endEvent id="f"/>', flows="tick u; u e; t f",
    )  # fmt: skip
    with world(tmp_path, store_url, text) as made:
        stale = made.replica("stale", clock=ManualClock(at(5)))
        slow, quick = made.replica("slow"), made.replica("quick")
        made.clock.set(at(3_605))
        quick.settle()
        assert stale._scheduler.claim_starts() == []
        made.clock.set(at(3_660))
        work = slow._scheduler.claim_waits(5)
        assert len(work) == 1
        made.clock.advance(LEASE)
        quick.settle()
        held = made.dump()
        assert [slow._worker.step(one.claim) for one in work] == [False]
        assert made.dump() == held
        verify(made)


@pytest.mark.parametrize("row", ["S21"])
def test_under_load_each_due_time_is_fired_or_counted(
    tmp_path: Path, store_url: str, row: str
) -> None:
    """Fifty timers, and one slow replica that claims five at a time."""
    names = [f"t{n}" for n in range(50)]
    starts = "".join(
        f'<startEvent id="{n}">{timer("timeCycle", f"R/{T0}/PT1M")}</startEvent>' for n in names
    )  # fmt: skip
    text = bpmn(starts + '<endEvent id="e"/>', "; ".join(f"{n} e" for n in names))
    with world(tmp_path, store_url, text) as made:
        replica = made.replica(batch=5)
        made.clock.set(at(0))
        for _ in range(30):
            replica._scheduler.claim_starts()
            made.clock.advance(20 * SECOND)
        assert {row_.event for row_ in made.rows(schema.firing)} >= {
            f"m.bpmn#{n}" for n in names
        }, "the oldest due times come first, so none is forgotten"
        made.heal()
        verify(made)
        counted = [(1, skipped) for _, skipped in firings(made)]
        due = 50 * ((made.clock.now() - at()) // MINUTE + 1)
        assert sum(map(sum, counted)) == due


@pytest.mark.parametrize("row", ["S24"])
def test_kills_leave_no_counter_behind(tmp_path: Path, store_url: str, row: str) -> None:
    names = [f"t{n}" for n in range(4)]
    starts = "".join(
        f'<startEvent id="{n}">{timer("timeDate", to_text(at(60 * i)))}</startEvent>'
        for i, n in enumerate(names)
    )
    text = bpmn(starts + ASKED, "u e; " + "; ".join(f"{n} u" for n in names))
    with world(tmp_path, store_url, text) as made:
        for number in range(3):
            made.clock.set(at(60 * number))
            killer = Killer(1 + number, "committed")
            killed(made.replica("same"), lambda r: r._scheduler.claim_starts(), killer)
        made.clock.set(at(180))
        replica = made.replica("same")
        replica.settle()
        made.heal()
        assert made.statuses() == {"waiting": 4}
        verify(made)


@pytest.mark.parametrize("row", ["S25"])
def test_replicas_that_wake_together_fire_once(tmp_path: Path, store_url: str, row: str) -> None:
    names = [f"t{n}" for n in range(40)]
    starts = "".join(
        f'<startEvent id="{n}">{timer("timeDate", T0)}</startEvent>' for n in names
    )  # fmt: skip
    text = bpmn(starts + '<endEvent id="e"/>', "; ".join(f"{n} e" for n in names))
    with world(tmp_path, store_url, text) as made:
        replicas = [made.replica(f"r{n}", batch=7) for n in range(3)]
        made.clock.set(at(0))
        errors: list[BaseException] = []
        together = threading.Barrier(3)

        def work(replica: Runtime) -> None:
            try:
                together.wait()
                replica.settle()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(replica,)) for replica in replicas]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert errors == []
        made.heal()
        verify(made)
        assert made.statuses() == {"completed": 40}
        assert sum(replica.telemetry.counters.fired for replica in replicas) == 40


@pytest.mark.parametrize("word", ["insert_instances", "commit"])
@pytest.mark.parametrize("row", ["S28"])
def test_a_firing_is_never_recorded_without_its_instance(
    tmp_path: Path, store_url: str, row: str, word: str
) -> None:
    with world(tmp_path, store_url, ticking(f"R/{T0}/PT1H")) as made:
        made.clock.set(at(0))
        assert killed(made.replica(), lambda r: r._scheduler.claim_starts(), Killer(1, word))
        assert made.rows(schema.firing) == []
        assert made.rows(schema.instance) == []
        assert made.replica().settle() == 1
        verify(made)


@pytest.mark.parametrize("row", ["S29", "S38"])
def test_a_firing_that_is_there_already_aborts_nothing(
    tmp_path: Path, store_url: str, row: str
) -> None:
    """S29: its batch-mates are started. S38: neither does it at any restart."""
    names = [f"t{n:02}" for n in range(60)]
    starts = "".join(
        f'<startEvent id="{n}">{timer("timeCycle", f"R/{T0}/PT1H")}</startEvent>' for n in names
    )  # fmt: skip
    text = bpmn(starts + '<endEvent id="e"/>', "; ".join(f"{n} e" for n in names))
    there = {"event": "m.bpmn#t30", "due": at(), "waiter": "", "instance": "by hand", "skipped": 0,
             "fired_at": at(), "fired_by": "hand"}  # fmt: skip
    with world(tmp_path, store_url, text) as made:
        replica = made.replica()
        made.clock.set(at(0))
        made.execute(schema.firing.insert(), [there])
        assert replica.settle() == 59
        assert made.statuses() == {"completed": 59}
        for _ in range(2):
            assert made.replica(join=True).settle() == 0
        made.clock.set(at(3_600))
        assert made.replica().settle() == 60, "the next due time of that event is no worse off"


@pytest.mark.parametrize("row", ["S29"])
def test_a_row_that_comes_between_the_look_and_the_insert_is_a_normal_outcome(
    tmp_path: Path, store_url: str, row: str
) -> None:
    """As when a lock did not hold: what the insert says decides, and the rest goes on."""
    texts = {"m": ticking(f"R/{T0}/PT1H"), "n": ticking(f"R/{T0}/PT1H", identifier="q")}
    with world(tmp_path, store_url, texts) as made:
        replica = made.replica()
        made.clock.set(at(0))
        there = {"event": "m.bpmn#tick", "due": at(), "waiter": "", "instance": "x", "skipped": 0,
                 "fired_at": at(), "fired_by": "x"}  # fmt: skip
        with made.reader.transaction() as tx:
            due = {"m.bpmn#tick": at(), "n.bpmn#tick": at()}
            look = tx.newest_starts

            def then_another_inserts(events: Any) -> dict[str, int]:
                found = look(events)
                assert tx.insert_firings([there])
                return found

            tx.newest_starts = then_another_inserts  # type: ignore[method-assign]
            batch = replica._scheduler._claim(tx, due, made.clock.now())
        assert [work.start.event for work in batch.work if work.start] == ["n.bpmn#tick"]
        assert batch.elsewhere == [("m.bpmn#tick", at())]
        assert [row_.correlation_key for row_ in made.rows(schema.instance)] == [T0]


@pytest.mark.parametrize("row", ["S36"])
def test_a_lease_is_renewed_only_by_who_still_holds_it(
    tmp_path: Path, store_url: str, row: str
) -> None:
    with world(tmp_path, store_url, REMINDED) as made:
        sleeper, other = made.replica("same"), made.replica("same")
        sleeper.start_process("p")
        made.clock.advance(10 * MINUTE)
        work = sleeper._scheduler.claim_waits(5)
        sleeper._worker.hold([one.claim for one in work])
        made.clock.advance(LEASE)
        theirs = other._scheduler.claim_waits(5)
        assert len(work) == len(theirs) == 1
        held = made.dump()
        sleeper._worker.renew()
        assert made.dump() == held
        assert sleeper._worker._held == {}, "and it stops to renew"
        other._worker.hold([one.claim for one in theirs])
        made.clock.advance(SECOND)
        other._worker.renew()
        expiries = {row_.claimable_at for row_ in made.rows(schema.instance)}
        expiries |= {row_.claimable_at for row_ in made.rows(schema.wait)}
        assert expiries == {made.clock.now() + LEASE}
        assert [sleeper._worker.step(one.claim) for one in work] == [False]
        assert [other._worker.step(one.claim) for one in theirs] == [True]
        verify(made)


ENDINGS: dict[str, tuple[str, Callable[[World, Runtime], Any]]] = {
    "S43 its task is answered": (
        REMINDED, lambda made, replica: replica.complete(replica.instances()[0]),
    ),
    "S43 another timer ends it": (
        asking(boundary("t", "timeDuration", "PT10M")
               + boundary("x", "timeDuration", "PT5M", "true"),
               "t f; x g", '<endEvent id="f"/><endEvent id="g"/>'),
        lambda made, replica: (made.clock.advance(5 * MINUTE), replica.settle()),
    ),
    "S43 both are overdue, the ending one first": (
        asking(boundary("t", "timeDuration", "PT10M")
               + boundary("x", "timeDuration", "PT5M", "true"),
               "t f; x g", '<endEvent id="f"/><endEvent id="g"/>'),
        lambda made, replica: (made.clock.advance(60 * MINUTE), replica.settle()),
    ),
    "S43 the other branch of an event gateway": (
        bpmn(
            START + '<eventBasedGateway id="g"/>'
            + "".join(f'<intermediateCatchEvent id="{n}">{timer("timeDuration", d)}'
                      "</intermediateCatchEvent>" for n, d in (("one", "PT5M"), ("two", "PT10M")))
            + '<endEvent id="e"/>',
            "s g; g one; g two; one e; two e",
        ),
        lambda made, replica: (made.clock.advance(60 * MINUTE), replica.settle()),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "end"), ENDINGS.values(), ids=list(ENDINGS))
def test_what_ends_an_instance_deletes_its_timers(
    tmp_path: Path, store_url: str, text: str, end: Callable[[World, Runtime], Any]
) -> None:
    with world(tmp_path, store_url, text) as made:
        replica = made.replica()
        replica.start_process("p")
        assert len(made.rows(schema.wait)) > 0
        end(made, replica)
        assert made.rows(schema.wait) == []
        assert made.statuses() == {"completed": 1}
        before = made.firings()
        assert len(before) <= 1
        made.clock.advance(60 * MINUTE)
        assert made.replica("later").settle() == 0
        assert made.firings() == before
        verify(made)


def test_every_reported_kind_of_scheduler_fault_has_a_case(request: pytest.FixtureRequest) -> None:
    """The kinds that this project is tested against, here and in test_faults (S27)."""
    text = Path(__file__).read_text("utf-8")
    kinds = [1, 3, 4, 5, 6, 8, 10, 11, 12, 13, 15, 16, 17, 18, 19, 21, 22, 24, 25, 28, 29, 31, 32,
             34, 35, 36, 38, 39, 41, 43, 44]  # fmt: skip
    assert [n for n in kinds if f'"S{n} ' not in text and f'"S{n}"' not in text] == []
