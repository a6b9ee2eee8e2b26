"""Dropdowns over the pictures, for a notebook: choose a thing, see its picture; and a clock.

Each function returns a widget that a cell can show. It needs ipywidgets, which the ``notebook``
extra installs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from seams_lab import plot
from seams_lab.due import due_times
from seams_lab.errors import UnusableInput
from seams_lab.impact import impact_matrix, paths
from seams_lab.instants import Instant
from seams_lab.model import Model
from seams_lab.picture import Picture

if TYPE_CHECKING:
    from ipywidgets import VBox

    from seams_lab.clock_panel import ClockPanel
    from seams_lab.runtime.runtime import Runtime

EVERYTHING = "(all)"


def explorer(label: str, options: Sequence[str], picture: Callable[[str], Picture]) -> VBox:
    """Return a dropdown with the picture of the chosen option under it.

    Raises UnusableInput when there is nothing to choose from, or ipywidgets is missing.
    """
    _need_widgets()
    # A picture in an HTML widget and an observer: `interact` and Output widgets leave outputs
    # that differ from run to run.
    from ipywidgets import HTML, Dropdown, VBox

    if not options:
        raise UnusableInput(
            f"explore: {label}", "nothing to choose from", f"a model with at least one {label}",
            "load a model that has one",
        )  # fmt: skip

    class Explorer(VBox):  # type: ignore[misc]
        def __repr__(self) -> str:
            return f"<Explorer: choose a {label} out of {len(options)}>"

    dropdown = Dropdown(options=list(options), description=f"{label}:")
    shown = HTML(picture(options[0]).to_html())

    def on_choice(change: dict[str, str]) -> None:
        shown.value = picture(change["new"]).to_html()

    dropdown.observe(on_choice, names="value")
    return Explorer([dropdown, shown])


def diagrams(model: Model, at: Instant | None = None) -> VBox:
    """Choose a BPMN file, see its diagram with a badge on each timer."""
    names = {model.name(m): m for m in model.bpmn_models}
    return explorer("diagram", list(names), lambda name: model.diagram(names[name], at))


def schedules(model: Model, start: Instant, end: Instant) -> VBox:
    """Choose a timer (or all), see when it fires in ``[start, end)``."""
    due = due_times(model, start, end)
    names = [EVERYTHING, *due["event"].cat.categories]

    def picture(name: str) -> Picture:
        chosen = due if name == EVERYTHING else due[due["event"] == name]
        return plot.due_strip(chosen, start=start, end=end)

    return explorer("timer", names, picture)


def losses(model: Model) -> VBox:
    """Choose a node, see what its loss stops; the node that stops most comes first."""
    stops = (impact_matrix(model) == "stops").sum().sort_values(ascending=False, kind="stable")

    def picture(name: str) -> Picture:
        return plot.paths(paths(model, name), dead=[name])

    return explorer("node", list(stops.index), picture)


def clock(runtime: Runtime, data: Mapping[str, Any] | None = None) -> ClockPanel:
    """Move a runtime's clock, complete its user tasks, and see what that does.

    Parameters
    ----------
    runtime : Runtime
        Loaded with a `ManualClock`.
    data : mapping, optional
        What the field for a task's data holds at first: ``{"approved": True}``.

    Raises
    ------
    UnusableInput
        When the runtime's clock goes by itself, or ipywidgets is missing.
    """
    _need_widgets()
    from seams_lab.clock_panel import ClockPanel

    return ClockPanel(runtime, data)


def _need_widgets() -> None:
    if find_spec("ipywidgets") is None:
        raise UnusableInput(
            "explore", "ipywidgets is not installed", "the notebook extra",
            "pip install 'seams-lab[notebook]'",
        )  # fmt: skip
