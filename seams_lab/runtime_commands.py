"""The commands that run a model: run, status, start, tasks, complete, instances, retry.

What they need (SpiffWorkflow, SQLAlchemy) is imported when one of them runs, not before.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seams_lab.console import Format, ModelPath, Output, note, rows_of, say, show
from seams_lab.errors import UnusableInput
from seams_lab.graph import local_name
from seams_lab.instants import to_text
from seams_lab.model import load

if TYPE_CHECKING:
    from seams_lab.runtime.instance import Instance
    from seams_lab.runtime.runtime import Runtime
    from seams_lab.runtime.store import Store

DEFAULT_STORE = "sqlite:///seams.db"

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


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (run, status, start, tasks, complete, instances, retry):
        app.command(command.__name__)(command)


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
        bool,
        typer.Option("--accept-changes", help="Make this model's changed timers valid for all."),
    ] = False,
    cancel: Annotated[
        bool,
        typer.Option("--cancel", help="Delete waiting timers that the model no longer has."),
    ] = False,
    replace_offset: Annotated[
        bool,
        typer.Option("--replace-offset", help="Make this SEAMS_CLOCK_OFFSET valid for all."),
    ] = False,
    allow_scripts: Annotated[
        bool, typer.Option("--allow-scripts", help="Run script tasks: code inside the model.")
    ] = False,
    name: Annotated[str, typer.Option(metavar="NAME", help="Names the replica.")] = "replica",
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also tell what others claimed.")
    ] = False,
) -> None:
    """Run a container: start what is due, wake what waits, until Ctrl-C.

    Start it as often as you like on one store: each firing is started once. A replica may be
    killed at any moment; the others take over after its lease.

    Each line of the log is one outcome: `timer fire EVENT due TIME instance ID`,
    `timer missed EVENT N firing(s)`.
    """
    from seams_lab.runtime.runtime import Runtime

    _log(name if replicas == 1 else "", verbose)
    with Runtime.load(
        load(model), container, store, name=name, handlers=load_handlers(handlers), lease=lease,
        poll=poll, workers=workers, accept_changes=accept_changes, cancel=cancel,
        replace_offset=replace_offset, allow_scripts=allow_scripts,
    ) as runtime:  # fmt: skip
        if once:
            note(f"{runtime.settle()} step(s)")
            return
        if replicas == 1:
            asyncio.run(_until_stopped(runtime))
            return
    _run_replicas(replicas, name)


async def _until_stopped(runtime: Runtime) -> None:
    """Run one replica; the first Ctrl-C or SIGTERM ends it cleanly, a second one at once."""
    loop = asyncio.get_running_loop()

    def stop(number: int) -> None:
        note("stopping: running steps end, the rest is given back (again: end at once)")
        loop.remove_signal_handler(number)
        runtime.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    await runtime.run()


def _run_replicas(replicas: int, name: str) -> None:
    """Run this same command line once per replica, as processes; wait for all of them."""
    arguments = _without_replicas(sys.argv[1:])
    processes = {
        f"{name}-{number}": subprocess.Popen(
            [sys.executable, "-m", "seams_lab", *arguments, "--name", f"{name}-{number}"],
            # Ctrl-C reaches them through this process, once.
            start_new_session=True,
        )
        for number in range(1, replicas + 1)
    }

    def forward(number: int, _: object) -> None:
        for process in processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, forward)
    failed = False
    for replica, process in processes.items():
        code = process.wait()
        if code < 0:
            note(f"{replica} was ended by {signal.Signals(-code).name}; the others go on")
        elif code:
            failed = True
            note(f"{replica} ended with status {code}")
    if failed:
        raise typer.Exit(2)


def _without_replicas(arguments: list[str]) -> list[str]:
    """The command line for one replica: without --replicas, --name and what only one may do."""
    kept, skip = [], False
    for word in arguments:
        if skip:
            skip = False
        elif word in ("--replicas", "-n", "--name"):
            skip = True
        elif not word.startswith(("--replicas=", "--name=", "-n")) and word not in (
            "--accept-changes", "--replace-offset", "--cancel",
        ):  # fmt: skip
            kept.append(word)
    return kept


def status(
    store: StoreUrl = DEFAULT_STORE,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Look again every second, until Ctrl-C.")
    ] = False,
    form: Output = Format.table,
) -> None:
    """Tell what a store knows: instances, next due times, waiting timers, leases, skips.

    It only looks: no replica is disturbed, and none needs to run.
    """
    from seams_lab.runtime.status import read_status
    from seams_lab.runtime.store import StoreClock

    with _open(store) as opened:
        while True:
            with opened.reading() as tx:
                offset = int(tx.facts().get("clock_offset", "0"))
            seen = read_status(opened, StoreClock(opened, offset).now())
            if watch and form is Format.table:
                say("\x1b[2J\x1b[H")
            if form is Format.json:
                say(json.dumps(seen.as_dict(), indent=2))
            else:
                say(seen.headline())
                for event, due in seen.in_future:
                    say(f"clock set back? newest firing of {event} is due {to_text(due)}")
                for title, table in seen.tables.items():
                    show(rows_of(table), [str(c) for c in table.columns], form, title)
            if not watch:
                return
            with contextlib.suppress(KeyboardInterrupt):
                asyncio.run(asyncio.sleep(1))
                continue
            return


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
    """Start a process and step it until it waits or ends."""
    with _runtime(model, container, store, handlers) as runtime:
        _tell(runtime.start_process(process, _json(data), correlation_key=key))


def tasks(store: StoreUrl = DEFAULT_STORE, form: Output = Format.table) -> None:
    """List the open user tasks."""
    from seams_lab.runtime.instance import read_instances

    with _open(store) as opened:
        rows = [
            {"instance": i.id, "element": local_name(t.element), "name": t.name,
             "key": i.correlation_key, "since": to_text(i.changed_at), "task": t.task}
            for i in read_instances(opened, with_tasks=True) for t in i.tasks
        ]  # fmt: skip
    columns = ["instance", "element", "name", "key", "since"]
    show(rows, columns if form is Format.table else [*columns, "task"], form)


def complete(
    model: ModelPath,
    instance: Annotated[
        str, typer.Argument(metavar="INSTANCE", help="Its id, or the start of it.")
    ],
    task: Annotated[
        str | None,
        typer.Argument(metavar="TASK", help="Element or task id; not needed if only one is open."),
    ] = None,
    data: Data = "{}",
    container: Container = None,
    store: StoreUrl = DEFAULT_STORE,
    handlers: Handlers = None,
) -> None:
    """Complete an open user task with data, and step its instance on."""
    with _runtime(model, container, store, handlers) as runtime:
        key = _full_id(runtime.store, instance)
        _tell(runtime.complete(key, task, _json(data)))


def instances(
    store: StoreUrl = DEFAULT_STORE,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            "-k",
            help="Correlation key; a timer start's is its due time, 2026-11-09T08:00:00Z.",
        ),
    ] = None,
    state: Annotated[
        str | None, typer.Option("--status", help="running, waiting, completed or failed.")
    ] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Also tell what each did, element by element.")
    ] = False,
    form: Output = Format.table,
) -> None:
    """List process instances, the newest first."""
    from seams_lab.runtime.instance import read_instances

    with _open(store) as opened:
        found = read_instances(opened, correlation_key=key, status=state, with_trace=trace)
    columns = ["instance", "process", "key", "status", "open", "waits", "failure", "created"]
    show([_row(i) for i in found], columns, form)
    if trace:
        for one in found:
            rows = rows_of(one.trace)
            show(rows, [str(c) for c in one.trace.columns], form, f"{one.id}")


def retry(
    instance: Annotated[
        str, typer.Argument(metavar="INSTANCE", help="Its id, or the start of it.")
    ],
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Let a failed instance be tried again now."""
    from seams_lab.runtime.store import StoreClock

    with _open(store) as opened:
        key = _full_id(opened, instance)
        with opened.transaction() as tx:
            revived = tx.revive(key, StoreClock(opened).now())
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


