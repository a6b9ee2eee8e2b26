"""ISO 8601 literals: the text inside a timer expression's quotes, read into values.

Date-times have an offset and whole seconds (ruling 3); durations are positive, with a fraction
in seconds only and only outside cycles (ruling 4); cycles have a start and count firings
(ruling 5).
"""

from __future__ import annotations

import datetime as dt
import re
from typing import NoReturn

from seams_lab.expressions import (
    DAY,
    EPOCH,
    FIRST_INSTANT,
    HOUR,
    LAST_INSTANT,
    MINUTE,
    SECOND,
    WEEK,
    Duration,
    TimeCycle,
    TimeDate,
    TimeDuration,
    TimerExpression,
)

MAX_COUNT = 999_999_999
_DATE_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r"(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_DURATION = re.compile(
    r"P(?=[0-9T])(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]{1,6}))?S)?)?"
)
_WEEKS = re.compile(r"P([0-9]+)W")
_COUNT = re.compile(r"R([0-9]*)")
EXAMPLES = {
    "timeDate": '"2026-12-01T09:00:00Z", with the quotes',
    "timeDuration": '"PT48H", with the quotes',
    "timeCycle": '"R/2026-11-09T08:00:00Z/P1D", with the quotes',
}


class Refused(Exception):
    """A rule of the profile is broken; `read_timer` and `parse` turn it into ResolutionError."""

    def __init__(self, code: str, fact: str, fix: str) -> None:
        self.code, self.fact, self.fix = code, fact, fix
        super().__init__(fact)


def refuse(code: str, fact: str, fix: str) -> NoReturn:
    """Raise Refused."""
    raise Refused(code, fact, fix)


def quote(text: str, limit: int = 80) -> str:
    """Quote *text* for a message: printable ASCII, shortened."""
    shown = ascii(text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 4] + "...'"


def parse_literal(kind: str, text: str) -> TimerExpression:
    """Read the text inside the quotes of a *kind* of expression; raises Refused."""
    if kind == "timeDate":
        at, offset = _date_time(text)
        return TimeDate(at, offset, text)
    if kind == "timeDuration":
        duration = _duration(text, fraction=True)
        if _outlasts_the_calendar(duration):
            refuse("OUT_OF_RANGE", f"due after year 9999: {quote(text)}", "use a shorter duration")
        return TimeDuration(duration, text)
    return _cycle(text)


def _outlasts_the_calendar(duration: Duration) -> bool:
    """Whether no arming instant at all has its due time before the end of the calendar."""
    years, months = divmod(duration.months, 12)
    if years >= 9999:
        return True
    earliest = (dt.datetime(1 + years, 1 + months, 1) - EPOCH) // dt.timedelta(microseconds=1)
    return earliest + duration.micros > LAST_INSTANT


def _cycle(text: str) -> TimeCycle:
    parts = text.split("/")
    head = _COUNT.fullmatch(parts[0])
    # A zone name in the start holds a slash itself: the start is everything in between.
    first, last = "/".join(parts[1:-1]), parts[-1]
    no_start = len(parts) == 2 and last.startswith(("P", "-P", "+P"))
    duration_first = first.startswith("P")
    if (
        head is None
        or not (len(parts) > 2 or no_start)
        or (duration_first and not last[:1].isdigit())
    ):
        refuse(
            "BAD_CYCLE", f"not R[n]/<date-time>/<duration>: {quote(text)}", _bad_cycle_fix(parts[0])
        )
    digits = head[1]
    if digits and (digits[0] == "0" or len(digits) > 9):
        what = "is too large" if len(digits) > 9 else "must be 1 or more, with no leading zero"
        refuse(
            "BAD_COUNT",
            f"the repeat count {what}: {quote(text)}",
            f"write a count from 1 to {MAX_COUNT:,} (it counts firings), or R/ for no end",
        )
    if no_start:
        # The wording is fixed by the design record.
        refuse(
            "NO_START",
            f"cycle has no start date-time: '{text}'",
            f"write R{digits}/<date-time>/{last}, as in {EXAMPLES['timeCycle']}",
        )
    if duration_first:
        refuse(
            "INTERVAL_FORM",
            f"<duration>/<end> form: {quote(text)}",
            f"write R{digits}/<start>/{first}",
        )
    if last[:1].isdigit() and "T" in last:
        refuse(
            "INTERVAL_FORM",
            f"<start>/<end> form: {quote(text)}",
            f"write R{digits}/{first}/<duration>",
        )
    start, offset = _date_time(first)
    try:
        duration = _duration(last, fraction=False)
    except Refused as refused:
        # A suggestion is the whole text, for a part alone would be refused in its turn.
        whole = f'write "{parts[0]}/{first}/'
        refuse(refused.code, refused.fact, refused.fix.replace('write "', whole, 1))
    return TimeCycle(start, offset, duration, int(digits) if digits else None, text)


def _bad_cycle_fix(head: str) -> str:
    if head == "R-1":
        return "write R/ for no end"
    if re.fullmatch(r"[0-9*?, -]+", head):
        return f"cron is not BPMN: write start and period, as in {EXAMPLES['timeCycle']}"
    return f"write it as in {EXAMPLES['timeCycle']}"


