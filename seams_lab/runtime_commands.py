"""The commands that run a model: run, status, start, tasks, complete, instances, retry.

What they need (SpiffWorkflow, SQLAlchemy) is imported when one of them runs, not before.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seams_lab.console import (
    DEFAULT_STORE,
    Container,
    Data,
    Format,
    Handlers,
    InstanceId,
    ModelPath,
    Output,
    StoreUrl,
    for_people,
    json_object,
    load_handlers,
    log_to_stderr,
    note,
    say,
    show,
)  # fmt: skip  # isort: skip
from seams_lab.due import rows_of
from seams_lab.errors import UnusableInput
from seams_lab.graph import local_name
from seams_lab.instants import to_text
from seams_lab.model import load
from seams_lab.replica_processes import STOPPING, await_end_of_stdin, run_processes

if TYPE_CHECKING:
    from seams_lab.runtime.instance import Instance
    from seams_lab.runtime.runtime import Runtime
    from seams_lab.runtime.status import Status
    from seams_lab.runtime.store import Store, StoreClock

log = logging.getLogger("seams_lab.run")


class Table(StrEnum):
    """The tables of `status`."""

    timers = "timers"
    waiting = "waiting"
    leases = "leases"
    failures = "failures"
    firings = "firings"


def register(app: typer.Typer) -> None:
    """Add the commands to the command line, each with an example."""
    commands: list[tuple[Callable[..., None], str]] = [
        (run, "run models/expense -c api --replicas 3 --handlers models/expense/handlers.py"),
        (status, "status --watch"),
        (start, "start models/expense approval_process -c api -k E-17 -d '{\"amount\": 12}'"),
        (tasks, "tasks --format json"),
        (complete, "complete models/expense 2bba337d -c api -d '{\"approved\": true}'"),
        (instances, "instances --key 2026-11-09T08:00:00Z --trace"),
        (retry, "retry 2bba337d"),
    ]
    for command, example in commands:
        app.command(command.__name__, epilog=f"Example: seams-lab {example}")(command)


def run(
    model: ModelPath,
    container: Container = None,
    store: StoreUrl = DEFAULT_STORE,
    replicas: Annotated[
        int, typer.Option("--replicas", "-n", min=1, max=64, help="How many, as processes.")
    ] = 1,
    handlers: Handlers = None,
    lease: Annotated[
        float, typer.Option(min=0.3, help="Seconds that a claim lasts unless it is renewed.")
    ] = 30.0,
    poll: Annotated[float, typer.Option(min=0.05, help="Longest sleep, in seconds.")] = 5.0,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Steps that run at a time.")] = 4,
    once: Annotated[
        bool, typer.Option("--once", help="Do what is due now, then end; for cron and for CI.")
    ] = False,
    accept_changes: Annotated[
        bool, typer.Option("--accept-changes", help="Make changed timers valid for all replicas.")
    ] = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Delete waiting timers that the model has no more.")
    ] = False,
    replace_offset: Annotated[
        bool, typer.Option("--replace-offset", help="Make this SEAMS_CLOCK_OFFSET valid for all.")
    ] = False,
    allow_scripts: Annotated[
        bool, typer.Option("--allow-scripts", help="Run script tasks: code inside the model.")
    ] = False,
    name: Annotated[str, typer.Option(metavar="NAME", help="Names the replica.")] = "replica",
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also tell what others claimed.")
    ] = False,
    until_stdin_ends: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Run a container: start what is due, wake what waits, until Ctrl-C.

    Start it as often as you like on one store: each firing is started once. A replica may be
    killed at any moment; the others take over after its lease.

    Each line of the log is one outcome: `timer fire EVENT due TIME instance ID`,
    `timer missed EVENT N firing(s)`. Ctrl-C lets running steps end and gives back the rest; a
    second one ends at once. Ends with status 1 when --once met a failure.
    """
    from seams_lab.runtime.runtime import Runtime

    # A replica among several says who it is; what is odd has been told by who started it.
    prefix, level = name if until_stdin_ends else "", logging.DEBUG if verbose else logging.INFO
    log_to_stderr(prefix, logging.ERROR if until_stdin_ends else level)
    with Runtime.load(
        load(model), container, store, name=name, handlers=load_handlers(handlers), lease=lease,
        poll=poll, workers=workers, accept_changes=accept_changes, cancel=cancel,
        replace_offset=replace_offset, allow_scripts=allow_scripts,
    ) as runtime:  # fmt: skip
        log_to_stderr(prefix, level)
        if not until_stdin_ends:
            log.info("%s", _what_runs(runtime, model))
        if once:
            steps, failed = runtime.settle(), runtime.telemetry.counters.failed
            note(f"{steps} step(s), {failed} failed" if failed else f"{steps} step(s)")
            if failed:
                raise typer.Exit(1)
            return
        if replicas == 1:
            asyncio.run(_until_stopped(runtime, until_stdin_ends))
            return
        _require_shared(runtime.store.name, replicas)
    words = ["run", model, "--until-stdin-ends",
             "--lease", lease, "--poll", poll, "--workers", workers,
             *(["--container", container] if container else []),
             *(["--handlers", handlers] if handlers else []),
             *(["--allow-scripts"] if allow_scripts else []),
             *(["--verbose"] if verbose else [])]  # fmt: skip
    run_processes(
        {
            f"{name}-{n}": [*map(str, words), "--name", f"{name}-{n}"]
            for n in range(1, replicas + 1)
        },
        # Not an argument: the address may hold a password, and others can see arguments.
        {"SEAMS_STORE": store},
    )


