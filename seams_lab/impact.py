"""What stops when nodes die: per timer one of four words, and the reason.

``stops``
    No replica is left that could fire it, or the store it needs is gone.
``degraded``
    A node is lost, another one still runs the container (or holds the store).
``untouched``
    Nothing it needs is lost.
``unplaced``
    The model does not say where it runs, so nothing can be said.

The rules (ruling 14): a node takes the nodes with it that it arch:contains; a schedule needs its
scheduling container and that container's store; a container or store on several nodes is degraded
until the last one is gone, whatever its deploy:replicas. A waiting timer needs any one of the
containers that seam:executes its process. A SQLite store that is deployed nowhere is a file
beside its container.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from seams_lab.errors import UnusableInput
from seams_lab.graph import ModelGraph
from seams_lab.vocabulary import ARCH, PROC, SEAM

EFFECTS = ("untouched", "degraded", "stops", "unplaced")
UNTOUCHED, DEGRADED, STOPS, UNPLACED = range(4)
_MAX_TRIED = 200_000

Effects = npt.NDArray[np.int8]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class IndexedTimer:
    """A timer as the graph's index has it; ``runners`` are the containers that can fire it."""

    event: str
    process: str
    starts: bool
    runners: tuple[str, ...]


def indexed_timers(graph: ModelGraph) -> list[IndexedTimer]:
    """List the timers of the graph's index, sorted by IRI; no BPMN file is read for one process."""
    found = []
    in_model = graph.pairs(str(SEAM.inModel))
    detailed_by = graph.inverse(str(SEAM.detailedBy))
    for starts, kind, relation in [
        (True, PROC.TimerStartEvent, SEAM.schedules),
        (False, PROC.TimerCatchEvent, SEAM.executes),
    ]:
        runners = graph.inverse(str(relation))
        for event in graph.typed(str(kind)):
            models = in_model.get(event, ()) or (event.rpartition("#")[0],)
            processes = detailed_by.get(models[0], ())
            process = processes[0] if len(processes) == 1 else _process(graph, models[0], event)
            found.append(IndexedTimer(event, process, starts, runners.get(process, ())))
    return sorted(found, key=lambda t: (t.event, not t.starts))


def _process(graph: ModelGraph, model: str, event: str) -> str:
    """Which of a model's several processes holds an event: the BPMN file tells."""
    try:
        element = graph.payload(model).elements.get(event.rpartition("#")[2])
    except UnusableInput:
        element = None
    return (element and graph.process_of(model, element.process)) or ""


