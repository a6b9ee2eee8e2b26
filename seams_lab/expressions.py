"""The strict profile of timer expressions: quoted ISO 8601 literals, read and never evaluated.

The text of an expression element is one quoted string literal that holds

========================  ==============================================  ============================
``bpmn:timeDate``         a date-time with an offset                      ``"2026-12-01T09:00:00Z"``
``bpmn:timeDuration``     a positive duration                             ``"PT48H"``
``bpmn:timeCycle``        a repeating interval with an explicit start     ``"R/2026-11-09T08:00:00Z/P1D"``
========================  ==============================================  ============================

Every other text is refused with a ResolutionError that carries a stable code and a fix. When
several rules are broken the first of this order is reported:

1. structure: `NOT_LIFTED`, `EVENT_DEFINITION_REF`, `MULTIPLE_DEFINITIONS`, `BAD_ATTRIBUTE`,
   `MISSING_EXPRESSION`, `MULTIPLE_EXPRESSIONS`, `CHILD_NODE`;
2. literal: `EMPTY`, `NOT_A_LITERAL`, `LANGUAGE`;
3. form: of a cycle `BAD_CYCLE`, `BAD_COUNT`, `NO_START`, `INTERVAL_FORM`; then of the date-time
   `NO_OFFSET`, `BAD_DATETIME`, `OUT_OF_RANGE`; then of the duration `BAD_DURATION`,
   `NOT_POSITIVE`, `OUT_OF_RANGE`;
4. position: `CYCLE_POSITION`, `START_DURATION`.

Source of the rules: ADR-0037 section 2 and this project's rulings 1 to 10a.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import NoReturn

from seams_lab.errors import ResolutionError
from seams_lab.payload import EXPRESSION_KINDS, XML_SPACE, TimerElement

MAX_BODY = 256
MAX_COUNT = 999_999_999
SECOND, MINUTE, HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
WEEK = 7 * DAY
EPOCH = dt.datetime(1970, 1, 1)
FIRST_INSTANT = (dt.datetime.min - EPOCH) // dt.timedelta(microseconds=1)
# The last second of the calendar: a series ends silently here (ruling 7).
LAST_INSTANT = (dt.datetime(9999, 12, 31, 23, 59, 59) - EPOCH) // dt.timedelta(microseconds=1)

# One linear-time ASCII pattern decides; `ast` or `eval` would let prefixes, escapes and
# implicit concatenation in, and can be made to exhaust memory.
_LITERAL = re.compile(
    r"""[ \t]*(?:"([\x20\x21\x23-\x5B\x5D-\x7E]*)"|'([\x20-\x26\x28-\x5B\x5D-\x7E]*)')[ \t]*"""
)
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


@dataclass(frozen=True, slots=True)
class Duration:
    """A positive ISO 8601 duration: calendar ``months`` and exact ``micros`` (microseconds)."""

    months: int
    micros: int
    text: str

    @property
    def in_words(self) -> str:
        """The duration in English, such as ``1 month and 2 hours``."""
        years, months = divmod(self.months, 12)
        weeks, rest = divmod(self.micros, WEEK)
        if self.months or rest:
            weeks, rest = 0, self.micros
        days, rest = divmod(rest, DAY)
        hours, rest = divmod(rest, HOUR)
        minutes, rest = divmod(rest, MINUTE)
        seconds = f"{rest / SECOND:.6f}".rstrip("0").rstrip(".")
        parts = [
            f"{amount} {unit}" + ("" if amount == 1 else "s")
            for amount, unit in [
                (years, "year"), (months, "month"), (weeks, "week"), (days, "day"),
                (hours, "hour"), (minutes, "minute"),
            ]
            if amount
        ]  # fmt: skip
        if rest:
            parts.append(f"{seconds} second" + ("" if rest == SECOND else "s"))
        return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


@dataclass(frozen=True, slots=True)
class TimeDate:
    """One instant: ``at`` in microseconds since the epoch (UTC), ``offset`` in minutes."""

    at: int
    offset: int
    text: str
    kind = "timeDate"

    @property
    def in_words(self) -> str:
        """What the expression means, in English."""
        return f"once, on {_instant_in_words(self.at, self.offset)}"


@dataclass(frozen=True, slots=True)
class TimeDuration:
    """One due time, ``duration`` after the instance reaches the event (counted in UTC)."""

    duration: Duration
    text: str
    kind = "timeDuration"

    @property
    def in_words(self) -> str:
        """What the expression means, in English."""
        return f"{self.duration.in_words} after the instance reaches it"


@dataclass(frozen=True, slots=True)
class TimeCycle:
    """Due times ``start + k × duration`` for k = 0 … ``count`` - 1 (None: no end).

    ``start`` is in microseconds since the epoch (UTC), ``offset`` in minutes: months and years
    are added in that offset's calendar.
    """

    start: int
    offset: int
    duration: Duration
    count: int | None
    text: str
    kind = "timeCycle"

    @property
    def in_words(self) -> str:
        """What the expression means, in English."""
        if self.count == 1:
            return f"once, on {_instant_in_words(self.start, self.offset)}"
        every = self.duration.in_words.removeprefix("1 ")
        how_many = "no end" if self.count is None else f"{self.count:,} times"
        day = " on the same day of the month, or its last" if self.duration.months else ""
        start = _instant_in_words(self.start, self.offset)
        return f"every {every}{day}, from {start}, {how_many}"


TimerExpression = TimeDate | TimeDuration | TimeCycle


def _instant_in_words(micros: int, offset: int) -> str:
    # The 400-year Gregorian cycle keeps local times beyond year 9999 printable.
    local = EPOCH + dt.timedelta(microseconds=micros)
    shift = dt.timedelta(minutes=offset)
    try:
        local += shift
    except OverflowError:
        local, offset = EPOCH + dt.timedelta(microseconds=micros), 0
    zone = "UTC"
    if offset:
        sign = "-" if offset < 0 else "+"
        zone = f"UTC{sign}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
    weekday = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[local.weekday()]
    clock = f"{local:%H:%M}" if not local.second else f"{local:%H:%M:%S}"
    return f"{weekday} {local.year:04}-{local:%m-%d} {clock} {zone}"


class _Refused(Exception):
    """A rule of the profile is broken; `read_timer` and `parse` turn it into ResolutionError."""

    def __init__(self, code: str, fact: str, fix: str) -> None:
        self.code, self.fact, self.fix = code, fact, fix
        super().__init__(fact)


def read_timer(timer: TimerElement, event: str | None = None) -> TimerExpression:
    """Return the expression of a timer that is in scope.

    Parameters
    ----------
    timer : TimerElement
        From `payload.read_payload`.
    event : str, optional
        What the error names as its subject, normally the event's IRI; its id by default.

    Raises
    ------
    ResolutionError
        With predicate ``bpmn:timerEventDefinition`` for a broken structure or a timer that is
        out of scope, else with the expression element's own name.
    """
    subject = event if event is not None else timer.id
    try:
        _check_structure(timer)
    except _Refused as refused:
        raise _error(subject, "timerEventDefinition", refused) from None
    kind, body = timer.kind, timer.body
    assert kind is not None and body is not None  # noqa: S101 - _check_structure saw to it
    try:
        if timer.expressions[0].has_children:
            _refuse(
                "CHILD_NODE",
                f"the {kind} holds a comment, processing instruction or element",
                "keep only the quoted text inside the element",
            )
        text = _literal(kind, body)
        _check_language(timer.expressions[0].language)
        expression = _parse_text(kind, text)
        _check_position(timer, expression)
    except _Refused as refused:
        raise _error(subject, kind, refused) from None
    return expression


def parse(kind: str, body: str, event: str = "timer") -> TimerExpression:
    r"""Parse the text of one expression element.

    Parameters
    ----------
    kind : {"timeDate", "timeDuration", "timeCycle"}
    body : str
        The element's text, with its quotes.
    event : str
        What the error names as its subject.

    Raises
    ------
    ResolutionError
        For every text outside the profile; never anything else.

    Examples
    --------
    >>> parse("timeDuration", '"PT48H"').in_words
    '2 days after the instance reaches it'
    >>> parse("timeCycle", '"R/P1D"')
    Traceback (most recent call last):
      ...
    seams_lab.errors.ResolutionError: timer: bpmn:timeCycle: cycle has no start date-time: 'R/P1D'...
    """
    if kind not in EXPRESSION_KINDS:
        raise ValueError(f"kind {kind!r}: expected one of {', '.join(EXPRESSION_KINDS)}")
    try:
        return _parse_text(kind, _literal(kind, body))
    except _Refused as refused:
        raise _error(event, kind, refused) from None


def _error(subject: str, predicate: str, refused: _Refused) -> ResolutionError:
    return ResolutionError(
        subject, f"bpmn:{predicate}", refused.fact, code=refused.code, fix=refused.fix
    )


def _refuse(code: str, fact: str, fix: str) -> NoReturn:
    raise _Refused(code, fact, fix)


def quote(text: str, limit: int = 80) -> str:
    """Quote *text* for a message: printable ASCII, shortened."""
    shown = ascii(text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 4] + "...'"


def _check_structure(timer: TimerElement) -> None:
    if timer.index_type is None:
        _refuse("NOT_LIFTED", not_lifted_reason(timer), not_lifted_fix(timer))
    if timer.references and not timer.definitions and len(timer.references) == 1:
        _refuse(
            "EVENT_DEFINITION_REF",
            f"the definition {quote(timer.references[0])} is referenced, not inline",
            "put the timerEventDefinition inside the event",
        )
    if len(timer.definitions) + len(timer.references) != 1:
        seen = ", ".join([*timer.definitions, *("eventDefinitionRef" for _ in timer.references)])
        _refuse(
            "MULTIPLE_DEFINITIONS",
            f"several event definitions on one event: {seen}",
            "keep one timerEventDefinition; give each other trigger an event of its own",
        )
    flag = timer.cancel_activity
    if flag is not None and flag.strip(XML_SPACE) not in ("true", "false", "0", "1"):
        _refuse(
            "BAD_ATTRIBUTE",
            f"cancelActivity is {quote(flag)}, not an xs:boolean",
            'write cancelActivity="true" or cancelActivity="false"',
        )
    if not timer.expressions:
        _refuse(
            "MISSING_EXPRESSION",
            "the timerEventDefinition has no expression element",
            "add one bpmn:timeDate, bpmn:timeDuration or bpmn:timeCycle with a quoted literal; "
            "modelers lose it on copy or export",
        )
    if len(timer.expressions) > 1:
        kinds = ", ".join(e.kind for e in timer.expressions)
        _refuse("MULTIPLE_EXPRESSIONS", f"several expressions: {kinds}", "keep exactly one")


def not_lifted_reason(timer: TimerElement) -> str:
    """Why a timer is outside the profile, in words."""
    return f"out of scope: a timer on {timer.position} is outside the profile"


def not_lifted_fix(timer: TimerElement) -> str:
    """What to do about a timer that is outside the profile."""
    if timer.tag == "boundaryEvent":
        return "attach it to a user task, or model a service-call timeout as an error"
    if timer.tag == "startEvent":
        return "put the timer on a process's start event, or on an intermediate catch event"
    return "use an intermediate catch event"


def _literal(kind: str, body: str) -> str:
    if not body.strip(" \t\r\n"):
        _refuse("EMPTY", f"the {kind} is empty", f"write {_EXAMPLES[kind]}")
    match = _LITERAL.fullmatch(body)
    if match is None:
        _refuse(
            "NOT_A_LITERAL",
            f"the body is not exactly one plain quoted ASCII string: {quote(body)}",
            _literal_fix(kind, body),
        )
    text: str = match[1] if match[1] is not None else match[2]
    if not text:
        _refuse("EMPTY", "the quoted string is empty", f"write {_EXAMPLES[kind]}")
    length = len(body.strip(" \t"))
    if length > MAX_BODY:
        _refuse(
            "NOT_A_LITERAL",
            f"the body has {length} characters; at most {MAX_BODY} are read: {quote(body)}",
            f"write {_EXAMPLES[kind]}",
        )
    return text


_EXAMPLES = {
    "timeDate": '"2026-12-01T09:00:00Z", with the quotes',
    "timeDuration": '"PT48H", with the quotes',
    "timeCycle": '"R/2026-11-09T08:00:00Z/P1D", with the quotes',
}


_FEEL = re.compile(r"""=?\s*[a-z ]+\(\s*["']([^"']*)["']\s*\)""")
_CRON = re.compile(r"[0-9*][0-9*?/,A-Z#-]*( [0-9*?/,A-Z#-]+){4,6}")


def _literal_fix(kind: str, body: str) -> str:
    """Suggest the nearest text inside the profile; only a text that parses is suggested."""
    if len(body) > MAX_BODY:
        return f"write {_EXAMPLES[kind]}"
    bare = body.strip().strip("\ufeff").strip().rstrip(",;").strip()
    feel = _FEEL.fullmatch(bare)
    if feel:
        bare = feel[1]
    elif len(bare) >= 2 and bare[0] == bare[-1] and bare[0] in "\"'":
        bare = bare[1:-1]
    if _CRON.fullmatch(bare):
        return (
            "cron is not BPMN: where it means a fixed period, write start and period, "
            f"as in {_EXAMPLES['timeCycle']}"
        )
    try:
        _parse_text(kind, bare)
    except _Refused as refused:
        if refused.code == "NO_START":
            return f"choose a start date-time and add quotes, as in {_EXAMPLES['timeCycle']}"
        if refused.code == "BAD_DURATION" and refused.fix.startswith('write "'):
            return refused.fix + ", with the quotes"
        return f"write the value itself, not an expression, as in {_EXAMPLES[kind]}"
    return f'write "{bare}", with the quotes and on one line'


def _check_language(language: str | None) -> None:
    if language is not None and language.strip().lower() not in ("", "python"):
        _refuse(
            "LANGUAGE",
            f"the language attribute names another language: {quote(language)}",
            "remove the attribute",
        )


def _check_position(timer: TimerElement, expression: TimerExpression) -> None:
    if isinstance(expression, TimeCycle):
        if timer.tag == "intermediateCatchEvent":
            _refuse(
                "CYCLE_POSITION",
                "cycle on an intermediate catch event, which fires once",
                "use a timeDuration or timeDate, or loop through the event",
            )
        if timer.interrupting:
            _refuse(
                "CYCLE_POSITION",
                "cycle on an interrupting boundary event, which fires once",
                'use a timeDuration, or set cancelActivity="false"',
            )
    if isinstance(expression, TimeDuration) and timer.tag == "startEvent":
        _refuse(
            "START_DURATION",
            "a duration on a process start event has no instant to count from",
            "write a timeDate, or a timeCycle with a start date-time",
        )


def _parse_text(kind: str, text: str) -> TimerExpression:
    if kind == "timeDate":
        at, offset = _date_time(text)
        return TimeDate(at, offset, text)
    if kind == "timeDuration":
        duration = _duration(text, fraction=True)
        if _outlasts_the_calendar(duration):
            _refuse("OUT_OF_RANGE", f"due after year 9999: {quote(text)}", "use a shorter duration")
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
        _refuse(
            "BAD_CYCLE", f"not R[n]/<date-time>/<duration>: {quote(text)}", _bad_cycle_fix(parts[0])
        )
    digits = head[1]
    if digits and (digits[0] == "0" or len(digits) > 9):
        what = "is too large" if len(digits) > 9 else "must be 1 or more, with no leading zero"
        _refuse(
            "BAD_COUNT",
            f"the repeat count {what}: {quote(text)}",
            f"write a count from 1 to {MAX_COUNT:,} (it counts firings), or R/ for no end",
        )
    if no_start:
        # The wording is fixed by the design record.
        _refuse(
            "NO_START",
            f"cycle has no start date-time: '{text}'",
            f"write R{digits}/<date-time>/{last}, as in {_EXAMPLES['timeCycle']}",
        )
    if duration_first:
        _refuse(
            "INTERVAL_FORM",
            f"<duration>/<end> form: {quote(text)}",
            f"write R{digits}/<start>/{first}",
        )
    if last[:1].isdigit() and "T" in last:
        _refuse(
            "INTERVAL_FORM",
            f"<start>/<end> form: {quote(text)}",
            f"write R{digits}/{first}/<duration>",
        )
    start, offset = _date_time(first)
    try:
        duration = _duration(last, fraction=False)
    except _Refused as refused:
        # A suggestion is the whole text, for a part alone would be refused in its turn.
        whole = f'write "{parts[0]}/{first}/'
        _refuse(refused.code, refused.fact, refused.fix.replace('write "', whole, 1))
    return TimeCycle(start, offset, duration, int(digits) if digits else None, text)


def _bad_cycle_fix(head: str) -> str:
    if head == "R-1":
        return "write R/ for no end"
    if re.fullmatch(r"[0-9*?, -]+", head):
        return f"cron is not BPMN: write start and period, as in {_EXAMPLES['timeCycle']}"
    return f"write it as in {_EXAMPLES['timeCycle']}"


def _date_time(text: str) -> tuple[int, int]:
    """Return (microseconds since the epoch in UTC, offset in minutes)."""
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        _refuse(
            "BAD_DATETIME",
            f"not YYYY-MM-DDTHH:MM:SS with Z or an offset such as +01:00: {quote(text)}",
            f"write it as in {_EXAMPLES['timeDate']}",
        )
    fraction, zone = match[7], match[8]
    if zone is None:
        _refuse(
            "NO_OFFSET",
            f"the date-time has no Z or offset: {quote(text)}",
            "end it with Z, or with the offset that is meant, such as +01:00",
        )
    if fraction:
        _refuse(
            "BAD_DATETIME",
            f"fractional seconds, but firings are keyed by whole seconds: {quote(text)}",
            "leave the fraction out",
        )
    offset = 0
    if zone != "Z":
        hours, minutes = int(zone[1:3]), int(zone[4:6])
        offset = (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1)
        if minutes > 59 or abs(offset) > 14 * 60 or zone == "-00:00":
            _refuse(
                "BAD_DATETIME",
                f"the offset {zone} is not Z or between -14:00 and +14:00: {quote(text)}",
                "write Z, or an offset of at most 14 hours",
            )
    try:
        local = dt.datetime(*(int(match[i]) for i in range(1, 7)))  # type: ignore[arg-type]
    except ValueError as error:
        reason = str(error).split(", not ")[0]
        _refuse("BAD_DATETIME", f"{reason}: {quote(text)}", "write a date and time that exist")
    at = (local - EPOCH) // dt.timedelta(microseconds=1) - offset * MINUTE
    if not FIRST_INSTANT <= at <= LAST_INSTANT:
        _refuse(
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
        _refuse(
            "BAD_DURATION",
            f"a fraction of a second in a cycle, which is keyed by whole seconds: {quote(text)}",
            "use whole seconds",
        )
    else:
        _refuse(
            "BAD_DURATION",
            f"not PnYnMnDTnHnMnS or PnW with positive whole numbers: {quote(text)}",
            _duration_fix(text, fraction=fraction),
        )
    if months == 0 and micros == 0:
        _refuse(
            "NOT_POSITIVE", f"the duration is zero: {quote(text)}", "write a positive duration"
        )
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
    return f"write it as in {_EXAMPLES['timeDuration']}"


def _is_fine(text: str, *, fraction: bool) -> bool:
    if not (_DURATION.fullmatch(text) or _WEEKS.fullmatch(text)):
        return False
    try:
        duration = _duration(text, fraction=fraction)
    except _Refused:
        return False
    # The only due time of a cycle's long period is its start, which is fine.
    return not (fraction and _outlasts_the_calendar(duration))
