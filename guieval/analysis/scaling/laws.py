"""Scaling laws: how a metric grows with the size of the training data.

*Log-linear*, y = a + b log2 x (GUIEvalKit paper, arXiv 2605.27134, whose conclusion calls it approximate): least squares, and
Student's t. *Exponential*, y = A + B e^(C + kx) (UI-S1 paper, arXiv 2509.11543, section 4.4). The paper's four letters are
three quantities, for data show only the product B e^C: it is called B here, as with C = 0. Its k depends on the unit of x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from guieval.errors import UsageError, nearest

Floats: TypeAlias = NDArray[np.float64]
Form: TypeAlias = Literal["log-linear", "exponential"]
FORMS: tuple[Form, ...] = get_args(Form)
LEVEL = 0.95
_SAME = 1e-12
"""Residuals so small beside the values' own spread are rounding."""
_FLATTEST, _STEEPEST = 1e-4, 200.0
"""Least and greatest |k| times the range of x: below it is a straight line, above it a jump after the first size."""
_UNBOUNDED = 1000.0
"""An interval that ends more than this many ranges of y away is unbounded."""


@dataclass(frozen=True)
class Coefficient:
    """An estimate with its standard error and its interval, whose ends are infinite where the data do not bound it."""

    name: str
    value: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class ScalingFit:
    """A fitted law over ``n`` points.

    ``r2``: 1 - SS_res / SS_tot; ``None`` where y does not vary. ``deviation``: the residuals' standard deviation, in y's unit,
    with the degrees of freedom that the fit leaves. ``covariance``: (p, p) of the coefficients, in their order.
    """

    form: Form
    n: int
    coefficients: tuple[Coefficient, ...]
    r2: float | None
    deviation: float
    level: float
    covariance: Floats

    def __getitem__(self, name: str) -> Coefficient:
        """The coefficient of that name: intercept and slope, or A, B and k."""
        return next(each for each in self.coefficients if each.name == name)

    def at(self, sizes: Sequence[float] | Floats) -> Floats:
        """(m,) the law's value at each size."""
        x = np.asarray(sizes, dtype=np.float64)
        values = [each.value for each in self.coefficients]
        if self.form == "log-linear":
            return np.asarray(values[0] + values[1] * np.log2(x))
        return np.asarray(values[0] + values[1] * np.exp(values[2] * x))

    def band(self, sizes: Sequence[float] | Floats) -> tuple[Floats, Floats]:
        """(m,) ends of the interval of the law's value at each size (not of a new measurement), linearised in A, B and k."""
        from scipy.special import stdtrit

        x = np.asarray(sizes, dtype=np.float64)
        slopes = (
            _log_gradient(x) if self.form == "log-linear" else _exponential_gradient(x, *(self["B"].value, self["k"].value))
        )
        spread = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", slopes, self.covariance, slopes), 0.0))
        reach = float(stdtrit(self.n - len(self.coefficients), (1 + self.level) / 2)) * spread
        middle = self.at(x)
        return middle - reach, middle + reach

    def formula(self, x: str = "x", y: str = "y") -> str:
        """The law with its numbers."""
        first, second, *rest = (each.value for each in self.coefficients)
        sign = "-" if second < 0 else "+"
        shape = f"log2({x})" if not rest else f"e^({rest[0]:.4g} {x})"
        return f"{y} = {first:.4g} {sign} {abs(second):.4g} {shape}"


def fit_scaling(form: str, sizes: Sequence[float], values: Sequence[float], level: float = LEVEL) -> ScalingFit:
    """Fit the law called ``form``; :class:`UsageError` for an unknown one, and as that fit raises."""
    if form not in FORMS:
        raise UsageError(f"unknown form {form!r}{nearest(form, FORMS)}; known: {', '.join(FORMS)}")
    return (fit_log_linear if form == "log-linear" else fit_exponential)(sizes, values, level)


def fit_log_linear(sizes: Sequence[float], values: Sequence[float], level: float = LEVEL) -> ScalingFit:
    """Least squares of y = intercept + slope log2 x: the slope is what each doubling of the data adds.

    ``sizes``: (n,) in episodes or steps, above 0; ``values``: (n,) in any unit. Intervals are Student's with n - 2 degrees of
    freedom, exact for equal normal errors. Raises :class:`UsageError` below 3 points or 2 different sizes, for a size that is
    not above 0 and for numbers that are not finite.
    """
    x, y = _points(sizes, values, level, least=3, different=2, zero=False)
    design = _log_gradient(x)
    found, *_ = np.linalg.lstsq(design, y, rcond=None)
    return _fitted("log-linear", ("intercept", "slope"), np.asarray(found, dtype=np.float64), design, x, y, level, _students)