class Placement:
    """Where containers and stores lie, as matrices, so that many losses are judged at once."""

    def __init__(self, graph: ModelGraph) -> None:
        self.graph = graph
        self.timers = indexed_timers(graph)
        self.nodes = graph.nodes
        self._position = {node: i for i, node in enumerate(self.nodes)}
        stored_in = graph.pairs(str(SEAM.storedIn))
        self.runners = sorted({r for t in self.timers for r in t.runners})
        self.stores = {r: [s for s in stored_in.get(r, ()) if graph.is_relational(s)]
                       for r in self.runners}  # fmt: skip
        placed = sorted({*self.runners, *itertools.chain(*self.stores.values())})
        self._row = {container: i for i, container in enumerate(placed)}
        deployed_to = graph.pairs(str(SEAM.deployedTo))
        self.nodes_of = {
            c: [n for n in deployed_to.get(c, ()) if n in self._position] for c in placed
        }
        self.on = np.zeros((len(placed), len(self.nodes)), bool)
        for container, nodes in self.nodes_of.items():
            self.on[self._row[container], [self._position[n] for n in nodes]] = True
        self.takes = _closure(graph, self._position)

    def lost_with(self, named: Flags) -> Flags:
        """The nodes lost with each set of named nodes; both of shape (sets, nodes)."""
        return (named.astype(np.float32) @ self.takes.astype(np.float32)) > 0

    def effects(self, lost: Flags) -> Effects:
        """The effect on every timer of each set of lost nodes, shape (timers, sets)."""
        own = self.own_effects(lost)
        cache: dict[tuple[str, ...], Effects] = {}
        for timer in self.timers:
            if timer.runners not in cache:
                cache[timer.runners] = self._combined(timer.runners, own)
        if not self.timers:
            return np.zeros((0, len(lost)), np.int8)
        return np.stack([cache[t.runners] for t in self.timers])

    def own_effects(self, lost: Flags) -> Effects:
        """The effect per container, its store left aside, shape (containers, sets)."""
        gone = self.on.astype(np.float32) @ lost.T.astype(np.float32)
        has = self.on.sum(axis=1)[:, None]
        effects = np.where(gone == 0, UNTOUCHED, np.where(gone < has, DEGRADED, STOPS))
        return np.where(has == 0, UNPLACED, effects).astype(np.int8)

    def runner_effect(self, runner: str, own: Effects) -> Effects:
        """Effect on one container with its store, per set of lost nodes."""
        effect: Effects = own[self._row[runner]]
        for store in self.stores[runner]:
            if self.nodes_of[store] or not self.is_local(store):
                effect = np.maximum(effect, own[self._row[store]])
        return effect

    def is_local(self, store: str) -> bool:
        """Whether a store is a file beside its container (SQLite)."""
        return any("sqlite" in text.lower() for text in self.graph.technology(store))

    def _combined(self, runners: tuple[str, ...], own: Effects) -> Effects:
        effects = [self.runner_effect(r, own) for r in runners]
        if len(effects) == 1:
            return effects[0]
        placed = [e for e in effects if not (e == UNPLACED).all()]
        if not placed:
            return np.full(own.shape[1:] or (1,), UNPLACED, np.int8)
        stack = np.stack(placed)
        worst, best = stack.max(axis=0), stack.min(axis=0)
        return np.where(best == STOPS, STOPS, np.minimum(worst, DEGRADED)).astype(np.int8)


def _closure(graph: ModelGraph, position: dict[str, int]) -> Flags:
    """takes[i, j]: losing node i loses node j, through any depth of arch:contains."""
    contains = graph.pairs(str(ARCH.contains))
    takes = np.eye(len(position), dtype=bool)
    for node, row in position.items():
        seen, waiting = {node}, [node]
        while waiting:
            for part in contains.get(waiting.pop(), ()):
                if part not in seen:
                    seen.add(part)
                    waiting.append(part)
        takes[row, [position[n] for n in seen if n in position]] = True
    return takes


def impact(model: ModelGraph, nodes: Sequence[str] | str) -> pd.DataFrame:
    """What the loss of some nodes, all at once, does to every timer.

    Parameters
    ----------
    model : ModelGraph
    nodes : sequence of str
        IRIs, short names or labels of deployment nodes.

    Returns
    -------
    DataFrame
        One row per timer of the index: ``event``, ``process``, ``role`` (``starts`` a process or
        ``waits`` in one), ``container``, ``effect`` (category, worst last), ``cause`` (``own
        node``, ``containing node``, ``store`` or empty), ``reason``, ``event_iri``.

    Raises
    ------
    UnusableInput
        For a node that the model does not have.
    """
    place = Placement(model)
    named, gone = _losses(model, place, nodes)
    effects = place.effects(place.lost_with(named))[:, 0]
    dead = {node for node, is_named in zip(place.nodes, named[0], strict=True) if is_named}
    tell = _Reasons(place, dead, gone)
    told = [tell.of(t, int(e)) for t, e in zip(place.timers, effects, strict=True)]
    words = pd.Index(EFFECTS)
    return pd.DataFrame(
        {
            "event": [model.name(t.event) for t in place.timers],
            "process": [model.name(t.process) for t in place.timers],
            "role": ["starts" if t.starts else "waits" for t in place.timers],
            "container": [", ".join(map(model.name, t.runners)) for t in place.timers],
            "effect": pd.Categorical.from_codes(effects, categories=words, ordered=True),
            "cause": [cause for cause, _ in told],
            "reason": [reason for _, reason in told],
            "event_iri": [t.event for t in place.timers],
        }
    )


