"""The language of gateway conditions: what it accepts, with which value; what it refuses."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seams_lab.errors import SeamsError, UnusableInput
from seams_lab.runtime.conditions import (
    MAX_LENGTH,
    MAX_NESTING,
    ConditionFailed,
    compile_condition,
)

DATA = {
    "approved": True,
    "rejected": False,
    "nothing": None,
    "n": 3,
    "x": 2.5,
    "status": "open",
    "empty": "",
    "lines": [10, "b", [7]],
    "order": {"total": 250, "class": "A", "café": 1, "items": {"deep": [1, {"k": "v"}]}, "": 0},
    "open_expenses": 0,
}

ACCEPTED = [
    # Names and keys
    ("approved", True),
    ("  \n\tapproved \r\n", True),
    ("nothing", None),
    ("status", "open"),
    ("order.total", 250),
    ('order["total"]', 250),
    ("order['class']", "A"),
    ("order['café']", 1),
    ("order['']", 0),
    ("order . items . deep [ 1 ] . k", "v"),
    ("lines[0]", 10),
    ("lines[-1][0]", 7),
    ("lines[- 1][0]", 7),
    ("status[0]", "o"),
    # Literals
    ("True", True),
    ("true", True),
    ("False", False),
    ("false", False),
    ("None", None),
    ("null", None),
    ("0", 0),
    ("42", 42),
    ("9007199254740991", 9007199254740991),
    ("2.50", 2.5),
    ("1e3", 1000.0),
    ("1.5E-1", 0.15),
    ('"a \' b"', "a ' b"),
    ("'a \" b'", 'a " b'),
    ("'größer > 1 and not'", "größer > 1 and not"),
    ("''", ""),
    # Comparisons
    ("n == 3", True),
    ("n == 3.0", True),
    ("approved == 1", True),
    ("n == '3'", False),
    ("n != 3", False),
    ("n < 3", False),
    ("n <= 3", True),
    ("n > 2.9", True),
    ("n >= 4", False),
    ("n>=3", True),
    ("status < 'p'", True),
    ("'pe' in status", True),
    ("'total' in order", True),
    ("'missing' not in order", True),
    ("10 in lines", True),
    ("nothing is None", True),
    ("nothing is null", True),
    ("n is None", False),
    ("n is not None", True),
    ("nothing is not None", False),
    ("1 < n < 5", True),
    ("1 < n < 2", False),
    ("5 < n < missing", False),
    ("n == 3 == 3.0 != 4", True),
    ("nothing is None is None", True),
    ("lines == lines", True),
    # Signs, and, or, not
    ("-n", -3),
    ("- -n", 3),
    ("--n", 3),
    ("-n < -2", True),
    ("-approved", -1),
    ("not approved", False),
    ("not not n", True),
    ("not n == 3", False),
    ("approved and n", 3),
    ("rejected and missing", False),
    ("n or missing", 3),
    ("empty or rejected or nothing", None),
    ("rejected or approved and nothing", None),
    ("(rejected or approved) and nothing is None", True),
    ("approved or rejected and rejected", True),
    ("not rejected and not empty", True),
    ("((n))", 3),
    ("(order.total) > 100", True),
    # From public models
    ("open_expenses > 0", False),
    ("approved == True", True),
]


@pytest.mark.parametrize(("text", "value"), ACCEPTED)
def test_what_is_accepted_has_its_value(text: str, value: object) -> None:
    seen = compile_condition(text, "Flow_1").evaluate(DATA)
    assert (type(seen), seen) == (type(value), value)


# Text, character at which it is refused, a part of what is said about it, a part of the fix.
REFUSED = [
    # Running something
    ("__import__('os').system('touch MARK')", 1, "__import__", "without leading __"),
    ("__import__('os').system('touch MARK') or 'PT48H'", 1, "__import__", ""),
    ("().__class__.__base__.__subclasses__()", 4, "__class__", ""),
    ("order.__class__", 7, "__class__", ""),
    ("__builtins__", 1, "__builtins__", ""),
    ("eval('1')", 5, "a call", "compute it in a task"),
    ("len(lines)", 4, "a call", ""),
    ("order.keys()", 11, "a call", ""),
    ("lines[0]()", 9, "a call", ""),
    ("(n)(1)", 4, "a call", ""),
    ("'x'.upper()", 4, "'.'", ""),
    ("lambda: 1", 1, "'lambda'", ""),
    ("[k for k in lines]", 4, "'for'", ""),
    ("(k for k in lines)", 4, "'for'", ""),
    ("{k: 1}", 1, "'{'", ""),
    ("f'{n}'", 2, "right after 'f'", "one pair of quotes"),
    ("b'x'", 2, "right after 'b'", ""),
    ("(y := 1)", 4, "':='", "task"),
    ("await n", 1, "'await'", ""),
    ("yield", 1, "'yield'", ""),
    ("import os", 1, "'import'", ""),
    ("n if approved else x", 3, "'if'", ""),
    # Arithmetic
    ("n + 1", 3, "'+'", "compute it in a task"),
    ("n - 1", 3, "a subtraction", "compute it in a task"),
    ("n -1", 3, "a subtraction", ""),
    ("n * 2", 3, "'*'", ""),
    ("9**9**9", 2, "'*'", ""),
    ("n / 2", 3, "'/'", ""),
    ("n % 2", 3, "'%'", ""),
    ("'%s' % n", 6, "'%'", ""),
    ("n @ n", 3, "'@'", ""),
    ("~n", 1, "'~'", ""),
    ("+n", 1, "'+'", ""),
    ("n << 2", 4, "'<'", ""),
    # Other languages
    ("=approved", 1, "'='", "no = in front"),
    ("${approved}", 1, "'${'", "leave ${ and } out"),
    ("#{approved}", 1, "'#{'", "leave #{ and } out"),
    ("!approved", 1, "'!'", "write not"),
    ("approved && n", 10, "'&&'", "write and"),
    ("approved || n", 10, "'||'", "write or"),
    ("approved AND n", 10, "'AND'", "write and"),
    ("NOT approved", 1, "'NOT'", "write not"),
    ("n = 3", 3, "'='", "write == to compare"),
    ("n <> 3", 4, "'>'", "write != for <>"),
    ("n === 3", 5, "'='", ""),
    ("approved ? 1 : 2", 10, "'?'", ""),
    ("Service Level == 'Premium'", 9, "right after 'Service'", "pair of quotes"),
    # Literals of another form
    ("007", 1, "another form", "write it as in 10"),
    ("1_000", 1, "another form", ""),
    ("0x10", 1, "another form", ""),
    ("1.", 1, "another form", ""),
    ("1.2.3", 1, "another form", ""),
    ("1j", 1, "another form", ""),
    (".5", 1, "'.'", ""),
    ("1if n", 1, "another form", ""),
    ("٣", 1, "another form", ""),
    ("1e999", 1, "infinite", ""),
    ("9007199254740992", 1, "beyond 2**53 - 1", ""),
    ("9" * 900, 1, "beyond 2**53 - 1", ""),
    (r"'a\n'", 1, "backslash", "with no backslash"),
    (r'"a\"', 1, "backslash", ""),
    (r'"a\n"', 1, "backslash", "with no backslash"),
    ("'abc", 1, "no end", "one pair of quotes"),
    ("'a\nb'", 1, "control character", ""),
    ("'a\u200bb'", 1, "control character", ""),
    ("'a\x00b'", 1, "control character", ""),
    ("'a' 'b'", 5, "right after", "one pair of quotes"),
    ("'''a'''", 3, "right after", ""),
    ("[1, 2]", 3, "','", "one comparison for each value"),
    ("[1]", 1, "a list", "one comparison for each value"),
    ("n in (1, 2)", 8, "','", "one comparison for each value"),
    ("()", 2, "')'", ""),
    # Keys
    ("lines[1:2]", 8, "':'", ""),
    ("lines[n]", 7, "a key that", "write the key itself"),
    ("lines[True]", 7, "a key that", ""),
    ("lines[1.0]", 7, "a key that", ""),
    ("lines[-'a']", 8, "a key that", ""),
    ("lines[--1]", 8, "a key that", ""),
    ("lines[]", 7, "a key that", ""),
    ("lines[0", 8, "its end", ""),
    ("order.if", 7, "'if'", ""),
    ("order.in", 7, "'in'", ""),
    ("order.1", 7, "'1'", ""),
    ("order.'a'", 7, "\"'a'\"", ""),
    ("order..a", 7, "'.'", ""),
    ("(order).total", 8, "'.'", ""),
    # Structure
    ("", 1, "its end", "write it as in order.total > 100"),
    (" \n ", 4, "its end", ""),
    ("not", 4, "its end", ""),
    ("n ==", 5, "its end", ""),
    ("n == == 3", 6, "'=='", ""),
    ("n not 3", 7, "'3'", ""),
    ("n == not approved", 6, "'not'", ""),
    ("-not n", 2, "'not'", ""),
    ("n is True", 6, "'is' without None", "write == or !="),
    ("n is not 3", 10, "'is not' without None", ""),
    ("n is 'None'", 6, "'is' without None", ""),
    ("(n", 3, "its end", ""),
    ("n)", 2, "')'", ""),
    ("n; n", 2, "';'", "leave the character out"),
    ("n # note", 3, "'#'", "comment"),
    ("n \\\n== 3", 3, r"'\\'", ""),
    ("n\u00a0== 3", 2, r"'\xa0'", ""),
    ("größe > 1", 3, r"'\xf6'", "ASCII letters"),
    ("n == 3\x00", 7, r"'\x00'", ""),
    ("`n`", 1, "'`'", ""),
    # What blows up Python's own parser
    ("(" * 300 + "n" + ")" * 300, MAX_NESTING + 1, "more than 32 levels", ""),
    ("-" * 900 + "1", MAX_NESTING + 1, "more than 32 levels", ""),
    ("not " * 200 + "n", 4 * MAX_NESTING + 1, "more than 32 levels", ""),
]


@pytest.mark.parametrize(("text", "at", "what", "fix"), REFUSED)
def test_what_is_refused_is_named_with_position_and_fix(
    text: str, at: int, what: str, fix: str
) -> None:
    with pytest.raises(UnusableInput) as caught:
        compile_condition(text, "Flow_1")
    error = caught.value
    assert error.where == "Flow_1"
    assert what in error.seen.removeprefix("condition ")
    assert error.seen.endswith(f" at character {at}")
    assert fix in error.fix
    assert error.fix
    assert "comparisons" in error.expected
    assert str(error).isprintable()


def test_a_long_integer_is_refused_where_python_refuses_to_read_it() -> None:
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        with pytest.raises(UnusableInput, match="beyond"):
            compile_condition("9" * 900, "Flow_1")
    finally:
        sys.set_int_max_str_digits(limit)


def test_the_message_reads_as_a_sentence() -> None:
    with pytest.raises(UnusableInput) as caught:
        compile_condition("approved && n", "Flow_1")
    assert str(caught.value) == (
        "Flow_1: condition 'approved && n' has '&&' at character 10; expected names, keys such as "
        'order.total, order["total"] and lines[0], numbers, text in quotes, comparisons, and, or, '
        "not. Fix: write and"
    )


def test_the_length_has_a_limit() -> None:
    fits = "n" + " " * (MAX_LENGTH - 1)
    assert compile_condition(fits, "Flow_1").evaluate(DATA) == 3
    with pytest.raises(UnusableInput, match="1,001 characters"):
        compile_condition(fits + " ", "Flow_1")
    with pytest.raises(UnusableInput, match="200,000 characters"):
        compile_condition("-" * 200_000, "Flow_1")


@pytest.mark.parametrize(
    ("before", "after", "value"),
    [("(", ")", 3), ("not ", "", True), ("- ", "", 3)],
    ids=["parentheses", "not", "minus"],
)
def test_nesting_up_to_the_limit_is_accepted(before: str, after: str, value: object) -> None:
    text = before * MAX_NESTING + "n" + after * MAX_NESTING
    assert compile_condition(text, "Flow_1").evaluate(DATA) == value
    with pytest.raises(UnusableInput, match="more than 32 levels"):
        compile_condition(before + text + after, "Flow_1")


def test_levels_side_by_side_are_not_nested() -> None:
    assert compile_condition(" and ".join(["(not -n)"] * 70), "Flow_1").evaluate(DATA) is False


def test_long_chains_need_no_depth() -> None:
    deep: Any = "found"
    for _ in range(499):
        deep = {"a": deep}
    assert compile_condition("d" + ".a" * 499, "Flow_1").evaluate({"d": deep}) == "found"
    assert compile_condition("1" + "<1" * 499, "Flow_1").evaluate({}) is False
    assert compile_condition("0" + " or 0" * 199, "Flow_1").evaluate({}) == 0


@pytest.mark.parametrize("text", [None, 3, b"n", ["n"]])
def test_a_condition_is_text(text: Any) -> None:
    with pytest.raises(UnusableInput, match="Flow_1: a "):
        compile_condition(text, "Flow_1")


FAILING = [
    ("missing", "name 'missing' is not in the data", "set 'missing'"),
    ("rejected or missing", "name 'missing' is not in the data", ""),
    ("order.missing", "key 'missing' is not in order", "set order['missing']"),
    ("order.items.deep[0].k", "order['items']['deep'][0] is int, so it has no 'k'", ""),
    ("lines[3]", "item 3 is not in lines", "set lines[3]"),
    ("lines[-4]", "item -4 is not in lines", ""),
    ("lines[9007199254740991]", "item 9007199254740991 is not in lines", ""),
    ("order[0]", "order is dict, so it has no 0", ""),
    ("lines.append", "lines is list, so it has no 'append'", ""),
    ("order.keys", "key 'keys' is not in order", ""),
    ("status.upper", "status is str, so it has no 'upper'", ""),
    ("nothing.total", "nothing is None, so it has no 'total'", ""),
    ("nothing[0]", "nothing is None, so it has no 0", ""),
    ("n < '3'", "int < str cannot be compared", "one type"),
    ("nothing >= 3", "None >= int cannot be compared", ""),
    ("order < order", "dict < dict cannot be compared", ""),
    ("'a' in n", "str in int cannot be compared", ""),
    ("n not in status", "int not in str cannot be compared", ""),
    ("lines in order", "list in dict cannot be compared", ""),
    ("-status", "a minus sign before str", "negate a number"),
    ("-nothing", "a minus sign before None", ""),
]


@pytest.mark.parametrize(("text", "fact", "fix"), FAILING)
def test_data_that_does_not_fit_fails_with_text_fact_and_fix(
    text: str, fact: str, fix: str
) -> None:
    condition = compile_condition(text, "Flow_1")
    with pytest.raises(ConditionFailed) as caught:
        condition.evaluate(DATA)
    error = caught.value
    assert (error.where, error.text, error.fact) == ("Flow_1", text, fact)
    assert fix in error.fix
    assert isinstance(error, SeamsError)
    assert error.__cause__ is None


def test_the_failure_reads_as_a_sentence_and_survives_a_process_border() -> None:
    with pytest.raises(ConditionFailed) as caught:
        compile_condition(" approved ", "Flow_1").evaluate({})
    message = (
        "Flow_1: condition 'approved': name 'approved' is not in the data. "
        "Fix: let a task before the gateway set 'approved'"
    )
    assert str(caught.value) == message
    assert str(pickle.loads(pickle.dumps(caught.value))) == message


def test_a_key_is_never_an_attribute() -> None:
    class Loud(dict[str, Any]):
        secret = 1

    condition = compile_condition("order.secret", "Flow_1")
    with pytest.raises(ConditionFailed):
        condition.evaluate({"order": Loud()})
    assert condition.evaluate({"order": Loud(secret=2)}) == 2


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("order.total > limit and order.limit.max < 3", ("limit", "order")),
        ("b or a or b", ("a", "b")),
        ("true == null or 'name' == \"name\"", ()),
    ],
)
def test_the_top_level_names_are_told(text: str, names: tuple[str, ...]) -> None:
    assert compile_condition(text, "Flow_1").names == names


def test_a_condition_shows_its_text_compares_by_it_and_can_be_copied() -> None:
    condition = compile_condition("  n > 2 ", "Flow_1")
    assert repr(condition) == "Condition('n > 2')"
    assert condition == compile_condition("n > 2", "Flow_1")
    assert condition != compile_condition("n > 3", "Flow_1")
    assert hash(condition) == hash(compile_condition("n > 2", "Flow_1"))
    assert copy.deepcopy(condition).evaluate(DATA) is True


def test_evaluating_changes_nothing() -> None:
    data = copy.deepcopy(DATA)
    for text, _ in ACCEPTED:
        compile_condition(text, "Flow_1").evaluate(data)
    assert data == DATA


# ---------------------------------------------------------------------- against Python itself

names = st.sampled_from(sorted(DATA))
numbers = st.one_of(st.integers(0, 10).map(str), st.sampled_from(["2.5", "0.0", "1e2"]))
texts = st.sampled_from(["'open'", '"A"', "''", "'total'", "'b'"])
literals = st.sampled_from(["True", "False", "None", "true", "false", "null"])
keys = st.sampled_from(["['total']", '["items"]', "['deep']", "[0]", "[1]", "[-1]", "['k']"])
paths = st.tuples(names, st.lists(keys, max_size=3)).map(lambda p: p[0] + "".join(p[1]))
signs = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in"])
blanks = st.sampled_from(["", " ", "  ", "\t"])


def larger(smaller: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions made of smaller ones, mostly without the parentheses that would order them."""
    return st.one_of(
        st.tuples(smaller, signs, smaller).map(" ".join),
        st.tuples(smaller, signs, smaller, signs, smaller).map(" ".join),
        st.tuples(smaller, st.sampled_from(["is None", "is not None"])).map(" ".join),
        st.tuples(smaller, st.sampled_from(["and", "or"]), smaller).map(" ".join),
        smaller.map(lambda e: f"not {e}"),
        smaller.map(lambda e: f"-{e}"),
        st.tuples(blanks, smaller, blanks).map(lambda e: f"({e[0]}{e[1]}{e[2]})"),
    )


