"""What a container runs is resolved, and any error of the model refused, before anything starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import seams_lab as sl
from seams_lab.errors import ResolutionError, SeamsError, UnusableInput
from seams_lab.graph import local_name
from seams_lab.runtime.deployment import deployment

BROKEN = sorted((Path(__file__).parents[1] / "models" / "broken").glob("*/expected.json"))


@pytest.fixture(scope="module")
def expense(models: Path) -> sl.Model:
    return sl.load(models / "expense")


@pytest.mark.parametrize(
    ("container", "processes", "starts", "waits"),
    [
        ("api", ["approval_process", "digest_process", "payout_process", "year_close_process"],
         ["every_morning", "year_ends"], ["correction_period", "reminder_due"]),
        ("report_worker", ["month_end_process"], ["month_ends"], []),
        ("Expense API", ["approval_process", "digest_process", "payout_process",
                         "year_close_process"],
         ["every_morning", "year_ends"], ["correction_period", "reminder_due"]),
    ],
)  # fmt: skip
def test_a_container_runs_what_it_executes_and_starts_what_it_schedules(
    expense: sl.Model, container: str, processes: list[str], starts: list[str], waits: list[str]
) -> None:
    found = deployment(expense, container, 0)
    assert [local_name(p) for p in found.processes] == processes
    assert sorted(t.id for t in found.starts) == starts
    assert sorted(t.id for t in found.waits) == waits


def test_a_bare_file_runs_as_a_whole(models: Path) -> None:
    found = deployment(sl.load(models / "expense" / "approval.bpmn"), None, 0)
    assert found.container == ""
    assert found.processes == ("approval_process",)
    assert sorted(t.id for t in found.waits) == ["correction_period", "reminder_due"]


@pytest.mark.parametrize("name", [None, "apu", "expense_db"])
def test_a_container_that_cannot_be_told_is_named_with_the_possible_ones(
    expense: sl.Model, name: str | None
) -> None:
    with pytest.raises(UnusableInput, match="api, report_worker"):
        deployment(expense, name, 0)


def executing(folder: Path) -> tuple[sl.Model, str | None]:
    model = sl.load(folder)
    names = {local_name(c) for c in model.containers}
    return model, next((n for n in ("api", "worker") if n in names), None)


@pytest.mark.parametrize("expected", BROKEN, ids=[p.parent.name for p in BROKEN])
def test_a_model_with_an_error_starts_nothing(expected: Path) -> None:
    errors = [f for f in json.loads(expected.read_text("utf-8")) if f["severity"] == "error"]
    try:
        model = sl.load(expected.parent)
    except UnusableInput:
        assert errors
        return
    at = sl.ManualClock("2026-11-01T00:00:00Z").now()
    for container in [None] if model.bare else model.containers:
        if errors:
            with pytest.raises(SeamsError):
                deployment(model, container, at)


def one_timer(folder: Path, definition: str) -> sl.Model:
    path = folder / "one.bpmn"
    path.write_text(
        f"""<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process id="p"
        isExecutable="true"><startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="t"/>
        {definition}<sequenceFlow id="g" sourceRef="t" targetRef="e"/><endEvent id="e"/></process>
        </definitions>""",
        "utf-8",
    )
    return sl.load(path)


@pytest.mark.parametrize(
    ("definition", "predicate", "words"),
    [
        ('<intermediateCatchEvent id="t"><timerEventDefinition><timeDuration>PT1H</timeDuration>'
         "</timerEventDefinition></intermediateCatchEvent>", "bpmn:timeDuration", "PT1H"),
        ('<serviceTask id="t"/><boundaryEvent id="b" attachedToRef="t"><timerEventDefinition>'
         '<timeDuration>"PT1H"</timeDuration></timerEventDefinition></boundaryEvent>',
         "bpmn:timerEventDefinition", "out of scope: "),
        ('<intermediateCatchEvent id="t"><timerEventDefinition/></intermediateCatchEvent>',
         "bpmn:timerEventDefinition", ""),
    ],
    ids=["refused expression", "out of scope (11a)", "no expression"],
)  # fmt: skip
def test_a_timer_that_must_not_run_is_refused_with_its_event(
    tmp_path: Path, definition: str, predicate: str, words: str
) -> None:
    with pytest.raises(ResolutionError) as refused:
        deployment(one_timer(tmp_path, definition), None, 0)
    assert refused.value.predicate == predicate
    assert words in refused.value.fact
    assert refused.value.subject.endswith(("#t", "#b"))


@pytest.mark.parametrize(
    ("container", "predicate"),
    [("report_worker", "seam:schedules"), ("api", "seam:schedules")],
)
def test_a_container_without_a_relational_store_is_refused(
    tmp_path: Path, models: Path, container: str, predicate: str
) -> None:
    for source in (models / "expense").iterdir():
        if source.suffix in (".bpmn", ".trig"):
            text = source.read_text("utf-8").replace("PostgreSQL 16", "a triple store")
            (tmp_path / source.name).write_text(text, "utf-8")
    with pytest.raises(ResolutionError) as refused:
        deployment(sl.load(tmp_path), container, 0)
    assert refused.value.predicate == predicate
    assert local_name(refused.value.subject) == container
