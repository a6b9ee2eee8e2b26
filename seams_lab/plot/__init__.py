"""Pictures of plain tables: each function takes a table and returns a `Picture`.

The tables come from other modules (due times, load, impact, a run); nothing here reads a model.
The same table always gives the same bytes. Colours are safe for colour-blind eyes, and
what a colour says is also written or hatched. A picture shows at most 60 rows and its
caption says how many it leaves off.
"""

from seams_lab.plot.bars import bunching
from seams_lab.plot.heat import load
from seams_lab.plot.layers import paths
from seams_lab.plot.matrix import impact_matrix
from seams_lab.plot.strip import due_strip
from seams_lab.plot.timeline import timeline

__all__ = ["bunching", "due_strip", "impact_matrix", "load", "paths", "timeline"]