conditions = st.recursive(st.one_of(paths, numbers, texts, literals), larger, max_leaves=12)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # Python's advice on `1 is None`
@given(conditions)
def test_values_are_those_of_python(text: str) -> None:
    def python() -> tuple[str, Any]:
        bound = {**DATA, "true": True, "false": False, "null": None, "__builtins__": {}}
        try:
            # Safe: the text was built above, of fixed parts.
            return "value", eval(text, bound)
        except SyntaxError:
            return "refused", None
        except (TypeError, KeyError, IndexError):
            return "failed", None

    def ours() -> tuple[str, Any]:
        try:
            return "value", compile_condition(text, "Flow_1").evaluate(DATA)
        except UnusableInput:
            return "refused", None
        except ConditionFailed:
            return "failed", None

    assert (repr(ours())) == repr(python())


pieces = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        [
            *"()[]{}.,:;=<>!&|+-*/%@~^#$\\\"'` \n\t_",
            *["and", "or", "not", "in", "is", "None", "True", "lambda", "for", "__class__", "n"],
            *["==", "!=", ":=", "'a'", "0", "1e9", "0x", "f'", "order", "lines", "\x00", "\ud800"],
        ]
    ),
)


def outcome(text: str) -> str:
    try:
        return repr(compile_condition(text, "Flow_1").evaluate(DATA))
    except (UnusableInput, ConditionFailed) as error:
        return str(error)


@given(st.lists(pieces, max_size=30).map("".join))
def test_no_text_raises_anything_else(text: str) -> None:
    assert "\n" not in outcome(text)
