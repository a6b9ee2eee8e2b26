"""A rectangle in diagram units."""

from __future__ import annotations

from typing import NamedTuple


class Box(NamedTuple):
    """A rectangle in diagram units; y grows downwards."""

    x: float
    y: float
    w: float
    h: float

    @property
    def centre(self) -> Point:
        """The middle of the box."""
        return self.x + self.w / 2, self.y + self.h / 2

    def overlap(self, other: Box) -> float:
        """The area that both boxes cover."""
        width = min(self.x + self.w, other.x + other.w) - max(self.x, other.x)
        height = min(self.y + self.h, other.y + other.h) - max(self.y, other.y)
        return max(width, 0.0) * max(height, 0.0)

    def moved(self, dx: float, dy: float) -> Box:
        """The same box elsewhere."""
        return Box(self.x + dx, self.y + dy, self.w, self.h)


Point = tuple[float, float]
