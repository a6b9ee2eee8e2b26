"""Measure and print: ``python -m benchmarks [--quick] [--full] [--cpu] [--json FILE] [PART ...]``.

The aims are for the full sizes on an otherwise idle machine; ``--quick`` does not judge them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from benchmarks import daily_use, due_times, large_model
from benchmarks import firings as due_firings
from benchmarks.timing import CLOCK, Report, as_markdown, facts

FULL = 2_000


def due(report: Report, quick: bool, full: bool) -> None:
    """Due times, next and missed ones, counts."""
    timers, firings = (1_000, 200) if quick else (10_000, 1_000)
    due_times.due_times(report, timers, firings)
    due_times.missed(report, timers, 2_000 if quick else 20_000)
    due_times.counted(report, timers, firings)


def model(report: Report, quick: bool, full: bool) -> None:
    """Load, check and impact of the large model."""
    processes = FULL // 10 if quick else FULL
    with large_model.model_of(processes) as folder:
        large_model.load(report, folder)
        large_model.stages(report, folder)
        large_model.impact(report, folder)


def shacl(report: Report, quick: bool, full: bool) -> None:
    """SHACL against pyshacl alone, on a tenth and a fifth of the size (--full: all of it)."""
    sizes = [FULL // 40] if quick else [FULL // 10, FULL // 5]
    large_model.shapes(report, [*sizes, FULL] if full else sizes)


def growth(report: Report, quick: bool, full: bool) -> None:
    """How the cost grows with the model."""
    large_model.growth(report, FULL // 40 if quick else FULL // 4)


def daily(report: Report, quick: bool, full: bool) -> None:
    """The command line, the import, a notebook's calls."""
    daily_use.command_line(report, rounds=2 if quick else 5)
    daily_use.imports(report)
    daily_use.notebook(report, rounds=2 if quick else 5)


def firings(report: Report, quick: bool, full: bool) -> None:
    """10,000 due firings by 1, 2 and 4 processes on one store (only when asked for: it is long)."""
    print(due_firings.firings(report, quick), flush=True)


def claims(report: Report, quick: bool, full: bool) -> None:
    """The same for this project alone, beside the bare inserts and SpiffWorkflow."""
    print(due_firings.claims(report, quick), flush=True)


PARTS: dict[str, Callable[[Report, bool, bool], None]] = {
    "due": due, "model": model, "shacl": shacl, "growth": growth, "daily": daily,
    "firings": firings, "claims": claims,
}  # fmt: skip
#: What runs when no part is named.
USUAL = tuple(name for name in PARTS if name not in ("firings", "claims"))


def main() -> None:
    """Read the command line, measure, print; each part as soon as it is there."""
    told = "; ".join(f"{name}: {(run.__doc__ or '').strip()}" for name, run in PARTS.items())
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=told)
    parser.add_argument(
        "part",
        nargs="*",
        metavar="PART",
        help=f"of {', '.join(PARTS)}; by default {', '.join(USUAL)}",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--full", action="store_true", help="pyshacl alone on the whole model too")
    parser.add_argument("--cpu", action="store_true", help="processor time, for a busy machine")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there as well")
    words = parser.parse_args()
    for name in words.part:
        if name not in PARTS:
            parser.error(f"no part {name!r}; there are {', '.join(PARTS)}")
    machine = facts()
    machine["time"] = "of the processor" if words.cpu else "of the wall clock"
    if words.cpu:
        CLOCK.use_processor_time()
    print("\n".join(f"- {name}: {value}" for name, value in machine.items()), flush=True)
    everything = Report()
    for name in words.part or USUAL:
        report = Report()
        PARTS[name](report, words.quick, words.full)
        if words.quick:
            report.aims.clear()
        print(as_markdown(report), flush=True)
        everything.rows += report.rows
        everything.aims += report.aims
    if words.json:
        rows = [asdict(row) | {"each": row.each} for row in everything.rows]
        aims = [dict(zip(("what", "measured", "aim", "kept"), a, strict=True))
                for a in everything.aims]  # fmt: skip
        text = json.dumps({"machine": machine, "rows": rows, "aims": aims}, indent=2)
        words.json.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
