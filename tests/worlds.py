"""Worlds for tests of the runtime: a model, a store, one clock, replicas that die; what must hold.

What must hold is checked by reading the tables alone (`verify`), with a grid of due times that is
computed here from the expression's text, not by the code under test.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy
from fixtures.engines import START, bpmn, timer
from sqlalchemy import event as sqlalchemy_event

from seams_lab.clock import Clock, ManualClock
from seams_lab.expressions import SECOND
from seams_lab.graph import ModelGraph, load_graph
from seams_lab.instants import to_micros, to_text
from seams_lab.runtime import schema
from seams_lab.runtime.deployment import Deployment, deployment
from seams_lab.runtime.engine import Engine, Handler
from seams_lab.runtime.runtime import Runtime
from seams_lab.runtime.store import Store, StoreFailure
from seams_lab.runtime.telemetry import Telemetry
from seams_lab.runtime.worker import Retries

#: When most cycles of these tests begin, and where most clocks stand first.
T0 = "2026-11-09T08:00:00Z"
MINUTE, HOUR = 60 * SECOND, 3_600 * SECOND
#: The lease of every replica here; it is long in the clock of a test and takes no time.
LEASE = MINUTE

_UNITS = {"S": SECOND, "M": MINUTE, "H": HOUR, "D": 24 * HOUR}


def at(seconds: float = 0) -> int:
    """So many seconds after T0, in microseconds (UTC)."""
    return to_micros(T0) + round(seconds * SECOND)


# ---------------------------------------------------------------------- models


def ticking(text: str, kind: str = "timeCycle", nodes: str = '<endEvent id="e"/>',
            flows: str = "tick e", identifier: str = "p", more: str = "") -> str:  # fmt: skip
    """A process that the timer start ``tick`` starts; by default it ends at once."""
    start = f'<startEvent id="tick">{timer(kind, text)}</startEvent>'
    return bpmn(start + more + nodes, flows, identifier)


def asking(boundaries: str = "", flows: str = "", nodes: str = "") -> str:
    """A process with a none start, the user task ``u`` and what is attached to it."""
    return bpmn(
        START + '<userTask id="u" name="Answer"/><endEvent id="e"/>' + boundaries + nodes,
        f"s u; u e; {flows}",
    )


# ---------------------------------------------------------------------- worlds and replicas


@dataclass
class World:
    """A model, a store and one clock that replicas share.

    ``texts`` is one BPMN text, or several by the name of their file.
    """

    folder: Path
    url: str
    texts: str | Mapping[str, str]
    start: str = "2026-11-09T07:59:00Z"
    handlers: dict[str, Handler] = field(default_factory=dict)
    clock: ManualClock = field(init=False)
    opened: list[Store] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.clock = ManualClock(self.start)
        self.graph = self.model(self.texts)
        # Connections of replicas that are gone: a store keeps nothing but compiled statements.
        self._idle: list[Store] = []
        self._engines: dict[int, tuple[Deployment, Engine]] = {}

    def model(self, texts: str | Mapping[str, str], folder: str = "model") -> ModelGraph:
        """Write a model of bare BPMN files and read it."""
        texts = {"m": texts} if isinstance(texts, str) else texts
        into = self.folder / folder
        into.mkdir(exist_ok=True)
        for name, text in texts.items():
            (into / f"{name}.bpmn").write_text(text, encoding="utf-8")
        return load_graph(into)

    def store(self) -> Store:
        """One more connection to the store, as another process would have."""
        self.opened.append(self._idle.pop() if self._idle else Store(self.url))
        self.opened[-1].watch = None
        return self.opened[-1]

    def replica(
        self, name: str = "replica", *, graph: ModelGraph | None = None, clock: Clock | None = None,
        store: Store | None = None, retries: Retries | None = None, batch: int = 100,
        join: bool = False, accept: bool = False, cancel: bool = False,
        watch: Callable[[str], None] | None = None,
    ) -> Runtime:  # fmt: skip
        """One more replica, named exactly so.

        It is what `Runtime.load` makes, without checking the same model each time. *join*: it
        also agrees with the other replicas on clock and expressions, as the first one does.
        """
        graph = graph or self.graph
        found, engine = self.loaded(graph)
        made = Runtime(
            graph, found, store or self.store(), engine, clock or self.clock, Telemetry(), name,
            LEASE, 5 * SECOND, 2, batch, retries or Retries(), _ids(),
        )  # fmt: skip
        made.store.watch = watch
        # What a replica does when it is loaded costs much and changes nothing the second time.
        if join or not self.rows(schema.timer):
            made._join(accept, cancel, False)
        return made

    def loaded(self, graph: ModelGraph) -> tuple[Deployment, Engine]:
        """A model, checked once; an engine keeps nothing of the instances it runs."""
        if id(graph) not in self._engines:
            found = deployment(graph, None, self.clock.now())
            self._engines[id(graph)] = found, Engine(graph, found.processes, self.handlers)
        return self._engines[id(graph)]

    def heal(self) -> Runtime:
        """Let every lease expire, and let a new replica do all that is left."""
        self.clock.advance(LEASE + SECOND)
        survivor = self.replica("survivor")
        survivor.settle()
        return survivor

    # What the tables say, by plain queries.

    def rows(self, table: sqlalchemy.Table) -> list[Any]:
        """All rows of a table, in the order of its key."""
        with self.reader.reading() as tx:
            return tx.read(sqlalchemy.select(table).order_by(*table.primary_key))

    def dump(self) -> dict[str, list[Any]]:
        """All rows of all tables: equal before and after what must not have any effect."""
        return {name: self.rows(table) for name, table in schema.metadata.tables.items()}

    def execute(self, statement: Any, rows: Any = None) -> None:
        """Write to the tables past the runtime."""
        with self.reader._engine.begin() as connection:
            connection.execute(statement, rows or {})

    def save(self) -> tuple[int, dict[str, list[dict[str, Any]]]]:
        """The instant and all rows, to begin again from there."""
        rows = {name: [dict(row._mapping) for row in found] for name, found in self.dump().items()}
        return self.clock.now(), rows

    def rewind(self, saved: tuple[int, dict[str, list[dict[str, Any]]]]) -> None:
        """Begin again from what was saved; no replica lives on."""
        self._idle += self.opened
        self.opened.clear()
        with self.reader._engine.begin() as connection:
            for table in schema.metadata.sorted_tables:
                connection.execute(sqlalchemy.delete(table))
                if saved[1][table.name]:
                    connection.execute(sqlalchemy.insert(table), saved[1][table.name])
        self.clock.set(saved[0])

    def empty(self) -> None:
        """Begin anew: an empty store, the clock at its first instant."""
        kept = [{"key": r.key, "value": r.value} for r in self.rows(schema.meta)
                if r.key in ("format", "version")]  # fmt: skip
        tables = {name: [] for name in schema.metadata.tables}
        self.rewind((to_micros(self.start), tables | {schema.meta.name: kept}))

    @property
    def reader(self) -> Store:
        """A connection that belongs to no replica."""
        if not hasattr(self, "_reader"):
            self._reader = Store(self.url)
        return self._reader

    def close(self) -> None:
        """Close every connection that is left."""
        for store in [*self.opened, *self._idle, self.reader]:
            store.close()

    # Short forms of what tests ask most.

    def firings(self) -> list[tuple[str, int, int]]:
        """(event id, due in seconds after T0, skipped) of each firing."""
        return sorted((short(r.event), (r.due - at()) // SECOND, r.skipped)
                      for r in self.rows(schema.firing))  # fmt: skip

    def statuses(self) -> Counter[str]:
        """How many instances have each status."""
        return Counter(row.status for row in self.rows(schema.instance))

    def paths(self) -> list[list[str]]:
        """The elements that each instance did, in order."""
        done: dict[str, list[str]] = {row.id: [] for row in self.rows(schema.instance)}
        for row in self.rows(schema.trace):
            done[row.instance].append(short(row.element))
        return sorted(done.values())


@contextmanager
def world(folder: Path, url: str, texts: str | Mapping[str, str], **options: Any
          ) -> Iterator[World]:  # fmt: skip
    """A world whose connections are closed at the end."""
    made = World(folder, url, texts, **options)
    try:
        yield made
    finally:
        made.close()


_made = iter(range(1, 10**9))


def _ids() -> Callable[[], str]:
    return lambda: f"i{next(_made):08d}"


def short(iri: str) -> str:
    """The BPMN id of an IRI."""
    return iri.rpartition("#")[2]


# ---------------------------------------------------------------------- ways to fail


class Killed(BaseException):
    """The process is dead: not even its handlers of errors reach the store."""


class Killer:
    """Kills a replica at its n-th word to the store: a statement, COMMIT, or after it."""

    def __init__(self, point: int, only: str | None = None) -> None:
        self.left, self.only, self.name, self.dead = point, only, "", False

    def __call__(self, name: str) -> None:
        if self.dead:
            raise Killed(self.name)
        if self.only in (None, name):
            self.left -= 1
        if self.left == 0:
            self.dead, self.name = True, name
            raise Killed(name)


class Loser:
    """Loses the answer of the n-th COMMIT; the replica lives on.

    *happened*: the store committed. Otherwise the word never reached it.
    """

    def __init__(self, point: int, happened: bool) -> None:
        self.left, self.word, self.hit = point, "committed" if happened else "commit", False

    def __call__(self, name: str) -> None:
        if name == self.word:
            self.left -= 1
            if self.left == 0:
                self.hit = True
                raise StoreFailure("the answer is lost", unknown=True)


class Cutter:
    """Cuts the connection before the n-th word of a transaction; the replica lives on."""

    def __init__(self, store: Store, point: int) -> None:
        self.left, self.hit, self.url = point, False, store._engine.url
        self.connection: Any = None
        self.engine = store._engine
        sqlalchemy_event.listen(self.engine, "checkout", self._checkout)

    def end(self) -> None:
        """Let the store be."""
        sqlalchemy_event.remove(self.engine, "checkout", self._checkout)

    def _checkout(self, connection: Any, *_: Any) -> None:
        self.connection = connection

    def __call__(self, name: str) -> None:
        if name == "committed":
            return
        self.left -= 1
        if self.left != 0:
            return
        self.hit = True
        if isinstance(self.connection, sqlite3.Connection):
            self.connection.close()
            return
        address = self.url.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(address, autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(%s, 5000)",
                          [self.connection.info.backend_pid])  # fmt: skip


class Meanwhile:
    """Lets something else happen at the n-th word of a replica, on a thread of its own.

    Where it must wait for this replica's transaction, it goes on when that has ended.
    """

    def __init__(self, point: int, other: Callable[[], Any]) -> None:
        self.left, self.other, self.hit = point, other, False
        self.errors: list[BaseException] = []
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.other()
        except BaseException as error:
            self.errors.append(error)

    def __call__(self, name: str) -> None:
        self.left -= 1
        if self.left == 0:
            self.hit = True
            self.thread.start()
            self.thread.join(0.03)

    def end(self) -> None:
        """Wait until the other thing has happened; raise what it raised."""
        if self.hit:
            self.thread.join(60)
            assert not self.thread.is_alive(), "two replicas wait for each other"
        if self.errors:
            raise self.errors[0]


def killed(replica: Runtime, act: Callable[[Runtime], Any], killer: Killer) -> bool:
    """Let a replica act until it dies; whether it died."""
    replica.store.watch = killer
    with suppress(Killed):
        act(replica)
    return killer.dead


# ---------------------------------------------------------------------- what must hold


def grid(text: str, until: int) -> list[int]:
    """The due times of a cycle up to an instant, by addition."""
    found = re.fullmatch(r"timeCycle R(\d*)/([^/]+)/PT?(\d+)([SMHD])", text)
    if found is None:
        kind, _, instant = text.partition(" ")
        assert kind == "timeDate", text
        due = to_micros(instant)
        return [due] if due <= until else []
    count, start, length, unit = found.groups()
    dues, due = [], to_micros(start)
    while due <= until and (not count or len(dues) < int(count)):
        dues.append(due)
        due += int(length) * _UNITS[unit]
    return dues


def verify(made: World, *, settled: bool = True, graph: ModelGraph | None = None) -> None:
    """Check the invariants S1 to S4 and S7 on the tables.

    *settled*: all that was due has been done, so nothing may be left over either.
    """
    instances = {row.id: row for row in made.rows(schema.instance)}
    firings = made.rows(schema.firing)
    _verify_firings(made, firings, settled)
    starts = {row.instance: row for row in firings if row.waiter == ""}
    assert len(starts) == sum(row.waiter == "" for row in firings), "one start, one instance"
    assert starts.keys() <= instances.keys(), "S4: a firing row has its instance"
    dated = {i for i, row in instances.items() if re.match(r"\d{4}-", row.correlation_key)}
    assert dated == starts.keys(), "S4: an instance of a timer has its firing row"
    for key, row in starts.items():
        assert instances[key].correlation_key == to_text(row.due)
    _, engine = made.loaded(graph or made.graph)
    for row in instances.values():
        _verify_instance(made, engine, row, firings, settled)


def _verify_firings(made: World, firings: list[Any], settled: bool) -> None:
    for row in firings:
        assert row.fired_at >= row.due, "S3: nothing fires early"
    for kept in made.rows(schema.timer):
        if kept.role != "start":
            continue
        mine = [row for row in firings if row.event == kept.event]
        dues, skipped = grid(kept.expression, made.clock.now()), 0
        previous = -1
        for row in mine:
            assert row.due in dues, "S1: only due times of the series"
            place = dues.index(row.due)
            assert row.skipped == place - previous - 1, "S7: the skipped count is exact"
            previous, skipped = place, skipped + row.skipped
        if settled:
            assert len(mine) + skipped == len(dues), "S7: skipped + fired = all that was due"


def _verify_instance(made: World, engine: Engine, row: Any, firings: list[Any],
                     settled: bool) -> None:  # fmt: skip
    workflow = engine.restore(row.process, row.checkpoint)
    expected = [(w.task, w.event, w.due) for w in engine.waiting(workflow)]
    waits = [w for w in made.rows(schema.wait) if w.instance == row.id]
    if row.revision > 1:
        assert sorted((w.task, w.event, w.due) for w in waits) == sorted(expected), (
            "R: the rows of waiting timers are those of the checkpoint"
        )
    trace = [t for t in made.rows(schema.trace) if t.instance == row.id]
    assert all(t.revision <= row.revision for t in trace), "S2: no trace without its checkpoint"
    for revision in {t.revision for t in trace}:
        places = [t.position for t in trace if t.revision == revision]
        assert places == list(range(len(places)))
        elements = [t.element for t in trace if t.revision == revision]
        assert len(elements) == len(set(elements)), "an element stands once in a revision"
    woken = [(t.element, t.due) for t in trace if t.kind in ("boundaryEvent",
                                                            "intermediateCatchEvent")]  # fmt: skip
    wakes = [f for f in firings if f.instance == row.id and f.waiter]
    assert sorted(woken) == sorted((f.event, f.due) for f in wakes), "S1, S4: each wake once"
    assert not {f.waiter for f in wakes} & {w.task for w in waits}, "what fired does not wait"
    assert (row.status == "completed") == (engine.is_ended(workflow) and row.holder is None)
    if settled:
        assert row.holder is None, "no claim is left"
        assert row.status in ("completed", "waiting", "failed")
        if row.status != "failed":
            assert all(w.holder is None and w.due > made.clock.now() for w in waits)
