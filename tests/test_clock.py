"""The clocks: the host's, one that is set by hand, and the offset from the environment."""

from __future__ import annotations

import datetime as dt
import threading
import time
from typing import Any

import pytest

from seams_lab import clock
from seams_lab.clock import (
    Clock,
    ManualClock,
    SystemClock,
    offset_from,
    offset_from_environment,
)
from seams_lab.errors import UnusableInput
from seams_lab.expressions import DAY, HOUR, MINUTE, SECOND, WEEK
from seams_lab.instants import to_micros


def test_now_is_in_microseconds_since_the_epoch() -> None:
    before = time.time_ns()
    instant = clock.now()
    after = time.time_ns()
    assert before // 1_000 <= instant <= after // 1_000


def test_now_ns_is_in_nanoseconds_since_the_epoch() -> None:
    before = time.time_ns()
    instant = clock.now_ns()
    after = time.time_ns()
    assert before <= instant <= after


@pytest.mark.parametrize("offset", [0, 2 * DAY, -DAY])
def test_the_system_clock_is_the_hosts_plus_its_offset(offset: int) -> None:
    system: Clock = SystemClock(offset)
    before = clock.now()
    instant = system.now()
    after = clock.now()
    assert before <= instant - offset <= after


def test_the_system_clock_has_no_offset_unless_told() -> None:
    assert SystemClock() == SystemClock(offset=0)


# ---------------------------------------------------------------------- the manual clock

EIGHT = to_micros("2026-11-09T08:00:00Z")


@pytest.mark.parametrize(
    "at",
    [
        "2026-11-09T08:00:00Z",
        "2026-11-09T09:00:00+01:00",
        EIGHT,
        dt.datetime(2026, 11, 9, 8, tzinfo=dt.UTC),
    ],
)
def test_a_manual_clock_stands_where_it_was_set(at: Any) -> None:
    manual: Clock = ManualClock(at)
    assert [manual.now(), manual.now()] == [EIGHT, EIGHT]
    other = ManualClock(0)
    other.set(at)
    assert other.now() == EIGHT


@pytest.mark.parametrize(
    ("duration", "micros"),
    [
        ("PT2M", 2 * MINUTE),
        ("PT48H", 48 * HOUR),
        ("P3D", 3 * DAY),
        ("P1W", WEEK),
        ("P1DT2H3M4.5S", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND + 500_000),
        ("PT0S", 0),
        (0, 0),
        (1, 1),
    ],
)
def test_a_manual_clock_goes_on_by_a_duration(duration: str | int, micros: int) -> None:
    manual = ManualClock(EIGHT)
    manual.advance(duration)
    assert manual.now() == EIGHT + micros
    manual.advance(duration)
    assert manual.now() == EIGHT + 2 * micros


@pytest.mark.parametrize(
    ("duration", "fix"),
    [
        (-1, "set(instant)"),
        (1.5, "set(instant)"),
        (True, "set(instant)"),
        (None, "set(instant)"),
        ("-PT1H", "write PT1H"),
        ("2h", "write PT2H"),
        ("", "write it as in PT48H"),
        ("P1M", "write days, as in P30D"),
        ("P1Y", "write days, as in P30D"),
        ("P9999999D", "write it as in PT48H or P1D"),
    ],
)
def test_a_manual_clock_stays_where_it_is_when_told_otherwise(duration: Any, fix: str) -> None:
    manual = ManualClock(EIGHT)
    with pytest.raises(UnusableInput, match=r"^duration: ") as caught:
        manual.advance(duration)
    assert fix in caught.value.fix
    assert manual.now() == EIGHT


def test_the_steps_of_a_manual_clock_can_be_written_in_a_row() -> None:
    manual = ManualClock(EIGHT)
    assert manual.set(EIGHT - HOUR).advance("PT1H").advance(1) is manual
    assert manual.now() == EIGHT + 1


def test_only_set_moves_a_manual_clock_back() -> None:
    manual = ManualClock(EIGHT)
    manual.set(EIGHT - HOUR)
    assert manual.now() == EIGHT - HOUR


