"""An instance as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import seams_lab as sl
from seams_lab.runtime.instance import ids_like, read_instances


@pytest.fixture
def runtime(models: Path, store_url: str) -> Iterator[sl.Runtime]:
    clock = sl.ManualClock("2026-11-09T09:00:00Z")
    with sl.Runtime.load(models / "expense", "api", store_url, clock=clock) as runtime:
        yield runtime


def test_an_instance_tells_what_it_waits_on(runtime: sl.Runtime) -> None:
    one = runtime.start_process("approval_process", {"amount": 12}, correlation_key="e-1")
    assert one.lines() == [
        "approval_process e-1: waiting",
        "task open: Approve expense",
        "waits: reminder_due due 2026-11-11T09:00:00Z",
    ]
    assert one.id in repr(one)
    assert "Approve expense" in one._repr_html_()


def test_its_trace_has_one_row_per_element_with_times_in_utc(runtime: sl.Runtime) -> None:
    one = runtime.start_process("approval_process")
    assert list(one.trace["element"]) == ["expense_submitted", "validate_expense"]
    assert list(one.trace["kind"]) == ["startEvent", "serviceTask"]
    assert list(one.trace["note"]) == ["", "no handler"]
    assert str(one.trace["at"].dtype) == "datetime64[us, UTC]"
    assert one.trace["due"].isna().all()


def test_instances_are_found_by_key_status_and_process(runtime: sl.Runtime) -> None:
    for key in ("a", "a", "b"):
        runtime.start_process("approval_process", correlation_key=key)
    runtime.start_process("payout_process", correlation_key="b")
    count = {
        "all": len(runtime.instances()),
        "key a": len(runtime.instances(correlation_key="a")),
        "completed": len(runtime.instances(status="completed")),
        "process": len(runtime.instances(process="approval_process")),
        "most": len(runtime.instances(limit=2)),
        "with tasks": len(read_instances(runtime.store, with_tasks=True)),
    }
    assert count == {"all": 4, "key a": 2, "completed": 1, "process": 3, "most": 2, "with tasks": 3}


def test_ids_are_found_by_their_beginning(runtime: sl.Runtime) -> None:
    one = runtime.start_process("approval_process")
    assert ids_like(runtime.store, one.id[:6]) == [one.id]
    assert ids_like(runtime.store, "%") == []


def test_a_failure_is_told_with_when_it_is_tried_again(runtime: sl.Runtime) -> None:
    one = runtime.start_process("digest_process")
    assert one.status == "failed"
    assert "open_expenses" in one.lines()[1]
    assert one.lines()[1].endswith("(again at 2026-11-09T09:00:01Z)")
