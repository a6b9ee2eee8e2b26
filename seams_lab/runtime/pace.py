"""Time that passes for a runtime whose clock stands still: from one due time to the next."""

from __future__ import annotations

from collections.abc import Callable

from seams_lab.clock import Clock, ManualClock
from seams_lab.errors import UnusableInput
from seams_lab.expressions import SECOND
from seams_lab.instants import Instant, to_micros, to_text


def manual(clock: Clock, where: str) -> ManualClock:
    """*clock*, if it is one that can be moved.

    Raises
    ------
    UnusableInput
        For a clock that goes by itself; *where* names who asked.
    """
    if isinstance(clock, ManualClock):
        return clock
    raise UnusableInput(
        where, f"a runtime whose clock is {type(clock).__name__}",
        "a ManualClock, which stands still until it is moved",
        "load the runtime with clock=ManualClock(instant)",
    )  # fmt: skip


def pass_time(
    clock: ManualClock, until: Instant, next_wake: Callable[[], int | None],
    settle: Callable[[], int],
) -> int:  # fmt: skip
    """Move *clock* on to an instant and stop on the way wherever there is something to do.

    It is what a replica sees that runs all the time; `ManualClock.advance` alone is what one
    sees that was down.

    Parameters
    ----------
    until : instant
        Where the clock stands afterwards.
    next_wake, settle : callable
        Those of the runtime.

    Returns
    -------
    int
        How many steps were done.

    Raises
    ------
    UnusableInput
        For an instant before the clock's.
    """
    end = to_micros(until, "until")
    if end < clock.now():
        raise UnusableInput(
            "until", to_text(end), f"an instant from {to_text(clock.now())} on",
            "use clock.set(instant) to move the clock back",
        )  # fmt: skip
    done = settle()
    while (wake := next_wake()) is not None and wake <= end and clock.now() < end:
        # What stays due after it was tried must not hold up the clock.
        clock.set(min(wake if wake > clock.now() else clock.now() + 60 * SECOND, end))
        done += settle()
    clock.set(end)
    return done