@dataclass(frozen=True)
class _Reasons:
    """Puts the effect on one timer into a sentence."""

    place: Placement
    named: set[str]
    lost: set[str]

    def of(self, timer: IndexedTimer, effect: int) -> tuple[str, str]:
        """(cause, sentence); the cause is that of the first container that is hit the worst."""
        name = self.place.graph.name
        if not timer.runners:
            verb = "schedules" if timer.starts else "executes"
            return "", f"no container {verb} {name(timer.process) or 'its process'}"
        told = [self._runner(runner) for runner in timer.runners]
        hit = [t for t in told if t[0] in (DEGRADED, STOPS)]
        if effect == UNPLACED or not hit:
            return "", "; ".join(sentence for _, _, sentence in told)
        first = max(hit, key=lambda t: t[0])
        return first[1], "; ".join(sentence for _, _, sentence in hit) + (
            "; another container still executes it"
            if effect == DEGRADED and any(t[0] == STOPS for t in hit)
            else ""
        )

    def _runner(self, runner: str) -> tuple[int, str, str]:
        graph = self.place.graph
        worst: tuple[int, str, str] | None = None
        for part, is_store in [(runner, False), *((s, True) for s in self.place.stores[runner])]:
            nodes = self.place.nodes_of[part]
            if not nodes:
                if is_store and self.place.is_local(part):
                    continue
                return UNPLACED, "", f"{graph.name(part)} is deployed to no node"
            gone = [n for n in nodes if n in self.lost]
            state = UNTOUCHED if not gone else STOPS if len(gone) == len(nodes) else DEGRADED
            if worst is None or state > worst[0]:
                worst = (state, *self._sentence(part, is_store, nodes, gone))
        assert worst is not None
        return worst

    def _sentence(
        self, part: str, is_store: bool, nodes: list[str], gone: list[str]
    ) -> tuple[str, str]:
        name = self.place.graph.name
        listed = ", ".join(map(name, nodes))
        if not gone:
            return "", f"{name(part)} on {listed}: no node is lost"
        inside = [n for n in gone if n not in self.named]
        cause = "store" if is_store else "containing node" if inside else "own node"
        lost = ", ".join(name(n) + (" (contained)" if n in inside else "") for n in gone)
        what = f"the store {name(part)}" if is_store else name(part)
        left = [n for n in nodes if n not in gone]
        rest = f"; {', '.join(map(name, left))} left" if left else "; none left"
        return cause, f"{cause}: {what} loses {lost}{rest}"


def impact_matrix(model: ModelGraph, *, starts_only: bool = False) -> pd.DataFrame:
    """The effect of losing each node alone, on every timer.

    Returns
    -------
    DataFrame of str
        Index (process, event), columns the nodes' short names; the words of `impact`.
    """
    place = Placement(model)
    effects = place.effects(place.takes)
    rows = [i for i, t in enumerate(place.timers) if t.starts or not starts_only]
    words = np.array(EFFECTS, dtype=object)[effects[rows]]
    shown = [place.timers[i] for i in rows]
    index = pd.MultiIndex.from_arrays(
        [[model.name(t.process) for t in shown], [model.name(t.event) for t in shown]],
        names=["process", "event"],
    )
    columns = pd.Index([model.name(n) for n in place.nodes], name="node")
    return pd.DataFrame(words, index=index, columns=columns)


def cut_sets(model: ModelGraph) -> pd.DataFrame:
    """The smallest sets of nodes whose loss stops a timer.

    Returns
    -------
    DataFrame
        One row per timer and smallest set: ``event``, ``process``, ``size``, ``nodes`` (short
        names, comma-separated). A timer that no loss can be shown to stop (unplaced) has none.
        ``attrs["not_searched"]`` lists timers whose search was cut.
    """
    place = Placement(model)
    rows, not_searched = [], []
    cache: dict[tuple[str, ...], list[tuple[int, ...]] | None] = {}
    for timer in place.timers:
        if timer.runners not in cache:
            cache[timer.runners] = _smallest(place, timer.runners)
        found = cache[timer.runners]
        if found is None:
            not_searched.append(timer.event)
        rows += [
            (
                model.name(timer.event),
                model.name(timer.process),
                len(chosen),
                ", ".join(model.name(place.nodes[i]) for i in chosen),
            )
            for chosen in found or ()
        ]
    frame = pd.DataFrame(rows, columns=["event", "process", "size", "nodes"])
    frame.attrs["not_searched"] = not_searched
    return frame