def _date_time(text: str) -> tuple[int, int]:
    """Return (microseconds since the epoch in UTC, offset in minutes)."""
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        refuse(
            "BAD_DATETIME",
            f"not YYYY-MM-DDTHH:MM:SS with Z or an offset such as +01:00: {quote(text)}",
            f"write it as in {EXAMPLES['timeDate']}",
        )
    fraction, zone = match[7], match[8]
    if zone is None:
        refuse(
            "NO_OFFSET",
            f"the date-time has no Z or offset: {quote(text)}",
            "end it with Z, or with the offset that is meant, such as +01:00",
        )
    if fraction:
        refuse(
            "BAD_DATETIME",
            f"fractional seconds, but firings are keyed by whole seconds: {quote(text)}",
            "leave the fraction out",
        )
    offset = 0
    if zone != "Z":
        hours, minutes = int(zone[1:3]), int(zone[4:6])
        offset = (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1)
        if minutes > 59 or abs(offset) > 14 * 60 or zone == "-00:00":
            refuse(
                "BAD_DATETIME",
                f"the offset {zone} is not Z or between -14:00 and +14:00: {quote(text)}",
                "write Z, or an offset of at most 14 hours",
            )
    try:
        local = dt.datetime(*(int(match[i]) for i in range(1, 7)))  # type: ignore[arg-type]
    except ValueError as error:
        reason = str(error).split(", not ")[0]
        refuse("BAD_DATETIME", f"{reason}: {quote(text)}", "write a date and time that exist")
    at = (local - EPOCH) // dt.timedelta(microseconds=1) - offset * MINUTE
    if not FIRST_INSTANT <= at <= LAST_INSTANT:
        refuse(
            "OUT_OF_RANGE",
            f"outside the years 0001 to 9999 in UTC: {quote(text)}",
            "choose an instant between 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z",
        )
    return at, offset


def _duration(text: str, *, fraction: bool) -> Duration:
    weeks = _WEEKS.fullmatch(text)
    match = _DURATION.fullmatch(text)
    if weeks:
        months, micros = 0, int(weeks[1]) * WEEK
    elif match and not (match[7] and not fraction):
        years, month, days, hours, minutes, seconds = (int(match[i] or 0) for i in range(1, 7))
        months = 12 * years + month
        micros = days * DAY + hours * HOUR + minutes * MINUTE + seconds * SECOND
        micros += int((match[7] or "").ljust(6, "0"))
    elif match:
        refuse(
            "BAD_DURATION",
            f"a fraction of a second in a cycle, which is keyed by whole seconds: {quote(text)}",
            "use whole seconds",
        )
    else:
        refuse(
            "BAD_DURATION",
            f"not PnYnMnDTnHnMnS or PnW with positive whole numbers: {quote(text)}",
            _duration_fix(text, fraction=fraction),
        )
    if months == 0 and micros == 0:
        refuse("NOT_POSITIVE", f"the duration is zero: {quote(text)}", "write a positive duration")
    return Duration(months, micros, text)


# Slips seen in public models, each with the text that was probably meant.
_SLIPS = [
    (re.compile(r"PT([0-9]+)([DWY])"), r"P\1\2"),
    (re.compile(r"([0-9]+)([HMS])"), r"PT\1\2"),
    (re.compile(r"([0-9]+)([DWY])"), r"P\1\2"),
    (re.compile(r"PT?([HMS])([0-9]+)"), r"PT\2\1"),
    (re.compile(r"P([0-9]+)([HS])"), r"PT\1\2"),
    (re.compile(r"T([0-9]+)([HMS])"), r"PT\1\2"),
    (re.compile(r"(P.*)T"), r"\1"),
    (re.compile(r"[+-](P.*)"), r"\1"),
    (re.compile(r"(PT?[0-9]+),([0-9]+S)"), r"\1.\2"),
]


def _duration_fix(text: str, *, fraction: bool) -> str:
    """Suggest what was probably meant; only a text that parses is suggested."""
    upper = text.upper().replace(" ", "")
    candidates = [upper, *(slip.sub(to, upper) for slip, to in _SLIPS if slip.fullmatch(upper))]
    half = re.fullmatch(r"P0\.5D", upper)
    if half:
        candidates.append("PT12H")
    weeks = re.fullmatch(r"P([0-9]{1,6})W([0-9]{1,6})D", upper)
    if weeks:
        candidates.append(f"P{7 * int(weeks[1]) + int(weeks[2])}D")
    for candidate in candidates:
        if candidate != text and _is_fine(candidate, fraction=fraction):
            return f'write "{candidate}"'
    return f"write it as in {EXAMPLES['timeDuration']}"


def _is_fine(text: str, *, fraction: bool) -> bool:
    if not (_DURATION.fullmatch(text) or _WEEKS.fullmatch(text)):
        return False
    try:
        duration = _duration(text, fraction=fraction)
    except Refused:
        return False
    # The only due time of a cycle's long period is its start, which is fine.
    return not (fraction and _outlasts_the_calendar(duration))
