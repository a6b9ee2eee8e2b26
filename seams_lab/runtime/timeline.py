"""What happened on a store, as one table: runs, user tasks, firings, and those skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import select

from seams_lab.due import utc
from seams_lab.errors import UnusableInput
from seams_lab.expressions import TimerExpression
from seams_lab.graph import ModelGraph, local_name
from seams_lab.runtime.instance import Instance, read_instances
from seams_lab.runtime.schema import firing
from seams_lab.runtime.store import Store
from seams_lab.series import series

#: Firings that are read, the newest first.
MOST_FIRINGS = 2_000
#: Skipped due times that one firing adds, the newest first.
MOST_SKIPPED = 200
COLUMNS = ["lane", "kind", "name", "start", "end", "open"]
_BPMN = "{http://www.omg.org/spec/BPMN/20100524/MODEL}"

Row = tuple[str, str, str, int, int, bool]


def read_timeline(
    graph: ModelGraph, store: Store, processes: Sequence[str],
    expressions: Mapping[str, TimerExpression], at: int, limit: int = 60,
) -> pd.DataFrame:  # fmt: skip
    """Read what happened, one row per run, user task, firing and skipped firing.

    A lane is a timer start, or an instance: one that no timer started, or that has user tasks,
    waking timers or steps left.

    Parameters
    ----------
    graph : ModelGraph
        Its flows tell when a user task that is done was opened: when the element before it was.
    expressions : mapping
        Event IRI → expression, from which the due times of skipped firings are computed.
    at : int
        The present (microseconds, UTC).
    limit : int
        How many instances are read, the newest first.

    Returns
    -------
    DataFrame
        ``lane``, ``kind`` (run, task, firing, skipped), ``name``, ``start`` and ``end``
        (datetime64[us, UTC]), ``open`` (whether *end* is only the present). A firing starts when
        it is due and ends when it fired; a skipped one ends when the one that ran in its stead
        fired. ``attrs["left_off"]`` counts the skipped firings that have no row.
    """
    instances = read_instances(store, processes=processes, limit=limit, with_trace=True)
    with store.reading() as tx:
        firings = list(tx.read(
            select(firing).order_by(firing.c.fired_at.desc(), firing.c.event, firing.c.due.desc())
            .limit(MOST_FIRINGS)
        ))  # fmt: skip
    started = {row.instance for row in firings if not row.waiter}
    woken = {row.instance for row in firings if row.waiter}
    before = _before_tasks(graph)
    tasks = {one.id: list(_tasks(one, before, at)) for one in instances}
    own = [
        one for one in reversed(instances)
        if one.id not in started or one.id in woken or tasks[one.id] or one.status != "completed"
    ]  # fmt: skip
    names = _lanes(graph, own)
    rows: list[Row] = []
    for one in own:
        lane, ended = names[one.id], one.status == "completed"
        rows.append((lane, "run", one.status, one.created_at, one.changed_at if ended else at,
                     not ended))  # fmt: skip
        rows += [(lane, "task", *task) for task in tasks[one.id]]
    left_off = 0
    for row in reversed(firings):
        name = local_name(row.event)
        lane = names.get(row.instance, "") if row.waiter else name
        if not lane or row.event not in expressions:  # of an instance or model not read
            continue
        skipped = _skipped(expressions[row.event], row.due, row.skipped)
        left_off += row.skipped - len(skipped)
        rows += [(lane, "skipped", name, due, row.fired_at, False) for due in skipped]
        rows.append((lane, "firing", name, row.due, row.fired_at, False))
    frame = pd.DataFrame(rows, columns=COLUMNS)
    for column in ("start", "end"):
        frame[column] = utc(frame[column].tolist())
    frame.attrs["left_off"] = left_off
    return frame


def _lanes(graph: ModelGraph, instances: Iterable[Instance]) -> dict[str, str]:
    """Instance id → its lane: the process and the correlation key, and the id where two share."""
    plain = {i.id: f"{graph.name(i.process)} {i.correlation_key}" for i in instances}
    shared = Counter(plain.values())
    return {key: f"{lane} {key}" if shared[lane] > 1 and not lane.endswith(key) else lane
            for key, lane in plain.items()}  # fmt: skip


def _before_tasks(graph: ModelGraph) -> dict[str, set[str]]:
    """BPMN id → ids of the elements from which a flow leads there."""
    found: dict[str, set[str]] = {}
    for model in graph.bpmn_models:
        try:
            root = graph.payload(model).root
        except UnusableInput:
            continue
        for flow in root.iter(f"{_BPMN}sequenceFlow"):
            found.setdefault(flow.get("targetRef", ""), set()).add(flow.get("sourceRef", ""))
    return found


def _tasks(
    one: Instance, before: Mapping[str, set[str]], at: int
) -> Iterable[tuple[str, int, int, bool]]:
    """The user tasks of an instance: name, opened, completed (or the present), whether open."""
    ats = pd.DatetimeIndex(one.trace["at"]).as_unit("us").asi8.tolist()
    columns = (one.trace[name].tolist() for name in ("kind", "element", "name"))
    steps = list(zip(*columns, ats, strict=True))

    def opened(element: str, upto: int) -> int:
        earlier = [s[3] for s in steps[:upto] if s[1] in before.get(element, ())]
        return earlier[-1] if earlier else one.created_at

    for place, (kind, element, name, done) in enumerate(steps):
        if kind == "userTask":
            yield name or element, opened(element, place), done, False
    for task in one.tasks:
        element = local_name(task.element)
        yield task.name or element, opened(element, len(steps)), at, True


def _skipped(expression: TimerExpression, due: int, count: int) -> list[int]:
    """The newest of the *count* due times just before *due*, in order."""
    if not count:
        return []
    times = series([expression], due)
    k = int(times.latest_k(due)[0])
    ks = np.arange(max(k - min(count, MOST_SKIPPED), 0), k)
    dues: list[Any] = times.due(ks[:, None])[:, 0].tolist()
    return dues
