"""Write a large model of any size: TriG and BPMN files that conform, the same for the same seed.

    python benchmarks/synthetic_model.py OUT --processes 2000 --containers 1000 --nodes 300

The default has about 56,000 triples. Sites contain hosts and hosts contain machines; services
run on one to three machines and keep their state in PostgreSQL (a container with machines of its
own) or SQLite (a file beside its service). Three processes in four start by a timer, of every
accepted form; most wait on one as well. ``--broken N`` damages N things in the graph, each so
that a SHACL shape reports it; the BPMN files stay sound.
"""

from __future__ import annotations

import argparse
import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BASE = "https://example.org/large/"
#: An instant at which the model has no error (and few firings missed).
CHECK_AT = "2026-11-09T00:00:00Z"

_PREFIXES = f"""\
@base <{BASE}> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix seam: <https://w3id.org/seams/seam#> .
@prefix arch: <https://w3id.org/seams/arch#> .
@prefix proc: <https://w3id.org/seams/proc#> .
@prefix deploy: <https://w3id.org/seams/deploy#> .
"""
_PER_HOST, _PER_SITE, _PER_STORE = 10, 50, 10


@dataclass(frozen=True)
class Event:
    """One element of a BPMN file; ``timer`` is (kind, text) of its expression, if it has one."""

    id: str
    tag: str
    kind: str | None = None
    timer: tuple[str, str] | None = None
    interrupting: bool = False


