"""Free space on a screenshot: rectangles without text or pictures, by the energy of its gradients, so no OCR is needed."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guieval.settings import Placement

if TYPE_CHECKING:
    from PIL.Image import Image

_EDGE = 20
"""Grey levels between neighbours above which something is drawn there."""
_CELLS = 60
"""Cells of the grid along the short side."""


class Rectangle(NamedTuple):
    """Pixels of a screenshot; right and bottom are not part of it."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def width(self) -> int:
        return self.right - self.left

    @property
    def height(self) -> int:
        return self.bottom - self.top

    @property
    def centre(self) -> tuple[float, float]:
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def grown(self, by: float) -> Rectangle:
        """With a margin on each side."""
        return Rectangle(*(round(side + sign * by) for side, sign in zip(self, (-1, -1, 1, 1), strict=True)))

    def meets(self, other: Rectangle) -> bool:
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom

    def within(self, size: tuple[int, int]) -> list[float]:
        """Its sides in thousandths of a screen of ``size``."""
        return [1000 * side / size[place % 2] for place, side in enumerate(self)]


def free_place(
    image: Image, wanted: tuple[int, int], least: tuple[int, int], avoid: Rectangle | None, placement: Placement, seed: int
) -> Rectangle | None:
    """A rectangle of at most ``wanted`` and at least ``least`` pixels (width, height) in free space, or ``None``.

    It is in the largest free rectangle, or in that nearest to, or farthest from, ``avoid``, which it does not meet; within
    that by ``seed``.
    """
    cell = max(4, min(image.size) // _CELLS)
    busy = _busy(image, cell)
    if avoid is not None:
        left, top = max(0, avoid.left // cell), max(0, avoid.top // cell)
        busy[top : math.ceil(avoid.bottom / cell), left : math.ceil(avoid.right / cell)] = True
    found = [Rectangle(*(side * cell for side in each)) for each in _maximal(busy)]
    fitting = [each for each in found if each.width >= least[0] and each.height >= least[1]]
    if not fitting:
        return None

    def rank(each: Rectangle) -> tuple[float, Rectangle]:
        if placement == "auto" or avoid is None:
            return -min(each.width, wanted[0]) * min(each.height, wanted[1]), each
        away = math.dist(each.centre, avoid.centre)
        return (away if placement == "near" else -away), each

    room = min(fitting, key=rank)
    width, height = min(room.width, wanted[0]), min(room.height, wanted[1])
    dice = random.Random(seed)
    left, top = room.left + dice.randint(0, room.width - width), room.top + dice.randint(0, room.height - height)
    return Rectangle(left, top, left + width, top + height)


def _busy(image: Image, cell: int) -> NDArray[np.bool_]:
    """(rows, columns) the cells of a grid in which neighbouring pixels differ; what is left of a cell at the edges is free."""
    grey = np.asarray(image.convert("L"), dtype=np.int16)
    edges = np.zeros(grey.shape, dtype=np.bool_)
    edges[:, 1:] |= np.abs(np.diff(grey, axis=1)) > _EDGE
    edges[1:] |= np.abs(np.diff(grey, axis=0)) > _EDGE
    rows, columns = grey.shape[0] // cell, grey.shape[1] // cell
    cells = edges[: rows * cell, : columns * cell].reshape(rows, cell, columns, cell)
    return np.asarray(cells.any(axis=(1, 3)))


def _maximal(busy: NDArray[np.bool_]) -> Iterator[tuple[int, int, int, int]]:
    """All rectangles of free cells that are the largest above their lowest row, by the heights of free columns."""
    heights = np.zeros(busy.shape[1] + 1, dtype=np.int64)
    for row, line in enumerate(busy):
        heights[:-1] = np.where(line, 0, heights[:-1] + 1)
        opened: list[tuple[int, int]] = []
        for column, height in enumerate(heights.tolist()):
            start = column
            while opened and opened[-1][1] >= height:
                start, tall = opened.pop()
                if tall > height:
                    yield start, row + 1 - tall, column, row + 1
            if height:
                opened.append((start, height))
