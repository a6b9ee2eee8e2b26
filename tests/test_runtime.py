"""One replica as a person holds it: load, start, complete, look, agree with the others."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.engines import boundary

import seams_lab as sl
from seams_lab.errors import ResolutionError, UnusableInput
from seams_lab.expressions import SECOND
from seams_lab.runtime import schema
from seams_lab.runtime.runtime import Runtime
from seams_lab.runtime.store import StoreClock
from tests.worlds import LEASE, T0, asking, ticking, world

MORNING, HOUR_LATER = f"R/{T0}/P1D", "R/2026-11-09T09:00:00Z/P1D"


@pytest.fixture
def clock() -> sl.ManualClock:
    return sl.ManualClock("2026-11-09T07:59:00Z")


@pytest.fixture
def runtime(models: Path, store_url: str, clock: sl.ManualClock) -> Iterator[Runtime]:
    with Runtime.load(models / "expense", "api", store_url, clock=clock) as loaded:
        yield loaded


# ---------------------------------------------------------------------- loading


def test_a_refused_model_leaves_the_store_as_it_was(tmp_path: Path, store_url: str) -> None:
    model = tmp_path / "bad.bpmn"
    model.write_text(ticking("R/P1D"), "utf-8")
    with pytest.raises(ResolutionError, match="cycle has no start date-time: 'R/P1D'"):
        Runtime.load(model, store=store_url)
    with sl.Store(store_url) as store, store.reading() as tx:
        assert tx.facts().keys() == {"format", "version"}


SCRIPT = ticking(MORNING, nodes='<scriptTask id="x"><script>y = 1</script></scriptTask>'
                 '<endEvent id="e"/>', flows="tick x; x e")  # fmt: skip


def test_code_in_a_model_runs_only_when_its_owner_allows_it(tmp_path: Path) -> None:
    model = tmp_path / "script.bpmn"
    model.write_text(SCRIPT, "utf-8")
    with pytest.raises(ResolutionError, match="allow"):
        Runtime.load(model)
    clock = sl.ManualClock(T0)
    with Runtime.load(model, clock=clock, allow_scripts=True) as allowed:
        allowed.settle()
        [one] = allowed.instances()
        assert (one.status, allowed.data(one)) == ("completed", {"y": 1})


def test_by_default_the_store_is_what_the_environment_says(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEAMS_STORE", f"sqlite:///{tmp_path}/named.db")
    with Runtime.load(models / "expense", "api") as named:
        assert named.store.name.endswith("named.db")
        assert isinstance(named.clock, StoreClock)
    monkeypatch.delenv("SEAMS_STORE")
    with Runtime.load(models / "expense", "api") as in_memory:
        assert in_memory.store.name == "sqlite://"


def test_tasks_without_a_handler_are_named_when_it_is_loaded(
    models: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Runtime.load(models / "expense", "report_worker"):
        pass
    assert "total_by_team" in caplog.text
    assert "complete without doing anything" in caplog.text


# ---------------------------------------------------------------------- the deciding clock


def test_the_offset_is_added_to_the_clock_of_the_store(
    models: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEAMS_CLOCK_OFFSET", "PT48H")
    with Runtime.load(models / "expense", "api", store_url) as shifted:
        ahead = shifted.clock.now() - StoreClock(shifted.store).now()
        assert abs(ahead - 48 * 3_600 * SECOND) < 60 * SECOND
        assert shifted.status().clock_offset == 48 * 3_600 * SECOND


def test_a_replica_with_another_offset_is_refused_unless_told_to_replace_it(
    models: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = sl.load(models / "expense")
    Runtime.load(model, "api", store_url).close()
    monkeypatch.setenv("SEAMS_CLOCK_OFFSET", "-P1D")
    with pytest.raises(UnusableInput, match=r"-86400 s.*0 s.*--replace-offset"):
        Runtime.load(model, "api", store_url)
    Runtime.load(model, "api", store_url, replace_offset=True).close()
    Runtime.load(model, "api", store_url).close()
    monkeypatch.delenv("SEAMS_CLOCK_OFFSET")
    with pytest.raises(UnusableInput, match="SEAMS_CLOCK_OFFSET"):
        Runtime.load(model, "api", store_url)


# ---------------------------------------------------------------------- processes and tasks


def test_an_expense_is_approved_and_another_one_reminded(
    runtime: Runtime, clock: sl.ManualClock
) -> None:
    one = runtime.start_process("approval_process", {"amount": 1}, correlation_key="one")
    two = runtime.start_process("approval_process", {"amount": 2}, correlation_key="two")
    assert sorted(runtime.tasks()["correlation_key"]) == ["one", "two"]
    clock.advance("P1D")
    done = runtime.complete(one, data={"approved": True})
    assert (done.status, runtime.data(done)) == ("completed", {"amount": 1, "approved": True})
    clock.advance("P2D")
    runtime.settle()
    waiting = runtime.instance(two.id)
    assert list(waiting.trace["element"])[-3:] == ["reminder_due", "send_reminder", "reminder_sent"]
    assert [t.name for t in waiting.tasks] == ["Approve expense"], "the task stays open"
    assert str(waiting.trace["due"].iloc[2]) == "2026-11-11 07:59:00+00:00"


def test_a_firing_is_found_by_its_due_time(runtime: Runtime, clock: sl.ManualClock) -> None:
    clock.set("2026-11-12T09:00:00Z")
    runtime.settle()
    assert len(runtime.instances(correlation_key="2026-11-12T08:00:00Z")) == 1
    assert runtime.instances(correlation_key="2026-11-11T08:00:00Z") == []
    timers = runtime.status().timers.set_index("event")
    assert timers.loc["every_morning", "skipped"] == 3


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda r: r.start_process("approval"), ["approval_process"]),
        (lambda r: r.start_process("month_end_process"), ["not in the model"]),
        (lambda r: r.start_process("approval_process", {"x": (1,)}), ["tuple"]),
        (lambda r: r.start_process("approval_process", start="nowhere"), ["expense_submitted"]),
        (lambda r: r.instance("nowhere"), ["not in the store"]),
        (lambda r: r.data("nowhere"), ["not in the store"]),
        (lambda r: r.complete("nowhere"), ["not in the store"]),
        (lambda r: r.retry("nowhere"), ["not in the store"]),
        (lambda r: r.complete(r.start_process("approval_process"), "pay"), ["approve_expense"]),
        (lambda r: r.complete(r.start_process("payout_process")), ["completed"]),
        (lambda r: r.retry(r.start_process("payout_process")), ["a failed instance"]),
        (lambda r: r.complete(r.start_process("approval_process"), data={"x": {1}}), ["set"]),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said_in_words(runtime: Runtime, act: Any, words: list[str]) -> None:
    with pytest.raises(UnusableInput) as refused:
        act(runtime)
    assert all(word in str(refused.value) for word in words)
    assert all(i.holder is None for i in runtime.instances()), "nothing stays held"


def test_a_completion_is_kept_when_what_comes_behind_it_fails(
    tmp_path: Path, store_url: str
) -> None:
    fails = [True]

    def pay(data: dict[str, Any], context: Any) -> dict[str, Any]:
        if fails:
            raise OSError("no connection")
        return {"paid": context.attempt}

    text = asking(nodes='<serviceTask id="pay"/>').replace('targetRef="e"', 'targetRef="pay"')
    last = '<sequenceFlow id="z" sourceRef="pay" targetRef="e"/>'
    text = text.replace("</process>", f"{last}</process>")
    with world(tmp_path, store_url, text, start=T0, handlers={"pay": pay}) as made:
        replica = made.replica()
        one = replica.complete(replica.start_process("p"), data={"answer": 42})
        assert (one.status, one.attempts, one.tasks) == ("failed", 1, ())
        assert one.failure == "m.bpmn#pay: the handler failed: OSError: no connection"
        fails.clear()
        replica.retry(one)
        replica.settle()
        after = replica.instance(one.id)
        assert (after.status, after.failure) == ("completed", None)
        assert replica.data(one) == {"answer": 42, "paid": 1}


def test_an_instance_of_a_replica_that_never_comes_back_is_resumed(
    tmp_path: Path, store_url: str
) -> None:
    with world(tmp_path, store_url, ticking(MORNING), start=T0) as made:
        assert len(made.replica("gone")._scheduler.claim_starts()) == 1
        other = made.replica("other")
        made.clock.advance(LEASE - 1)
        assert other.resume() == 0
        made.clock.advance(1)
        assert other.resume() == 1
        assert other.instances()[0].status == "completed"


# ---------------------------------------------------------------------- a changed model


def test_a_changed_expression_is_claimed_by_nobody_who_has_it_until_it_is_accepted(
    tmp_path: Path, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Ruling 19b: a rolling deployment never fires one event by two schedules."""
    with world(tmp_path, store_url, ticking(MORNING), start=T0) as made:
        old = made.replica("old")
        old.settle()
        new_model = made.model(ticking(HOUR_LATER), "new")
        new = made.replica("new", graph=new_model)
        assert "not claimed until the change is accepted" in caplog.text
        assert list(new.changed) == ["m.bpmn#tick"]
        made.clock.set("2026-11-10T10:00:00Z")
        assert new.settle() == 0
        assert old.settle() == 1
        accepted = made.replica("accepts", graph=new_model, accept=True)
        assert accepted.changed == {}
        made.clock.set("2026-11-11T10:00:00Z")
        assert old.settle() == 0, "the old one follows"
        assert list(old.changed) == ["m.bpmn#tick"]
        assert new.settle() == 1, "the new one too"
        assert made.firings() == [
            ("tick", 0, 0), ("tick", 86_400, 0), ("tick", 2 * 86_400 + 3_600, 1),
        ]  # fmt: skip


