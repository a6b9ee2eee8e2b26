"""The one place that reads the host's clock; everything else is given its instants."""

from __future__ import annotations

import time


def now() -> int:
    """The host's current time, in microseconds since the epoch (UTC)."""
    return time.time_ns() // 1_000