def _require_shared(store: str, replicas: int) -> None:
    if store.endswith(("://", ":memory:")):
        raise UnusableInput(
            f"--replicas {replicas}", "a store in memory, which one process has for itself",
            "a store that they can share", "name a file: --store sqlite:///seams.db",
        )  # fmt: skip


def _what_runs(runtime: Runtime, model: Path) -> str:
    """One line: what, where the state lies, how many timers, when something is next due."""
    from seams_lab.runtime.status import next_due

    found = runtime.deployment
    what = f"container {local_name(found.container)} of {model}" if found.container else f"{model}"
    now = runtime.clock.now()
    due = next_due(runtime.store, [t.event for t in (*found.starts, *found.waits)], now)
    then = "nothing due" if due is None else "due now" if due <= now else f"next {to_text(due)}"
    offset = getattr(runtime.clock, "offset", 0) / 1_000_000
    return (
        f"{what}: {len(found.processes)} process(es), {len(found.starts)} timer start(s), "
        f"{len(found.waits)} waiting timer(s), {then}; state in {runtime.store.name}"
        + (f"; clock {offset:+g} s" if offset else "")
    )


async def _until_stopped(runtime: Runtime, until_stdin_ends: bool) -> None:
    """Run one replica; the first Ctrl-C or SIGTERM ends it cleanly, a second one at once."""
    loop = asyncio.get_running_loop()
    asked: list[int] = []

    def stop(number: int) -> None:
        if asked:
            # Threads that run handlers cannot be ended otherwise.
            os._exit(128 + number)
        asked.append(number)
        if not until_stdin_ends:
            note(STOPPING)
        runtime.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    if until_stdin_ends:
        threading.Thread(target=await_end_of_stdin, args=(runtime.stop,), daemon=True).start()
    await runtime.run()


