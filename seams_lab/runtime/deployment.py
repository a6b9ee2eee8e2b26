"""What one container runs, resolved from the model and checked before anything starts."""

from __future__ import annotations

from dataclasses import dataclass

from seams_lab.check import check
from seams_lab.errors import ResolutionError, UnusableInput
from seams_lab.graph import ModelGraph
from seams_lab.profile import not_lifted_fix, not_lifted_reason
from seams_lab.timers import Timer, timers
from seams_lab.vocabulary import SEAM


@dataclass(frozen=True)
class Deployment:
    """A container's part of a model.

    ``container`` is its IRI (empty for bare BPMN files, which run as a whole); ``processes`` are
    those it executes or schedules; ``starts`` the timer starts that it schedules; ``waits`` the
    timers that instances of its processes wait on.
    """

    container: str
    processes: tuple[str, ...]
    starts: tuple[Timer, ...]
    waits: tuple[Timer, ...]


def deployment(graph: ModelGraph, container: str | None, at: int) -> Deployment:
    """Resolve what *container* runs, and refuse a model with any error.

    *container* is a short name or IRI; it may be left out when only one executes processes. *at*
    (microseconds, UTC) is the instant of the check.

    Raises
    ------
    ResolutionError
        For what `check` calls an error, the timers of this container first: a refused expression
        or one out of scope (R40 to R53, ruling 11a), a missing relational store (R66).
    UnusableInput
        When the container cannot be told, or a file not read.
    """
    chosen = "" if graph.bare else _container(graph, container)
    records = timers(graph, at)
    found = _deployment(graph, chosen, records)
    mine = {t.event for t in (*found.starts, *found.waits)}
    for timer in records:
        if timer.event in mine and timer.refusal is not None:
            raise timer.refusal
        if timer.verdict == "not lifted" and timer.process in found.processes:
            raise ResolutionError(
                timer.event, "bpmn:timerEventDefinition", not_lifted_reason(timer.element),
                code="OUT_OF_SCOPE", fix=not_lifted_fix(timer.element),
            )  # fmt: skip
    if chosen and found.starts:
        graph.store_container(chosen, "seam:schedules")
    elif chosen and found.waits:
        graph.store_container(chosen, "seam:executes")
    _refuse_errors(graph, at)
    return found


def _container(graph: ModelGraph, name: str | None) -> str:
    executing = sorted(
        {*graph.pairs(str(SEAM.executes)), *graph.pairs(str(SEAM.schedules))}
        & set(graph.containers)
    )
    if name is not None:
        return graph.find(name, executing, "container")
    if len(executing) == 1:
        return executing[0]
    names = ", ".join(graph.name(c) for c in executing)
    raise UnusableInput(
        "container", "no name" if executing else "no container executes a process",
        f"one of {names}" if executing else "a container that seam:executes a process",
        "name the container to run: --container NAME" if executing else "add seam:executes",
    )  # fmt: skip


def _deployment(graph: ModelGraph, container: str, records: list[Timer]) -> Deployment:
    if graph.bare:
        in_scope = [t for t in records if t.verdict != "not lifted"]
        return Deployment(
            "", all_processes(graph), tuple(t for t in in_scope if t.is_start),
            tuple(t for t in in_scope if not t.is_start),
        )  # fmt: skip
    relations = (str(SEAM.executes), str(SEAM.schedules))
    processes = tuple(sorted({p for r in relations for p in graph.pairs(r).get(container, ())}))
    mine = [t for t in records if container in t.containers]
    return Deployment(
        container, processes, tuple(t for t in mine if t.is_start),
        tuple(t for t in mine if not t.is_start),
    )  # fmt: skip


def all_processes(graph: ModelGraph) -> tuple[str, ...]:
    """Every process of a model: its IRI, or in a bare file the id of its ``bpmn:process``."""
    if not graph.bare:
        return graph.processes
    return tuple(
        graph.process_of(model, process) or f"{model}#{process}"
        for model in graph.bpmn_models
        for process in graph.payload(model).processes
    )


def _refuse_errors(graph: ModelGraph, at: int) -> None:
    errors = check(graph, at).errors
    if not errors:
        return
    first = errors[0]
    others = f" (and {len(errors) - 1} more: seams-lab check)" if len(errors) > 1 else ""
    raise ResolutionError(
        first.element or first.file, first.check, first.message + others, code="CHECK",
        fix=first.fix,
    )  # fmt: skip