def fit_exponential(sizes: Sequence[float], values: Sequence[float], level: float = LEVEL) -> ScalingFit:
    """Least squares of y = A + B e^(kx): A is where the curve ends up (k < 0), B what it starts away from there.

    ``sizes``: (n,) in any unit, not below 0 (0 is the model before training); k is per that unit. Intervals are profiles: an
    end is where fixing the coefficient, and refitting the others, makes the residuals too large by an F test; they are as
    skew as the data make them, and infinite where the data do not bound them. Raises :class:`UsageError` below 4 points or 3
    different sizes, for a size below 0, for values that do not vary, and where k cannot be distinguished from 0 or infinity.
    """
    x, y = _points(sizes, values, level, least=4, different=3, zero=True)
    if np.ptp(y) == 0:
        raise UsageError(f"every value is {y[0]:g}: an exponential law needs values that vary")
    problem = _Exponential(x, y)
    found = problem.fit()
    design = _exponential_gradient(x, found[1], found[2])
    return _fitted("exponential", ("A", "B", "k"), found, design, x, y, level, problem.intervals)


Intervals: TypeAlias = Callable[[Floats, Floats, float, int], list[tuple[float, float]]]
"""From estimates (p,), standard errors (p,), the level's quantile of Student's t and n - p to each coefficient's interval."""


def _fitted(
    form: Form, names: Sequence[str], found: Floats, design: Floats, x: Floats, y: Floats, level: float, intervals: Intervals
) -> ScalingFit:
    """A fit from its estimates; ``design``: (n, p) the law's derivatives by its coefficients."""
    from scipy.special import stdtrit

    middle = design @ found if form == "log-linear" else found[0] + found[1] * np.exp(found[2] * x)
    lost, total = float(((y - middle) ** 2).sum()), float(((y - y.mean()) ** 2).sum())
    if lost <= (_SAME * (np.abs(y).max() or 1.0)) ** 2 * len(y):
        lost = 0.0
    free = len(y) - len(names)
    inverse = np.linalg.pinv(design.T @ design, rcond=1e-15, hermitian=True)
    covariance = np.asarray(inverse * (lost / free), dtype=np.float64)
    errors = np.sqrt(np.diag(covariance))
    ends = intervals(found, errors, float(stdtrit(free, (1 + level) / 2)), free)
    coefficients = tuple(
        Coefficient(name, float(value), float(error), *both)
        for name, value, error, both in zip(names, found, errors, ends, strict=True)
    )
    r2 = None if total == 0 else 1 - lost / total
    return ScalingFit(form, len(y), coefficients, r2, math.sqrt(lost / free), level, covariance)


def _students(found: Floats, errors: Floats, quantile: float, free: int) -> list[tuple[float, float]]:
    return [(float(v - quantile * e), float(v + quantile * e)) for v, e in zip(found, errors, strict=True)]


def _points(
    sizes: Sequence[float], values: Sequence[float], level: float, *, least: int, different: int, zero: bool
) -> tuple[Floats, Floats]:
    x, y = np.asarray(sizes, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"sizes and values must be two rows of one length, got shapes {x.shape} and {y.shape}")
    if not 0 < level < 1:
        raise UsageError(f"the level of an interval lies between 0 and 1, got {level!r}")
    for size in x.tolist():
        if not math.isfinite(size) or size < 0 or (size == 0 and not zero):
            raise UsageError(f"a size must be a number {'from 0 on' if zero else 'above 0'}, got {size:g}")
    if not np.isfinite(y).all():
        raise UsageError(f"a value must be a finite number, got {float(y[~np.isfinite(y)][0])!r}")
    if len(x) < least or len(np.unique(x)) < different:
        raise UsageError(
            f"{len(x)} points of {len(np.unique(x))} different sizes are too few: intervals of this law need at least {least} "
            f"points of {different} different sizes"
        )
    return x, y


def _log_gradient(x: Floats) -> Floats:
    """(n, 2) derivatives by intercept and slope."""
    return np.column_stack([np.ones_like(x), np.log2(x)])


def _exponential_gradient(x: Floats, b: float, k: float) -> Floats:
    """(n, 3) derivatives by A, B and k."""
    decay = np.exp(k * x)
    return np.column_stack([np.ones_like(x), decay, b * x * decay])


