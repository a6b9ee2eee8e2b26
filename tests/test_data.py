"""Process data: what passes is JSON and comes back the same; the rest is refused with its path."""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import enum
import json
import uuid
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seams_lab.errors import UnusableInput
from seams_lab.runtime.data import MAX_BYTES, MAX_DEPTH, MAX_INTEGER, checked


class Colour(enum.IntEnum):
    RED = 1


class Shout(str):
    pass


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def nested(levels: int) -> dict[str, Any]:
    """Data of so many levels, the outer object being the first."""
    data: dict[str, Any] = {}
    for _ in range(levels - 1):
        data = {"a": data}
    return data


ITSELF: dict[str, Any] = {}
ITSELF["me"] = [ITSELF]

SHARED: list[Any] = []
for _ in range(20):
    SHARED = [SHARED, SHARED]

# Data, what is said to be seen, a part of the fix.
REFUSED: list[tuple[object, str, str]] = [
    # Not an object
    (None, "data has type NoneType: None", "pass a dict"),
    ([], "data has type list: []", ""),
    ("{}", "data has type str: '{}'", ""),
    (OrderedDict(), "data has type OrderedDict: OrderedDict()", "pass a dict"),
    # Types
    ({"a": (1, 2)}, "data['a'] has type tuple: (1, 2)", "make it a list"),
    ({"a": {1}}, "data['a'] has type set: {1}", "a sorted list"),
    ({"a": frozenset()}, "data['a'] has type frozenset: frozenset()", "a sorted list"),
    ({"a": decimal.Decimal("1.10")}, "data['a'] has type Decimal: Decimal('1.10')", "as text"),
    ({"a": b"x"}, "data['a'] has type bytes: b'x'", "base64"),
    ({"a": bytearray()}, "data['a'] has type bytearray: bytearray(b'')", "base64"),
    ({"a": dt.date(2026, 1, 2)}, "data['a'] has type date: datetime.date(2026, 1, 2)", "isoformat"),
    ({"a": dt.datetime(2026, 1, 2)}, "data['a'] has type datetime: ", "isoformat"),
    ({"a": dt.time(1)}, "data['a'] has type time: ", "isoformat"),
    ({"a": dt.timedelta(1)}, "data['a'] has type timedelta: ", "microseconds"),
    ({"a": uuid.UUID(int=0)}, "data['a'] has type UUID: ", "str()"),
    ({"a": print}, "data['a'] has type builtin_function_or_method: ", "one of these"),
    ({"a": Rude()}, "data['a'] has type Rude: <Rude instance at ", ""),
    ({"a": "ü".encode}, "data['a'] has type builtin_function_or_method: ", ""),
    # Subclasses come back as another type
    ({"a": Colour.RED}, "data['a'] has type Colour: ", ""),
    ({"a": Shout("x")}, "data['a'] has type Shout: 'x'", ""),
    ({"a": np.float64(1)}, "data['a'] has type float64: ", ""),
    ({"a": OrderedDict()}, "data['a'] has type OrderedDict: ", ""),
    # Numbers
    ({"a": float("nan")}, "data['a'] is nan, which JSON has not", "use None"),
    ({"a": [1, float("-inf")]}, "data['a'][1] is -inf, which JSON has not", ""),
    ({"a": 2**53}, "data['a'] is an integer beyond", "write it as text"),
    ({"a": -(2**53)}, "data['a'] is an integer beyond", ""),
    ({"a": 10**5000}, "data['a'] is an integer beyond", ""),
    # Text
    ({"a": "x\0"}, "data['a'] is text with a NUL character", "leave the NUL out"),
    ({"a": "xy\ud800"}, "data['a'] is text with a lone surrogate at character 3", "encoding"),
    # Keys
    ({"a": {1: 2}}, "data['a'] has the key 1", "write the key as text"),
    ({None: 2}, "data has the key None", ""),
    ({True: 2}, "data has the key True", ""),
    ({("a",): 2}, "data has the key ('a',)", ""),
    ({Shout("x"): 2}, "data has the key 'x'", ""),
    ({"x\0": 2}, "data has a key that is text with a NUL character", ""),
    (
        {"a": {"\udfff": 2}},
        "data['a'] has a key that is text with a lone surrogate at character 1",
        "",
    ),
    ({"a": [{"typename": "UUID"}]}, "data['a'][0] has the reserved key", "another key"),
    ({"typename": 1}, "data has the reserved key 'typename'", ""),
    ({"data_objects": {}}, "data has the reserved name 'data_objects'", "another name"),
    ({"__builtins__": {}}, "data has the reserved name '__builtins__'", ""),
    # Size
    (nested(MAX_DEPTH + 1), "data['a']['a']", "flatten"),
    (ITSELF, "data['me'][0]['me']", "must not hold itself"),
    ({"a": SHARED}, "data has more than 1,000,000 bytes as JSON", "pass its key"),
    ({"a": "x" * 2 * MAX_BYTES}, "data has 2,000,008 bytes as JSON", ""),
    ({"x" * 2 * MAX_BYTES: 1}, "data has 2,000,006 bytes as JSON", ""),
    ({"a": [1] * 600_000}, "data has 1,200,007 bytes as JSON", ""),
]