@dataclass(frozen=True)
class Process:
    """One process: its name, the flow in order, its boundary event, and who runs it."""

    name: str
    flow: tuple[Event, ...]
    boundary: Event | None
    containers: tuple[str, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        """All elements that the graph's index has."""
        return (*self.flow, self.boundary) if self.boundary else self.flow

    @property
    def is_timed(self) -> bool:
        """Whether a timer starts it."""
        return self.flow[0].timer is not None


@dataclass(frozen=True)
class Container:
    """One service or store and where it lies."""

    name: str
    technology: str
    nodes: tuple[str, ...]
    store: str | None = None


def write_model(
    folder: str | Path,
    *,
    processes: int = 2_000,
    containers: int = 1_000,
    nodes: int = 300,
    seed: int = 0,
    broken: int = 0,
) -> Path:
    """Write ``large.trig`` and one BPMN file per process to *folder*, and return it.

    Parameters
    ----------
    processes, containers, nodes : int
        How many of each; at least one process, two containers (a service and its store) and one
        node.
    seed : int
        Two models with the same arguments are equal byte by byte.
    broken : int
        How many things to damage in the graph, at most one per process.

    Raises
    ------
    ValueError
        For sizes below the least ones, or more damage than processes.
    """
    if processes < 1 or containers < 2 or nodes < 1 or not 0 <= broken <= processes:
        raise ValueError("need processes >= 1, containers >= 2, nodes >= 1, broken <= processes")
    rng = random.Random(seed)
    machines = [f"node{i:05}" for i in range(nodes)]
    runs = _containers(containers, machines, rng)
    services = [c for c in runs if c.store is not None]
    made = [_process(i, services, rng) for i in range(processes)]
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    checksums = {}
    for process in made:
        data = _bpmn(process).encode()
        (folder / f"{process.name}.bpmn").write_bytes(data)
        checksums[process.name] = hashlib.sha256(data).hexdigest()
    damaged = set(made[: processes : max(1, processes // broken)][:broken]) if broken else set()
    faults = {process.name: i % len(FAULTS) for i, process in enumerate(
        p for p in made if p in damaged)}  # fmt: skip
    lines = [_PREFIXES, *_architecture(machines, runs), *_models(made)]
    lines += [*_seams(made, runs, faults, services), *_manifest(checksums)]
    (folder / "large.trig").write_text("\n".join(lines) + "\n", "utf-8", newline="\n")
    return folder


# ---------------------------------------------------------------------- what there is


def _containers(count: int, machines: list[str], rng: random.Random) -> list[Container]:
    stores = []
    for i in range(max(1, count // _PER_STORE)):
        # PostgreSQL lies on machines of its own; SQLite is a file beside its service.
        here = _sample(machines, rng.choice((1, 2)), rng) if i % 2 == 0 else ()
        name = "PostgreSQL 16" if i % 2 == 0 else "SQLite"
        stores.append(Container(f"store{i:05}", name, here))
    services = []
    for i in range(count - len(stores)):
        store = stores[i % len(stores)]
        replicas = rng.choice((1, 2, 3)) if store.nodes else 1
        here = _sample(machines, replicas, rng)
        services.append(Container(f"service{i:05}", "FastAPI", here, store.name))
    return [*stores, *services]


def _sample(machines: list[str], how_many: int, rng: random.Random) -> tuple[str, ...]:
    return tuple(sorted(rng.sample(machines, min(how_many, len(machines)))))


def _process(i: int, services: list[Container], rng: random.Random) -> Process:
    first = services[i % len(services)]
    by = [first.name]
    if i % 4 == 1:
        # A second service on the same store: instances that wait are seen by both.
        same = [s.name for s in services[i % 97 :: 7] if s.store == first.store and s != first]
        by += same[:1]
    flow = [
        Event("start", "startEvent", *_start_timer(i, rng)),
        Event("review", "userTask", "UserTask"),
        Event("end", "endEvent"),
    ]
    if i % 2 == 0:
        flow.insert(2, Event("pause", "intermediateCatchEvent", "TimerCatchEvent", _pause(i, rng)))
    boundary = None
    if i % 3 == 0:
        timer, interrupting = _boundary_timer(i // 3, rng)
        boundary = Event("remind", "boundaryEvent", "TimerCatchEvent", timer, interrupting)
    return Process(f"p{i:05}", tuple(flow), boundary, tuple(sorted(by)))


def _start_timer(i: int, rng: random.Random) -> tuple[str | None, tuple[str, str] | None]:
    """Three processes in four start by a timer: all accepted forms, in turn."""
    if i % 4 == 3:
        return None, None
    day, hour, minute = rng.randint(1, 28), rng.randint(0, 23), rng.randrange(0, 60, 5)
    at = f"2026-11-{day:02}T{hour:02}:{minute:02}:00"
    cycles = (
        f"R/{at}Z/P1D",
        f"R{rng.randint(2, 5000)}/{at}Z/PT{rng.randint(1, 72)}H",
        f"R/2026-10-31T{hour:02}:00:00Z/P{rng.choice((1, 2, 3, 6))}M",
        f"R/{at}+02:00/P{rng.randint(1, 4)}W",
        f"R/2024-02-29T{hour:02}:00:00-05:00/P1Y",
        f"R/{at}Z/P1M{rng.randint(1, 3)}DT{rng.randint(1, 9)}H",
    )
    form = (i // 4 * 3 + i % 4) % (len(cycles) + 1)
    if form == len(cycles):
        return "TimerStartEvent", ("timeDate", f"2027-{1 + day % 12:02}-{day:02}T{hour:02}:00:00Z")
    return "TimerStartEvent", ("timeCycle", cycles[form])


def _pause(i: int, rng: random.Random) -> tuple[str, str]:
    forms = (
        ("timeDuration", f"PT{rng.randint(1, 96)}H"),
        ("timeDuration", f"P{rng.randint(1, 9)}M"),
        ("timeDate", f"2027-0{rng.randint(1, 9)}-15T12:00:00+01:00"),
        ("timeDuration", f"P{rng.randint(1, 6)}W"),
    )
    return forms[i // 2 % len(forms)]


def _boundary_timer(i: int, rng: random.Random) -> tuple[tuple[str, str], bool]:
    forms = (
        (("timeDuration", f"PT{rng.randint(24, 72)}H"), False),
        (("timeDuration", f"P{rng.randint(2, 20)}D"), True),
        (("timeCycle", f"R{rng.randint(2, 9)}/2026-11-10T08:00:00Z/P{rng.randint(1, 7)}D"), False),
    )
    return forms[i % len(forms)]


# ---------------------------------------------------------------------- TriG


def _architecture(machines: list[str], runs: list[Container]) -> Iterator[str]:
    yield "GRAPH <urn:seams:graph:model:architecture> {"
    yield '<architecture> a seam:Model ; rdfs:label "Large system" .'
    for i, name in enumerate(machines):
        inside = []
        if i % _PER_SITE == 0:
            inside += machines[i + _PER_HOST : i + _PER_SITE : _PER_HOST]
        if i % _PER_HOST == 0:
            inside += machines[i + 1 : i + _PER_HOST]
        contains = " ; arch:contains " + ", ".join(f"<{n}>" for n in inside) if inside else ""
        yield f"<{name}> a arch:DeploymentNode ; {_told(name, 'architecture')}{contains} ."
    for container in runs:
        depends = ""
        if container.store:
            replicas = len(container.nodes)
            depends = f" ; arch:dependsOn <{container.store}> ; deploy:replicas {replicas}"
        yield (
            f"<{container.name}> a arch:Container ; {_told(container.name, 'architecture')} ; "
            f'arch:technology "{container.technology}"{depends} .'
        )
    yield "}"


def _told(name: str, model: str) -> str:
    return f'rdfs:label "{name.capitalize()}" ; seam:inModel <{model}>'


def _models(made: list[Process]) -> Iterator[str]:
    for process in made:
        name = process.name
        yield f"GRAPH <urn:seams:graph:model:{name}> {{"
        yield f'<{name}> a seam:Model ; rdfs:label "Model {name}" .'
        yield f"<{name}_process> a proc:Process ; {_told(name, name)} ."
        for event in process.events:
            kind = f"a proc:{event.kind} ; " if event.kind else ""
            yield f"<{name}#{event.id}> {kind}{_told(event.id, name)} ."
        yield "}"


#: What can be damaged: each is reported by a shape of the kit.
FAULTS = (
    "no notation",
    "never scheduled, or detailed by no model",
    "scheduled twice",
    "detailed by a process",
    "deployed to a container",
)


def _seams(
    made: list[Process], runs: list[Container], faults: dict[str, int], services: list[Container]
) -> Iterator[str]:
    yield "GRAPH <urn:seams:graph:seams> {"
    yield "<architecture> seam:notation seam:C4 ."
    executes: dict[str, list[str]] = {}
    schedules: dict[str, list[str]] = {}
    for process in made:
        name = process.name
        fault = FAULTS[faults[name]] if name in faults else ""
        notation = "" if fault == FAULTS[0] else "seam:notation seam:BPMN ; "
        yield f"<{name}> {notation}seam:renderPayload <payload/{name}.bpmn> ."
        detail = f"<{name}_process>" if fault == FAULTS[3] else f"<{name}>"
        yield f"<{name}_process> seam:detailedBy {detail} ."
        for container in process.containers:
            executes.setdefault(container, []).append(name)
        if process.is_timed and fault != FAULTS[1]:
            schedules.setdefault(process.containers[0], []).append(name)
        if fault == FAULTS[1] and not process.is_timed:
            yield f"<{name}_process> seam:detailedBy <nowhere> ."
        if fault == FAULTS[2]:  # by one that does not execute it, which is reported in any case
            others = [s.name for s in services if s.name not in process.containers]
            schedules.setdefault((others or [runs[0].name])[0], []).append(name)
        if fault == FAULTS[4]:
            yield f"<{process.containers[0]}> seam:deployedTo <{runs[0].name}> ."
    for run in runs:
        parts = [f"seam:deployedTo {_iris(run.nodes)}"] if run.nodes else []
        parts += [f"seam:storedIn <{run.store}>"] if run.store else []
        for relation, by in (("executes", executes), ("schedules", schedules)):
            if run.name in by:
                names = [f"{name}_process" for name in by[run.name]]
                parts.append(f"seam:{relation} {_iris(names)}")
        if parts:
            yield f"<{run.name}> {' ; '.join(parts)} ."
    yield "}"


def _iris(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"<{name}>" for name in names)


def _manifest(checksums: dict[str, str]) -> Iterator[str]:
    yield "GRAPH <urn:seams:graph:manifest> {"
    for name, checksum in checksums.items():
        yield (
            f'<payload/{name}.bpmn> seam:filePath "{name}.bpmn" ; '
            f'seam:mediaType "application/xml" ; seam:checksum "sha256:{checksum}" .'
        )
    yield "}"


# ---------------------------------------------------------------------- BPMN


def _bpmn(process: Process) -> str:
    """The file with its diagram, as a modeler would write it."""
    name = process.name
    flows = list(zip(process.flow[:-1], process.flow[1:], strict=True))
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" '
        'xmlns:bpmndi="http://www.omg.org/spec/BPMN/20100524/DI" '
        'xmlns:dc="http://www.omg.org/spec/DD/20100524/DC" '
        'xmlns:di="http://www.omg.org/spec/DD/20100524/DI" '
        f'id="definitions" targetNamespace="{BASE}{name}">',
        f'  <bpmn:process id="{name}_process" name="{name}" isExecutable="true">',
        *(line for event in process.events for line in _event(event)),
    ]
    lines += [
        f'    <bpmn:sequenceFlow id="{a.id}_to_{b.id}" sourceRef="{a.id}" targetRef="{b.id}"/>'
        for a, b in flows
    ]
    if process.boundary:
        lines.append(
            '    <bpmn:sequenceFlow id="remind_to_end" sourceRef="remind" targetRef="end"/>'
        )
        flows.append((process.boundary, process.flow[-1]))
    lines += [
        "  </bpmn:process>",
        '  <bpmndi:BPMNDiagram id="diagram">',
        f'    <bpmndi:BPMNPlane id="plane" bpmnElement="{name}_process">',
        *_diagram(process, flows),
        "    </bpmndi:BPMNPlane>",
        "  </bpmndi:BPMNDiagram>",
        "</bpmn:definitions>",
    ]
    return "\n".join(lines) + "\n"


def _event(event: Event) -> list[str]:
    extra = ""
    if event.tag == "boundaryEvent":
        extra = f' attachedToRef="review" cancelActivity="{str(event.interrupting).lower()}"'
    head = f'    <bpmn:{event.tag} id="{event.id}" name="{event.id.capitalize()}"{extra}'
    if event.timer is None:
        return [head + "/>"]
    kind, text = event.timer
    return [
        head + ">",
        f'      <bpmn:timerEventDefinition id="{event.id}_timer">',
        f'        <bpmn:{kind}>"{text}"</bpmn:{kind}>',
        "      </bpmn:timerEventDefinition>",
        f"    </bpmn:{event.tag}>",
    ]


def _diagram(process: Process, flows: list[tuple[Event, Event]]) -> Iterator[str]:
    # Left to right; the boundary event sits on the lower edge of its task.
    boxes = {
        event.id: (160 * i, 82, 36, 36) if event.tag.endswith("Event") else (160 * i, 60, 100, 80)
        for i, event in enumerate(process.flow)
    }
    if process.boundary:
        boxes["remind"] = (192, 122, 36, 36)
    for id_, (x, y, width, height) in boxes.items():
        yield f'      <bpmndi:BPMNShape id="{id_}_shape" bpmnElement="{id_}">'
        yield f'        <dc:Bounds x="{x}" y="{y}" width="{width}" height="{height}"/>'
        yield "      </bpmndi:BPMNShape>"
    for source, target in flows:
        (x, y, width, height), (to_x, to_y, _, to_height) = boxes[source.id], boxes[target.id]
        name = f"{source.id}_to_{target.id}"
        yield f'      <bpmndi:BPMNEdge id="{name}_edge" bpmnElement="{name}">'
        yield f'        <di:waypoint x="{x + width}" y="{y + height // 2}"/>'
        yield f'        <di:waypoint x="{to_x}" y="{to_y + to_height // 2}"/>'
        yield "      </bpmndi:BPMNEdge>"


def main() -> None:
    """Read the command line and write the model."""
    parser = argparse.ArgumentParser(description="Write a large synthetic model.")
    parser.add_argument("out", type=Path, help="folder to write to (made if missing)")
    parser.add_argument("--processes", type=int, default=2_000)
    parser.add_argument("--containers", type=int, default=1_000)
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--broken", type=int, default=0, help="damage this many things")
    words = vars(parser.parse_args())
    out = words.pop("out")
    try:
        print(write_model(out, **words))
    except (ValueError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
