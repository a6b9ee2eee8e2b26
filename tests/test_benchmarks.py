"""The benchmarks run, race equals only, and their large model is a sound one."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections import Counter
from itertools import count
from pathlib import Path

import pytest

import seams_lab as sl
from benchmarks.synthetic_model import CHECK_AT, FAULTS, write_model
from benchmarks.timing import CLOCK, Contender, Report, Row, as_markdown, race, told

PEERS = ("polars", "croniter", "whenever", "SpiffWorkflow", "dateutil", "isodate")
with_peers = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in PEERS), reason="needs extra [bench]"
)


def content(folder: Path) -> dict[str, bytes]:
    """Name → bytes of each file."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# ---------------------------------------------------------------------- the model


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> sl.Model:
    folder = tmp_path_factory.mktemp("small")
    return sl.load(write_model(folder, processes=84, containers=40, nodes=60))


def test_the_model_conforms(small: sl.Model) -> None:
    assert list(small.check(CHECK_AT, ci=True)) == []


def test_the_model_has_the_parts_asked_for(small: sl.Model) -> None:
    assert [len(small.processes), len(small.containers), len(small.nodes)] == [84, 40, 60]
    assert len(small.bpmn_models) == 84


def test_the_model_has_timers_of_every_accepted_form(small: sl.Model) -> None:
    table = small.timers(CHECK_AT)
    assert set(table["verdict"]) == {"accept"}
    assert set(zip(table["position"], table["kind"], strict=True)) == {
        ("startEvent of process", "timeDate"),
        ("startEvent of process", "timeCycle"),
        ("intermediateCatchEvent", "timeDate"),
        ("intermediateCatchEvent", "timeDuration"),
        ("boundary interrupting on userTask", "timeDuration"),
        ("boundary non-interrupting on userTask", "timeDuration"),
        ("boundary non-interrupting on userTask", "timeCycle"),
    }


def test_every_effect_and_cause_occurs(small: sl.Model) -> None:
    seen = Counter()
    for node in small.nodes:
        frame = sl.impact(small, [node])
        seen.update(zip(frame["effect"], frame["cause"], strict=True))
    effects, causes = ({pair[i] for pair in seen} for i in (0, 1))
    assert effects == {"untouched", "degraded", "stops"}
    assert causes == {"", "own node", "containing node", "store"}


def test_the_size_of_the_default_is_about_56_000_triples(tmp_path: Path) -> None:
    tenth = sl.load(write_model(tmp_path, processes=200, containers=100, nodes=30))
    assert len(tenth.store) == pytest.approx(5_600, rel=0.02)


@pytest.mark.parametrize("size", [{"processes": 1, "containers": 2, "nodes": 1},
                                  {"processes": 3, "containers": 11, "nodes": 2}])  # fmt: skip
def test_tiny_models_conform(tmp_path: Path, size: dict[str, int]) -> None:
    assert list(sl.load(write_model(tmp_path, **size)).check(CHECK_AT).errors) == []


def test_one_seed_gives_one_model(tmp_path: Path) -> None:
    size = {"processes": 20, "containers": 10, "nodes": 5}
    first = content(write_model(tmp_path / "a", **size, seed=3))
    assert content(write_model(tmp_path / "b", **size, seed=3)) == first
    assert content(write_model(tmp_path / "c", **size, seed=4)) != first


@pytest.mark.parametrize("broken", [1, 5, 40])
def test_what_is_broken_is_reported_by_a_shape(tmp_path: Path, broken: int) -> None:
    folder = write_model(tmp_path, processes=40, containers=20, nodes=10, broken=broken)
    found = [f for f in sl.load(folder).check(CHECK_AT) if f.check.startswith("shape:")]
    about = {f.element.rpartition("/")[2].removesuffix("_process") for f in found}
    wanted = {f"p{i * (40 // broken):05}" for i in range(broken)}
    # What is wrong with a container is reported of it: the fault at place 4 of FAULTS, and 2.
    at_processes = {name for i, name in enumerate(sorted(wanted)) if i % len(FAULTS) in (0, 1, 3)}
    assert at_processes <= about
    assert len(found) >= broken
    assert all(f.severity == "error" for f in found)


@pytest.mark.parametrize(
    "size", [{"processes": 0}, {"containers": 1}, {"nodes": 0}, {"broken": -1},
             {"processes": 3, "broken": 4}]
)  # fmt: skip
def test_a_size_that_cannot_be_is_refused(tmp_path: Path, size: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="need processes"):
        write_model(tmp_path, **size)


