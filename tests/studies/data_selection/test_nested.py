"""Nested subsets of episodes: seeded, of the requested sizes, each inside the next, in any order of the listing."""

from __future__ import annotations

from itertools import pairwise

import pytest

from guieval.data.benchmark import EpisodeRef
from guieval.errors import UsageError
from guieval.steps import EpisodeKey
from guieval.studies.data_selection.curated_files import HYPERTRACK_SIZES, nested_episodes
from tests.rows import every_row

REFS = [EpisodeRef(EpisodeKey("made-up", "", f"e{n}"), 5) for n in range(9000)]


def test_hypertracks_ten_sizes_lie_in_each_other() -> None:
    subsets = nested_episodes(REFS, HYPERTRACK_SIZES)
    assert list(subsets) == [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192]
    keys = [{ref.key for ref in subset} for subset in subsets.values()]
    assert [len(each) for each in keys] == list(subsets)
    assert all(small < large for small, large in pairwise(keys))


def test_the_seed_decides_and_the_listing_does_not() -> None:
    def drawn(refs: list[EpisodeRef], seed: int) -> set[EpisodeKey]:
        return {ref.key for ref in nested_episodes(refs, [64], seed)[64]}

    assert drawn(REFS, 1) == drawn(REFS[::-1], 1)
    assert drawn(REFS, 1) != drawn(REFS, 2)


def test_every_episode_is_as_likely() -> None:
    """Over 400 seeds each of 20 episodes is among 5 in 100 of them, give or take 4 standard deviations (8.7 each)."""
    counts = dict.fromkeys((ref.key for ref in REFS[:20]), 0)
    for seed in range(400):
        for ref in nested_episodes(REFS[:20], [5], seed)[5]:
            counts[ref.key] += 1
    assert sum(counts.values()) == 2000
    assert all(abs(count - 100) < 35 for count in counts.values())


@every_row(
    ("sizes", "message"),
    [([], "at least one size"), ([4, 0], "0 is below 1"), ([4, 4], "4 is named twice"), ([9001], "from the 9,000")],
)
def test_sizes_that_cannot_be_are_refused(sizes: list[int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        nested_episodes(REFS, sizes)
