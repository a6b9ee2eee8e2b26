"""What the commands share: reading arguments, printing, running processes."""

from __future__ import annotations

import csv
import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from seams_lab import console
from seams_lab.console import Format, for_people, json_object, load_handlers, show
from seams_lab.due import rows_of
from seams_lab.errors import UnusableInput

ID = "2bba337d294e038c92339b3f3f2a1ab6"


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """The package's logger; afterwards as it was."""
    found = logging.getLogger("seams_lab")
    handlers, level = found.handlers[:], found.level
    yield found
    found.handlers[:] = handlers
    found.setLevel(level)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (ID, "2bba337d"),
        ("2026-11-09T08:00:00Z", "2026-11-09 08:00:00Z"),
        ("2026-11-09T08:00:00.123456Z", "2026-11-09 08:00:00Z"),
        (["reminder_due 2026-11-09T08:00:00.5Z"], ["reminder_due 2026-11-09 08:00:00Z"]),
        (0.0123456, "0.012"),
        (7, 7),
        ("E-17", "E-17"),
    ],
)
def test_a_table_shows_what_fits(value: object, shown: object) -> None:
    rows, columns = for_people([{"x": value, "key": value}], ["x", "key"])
    assert (rows[0]["x"], columns) == (shown, ["x", "key"])
    # A key is typed again as it stands.
    assert rows[0]["key"] == value


def test_a_table_leaves_out_columns_without_a_value() -> None:
    rows = [{"a": 0, "b": None, "c": "", "d": []}, {"a": 1, "b": None, "c": "", "d": ["x"]}]
    assert for_people(rows, ["a", "b", "c", "d"])[1] == ["a", "d"]


def test_rows_of_a_frame_hold_instants_as_text() -> None:
    frame = pd.DataFrame({"at": pd.to_datetime(["2026-11-09T08:00:00Z", None]), "n": [1, 2]})
    assert rows_of(frame) == [{"at": "2026-11-09T08:00:00Z", "n": 1}, {"at": None, "n": 2}]
    micros = pd.Series([221_845_392_000_000_000]).astype("datetime64[us, UTC]")
    far = pd.DataFrame({"at": micros})
    assert rows_of(far) == [{"at": "9000-01-01T00:00:00Z"}]


def test_each_format_holds_the_rows(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"a": 1, "b": "x, y"}]
    show(rows, ["a", "b"], Format.json)
    assert json.loads(capsys.readouterr().out) == rows
    show(rows, ["a", "b"], Format.csv)
    assert list(csv.reader(io.StringIO(capsys.readouterr().out))) == [["a", "b"], ["1", "x, y"]]
    show(rows, ["a", "b"], Format.table, "title")
    assert "title" in capsys.readouterr().out
    show([], ["a", "b"], Format.table, "title")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("text", ["", "{", "[1]", "1", "null", "{'a': 1}"])
def test_data_that_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(UnusableInput, match=r"--data: .*expected a JSON object"):
        json_object(text)


def test_data_is_read() -> None:
    assert json_object('{"a": [1]}') == {"a": [1]}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (None, "no such file"),
        ("def handlers(: pass", "SyntaxError"),
        ("import nothing_of_this_name", "ModuleNotFoundError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = 1", "no mapping named handlers"),
        ("handlers = {'a': 1}", "no mapping named handlers"),
    ],
)
def test_handlers_that_cannot_be_used_are_refused(
    tmp_path: Path, source: str | None, said: str
) -> None:
    path = tmp_path / "handlers.py"
    if source is not None:
        path.write_text(source)
    with pytest.raises(UnusableInput, match=re.escape(said)) as caught:
        load_handlers(str(path))
    assert "\n" not in str(caught.value)


def test_handlers_are_found_in_a_file_and_in_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_handlers.py").write_text("handlers = {'a': print}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["here"])
    assert load_handlers(str(tmp_path / "own_handlers.py")) == {"a": print}
    assert load_handlers("own_handlers") == {"a": print}
    assert load_handlers(None) == {}


def test_a_log_line_says_who_it_is_of(
    logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, line in (("one", "[one] hello"), ("", "hello")):
        console.log_to_stderr(name)
        logger.getChild("x").info("hello")
        logger.getChild("x").debug("not this")
        assert capsys.readouterr().err == f"{line}\n"
