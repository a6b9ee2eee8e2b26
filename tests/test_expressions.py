"""What an expression means, in words."""

from __future__ import annotations

import pytest

from seams_lab.profile import parse

WORDS = [
    ("timeDuration", "PT48H", "2 days after the instance reaches it"),
    ("timeDuration", "PT1M", "1 minute after the instance reaches it"),
    ("timeDuration", "P1M", "1 month after the instance reaches it"),
    ("timeDuration", "P2W", "2 weeks after the instance reaches it"),
    ("timeDuration", "P1Y2M3DT4H5M6.5S",
     "1 year, 2 months, 3 days, 4 hours, 5 minutes and 6.5 seconds after the instance reaches it"),
    ("timeDuration", "PT0.000001S", "0.000001 seconds after the instance reaches it"),
    ("timeDate", "2026-12-01T09:00:00Z", "once, on Tue 2026-12-01 09:00 UTC"),
    ("timeDate", "2026-12-01T09:00:05-05:30", "once, on Tue 2026-12-01 09:00:05 UTC-05:30"),
    ("timeCycle", "R/2026-11-09T08:00:00Z/P1D", "every day, from Mon 2026-11-09 08:00 UTC, no end"),
    ("timeCycle", "R3/2026-11-09T08:00:00+01:00/PT8H",
     "every 8 hours, from Mon 2026-11-09 08:00 UTC+01:00, 3 times"),
    ("timeCycle", "R1/2026-11-09T08:00:00Z/P1D", "once, on Mon 2026-11-09 08:00 UTC"),
    ("timeCycle", "R/2026-01-31T08:00:00Z/P1M",
     "every month on the same day of the month, or its last, from Sat 2026-01-31 08:00 UTC, "
     "no end"),
    ("timeDate", "9999-12-31T23:59:59Z", "once, on Fri 9999-12-31 23:59:59 UTC"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "words"), WORDS)
def test_an_expression_can_be_said_in_words(kind: str, text: str, words: str) -> None:
    assert parse(kind, f'"{text}"').in_words == words
