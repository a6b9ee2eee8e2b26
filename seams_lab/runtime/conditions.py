"""The language of gateway conditions: names, key access, literals, comparisons, and, or, not.

It is the part of Python's expressions that only reads the process data. The parser is this
module's own: no text reaches Python's compiler, so none can run anything or exhaust its stack.
A condition becomes small functions once, when the model is loaded.

- A name is a key of the data, in ASCII letters, digits and ``_``, and not starting with ``__``.
- ``order.total`` and ``order["total"]`` are the same key of a dict, never an attribute;
  ``lines[0]`` and ``lines[-1]`` are items of a list or text.
- Literals are numbers, text in one pair of quotes with no backslash, ``True``, ``False`` and
  ``None``. ``true``, ``false`` and ``null``, as FEEL and Java write them, are the same literals
  and never names.
- Comparisons are ``== != < <= > >= in``, ``not in``, ``is None`` and ``is not None``; they
  chain and compare as in Python. A minus sign negates a number. There is no other arithmetic,
  and there are no calls.
"""

from __future__ import annotations

import keyword
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from seams_lab.errors import SeamsError, UnusableInput
from seams_lab.literals import quote
from seams_lab.runtime.data import MAX_INTEGER

MAX_LENGTH = 1_000
MAX_NESTING = 32

Evaluate = Callable[[Mapping[str, Any]], Any]


class ConditionFailed(SeamsError):
    """A condition that has no value for the data at hand.

    Parameters
    ----------
    where : str
        The element that the condition belongs to.
    text : str
        The condition.
    fact : str
        What the data has instead, such as ``name 'approved' is not in the data``.
    fix : str
        What the person can do now.
    """

    def __init__(self, where: str, text: str, fact: str, fix: str) -> None:
        self.where, self.text, self.fact, self.fix = where, text, fact, fix
        super().__init__(f"{where}: condition {quote(text)}: {fact}. Fix: {fix}")

    def __reduce__(self) -> tuple[type, tuple[str, str, str, str]]:
        return type(self), (self.where, self.text, self.fact, self.fix)


@dataclass(frozen=True)
class Condition:
    """A condition that was read; made by `compile_condition`.

    ``names`` are the sorted top-level names of the data that it uses.
    """

    text: str
    where: str
    names: tuple[str, ...]
    _run: Evaluate = field(compare=False)

    def evaluate(self, data: Mapping[str, Any]) -> Any:
        """Return the condition's value; a gateway takes its truth as Python does.

        Raises ConditionFailed for a name, key or item that the data has not, and for values
        that cannot be compared.
        """
        try:
            return self._run(data)
        except _Failed as failed:
            raise ConditionFailed(self.where, self.text, *failed.args) from None

    def __repr__(self) -> str:
        return f"Condition({self.text!r})"


def compile_condition(text: str, where: str) -> Condition:
    """Read the text of a condition.

    Parameters
    ----------
    text : str
        At most 1,000 characters, nested at most 32 levels; blanks around it are fine.
    where : str
        The element that it belongs to, for messages.

    Raises
    ------
    UnusableInput
        With the text, the position (characters from 1) and the fix.

    Examples
    --------
    >>> condition = compile_condition('order.total > 100 and status != "held"', "Flow_1")
    >>> condition.evaluate({"order": {"total": 250}, "status": "open"})
    True
    >>> condition.names
    ('order', 'status')
    """
    if not isinstance(text, str):
        raise UnusableInput(where, f"a {type(text).__name__}", _EXPECTED, "pass the text")
    if len(text) > MAX_LENGTH:
        raise UnusableInput(
            where, f"a condition of {len(text):,} characters, {quote(text)}",
            f"at most {MAX_LENGTH:,} characters", "compute it in a task before the gateway",
        )  # fmt: skip
    parser = _Parser(text, where)
    run = parser.either()
    parser.close("", "end")
    return Condition(text.strip(_BLANK), where, tuple(sorted(parser.names)), run)


class _Failed(Exception):
    """A fact and its fix; `Condition.evaluate` adds the rest."""


