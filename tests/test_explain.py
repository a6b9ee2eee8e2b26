"""Notes on an expression: each says what people took wrongly in public reports."""

from __future__ import annotations

import pytest

from seams_lab.explain import notes
from seams_lab.instants import to_micros
from seams_lab.profile import parse

AT = to_micros("2026-11-01T00:00:00Z")


@pytest.mark.parametrize(
    ("kind", "body", "said", "not_said"),
    [
        ("timeCycle", "R4/2027-03-11T12:13:00+01:00/PT5M", ["Camunda 7 fires 5"], ["passed"]),
        ("timeCycle", "R1/2027-03-11T12:13:00Z/PT5M", ["1 firing,", "and 1 repeat)"], []),
        ("timeCycle", "R/2027-01-31T08:00:00Z/P1M", ["no end", "without a day 31"], ["24 hours"]),
        ("timeCycle", "R/2027-01-28T08:00:00Z/P1M", ["no fixed length"], ["last day"]),
        ("timeCycle", "R/2026-10-25T00:30:00+02:00/P1D", ["summer time", "fires once"], ["month"]),
        ("timeCycle", "R/2027-01-01T00:00:00Z/PT1H", ["no end"], ["summer time"]),
        ("timeDuration", "P2M", ["in months; minutes would be PT2M", "reaches the event"], []),
        ("timeDuration", "PT2M", ["reaches the event"], ["month"]),
        ("timeDate", "2020-02-29T00:00:00Z", ["It was due at 2020-02-29T00:00:00Z"], []),
        ("timeDate", "2030-01-01T00:00:00Z", [], ["due"]),
    ],
)
def test_notes(kind: str, body: str, said: list[str], not_said: list[str]) -> None:
    text = " ".join(notes(parse(kind, f'"{body}"'), AT))
    assert all(words in text for words in said), text
    assert not any(words in text for words in not_said), text


def test_the_past_is_counted_exactly() -> None:
    told = notes(parse("timeCycle", '"R/2026-10-01T00:00:00Z/P1D"'), AT)
    assert told[-1].startswith("32 due times have passed: at a first load the newest, 2026-11-01")
