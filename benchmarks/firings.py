"""10,000 due firings, one row each, by 1, 2 and 4 processes on one store: a second, and how right.

``python -m benchmarks firings`` prints this table; ``--quick`` runs 500 by 1 and 2. It takes
long, for slow peers are given as many firings as fast ones: their rate depends on how many wait.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks import timing
from benchmarks.firings_bare import BareLoop
from benchmarks.firings_ours import OurScheduler, engines
from benchmarks.firings_peers import Peer, installed, measure, peers
from benchmarks.firings_race import POSTGRESQL, Row, empty_database
from benchmarks.timing import Report

FULL, QUICK = (10_000, (1, 2, 4)), (500, (1, 2))
_COUNTED = ("duplicates", "missed", "errors", "deadlocks")


def contenders(with_peers: bool = True) -> list[Peer]:
    """All that are measured, in the order of the table."""
    return [
        BareLoop(),
        BareLoop(1),
        OurScheduler(real=False, batch=250),
        OurScheduler(real=True, batch=100),
        *(peers() if with_peers else ()),
    ]


@contextmanager
def stores() -> Iterator[Callable[[str], str]]:
    """A function that makes an empty store of a kind; yields it, removes all stores at the end.

    The server runs here, on a socket, with its own defaults (each commit reaches the disk).
    """
    from tests.postgresql import serve_postgresql

    with ExitStack() as stack:
        server = stack.enter_context(serve_postgresql())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="seams-firings-")))
        made: list[str] = []

        def new(kind: str) -> str:
            if kind == POSTGRESQL:
                return stack.enter_context(empty_database(server))
            made.append(f"sqlite:///{folder / f'{len(made)}.db'}")
            return made[-1]

        yield new


def measured(
    who: Iterable[Peer], new_store: Callable[[str], str], firings: int, processes: Iterable[int]
) -> Iterator[Row | str]:
    """Yield a row a measurement, or a text where there is none: not installed, or failed."""
    counts = tuple(processes)
    for peer in who:
        if not installed(peer):
            yield f"{peer.name}: not installed"
            continue
        for kind in sorted(peer.stores):
            for number in counts:
                try:
                    yield measure(peer, new_store(kind), number, firings)
                except Exception as failure:
                    yield f"{peer.name} on {kind}, {number} processes: {_told(failure)}"


def _told(failure: Exception) -> str:
    lines = str(failure).strip().splitlines() or [""]
    return f"{type(failure).__name__}: {lines[0]} {lines[-1] if len(lines) > 1 else ''}".strip()


def table(found: Iterable[Row | str]) -> str:
    """Markdown: a line a contender and store, its process counts side by side.

    Duplicates, missed firings, errors and deadlocks are shown as ``1 / 2 / 4`` too, or as 0 where
    there were none at all.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    missing = []
    for one in found:
        if isinstance(one, str):
            missing.append(one)
        else:
            groups.setdefault((one.who, one.store), []).append(one)
    head = ("who", "store", "processes", "firings a second", *_COUNTED, "settings")
    lines = [f"| {' | '.join(head)} |", "|---|---|---|--:" + "|--:" * len(_COUNTED) + "|---|"]
    for (who, store), rows in groups.items():
        cells = [
            who, store, _each(row.processes for row in rows), _each(round(r.rate) for r in rows),
            *(_each(getattr(row, name) for row in rows)
              for name in _COUNTED),
            rows[0].note,
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, *(f"\n{text}" for text in missing)]) + "\n"


def _each(values: Iterable[int]) -> str:
    numbers = list(values)
    return " / ".join(f"{number:,}" for number in numbers) if any(numbers) else "0"


def firings(report: Report, quick: bool = False, with_peers: bool = True) -> str:
    """Measure all: the table, and a row of *report* a measurement (ratios to bare inserts)."""
    number, processes = QUICK if quick else FULL
    with stores() as new_store:
        found = list(measured(contenders(with_peers), new_store, number, processes))
    rows = [one for one in found if isinstance(one, Row)]
    for row in sorted(rows, key=lambda row: (row.store, row.processes)):
        part = f"Due firings on {row.store}, processes: {row.processes}"
        wrong = f"duplicates {row.duplicates:,}, missed {row.missed:,}, errors {row.errors:,}"
        report.rows.append(timing.Row(part, row.who, row.seconds, row.firings, 1, wrong))
    return table(found)


def claims(report: Report, quick: bool = False) -> str:
    """The scheduler beside the bare inserts, the engine beside SpiffWorkflow alone."""
    each = engines(100 if quick else 1_000)
    lines = "".join(f"| {what} | {milliseconds:.3f} |\n" for what, milliseconds in each.items())
    head = "| one instance of the digest | ms of the processor |\n|---|--:|\n"
    return firings(report, quick, with_peers=False) + "\n" + head + lines
