"""The seeded order in which steps and episodes are drawn.

Each gets a place of its own from the seed and its name alone, so neither the order nor the company in which they are listed
changes who comes before whom: adding data adds to a draw and reshuffles nothing.
"""

from __future__ import annotations

from hashlib import sha256

from guieval.steps import EpisodeKey, StepKey


def draw_place(seed: int, key: EpisodeKey | StepKey) -> str:
    """Where ``key`` stands in the order of ``seed``: 64 hexadecimal digits, to be sorted by."""
    return sha256("\n".join([str(seed), *map(str, key)]).encode("utf-8", "surrogatepass")).hexdigest()
