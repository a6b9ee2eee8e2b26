"""Load, check and impact of a large model, against rdflib, Oxigraph, pyshacl and SPARQL."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pyshacl
from rdflib import Dataset, Graph, URIRef

import seams_lab as sl
from benchmarks.due_times import our_series
from benchmarks.peers import Timers
from benchmarks.synthetic_model import CHECK_AT, write_model
from benchmarks.timing import RUNS_A_TURN, Contender, Report, Row, clocked, race, told
from seams_lab.check import check
from seams_lab.drift import drift
from seams_lab.due import frame_of
from seams_lab.expressions import LAST_INSTANT
from seams_lab.instants import to_micros
from seams_lab.shapes import Violation, read_report, violations
from seams_lab.timers import timers
from seams_lab.vocabulary import ontology, query, shapes_graph

AT = to_micros(CHECK_AT)
TRIG = "large.trig"
MATRIX_ROUNDS = 3


@contextmanager
def model_of(processes: int, broken: int = 0) -> Iterator[Path]:
    """A folder with a model whose parts keep the proportions of the full size, then nothing."""
    with tempfile.TemporaryDirectory(prefix="seams-bench-") as folder:
        yield write_model(
            folder,
            processes=processes,
            containers=max(2, processes // 2),
            nodes=max(1, processes * 3 // 20),
            broken=broken,
        )


def load(report: Report, folder: Path) -> None:
    """Read the TriG file; seams-lab's time holds the fact tables and nothing of the BPMN files."""
    trig = folder / TRIG
    triples = len(sl.load(folder).store)
    part = f"Load a model of {triples:,} triples, once"
    report.rows += race(
        part,
        {
            "seams-lab": Contender(lambda: sl.load(folder)),
            "Oxigraph alone": Contender(lambda: _oxigraph(trig)),
            "rdflib alone": Contender(lambda: Dataset().parse(trig, format="trig")),
        },
        rounds=5,
        budget=20,
    )
    ratio = report.each(part, "rdflib alone") / report.each(part, "seams-lab")
    report.aim("load against rdflib's parser", ratio, least=8)


def _oxigraph(trig: Path) -> ox.Store:
    store = ox.Store()
    store.load(path=trig, format=ox.RdfFormat.TRIG)
    return store


def stages(report: Report, folder: Path, rounds: int = 3) -> None:
    """Check a model from files to findings, and how long each stage of it takes."""
    part = f"Check a model with {len(list(folder.glob('*.bpmn'))):,} BPMN files, once"
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, seconds in _stages(folder).items():
            best[name] = min(best.get(name, seconds), seconds)
    report.rows += [Row(part, name, seconds, 1, rounds) for name, seconds in best.items()]
    report.aim("check, after load", best["check, after load"], most=3, unit=" s")


def _stages(folder: Path) -> dict[str, float]:
    took: dict[str, float] = {}

    def timed(name: str, run: Callable[[], Any]) -> Any:
        took[name], result = clocked(run)
        return result

    model = sl.load(folder)
    timed("check, after load", lambda: check(model, AT))
    model = timed("load", lambda: sl.load(folder))
    timed("read the BPMN files", lambda: [model.payload(m) for m in model.bpmn_models])
    records = timed("timers", lambda: timers(model, AT))
    timed("drift", lambda: drift(model, records))
    timed("shapes", lambda: violations(model.dataset))
    timed("check again, all files read", lambda: check(model, AT))
    return took


def pyshacl_alone(folder: Path) -> tuple[float, list[Violation]]:
    """Seconds and results of pyshacl on the union that seams-lab checks, in rdflib's memory."""
    union = Graph()
    union += ontology()
    for s, p, o, _ in sl.load(folder).dataset.quads((None, None, None, None)):
        union.add((s, p, o))
    seconds, (_, found, _) = clocked(
        lambda: pyshacl.validate(union, shacl_graph=shapes_graph(), inference="none")
    )
    assert isinstance(found, Graph)
    return seconds, read_report(found, shapes_graph())


