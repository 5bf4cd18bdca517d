"""Seeded draws of steps and episodes, and HyperTrack's nested training subsets (arXiv 2605.27134, section 2.2).

The place of each in the order depends on the seed and its name alone, so adding data adds to a draw and reshuffles nothing.

The paper gives only the ten sizes of its subsets: 16, 32, ... episodes. That each contains the smaller ones is our choice: a
curve over sizes then shows what more data adds, not what another draw happens to hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from guieval.data.benchmark import EpisodeRef
from guieval.errors import UsageError
from guieval.steps import EpisodeKey, StepKey

HYPERTRACK_SIZES = tuple(2**power for power in range(4, 14))
"""16, 32, ..., 8,192 episodes."""


def draw_place(seed: int, key: EpisodeKey | StepKey) -> str:
    """The sort key of ``key`` in the order of ``seed``: 64 hexadecimal digits."""
    return sha256("\n".join([str(seed), *map(str, key)]).encode("utf-8", "surrogatepass")).hexdigest()


def nested_episodes(refs: Sequence[EpisodeRef], sizes: Sequence[int], seed: int = 0) -> dict[int, list[EpisodeRef]]:
    """For each size a subset of ``refs`` with so many episodes, in their order; it contains every smaller one.

    Drawn without replacement by the episodes' names and ``seed`` alone. Raises :class:`UsageError` for no size, one below 1,
    one named twice, and one above the number of episodes.
    """
    if not sizes:
        raise UsageError("name at least one size, in episodes")
    for size in sizes:
        if size < 1 or sizes.count(size) > 1:
            problem = "below 1" if size < 1 else "named twice"
            raise UsageError(f"the sizes of nested subsets are different whole numbers from 1 on, and {size} is {problem}")
    if max(sizes) > len(refs):
        raise UsageError(f"a subset of {max(sizes):,} episodes cannot be drawn from the {len(refs):,} that there are")
    order = sorted(refs, key=lambda ref: draw_place(seed, ref.key))
    subsets: dict[int, list[EpisodeRef]] = {}
    for size in sorted(sizes):
        drawn = {ref.key for ref in order[:size]}
        subsets[size] = [ref for ref in refs if ref.key in drawn]
    return subsets
