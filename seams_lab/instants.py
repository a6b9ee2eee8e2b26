"""Instants: whole microseconds since the epoch, UTC, and the texts that stand for them."""

from __future__ import annotations

import datetime as dt
import re

from seams_lab.errors import UnusableInput
from seams_lab.expressions import EPOCH, FIRST_INSTANT, LAST_INSTANT

Instant = str | int | dt.datetime

_TEXT = re.compile(
    # Hours to 23 and minutes to 59 only: Python versions differ in what they let pass beyond.
    r"\d{4}-\d{2}-\d{2}"
    r"(T([01]\d|2[0-3]):\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d))?",
    re.ASCII,
)
_MICROSECOND = dt.timedelta(microseconds=1)


def to_micros(instant: Instant, what: str = "instant") -> int:
    """Read an instant as microseconds since the epoch (UTC).

    Parameters
    ----------
    instant : str, int or datetime
        ``"2026-11-09T08:00:00Z"`` (any offset), ``"2026-11-09"`` (midnight UTC), an aware
        datetime or pandas Timestamp, or microseconds.
    what : str
        Names the argument in the error.

    Raises
    ------
    UnusableInput
        For a text of another form, a datetime without a zone, or an instant outside the years
        0001 to 9999.

    Examples
    --------
    >>> to_micros("1970-01-01T01:00:01+01:00")
    1000000
    """
    if isinstance(instant, bool) or not isinstance(instant, str | int | dt.datetime):
        raise _unusable(what, f"{instant!r}")
    if isinstance(instant, int):
        micros = int(instant)
    else:
        moment = _parse(instant, what) if isinstance(instant, str) else instant
        # pandas' NaT is a datetime without a zone and refuses to be asked for its offset.
        offset = moment.utcoffset() if moment.tzinfo is not None else None
        if offset is None:
            raise _unusable(what, f"{moment!s} without a time zone")
        # Not by astimezone: near the ends of the calendar that overflows.
        micros = (moment.replace(tzinfo=None) - EPOCH - offset) // _MICROSECOND
    if not FIRST_INSTANT <= micros <= LAST_INSTANT + 999_999:
        raise _unusable(what, f"{instant!s}, outside the years 0001 to 9999")
    return micros


def _parse(text: str, what: str) -> dt.datetime:
    if not _TEXT.fullmatch(text):
        raise _unusable(what, f"{text!r}")
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise _unusable(what, f"{text!r} ({error})") from None
    return moment.replace(tzinfo=dt.UTC) if len(text) == 10 else moment


def _unusable(what: str, seen: str) -> UnusableInput:
    return UnusableInput(
        what, seen, "an instant with Z or an offset", "write it as in 2026-11-09T08:00:00Z"
    )


def to_text(micros: int) -> str:
    """Write an instant as ``YYYY-MM-DDTHH:MM:SS[.ffffff]Z``.

    >>> to_text(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    """
    return (EPOCH + dt.timedelta(microseconds=int(micros))).isoformat() + "Z"
