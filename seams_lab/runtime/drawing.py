"""The diagram of a process with what one instance did: done, open, waiting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from seams_lab.diagram import Badge, draw
from seams_lab.errors import UnusableInput
from seams_lab.graph import ModelGraph, local_name
from seams_lab.instants import to_text
from seams_lab.picture import Picture
from seams_lab.runtime.instance import Instance


def instance_diagram(graph: ModelGraph, instance: Instance) -> Picture:
    """Draw the BPMN file of an instance's process, with a badge on each element it reached.

    A tick is what was done, with the last time (UTC) and how often; a triangle what is open or
    waits, with the due time. An element without a badge was not reached.

    Parameters
    ----------
    instance : Instance
        With its trace, as `Runtime.instance` reads it.

    Raises
    ------
    UnusableInput
        When no BPMN file of the model holds its process.
    """
    model = _model_of(graph, instance.process)
    done, now = _done(instance.trace), _now(instance)
    badges = {key: Badge(text, "ok") for key, text in done.items()}
    for key, text in now.items():
        before = f"{done[key]}, " if key in done else ""
        badges[key] = Badge(before + text, "warning")
    payload = graph.payload(model)
    names = {key: element.name or key for key, element in payload.elements.items()}
    what = f"{graph.label(model)}, instance {instance.correlation_key}"
    said = f"{what}: {instance.status}"
    if instance.failure:
        said += f" ({instance.failure})"
    title = ". ".join([
        said, f"Done: {_listed(done, names)}", f"Open or waiting: {_listed(now, names)}",
        "The picture",
    ])  # fmt: skip
    return draw(payload.root, badges, title=title, caption=said)


def _model_of(graph: ModelGraph, process: str) -> str:
    for model in graph.bpmn_models:
        for held in graph.payload(model).processes:
            if process in (graph.process_of(model, held), f"{model}#{held}"):
                return model
    raise UnusableInput(
        "diagram", f"process {process}", "a process of the model that the runtime has loaded",
        "load the model that the instance was started with",
    )  # fmt: skip


def _done(trace: pd.DataFrame) -> dict[str, str]:
    """BPMN id → when it was last done, and how often if more than once; in the order of doing."""
    found: dict[str, list[int]] = {}
    if len(trace):
        ats = pd.DatetimeIndex(trace["at"]).as_unit("us").asi8.tolist()
        for element, at in zip(trace["element"], ats, strict=True):
            found.setdefault(element, []).append(at)
    return {
        element: (f"{len(ats)}× " if len(ats) > 1 else "") + _short(ats[-1])
        for element, ats in found.items()
    }


def _now(instance: Instance) -> dict[str, str]:
    """BPMN id → what is open there."""
    found: dict[str, str] = {}
    for event, due in reversed(instance.waits):  # the one that is due first stays
        found[local_name(event)] = f"due {_short(due)}"
    for task in instance.tasks:
        found[local_name(task.element)] = "open"
    return found


def _short(instant: int) -> str:
    return to_text(instant)[5:16].replace("T", " ")


def _listed(said: Mapping[str, str], names: Mapping[str, str]) -> str:
    items: Iterable[str] = (f"{names.get(key, key)} ({text})" for key, text in said.items())
    return ", ".join(items) or "nothing"
