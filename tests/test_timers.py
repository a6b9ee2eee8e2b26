"""Timers: the event of the file, its entry in the graph, and who runs it, in one record."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from fixtures.small_models import (
    AT,
    BASE,
    STARTED,
    STARTED_BPMN,
    WAITING,
    WAITING_BPMN,
    boundary,
    change,
    definitions,
    model,
    process,
    timer,
    write,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from seams_lab.graph import load_graph
from seams_lab.instants import to_micros, to_text
from seams_lab.model import load
from seams_lab.timers import Timer, first_due, timer_series, timers

NOW = to_micros(AT)
read_once = functools.cache(load)


def only(folder: Path, trig: str = STARTED, bpmn: str = STARTED_BPMN, at: int = NOW) -> Timer:
    """The one timer of a model."""
    (found,) = timers(model(folder, trig, bpmn), at)
    return found


def test_a_timer_start_is_run_by_who_schedules(tmp_path: Path) -> None:
    trig = STARTED + "GRAPH <urn:seams:graph:seams> { ex:other seam:executes ex:p . }"
    found = only(tmp_path, trig)
    assert found.event == f"{BASE}m#s"
    assert (found.id, found.process, found.model) == ("s", f"{BASE}p", f"{BASE}m")
    assert found.file == str(tmp_path / "m.bpmn")
    assert found.index_types == ("TimerStartEvent",)
    assert found.containers == (f"{BASE}c",)
    assert (found.verdict, found.code, found.refusal) == ("accept", "", None)
    assert found.is_start
    assert not found.counts_from_arming


def test_a_waiting_timer_is_run_by_who_executes(tmp_path: Path) -> None:
    more = "ex:a seam:executes ex:p . ex:z seam:schedules ex:p ."
    trig = f"{WAITING} GRAPH <urn:seams:graph:seams> {{ {more} }}"
    found = only(tmp_path, trig, WAITING_BPMN)
    assert found.containers == (f"{BASE}a", f"{BASE}c")
    assert found.index_types == ("TimerCatchEvent",)
    assert not found.is_start


@pytest.mark.parametrize(
    ("kind", "text", "counts"),
    [("timeDuration", "PT1H", False), ("timeDate", "2026-12-01T00:00:00Z", False),
     ("timeCycle", "R/2026-12-01T00:00:00Z/P1D", True)],
)  # fmt: skip
def test_only_a_cycle_on_a_boundary_counts_from_its_arming(
    tmp_path: Path, kind: str, text: str, counts: bool
) -> None:
    bpmn = change(WAITING_BPMN, (timer("timeDuration", "PT48H"), timer(kind, text)))
    assert only(tmp_path, WAITING, bpmn).counts_from_arming is counts


@pytest.mark.parametrize(
    ("bpmn", "verdict", "code"),
    [
        (WAITING_BPMN, "accept", ""),
        (change(WAITING_BPMN, ("PT48H", "P48H")), "refuse", "BAD_DURATION"),
        (change(WAITING_BPMN, ("userTask", "serviceTask")), "not lifted", "NOT_LIFTED"),
        (change(WAITING_BPMN, ("userTask", "serviceTask"), ("PT48H", "P48H")),
         "not lifted", "NOT_LIFTED"),
        (change(WAITING_BPMN, ("PT48H", "P9998Y")), "refuse", "OUT_OF_RANGE"),
    ],
)  # fmt: skip
def test_verdicts(tmp_path: Path, bpmn: str, verdict: str, code: str) -> None:
    found = only(tmp_path, WAITING, bpmn)
    assert (found.verdict, found.code) == (verdict, code)
    assert (found.expression is None) == (found.refusal is not None) == (verdict != "accept")
    assert first_due(found, NOW) == [] or verdict == "accept"
    if found.refusal:
        assert found.refusal.subject == f"{BASE}m#t"


@pytest.mark.parametrize(
    ("types", "words"),
    [
        ("", ()),
        ("a proc:Task ; ", ()),
        ("a proc:TimerStartEvent ; ", ("TimerStartEvent",)),
        ("a proc:TimerStartEvent, proc:TimerCatchEvent, proc:Task ; ",
         ("TimerCatchEvent", "TimerStartEvent")),
    ],
)  # fmt: skip
def test_the_classes_in_the_index_are_reported_as_they_are(
    tmp_path: Path, types: str, words: tuple[str, ...]
) -> None:
    trig = change(STARTED, ("m:s a proc:TimerStartEvent ; ", f"m:s {types}"))
    assert only(tmp_path, trig).index_types == words


def test_a_timer_of_no_process_of_the_graph_is_run_by_nobody(tmp_path: Path) -> None:
    found = only(tmp_path, change(STARTED, ("  ex:p seam:detailedBy ex:m .\n", "")))
    assert (found.process, found.containers) == (f"{BASE}m#p", ())


def test_a_bare_file_has_timers_without_containers(tmp_path: Path) -> None:
    path = tmp_path / "a.bpmn"
    path.write_text(STARTED_BPMN, "utf-8")
    (found,) = timers(load_graph(path), NOW)
    assert (found.event, found.process, found.containers) == ("a.bpmn#s", "p", ())


def test_timers_come_in_the_order_of_models_and_of_the_file(tmp_path: Path) -> None:
    waits = "".join(boundary(i, timer("timeDuration", "PT1H")) for i in ("b", "a"))
    text = definitions(process('<userTask id="u"/>' + waits, "z"), process(
        f'<startEvent id="0">{timer()}</startEvent>', "y"))  # fmt: skip
    for name in ("two", "one", "gone"):
        (tmp_path / f"{name}.bpmn").write_text(text if name != "gone" else "<", "utf-8")
    found = timers(load_graph(tmp_path), NOW)
    assert [(t.model, t.id) for t in found] == [
        (f"{name}.bpmn", i) for name in ("one", "two") for i in ("b", "a", "0")
    ]


@pytest.mark.parametrize(
    ("text", "at", "verdict"),
    [
        ("PT1S", "9999-12-31T23:59:58Z", "accept"),
        ("PT2S", "9999-12-31T23:59:58Z", "refuse"),
        ("P1M", "9999-11-30T00:00:00Z", "accept"),
        ("P1M", "9999-12-01T00:00:00Z", "refuse"),
        ("P7973Y", "2026-11-01T00:00:00Z", "accept"),
        ("P7974Y", "2026-11-01T00:00:00Z", "refuse"),
    ],
)
def test_a_duration_that_ends_after_the_calendar_is_refused_where_it_is_armed(
    tmp_path: Path, text: str, at: str, verdict: str
) -> None:
    bpmn = change(WAITING_BPMN, ("PT48H", text))
    found = only(tmp_path, WAITING, bpmn, to_micros(at))
    assert found.verdict == verdict
    assert found.code == ("OUT_OF_RANGE" if verdict == "refuse" else "")


@pytest.mark.parametrize(
    ("kind", "text", "position", "due"),
    [
        ("timeDate", "2026-12-01T09:00:00+01:00", "start", ["2026-12-01T08:00:00Z"]),
        ("timeDate", "2001-01-01T00:00:00Z", "start", ["2001-01-01T00:00:00Z"]),
        ("timeCycle", "R2/2026-01-31T08:00:00Z/P1M", "start",
         ["2026-01-31T08:00:00Z", "2026-02-28T08:00:00Z"]),
        ("timeCycle", "R/9999-12-30T00:00:00Z/P1D", "start",
         ["9999-12-30T00:00:00Z", "9999-12-31T00:00:00Z"]),
        ("timeDuration", "PT0.5S", "boundary", ["2026-11-01T00:00:00.500000Z"]),
        # Armed on 1 November: what lies before neither fires nor counts (ruling 19a) …
        ("timeCycle", "R/2026-10-31T12:00:00Z/P1D", "boundary",
         ["2026-11-01T12:00:00Z", "2026-11-02T12:00:00Z", "2026-11-03T12:00:00Z"]),
        # … and n still counts from the start.
        ("timeCycle", "R2/2026-10-31T12:00:00Z/P1D", "boundary", ["2026-11-01T12:00:00Z"]),
        ("timeCycle", "R1/2026-10-31T12:00:00Z/P1D", "boundary", []),
        ("timeCycle", "R1/2026-11-01T00:00:00Z/P1D", "boundary", ["2026-11-01T00:00:00Z"]),
    ],
)  # fmt: skip
def test_the_first_due_times(
    tmp_path: Path, kind: str, text: str, position: str, due: list[str]
) -> None:
    definition = timer(kind, text)
    if position == "start":
        found = only(tmp_path, STARTED, change(STARTED_BPMN, (timer(), definition)))
    else:
        bpmn = change(WAITING_BPMN, (timer("timeDuration", "PT48H"), definition))
        found = only(tmp_path, WAITING, bpmn)
    assert [to_text(d) for d in first_due(found, NOW)] == due
    assert first_due(found, NOW, 1) == first_due(found, NOW)[:1]


@settings(max_examples=30)
@given(at=st.integers(to_micros("1970-01-01"), to_micros("2500-01-01")), n=st.integers(1, 5))
def test_first_due_of_the_example_follows_the_series(models: Path, at: int, n: int) -> None:
    for one in timers(read_once(models / "expense"), at):
        dues = first_due(one, at, n)
        table = timer_series([one], at)
        assert len(dues) <= n
        assert dues == sorted(set(dues))
        assert dues[0] == table.next(dues[0] - 1)[0]
        if one.element.kind == "timeDuration":
            assert at < dues[0]


def test_no_timers_no_series(tmp_path: Path) -> None:
    assert len(timer_series([], NOW)) == 0
    empty = write(tmp_path, STARTED, definitions(process("")))
    assert timers(load_graph(empty), NOW) == []