class _Exponential:
    """The residuals of A + B e^(kx) as functions of k alone, for given k the best A and B are a straight line's.

    Searched over all k at once and then ever closer, so no starting value decides what is found.
    """

    def __init__(self, x: Floats, y: Floats) -> None:
        self._x, self._y = x, y
        self._range = float(np.ptp(x))
        steps = np.geomspace(_FLATTEST, _STEEPEST, 300) / self._range
        self._grid = np.concatenate([-steps[::-1], steps])
        self._least = math.nan

    def fit(self) -> Floats:
        """(3,) A, B and k of least squares."""
        from scipy.optimize import least_squares

        k, self._least = self._search(self._any)
        if abs(k) * self._range < 2 * _FLATTEST:
            raise UsageError(
                "the values lie on a straight line over the sizes: k cannot be distinguished from 0; try --form log-linear"
            )
        if abs(k) * self._range > _STEEPEST / 2:
            raise UsageError(
                "all change lies between two neighbouring sizes: k cannot be distinguished from infinity; add sizes between"
            )
        start = self._line(k)
        scale = np.abs(start)  # A, B and k may differ by many orders of magnitude
        scale[0] = max(scale[0], float(np.ptp(self._y)))

        def residuals(scaled: Floats) -> Floats:
            a, b, rate = scaled * scale
            return np.asarray(a + b * np.exp(rate * self._x) - self._y)

        solved = least_squares(residuals, start / scale, method="lm", xtol=1e-15, ftol=1e-15, gtol=1e-15)
        self._least = min(self._least, 2 * float(solved.cost))
        return np.asarray(solved.x * scale, dtype=np.float64)

    def intervals(self, found: Floats, errors: Floats, quantile: float, free: int) -> list[tuple[float, float]]:
        """Profile intervals of A, B and k."""
        if not errors.any():
            return [(float(value), float(value)) for value in found]
        most = self._least * (1 + quantile**2 / free)
        far = _UNBOUNDED * float(np.ptp(self._y))
        a, b, k = found.tolist()
        of_a, of_b, of_k = errors.tolist()
        steepest = _STEEPEST / self._range
        return [
            self._ends(a, of_a, lambda v: self._search(lambda ks: self._given_a(ks, v))[1], most, (a - far, a + far)),
            self._ends(b, of_b, lambda v: self._search(lambda ks: self._given_b(ks, v))[1], most, (b - far, b + far)),
            self._ends(k, of_k, lambda v: float(self._any(np.array([self._off_zero(v)]))[0]), most, (-steepest, steepest)),
        ]

    def _ends(
        self, value: float, error: float, residuals: Callable[[float], float], most: float, within: tuple[float, float]
    ) -> tuple[float, float]:
        """Where the residuals first exceed ``most`` on either side; infinite beyond ``within``."""
        from scipy.optimize import brentq

        ends = []
        for limit, sign in zip(within, (-1.0, 1.0), strict=True):
            inside, step = value, error or abs(value) * 0.01 or _SAME
            while True:
                outside = inside + sign * step
                if sign * (outside - limit) >= 0:
                    ends.append(sign * math.inf)
                    break
                if residuals(outside) > most:
                    ends.append(float(brentq(lambda v: residuals(v) - most, inside, outside, rtol=1e-8)))
                    break
                inside, step = outside, 1.6 * step
        return ends[0], ends[1]

    def _search(self, residuals: Callable[[Floats], Floats]) -> tuple[float, float]:
        """The k of least residuals, and these."""
        ks, width = self._grid, 0.0
        for _ in range(6):
            lost = residuals(ks)
            place = int(np.argmin(lost))
            width = math.log(self._grid[-1] / self._grid[-2]) if ks is self._grid else width / 8
            k = float(ks[place])
            ks = self._kept(k * np.exp(np.linspace(-width, width, 17)))
        return k, float(lost[place])

    def _kept(self, ks: Floats) -> Floats:
        return np.asarray(np.sign(ks) * np.clip(np.abs(ks), _FLATTEST / self._range, _STEEPEST / self._range))

    def _off_zero(self, k: float) -> float:
        """``k``, or so little that the curve is a straight line."""
        return k if abs(k) * self._range >= _FLATTEST else math.copysign(_FLATTEST / self._range, k)

    def _curves(self, ks: Floats) -> tuple[Floats, Floats]:
        """(r, n) e^(k (x - x')) for each k, with the x' that keeps it at most 1, and (r,) k x'."""
        origin = np.where(ks < 0, self._x.min(), self._x.max())
        return np.exp(ks[:, None] * (self._x[None] - origin[:, None])), ks * origin

    def _any(self, ks: Floats) -> Floats:
        """(r,) squared residuals of the best A and B for each k."""
        curves, _ = self._curves(ks)
        away, y = curves - curves.mean(axis=1, keepdims=True), self._y - self._y.mean()
        slope = (away @ y) / (away**2).sum(axis=1)
        return np.asarray(((y[None] - slope[:, None] * away) ** 2).sum(axis=1))

    def _given_a(self, ks: Floats, a: float) -> Floats:
        """(r,) squared residuals of the best B for each k."""
        curves, _ = self._curves(ks)
        y = self._y - a
        scale = (curves @ y) / (curves**2).sum(axis=1)
        return np.asarray(((y[None] - scale[:, None] * curves) ** 2).sum(axis=1))

    def _given_b(self, ks: Floats, b: float) -> Floats:
        """(r,) squared residuals of the best A for each k."""
        curves, logs = self._curves(ks)
        left = self._y[None] - b * np.exp(np.minimum(logs, 600.0))[:, None] * curves
        return np.asarray(((left - left.mean(axis=1, keepdims=True)) ** 2).sum(axis=1))

    def _line(self, k: float) -> Floats:
        """(3,) the best A and B for one k, with it."""
        design = np.column_stack([np.ones_like(self._x), np.exp(k * self._x)])
        found, *_ = np.linalg.lstsq(design, self._y, rcond=None)
        return np.array([found[0], found[1], k])
