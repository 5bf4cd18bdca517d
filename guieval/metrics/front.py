"""The Pareto front: the points that no other one beats, with as small an x and as large a y, and better in one of them."""

from __future__ import annotations

from collections.abc import Sequence


def front(points: Sequence[tuple[float, float]]) -> list[int]:
    """The places of the points on the front, the smallest x first; equal points are on it together."""
    best: list[int] = []
    for place in sorted(range(len(points)), key=lambda place: (points[place][0], -points[place][1])):
        if not best or points[place][1] > points[best[-1]][1] or points[place] == points[best[-1]]:
            best.append(place)
    return best
