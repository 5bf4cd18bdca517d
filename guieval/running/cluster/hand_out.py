"""Which worker gets which episode: longest first, a few at a time, so that a slow worker does not hold up the end."""

from __future__ import annotations

from collections.abc import Iterable

from guieval.data.benchmark import EpisodeRef
from guieval.data.selection import Selection

MOST_AT_ONCE = 8
"""Episodes given out at once: enough that asking costs nothing, few enough that a slow worker holds back little."""


def dealt_first(selection: Selection) -> list[EpisodeRef]:
    """The chosen episodes with the most steps that count first, equal ones in the benchmark's order.

    Every machine derives the same list from the same data, so an episode's position in it is its name among them.
    """
    return sorted(selection.refs, key=lambda ref: -len(selection.plan[ref.key]))


class HandOut:
    """Gives out positions in ascending order, each once, to ``workers`` that come back for more."""

    def __init__(self, positions: Iterable[int], workers: int) -> None:
        self._left = sorted(positions)
        self._next = 0
        self._workers = max(1, workers)

    @property
    def left(self) -> int:
        """How many have not been given out."""
        return len(self._left) - self._next

    def take(self) -> list[int]:
        """The next few, fewer towards the end; none when there are no more."""
        count = max(1, min(MOST_AT_ONCE, self.left // (4 * self._workers)))
        given = self._left[self._next : self._next + count]
        self._next += len(given)
        return given
