"""The command line as scripts and people use it: real processes, exit statuses, no tracebacks."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from seams_lab import cli

AT = "2026-11-01T00:00:00Z"
BPMN = "http://www.omg.org/spec/BPMN/20100524/MODEL"


def run(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "seams_lab", *map(str, words)],
        capture_output=True, text=True, cwd=cwd, check=False,
    )  # fmt: skip


def run_here(monkeypatch: pytest.MonkeyPatch, *words: object) -> tuple[int, str, str]:
    """Run in this process, through `main`: quicker than a process of its own."""
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "argv", ["seams-lab", *map(str, words)])
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    monkeypatch.undo()
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


@pytest.fixture
def cycle(tmp_path: Path) -> Path:
    """A bare file with a timer that is refused, one that is accepted, one out of scope."""
    path = tmp_path / "cycle.bpmn"
    path.write_text(
        f"""<definitions xmlns="{BPMN}"><process id="p">
        <startEvent id="s"><timerEventDefinition><timeCycle>"R/P1D"</timeCycle>
        </timerEventDefinition></startEvent>
        <intermediateCatchEvent id="c"><timerEventDefinition>
        <timeDuration>"PT1.5S"</timeDuration></timerEventDefinition></intermediateCatchEvent>
        <serviceTask id="t"/><boundaryEvent id="b" attachedToRef="t" cancelActivity="0">
        <timerEventDefinition><timeDuration>"PT1H"</timeDuration></timerEventDefinition>
        </boundaryEvent></process></definitions>"""
    )
    return path


def test_timers_as_json(monkeypatch: pytest.MonkeyPatch, cycle: Path) -> None:
    status, out, _ = run_here(monkeypatch, "timers", cycle, "--at", AT, "--format", "json")
    assert status == 0
    keys = ("event", "kind", "position", "verdict", "code", "reason", "due")
    assert [{k: row[k] for k in keys} for row in json.loads(out)] == [
        {
            "event": "s", "kind": "timeCycle", "position": "startEvent of process",
            "verdict": "refuse", "code": "NO_START",
            "reason": "cycle has no start date-time: 'R/P1D'", "due": [],
        },
        {
            "event": "c", "kind": "timeDuration", "position": "intermediateCatchEvent",
            "verdict": "accept", "code": "", "reason": "", "due": ["2026-11-01T00:00:01.500000Z"],
        },
        {
            "event": "b", "kind": "timeDuration",
            "position": "boundary non-interrupting on serviceTask",
            "verdict": "not lifted", "code": "NOT_LIFTED",
            "reason": "out of scope: a timer on boundary non-interrupting on serviceTask is "
            "outside the profile",
            "due": [],
        },
    ]  # fmt: skip


def test_due_as_json_is_in_the_order_of_time(monkeypatch: pytest.MonkeyPatch, models: Path) -> None:
    status, out, _ = run_here(
        monkeypatch, "due", models / "expense", "--from", "2026-11-09T00:00:00Z",
        "--to", "2026-11-11T08:00:00Z", "-f", "json",
    )  # fmt: skip
    assert status == 0
    rows = [(r["event"], r["k"], r["due"]) for r in json.loads(out)]
    assert rows == [
        ("every_morning", 0, "2026-11-09T08:00:00Z"),
        ("every_morning", 1, "2026-11-10T08:00:00Z"),
        ("reminder_due", 0, "2026-11-11T00:00:00Z"),
    ]


def test_due_says_what_it_leaves_off_and_what_is_refused(
    monkeypatch: pytest.MonkeyPatch, models: Path, cycle: Path
) -> None:
    status, out, err = run_here(
        monkeypatch, "due", models / "expense", "--from", AT, "--to", "2027-11-01T00:00:00Z",
        "--cap", 20, "-f", "csv",
    )  # fmt: skip
    assert status == 0
    assert 15 < len(list(csv.reader(io.StringIO(out)))) <= 1 + 20
    assert "cut at cap=20" in err
    _, _, err = run_here(monkeypatch, "due", cycle, "--from", AT)
    assert "refused, so without due times: s" in err


@pytest.mark.parametrize(
    ("nodes", "effect"),
    [(["host_b"], "stops"), (["app01"], "untouched"), (["app01", "job01"], "stops")],
)
def test_impact_as_json(
    monkeypatch: pytest.MonkeyPatch, models: Path, nodes: list[str], effect: str
) -> None:
    options = [word for node in nodes for word in ("--node", node)]
    status, out, _ = run_here(
        monkeypatch, "impact", models / "expense", *options, "--format", "json"
    )
    assert status == 0
    row = next(r for r in json.loads(out) if r["event"] == "month_ends")
    assert row["process"] == "month_end_process"
    assert row["effect"] == effect
    assert row["reason"]


def test_impact_without_a_node_is_the_matrix_and_cut_sets_the_smallest_losses(
    monkeypatch: pytest.MonkeyPatch, models: Path
) -> None:
    _, out, _ = run_here(monkeypatch, "impact", models / "expense", "-f", "csv")
    header, *rows = csv.reader(io.StringIO(out))
    assert header[:3] == ["process", "event", "app01"]
    assert len(rows) == 5
    _, out, _ = run_here(monkeypatch, "impact", models / "expense", "--cut-sets", "-f", "csv")
    assert "month_ends,month_end_process,1,job01" in out.splitlines()


@pytest.mark.parametrize("form", ["table", "json", "csv", "github", "sarif"])
def test_check_ends_with_1_on_errors_in_each_format(
    monkeypatch: pytest.MonkeyPatch, cycle: Path, form: str
) -> None:
    status, out, _ = run_here(monkeypatch, "check", cycle, "--at", AT, "--format", form)
    assert status == 1
    assert "NO_START" in out
    if form == "json":
        first = json.loads(out)[0]
        assert {"file", "element", "check", "severity", "message", "fix"} <= first.keys()


def test_check_ends_with_0_on_warnings_alone(monkeypatch: pytest.MonkeyPatch, cycle: Path) -> None:
    cycle.write_text(cycle.read_text().replace("R/P1D", "R/2026-11-09T08:00:00Z/PT1S"))
    status, out, _ = run_here(monkeypatch, "check", cycle, "--at", AT, "-f", "json")
    assert status == 0
    assert {(f["check"], f["severity"]) for f in json.loads(out)} == {
        ("short-period", "warning"),
        ("timer-out-of-scope", "warning"),
    }


@pytest.mark.parametrize("command", ["check", "timers", "due", "impact", "lift"])
@pytest.mark.parametrize(
    "content", [None, b"", b"\x00\xff", b"<a/>", b"<!DOCTYPE a><a/>", b"PK\x03\x04" * 99]
)
def test_unusable_input_is_one_line_and_status_2(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, content: bytes | None
) -> None:
    path = tmp_path / "bad.bpmn"
    if content is not None:
        path.write_bytes(content)
    status, out, err = run_here(monkeypatch, command, path)
    assert (status, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert "bad.bpmn" in err
    assert "Fix:" in err


@pytest.mark.parametrize(
    "words",
    [
        ("timers", "MODEL", "--at", "yesterday"),
        ("timers", "MODEL", "--at", "2026-11-01T00:00:00"),
        ("due", "MODEL", "--from", "2026-13-01T00:00:00Z"),
        ("due", "MODEL", "--from", "2026-11-02", "--to", "2026-11-01"),
        ("impact", "MODEL", "--node", "nowhere"),
        ("check", "MODEL", "--format", "xml"),
        ("nonsense",),
    ],
)
def test_a_wrong_argument_is_said_without_a_traceback(models: Path, words: tuple[str, ...]) -> None:
    done = run(*(models / "expense" if w == "MODEL" else w for w in words))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr + done.stdout
    assert done.stderr.strip()


def test_one_bad_file_among_good_ones_is_told_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, models: Path
) -> None:
    folder = tmp_path / "expense"
    shutil.copytree(models / "expense", folder)
    (folder / "digest.bpmn").write_text("<!DOCTYPE x><x/>")
    status, out, err = run_here(monkeypatch, "timers", folder, "--at", AT, "-f", "json")
    assert status == 2
    assert "month_ends" in [row["event"] for row in json.loads(out)]
    assert "digest.bpmn" in err
    status, out, _ = run_here(monkeypatch, "check", folder, "--at", AT, "-f", "json")
    assert status == 1
    assert "payload-unusable" in [f["check"] for f in json.loads(out)]


def test_lift_is_idempotent_and_dry_run_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, models: Path
) -> None:
    folder = tmp_path / "expense"
    shutil.copytree(models / "expense", folder)
    trig = folder / "expense.trig"
    text = trig.read_text()
    without = text.replace("a proc:TimerCatchEvent ;", "", 1)
    assert without != text
    trig.write_text(without)
    _, out, _ = run_here(monkeypatch, "lift", folder, "--dry-run")
    assert "+" in out
    assert trig.read_text() == without
    run_here(monkeypatch, "lift", folder)
    once = trig.read_text()
    assert once.startswith(without)
    status, out, _ = run_here(monkeypatch, "check", folder, "--at", AT)
    assert (status, "no findings" in out) == (0, True)
    run_here(monkeypatch, "lift", folder)
    assert trig.read_text() == once


@pytest.mark.parametrize("command", ["check", "timers", "due", "impact", "lift"])
def test_help_teaches(command: str) -> None:
    shown = CliRunner().invoke(cli.app, [command, "--help"])
    assert shown.exit_code == 0
    assert "MODEL" in shown.output


def test_an_internal_fault_is_one_line(monkeypatch: pytest.MonkeyPatch, models: Path) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(cli, "load", broken)
    monkeypatch.setattr(sys, "argv", ["seams-lab", "check", str(models / "expense")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 70


def test_a_closed_pipe_is_no_error(models: Path) -> None:
    """As in `seams-lab due MODEL | head -1`."""
    words = [sys.executable, "-m", "seams_lab", "due", models / "expense", "--from", AT,
             "--to", "2226-01-01T00:00:00Z", "-f", "csv"]  # fmt: skip
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        error = process.stderr.read()
        assert process.wait() == 0
    assert b"Traceback" not in error


def test_the_module_runs_without_a_terminal(models: Path) -> None:
    done = run("timers", models / "expense", "--at", AT)
    assert done.returncode == 0
    assert "every day, from Mon" in done.stdout
    assert os.linesep in done.stdout