_EXPECTED = (
    'names, keys such as order.total, order["total"] and lines[0], numbers, text in quotes, '
    "comparisons, and, or, not"
)
_BLANK = " \t\r\n"
_TOKEN = re.compile(
    r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<number>(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![A-Za-z0-9_.])"
    r"|(?P<text>\"[^\"\\]*\"|'[^'\\]*')"
    r"|(?P<sign>[=!<>]=|[<>()\[\].-])"
)
_VALUES = {"name", "literal", "number", "text"}
_BETWEEN = "put a comparison, 'and' or 'or' between them, or one pair of quotes around them"
_KEY = 'write the key itself, as in order["total"] or lines[0]'
_WORDS = {"and", "or", "not", "in", "is"}
_LITERALS: dict[str, bool | None] = {
    "True": True, "False": False, "None": None, "true": True, "false": False, "null": None,
}  # fmt: skip
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
    "in": lambda left, right: left in right,
    "not in": lambda left, right: left not in right,
    "is": operator.is_, "is not": operator.is_not,
}  # fmt: skip
_COMPUTE = "compute it in a task before the gateway, and compare the result"
_SINGLE = 'write one comparison for each value, as in status == "open" or status == "held"'
# What other languages have, each with what stands here for it; the first that fits is said.
_SLIPS = [
    ("&&", "write and"),
    ("||", "write or"),
    ("!", "write not"),
    (":=", "leave the assignment to a task"),
    ("=", "write == to compare, and no = in front of the condition"),
    ("${", "leave ${ and } out"),
    ("#{", "leave #{ and } out"),
    ("#", "leave the comment out"),
    *((sign, _COMPUTE) for sign in "+*/%@|&^~"),
    (",", _SINGLE),
    ("{", _SINGLE),
    ("?", "write the condition itself, with and, or and not"),
]


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Parser:
    """Recursive descent over the tokens; each method reads one level of the grammar."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where = text, where
        self.names: set[str] = set()
        self.depth = 0
        self.tokens, self.next = self.read(), 0

    def refuse(self, at: int, what: str, fix: str) -> NoReturn:
        seen = f"condition {quote(self.text, 200)} has {what} at character {at + 1}"
        raise UnusableInput(self.where, seen, _EXPECTED, fix)

    def read(self) -> list[_Token]:
        tokens, at = [], 0
        while at < len(self.text):
            if self.text[at] in _BLANK:
                at += 1
                continue
            match = _TOKEN.match(self.text, at)
            if match is None:
                self.refuse_character(at)
            kind, text = str(match.lastgroup), match[0]
            if kind == "name":
                kind = self.name_kind(text, at)
            elif kind == "text" and not text.isprintable():
                self.refuse(at, "a control character in a text", "leave it out")
            tokens.append(_Token(kind, text, at))
            at = match.end()
        return [*tokens, _Token("end", "", len(self.text))]

    def name_kind(self, text: str, at: int) -> str:
        if text in _WORDS:
            return "sign"
        if text in _LITERALS:
            return "literal"
        if keyword.iskeyword(text):
            self.refuse(at, f"the keyword {text!r}", _COMPUTE)
        if text.startswith("__"):
            self.refuse(at, f"the name {quote(text)}", "give the value a name without leading __")
        return "name"

    def refuse_character(self, at: int) -> NoReturn:
        rest = self.text[at:]
        for slip, fix in _SLIPS:
            if rest.startswith(slip):
                self.refuse(at, quote(slip), fix)
        what, fix = quote(rest[0]), "leave the character out"
        if rest[0] in "\"'":
            what = "a text with a backslash" if rest.find(rest[0], 1) > 0 else "a text with no end"
            fix = "write the text in one pair of quotes, with no backslash"
        elif rest[0].isdigit():
            what, fix = "a number in another form", "write it as in 10, 2.5 or 1e6"
        elif rest[0].isalpha():
            fix = "name the value in ASCII letters, digits and _"
        self.refuse(at, what, fix)

    def peek(self, *texts: str) -> bool:
        token = self.tokens[self.next]
        return token.kind == "sign" and token.text in texts

    def take(self) -> _Token:
        token = self.tokens[self.next]
        self.next += 1
        return token

    def accept(self, *texts: str) -> str | None:
        return self.take().text if self.peek(*texts) else None

    def close(self, sign: str, kind: str = "sign") -> None:
        token = self.take()
        if (token.kind, token.text) != (kind, sign):
            self.unexpected(token)

    def unexpected(self, token: _Token) -> NoReturn:
        """Refuse the token that was taken last."""
        before = self.tokens[self.next - 2] if self.next > 1 else _Token("start", "", 0)
        for word in (token, before):
            if word.kind == "name" and word.text.lower() in _WORDS:
                self.refuse(word.at, quote(word.text), f"write {word.text.lower()}")
        what, fix = quote(token.text), "write it as in order.total > 100 and approved"
        if token.kind == "end":
            what = "its end"
        elif before.text + token.text == "<>":
            fix = "write != for <>"
        elif before.kind in _VALUES or before.text in (")", "]"):
            if token.kind in _VALUES:
                what, fix = f"{what} right after {quote(before.text)}", _BETWEEN
            elif token.text in ("(", "-"):
                what, fix = "a call" if token.text == "(" else "a subtraction", _COMPUTE
        elif token.text == "[":
            what, fix = "a list", _SINGLE
        self.refuse(token.at, what, fix)

    def deeper(self, token: _Token) -> None:
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.refuse(token.at, f"more than {MAX_NESTING} levels", _COMPUTE)

    def either(self) -> Evaluate:
        runs = [self.both()]
        while self.accept("or"):
            runs.append(self.both())
        return runs[0] if len(runs) == 1 else _first(tuple(runs), True)

    def both(self) -> Evaluate:
        runs = [self.negation()]
        while self.accept("and"):
            runs.append(self.negation())
        return runs[0] if len(runs) == 1 else _first(tuple(runs), False)

    def negation(self) -> Evaluate:
        if not self.peek("not"):
            return self.comparison()
        self.deeper(self.take())
        run = self.negation()
        self.depth -= 1
        return lambda data: not run(data)

    def comparison(self) -> Evaluate:
        first, steps = self.signed(), []
        while sign := self.accept(*_COMPARE, "not"):
            if sign == "not":
                self.close("in")
                sign = "not in"
            elif sign == "is":
                sign = "is not" if self.accept("not") else "is"
                token = self.tokens[self.next]
                if token.text not in ("None", "null"):
                    self.refuse(token.at, f"{sign!r} without None", "write == or != to compare")
            steps.append((sign, self.signed()))
        return _compare(first, tuple(steps)) if steps else first

    def signed(self) -> Evaluate:
        if not self.peek("-"):
            return self.primary()
        self.deeper(self.take())
        run = self.signed()
        self.depth -= 1
        return _negative(run)

    def primary(self) -> Evaluate:
        token = self.take()
        if token.kind == "name":
            self.names.add(token.text)
            return _path(token.text, self.keys())
        if token.text == "(":
            self.deeper(token)
            run = self.either()
            self.close(")")
            self.depth -= 1
            return run
        if token.kind == "literal":
            return _constant(_LITERALS[token.text])
        if token.kind == "text":
            return _constant(token.text[1:-1])
        if token.kind == "number":
            return _constant(self.number(token))
        self.unexpected(token)

    def number(self, token: _Token) -> int | float:
        whole = token.text.isdigit()
        # The length first: Python refuses to read very long integers.
        if whole and (len(token.text) > 16 or int(token.text) > MAX_INTEGER):
            self.refuse(token.at, "an integer beyond 2**53 - 1", "compare with a smaller number")
        value = int(token.text) if whole else float(token.text)
        if value == math.inf:
            self.refuse(token.at, "an infinite number", "compare with a smaller number")
        return value

    def keys(self) -> tuple[str | int, ...]:
        keys: list[str | int] = []
        while sign := self.accept(".", "["):
            token = self.take()
            if sign == ".":
                if token.kind not in ("name", "literal"):
                    self.unexpected(token)
                keys.append(token.text)
                continue
            negative = token.kind == "sign" and token.text == "-"
            token = self.take() if negative else token
            if token.kind == "text" and not negative:
                keys.append(token.text[1:-1])
            elif token.kind == "number" and token.text.isdigit():
                keys.append(int(self.number(token)) * (-1 if negative else 1))
            else:
                self.refuse(token.at, "a key that is no text and no whole number", _KEY)
            self.close("]")
        return tuple(keys)


def _constant(value: Any) -> Evaluate:
    return lambda data: value


def _first(runs: tuple[Evaluate, ...], truth: bool) -> Evaluate:
    """The first value whose truth is *truth*, or else the last: ``or`` for True, ``and`` else."""
    *most, last = runs

    def run(data: Mapping[str, Any]) -> Any:
        for each in most:
            value = each(data)
            if bool(value) is truth:
                return value
        return last(data)

    return run


def _compare(first: Evaluate, steps: tuple[tuple[str, Evaluate], ...]) -> Evaluate:
    chain = [(sign, _COMPARE[sign], run) for sign, run in steps]

    def run(data: Mapping[str, Any]) -> bool:
        left = first(data)
        for sign, compare, each in chain:
            right = each(data)
            try:
                holds = compare(left, right)
            except TypeError:
                raise _Failed(
                    f"{_kind(left)} {sign} {_kind(right)} cannot be compared",
                    "compare values of one type",
                ) from None
            if not holds:
                return False
            left = right
        return True

    return run


def _negative(operand: Evaluate) -> Evaluate:
    def run(data: Mapping[str, Any]) -> Any:
        value = operand(data)
        if not isinstance(value, int | float):
            raise _Failed(f"a minus sign before {_kind(value)}", "negate a number")
        return -value

    return run


def _path(name: str, keys: tuple[str | int, ...]) -> Evaluate:
    def run(data: Mapping[str, Any]) -> Any:
        if name not in data:
            raise _Failed(
                f"name {name!r} is not in the data", f"let a task before the gateway set {name!r}"
            )
        value = data[name]
        for index, key in enumerate(keys):
            # Never by attribute, and only on what JSON has.
            if not isinstance(value, dict if isinstance(key, str) else list | str):
                fact = f"{_written(name, keys[:index])} is {_kind(value)}, so it has no {key!a}"
            else:
                try:
                    value = value[key]  # type: ignore[index]
                    continue
                except (KeyError, IndexError):
                    what = "key" if isinstance(key, str) else "item"
                    fact = f"{what} {key!a} is not in {_written(name, keys[:index])}"
            raise _Failed(fact, f"let a task before the gateway set {_written(name, keys)}")
        return value

    return run


def _written(name: str, keys: tuple[str | int, ...]) -> str:
    shown = name + "".join(f"[{key!a}]" for key in keys)
    return shown if len(shown) <= 200 else shown[:200] + "..."


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__