def status(
    store: StoreUrl = DEFAULT_STORE,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Look again every second, until Ctrl-C.")
    ] = False,
    table: Annotated[
        Table | None, typer.Option("--table", "-t", help="Only this table, without a title.")
    ] = None,
    form: Output = Format.table,
) -> None:
    """Tell what a store knows: instances, next due times, waiting timers, leases, skips.

    It only looks: no replica is disturbed, and none needs to run. Tables are cut to fit; JSON and
    CSV hold everything. CSV without --table is one list, whose first column names the table.
    """
    from seams_lab.runtime.status import read_status
    from seams_lab.runtime.store import StoreFailure

    with _open(store) as opened, contextlib.suppress(KeyboardInterrupt):
        while True:
            try:
                seen = read_status(opened, _clock(opened).now())
            except StoreFailure as error:
                if not watch:
                    raise
                note(f"{error}; tried again")
            else:
                if watch and form is Format.table and sys.stdout.isatty():
                    say("\x1b[2J\x1b[H")
                _show_status(seen, table, form)
            if not watch:
                return
            time.sleep(1)


def _show_status(seen: Status, table: Table | None, form: Format) -> None:
    tables = {
        title: ([str(c) for c in frame.columns], rows_of(frame))
        for title, frame in seen.tables.items()
        if table in (None, title)
    }
    if form is Format.json:
        found = seen.as_dict()
        say(json.dumps(found if table is None else found[table], indent=2, ensure_ascii=False))
        return
    if form is Format.csv:
        every = dict.fromkeys(c for columns, _ in tables.values() for c in columns)
        rows = [{"table": t, **row} for t, (_, rows) in tables.items() for row in rows]
        show(rows, [*([] if table else ["table"]), *every], form)
        return
    if table is None:
        say(seen.headline())
        for event, due in seen.in_future:
            say(f"clock set back? newest firing of {event} is due {to_text(due)}")
    for title, (columns, rows) in tables.items():
        for row in rows:
            if title == "timers":  # Without timeCycle or timeDate: the text tells them apart.
                row["expression"] = row["expression"].partition(" ")[2]
        show(*for_people(rows, columns), form, "" if table else f"\n{title}")


def start(
    model: ModelPath,
    process: Annotated[str, typer.Argument(metavar="PROCESS", help="Short name or IRI.")],
    data: Data = "{}",
    key: Annotated[
        str | None, typer.Option("--key", "-k", help="Correlation key to find it by.")
    ] = None,
    container: Container = None,
    store: StoreUrl = DEFAULT_STORE,
    handlers: Handlers = None,
) -> None:
    """Start a process and step it until it waits or ends; status 1 when a step failed."""
    given = json_object(data)
    with _runtime(model, container, store, handlers) as runtime:
        _tell(runtime.start_process(process, given, correlation_key=key))


def tasks(store: StoreUrl = DEFAULT_STORE, form: Output = Format.table) -> None:
    """List the open user tasks."""
    from seams_lab.runtime.instance import read_instances

    with _open(store) as opened:
        rows = [
            {"instance": i.id, "element": local_name(t.element), "name": t.name,
             "key": i.correlation_key, "since": to_text(i.changed_at), "task": t.task}
            for i in read_instances(opened, with_tasks=True) for t in i.tasks
        ]  # fmt: skip
    columns = ["instance", "element", "name", "key", "since", "task"]
    if form is Format.table:
        if not rows:
            note("no open user tasks")
        rows, columns = for_people(rows, columns[:-1])
    show(rows, columns, form)


def complete(
    model: ModelPath,
    instance: InstanceId,
    task: Annotated[
        str | None,
        typer.Argument(metavar="TASK", help="Element or task id; not needed if only one is open."),
    ] = None,
    data: Data = "{}",
    container: Container = None,
    store: StoreUrl = DEFAULT_STORE,
    handlers: Handlers = None,
) -> None:
    """Complete an open user task with data, and step its instance on.

    Ends with status 1 when a step behind it failed; the task is complete then.
    """
    given = json_object(data)
    with _runtime(model, container, store, handlers) as runtime:
        key = _full_id(runtime.store, instance)
        _tell(runtime.complete(key, task, given))