@pytest.mark.parametrize("at", ["yesterday", "2026-11-09T08:00:00", None, 1.0, 10**20])
def test_a_manual_clock_refuses_what_is_no_instant(at: Any) -> None:
    manual = ManualClock(EIGHT)
    with pytest.raises(UnusableInput):
        manual.set(at)
    with pytest.raises(UnusableInput):
        ManualClock(at)
    assert manual.now() == EIGHT


def test_a_manual_clock_does_not_leave_the_calendar() -> None:
    manual = ManualClock("9999-12-31T23:00:00Z")
    with pytest.raises(UnusableInput, match="outside the years 0001 to 9999"):
        manual.advance("PT1H")
    assert repr(manual) == "ManualClock('9999-12-31T23:00:00Z')"


def test_a_manual_clock_shows_its_instant() -> None:
    assert repr(ManualClock(EIGHT + 1)) == "ManualClock('2026-11-09T08:00:00.000001Z')"


def test_a_manual_clock_loses_no_step_between_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(at: Any, what: str = "") -> int:
        time.sleep(0.02)
        return to_micros(at, what)

    manual = ManualClock(EIGHT)
    monkeypatch.setattr(clock, "to_micros", slowly)
    steps = [threading.Thread(target=manual.advance, args=(1,)) for _ in range(4)]
    for step in steps:
        step.start()
    for step in steps:
        step.join()
    assert manual.now() == EIGHT + 4


# ---------------------------------------------------------------------- the offset


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("", 0),
        ("  ", 0),
        ("PT48H", 48 * HOUR),
        ("+PT48H", 48 * HOUR),
        ("-P1D", -DAY),
        (" -P1W\n", -WEEK),
        ("-PT0.000001S", -1),
        ("PT0S", 0),
        ("-P0D", 0),
        ("P36525D", 36_525 * DAY),
        ("-P36525D", -36_525 * DAY),
    ],
)
def test_an_offset_is_a_signed_duration(text: str, offset: int) -> None:
    assert offset_from(text) == offset
    assert offset_from_environment({"SEAMS_CLOCK_OFFSET": text}) == offset


@pytest.mark.parametrize(
    ("text", "seen", "fix"),
    [
        ("P1M", "'P1M', whose years or months vary", "write days, as in P30D"),
        ("-P1Y", "'-P1Y', whose years or months vary", "write days, as in -P30D"),
        ("P1MT1H", "whose years or months vary", "write days"),
        ("48h", "'48h'", "write PT48H"),
        ("-48h", "'-48h'", "write -PT48H"),
        ("--P1D", "'--P1D'", "write -P1D"),
        ("P-1D", "'P-1D'", "write it as in PT48H or P1D"),
        ("-", "'-'", "write it as in -PT48H or -P1D"),
        ("3600", "'3600'", "write it as in PT48H or P1D"),
        ('"PT48H"', "'\"PT48H\"'", "write it as in PT48H or P1D"),
        ("P36526D", "'P36526D'", "use a smaller offset"),
        ("-P36525DT0.000001S", "'-P36525DT0.000001S'", "use a smaller offset"),
        ("P" + "9" * 4999 + "D", "5,001 characters", "write it as in PT48H or P1D"),
        ("PT48H\nPT1H", r"'PT48H\nPT1H'", "write it as in"),
        ("PT٤H", r"'PT\u0664H'", "write it as in"),
    ],
)
def test_what_is_no_offset_is_refused_with_a_fix(text: str, seen: str, fix: str) -> None:
    with pytest.raises(UnusableInput) as caught:
        offset_from_environment({"SEAMS_CLOCK_OFFSET": text})
    error = caught.value
    assert error.where == "SEAMS_CLOCK_OFFSET"
    assert seen in error.seen
    assert fix in error.fix
    with pytest.raises(UnusableInput, match=r"^--offset: "):
        offset_from(text, "--offset")


def test_the_environment_is_read_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEAMS_CLOCK_OFFSET", raising=False)
    assert offset_from_environment() == 0
    monkeypatch.setenv("SEAMS_CLOCK_OFFSET", "PT1S")
    assert offset_from_environment() == SECOND
