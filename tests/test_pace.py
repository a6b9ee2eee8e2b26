"""Time that passes for a runtime whose clock stands still."""

from __future__ import annotations

import pytest

from seams_lab.clock import ManualClock, SystemClock
from seams_lab.errors import UnusableInput
from seams_lab.instants import to_text
from seams_lab.runtime.pace import manual, pass_time

START, END = "2026-11-09T07:00:00Z", "2026-11-09T12:00:00Z"


class Replica:
    """Something to do at given minutes after START; each visit of `settle` is noted."""

    def __init__(self, *minutes: int, stuck: bool = False) -> None:
        self.clock = ManualClock(START)
        self.start, self.stuck = self.clock.now(), stuck
        self.due = [self.start + minute * 60_000_000 for minute in minutes]
        self.visits: list[int] = []

    def next_wake(self) -> int | None:
        return min(self.due, default=None)

    def settle(self) -> int:
        now = self.clock.now()
        self.visits.append((now - self.start) // 60_000_000)
        before = len(self.due)
        if not self.stuck:
            self.due = [due for due in self.due if due > now]
        return before - len(self.due)

    def until(self, instant: str) -> int:
        return pass_time(self.clock, instant, self.next_wake, self.settle)


@pytest.mark.parametrize(
    ("minutes", "visits", "done"),
    [
        ((), [0], 0),
        ((0,), [0], 1),
        ((10, 60), [0, 10, 60], 2),
        ((10, 10), [0, 10], 2),
        ((300,), [0, 300], 1),
        ((301,), [0], 0),
    ],
)
def test_it_stops_at_each_due_time_on_the_way(
    minutes: tuple[int, ...], visits: list[int], done: int
) -> None:
    replica = Replica(*minutes)
    assert replica.until(END) == done
    assert replica.visits == visits
    assert to_text(replica.clock.now()) == END


def test_what_stays_due_does_not_hold_up_the_clock() -> None:
    replica = Replica(1, stuck=True)
    assert replica.until("2026-11-09T07:03:00Z") == 0
    assert replica.visits == [0, 1, 2, 3]
    assert to_text(replica.clock.now()) == "2026-11-09T07:03:00Z"


def test_it_never_goes_back() -> None:
    replica = Replica(10)
    with pytest.raises(UnusableInput, match=r"an instant from 2026-11-09T07:00:00Z on"):
        replica.until("2026-11-09T06:59:59Z")
    assert (replica.visits, to_text(replica.clock.now())) == ([], START)


def test_a_clock_that_goes_by_itself_is_refused() -> None:
    with pytest.raises(
        UnusableInput, match=r"explore\.clock: a runtime whose clock is SystemClock"
    ):
        manual(SystemClock(), "explore.clock")
    clock = ManualClock(0)
    assert manual(clock, "explore.clock") is clock
