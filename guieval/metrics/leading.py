"""The metrics that tables and comparisons lead with: exact match over all steps, a protocol's own, and those of users.

Each can be computed on any steps that the protocol judged, and compared (:meth:`Measurable.terms`); its interval reaches over
what :meth:`Measurable.possible` says missing steps may have been.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from typing import Protocol as Shape

from guieval.evaluation import Protocol
from guieval.evaluation.protocol import EXACT_MATCH
from guieval.metrics.measured import Better
from guieval.metrics.protocol_metric import ALL_EXACT, ProtocolMetric
from guieval.metrics.registry import registered
from guieval.metrics.repeats import Measurable
from guieval.metrics.tasks import LEADING


class Leading(Measurable, Shape):
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


def leading(protocol: Protocol, unit: Literal["step", "task"] = "step") -> list[Leading]:
    """Exact match over all steps, the protocol's own metrics, those of users; or those of tasks. The first leads.

    Of a file with outcomes only the protocol's own.
    """
    if unit == "task":
        return [*LEADING]
    own = [ProtocolMetric(metric, protocol.failure) for metric in protocol.metrics if metric != EXACT_MATCH]
    return [*own] if protocol.judges_outcomes else [ALL_EXACT, *own, *registered().values()]


def denominators(protocol: str, over: Mapping[str, str]) -> str:
    """What the metrics of a protocol are over, in a sentence; ``over`` is by their names."""
    named: dict[str, list[str]] = {}
    for metric, of in over.items():
        named.setdefault(of, []).append(metric)
    return f"{protocol}: " + "; ".join(f"{', '.join(metrics)}: of {of}" for of, metrics in named.items())
