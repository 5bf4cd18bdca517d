"""A Pareto front as the coordinates of an inline SVG, which the leaderboard's page draws; it has no name of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from guieval.reports.leaderboards.sections import Front


class Tick(NamedTuple):
    """A value on an axis, its place in pixels, and its text."""

    at: float
    label: str


class RunMark(NamedTuple):
    """A run: its place, and the ends of its interval."""

    x: float
    y: float
    low: float
    high: float
    best: bool


@dataclass(frozen=True)
class Drawing:
    """The marks, the front of each mode as a path, the ticks, and the borders of picture and axes; all in pixels."""

    width: ClassVar = 640
    height: ClassVar = 330
    left: ClassVar = 60
    right: ClassVar = 604
    top: ClassVar = 14
    bottom: ClassVar = 276
    marks: tuple[RunMark, ...]
    paths: tuple[str, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]


def drawing(front: Front) -> Drawing:
    """Lay the points out: spending from 0, shares over the range that they and their intervals take."""
    ends = [point.ends for point in front.points]
    across = ticks(0.0, max(point.spent for point in front.points))
    up = ticks(100 * min(low for low, _ in ends), 100 * max(high for _, high in ends))

    def x(value: float) -> float:
        return round(Drawing.left + (Drawing.right - Drawing.left) * value / across[-1], 1)

    def y(share: float) -> float:
        return round(Drawing.bottom - (Drawing.bottom - Drawing.top) * (100 * share - up[0]) / (up[-1] - up[0]), 1)

    marks = [
        RunMark(x(point.spent), y(point.value), y(low), y(high), front.is_best(point))
        for point, (low, high) in zip(front.points, ends, strict=True)
    ]
    paths = []
    for points in front.best:
        start, *steps = [(x(point.spent), y(point.value)) for point in points]
        paths.append(f"M{start[0]} {start[1]}" + "".join(f"H{right}V{above}" for right, above in steps) + f"H{Drawing.right}")
    return Drawing(
        tuple(marks),
        tuple(paths),
        tuple(Tick(x(value), f"{value:,.10g}") for value in across),
        tuple(Tick(y(value / 100), f"{value:.10g} %") for value in up),
    )


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Two to about ``most`` round values, equally far apart, that enclose ``low`` and ``high``."""
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(factor * power for factor in (1, 2, 5, 10, 20) if span / (factor * power) <= most)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * each, 12) for each in range(first, max(last, first + 1) + 1)]
