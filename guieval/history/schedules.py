"""Schedules: the probability p that a step of a history is the model's own, from the history's first step to its last.

Source: GUIEvalKit paper, appendix D.2.2, equations 11 and 12. The paper's schedule is the normalised logistic; a straight line
and a constant are available too. All functions are pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guieval.errors import UsageError, nearest

Shape: TypeAlias = Literal["logistic", "linear", "constant"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
Regime: TypeAlias = Literal["increasing", "stationary", "decreasing"]
REGIMES: tuple[Regime, ...] = get_args(Regime)
KAPPA = 16.0
"""The sharpness in the paper."""
_FLATTEST, _SHARPEST = 0.01, 1000.0
_SAME = 1e-9


def normalised_logistic(x: ArrayLike, kappa: float, mu: float) -> NDArray[np.float64]:
    """nlogi+ of equation 11 at x in [0, 1]: 0 at 0, 1 at 1, steepest at ``mu``; nlogi- is 1 minus it. Shape as ``x``."""
    from scipy.special import expit

    at = np.asarray(x, dtype=np.float64)
    low, high = expit(-kappa * mu), expit(kappa * (1 - mu))
    return np.asarray((expit(kappa * (at - mu)) - low) / (high - low), dtype=np.float64)


def mean_of_logistic(kappa: float, mu: float) -> float:
    """The mean of nlogi+ over x in [0, 1] in closed form: the antiderivative of a sigmoid is ln(1 + e^x)."""
    from scipy.special import expit

    low, high = float(expit(-kappa * mu)), float(expit(kappa * (1 - mu)))
    area = float(np.logaddexp(0.0, kappa * (1 - mu)) - np.logaddexp(0.0, -kappa * mu)) / kappa
    return (area - low) / (high - low)


def centre_for(mean: float, kappa: float) -> float:
    """The mu in [0, 1] at which nlogi+ has this mean (which decreases with mu), by Brent's method.

    The means at mu 1 and at mu 0 are the bounds (:func:`mean_of_logistic`); beyond a bound, its mu is returned, since rounding
    can move a mean just within the bounds of a schedule onto or beyond them.
    """
    from scipy.optimize import brentq

    if mean >= mean_of_logistic(kappa, 0.0):
        return 0.0
    if mean <= mean_of_logistic(kappa, 1.0):
        return 1.0
    return float(brentq(lambda mu: mean_of_logistic(kappa, mu) - mean, 0.0, 1.0, xtol=1e-14, rtol=1e-14))


def admissible_means(start: float, end: float, shape: Shape = "logistic", kappa: float = KAPPA) -> tuple[float, float]:
    """The lowest and the highest E[p] of a schedule from ``start`` to ``end``.

    A normalised logistic approaches them as mu in (0, 1) approaches 1 and 0. With kappa 16 and from 0 to 1 they are 0.087 and
    0.913. A line or a constant schedule has one mean.
    """
    if start == end or shape != "logistic":
        middle = (start + end) / 2
        return middle, middle
    low, gap = min(start, end), abs(end - start)
    return low + gap * mean_of_logistic(kappa, 1.0), low + gap * mean_of_logistic(kappa, 0.0)


@dataclass(frozen=True)
class Schedule:
    """The probability that a step of the history is the model's own, from ``start`` (x = 0) to ``end`` (x = 1).

    The paper's p_lb is the smaller of the two, its gap their distance; p+ rises, p- falls, and without a gap p is constant.
    ``mean`` is E[p], the mean of p over x in [0, 1]: among the possible definitions it is the one that depends only on the
    schedule, as in the paper, and not on the lengths of histories. By default it is midway, where mu is 0.5. Raises
    :class:`UsageError` for probabilities outside [0, 1], a kappa outside [0.01, 1000], and a mean that no mu in (0, 1) gives.
    """

    start: float
    end: float
    shape: Shape = "logistic"
    kappa: float = KAPPA
    mean: float | None = None

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"a schedule's {name} is {getattr(self, name)!r}: expected a probability from 0 to 1")
        if self.shape not in SHAPES:
            raise UsageError(
                f"unknown schedule {self.shape!r}{nearest(str(self.shape), SHAPES)}; it is one of {', '.join(SHAPES)}"
            )
        if self.shape == "constant" and self.start != self.end:
            raise UsageError(f"a constant schedule cannot go from {self.start:g} to {self.end:g}; use linear or logistic")
        if not _FLATTEST <= self.kappa <= _SHARPEST:
            raise UsageError(f"kappa is {self.kappa!r}: expected a number from {_FLATTEST:g} to {_SHARPEST:g}")
        low, high = admissible_means(self.start, self.end, self.shape, self.kappa)
        if self.mean is None:
            object.__setattr__(self, "mean", (self.start + self.end) / 2)
        elif low == high and not abs(self.mean - low) <= _SAME:
            raise UsageError(f"the mean is {self.mean!r}: a {self._words} always has the mean {low:.6g}")
        elif low < high and not low < self.mean < high:
            raise UsageError(
                f"the mean is {self.mean!r}: a {self._words} with kappa {self.kappa:g} has one between {low:.6g} and {high:.6g}"
            )

    @property
    def _words(self) -> str:
        return f"{self.shape} schedule from {self.start:.4g} to {self.end:.4g}"

    @property
    def regime(self) -> Regime:
        """Whether the model's own steps become more or less likely towards the current step."""
        if self.start == self.end:
            return "stationary"
        return "increasing" if self.start < self.end else "decreasing"

    @property
    def gap(self) -> float:
        """``end`` - ``start``, in [-1, 1]: the temporal sampling gap, with its sign."""
        return self.end - self.start

    @cached_property
    def mu(self) -> float | None:
        """The centre at which the logistic has the mean, in [0, 1]; ``None`` for other schedules."""
        if self.shape != "logistic" or self.start == self.end or self.mean is None:
            return None
        share = (self.mean - min(self.start, self.end)) / abs(self.gap)
        return centre_for(share if self.start < self.end else 1 - share, self.kappa)

    def at(self, x: ArrayLike) -> NDArray[np.float64]:
        """p at the step ratio x in [0, 1] (equation 12). Shape as ``x``."""
        ratio = np.asarray(x, dtype=np.float64)
        if self.start == self.end:
            return np.full(ratio.shape, self.start)
        risen = ratio if self.mu is None else normalised_logistic(ratio, self.kappa, self.mu)
        if self.start > self.end:
            risen = 1 - risen
        return np.clip(min(self.start, self.end) + abs(self.gap) * risen, 0.0, 1.0)

    def probabilities(self, length: int) -> NDArray[np.float64]:
        """p of each step of a history of T = ``length`` steps, oldest first: p at (t + 1) / T. Shape (T,).

        So the step before the current one has ``end``, also in a history of one step, and long histories begin near ``start``.
        The mean over a history is therefore not E[p] but closer to ``end``, especially for short histories.
        """
        return self.at((np.arange(length) + 1) / length) if length else np.empty(0)


def schedule_name(schedule: Schedule) -> str:
    """A schedule in a few characters, for the name of a folder, e.g. ``0-0.667-mean0.3812``."""
    mean = math.nan if schedule.mean is None else schedule.mean
    return f"{schedule.start:.3g}-{schedule.end:.3g}-mean{mean:.4f}"
