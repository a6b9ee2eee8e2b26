"""What `status` says of a store: read from the tables alone, by the deciding clock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seams_lab.clock import ManualClock
from seams_lab.instants import to_micros
from seams_lab.runtime.runtime import Runtime
from seams_lab.runtime.status import Status, next_due, read_status, short_names
from seams_lab.runtime.store import Store

BPMN = "http://www.omg.org/spec/BPMN/20100524/MODEL"
BEGIN = "2026-11-09T07:59:00Z"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(BEGIN)


@pytest.fixture
def store() -> Iterator[Store]:
    with Store("sqlite://") as opened:
        yield opened


def replica(models: Path, store: Store, clock: ManualClock, **handlers: Any) -> Runtime:
    return Runtime.load(models / "expense", "api", store, clock=clock, handlers=handlers)


def row(status: Status, table: str, event: str) -> dict[str, Any]:
    [found] = [r for r in status.as_dict()[table] if r["event"] == event]
    return {str(k): v for k, v in found.items()}


def test_next_due_is_what_fires_next_also_when_it_is_overdue(
    models: Path, store: Store, clock: ManualClock
) -> None:
    runtime = replica(models, store, clock)
    seen = [(row(runtime.status(), "timers", "every_morning"))]
    clock.set("2026-11-12T09:00:00Z")
    seen.append(row(runtime.status(), "timers", "every_morning"))
    runtime.settle()
    seen.append(row(runtime.status(), "timers", "every_morning"))
    assert [(s["next_due"], s["last_due"], s["fired"], s["skipped"]) for s in seen] == [
        ("2026-11-09T08:00:00Z", None, 0, 0),
        ("2026-11-12T08:00:00Z", None, 0, 0),
        ("2026-11-13T08:00:00Z", "2026-11-12T08:00:00Z", 1, 3),
    ]
    assert seen[0]["expression"] == "timeCycle R/2026-11-09T08:00:00Z/P1D"
    firing = row(runtime.status(), "firings", "every_morning")
    assert (firing["due"], firing["fired_at"], firing["late"], firing["skipped"]) == (
        "2026-11-12T08:00:00Z", "2026-11-12T09:00:00Z", 3_600.0, 3,
    )  # fmt: skip
    assert firing["replica"] == runtime.name


def test_a_timer_that_has_no_more_due_time_says_so(
    models: Path, store: Store, clock: ManualClock
) -> None:
    runtime = replica(models, store, clock)
    clock.set("2027-01-01T00:00:00Z")
    runtime.settle()
    assert row(runtime.status(), "timers", "year_ends")["next_due"] is None


def test_what_instances_wait_on_is_counted_by_event(
    models: Path, store: Store, clock: ManualClock
) -> None:
    runtime = replica(models, store, clock)
    for _ in range(3):
        runtime.start_process("approval_process")
        clock.advance("PT1H")
    status = runtime.status()
    assert status.instances == {"waiting": 3}
    assert row(status, "waiting", "reminder_due") == {
        "event": "reminder_due", "instances": 3, "next_due": "2026-11-11T07:59:00Z", "held": 0,
        "fired": 0, "skipped": 0, "contested": "",
    }  # fmt: skip
    clock.set("2026-11-11T08:30:00Z")
    runtime.settle()
    after = row(runtime.status(), "waiting", "reminder_due")
    assert (after["instances"], after["fired"]) == (2, 1)


def test_a_lease_is_shown_while_it_is_held(models: Path, store: Store, clock: ManualClock) -> None:
    seen: list[Status] = []

    def handler(data: Any, context: Any) -> None:
        seen.append(read_status(store, clock.now()))

    runtime = replica(models, store, clock, validate_expense=handler)
    key = runtime.start_process("approval_process").id
    [lease] = seen[0].as_dict()["leases"]
    assert lease == {
        "instance": key, "process": "approval_process", "holder": runtime.name, "token": 1,
        "expires": "2026-11-09T07:59:30Z",
    }  # fmt: skip
    assert runtime.status().as_dict()["leases"] == []


def test_a_failure_is_shown_with_the_time_of_the_next_try(
    models: Path, store: Store, clock: ManualClock
) -> None:
    def handler(data: Any, context: Any) -> None:
        raise OSError("no route")

    runtime = replica(models, store, clock, validate_expense=handler)
    key = runtime.start_process("approval_process").id
    [failure] = runtime.status().as_dict()["failures"]
    assert (failure["instance"], failure["attempts"]) == (key, 1)
    assert "OSError: no route" in failure["failure"]
    assert failure["retry_at"] == "2026-11-09T07:59:01Z"
    assert runtime.status().instances == {"failed": 1}


def test_a_clock_that_was_set_back_is_told(models: Path, store: Store, clock: ManualClock) -> None:
    """Ruling 17: the newest firing lies in the future, so nothing of that event fires till then."""
    runtime = replica(models, store, clock)
    clock.set("2026-11-09T08:30:00Z")
    runtime.settle()
    assert runtime.status().in_future == []
    clock.set(BEGIN)
    status = runtime.status()
    assert [event.rpartition("#")[2] for event, _ in status.in_future] == ["every_morning"]
    assert "clock set back?" in repr(status)
    assert status.as_dict()["in_future"][0]["due"] == "2026-11-09T08:00:00Z"


def test_it_reads_as_text_html_and_json(models: Path, store: Store, clock: ManualClock) -> None:
    with replica(models, store, clock) as runtime:
        runtime.start_process("approval_process")
        status = runtime.status()
    assert status.headline() == "2026-11-09T07:59:00Z: instances: 1 waiting"
    assert "reminder_due" in repr(status)
    assert "<h4>waiting</h4>" in status._repr_html_()
    plain = status.as_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert {"at", "store", "clock_offset_seconds", *status.tables} <= plain.keys()


def test_the_offset_of_the_clock_is_shown(models: Path, store: Store) -> None:
    with store.transaction() as tx:
        tx.set_fact("clock_offset", str(-3_600_000_000))
    assert "clock -3600 s" in read_status(store, 0).headline()


@pytest.mark.parametrize(
    ("events", "names"),
    [
        (["urn:a/x#tick"], ["tick"]),
        (["urn:a/x#tick", "urn:a/y#tock"], ["tick", "tock"]),
        (["urn:a/x#tick", "urn:a/y#tick", "urn:a/y#tock"], ["x#tick", "y#tick", "tock"]),
        (["urn:a/x#tick", "urn:b/x#tick"], ["urn:a/x#tick", "urn:b/x#tick"]),
    ],
)
def test_events_with_one_id_are_told_apart(events: list[str], names: list[str]) -> None:
    assert list(short_names(events).values()) == names


def test_two_models_with_one_event_id_are_two_rows(tmp_path: Path) -> None:
    for name, second in (("dawn", "06"), ("dusk", "18")):
        (tmp_path / f"{name}.bpmn").write_text(
            f"""<definitions xmlns="{BPMN}"><process id="{name}" isExecutable="true">
            <startEvent id="tick"><timerEventDefinition>
              <timeCycle>"R/2026-11-09T{second}:00:00Z/P1D"</timeCycle></timerEventDefinition>
            </startEvent><sequenceFlow id="f" sourceRef="tick" targetRef="end"/>
            <endEvent id="end"/></process></definitions>"""
        )
    with Runtime.load(tmp_path, clock=ManualClock("2026-11-09T07:00:00Z")) as runtime:
        runtime.settle()
        status = runtime.status()
    timers = {r["event"]: r["fired"] for r in status.as_dict()["timers"]}
    assert timers == {"dawn.bpmn#tick": 1, "dusk.bpmn#tick": 0}
    assert [r["event"] for r in status.as_dict()["firings"]] == ["dawn.bpmn#tick"]


@pytest.mark.parametrize(
    ("at", "due"),
    [
        (BEGIN, "2026-11-09T08:00:00Z"),
        ("2026-11-09T08:30:00Z", "2026-11-09T08:00:00Z"),  # overdue
        ("2027-06-01T00:00:00Z", "2026-12-31T22:00:00Z"),
    ],
)
def test_the_next_due_time_of_some_events(
    models: Path, store: Store, clock: ManualClock, at: str, due: str
) -> None:
    replica(models, store, clock)
    base = "https://example.org/expense/"
    year, day = f"{base}year_close#year_ends", f"{base}digest#every_morning"
    events = [year] if at > "2027" else [year, day]
    assert next_due(store, events, to_micros(at)) == to_micros(due)
    assert next_due(store, ["urn:a/other#event"], to_micros(at)) is None


def test_a_due_time_beyond_what_nanoseconds_hold(tmp_path: Path) -> None:
    far = "9000-01-01T00:00:00Z"
    (tmp_path / "far.bpmn").write_text(
        f"""<definitions xmlns="{BPMN}"><process id="far" isExecutable="true">
        <startEvent id="s"><timerEventDefinition><timeDate>"{far}"</timeDate>
        </timerEventDefinition></startEvent><sequenceFlow id="f" sourceRef="s" targetRef="e"/>
        <endEvent id="e"/></process></definitions>"""
    )
    with Runtime.load(tmp_path, clock=ManualClock(BEGIN)) as runtime:
        assert row(runtime.status(), "timers", "s")["next_due"] == far
        [event] = [timer.event for timer in runtime.deployment.starts]
        assert next_due(runtime.store, [event], 0) == to_micros(far)


def test_an_expression_that_replicas_do_not_agree_on_is_shown(
    models: Path, store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    first = replica(models, store, clock)
    for source in (models / "expense").iterdir():
        if source.suffix in (".bpmn", ".trig"):
            text = source.read_text("utf-8").replace("T08:00:00Z/P1D", "T09:00:00Z/P1D")
            (tmp_path / source.name).write_text(text, "utf-8")
    other = Runtime.load(tmp_path, "api", store, clock=clock, name="other")
    shown = row(first.status(), "timers", "every_morning")["contested"]
    assert shown.startswith("timeCycle R/2026-11-09T09:00:00Z/P1D (other-")
    assert list(other.changed.values()) == ["timeCycle R/2026-11-09T08:00:00Z/P1D"]
    Runtime.load(tmp_path, "api", store, clock=clock, accept_changes=True)
    assert row(first.status(), "timers", "every_morning")["contested"] == ""
