"""Dynamic sampling: draw groups of rollouts until enough of them can teach something.

Source: UI-S1 paper, section 3.4 ("performing dynamic sampling until this diversity threshold is met"), after DAPO. Which group
is worth keeping is the caller's (:func:`guieval.rewards.advantages.keep_group`); here is only the loop, with a cap, because a
policy that solves everything, or nothing, would never give a group that passes.
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
        """Whether as many passed as were wanted."""
        return len(self.kept) >= self.wanted

    @property
    def kept_share(self) -> float | None:
        """Which part of the drawn groups passed, in [0, 1]; ``None`` when none was drawn."""
        return len(self.kept) / self.drawn if self.drawn else None


def collect(draw: Callable[[], G | None], keep: Callable[[G], bool], *, groups: int, most_draws: int) -> Collected[G]:
    """Draw until ``groups`` pass ``keep``, ``most_draws`` were drawn, or ``draw`` gives ``None`` (there are no more).

    What to do with too few is the caller's to decide. Raises ``ValueError`` where so few draws could never be enough.
    """
    if groups < 1:
        raise ValueError(f"groups is {groups}: expected at least 1")
    if most_draws < groups:
        raise ValueError(f"most_draws is {most_draws}, which can never give the {groups} groups that are wanted")
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
