"""Names as they are written in pictures: short, one line, drawable, and never two alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from matplotlib.font_manager import findfont, get_font
from matplotlib.ft2font import LoadFlags

MISSING = "\N{WHITE SQUARE}"
CUT = "…"


def one_line(text: object) -> str:
    """Return *text* with every run of white space and control characters as one space."""
    return re.sub(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", str(text)).strip()


def drawable(text: object) -> str:
    """Return *text* on one line, a square in place of each character the font lacks."""
    return "".join(c if _advance(c) else MISSING for c in one_line(text))


@lru_cache(maxsize=4096)
def _advance(char: str) -> float:
    """Return the width of *char* in units of the font size; 0.0 where it has no glyph."""
    font = get_font(findfont("DejaVu Sans"))
    if not font.get_char_index(ord(char)):
        return 0.0
    font.set_size(100, 72)
    # combining marks have no width of their own, and 0.0 is taken
    return max(font.load_char(ord(char), LoadFlags.NO_HINTING).linearHoriAdvance / 6553600, 1e-6)


def text_width(text: str, size: float) -> float:
    """Return the width in inches of *text* drawn with font *size* (points)."""
    return sum(map(_advance, text)) * size / 72


def shorten(text: str, limit: int) -> str:
    """Cut the middle out of *text* so that at most *limit* characters stay."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 2
    return text[: limit - 1 - tail] + CUT + text[len(text) - tail :]


def fit(text: object, width: float, size: float) -> str:
    """Cut the middle out of *text* so that it fits *width* inches at font *size* points."""
    whole = drawable(text)
    low, high = 1, len(whole)
    if text_width(whole, size) <= width:
        return whole
    while low < high:
        middle = (low + high + 1) // 2
        if text_width(shorten(whole, middle), size) <= width:
            low = middle
        else:
            high = middle - 1
    return shorten(whole, low)


def short_names(names: Sequence[object]) -> list[str]:
    """Return the last part of each IRI, unless two of *names* would then read the same."""
    whole = [one_line(name) or "(no name)" for name in names]
    short = [_last_part(name) for name in whole]
    taken = Counter(short)
    return [s if taken[s] == 1 else w for s, w in zip(short, whole, strict=True)]


def _last_part(name: str) -> str:
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*://", name):
        return next((part for part in reversed(re.split(r"[#/]", name)) if part), name)
    return name


def timer_names(events: Sequence[object], processes: Sequence[object]) -> list[str]:
    """Name timers by their event; where two would read alike, add the process.

    Events of different processes may share an element id, so (process, event) is the timer.
    """
    forms = []
    for event, process in zip(map(one_line, events), map(one_line, processes), strict=True):
        short = _last_part(event) or "(no name)"
        forms.append((short, f"{short} · {_last_part(process)}", f"{event} · {process}"))
    taken = [Counter(form[i] for form in forms) for i in range(2)]
    return [next((form[i] for i in range(2) if taken[i][form[i]] == 1), form[2]) for form in forms]


def fitted(names: Sequence[str], width: float, size: float) -> list[str]:
    """Fit *names* into *width* inches; labels that then read alike are numbered."""
    labels = [fit(name, width, size) for name in names]
    again = Counter(labels)
    seen: Counter[str] = Counter()
    for i, label in enumerate(labels):
        if again[label] > 1:
            seen[label] += 1
            number = f" ({seen[label]})"
            labels[i] = fit(names[i], width - text_width(number, size), size) + number
    return labels


def listed(names: Sequence[str], limit: int = 3, *, last: str = "and") -> str:
    """Join *names* for a sentence, at most *limit* of them, each at most 48 characters."""
    shown = [shorten(one_line(name), 48) for name in names[:limit]]
    if len(names) > limit:
        shown.append(f"{len(names) - limit:,} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {last} {shown[-1]}"


def counted(number: int, noun: str) -> str:
    """Return ``"1 timer"``, ``"2 timers"``, ``"1,230 firings"``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
