"""The strict profile of timer expressions: quoted ISO 8601 literals, read and never evaluated.

The text of an expression element is one quoted string literal that holds

=====================  ===========================================  ================================
``bpmn:timeDate``      a date-time with an offset                   ``"2026-12-01T09:00:00Z"``
``bpmn:timeDuration``  a positive duration                          ``"PT48H"``
``bpmn:timeCycle``     a repeating interval with an explicit start  ``"R/2026-11-09T08:00:00Z/P1D"``
=====================  ===========================================  ================================

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

import re

from seams_lab.errors import ResolutionError
from seams_lab.expressions import TimeCycle, TimeDuration, TimerExpression
from seams_lab.literals import EXAMPLES, Refused, parse_literal, quote, refuse
from seams_lab.payload import EXPRESSION_KINDS, XML_SPACE, TimerElement

MAX_BODY = 256
# One linear-time ASCII pattern decides; `ast` or `eval` would let prefixes, escapes and
# implicit concatenation in, and can be made to exhaust memory.
_LITERAL = re.compile(
    r"""[ \t]*(?:"([\x20\x21\x23-\x5B\x5D-\x7E]*)"|'([\x20-\x26\x28-\x5B\x5D-\x7E]*)')[ \t]*"""
)


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
    except Refused as refused:
        raise _error(subject, "timerEventDefinition", refused) from None
    kind, body = timer.kind, timer.body
    assert kind is not None
    assert body is not None
    try:
        if timer.expressions[0].has_children:
            refuse(
                "CHILD_NODE",
                f"the {kind} holds a comment, processing instruction or element",
                "keep only the quoted text inside the element",
            )
        text = _literal(kind, body)
        _check_language(timer.expressions[0].language)
        expression = parse_literal(kind, text)
        _check_position(timer, expression)
    except Refused as refused:
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
    seams_lab.errors.ResolutionError: timer: bpmn:timeCycle: cycle has no start date-time: ...
    """
    if kind not in EXPRESSION_KINDS:
        raise ValueError(f"kind {kind!r}: expected one of {', '.join(EXPRESSION_KINDS)}")
    try:
        return parse_literal(kind, _literal(kind, body))
    except Refused as refused:
        raise _error(event, kind, refused) from None


def _error(subject: str, predicate: str, refused: Refused) -> ResolutionError:
    return ResolutionError(
        subject, f"bpmn:{predicate}", refused.fact, code=refused.code, fix=refused.fix
    )


def _check_structure(timer: TimerElement) -> None:
    if timer.index_type is None:
        refuse("NOT_LIFTED", not_lifted_reason(timer), not_lifted_fix(timer))
    if timer.references and not timer.definitions and len(timer.references) == 1:
        refuse(
            "EVENT_DEFINITION_REF",
            f"the definition {quote(timer.references[0])} is referenced, not inline",
            "put the timerEventDefinition inside the event",
        )
    if len(timer.definitions) + len(timer.references) != 1:
        seen = ", ".join([*timer.definitions, *("eventDefinitionRef" for _ in timer.references)])
        refuse(
            "MULTIPLE_DEFINITIONS",
            f"several event definitions on one event: {seen}",
            "keep one timerEventDefinition; give each other trigger an event of its own",
        )
    flag = timer.cancel_activity
    if flag is not None and flag.strip(XML_SPACE) not in ("true", "false", "0", "1"):
        refuse(
            "BAD_ATTRIBUTE",
            f"cancelActivity is {quote(flag)}, not an xs:boolean",
            'write cancelActivity="true" or cancelActivity="false"',
        )
    if not timer.expressions:
        refuse(
            "MISSING_EXPRESSION",
            "the timerEventDefinition has no expression element",
            "add one bpmn:timeDate, bpmn:timeDuration or bpmn:timeCycle with a quoted literal; "
            "modelers lose it on copy or export",
        )
    if len(timer.expressions) > 1:
        kinds = ", ".join(e.kind for e in timer.expressions)
        refuse("MULTIPLE_EXPRESSIONS", f"several expressions: {kinds}", "keep exactly one")


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
        refuse("EMPTY", f"the {kind} is empty", f"write {EXAMPLES[kind]}")
    match = _LITERAL.fullmatch(body)
    if match is None:
        refuse(
            "NOT_A_LITERAL",
            f"the body is not exactly one plain quoted ASCII string: {quote(body)}",
            _literal_fix(kind, body),
        )
    text: str = match[1] if match[1] is not None else match[2]
    if not text:
        refuse("EMPTY", "the quoted string is empty", f"write {EXAMPLES[kind]}")
    length = len(body.strip(" \t"))
    if length > MAX_BODY:
        refuse(
            "NOT_A_LITERAL",
            f"the body has {length} characters; at most {MAX_BODY} are read: {quote(body)}",
            f"write {EXAMPLES[kind]}",
        )
    return text


_FEEL = re.compile(r"""=?\s*[a-z ]+\(\s*["']([^"']*)["']\s*\)""")
_CRON = re.compile(r"[0-9*][0-9*?/,A-Z#-]*( [0-9*?/,A-Z#-]+){4,6}")


def _literal_fix(kind: str, body: str) -> str:
    """Suggest the nearest text inside the profile; only a text that parses is suggested."""
    if len(body) > MAX_BODY:
        return f"write {EXAMPLES[kind]}"
    bare = body.strip().strip("\ufeff").strip().rstrip(",;").strip()
    feel = _FEEL.fullmatch(bare)
    if feel:
        bare = feel[1]
    elif len(bare) >= 2 and bare[0] == bare[-1] and bare[0] in "\"'":
        bare = bare[1:-1]
    if _CRON.fullmatch(bare):
        return (
            "cron is not BPMN: where it means a fixed period, write start and period, "
            f"as in {EXAMPLES['timeCycle']}"
        )
    try:
        parse_literal(kind, bare)
    except Refused as refused:
        if refused.code == "NO_START":
            return f"choose a start date-time and add quotes, as in {EXAMPLES['timeCycle']}"
        if refused.code == "BAD_DURATION" and refused.fix.startswith('write "'):
            return refused.fix + ", with the quotes"
        return f"write the value itself, not an expression, as in {EXAMPLES[kind]}"
    return f'write "{bare}", with the quotes and on one line'


def _check_language(language: str | None) -> None:
    if language is not None and language.strip().lower() not in ("", "python"):
        refuse(
            "LANGUAGE",
            f"the language attribute names another language: {quote(language)}",
            "remove the attribute",
        )


def _check_position(timer: TimerElement, expression: TimerExpression) -> None:
    if isinstance(expression, TimeCycle):
        if timer.tag == "intermediateCatchEvent":
            refuse(
                "CYCLE_POSITION",
                "cycle on an intermediate catch event, which fires once",
                "use a timeDuration or timeDate, or loop through the event",
            )
        if timer.interrupting:
            refuse(
                "CYCLE_POSITION",
                "cycle on an interrupting boundary event, which fires once",
                'use a timeDuration, or set cancelActivity="false"',
            )
    if isinstance(expression, TimeDuration) and timer.tag == "startEvent":
        refuse(
            "START_DURATION",
            "a duration on a process start event has no instant to count from",
            "write a timeDate, or a timeCycle with a start date-time",
        )
