"""The command line: seams-lab check | timers | due | impact | lift | run MODEL, and more.

Exit status: 0 clean, 1 findings of severity error or a failed step, 2 unusable input.
"""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import asdict
from enum import StrEnum
from importlib.metadata import version
from typing import Annotated

import typer

from seams_lab import report, runtime_commands
from seams_lab.console import Format, ModelPath, Output, note, say, show
from seams_lab.due import TruncatedWarning, due_times, rows_of
from seams_lab.errors import SeamsError, UnusableInput
from seams_lab.expressions import DAY
from seams_lab.impact import cut_sets, impact, impact_matrix
from seams_lab.instants import to_micros, to_text
from seams_lab.lift import plan
from seams_lab.model import Model, load, moment, timer_records

app = typer.Typer(
    help="Timers and schedules of business processes: when each fires, what is wrong, what stops.",
    epilog="Start with: seams-lab check models/expense",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

UNUSABLE, ERRORS = 2, 1
_TABLE_ROWS = 100


class CheckFormat(StrEnum):
    """How to print findings."""

    table = "table"
    json = "json"
    csv = "csv"
    github = "github"
    sarif = "sarif"


At = Annotated[
    str | None,
    typer.Option(
        metavar="INSTANT", help="Such as 2026-11-09T08:00:00Z, with any offset. Default: now."
    ),
]


@app.command("check")
def check_command(
    model: ModelPath,
    at: At = None,
    ci: Annotated[
        bool, typer.Option("--ci", help="Manifest checksums and media types become errors.")
    ] = False,
    form: Annotated[
        CheckFormat, typer.Option("--format", "-f", help="How to print.")
    ] = CheckFormat.table,
) -> None:
    """Report everything that is wrong with a model, all at once.

    Shapes, drift between graph and BPMN, timer expressions, stores, placement. Ends with status 1
    when a finding is an error, 0 when there are only warnings or none.
    """
    findings = load(model).check(at, ci=ci)
    columns = ["severity", "file", "line", "element", "check", "message", "fix"]
    rows = [asdict(f) for f in findings]
    if form is CheckFormat.github:
        say(report.as_github(findings))
    elif form is CheckFormat.sarif:
        say(report.as_sarif(findings, version("seams-lab")))
    else:
        show(rows, columns, Format(form.value))
        if form is CheckFormat.table:
            say(f"{model}: {findings.summary()}")
    if findings.errors:
        raise typer.Exit(ERRORS)


@app.command("timers")
def timers_command(
    model: ModelPath,
    at: At = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add notes on what is easily taken wrongly.")
    ] = False,
    form: Output = Format.table,
) -> None:
    """List every timer: what it means, whether it is accepted, its first three due times.

    Timers inside an instance are taken to be reached at --at.
    """
    loaded = load(model)
    rows = timer_records(loaded, moment(at, "--at"))
    columns = ["event", "process", "kind", "expression", "verdict", "code", "meaning", "reason",
               "due"]  # fmt: skip
    if form is not Format.table:
        columns = [*rows[0]] if rows else columns
    show(rows, columns, form)
    if explain and form is Format.table:
        for row in rows:
            for text in [*row["notes"], *([f"fix: {row['fix']}"] if row["fix"] else [])]:
                say(f"{row['event']}: {text}")
    _tell_unreadable(loaded)


