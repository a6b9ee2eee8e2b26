"""Several replicas as processes of their own: begun together, told of, never left behind."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import typer

from seams_lab.console import note

#: What a person is told at the first Ctrl-C.
STOPPING = "stopping: running steps end, the rest is given back (again: end at once)"


def run_processes(commands: Mapping[str, Sequence[str]], environment: Mapping[str, str]) -> None:
    """Run seams-lab several times, each as a process, until all have ended.

    Ctrl-C and SIGTERM are passed on. Each process holds the end of a pipe whose other end is
    here: `await_end_of_stdin` tells it when this process is gone, however it ended.

    Parameters
    ----------
    commands : mapping of str to sequence of str
        Name → arguments.
    environment : mapping of str to str
        What they get beside this process's own.

    Raises
    ------
    typer.Exit
        With status 2, when one ended with a status of its own, or all have died, unasked.
    """
    processes = {
        name: subprocess.Popen(
            [sys.executable, "-m", "seams_lab", *words], stdin=subprocess.PIPE,
            env=os.environ | environment,
            # Ctrl-C reaches them through this process, once.
            start_new_session=True,
        )
        for name, words in commands.items()
    }  # fmt: skip
    asked: list[int] = []
    ended: queue.Queue[str] = queue.Queue()

    def forward(number: int, _: object) -> None:
        if not asked:
            note(STOPPING)
        asked.append(number)
        for process in processes.values():
            with suppress(ProcessLookupError):
                process.send_signal(number)

    def watch(name: str) -> None:
        processes[name].wait()
        if (pipe := processes[name].stdin) is not None:
            pipe.close()
        ended.put(name)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, forward)
    for name in processes:
        threading.Thread(target=watch, args=(name,), daemon=True).start()
    failed = died = 0
    for left in range(len(processes) - 1, -1, -1):
        name = ended.get()
        code = processes[name].returncode
        if code and not asked:
            how = f"status {code}" if code > 0 else signal.Signals(-code).name
            note(f"{name} ended by {how}" + (f"; {left} go on" if left else ""))
            failed, died = failed + (code > 0), died + 1
    if failed or died == len(processes):
        raise typer.Exit(2)


def await_end_of_stdin(then: Callable[[], None]) -> None:
    """Call *then* when whoever holds the other end of standard input is gone."""
    while os.read(0, 1_024):
        pass
    then()
