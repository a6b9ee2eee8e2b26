"""Ids of an instance's tasks that come out the same when a crash makes them be made again.

SpiffWorkflow gives each task a random id. What a replica does after a checkpoint is lost when it
dies, and the next one does it again: with ids that follow from the instance, the revision of the
checkpoint and a count, the same task has the same id then, and a handler's `TaskContext.key` is
the same for each attempt. Nor does it ask the host's clock which of two tasks changed first, but
counts. So a run repeats exactly.
"""

# mypy: disable-error-code="import-untyped"

from __future__ import annotations

import hashlib
import itertools
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from uuid import UUID, uuid4

import SpiffWorkflow.task


class TaskIds:
    """A sequence of ids that its seed decides; a random seed by default."""

    def __init__(self, seed: str = "") -> None:
        self.seed = seed or secrets.token_hex(8)
        self._count = 0

    def restart(self, seed: str) -> None:
        """Go on with the sequence of another seed."""
        self.seed, self._count = seed, 0

    def next(self) -> UUID:
        """The next id."""
        self._count += 1
        digest = hashlib.blake2b(f"{self.seed}/{self._count}".encode(), digest_size=16).digest()
        return UUID(bytes=digest, version=4)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let the tasks that are made inside, in this thread, take their ids from here."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


#: Ticks of a restored workflow lie below it, in the order in which its tasks changed.
FIRST_TICK = 1 << 40

_current: ContextVar[TaskIds | None] = ContextVar("task_ids", default=None)


def _task_id() -> UUID:
    ids = _current.get()
    return uuid4() if ids is None else ids.next()


class _Ticks:
    """Stands for the module ``time`` in SpiffWorkflow's tasks, which only compare its answers."""

    def __init__(self) -> None:
        self._count = itertools.count(FIRST_TICK)

    def time(self) -> int:
        """A number greater than any before it."""
        return next(self._count)


# SpiffWorkflow has no place where they could be given: these are the names that its tasks call.
SpiffWorkflow.task.uuid4 = _task_id
SpiffWorkflow.task.time = _Ticks()
