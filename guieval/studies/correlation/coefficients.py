"""Does a metric of static data predict live performance? Least squares, Spearman's rho and Legendre curves of few points.

There are never more than a few models, so the p-value is exact if possible, and a correlation may not hold beyond the models
it was computed from. Sources: UI-S1 paper, appendix C (R² of a straight line); GUIEvalKit paper, Figure 3
(second-order Legendre curves) and Table 20 (its printed R² are the straight line's).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from guieval.errors import UsageError

MOST_EXACT = 8
"""Up to so many points the p-value of Spearman's rho is counted over all orders (8! = 40,320)."""
DEGREES = (1, 2, 3)
_SAME = 1e-12


@dataclass(frozen=True)
class Fit:
    """A least-squares polynomial of one degree.

    ``coefficients``: of the Legendre polynomials P0, P1, ... over ``domain`` (the smallest and the largest x) mapped to
    [-1, 1]. ``r2``: 1 - SS_res / SS_tot; ``None`` if y does not vary. It is 1 for any curve through every point.
    """

    degree: int
    coefficients: tuple[float, ...]
    domain: tuple[float, float]
    r2: float | None

    def at(self, x: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
        from numpy.polynomial import Legendre

        return np.asarray(Legendre(self.coefficients, domain=self.domain)(np.asarray(x, dtype=np.float64)))


@dataclass(frozen=True)
class Rank:
    """Spearman's rho with its two-sided p-value against "every order is as likely"; ``None`` if x or y does not vary.

    ``exact``: counted over all orders of y, ties and all; else by Student's t, good from about ten points on.
    """

    rho: float | None
    p_value: float | None
    method: Literal["exact", "t"]


@dataclass(frozen=True)
class Correlation:
    """How y depends on x over ``n`` models; ``fits`` are of degree 1 to 3 (the first is the straight line), if there are
    more points than coefficients and more distinct x than the degree."""

    n: int
    rank: Rank
    fits: tuple[Fit, ...]

    @property
    def r2(self) -> float | None:
        """R² of the straight line, the square of Pearson's r."""
        return self.fits[0].r2

    @property
    def warnings(self) -> list[str]:
        warnings = []
        if self.n < 10:
            warnings.append(f"only {self.n} points: one model more or less can change every number here")
        for fit in self.fits:
            if self.n - fit.degree - 1 == 1:
                warnings.append(f"the curve of degree {fit.degree} has {fit.degree + 1} coefficients for {self.n} points")
        return warnings


def correlate(x: Sequence[float], y: Sequence[float], degrees: Sequence[int] = DEGREES) -> Correlation:
    """The correlation of y (n values, e.g. success in a live environment) with x (n values, e.g. a metric of static data).

    Raises :class:`UsageError` below three points, for unlike numbers of values or one that is not finite, and if every x is
    the same.
    """
    across, up = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(across) != len(up):
        raise UsageError(f"there are {len(across)} values of x and {len(up)} of y; a correlation needs pairs")
    if len(across) < 3:
        raise UsageError(f"a correlation needs at least 3 points that have both values, got {len(across)}")
    if not (np.isfinite(across).all() and np.isfinite(up).all()):
        raise UsageError("a correlation needs finite numbers")
    if np.ptp(across) == 0:
        raise UsageError(f"every x is {across[0]:g}, so there is no correlation")
    usable = [degree for degree in degrees if degree + 1 < len(across) and degree < len(np.unique(across))]
    fits = tuple(fit(across, up, degree) for degree in usable)
    return Correlation(len(across), spearman(across, up), fits)


def fit(x: NDArray[np.float64], y: NDArray[np.float64], degree: int) -> Fit:
    """The polynomial of ``degree`` nearest to y in the sum of squares; x must have more than ``degree`` different values."""
    from numpy.polynomial import Legendre

    if len(np.unique(x)) <= degree:
        raise UsageError(f"a curve of degree {degree} needs {degree + 1} different values of x, got {len(np.unique(x))}")
    curve = Legendre.fit(x, y, degree)
    total = float(((y - y.mean()) ** 2).sum())
    left = float(((y - curve(x)) ** 2).sum())
    r2 = 1 - left / total if total > _SAME * float((y**2).sum()) else None
    low, high = (float(each) for each in curve.domain)
    return Fit(degree, tuple(float(each) for each in curve.coef), (low, high), r2)


def spearman(x: NDArray[np.float64], y: NDArray[np.float64]) -> Rank:
    """Spearman's rho, Pearson's r of the ranks, ties sharing the mean of theirs."""
    from scipy.stats import rankdata, spearmanr

    exact = len(x) <= MOST_EXACT
    method: Literal["exact", "t"] = "exact" if exact else "t"
    one, other = rankdata(x) - (len(x) + 1) / 2, rankdata(y) - (len(y) + 1) / 2
    scale = math.sqrt(float(one @ one) * float(other @ other))
    if scale == 0:
        return Rank(None, None, method)
    rho = min(1.0, max(-1.0, float(one @ other) / scale))
    if exact:
        orders = np.array(list(permutations(other.tolist())))
        as_far = np.abs(orders @ one) >= abs(float(one @ other)) - _SAME * scale
        return Rank(rho, float(as_far.mean()), method)
    return Rank(rho, float(spearmanr(x, y).pvalue), method)