def test_a_waiting_timer_of_a_changed_event_is_not_taken_either(
    tmp_path: Path, store_url: str
) -> None:
    def text(length: str) -> str:
        return asking(boundary("b", "timeDuration", length), "b x", '<endEvent id="x"/>')

    with world(tmp_path, store_url, text("PT1H"), start=T0) as made:
        old = made.replica("old")
        old.start_process("p")
        new = made.replica("new", graph=made.model(text("PT2H"), "new"))
        made.clock.advance("PT1H")
        assert new.settle() == 0
        assert old.settle() == 1


def test_timers_that_the_model_no_longer_has_are_reported_and_deleted_when_told(
    tmp_path: Path, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Ruling 23."""
    caplog.set_level(logging.WARNING)
    with_timer = asking(boundary("b", "timeDuration", "PT1H"), "b x", '<endEvent id="x"/>')
    with world(tmp_path, store_url, with_timer, start=T0) as made:
        replica = made.replica()
        for _ in range(3):
            replica.start_process("p")
        without = made.model(asking(), "without")
        made.replica(graph=without)
        assert "timer removed m.bpmn#b: 3 instance(s) still wait on it" in caplog.text
        assert len(made.rows(schema.wait)) == 3
        made.replica(graph=without, cancel=True)
        assert made.rows(schema.wait) == []


def test_an_element_that_is_gone_fails_its_instances_with_that_reason(
    tmp_path: Path, store_url: str
) -> None:
    with world(tmp_path, store_url, asking(), start=T0) as made:
        one = made.replica().start_process("p")
        renamed = made.model(asking().replace('"u"', '"v"'), "renamed")
        with pytest.raises(UnusableInput, match="'u'"):
            made.replica(graph=renamed).complete(one)
        assert made.replica().complete(one).status == "completed"


def test_a_runtime_says_what_it_is(runtime: Runtime) -> None:
    assert repr(runtime).startswith("<Runtime replica-")
    assert "api" in repr(runtime)
