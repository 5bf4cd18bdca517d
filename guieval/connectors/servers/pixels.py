"""Points of the unified space as pixels of a screen."""

from __future__ import annotations

from guieval.actions import Point


def pixel(point: Point, size: tuple[int, int]) -> tuple[int, int]:
    """The pixel of a screen of ``size`` (width, height) that a point is in: x in [0, width - 1], y in [0, height - 1]."""
    x, y = (min(int(part / 1000 * length), length - 1) for part, length in zip(point, size, strict=True))
    return x, y
