"""The host's clock, in the kit's units."""

import time

from seams_lab import clock


def test_now_is_in_microseconds_since_the_epoch() -> None:
    before = time.time_ns()
    instant = clock.now()
    after = time.time_ns()
    assert before // 1_000 <= instant <= after // 1_000
