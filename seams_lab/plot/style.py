"""What all pictures share: colours, the meaning of an effect, the canvas, the empty picture."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import matplotlib as mpl
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from seams_lab.errors import UnusableInput
from seams_lab.picture import Picture
from seams_lab.plot.names import fit, one_line

MOST_ROWS = 60
WIDTH = 10.0  # inches; 1,100 pixels, what a notebook cell shows without scaling much

# petroff10 (M. A. Petroff, arXiv:2107.02270), the ones in use
BLUE, ORANGE, RED, GREY, SLATE = "#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#717581"
INK, PALE, BAND = "#222222", "#f1f3f3", "#f6f7f8"


@dataclass(frozen=True)
class Effect:
    """How an effect word is drawn, so that it can be told apart without colour."""

    word: str
    letter: str
    mark: str
    colour: str
    ink: str
    hatch: str


EFFECTS = {
    effect.word: effect
    for effect in (  # the worst first
        Effect("stops", "S", "✕", RED, "white", ""),
        Effect("unplaced", "?", "?", "#c9d0cf", INK, "...."),
        Effect("degraded", "D", "◐", ORANGE, INK, "////"),
        Effect("untouched", "·", "·", PALE, SLATE, ""),
    )
}
WORST_FIRST = tuple(EFFECTS)


@contextmanager
def canvas(width: float, height: float) -> Iterator[Figure]:
    """Yield a white figure of *width* by *height* inches, whatever style the session has set.

    Text is literal: a ``$`` in a name starts no formula.
    """
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(
            {
                "text.parse_math": False,
                "font.family": "DejaVu Sans",
                "font.size": 9,
                "text.color": INK,
                "axes.labelcolor": INK,
                "xtick.color": INK,
                "ytick.color": INK,
                "axes.edgecolor": GREY,
                "axes.spines.top": False,
                "axes.spines.right": False,
                "hatch.linewidth": 0.6,
                "hatch.color": SLATE,
            }
        )
        yield Figure(figsize=(width, height), facecolor="white", layout="constrained")


def put_title(figure: Figure, title: str | None) -> None:
    """Write *title* at the top, shortened to the width of the figure."""
    if title:
        figure.suptitle(fit(title, figure.get_figwidth() - 0.5, 12), fontsize=12)


def painted(figure: Figure, *, caption: str, alt: str, dpi: int = 110) -> Picture:
    """Render *figure* to a PNG with a palette of 256 colours: a third of the bytes.

    Notebooks are committed with their pictures, so bytes matter. The palette moves no
    colour far enough to see, and depends on the pixels only.
    """
    figure.set_dpi(dpi)
    agg = FigureCanvasAgg(figure)
    agg.draw()
    pixels = Image.frombuffer("RGBA", agg.get_width_height(), bytes(agg.buffer_rgba()))
    small = pixels.convert("RGB").quantize(
        256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
    )
    buffer = io.BytesIO()
    small.save(buffer, "png")
    return Picture(buffer.getvalue(), "image/png", one_line(caption), alt)


def nothing(message: str, title: str | None = None) -> Picture:
    """Return a small picture that says in words why there is nothing to draw."""
    with canvas(6, 1.6 if title else 1.2) as figure:
        put_title(figure, title)
        figure.text(0.5, 0.4, fit(message, 5.6, 10), ha="center", va="center", fontsize=10)
        return painted(figure, caption=message, alt=one_line(message))


def need_columns(table: object, columns: tuple[str, ...], where: str) -> pd.DataFrame:
    """Return *table* if it is a DataFrame with *columns*.

    Raises
    ------
    UnusableInput
        If it is anything else.
    """
    expected = f"a DataFrame with the columns {', '.join(columns)}"
    fix = "pass the table as the stage above returns it"
    if not isinstance(table, pd.DataFrame):
        raise UnusableInput(where, f"a value of type {type(table).__name__}", expected, fix)
    lacking = [name for name in columns if name not in table.columns]
    if lacking:
        raise UnusableInput(where, f"no column {', '.join(lacking)}", expected, fix)
    return table


def need_effects(words: set[object], where: str) -> None:
    """Refuse a word that is no effect.

    Raises
    ------
    UnusableInput
        If *words* holds anything but the four effects.
    """
    strange = sorted(map(repr, words - set(EFFECTS)))
    if strange:
        expected = f"only {', '.join(WORST_FIRST)}"
        raise UnusableInput(where, listed_reprs(strange), expected, "use the words of impact")


def listed_reprs(values: list[str]) -> str:
    """Join at most three values for an error message."""
    return ", ".join(values[:3]) + (", …" if len(values) > 3 else "")
