"""What a person waits for: the command line, the import, the calls of a notebook."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import seams_lab as sl
from benchmarks.timing import Contender, Report, Row, race

EXPENSE = Path(__file__).parents[1] / "models" / "expense"
AT, END = "2026-11-09T00:00:00Z", "2026-12-09T00:00:00Z"


def _python(*words: str) -> str:
    """Run Python as on a machine of a user's, where byte code is kept; what it wrote to stderr."""
    outside = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    kept = Path(tempfile.gettempdir()) / "seams-bench-bytecode"
    outside["PYTHONPYCACHEPREFIX"] = str(kept)
    command = [sys.executable, *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=outside)
    return done.stderr


def command_line(report: Report, rounds: int = 5) -> None:
    """Whole processes, from start to end."""

    def run(*words: str) -> Callable[[], Any]:
        return lambda: _python(*words)

    _python("-c", "import seams_lab.plot, seams_lab.cli")
    report.rows += race(
        "A process from start to end, once",
        {
            "python that does nothing": Contender(run("-c", "pass")),
            "import seams_lab": Contender(run("-c", "import seams_lab")),
            "import seams_lab, seams_lab.plot": Contender(run("-c", "import seams_lab.plot")),
            "seams-lab --version": Contender(run("-m", "seams_lab", "--version")),
            "seams-lab check models/expense": Contender(
                run("-m", "seams_lab", "check", str(EXPENSE), "--at", AT)
            ),
        },
        rounds=rounds,
        budget=30,
    )


def imports(report: Report, most: int = 8) -> None:
    """Where the time of ``import seams_lab`` goes: the time a package's own modules take."""
    text = _python("-X", "importtime", "-c", "import seams_lab")
    own: dict[str, int] = {}
    for micros, name in re.findall(r"import time:\s+(\d+) \|\s+\d+ \|\s*(\S+)", text):
        package = name.partition(".")[0]
        own[package] = own.get(package, 0) + int(micros)
    heaviest = sorted(own.items(), key=lambda item: -item[1])[:most]
    part = "import seams_lab, a package's own modules (python -X importtime, which slows it)"
    report.rows.append(Row(part, "all", sum(own.values()) / 1e6, 1, 1))
    report.rows += [Row(part, name, micros / 1e6, 1, 1) for name, micros in heaviest]


def notebook(report: Report, rounds: int = 5) -> None:
    """The calls that the notebooks make on models/expense."""
    model = sl.load(EXPENSE)
    due = sl.due_times(model, AT, END)
    report.rows += race(
        "A call on models/expense, once",
        {
            "load": Contender(lambda: sl.load(EXPENSE)),
            "model (its table)": Contender(lambda: model._repr_html_()),
            "load, then check": Contender(lambda: sl.load(EXPENSE).check(AT)),
            "check": Contender(lambda: model.check(AT)),
            "timers": Contender(lambda: model.timers(AT)),
            "due_times": Contender(lambda: sl.due_times(model, AT, END)),
            "due_counts": Contender(lambda: sl.due_counts(model, AT, END)),
            "load_by_hour": Contender(lambda: sl.load_by_hour(model, AT, END)),
            "missed": Contender(lambda: sl.missed(model, END, AT)),
            "impact": Contender(lambda: sl.impact(model, ["db01"])),
            "impact_matrix": Contender(lambda: sl.impact_matrix(model)),
            "cut_sets": Contender(lambda: sl.cut_sets(model)),
            "plot.due_strip": Contender(lambda: sl.plot.due_strip(due)),
            "plot.load": Contender(lambda: sl.plot.load(sl.load_by_hour(model, AT, END))),
            "plot.impact_matrix": Contender(lambda: sl.plot.impact_matrix(sl.impact_matrix(model))),
            "plot.paths": Contender(lambda: sl.plot.paths(sl.paths(model, ["db01"]))),
            "diagram": Contender(lambda: model.diagram("approval", AT)),
        },
        rounds=rounds,
    )
    slowest = max(row.each for row in report.rows if row.part.startswith("A call on"))
    report.aim("the slowest call of a notebook", slowest, most=1, unit=" s")
