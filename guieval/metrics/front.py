"""The Pareto front: the runs that no other one beats, with as little spent and as much right, and better in one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from guieval.metrics.measured import Measured


class Spent(NamedTuple):
    """A run: what it spends, a share, and its mode, since modes are not comparable."""

    name: str
    spent: float
    share: Measured
    mode: str = ""

    @property
    def value(self) -> float:
        """The share, in [0, 1]."""
        return self.share.value or 0.0

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of its interval; twice the share without one."""
        own = self.share.interval
        return (self.value, self.value) if own is None else (own.low, own.high)

    @property
    def title(self) -> str:
        return f"{self.name} ({self.mode})"


def fronts(runs: Sequence[Spent]) -> list[list[Spent]]:
    """The runs that no other one of their mode beats, a list for each mode, the cheapest first; equal ones are all in it."""
    found: dict[str, list[Spent]] = {run.mode: [] for run in runs}
    for run in sorted(runs, key=lambda run: (run.spent, -run.value)):
        best = found[run.mode]
        if not best or run.value > best[-1].value or (run.spent, run.value) == (best[-1].spent, best[-1].value):
            best.append(run)
    return list(found.values())
