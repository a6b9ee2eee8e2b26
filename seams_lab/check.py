"""Everything that is wrong with a model, in one list.

Shapes, drift, expressions and the cross-checks that need both the graph and the BPMN files. The
runtime refuses what this reports as an error, with the same code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyoxigraph as ox

from seams_lab.drift import drift, on_graph
from seams_lab.errors import ResolutionError, UnusableInput
from seams_lab.expressions import MINUTE, TimeCycle, TimeDate, TimeDuration
from seams_lab.findings import Finding, Findings
from seams_lab.graph import ModelGraph, local_name
from seams_lab.series import NONE
from seams_lab.shapes import violations
from seams_lab.timers import Timer, timer_series, timers
from seams_lab.vocabulary import PROC, SEAM, SEAMS_GRAPH

MANY_MISSED = 1_000
# Ten months and more are seldom meant where the text has an M and no T.
_MANY_MONTHS = re.compile(r"P0*[1-9][0-9]+M")
_NOT_CROSS_LAYER = {str(SEAM.inModel)}
_FIXES = {
    "SchedulesShape": "let a container schedule only a proc:Process that it executes, and whose "
    "BPMN model has a timer start",
    "TimerStartedProcessShape": "name exactly one container that seam:schedules the process",
}
# The manifest has a graph of its own.
_MANIFEST = {str(SEAM.filePath), str(SEAM.mediaType), str(SEAM.checksum)}


def check(model: ModelGraph, at: int, *, ci: bool = False) -> Findings:
    """Check a model and report all findings at once.

    Parameters
    ----------
    model : ModelGraph
    at : int
        The instant of the check, in microseconds since the epoch (UTC): durations are armed and
        missed firings counted there.
    ci : bool
        Raise manifest findings on media types and checksums from warning to error.
    """
    records = timers(model, at)
    found = [*drift(model, records, ci=ci), *_suspicious(records, at)]
    if not model.bare:
        found += [*_shapes(model), *_seams_graph(model), *_process_models(model, records)]
        found += [*_stores(model, records), *_placement(model), *_triggers(model)]
    return Findings(found)


def _shapes(model: ModelGraph) -> Iterator[Finding]:
    for violation in violations(model.dataset):
        name = local_name(violation.shape)
        fix = f"correct {_short(violation.path) + ' of ' if violation.path else ''}"
        value = f" (value {violation.value})" if violation.value else ""
        yield on_graph(
            model, violation.focus, f"shape:{name}",
            "error" if violation.severity == "error" else "warning",
            f"{violation.message.rstrip('.')}{value}",
            _FIXES.get(name) or fix + local_name(violation.focus),
        )  # fmt: skip


def _short(iri: str) -> str:
    """An IRI of the seams vocabularies with its usual prefix."""
    return re.sub(r"^https://w3id\.org/seams/(\w+)#", r"\1:", iri)


def _seams_graph(model: ModelGraph) -> Iterator[Finding]:
    """Cross-layer triples belong in the seams graph (ADR-0001)."""
    # One query: most triples are not misplaced, and Python need not see those.
    query = f"""
        SELECT DISTINCT ?s ?p ?o ?g WHERE {{
          {{ ?s ?p ?o . BIND("the default graph" AS ?g) }} UNION {{ GRAPH ?g {{ ?s ?p ?o }} }}
          FILTER(STRSTARTS(STR(?p), "{SEAM}") && ?g != <{SEAMS_GRAPH}>)
          FILTER(?p NOT IN ({", ".join(f"<{p}>" for p in sorted(_NOT_CROSS_LAYER | _MANIFEST))}))
        }}"""
    rows = model.store.query(query)
    for row in rows if isinstance(rows, ox.QuerySolutions) else ():
        yield on_graph(
            model, row["s"].value, "seam-misplaced", "warning",
            f"{_short(row['p'].value)} {getattr(row['o'], 'value', row['o'])} stands in "
            f"{row['g'].value}",
            f"move it into GRAPH <{SEAMS_GRAPH}>",
        )  # fmt: skip


def _process_models(model: ModelGraph, records: list[Timer]) -> Iterator[Finding]:
    """A timer-started model is one process in the graph and one in the file (ruling 11).

    Where instances only wait on timers there may be several, if it is clear which is which.
    """
    unclear: dict[str, list[str]] = {}
    for timer in records:
        if timer.process not in model.process_set:
            unclear.setdefault(timer.model, []).append(timer.id)
    started = {event.partition("#")[0] for event in model.typed(str(PROC.TimerStartEvent))}
    for bpmn_model in model.bpmn_models:
        if bpmn_model not in started and bpmn_model not in unclear:
            continue
        detailing = model.inverse(str(SEAM.detailedBy)).get(bpmn_model, ())
        named = [p for p in detailing if p in model.process_set]
        try:
            held = model.payload(bpmn_model).processes
        except UnusableInput:
            continue
        if bpmn_model in started and (len(named) != 1 or len(held) != 1):
            yield on_graph(
                model, bpmn_model, "process-model", "error",
                f"seam:detailedBy: {len(named)} processes name this model "
                f"({', '.join(named) or 'none'}) and its file holds {len(held)} "
                f"({', '.join(held) or 'none'})",
                "a model with a timer start details exactly one proc:Process and holds exactly "
                "one bpmn:process: split the file",
            )  # fmt: skip
        elif bpmn_model in unclear and named:
            yield on_graph(
                model, bpmn_model, "process-model", "error",
                f"it is not clear which of its processes ({', '.join(named)}) holds "
                f"{', '.join(unclear[bpmn_model])}: its file holds {', '.join(held)}",
                "give each proc:Process the id of its bpmn:process as the last part of its IRI",
            )  # fmt: skip


def _waiting_processes(model: ModelGraph, records: list[Timer]) -> dict[str, Timer]:
    """Process → a timer that an instance of it waits on."""
    return {t.process: t for t in records if t.element.index_type == "TimerCatchEvent"}


def _stores(model: ModelGraph, records: list[Timer]) -> Iterator[Finding]:
    """Whoever keeps time needs exactly one relational store (R66, A21, ruling 13)."""
    waiting = _waiting_processes(model, records)
    executes, schedules = model.pairs(str(SEAM.executes)), model.pairs(str(SEAM.schedules))
    store_of: dict[str, str] = {}
    for container in sorted({*executes, *schedules}):
        waits = [p for p in executes.get(container, ()) if p in waiting]
        scheduled = schedules.get(container, ())
        if not waits and not scheduled:
            continue
        predicate = "seam:schedules" if scheduled else "seam:executes"
        try:
            store_of[container] = model.store_container(container, predicate)
        except ResolutionError as error:
            why = f"it schedules {local_name(scheduled[0])}" if scheduled else (
                f"instances of {local_name(waits[0])} wait on {waiting[waits[0]].id} there"
            )  # fmt: skip
            yield on_graph(
                model, container, "schedule-store" if scheduled else "wait-store", "error",
                f"{predicate}: {error.fact}, but {why}", error.fix,
            )  # fmt: skip
    for process, timer in sorted(waiting.items()):
        executing = model.executing_containers(process)
        if not executing and process in model.process_set:
            yield on_graph(
                model, process, "wait-not-executed", "warning",
                f"instances wait on {timer.id}, and no container executes the process",
                "name a container that seam:executes it",
            )  # fmt: skip
        stores = sorted({store_of[c] for c in executing if c in store_of})
        if len(stores) > 1:
            yield on_graph(
                model, process, "wait-stores-differ", "error",
                f"its containers ({', '.join(executing)}) keep state in different stores "
                f"({', '.join(stores)}): a timer that waits in one is not seen in the other",
                "give all of them the same seam:storedIn",
            )  # fmt: skip


def _placement(model: ModelGraph) -> Iterator[Finding]:
    executes, schedules = model.pairs(str(SEAM.executes)), model.pairs(str(SEAM.schedules))
    stored_in, deployed_to = model.pairs(str(SEAM.storedIn)), model.pairs(str(SEAM.deployedTo))
    nodes = frozenset(model.nodes)
    does = {c: "stores the state of " + local_name(by[0])
            for c, by in model.inverse(str(SEAM.storedIn)).items()}  # fmt: skip
    does |= {c: "executes " + local_name(p[0]) for c, p in executes.items()}
    does |= {c: "schedules " + local_name(p[0]) for c, p in schedules.items()}
    for container, what in sorted(does.items()):
        if container in deployed_to or container in nodes:
            continue  # a node in a container's place is left to the shapes
        is_file = "sqlite" in " ".join(model.technology(container)).lower()
        if is_file and not any(container in d for d in (executes, schedules, stored_in)):
            continue  # a SQLite file lies beside its container
        yield on_graph(
            model, container, "container-unplaced", "error",
            f"it {what} and is deployed to no node",
            "name its node with seam:deployedTo",
        )  # fmt: skip


def _triggers(model: ModelGraph) -> Iterator[Finding]:
    """A process that starts itself has no route, so a UI trigger of it does nothing (A11)."""
    triggered = model.inverse(str(SEAM.triggers))
    for event, how in _self_starts(model):
        for process in model.inverse(str(SEAM.detailedBy)).get(event.partition("#")[0], ()):
            if process in triggered:
                yield on_graph(
                    model, process, "process-two-triggers", "warning",
                    f"{local_name(event)} starts it {how} and "
                    f"{local_name(triggered[process][0])} triggers it: it gets no route",
                    "keep one of the two",
                )  # fmt: skip


def _self_starts(model: ModelGraph) -> Iterator[tuple[str, str]]:
    """The events that start a process by themselves: timers, and messages of a channel (R1)."""
    for event in model.typed(str(PROC.TimerStartEvent)):
        yield event, "on a schedule"
    catches = set(model.typed(str(PROC.MessageCatchEvent)))
    for event in sorted(catches & model.pairs(str(SEAM.subscribesTo)).keys()):
        bpmn_model, _, identifier = event.partition("#")
        try:
            element = model.payload(bpmn_model).elements.get(identifier)
        except UnusableInput:
            continue
        if element and (element.tag, element.parent) == ("startEvent", "process"):
            yield event, "through a channel"


def _suspicious(records: list[Timer], at: int) -> Iterator[Finding]:
    """Legal but likely wrong (ruling 10)."""
    accepted = [t for t in records if t.verdict == "accept"]
    table = timer_series(accepted, at)
    counts = table.latest_k(at) - table.first + 1
    for timer, missed in zip(accepted, counts.tolist(), strict=True):
        expression = timer.expression
        if isinstance(expression, TimeDuration | TimeCycle):
            text = expression.duration.text
            if _MANY_MONTHS.fullmatch(text):
                yield _about(timer, "months-or-minutes",
                             f"{text} means {expression.duration.in_words}",
                             f"if minutes are meant, write PT{text[1:]}")  # fmt: skip
        if not isinstance(expression, TimeCycle):
            continue
        duration = expression.duration
        if not duration.months and duration.micros < MINUTE:
            yield _about(timer, "short-period", f"it fires every {duration.in_words}",
                         "check the unit; a period under a minute is seldom meant")  # fmt: skip
        if not timer.is_start and expression.count is None:
            yield _about(timer, "endless-boundary",
                         "it has no end: it fires until somebody completes the task",
                         "give it a count, as in R3/<start>/<duration>")  # fmt: skip
        if timer.is_start and missed > MANY_MISSED:
            yield _about(timer, "many-missed",
                         f"{missed:,} firings lie in the past: a first load fires the newest and "
                         f"skips {missed - 1:,}", "move the start forward")  # fmt: skip
    yield from _unreachable(accepted, table.next(NONE).tolist(), at)


def _unreachable(accepted: list[Timer], first_due: list[int], at: int) -> Iterator[Finding]:
    """A boundary timer that an earlier interrupting one on the same task always cuts off."""
    on_task: dict[tuple[str, str | None], list[tuple[int, Timer]]] = {}
    for timer, due in zip(accepted, first_due, strict=True):
        if timer.element.attached_to and due != NONE:
            on_task.setdefault((timer.model, timer.element.attached_to), []).append((due, timer))
    for together in on_task.values():
        for due, timer in together:
            for other_due, other in together:
                # A duration and a fixed date come in either order, depending on the instance,
                # unless the date is past: then it is due as soon as an instance gets there.
                comparable = isinstance(timer.expression, TimeDuration) == isinstance(
                    other.expression, TimeDuration
                ) or (isinstance(other.expression, TimeDate) and other_due <= at)
                earlier = (other_due, other.id) < (due, timer.id)
                if other.element.interrupting and comparable and earlier:
                    yield _about(
                        timer, "unreachable-timer",
                        f"{other.id} interrupts {timer.element.attached_to} before it is due",
                        "swap the two, or make the earlier one non-interrupting",
                    )  # fmt: skip
                    break


def _about(timer: Timer, check_name: str, message: str, fix: str) -> Finding:
    return Finding(timer.file, timer.id, check_name, "warning", message, fix, timer.element.line)
