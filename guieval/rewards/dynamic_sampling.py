"""Dynamic sampling: draw groups of rollouts until enough of them have different rewards.

Source: UI-S1 paper, section 3.4 ("performing dynamic sampling until this diversity threshold is met"), after DAPO. The caller
decides which group is kept (:func:`guieval.rewards.advantages.keep_group`). The loop has a cap, because a policy that solves
everything, or nothing, never gives a group that passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

G = TypeVar("G")


@dataclass(frozen=True)
class Collected(Generic[G]):
    """The groups that passed, in the order they were drawn, and how many were drawn for them."""

    kept: tuple[G, ...]
    drawn: int
    wanted: int

    @property
    def complete(self) -> bool:
        """Whether the requested number of groups passed."""
        return len(self.kept) >= self.wanted


def collect(draw: Callable[[], G | None], keep: Callable[[G], bool], *, groups: int, most_draws: int) -> Collected[G]:
    """Draw until ``groups`` pass ``keep``, ``most_draws`` were drawn, or ``draw`` returns ``None`` (no groups are left).

    The result may have too few groups. Raises ``ValueError`` if ``most_draws`` is below ``groups``.
    """
    if groups < 1:
        raise ValueError(f"groups is {groups}: expected at least 1")
    if most_draws < groups:
        raise ValueError(f"most_draws is {most_draws}, which can never give the {groups} groups that are requested")
    kept: list[G] = []
    drawn = 0
    while len(kept) < groups and drawn < most_draws:
        group = draw()
        if group is None:
            break
        drawn += 1
        if keep(group):
            kept.append(group)
    return Collected(tuple(kept), drawn, groups)