def test_the_generator_has_a_command(tmp_path: Path, repo: Path) -> None:
    command = [sys.executable, "benchmarks/synthetic_model.py", str(tmp_path / "out")]
    command += ["--processes", "4", "--containers", "4", "--nodes", "2"]
    subprocess.run(command, check=True, cwd=repo, capture_output=True)
    assert len(content(tmp_path / "out")) == 5


# ---------------------------------------------------------------------- timing


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A clock that moves one second a reading; a list for what ran, in order."""
    seconds = count()
    monkeypatch.setattr(CLOCK, "read", lambda: float(next(seconds)))
    return []


def test_contenders_take_turns(ticks: list[str]) -> None:
    rows = race("p", {"a": Contender(lambda: ticks.append("a"), 2),
                      "b": Contender(lambda: ticks.append("b"))}, rounds=3)  # fmt: skip
    assert ticks == ["a", "b"] * 3
    assert [(row.who, row.each, row.runs) for row in rows] == [("a", 0.5, 3), ("b", 1.0, 3)]


def test_a_slow_contender_leaves_the_race_and_runs_at_least_once(ticks: list[str]) -> None:
    (row,) = race("p", {"a": Contender(lambda: ticks.append("a"))}, rounds=9, budget=0.5)
    assert row.runs == 1
    (row,) = race("p", {"a": Contender(lambda: ticks.append("a"))}, rounds=9, budget=3)
    assert row.runs == 3


def test_a_short_run_is_repeated_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    steps = count()
    monkeypatch.setattr(CLOCK, "read", lambda: next(steps) / 1_000)
    names = {name: Contender(lambda name=name: ran.append(name)) for name in "ab"}
    assert [row.runs for row in race("p", names, rounds=2)] == [6, 6]
    assert ran == [*"aaabbb"] * 2


def test_the_table_gives_ratios_to_the_first_row() -> None:
    report = Report([Row("p", "a", 2.0, 1_000, 5, "equal"), Row("p", "b", 3.0, 500, 1)])
    report.aim("b against a", 3.0, least=5)
    report.aim("a", 3.0, most=5)
    text = as_markdown(report)
    assert "| a | 2 ms | 1 | 1,000 x 5 | equal |" in text
    assert "| b | 6 ms | 3 | 500 x 1 |  |" in text
    assert "| b against a | 3x | at least 5x | **missed** |" in text
    assert "| a | 3x | at most 5x | kept |" in text


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.5, "2.5 s"), (0.00123, "1.23 ms"), (4.5e-6, "4.5 µs"), (1e-9, "1 ns")]
)
def test_a_duration_has_a_fitting_unit(seconds: float, text: str) -> None:
    assert told(seconds) == text


# ---------------------------------------------------------------------- the races


@with_peers
def test_bare_numpy_and_the_data_frame_agree_and_peers_do_as_they_are_known_to() -> None:
    from benchmarks.due_times import due_times

    report = Report()
    due_times(report, timers=31, firings=13)
    notes = {(row.part.split(", ")[2], row.who): row.note for row in report.rows}
    equal = {key for key, note in notes.items() if note.startswith("equal")}
    differ = {key for key, note in notes.items() if "differ" in note}
    assert {who for period, who in notes if period == "PT1H"} - {"seams-lab, arrays"} == {
        who for period, who in equal if period == "PT1H"
    }
    # From the 29th, 30th or 31st these four have rules of their own.
    assert differ == {
        ("P1M", "dateutil rrule"),
        ("P1M", "SpiffWorkflow, own stepping"),
        ("P1M", "pandas date_range(DateOffset)"),
        ("P1M", "croniter"),
    }


@with_peers
def test_missed_firings_and_counts_agree() -> None:
    from benchmarks.due_times import counted, missed

    report = Report()
    missed(report, timers=40, gap=50)
    counted(report, timers=40, firings=50)
    peers = [row for row in report.rows if row.part.startswith("One timer") and row.note]
    assert [row.note for row in peers[1:]] == ["equal"] * 3


@with_peers
@pytest.mark.slow
def test_set_wise_shapes_and_pyshacl_agree() -> None:
    from benchmarks.large_model import shapes

    report = Report()
    shapes(report, [10])
    assert [row.note for row in report.rows] == ["", "equal results"]


@with_peers
@pytest.mark.slow
def test_one_command_measures_and_writes_json(tmp_path: Path, repo: Path) -> None:
    target = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--json", str(target), "model"]
    done = subprocess.run(command, check=True, cwd=repo, capture_output=True, text=True)
    figures = json.loads(target.read_text("utf-8"))
    assert {"processor", "python", "libraries"} <= figures["machine"].keys()
    assert all(row["each"] > 0 for row in figures["rows"])
    assert "| rdflib alone |" in done.stdout