def instances(
    store: StoreUrl = DEFAULT_STORE,
    key: Annotated[
        str | None,
        typer.Option("--key", "-k", help="Correlation key; a timer start's is its due time."),
    ] = None,
    state: Annotated[
        str | None, typer.Option("--status", help="running, waiting, completed or failed.")
    ] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Also tell what each did, element by element.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="The most instances to list.")] = 100,
    form: Output = Format.table,
) -> None:
    """List process instances, the newest first.

    CSV with --trace holds one row per element that an instance did.
    """
    from seams_lab.runtime.instance import read_instances

    with _open(store) as opened:
        found = read_instances(opened, correlation_key=key, status=state, with_trace=trace,
                               limit=limit)  # fmt: skip
    columns = ["instance", "process", "key", "status", "open", "waits", "failure", "created"]
    rows = [_row(i) for i in found]
    traces = {i.id: rows_of(i.trace) for i in found} if trace else {}
    steps = ["at", "kind", "element", "name", "due", "note", "replica", "revision"]
    if form is Format.json:
        show([row | ({"trace": traces[row["instance"]]} if trace else {}) for row in rows],
             columns, form)  # fmt: skip
    elif form is Format.csv and trace:
        show([{"instance": i} | step for i, done in traces.items() for step in done],
             ["instance", *steps], form)  # fmt: skip
    elif form is Format.csv:
        show(rows, columns, form)
    else:
        show(*for_people(rows, columns), form)
        for one, done in traces.items():
            show(*for_people(done, steps), form, f"\n{one}")
        if not rows:
            note("no such instances" if key or state else "no instances")
    if len(found) == limit:
        note(f"at most {limit:,} are listed; --limit changes that")


def retry(instance: InstanceId, store: StoreUrl = DEFAULT_STORE) -> None:
    """Let a failed instance be tried again now."""
    with _open(store) as opened:
        key = _full_id(opened, instance)
        with opened.transaction() as tx:
            revived = tx.revive(key, _clock(opened).now())
    if not revived:
        raise UnusableInput(
            f"instance {key}", "not failed, or held by a replica", "a failed instance",
            "look at it: seams-lab instances",
        )  # fmt: skip
    note(f"instance {key} is tried again by the next replica that looks")


# ---------------------------------------------------------------------------------- helpers


@contextlib.contextmanager
def _open(url: str) -> Iterator[Store]:
    from seams_lab.runtime.store import Store

    with Store(url, create=False) as opened:
        yield opened


def _clock(store: Store) -> StoreClock:
    """The deciding clock that the store's replicas agreed on."""
    from seams_lab.runtime.store import StoreClock

    with store.reading() as tx:
        return StoreClock(store, int(tx.facts().get("clock_offset", "0")))


@contextlib.contextmanager
def _runtime(model: Path, container: str | None, store: str, handlers: str | None,
             ) -> Iterator[Runtime]:  # fmt: skip
    from seams_lab.runtime.runtime import Runtime

    log_to_stderr()
    with Runtime.load(load(model), container, store, name="command",
                      handlers=load_handlers(handlers)) as runtime:  # fmt: skip
        yield runtime


def _full_id(store: Store, given: str) -> str:
    """The id of the one instance whose id begins with *given*."""
    from seams_lab.runtime.instance import ids_like

    found = ids_like(store, given) if given else []
    if len(found) == 1 or given in found:
        return given if given in found else found[0]
    raise UnusableInput(
        f"instance {given!r}", "several begin so" if found else "not in the store",
        "the id of one instance", "list them: seams-lab instances",
    )  # fmt: skip


def _tell(one: Instance) -> None:
    say(f"instance {one.id}")
    for line in one.lines():
        say(f"  {line}")
    if one.status == "failed":
        raise typer.Exit(1)


def _row(one: Instance) -> dict[str, Any]:
    return {
        "instance": one.id, "process": local_name(one.process), "key": one.correlation_key,
        "status": one.status, "open": [local_name(t.element) for t in one.tasks],
        "waits": [f"{local_name(e)} {to_text(due)}" for e, due in one.waits],
        "failure": one.failure or "", "created": to_text(one.created_at),
    }  # fmt: skip