@app.command("due")
def due_command(
    model: ModelPath,
    start: Annotated[
        str | None, typer.Option("--from", metavar="INSTANT", help="First instant. Default: now.")
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="INSTANT", help="End, not included. Default: 7 days later."),
    ] = None,
    armed_at: Annotated[
        str | None,
        typer.Option(metavar="INSTANT", help="When waiting timers are reached. Default: --from."),
    ] = None,
    cap: Annotated[int, typer.Option(min=1, help="The most due times to list.")] = 100_000,
    form: Output = Format.table,
) -> None:
    """List every due time in a window, --from included and --to not, in the order of time."""
    loaded = load(model)
    low = moment(start, "--from")
    high = to_micros(end, "--to") if end is not None else low + 7 * DAY
    armed = low if armed_at is None else to_micros(armed_at, "--armed-at")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TruncatedWarning)
        frame = due_times(loaded, low, high, armed_at=armed, cap=cap)
    frame = frame.sort_values(["due", "event", "k"], kind="stable")
    micros = frame["due"].dt.tz_localize(None).astype("int64")
    rows = [
        {"event": event, "process": process, "k": k, "due": to_text(due)}
        for event, process, k, due in zip(
            frame["event"], frame["process"], frame["k"].tolist(), micros, strict=True
        )
    ]
    shown = rows[:_TABLE_ROWS] if form is Format.table else rows
    show(shown, ["event", "process", "k", "due"], form)
    for warning in caught:
        note(str(warning.message))
    if len(shown) < len(rows):
        note(f"{len(rows) - len(shown):,} more rows; --format csv or json prints all")
    refused = [r["event"] for r in timer_records(loaded, armed) if r["verdict"] == "refuse"]
    if refused:
        note(f"refused, so without due times: {', '.join(refused)}")
    _tell_unreadable(loaded)


@app.command("impact")
def impact_command(
    model: ModelPath,
    node: Annotated[
        list[str] | None,
        typer.Option("--node", "-n", help="A node that dies; repeat it for several at once."),
    ] = None,
    smallest: Annotated[
        bool, typer.Option("--cut-sets", help="Instead: the smallest losses that stop a timer.")
    ] = False,
    form: Output = Format.table,
) -> None:
    """Say what stops, what is degraded and what is untouched when nodes die.

    Without --node: every node alone, as a matrix.
    """
    loaded = load(model)
    columns: list[str]
    if smallest:
        frame = cut_sets(loaded)
        rows, columns = rows_of(frame), list(frame.columns)
        if frame.attrs["not_searched"]:
            note(f"too many combinations to try: {', '.join(frame.attrs['not_searched'])}")
    elif node:
        rows = rows_of(impact(loaded, node).astype({"effect": str}))
        columns = ["event", "process", "role", "container", "effect", "reason"]
        columns = columns if form is Format.table else [*columns, "cause", "event_iri"]
    else:
        matrix = impact_matrix(loaded).reset_index()
        rows, columns = rows_of(matrix), [str(c) for c in matrix.columns]
    show(rows, columns, form)


@app.command("lift")
def lift_command(
    model: ModelPath,
    base: Annotated[
        str | None, typer.Option(metavar="IRI", help="The model IRI for a bare BPMN file.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would change, and write nothing.")
    ] = False,
) -> None:
    """Write the index triples of a model's BPMN files into its TriG.

    What a person wrote stays as it is; running it twice changes nothing.
    """
    loaded = load(model)
    lifting = plan(loaded, base)
    if dry_run:
        say(lifting.diff())
    else:
        say(repr(lifting))
        for path in lifting.write():
            say(f"wrote {path}")
    for remark in lifting.notes:
        note(remark)
    _tell_unreadable(loaded)


runtime_commands.register(app)


@app.callback(invoke_without_command=True)
def _common(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.")
    ] = False,
) -> None:
    if show_version:
        say(version("seams-lab"))
        raise typer.Exit


def _tell_unreadable(model: Model) -> None:
    """A file that cannot be read has no timers: say so, and end with status 2."""
    broken = False
    for bpmn_model in model.bpmn_models:
        try:
            model.payload(bpmn_model)
        except UnusableInput as error:
            broken = True
            typer.echo(f"unusable: {error}", err=True)
    if broken:
        raise typer.Exit(UNUSABLE)


def main() -> None:
    """Run the command line; every error ends as one line on standard error."""
    try:
        app()
    except SeamsError as error:
        typer.echo(f"seams-lab: {error}", err=True)
        sys.exit(UNUSABLE)
    except BrokenPipeError:  # such as `seams-lab due MODEL | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        typer.echo(f"seams-lab: {error.filename or ''}: {error.strerror or error}", err=True)
        sys.exit(UNUSABLE)
    except Exception as error:
        if os.environ.get("SEAMS_LAB_DEBUG"):
            raise
        typer.echo(
            f"seams-lab: internal fault ({type(error).__name__}: {error}); please report it. "
            "SEAMS_LAB_DEBUG=1 shows where",
            err=True,
        )
        sys.exit(70)