@contextlib.contextmanager
def _runtime(model: Path, container: str | None, store: str, handlers: str | None,
             ) -> Iterator[Runtime]:  # fmt: skip
    from seams_lab.runtime.runtime import Runtime

    _log("", False)
    with Runtime.load(load(model), container, store, name="command",
                      handlers=load_handlers(handlers)) as runtime:  # fmt: skip
        yield runtime


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
            spec = importlib.util.spec_from_file_location("seams_handlers", named)
            if spec is None or spec.loader is None:
                raise ImportError(f"{named} is not a Python file")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, os.getcwd())
            module = importlib.import_module(named)
    except Exception as error:
        raise UnusableInput(
            f"--handlers {named}", f"{type(error).__name__}: {error}", "a module or file that "
            "Python can import", "correct the name or what it does when imported",
        ) from error  # fmt: skip
    found = getattr(module, "handlers", None)
    if not isinstance(found, Mapping) or not all(callable(f) for f in found.values()):
        raise UnusableInput(
            f"--handlers {named}", "no mapping named handlers",
            "handlers = {'send_reminder': function, ...}", "add it to the module",
        )  # fmt: skip
    return found


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UnusableInput(
            "--data",
            f"{text!r} ({error})",
            "a JSON object",
            "write it as in '{\"approved\": true}'",
        ) from None
    if not isinstance(found, dict):
        raise UnusableInput(
            "--data", f"{text!r}", "a JSON object", "write it as in '{\"approved\": true}'"
        )
    return found


def _full_id(store: Store, given: str) -> str:
    """The id of the one instance whose id begins with *given*."""
    from seams_lab.runtime.instance import ids_like

    found = ids_like(store, given)
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


def _row(one: Instance) -> dict[str, Any]:
    return {
        "instance": one.id,
        "process": local_name(one.process),
        "key": one.correlation_key,
        "status": one.status,
        "open": [local_name(t.element) for t in one.tasks],
        "waits": [f"{local_name(e)} {to_text(due)}" for e, due in one.waits],
        "failure": one.failure or "",
        "created": to_text(one.created_at),
    }


def _log(name: str, verbose: bool) -> None:
    """Log to standard error, one line per outcome."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(f"[{name}] %(message)s" if name else "%(message)s"))
    logger = logging.getLogger("seams_lab")
    logger.handlers[:] = [handler]
    logger.setLevel(logging.DEBUG if verbose else logging.INFO)
