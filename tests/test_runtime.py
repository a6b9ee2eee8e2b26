"""A replica from outside: load, start, complete, look, try again, agree with the others."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from fixtures.engines import boundary

import seams_lab as sl
from seams_lab.clock import ManualClock, SystemClock
from seams_lab.errors import ResolutionError, SeamsError, UnusableInput
from seams_lab.expressions import SECOND
from seams_lab.graph import load_graph
from seams_lab.instants import to_micros
from seams_lab.runtime import schema
from seams_lab.runtime.runtime import Runtime
from seams_lab.runtime.store import Store
from tests.worlds import MINUTE, T0, asking, at, ticking, verify, world

MODELS = Path(__file__).parents[1] / "models"
EXPENSE = sl.load(MODELS / "expense")
BROKEN = [
    folder for folder in sorted((MODELS / "broken").iterdir())
    if folder.is_dir() and any(
        row["severity"] == "error"
        for row in json.loads((folder / "expected.json").read_text("utf-8"))
    )
]  # fmt: skip


@pytest.fixture
def clock() -> ManualClock:
    """It stands one minute before the first digest."""
    return ManualClock("2026-11-09T07:59:00Z")


@pytest.fixture
def runtime(store_url: str, clock: ManualClock) -> Iterator[Runtime]:
    """A replica of the expense API on each kind of store."""
    handlers = {"collect_open_expenses": lambda data, context: {"open_expenses": 0}}
    with Runtime.load(EXPENSE, "api", store_url, clock=clock, handlers=handlers) as made:
        yield made


def rows(store_url: str, table: sqlalchemy.Table) -> list[Any]:
    """All rows of a table."""
    with Store(store_url) as store, store.reading() as tx:
        return tx.read(sqlalchemy.select(table))


# ---------------------------------------------------------------------- load


@pytest.mark.parametrize("folder", BROKEN, ids=lambda folder: folder.name)
def test_a_model_with_an_error_is_refused_and_nothing_is_written(
    tmp_path: Path, folder: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    graph = load_graph(folder)
    names = [graph.name(c) for c in graph.containers] or [None]
    for name in names:
        with pytest.raises(SeamsError):
            Runtime.load(graph, name, url, clock=ManualClock("2026-11-01T00:00:00Z"))
    for table in (schema.timer, schema.firing, schema.instance):
        assert rows(url, table) == []


def test_a_cycle_without_a_start_is_refused_with_the_words_of_the_profile(tmp_path: Path) -> None:
    (tmp_path / "m.bpmn").write_text(ticking("R/P1D"), "utf-8")
    with pytest.raises(ResolutionError, match="cycle has no start date-time: 'R/P1D'"):
        Runtime.load(tmp_path / "m.bpmn")


@pytest.mark.parametrize("name", [None, "API", "expense_db"])
def test_a_container_must_be_told_and_known(name: str | None, clock: ManualClock) -> None:
    with pytest.raises(UnusableInput, match=r"api.*report_worker"):
        Runtime.load(EXPENSE, name, clock=clock)


def test_a_container_runs_its_own_processes_alone(
    runtime: Runtime, store_url: str, clock: ManualClock
) -> None:
    names = [EXPENSE.name(p) for p in runtime.processes]
    assert names == ["approval_process", "digest_process", "payout_process", "year_close_process"]
    clock.set("2027-01-05T00:00:00Z")
    runtime.settle()
    assert {EXPENSE.name(i.process) for i in runtime.instances()} == {
        "digest_process", "year_close_process",
    }  # fmt: skip
    with Runtime.load(EXPENSE, "report_worker", store_url, clock=clock) as other:
        other.settle()
        assert {EXPENSE.name(i.process) for i in other.instances()} == {"month_end_process"}
        with pytest.raises(UnusableInput, match="approval_process"):
            other.start_process("approval_process")


def test_a_replica_is_named_and_its_name_made_unique(store_url: str, clock: ManualClock) -> None:
    names = set()
    for _ in range(3):
        with Runtime.load(EXPENSE, "api", store_url, clock=clock, name="blue") as made:
            names.add(made.name)
            assert made.name.startswith("blue-")
            assert "api" in repr(made)
    assert len(names) == 3


def test_the_store_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> None:
    monkeypatch.setenv("SEAMS_STORE", str(tmp_path / "named.db"))
    Runtime.load(EXPENSE, "api", clock=clock).close()
    assert (tmp_path / "named.db").exists()


def test_tasks_without_a_handler_are_named(
    caplog: pytest.LogCaptureFixture, clock: ManualClock
) -> None:
    handlers = {"send_reminder": lambda data, context: None}
    Runtime.load(EXPENSE, "api", handlers=handlers, clock=clock).close()
    (line,) = [r.getMessage() for r in caplog.records if "no handler" in r.getMessage()]
    assert "transfer_money" in line
    assert "send_reminder" not in line


# ---------------------------------------------------------------------- clocks


def test_replicas_must_have_the_same_offset_unless_it_is_replaced(store_url: str) -> None:
    def load(offset: int, **options: Any) -> None:
        made = Runtime.load(EXPENSE, "api", store_url, clock=SystemClock(offset), **options)
        made.close()

    load(3_600 * SECOND)
    load(3_600 * SECOND)
    with pytest.raises(UnusableInput) as refusal:
        load(0)
    assert "0 s" in str(refusal.value)
    assert "3600 s" in str(refusal.value)
    load(0, replace_offset=True)
    load(0)
    with pytest.raises(UnusableInput):
        load(3_600 * SECOND)


def test_the_offset_comes_from_the_environment(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEAMS_CLOCK_OFFSET", "P3650D")
    with Runtime.load(EXPENSE, "api", store_url) as made:
        assert made.clock.now() > to_micros("2036-01-01T00:00:00Z")
        assert made.status().clock_offset == 3_650 * 24 * 3_600 * SECOND


# ---------------------------------------------------------------------- processes and tasks


def test_a_process_is_started_and_waits_for_a_person_and_a_timer(
    runtime: Runtime, clock: ManualClock
) -> None:
    found = runtime.start_process("approval_process", {"amount": 12}, correlation_key="e1")
    assert (found.status, found.correlation_key) == ("waiting", "e1")
    assert [EXPENSE.name(t.element) for t in found.tasks] == ["approve_expense"]
    assert [(EXPENSE.name(e), due) for e, due in found.waits] == [
        ("reminder_due", clock.now() + 48 * 3_600 * SECOND)
    ]
    assert runtime.data(found) == runtime.data(found.id) == {"amount": 12}
    assert list(found.trace["element"]) == ["expense_submitted", "validate_expense"]
    assert [i.id for i in runtime.instances(correlation_key="e1")] == [found.id]


def test_without_a_key_an_instance_is_found_by_its_id(runtime: Runtime) -> None:
    found = runtime.start_process("approval_process")
    assert found.correlation_key == found.id


def test_a_firing_is_found_by_its_due_time(runtime: Runtime, clock: ManualClock) -> None:
    clock.advance("PT2M")
    assert runtime.settle() == 1
    (found,) = runtime.instances(correlation_key=T0)
    assert EXPENSE.name(found.process) == "digest_process"
    assert runtime.instances(correlation_key="2026-11-09T08:01:00Z") == []


def test_an_open_task_is_listed_and_completed_with_data(runtime: Runtime) -> None:
    found = runtime.start_process("approval_process", {"amount": 12}, correlation_key="e1")
    (task,) = runtime.tasks().to_dict("records")
    assert (task["instance"], task["element"]) == (found.id, "approve_expense")
    assert (task["name"], task["process"]) == ("Approve expense", "approval_process")
    assert task["correlation_key"] == "e1"
    done = runtime.complete(found, data={"approved": True})
    assert done.status == "completed"
    assert done.waits == ()
    assert list(done.trace["element"])[2:] == [
        "approve_expense", "is_approved", "request_payout", "expense_approved",
    ]  # fmt: skip
    assert runtime.data(done) == {"amount": 12, "approved": True}
    assert len(runtime.tasks()) == 0


@pytest.mark.parametrize("named", ["approve_expense", "its IRI", "its id", None])
def test_a_task_is_named_by_its_element_or_its_id(runtime: Runtime, named: str | None) -> None:
    found = runtime.start_process("approval_process")
    (task,) = found.tasks
    name = {"its IRI": task.element, "its id": task.task}.get(str(named), named)
    assert runtime.complete(found.id, name, {"approved": True}).status == "completed"


def test_what_cannot_be_completed_is_told_and_nothing_is_held(runtime: Runtime) -> None:
    found = runtime.start_process("approval_process")
    with pytest.raises(UnusableInput, match=r"no open task 'other'.*approve_expense"):
        runtime.complete(found, "other")
    assert runtime.instance(found.id).holder is None
    with pytest.raises(UnusableInput, match="not in the store"):
        runtime.complete("nobody")
    runtime.complete(found, data={"approved": True})
    with pytest.raises(UnusableInput, match="completed"):
        runtime.complete(found)


def test_an_instance_that_stays_held_is_told_with_its_holder(
    runtime: Runtime, clock: ManualClock
) -> None:
    found = runtime.start_process("approval_process")
    with runtime.store.transaction() as tx:
        tx.take_instances([found.id], "somebody", clock.now(), clock.now() + MINUTE)
    with pytest.raises(UnusableInput, match="held by somebody"):
        runtime.complete(found, patience=0.1)
    clock.advance(MINUTE - 1)
    with pytest.raises(UnusableInput, match="held by somebody"):
        runtime.complete(found, patience=0)
    clock.advance(1)
    assert runtime.complete(found, data={"approved": True}).status == "completed"


@pytest.mark.parametrize(
    ("process", "data", "start"),
    [("nothing", {}, None), ("approval_process", {"x": object()}, None),
     ("approval_process", {}, "nothing")],
    ids=["process", "data", "start event"],
)  # fmt: skip
def test_a_start_that_cannot_be_made_leaves_nothing(
    runtime: Runtime, process: str, data: dict[str, Any], start: str | None
) -> None:
    with pytest.raises(UnusableInput):
        runtime.start_process(process, data, start=start)
    assert runtime.instances() == []


def test_unknown_instances_are_refused(runtime: Runtime) -> None:
    for look in (runtime.instance, runtime.data, runtime.retry):
        with pytest.raises(UnusableInput, match="not in the store"):
            look("nobody")


def test_only_what_has_failed_is_retried(runtime: Runtime) -> None:
    found = runtime.start_process("approval_process")
    with pytest.raises(UnusableInput, match="waiting"):
        runtime.retry(found)


def test_a_day_of_the_expense_model(runtime: Runtime, clock: ManualClock) -> None:
    found = runtime.start_process("approval_process", {"amount": 13}, correlation_key="e2")
    clock.advance("PT48H")
    runtime.settle()
    assert list(runtime.instance(found.id).trace["element"])[-3:] == [
        "reminder_due", "send_reminder", "reminder_sent",
    ]  # fmt: skip
    refused = runtime.complete(found, data={"approved": False})
    assert [EXPENSE.name(event) for event, _ in refused.waits] == ["correction_period"]
    clock.advance("P3D")
    runtime.settle()
    assert runtime.instance(found.id).status == "completed"
    assert runtime.settle() == 0
    assert runtime.next_wake() == to_micros("2026-11-14T08:00:00Z")


# ---------------------------------------------------------------------- handlers


def test_a_handler_is_told_the_instance_and_changes_data(tmp_path: Path, store_url: str) -> None:
    told: list[Any] = []

    def handler(data: dict[str, Any], context: Any) -> dict[str, Any]:
        told.append(context)
        return {"seen": data["x"] + 1}

    (tmp_path / "m.bpmn").write_text(
        asking().replace("userTask", "serviceTask"), "utf-8"
    )  # fmt: skip
    clock = ManualClock(T0)
    model = tmp_path / "m.bpmn"
    with Runtime.load(model, store=store_url, clock=clock, handlers={"u": handler}) as made:
        found = made.start_process("p", {"x": 1})
        assert made.data(found) == {"x": 1, "seen": 2}
        (context,) = told
        assert (context.instance, context.attempt) == (found.id, 1)
        assert context.element == "m.bpmn#u"


def test_retry_lets_a_failed_instance_run_now(tmp_path: Path, store_url: str) -> None:
    broken = [True]

    def handler(data: dict[str, Any], context: Any) -> None:
        if broken:
            raise OSError("down")

    (tmp_path / "m.bpmn").write_text(asking().replace("userTask", "serviceTask"), "utf-8")
    clock = ManualClock(T0)
    model = tmp_path / "m.bpmn"
    with Runtime.load(model, store=store_url, clock=clock, handlers={"u": handler}) as made:
        found = made.start_process("p")
        assert found.status == "failed"
        assert "down" in str(found.failure)
        made.retry(found)
        broken.clear()
        assert made.settle() == 1
        assert made.instance(found.id).status == "completed"


# ---------------------------------------------------------------------- changed and removed


def test_accepting_a_change_makes_it_valid_for_every_replica(
    tmp_path: Path, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock("2026-11-09T07:00:00Z")
    for name, text in (("old", f"R/{T0}/PT1H"), ("new", "R/2026-11-09T08:30:00Z/PT1H")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.bpmn").write_text(ticking(text), "utf-8")

    def load(name: str, **options: Any) -> Runtime:
        return Runtime.load(tmp_path / name, store=store_url, clock=clock, **options)

    with load("old") as old, load("new") as new:
        assert old.changed == {}
        assert list(new.changed) == ["m.bpmn#tick"]
        with load("new", accept_changes=True) as accepting:
            assert accepting.changed == {}
        assert "timer change accepted m.bpmn#tick" in caplog.text
        clock.set("2026-11-09T08:10:00Z")
        assert old.settle() == new.settle() == 0
        assert list(old.changed) == ["m.bpmn#tick"]
        assert new.changed == {}
        clock.set("2026-11-09T08:30:00Z")
        assert (old.settle(), new.settle()) == (0, 1)


def test_a_removed_timer_is_told_and_deleted_with_cancel(
    tmp_path: Path, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with_timer = asking(boundary("t", "timeDuration", "PT1H"), "t f", '<endEvent id="f"/>')
    for name, text in (("old", with_timer), ("new", asking())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.bpmn").write_text(text, "utf-8")
    clock = ManualClock(T0)
    with Runtime.load(tmp_path / "old", store=store_url, clock=clock) as old:
        old.start_process("p")
    with caplog.at_level(logging.WARNING):
        for cancel, left, told in ((False, 1, True), (True, 0, True), (True, 0, False)):
            caplog.clear()
            Runtime.load(tmp_path / "new", store=store_url, clock=clock, cancel=cancel).close()
            assert len(rows(store_url, schema.wait)) == left
            assert ("timer removed m.bpmn#t: 1 instance(s)" in caplog.text) == told
            assert ("delete their rows with cancel" in caplog.text) == (told and not cancel)


def test_a_clock_that_was_set_back_is_told_at_load(
    store_url: str, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    clock.advance("PT2M")
    with Runtime.load(EXPENSE, "api", store_url, clock=clock) as made:
        made.settle()
    clock.set("2026-11-09T07:00:00Z")
    with Runtime.load(EXPENSE, "api", store_url, clock=clock) as made:
        ((event, due),) = made.status().in_future
        assert (EXPENSE.name(event), due) == ("every_morning", at())
        assert made.settle() == 0
    assert "clock set back?" in caplog.text


# ---------------------------------------------------------------------- settle, resume


def test_settle_does_all_that_is_due_and_nothing_twice(tmp_path: Path, store_url: str) -> None:
    """A timer that a step arms in the past is due at once, and settled too."""
    text = ticking(
        f"R/{T0}/PT1H", nodes='<intermediateCatchEvent id="w"><timerEventDefinition><timeDate>'
        '"2026-01-01T00:00:00Z"</timeDate></timerEventDefinition></intermediateCatchEvent>'
        '<endEvent id="e"/>', flows="tick w; w e",
    )  # fmt: skip
    with world(tmp_path, store_url, text) as made:
        replica = made.replica()
        assert replica.settle() == 0
        made.clock.set(at(0))
        assert replica.settle() == 2
        assert made.paths() == [["tick", "w", "e"]]
        assert replica.settle() == 0
        verify(made)


def test_resume_takes_over_what_has_expired_and_no_more(tmp_path: Path, store_url: str) -> None:
    with world(tmp_path, store_url, ticking(f"R/{T0}/PT1H")) as made:
        made.clock.set(at(0))
        gone, other = made.replica("gone"), made.replica("other")
        gone._scheduler.claim_starts()
        assert other.resume() == 0
        made.clock.set(at(3_600))
        assert other.resume() == 1
        assert [row.due for row in made.rows(schema.firing)] == [at(0)], "it starts nothing"
        assert other.settle() == 1
        verify(made)
