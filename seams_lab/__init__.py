"""Model and verify timers and schedules of business processes.

>>> import seams_lab as sl
>>> model = sl.load("models/expense")            # doctest: +SKIP
>>> model.timers(at="2026-11-01T00:00:00Z")      # doctest: +SKIP
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from seams_lab.due import TruncatedWarning, due_counts, due_times, load_by_hour, missed
from seams_lab.errors import ResolutionError, SeamsError, UnusableInput
from seams_lab.findings import Finding, Findings
from seams_lab.impact import cut_sets, impact, impact_matrix, paths
from seams_lab.model import Model, load
from seams_lab.picture import Picture
from seams_lab.profile import parse

if TYPE_CHECKING:
    from seams_lab import explore, plot
    from seams_lab.clock import ManualClock, SystemClock
    from seams_lab.runtime.instance import Instance
    from seams_lab.runtime.runtime import Runtime
    from seams_lab.runtime.scenario import scenario
    from seams_lab.runtime.store import Store

__version__ = version("seams-lab")

__all__ = [
    "Finding",
    "Findings",
    "Instance",
    "ManualClock",
    "Model",
    "Picture",
    "ResolutionError",
    "Runtime",
    "SeamsError",
    "Store",
    "SystemClock",
    "TruncatedWarning",
    "UnusableInput",
    "cut_sets",
    "due_counts",
    "due_times",
    "explore",
    "impact",
    "impact_matrix",
    "load",
    "load_by_hour",
    "missed",
    "parse",
    "paths",
    "plot",
    "scenario",
]

# matplotlib takes most of a second to import, SpiffWorkflow and SQLAlchemy half of one, and most
# commands need none of them.
_LATER = {
    "explore": "seams_lab.explore",
    "plot": "seams_lab.plot",
    "Instance": "seams_lab.runtime.instance",
    "ManualClock": "seams_lab.clock",
    "Runtime": "seams_lab.runtime.runtime",
    "Store": "seams_lab.runtime.store",
    "SystemClock": "seams_lab.clock",
    "scenario": "seams_lab.runtime.scenario",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'seams_lab' has no attribute {name!r}")
    module = import_module(_LATER[name])
    return getattr(module, name, module)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
