"""Model and verify timers and schedules of business processes.

>>> import seams_lab as sl
>>> model = sl.load("models/expense")            # doctest: +SKIP
>>> model.timers(at="2026-11-01T00:00:00Z")      # doctest: +SKIP
"""

from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import TYPE_CHECKING

from seams_lab.due import TruncatedWarning, due_counts, due_times, load_by_hour, missed
from seams_lab.errors import ResolutionError, SeamsError, UnusableInput
from seams_lab.findings import Finding, Findings
from seams_lab.impact import cut_sets, impact, impact_matrix, paths
from seams_lab.model import Model, load
from seams_lab.picture import Picture
from seams_lab.profile import parse

if TYPE_CHECKING:
    from seams_lab import explore, plot

__version__ = version("seams-lab")

__all__ = [
    "Finding",
    "Findings",
    "Model",
    "Picture",
    "ResolutionError",
    "SeamsError",
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
]

_PICTURES = ("explore", "plot")


def __getattr__(name: str) -> ModuleType:
    # matplotlib takes most of a second to import, and the command line draws nothing.
    if name in _PICTURES:
        return import_module(f"seams_lab.{name}")
    raise AttributeError(f"module 'seams_lab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
