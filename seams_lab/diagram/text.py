"""Text that fits, and the few SVG elements that a diagram is made of."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable

from seams_lab.diagram.box import Box
from seams_lab.diagram.signs import EVENT_SIGNS, TASK_SIGNS

INK, PAPER, FAINT = "#222222", "#ffffff", "#6b6b6b"


FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"


def clean(text: str | None) -> str:
    """One line of printable text: white space joined, controls and direction marks left out."""
    shown = (
        c if c.isspace() or unicodedata.category(c)[0] != "C" else "" for c in (text or "")[:2000]
    )
    return " ".join("".join(shown).split())


def escape(text: str) -> str:
    """Text made safe for SVG, between tags and in attributes."""
    return html.escape(text, quote=True)


def num(value: float) -> str:
    """A number in one fixed form: at most one decimal, never ``-0``."""
    return f"{value + 0.0:.1f}".removesuffix(".0").replace("-0", "0", 1 if abs(value) < 0.05 else 0)


def width_of(text: str, size: float) -> float:
    """About how wide a text is in a plain sans-serif font."""
    em = 0.0
    for c in text:
        if unicodedata.east_asian_width(c) in "WF":
            em += 1.0
        elif c in "iljI.,:;'|! ftr()[]":
            em += 0.32
        else:
            em += 0.86 if c in "mwMW@%" else 0.7 if c.isupper() else 0.56
    return em * size


def fit_text(text: str, room: float, size: float) -> str:
    """The text, cut with an ellipsis if it is wider than the room."""
    if width_of(text, size) <= room:
        return text
    while text and width_of(text + "…", size) > room:
        text = text[:-1]
    return text.rstrip() + "…"


def wrap_text(text: str, room: float, size: float, most: int) -> list[str]:
    """Lines no wider than the room, at most *most*; the last one is cut if need be."""
    lines: list[str] = []
    line = ""
    for word in text[:400].split():
        while width_of(word, size) > room and len(word) > 1:
            cut = max(_prefix(word, room - (width_of(line + " ", size) if line else 0), size), 0)
            if not line:
                cut = max(cut, 1)
            if cut > 2 or not line:
                line, word = f"{line} {word[:cut]}".strip(), word[cut:]
            lines.append(line)
            line = ""
        if line and width_of(f"{line} {word}", size) > room:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    lines += [line] if line else []
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], fit_text(" ".join(lines[most - 1 :]), room, size)]


def _prefix(word: str, room: float, size: float) -> int:
    used = 0.0
    for i, c in enumerate(word):
        used += width_of(c, size)
        if used > room:
            return i
    return len(word)


def svg_text(
    lines: Iterable[str],
    x: float,
    top: float,
    size: float,
    *,
    anchor: str = "middle",
    bold: bool = False,
    ink: str = INK,
) -> str:
    """Lines of text, the first one with its head at *top*."""
    style = ' font-weight="600"' if bold else ""
    return "".join(
        f'<text x="{num(x)}" y="{num(top + size * (0.92 + 1.2 * i))}" font-size="{num(size)}" '
        f'text-anchor="{anchor}" fill="{ink}"{style}>{escape(line)}</text>'
        for i, line in enumerate(lines)
        if line
    )


def svg_centred(text: str, box: Box, ink: str = INK) -> str:
    """Text in the middle of a box, in the largest of three sizes that holds it all."""
    for size in (12.0, 11.0, 9.5):
        most = max(int(box.h // (size * 1.2)), 1)
        lines = wrap_text(text, box.w, size, most)
        if not any(line.endswith("…") for line in lines):
            break
    return svg_text(
        lines, box.x + box.w / 2, box.y + (box.h - len(lines) * size * 1.2) / 2, size, ink=ink
    )


def _stroke(line: str, fill: str, width: float, dash: str) -> str:
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'fill="{fill}" stroke="{line}" stroke-width="{num(width)}"{dashes}'


def svg_rect(
    box: Box,
    *,
    radius: float = 0,
    fill: str = PAPER,
    line: str = INK,
    width: float = 1.5,
    dash: str = "",
) -> str:
    """An SVG rectangle; never thinner than a tenth of a unit."""
    x, y, w, h = (num(v) for v in (box.x, box.y, max(box.w, 0.1), max(box.h, 0.1)))
    return (
        f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="{num(radius)}" '
        f"{_stroke(line, fill, width, dash)}/>"
    )


def svg_circle(
    x: float, y: float, r: float, line: str, width: float, dash: str = "", fill: str = PAPER
) -> str:
    """An SVG circle."""
    return f'<circle cx="{num(x)}" cy="{num(y)}" r="{num(r)}" {_stroke(line, fill, width, dash)}/>'


def svg_path(way: str, line: str, *, fill: str = "none", width: float = 1.2, dash: str = "") -> str:
    """An SVG path."""
    return f'<path d="{way}" {_stroke(line, fill, width, dash)} stroke-linejoin="round"/>'


def svg_sign(
    way: str, x: float, y: float, scale: float, filled: bool, line: str = INK, width: float = 1.2
) -> str:
    """One of the signs above, moved to its place; a filled envelope shows its fold in white."""
    size = "" if scale == 1 else f" scale({scale:.3f})"
    fold = filled and way in (EVENT_SIGNS["message"], TASK_SIGNS["sendTask"][0])
    inner = svg_path(way, PAPER if fold else line, fill=line if filled else "none", width=width)
    return f'<g transform="translate({num(x)} {num(y)}){size}">{inner}</g>'