def _smallest(place: Placement, runners: tuple[str, ...]) -> list[tuple[int, ...]] | None:
    """All smallest sets of node positions that stop these containers; None: too many to try."""
    needs = [_needs(place, runner) for runner in runners]
    needs = [n for n in needs if n]
    if not needs:
        return []
    # Every container must go, each by losing all of its nodes or all of a store's.
    if math.prod(map(len, needs)) > _MAX_TRIED:
        return None
    goals = [set().union(*choice) for choice in itertools.product(*needs)]
    goal_bits = [sum(1 << i for i in goal) for goal in goals]
    wanted = sum(1 << i for i in set().union(*goals))
    takes = [sum(1 << int(j) for j in np.flatnonzero(row)) for row in place.takes]
    candidates = [i for i, bits in enumerate(takes) if bits & wanted]
    tried = 0
    for size in range(1, wanted.bit_count() + 1):
        found = []
        for chosen in itertools.combinations(candidates, size):
            tried += 1
            if tried > _MAX_TRIED:
                return None
            gone = 0
            for i in chosen:
                gone |= takes[i]
            if any(goal & ~gone == 0 for goal in goal_bits):
                found.append(chosen)
        if found:
            return found
    return []


def _needs(place: Placement, runner: str) -> list[set[int]]:
    """The node sets of which each must keep a node: the runner's own and its stores'.

    Empty for a runner that is unplaced, itself or by its store.
    """
    local = [s for s in place.stores[runner] if not place.nodes_of[s] and place.is_local(s)]
    parts = [runner, *(s for s in place.stores[runner] if s not in local)]
    sets = [{place.nodes.index(n) for n in place.nodes_of[p]} for p in parts]
    return sets if all(sets) else []


def paths(model: ModelGraph, nodes: Sequence[str] | str = ()) -> pd.DataFrame:
    """The links node → container → process → timer, for a picture.

    Returns
    -------
    DataFrame
        ``node`` (None: nothing says where it runs), ``role`` (``runs`` the container or
        ``stores`` its state), ``container``, ``process``, ``event``, ``effect`` of losing
        *nodes*, ``lost`` (the node is lost, itself or with the node that contains it).
    """
    place = Placement(model)
    told = impact(model, nodes)
    _, gone = _losses(model, place, nodes)
    rows: list[tuple[object, ...]] = []
    for timer, effect in zip(place.timers, told["effect"], strict=True):
        ends = (model.name(timer.process), model.name(timer.event), effect)
        if not timer.runners:
            rows.append((None, "runs", None, *ends, False))
        for runner in timer.runners:
            links: list[tuple[str | None, str]]
            links = [(n, "runs") for n in place.nodes_of[runner]] or [(None, "runs")]
            links += [(n, "stores") for s in place.stores[runner] for n in place.nodes_of[s]]
            rows += [
                (node and model.name(node), role, model.name(runner), *ends, node in gone)
                for node, role in links
            ]
    columns = ["node", "role", "container", "process", "event", "effect", "lost"]
    return pd.DataFrame(rows, columns=columns)


def _losses(
    model: ModelGraph, place: Placement, nodes: Sequence[str] | str
) -> tuple[Flags, set[str]]:
    """The named nodes as a row of flags, and all nodes lost with them."""
    names = [nodes] if isinstance(nodes, str) else list(nodes)
    dead = [model.find(name, model.nodes, "node") for name in names]
    named = np.isin(np.array(place.nodes, dtype=object), dead)[None, :]
    lost = place.lost_with(named)[0]
    return named, {node for node, gone in zip(place.nodes, lost, strict=True) if gone}
