"""Process data: JSON and nothing else, checked at every door by which it comes in.

What passes is the same after it was written as JSON and read again, by any reader, in either
database, and by SpiffWorkflow's serializer.
"""

from __future__ import annotations

import json
import math
import reprlib
from typing import Any, NoReturn

from seams_lab.errors import UnusableInput

MAX_DEPTH = 64
#: Bytes of compact JSON in UTF-8.
MAX_BYTES = 1_000_000
#: RFC 7493, section 2.2: JSON readers that hold numbers as doubles change larger integers.
MAX_INTEGER = 2**53 - 1
#: SpiffWorkflow's serializer takes an object with this key for one of its classes.
RESERVED_KEY = "typename"
#: SpiffWorkflow keeps a process's data objects, and Python a script's builtins, under these.
RESERVED_NAMES = frozenset({"data_objects", "__builtins__"})

_EXPECTED = "JSON: objects with text keys, lists, text, numbers, True, False or None"
_FIXES = {
    "tuple": "make it a list",
    "set": "make it a sorted list",
    "frozenset": "make it a sorted list",
    "Decimal": "write it as text, or as an integer in the smallest unit",
    "bytes": "write it as text, for example in base64",
    "bytearray": "write it as text, for example in base64",
    "datetime": "write it as text, with isoformat()",
    "date": "write it as text, with isoformat()",
    "time": "write it as text, with isoformat()",
    "timedelta": "write it as a number of microseconds",
    "Timestamp": "write it as text, with isoformat()",
    "UUID": "write it as text, with str()",
}


def checked(value: object, where: str) -> dict[str, Any]:
    """Return a deep copy of process data that is a JSON object.

    Parameters
    ----------
    value : object
        A dict with text keys. Its values are dict, list, str, int, float, bool or None, of
        exactly these types: a subclass (an enum, a numpy number) would come back as another type.
    where : str
        Names the door in the error, such as ``data of start_process``.

    Raises
    ------
    UnusableInput
        With the path of the value at fault. Refused are other types and other keys; NaN and
        infinities; integers beyond ±(2**53 - 1), which JSON readers change (RFC 7493); NUL in text,
        which PostgreSQL cannot store; lone surrogates, which UTF-8 cannot; the key ``typename``
        at any depth, and the names ``data_objects`` and ``__builtins__``; more than 64
        levels (a value that holds itself too); more than 1,000,000 bytes of JSON.

    Examples
    --------
    >>> checked({"order": {"lines": [1, 2.5]}}, "data")
    {'order': {'lines': [1, 2.5]}}
    """
    if type(value) is not dict:
        _refuse(where, f"data has type {_kind(value)}", "pass a dict")
    for name in sorted(RESERVED_NAMES.intersection(value)):
        _refuse(where, f"data has the reserved name {name!r}", "choose another name")
    copy: dict[str, Any] = _Copier(where).copy(value, None, 1)
    size = len(json.dumps(copy, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MAX_BYTES:
        _too_large(where, f"data has {size:,} bytes as JSON")
    return copy


# Where a value lies: the place of its parent (None: the data itself) and its key. A text for
# each value would cost more than all the rest.
_Place = tuple[Any, str | int]


class _Copier:
    """One deep copy. Counts what it has seen: values that share parts can be huge when written."""

    def __init__(self, where: str) -> None:
        self.where, self.seen = where, 0

    def copy(self, value: Any, place: _Place | None, depth: int) -> Any:
        kind = type(value)
        # Each value takes a byte at least, so this stops early and never wrongly.
        self.seen += 1
        if self.seen > MAX_BYTES:
            _too_large(self.where, f"data has more than {MAX_BYTES:,} bytes as JSON")
        if kind is str:
            self.text(value, place)
        elif kind is dict or kind is list:
            if depth > MAX_DEPTH:
                self.refuse(
                    place, f"is nested deeper than {MAX_DEPTH} levels",
                    "flatten the data; a value must not hold itself",
                )  # fmt: skip
            if kind is list:
                return [self.copy(item, (place, i), depth + 1) for i, item in enumerate(value)]
            for key in value:
                self.key(key, place)
            return {key: self.copy(item, (place, key), depth + 1) for key, item in value.items()}
        elif kind is float:
            if not math.isfinite(value):
                self.refuse(place, f"is {value}, which JSON has not", "use None")
        elif kind is int:
            if not -MAX_INTEGER <= value <= MAX_INTEGER:
                self.refuse(
                    place, "is an integer beyond ±(2**53 - 1), which JSON readers change",
                    "write it as text",
                )  # fmt: skip
        elif value is not None and kind is not bool:
            fix = _FIXES.get(kind.__name__, "turn it into one of these")
            self.refuse(place, f"has type {_kind(value)}", fix)
        return value

    def key(self, key: object, place: _Place | None) -> None:
        if type(key) is not str:
            self.refuse(place, f"has the key {_shown(key)}", "write the key as text")
        self.text(key, place, "has a key that ")
        if key == RESERVED_KEY:
            self.refuse(place, f"has the reserved key {key!r}", "choose another key")

    def text(self, value: str, place: _Place | None, before: str = "") -> None:
        if "\0" in value:
            self.refuse(place, f"{before}is text with a NUL character", "leave the NUL out")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                at = error.start + 1
                self.refuse(
                    place, f"{before}is text with a lone surrogate at character {at}",
                    "decode the text with the right encoding",
                )  # fmt: skip

    def refuse(self, place: _Place | None, fact: str, fix: str) -> NoReturn:
        keys: list[str] = []
        while place is not None:
            keys.append(f"[{place[1]!a}]")
            place = place[0]
        path = "data" + "".join(reversed(keys))
        shown = path if len(path) <= 200 else f"{path[:100]}...{path[-80:]}"
        _refuse(self.where, f"{shown} {fact}", fix)


def _refuse(where: str, seen: str, fix: str) -> NoReturn:
    raise UnusableInput(where, seen, _EXPECTED, fix)


def _too_large(where: str, seen: str) -> NoReturn:
    raise UnusableInput(
        where, seen, f"at most {MAX_BYTES:,} bytes", "keep the bulk elsewhere and pass its key"
    )


def _kind(value: object) -> str:
    return f"{type(value).__name__}: {_shown(value)}"


def _shown(value: object) -> str:
    return ascii(reprlib.repr(value))[1:-1]
