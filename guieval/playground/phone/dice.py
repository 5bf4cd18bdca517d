"""Random draws that are the same on every platform and Python version, for one key (seed, episode number, purpose).

Only ``random.Random.random`` keeps its sequence across Python versions by promise, so every draw here is made from it.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """A stream of draws named by ``key``; the same key (compared by its text) gives the same stream."""

    def __init__(self, *key: str | int) -> None:
        digest = hashlib.sha256("/".join(str(part) for part in key).encode()).digest()
        self._draw = random.Random(int.from_bytes(digest[:16], "big")).random

    def below(self, count: int) -> int:
        """A whole number in [0, ``count``)."""
        return int(self._draw() * count)

    def between(self, low: int, high: int) -> int:
        """A whole number in [``low``, ``high``], both included."""
        return low + self.below(high - low + 1)

    def uniform(self, low: float, high: float) -> float:
        """One draw, uniform in [``low``, ``high``)."""
        return low + self._draw() * (high - low)

    def chance(self, probability: float) -> bool:
        """One draw: whether it is below ``probability``, in [0, 1]."""
        return self._draw() < probability

    def pick(self, items: Sequence[T]) -> T:
        """One of ``items``; ``IndexError`` when there is none."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """``count`` different places of ``items`` in random order (all of them when there are fewer)."""
        pool = list(items)
        for index in range(min(count, len(pool))):
            other = index + self.below(len(pool) - index)
            pool[index], pool[other] = pool[other], pool[index]
        return pool[:count]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        return self.sample(items, len(items))