@pytest.mark.parametrize(("data", "seen", "fix"), REFUSED, ids=[seen for _, seen, _ in REFUSED])
def test_what_is_no_json_is_refused_with_its_path(data: object, seen: str, fix: str) -> None:
    with pytest.raises(UnusableInput) as caught:
        checked(data, "data of start_process")
    error = caught.value
    assert error.where == "data of start_process"
    assert error.seen.startswith(seen)
    assert fix in error.fix
    assert len(str(error)) < 700
    assert str(error).isascii() or "±" in error.seen


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"": None},
        {"a": True, "b": False, "c": [], "d": {}, "e": ""},
        {"a": MAX_INTEGER, "b": -MAX_INTEGER},
        {"a": 1.0, "b": -0.0, "c": 5e-324, "d": 1.7976931348623157e308, "e": 1e22},
        {"größe": "ü \U0001f600 \u2028 \x01 \x7f \" \\ '"},
        {"order": {"data_objects": 1, "__builtins__": 2}},
        {"a": "typename", "type_name": 1, "Typename": 2},
        nested(MAX_DEPTH),
    ],
)
def test_json_passes_unchanged(data: dict[str, Any]) -> None:
    seen = checked(data, "data")
    assert repr(seen) == repr(data) == repr(json.loads(json.dumps(seen)))


def test_the_size_is_that_of_compact_json_in_utf_8() -> None:
    most = {"a": "ü" * ((MAX_BYTES - 8) // 2)}
    assert checked(most, "data") == most
    with pytest.raises(UnusableInput, match="data has 1,000,001 bytes as JSON"):
        checked({"aa": most["a"]}, "data")


def test_the_copy_shares_nothing_with_the_original() -> None:
    part = {"b": [1]}
    data = {"one": part, "two": part}
    before = copy.deepcopy(data)
    seen = checked(data, "data")
    seen["one"]["b"].append(2)
    assert data == before
    assert seen["two"] == {"b": [1]}


values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=5),
        st.binary(max_size=2),
        st.sampled_from([2**53, MAX_INTEGER, "\0", "\ud800", (1,), "typename"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.one_of(st.text(max_size=4), st.sampled_from(["typename", 1])), inner, max_size=4
        ),
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=4), values, max_size=4))
def test_what_passes_survives_json_and_what_does_not_survive_is_refused(
    data: dict[str, Any],
) -> None:
    try:
        seen = checked(data, "data")
    except UnusableInput:
        return
    assert repr(seen) == repr(data)
    assert repr(json.loads(json.dumps(seen, allow_nan=False))) == repr(seen)
    again = json.dumps(seen, ensure_ascii=False).encode().decode()
    assert repr(json.loads(again)) == repr(seen)
    # As a reader that holds numbers as doubles keeps it.
    assert json.loads(again, parse_int=float) == seen


plain = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-MAX_INTEGER, MAX_INTEGER),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abc"), plain, max_size=3))
def test_all_json_passes(data: dict[str, Any]) -> None:
    assert repr(checked(data, "data")) == repr(data)


@given(st.dictionaries(st.sampled_from("abc"), plain, max_size=3))
def test_what_passes_survives_the_serializer_of_spiffworkflow(data: dict[str, Any]) -> None:
    registry = pytest.importorskip("SpiffWorkflow.bpmn.serializer").DefaultRegistry()
    stored = json.dumps(registry.convert(checked(data, "data")))
    assert repr(registry.restore(json.loads(stored))) == repr(data)
