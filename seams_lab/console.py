"""What the commands share: their options, how they read arguments, print, log and run processes."""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from seams_lab import report
from seams_lab.errors import UnusableInput


class Format(StrEnum):
    """How to print."""

    table = "table"
    json = "json"
    csv = "csv"


DEFAULT_STORE = "sqlite:///seams.db"

ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A folder, a .trig file or a .bpmn file.")
]
Output = Annotated[Format, typer.Option("--format", "-f", help="How to print.")]
StoreUrl = Annotated[
    str,
    typer.Option(
        "--store", envvar="SEAMS_STORE", metavar="URL",
        help="sqlite:///FILE or postgresql://USER@HOST/DATABASE.",
    ),
]  # fmt: skip
Container = Annotated[
    str | None,
    typer.Option(
        "--container", "-c", metavar="NAME",
        help="The container to run; not needed when only one executes processes.",
    ),
]  # fmt: skip
Handlers = Annotated[
    str | None,
    typer.Option(
        "--handlers", metavar="MODULE",
        help="A Python module or file whose `handlers` maps task ids to functions(data, context).",
    ),
]  # fmt: skip
Data = Annotated[
    str, typer.Option("--data", "-d", metavar="JSON", help="Process data, a JSON object.")
]
InstanceId = Annotated[str, typer.Argument(metavar="INSTANCE", help="Its id, or the start of it.")]

# So many characters of an id are shown; commands take the start of one.
_SHORT_ID = 8
# What is typed again as it stands.
_AS_IT_IS = {"key", "expression"}
_ID = re.compile(r"[0-9a-f]{32}")


def show(
    rows: Sequence[dict[str, Any]], columns: Sequence[str], form: Format, title: str = ""
) -> None:
    """Print rows as a table, JSON or CSV; a table without rows prints nothing."""
    if form is Format.json:
        say(report.as_json(rows))
    elif form is Format.csv:
        say(report.as_csv(rows, columns))
    elif rows:
        report.print_table(rows, columns, title=title)


def for_people(
    rows: Sequence[dict[str, Any]], columns: Sequence[str]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows and columns that fit a terminal: short ids, whole seconds, no column without values.

    What is cut off is in JSON and CSV. Commands take an id by its beginning.
    """
    cut = [
        {name: row.get(name) if name in _AS_IT_IS else _short(row.get(name)) for name in columns}
        for row in rows
    ]
    return cut, [c for c in columns if any(row[c] not in (None, "", []) for row in cut)]


def _short(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_short(one) for one in value]
    if isinstance(value, float):
        return f"{value:.3f}"
    if not isinstance(value, str):
        return value
    if _ID.fullmatch(value):
        return value[:_SHORT_ID]
    # A space in the middle, where a narrow column can break it.
    return re.sub(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d+)?Z$", r"\1 \2Z", value)


def say(text: str) -> None:
    """Print to standard output."""
    typer.echo(text)


def note(text: str) -> None:
    """Print a remark to standard error, so that it does not mix with data."""
    typer.echo(f"note: {text}", err=True)


def log_to_stderr(name: str = "", level: int = logging.INFO) -> None:
    """Log to standard error, one line per outcome, each at once.

    *name* stands before each line, where several replicas write to one terminal.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(f"[{name}] %(message)s" if name else "%(message)s"))
    logger = logging.getLogger("seams_lab")
    logger.handlers[:] = [handler]
    logger.setLevel(level)


def load_handlers(named: str | None) -> Mapping[str, Any]:
    """Import the handlers that a module or Python file offers under the name ``handlers``.

    Raises
    ------
    UnusableInput
        When it cannot be imported, or has no such mapping of functions.
    """
    if named is None:
        return {}
    try:
        if named.endswith(".py"):
            if not Path(named).is_file():
                raise ImportError("no such file")
            spec = importlib.util.spec_from_file_location("seams_handlers", named)
            if spec is None or spec.loader is None:
                raise ImportError(f"{named} is not a Python file")
            module = importlib.util.module_from_spec(spec)
            sys.modules["seams_handlers"] = module
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, os.getcwd())
            module = importlib.import_module(named)
    except (Exception, SystemExit) as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise UnusableInput(
            f"--handlers {named}", text, "a module or file that Python can import",
            "correct the name or what it does when imported",
        ) from error  # fmt: skip
    found = getattr(module, "handlers", None)
    if not isinstance(found, Mapping) or not all(callable(f) for f in found.values()):
        raise UnusableInput(
            f"--handlers {named}", "no mapping named handlers",
            "handlers = {'send_reminder': function, ...}", "add it to the module",
        )  # fmt: skip
    return found


def json_object(text: str) -> dict[str, Any]:
    """Read ``--data``; raises UnusableInput when it is not a JSON object."""
    expected, fix = "a JSON object", "write it as in '{\"approved\": true}'"
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UnusableInput("--data", f"{text!r} ({error})", expected, fix) from None
    if not isinstance(found, dict):
        raise UnusableInput("--data", f"{text!r}", expected, fix)
    return found
