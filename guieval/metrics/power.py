"""How small a difference between two models a benchmark can show, computed before anything is run.

Two models answer the same steps, so only the steps on which exactly one is right count; their share is the *disagreement* d. A
two-sided test at alpha finds a true difference D with probability ``power`` if

    D sqrt(n) = z(1 - alpha / 2) sqrt(d) + z(power) sqrt(d - D^2)

(R. Connor, "Sample size for testing differences in proportions for the paired-sample design", Biometrics 43, 1987). The steps
of an episode are alike, so n is the number of steps divided by the design effect 1 + (m - 1) icc, in which m is the mean
length of an episode, weighted by length, and icc the correlation within episodes *of the difference* (one model right and the
other wrong: 1, the other way round: -1, else 0). It is not that of one model's right and wrong: what makes an episode hard for
both models makes no difference (L. Kish, "Survey Sampling", 1965; icc by analysis of variance: A. Donner and N. Klar, "Design
and Analysis of Cluster Randomization Trials in Health Research", 2000). How often the test of :mod:`guieval.metrics.paired`
finds what is stated here is in docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

DISAGREEMENT, CORRELATION = 0.2, 0.1
"""Assumptions if no two runs are at hand: the share of steps on which one of two models is right, and the icc."""

UNKNOWN = 2
"""As many episodes fewer a test would need that knew how much they spread, instead of finding it out (docs/statistics.md)."""


def quantiles(power: float, alpha: float) -> tuple[float, float]:
    """The normal quantiles of a two-sided level and of a power."""
    from scipy.special import ndtri

    return float(ndtri(1 - alpha / 2)), float(ndtri(power))


def smallest_paired(n: float, disagreement: float = DISAGREEMENT, power: float = 0.8, alpha: float = 0.05) -> float | None:
    """The smallest true difference that a paired test on ``n`` independent steps finds with probability ``power``.

    ``None`` if no difference that the disagreement allows would be found.
    """
    level, found = quantiles(power, alpha)
    inside = n - level**2 + found**2
    if n <= 0 or inside < 0:
        return None
    smallest = math.sqrt(disagreement) * (level * math.sqrt(n) + found * math.sqrt(inside)) / (n + found**2)
    return smallest if smallest <= disagreement else None


def needed(difference: float, disagreement: float = DISAGREEMENT, power: float = 0.8, alpha: float = 0.05) -> float:
    """The number of independent steps on which a paired test finds ``difference`` with probability ``power``.

    Raises ``ValueError`` for a difference of 0, or above the disagreement.
    """
    if not 0 < difference <= disagreement:
        raise ValueError(f"models that disagree on {disagreement:g} of the steps cannot differ by {difference:g}")
    level, found = quantiles(power, alpha)
    return (level * math.sqrt(disagreement) + found * math.sqrt(disagreement - difference**2)) ** 2 / difference**2


def design_effect(lengths: Sequence[int], icc: float = CORRELATION) -> float:
    """By how much correlation within episodes of these lengths multiplies a metric's variance; 1 for single steps."""
    steps = sum(lengths)
    return 1 + (sum(length**2 for length in lengths) / steps - 1) * icc if steps else 1.0


def independent_steps(lengths: Sequence[int], icc: float = CORRELATION) -> float:
    """The number of independent steps that show as much as episodes of these lengths; 0 up to :data:`UNKNOWN` episodes."""
    return sum(lengths) / design_effect(lengths, icc) * max(0.0, 1 - UNKNOWN / len(lengths)) if lengths else 0.0


def even_lengths(steps: int, episodes: int) -> list[int]:
    """The lengths of ``episodes`` episodes that hold ``steps`` steps as evenly as possible."""
    return [steps // episodes + (place < steps % episodes) for place in range(episodes)]


def intraclass_correlation(values: Sequence[NDArray[np.bool_] | NDArray[np.integer]]) -> float | None:
    """The correlation of the steps' values within episodes, by analysis of variance; at least 0.

    ``values`` has an array for each episode. ``None`` without two episodes and a step more than episodes.
    """
    lengths = np.array([len(each) for each in values], dtype=np.float64)
    steps, episodes = lengths.sum(), len(lengths)
    if episodes < 2 or steps <= episodes:
        return None
    means = np.array([each.mean() for each in values])
    overall = float((lengths * means).sum() / steps)
    between = float((lengths * (means - overall) ** 2).sum()) / (episodes - 1)
    within = float(sum(((each - mean) ** 2).sum() for each, mean in zip(values, means, strict=True))) / (steps - episodes)
    typical = float(steps - (lengths**2).sum() / steps) / (episodes - 1)
    total = between + (typical - 1) * within
    return max(0.0, (between - within) / total) if total > 0 else None
