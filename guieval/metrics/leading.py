"""The metrics that tables and comparisons lead with: exact match over all steps, a protocol's own, and those of users.

Each can be computed on any steps that the protocol judged, and compared (:meth:`Leading.terms`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol as Shape

from guieval.evaluation import Figure, Protocol
from guieval.evaluation.protocol import ALL_STEPS, EXACT_MATCH, FailurePolicy
from guieval.metrics.columns import Judged, RunColumns
from guieval.metrics.figures import compute, terms
from guieval.metrics.intervals import Terms
from guieval.metrics.measured import SHARE, Better, Measured
from guieval.metrics.registry import registered


class Leading(Shape):
    """A metric by its name. ``of_episodes``: it is of whole episodes; ``meaning``: what it is, and ``of``: over what, in
    words."""

    @property
    def name(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def better(self) -> Better | None: ...
    @property
    def of_episodes(self) -> bool: ...
    @property
    def meaning(self) -> str: ...
    @property
    def of(self) -> str: ...
    def measure(self, columns: RunColumns, judged: Judged, *, intervals: bool = True) -> Measured: ...
    def terms(self, columns: RunColumns, judged: Judged) -> Terms: ...


@dataclass(frozen=True)
class FigureUnder:
    """A figure under a policy for steps without a verdict."""

    figure: Figure
    policy: FailurePolicy
    unit = SHARE
    better: Better = "more"

    @property
    def name(self) -> str:
        """The source's name."""
        return self.figure.name

    @property
    def of_episodes(self) -> bool:
        """Whether it is of whole episodes."""
        return self.figure.measure in ("progress", "success", "score")

    @property
    def meaning(self) -> str:
        """What it is."""
        return self.figure.meaning

    @property
    def of(self) -> str:
        """What it is over."""
        return self.figure.denominator(self.policy)

    def measure(self, columns: RunColumns, judged: Judged, *, intervals: bool = True) -> Measured:
        """Its value on these steps."""
        return compute(self.figure, self.policy, columns, judged, intervals=intervals)

    def terms(self, columns: RunColumns, judged: Judged) -> Terms:
        """Its sums over episodes."""
        return terms(self.figure, self.policy, columns, judged)


ALL_EXACT = FigureUnder(EXACT_MATCH, ALL_STEPS)
"""Exact match over all steps."""


def leading(protocol: Protocol) -> list[Leading]:
    """Exact match over all steps, the protocol's own metrics, those of users; of online runs only the protocol's."""
    own = [FigureUnder(figure, protocol.failure) for figure in protocol.figures if figure != EXACT_MATCH]
    return [*own] if protocol.judges_outcomes else [ALL_EXACT, *own, *registered().values()]


def denominators(protocol: str, over: Mapping[str, str]) -> str:
    """What the metrics of a protocol are over, in a sentence; ``over`` is by their names."""
    named: dict[str, list[str]] = {}
    for metric, of in over.items():
        named.setdefault(of, []).append(metric)
    return f"{protocol}: " + "; ".join(f"{', '.join(metrics)}: of {of}" for of, metrics in named.items())
