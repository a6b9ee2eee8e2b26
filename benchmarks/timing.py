"""Fair timings: contenders take turns, the least of several runs counts, equality comes first."""

from __future__ import annotations

import gc
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

LIBRARIES = (
    "numpy", "pandas", "polars", "SpiffWorkflow", "croniter", "python-dateutil", "isodate",
    "whenever", "rdflib", "pyoxigraph", "pyshacl", "lxml",
)  # fmt: skip

RUNS_A_TURN, _SHORT = 3, 0.5


@dataclass
class Contender:
    """One way to do a job: ``run`` does it for ``items`` items; ``note`` goes into the table."""

    run: Callable[[], Any]
    items: int = 1
    note: str = ""


@dataclass(frozen=True)
class Row:
    """One line of the report: ``seconds`` of the best run, for ``items`` items."""

    part: str
    who: str
    seconds: float
    items: int
    runs: int
    note: str = ""

    @property
    def each(self) -> float:
        """Seconds an item."""
        return self.seconds / self.items


@dataclass
class Report:
    """What was measured: rows in order, and aims as (what, measured, wanted, kept)."""

    rows: list[Row] = field(default_factory=list)
    aims: list[tuple[str, str, str, bool]] = field(default_factory=list)

    def each(self, part: str, who: str) -> float:
        """Seconds an item of one contender; KeyError where there is none."""
        for row in self.rows:
            if (row.part, row.who) == (part, who):
                return row.each
        raise KeyError((part, who))

    def aim(self, what: str, measured: float, least: float | None = None,
            most: float | None = None, unit: str = "x") -> None:  # fmt: skip
        """Note an aim: *measured* is at *least*, or at *most*, so much."""
        kept = (least is None or measured >= least) and (most is None or measured <= most)
        wanted = f"at least {least:g}{unit}" if least is not None else f"at most {most:g}{unit}"
        self.aims.append((what, f"{measured:.3g}{unit}", wanted, kept))


def race(
    part: str, contenders: Mapping[str, Contender], *, rounds: int = 7, budget: float = 3.0
) -> list[Row]:
    """Time contenders in turns, so that a slow minute hits all alike; the least time counts.

    A turn holds up to three runs while they are short: the first may find its memory taken back
    by the system, which then costs several times the work itself. A contender leaves the race
    when its runs have taken *budget* seconds together; each runs at least once. The collector of
    garbage is off during a run.
    """
    best: dict[str, float] = {}
    spent = dict.fromkeys(contenders, 0.0)
    runs = dict.fromkeys(contenders, 0)
    for _ in range(rounds):
        for name, contender in contenders.items():
            for _ in range(RUNS_A_TURN):
                if runs[name] and spent[name] + best[name] > budget:
                    break
                seconds, _ = clocked(contender.run)
                spent[name] += seconds
                runs[name] += 1
                best[name] = min(best.get(name, seconds), seconds)
                if seconds > _SHORT:
                    break
    return [Row(part, n, best[n], c.items, runs[n], c.note) for n, c in contenders.items()]


def clocked(run: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of one run, and its result."""
    gc.collect()
    gc.disable()
    try:
        begin = CLOCK.read()
        result = run()
        seconds = CLOCK.read() - begin
    finally:
        gc.enable()
    return seconds, result


class Clock:
    """What counts as time: the wall's, or (on a busy machine) what the processor spent on us."""

    def __init__(self) -> None:
        self.read: Callable[[], float] = time.perf_counter

    def use_processor_time(self) -> None:
        """Count the time of this process, all its threads, and of the processes it has run."""

        def processor() -> float:
            spent = os.times()
            return time.process_time() + spent.children_user + spent.children_system

        self.read = processor


CLOCK = Clock()


def facts() -> dict[str, str]:
    """What a figure depends on: processor, cores, system, Python and libraries."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass  # not Linux
    busy = f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown"
    return {
        "processor": f"{model}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.machine()}",
        "python": sys.version.split()[0],
        "libraries": ", ".join(
            f"{name} {found}" for name in LIBRARIES if (found := _version(name))
        ),
        "load average at the start": busy,
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def told(seconds: float) -> str:
    """A duration in three digits and a fitting unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def as_markdown(report: Report) -> str:
    """The report as Markdown tables, one a part; the first row of a part is the measure."""
    lines: list[str] = []
    part = None
    for row in report.rows:
        if row.part != part:
            part, unit = row.part, row.each
            lines += ["", f"**{part}**", "", "| who | time an item | ratio | items x runs | |",
                      "|---|--:|--:|--:|---|"]  # fmt: skip
        lines.append(
            f"| {row.who} | {told(row.each)} | {row.each / unit:.3g} | "
            f"{row.items:,} x {row.runs} | {row.note} |"
        )
    if report.aims:
        lines += ["", "**Aims**", "", "| what | measured | aim | |", "|---|--:|--:|---|"]
        lines += [f"| {what} | {measured} | {wanted} | {'kept' if kept else '**missed**'} |"
                  for what, measured, wanted, kept in report.aims]  # fmt: skip
    return "\n".join(lines) + "\n"
