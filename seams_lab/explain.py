"""What a reader of a timer expression may take wrongly, said in plain sentences.

Each note comes from a difference between engines, or a surprise of the calendar, that public
issue trackers show people meeting.
"""

from __future__ import annotations

from seams_lab.expressions import DAY, TimeCycle, TimeDate, TimeDuration, TimerExpression
from seams_lab.instants import to_text
from seams_lab.series import series


def notes(expression: TimerExpression, at: int) -> list[str]:
    """Explain an expression, as seen at an instant (microseconds, UTC).

    Examples
    --------
    >>> from seams_lab.profile import parse
    >>> notes(parse("timeCycle", '"R4/2022-03-11T12:13:00+01:00/PT5M"'), 0)[0]
    'R4 means 4 firings, the first at the start; Camunda 7 fires 5 times (the start and 4 repeats).'
    """
    if isinstance(expression, TimeDate):
        return _past(expression, at)
    if isinstance(expression, TimeDuration):
        return [
            "It counts from the instant at which the instance reaches the event; the due time is "
            "fixed then and never computed again.",
            *_calendar(expression, at),
        ]
    return [*_count(expression), *_calendar(expression, expression.start), *_past(expression, at)]


def _count(cycle: TimeCycle) -> list[str]:
    if cycle.count is None:
        return ["R with no number has no end."]
    n = cycle.count
    many = "firing" if n == 1 else "firings"
    repeats = "repeat" if n == 1 else "repeats"
    return [
        f"R{n} means {n} {many}, the first at the start; Camunda 7 fires {n + 1} times "
        f"(the start and {n} {repeats})."
    ]


def _calendar(expression: TimeDuration | TimeCycle, anchor: int) -> list[str]:
    duration, found = expression.duration, []
    if duration.months:
        day = int(to_text(anchor)[8:10])
        clamp = f" Months without a day {day} give their last day." if day > 28 else ""
        found.append(
            "A month has no fixed length: due times are start plus k times the duration in the "
            f"calendar, never counted from the firing before.{clamp}"
        )
    if isinstance(expression, TimeCycle) and not duration.months and duration.micros % DAY == 0:
        found.append(
            "A day is 24 hours: where clocks change for summer time, the local hour of the firing "
            "moves."
        )
    if duration.months and "T" not in duration.text and duration.text.endswith("M"):
        found.append(f"{duration.text} is in months; minutes would be PT{duration.text[1:]}.")
    return found


def _past(expression: TimeDate | TimeCycle, at: int) -> list[str]:
    table = series([expression], at)
    passed = int(table.latest_k(at)[0]) + 1
    if not passed:
        return []
    newest = to_text(int(table.latest(at)[0]))
    if passed == 1:
        return [f"It was due at {newest}: at a first load it fires once, at once."]
    return [
        f"{passed:,} due times have passed: at a first load the newest, {newest}, fires once and "
        f"{passed - 1:,} are skipped."
    ]