def shapes(report: Report, sizes: Iterable[int]) -> None:
    """SHACL: violators first found set-wise, against pyshacl looking at each focus node.

    Ten things are broken in each model; the results must be equal.
    """
    for processes in sizes:
        with model_of(processes, broken=10) as folder:
            model = sl.load(folder)
            run = partial(violations, model.dataset)
            ours = run()
            seconds, theirs = pyshacl_alone(folder)
            part = f"SHACL of {len(model.store):,} triples with {len(ours)} violations, once"
            report.rows += race(part, {"seams-lab": Contender(run)}, rounds=3)
            note = "equal results" if theirs == ours else "OTHER RESULTS"
            report.rows.append(Row(part, "pyshacl alone", seconds, 1, 1, note))
            what = part.partition(" with ")[0]
            report.aim(f"{what}: results equal pyshacl's", float(theirs == ours), least=1, unit="")


def impact(report: Report, folder: Path) -> None:
    """Every timer by every node, against one SPARQL query a node.

    The plain query knows only a schedule's own nodes: no store, nothing contained, no degraded.
    """
    model = sl.load(folder)
    nodes = [URIRef(n) for n in model.nodes]
    few = nodes[:10]
    plain = Dataset(default_union=True)
    plain.parse(folder / TRIG, format="trig")
    shape = sl.impact_matrix(model).shape
    part = f"What stops: {shape[0]:,} timers by {shape[1]} nodes, a node"

    def ask(data: Dataset, some: list[URIRef]) -> list[Any]:
        return [list(data.query(query("schedules-of-node", node=node))) for node in some]

    report.rows += race(
        part,
        {
            "seams-lab, model just loaded": _fresh(folder, len(nodes)),
            "seams-lab, again": Contender(lambda: sl.impact_matrix(model), len(nodes)),
            "SPARQL on Oxigraph": Contender(lambda: ask(model.dataset, nodes), len(nodes)),
            "SPARQL on rdflib": Contender(lambda: ask(plain, few), len(few)),
        },
        rounds=MATRIX_ROUNDS,
        budget=20,
    )
    whole = report.each(part, "seams-lab, model just loaded") * len(nodes)
    report.aim("the whole matrix, model just loaded", whole, most=0.3, unit=" s")


def _fresh(folder: Path, nodes: int) -> Contender:
    """A loaded model keeps its fact tables; here each run has a model of its own."""
    waiting = [sl.load(folder) for _ in range(MATRIX_ROUNDS * RUNS_A_TURN)]
    return Contender(lambda: sl.impact_matrix(waiting.pop()), nodes)


def growth(report: Report, processes: int) -> None:
    """How the cost grows: each operation at n, 2n and 4n; 4x means in proportion to the model."""
    took: dict[str, list[float]] = {}
    sizes = [processes, 2 * processes, 4 * processes]
    for size in sizes:
        with model_of(size) as folder:
            best: dict[str, float] = {}
            for _ in range(3):
                for name, seconds in _grown(folder, size).items():
                    best[name] = min(best.get(name, seconds), seconds)
        for name, seconds in best.items():
            took.setdefault(name, []).append(seconds)
    small, middle, large = sizes
    part = f"Growth: the time at {large:,} processes; beside it that at {small:,}, {middle:,}"
    for name, (one, two, four) in took.items():
        note = f"{told(one)}, {two / one:.1f}x, {four / one:.1f}x"
        report.rows.append(Row(part, name, four, 1, 3, note))


def _grown(folder: Path, size: int) -> dict[str, float]:
    took = {k: v for k, v in _stages(folder).items() if not k.startswith("check again")}
    model = sl.load(folder)
    took["impact matrix (timers x nodes)"], _ = clocked(lambda: sl.impact_matrix(model))
    made = Timers(size, "P1M")
    table = our_series(made, 500)
    names = [f"event{i}" for i in range(size)]
    took["due times, 500 a process"], _ = clocked(
        lambda: frame_of(table, names, names, made.low, LAST_INSTANT, 1 << 40)
    )
    return took
