"""What the commands share: their options, and how they print."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from seams_lab import report


class Format(StrEnum):
    """How to print."""

    table = "table"
    json = "json"
    csv = "csv"


ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A folder, a .trig file or a .bpmn file.")
]
Output = Annotated[Format, typer.Option("--format", "-f", help="How to print.")]


def show(rows: list[dict[str, Any]], columns: list[str], form: Format, title: str = "") -> None:
    """Print rows as a table, JSON or CSV; a table without rows prints nothing."""
    if form is Format.json:
        say(report.as_json(rows))
    elif form is Format.csv:
        say(report.as_csv(rows, columns))
    elif rows:
        report.print_table(rows, columns, title=title)


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A table's rows as plain values by column name."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def say(text: str) -> None:
    """Print to standard output."""
    typer.echo(text)


def note(text: str) -> None:
    """Print a remark to standard error, so that it does not mix with data."""
    typer.echo(f"note: {text}", err=True)
