"""Scaling laws: how a metric grows with the size of the training data.

*Log-linear*, y = a + b log2 x (GUIEvalKit paper, arXiv 2605.27134): least squares, and
Student's t. *Exponential*, y = A + B e^(C + kx) (UI-S1 paper, arXiv 2509.11543, section 4.4). The data determine only
the product B e^C, which is called B here (C = 0). Its k depends on the unit of x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np

from guieval.errors import DataError, UsageError, known_name
from guieval.metrics import Measured
from guieval.metrics.intervals import LEVEL, Floats, Interval, sums
from guieval.studies.csv_columns import number, read_columns

Form: TypeAlias = Literal["log-linear", "exponential"]
FORMS: tuple[Form, ...] = get_args(Form)
_NAMES: dict[Form, tuple[str, ...]] = {"log-linear": ("intercept", "slope"), "exponential": ("A", "B", "k")}
_SAME = 1e-12
"""Residuals so small against the values' own spread are rounding."""
_FLATTEST, _STEEPEST = 1e-4, 200.0
"""Least and greatest |k| times the range of x: below it is a straight line, above it a jump after the first size."""
_UNBOUNDED = 1000.0
"""An interval that ends more than this many ranges of y away is unbounded."""


@dataclass(frozen=True, eq=False)
class ScalingFit:
    """A fitted law over ``n`` points. The intervals of ``coefficients`` are infinite if the data do not bound them.

    ``r2``: 1 - SS_res / SS_tot; ``None`` if y does not vary. ``deviation``: the residuals' standard deviation, in y's unit,
    with n - p degrees of freedom. ``covariance``: (p, p) of the coefficients, in their order. As many points as coefficients
    determine the law exactly: then there are no intervals, and ``r2``, ``deviation`` and ``covariance`` are ``None``.
    """

    form: Form
    n: int
    coefficients: Mapping[str, Measured]
    r2: float | None
    deviation: float | None
    level: float
    covariance: Floats | None

    def __getitem__(self, name: str) -> Measured:
        """The coefficient of that name: intercept and slope, or A, B and k."""
        return self.coefficients[name]

    def at(self, sizes: Sequence[float] | Floats) -> Floats:
        """(m,) the law's value at each size."""
        return _values(self._gradient(sizes), self._estimates)

    def band(self, sizes: Sequence[float] | Floats) -> tuple[Floats, Floats]:
        """(m,) ends of the interval of the law's value at each size (not of a new measurement), linearised in A, B and k.

        NaN if the points determine the law exactly.
        """
        from scipy.special import stdtrit

        slopes, middle = self._gradient(sizes), self.at(sizes)
        if self.covariance is None:
            return np.full_like(middle, np.nan), np.full_like(middle, np.nan)
        spread = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", slopes, self.covariance, slopes), 0.0))
        reach = float(stdtrit(self.n - len(self.coefficients), (1 + self.level) / 2)) * spread
        return middle - reach, middle + reach

    @property
    def _estimates(self) -> Floats:
        return np.array([coefficient.value for coefficient in self.coefficients.values()], dtype=np.float64)

    def _gradient(self, sizes: Sequence[float] | Floats) -> Floats:
        return _gradient(self.form, np.asarray(sizes, dtype=np.float64), self._estimates)

    def formula(self, x: str = "x", y: str = "y") -> str:
        first, second, *rest = self._estimates.tolist()
        sign = "-" if second < 0 else "+"
        shape = f"log2({x})" if not rest else f"e^({rest[0]:.4g} {x})"
        return f"{y} = {first:.4g} {sign} {abs(second):.4g} {shape}"


def fit_scaling(form: str, sizes: Sequence[float], values: Sequence[float], level: float = LEVEL) -> ScalingFit:
    """Fit the law called ``form``; :class:`UsageError` for an unknown one, and as that fit raises."""
    fit = fit_log_linear if known_name("form", form, FORMS) == "log-linear" else fit_exponential
    return fit(sizes, values, level)


def fit_log_linear(sizes: Sequence[float], values: Sequence[float], level: float = LEVEL) -> ScalingFit:
    """Least squares of y = intercept + slope log2 x: the slope is the gain from each doubling of the data.

    ``sizes``: (n,) in episodes or steps, above 0; ``values``: (n,) in any unit. Intervals are Student's with n - 2 degrees of
    freedom, exact for equal normal errors. Raises :class:`UsageError` below 3 points or 2 different sizes, for a size that is
    not above 0 and for numbers that are not finite.
    """
    x, y = _points(sizes, values, level, least=3, different=2, zero=False)
    estimates, *_ = np.linalg.lstsq(_gradient("log-linear", x, y), y, rcond=None)
    return _fitted("log-linear", np.asarray(estimates, dtype=np.float64), x, y, level)


def fit_exponential(sizes: Sequence[float], values: Sequence[float], level: float = LEVEL) -> ScalingFit:
    """Least squares of y = A + B e^(kx): A is the limit of the curve (k < 0), B its distance from the limit at x = 0.

    ``sizes``: (n,) in any unit, not below 0 (0 is the model before training); k is per that unit. Intervals are profiles: an
    end is the value at which the residuals, with the other coefficients refitted, are too large by an F test. They may be
    skew, and infinite if the data do not bound them; 3 points determine the law exactly and have none. Raises
    :class:`UsageError` below 3 different sizes, for a size below 0, for values that do not vary, and if k cannot be
    distinguished from 0 or infinity.
    """
    x, y = _points(sizes, values, level, least=3, different=3, zero=True)
    if np.ptp(y) == 0:
        raise UsageError(f"every value is {y[0]:g}: an exponential law needs values that vary")
    problem = _Exponential(x, y)
    return _fitted("exponential", problem.fit(), x, y, level, problem)


def _fitted(
    form: Form, estimates: Floats, x: Floats, y: Floats, level: float, problem: _Exponential | None = None
) -> ScalingFit:
    """A fit from its estimates, with the profile intervals of ``problem``, or Student's without one."""
    from scipy.special import stdtrit

    design = _gradient(form, x, estimates)
    lost, total = float(((y - _values(design, estimates)) ** 2).sum()), float(((y - y.mean()) ** 2).sum())
    if lost <= (_SAME * (np.abs(y).max() or 1.0)) ** 2 * len(y):
        lost = 0.0
    free = len(y) - len(estimates)
    if not free:
        exact = {
            name: Measured(value, unit="", better=None) for name, value in zip(_NAMES[form], estimates.tolist(), strict=True)
        }
        return ScalingFit(form, len(y), exact, None, None, level, None)
    inverse = np.linalg.pinv(design.T @ design, rcond=1e-15, hermitian=True)
    covariance = np.asarray(inverse * (lost / free), dtype=np.float64)
    errors = np.sqrt(np.diag(covariance))
    quantile = float(stdtrit(free, (1 + level) / 2))
    if problem is None:
        ends = np.column_stack([estimates - quantile * errors, estimates + quantile * errors]).tolist()
    else:
        ends = problem.intervals(estimates, errors, quantile, free)
    coefficients = {
        name: Measured(
            value,
            unit="",
            better=None,
            interval=Interval(low, high, level, "student" if problem is None else "profile"),
            standard_error=error,
        )
        for name, value, error, (low, high) in zip(_NAMES[form], estimates.tolist(), errors.tolist(), ends, strict=True)
    }
    r2 = None if total == 0 else 1 - lost / total
    return ScalingFit(form, len(y), coefficients, r2, math.sqrt(lost / free), level, covariance)


def _gradient(form: Form, x: Floats, estimates: Floats) -> Floats:
    """(n, p) the law's derivatives by its coefficients, of which only k does not enter linearly."""
    if form == "log-linear":
        return np.column_stack([np.ones_like(x), np.log2(x)])
    curve = np.exp(estimates[2] * x)
    return np.column_stack([np.ones_like(x), curve, estimates[1] * x * curve])


def _values(gradient: Floats, estimates: Floats) -> Floats:
    return np.asarray(gradient[:, :2] @ estimates[:2])


def _points(
    sizes: Sequence[float], values: Sequence[float], level: float, *, least: int, different: int, zero: bool
) -> tuple[Floats, Floats]:
    x, y = np.asarray(sizes, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"sizes and values must be two rows of one length, got shapes {x.shape} and {y.shape}")
    if not 0 < level < 1:
        raise UsageError(f"the level of an interval is between 0 and 1, got {level!r}")
    for size in x.tolist():
        if not math.isfinite(size) or size < 0 or (size == 0 and not zero):
            raise UsageError(f"a size must be a number {'from 0 on' if zero else 'above 0'}, got {size:g}")
    if not np.isfinite(y).all():
        raise UsageError(f"a value must be a finite number, got {float(y[~np.isfinite(y)][0])!r}")
    if len(x) < least or len(np.unique(x)) < different:
        raise UsageError(
            f"{len(x)} points of {len(np.unique(x))} different sizes are too few: this law needs at least {least} points of "
            f"{different} different sizes"
        )
    return x, y


class _Exponential:
    """Least squares of A + B e^(kx): for a given k, the best A and B are those of a straight line in e^(kx).

    k is searched on a grid that becomes ever finer, so the result does not depend on a starting value.
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

        k, self._least = self._search()
        if abs(k) * self._range < 2 * _FLATTEST:
            raise UsageError(
                "the values lie on a straight line over the sizes: k cannot be distinguished from 0; try --form log-linear"
            )
        if abs(k) * self._range > _STEEPEST / 2:
            raise UsageError(
                "all change is between two neighbouring sizes: k cannot be distinguished from infinity; add sizes between"
            )
        line, *_ = np.linalg.lstsq(_gradient("exponential", self._x, np.array([0.0, 0.0, k]))[:, :2], self._y, rcond=None)
        start = np.array([*line, k])
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
            self._ends(a, of_a, lambda v: self._search(a=v)[1], most, (a - far, a + far)),
            self._ends(b, of_b, lambda v: self._search(b=v)[1], most, (b - far, b + far)),
            self._ends(k, of_k, lambda v: float(self._lost(self._kept(np.array([v])))[0]), most, (-steepest, steepest)),
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

    def _search(self, a: float | None = None, b: float | None = None) -> tuple[float, float]:
        ks, width = self._grid, 8 * math.log(self._grid[-1] / self._grid[-2])
        for _ in range(6):
            lost, width = self._lost(ks, a, b), width / 8
            place = int(np.argmin(lost))
            k = float(ks[place])
            ks = self._kept(k * np.exp(np.linspace(-width, width, 17)))
        return k, float(lost[place])

    def _kept(self, ks: Floats) -> Floats:
        return np.asarray(np.copysign(np.clip(np.abs(ks), _FLATTEST / self._range, _STEEPEST / self._range), ks))

    def _lost(self, ks: Floats, a: float | None = None, b: float | None = None) -> Floats:
        """(r,) squared residuals for each k, with the given A or B, and the best of those that are not given."""
        origin = np.where(ks < 0, self._x.min(), self._x.max())[:, None]  # keeps the powers of e at 1 or below
        curves, y = np.exp(ks[:, None] * (self._x - origin)), self._y - (a or 0.0)
        if b is not None:
            left = y - b * np.exp(np.minimum(ks[:, None] * origin, 600.0)) * curves
            return sums((left - left.mean(axis=1, keepdims=True)) ** 2)
        if a is None:
            curves, y = curves - curves.mean(axis=1, keepdims=True), y - y.mean()
        scale = (curves @ y) / sums(curves**2)
        return sums((y - scale[:, None] * curves) ** 2)


@dataclass(frozen=True)
class ScalingSeries:
    """The points of one series: (n,) sizes in the file's unit and (n,) values; ``x`` and ``y`` are their columns."""

    name: str
    x: str
    y: str
    sizes: tuple[float, ...]
    values: tuple[float, ...]


def read_scaling_table(file: Path, x: str | None = None, y: str | None = None, by: str | None = None) -> list[ScalingSeries]:
    """The series of a CSV file with a header, in the order they first occur; lines without a value are left out.

    ``x`` and ``y`` name the columns (default: the first one, and the next one that is not ``by``), ``by`` the column that
    names the series. Raises :class:`UsageError` for a file that cannot be read or has no such column, :class:`DataError` naming
    line and column for a value that is not a number.
    """
    names, lines = read_columns(file, [column for column in (x, y, by) if column is not None])
    across = x or next((name for name in names if name not in (y, by)), None)
    up = y or next((name for name in names if name not in (across, by)), None)
    if across is None or up is None:
        raise UsageError(f"{str(file)!r} needs a column of sizes and one of values; it has: {', '.join(names) or 'none'}")
    if across == up:
        raise UsageError(f"the column {up!r} cannot be both the sizes and the values; {str(file)!r} has: {', '.join(names)}")
    found: dict[str, list[tuple[float, float]]] = {}
    for place, line in lines:
        size, value = (number(line[column], file, place, column) for column in (across, up))
        if value is None:
            continue
        if size is None:
            raise DataError(f"{file}, line {place}, column {across}: expected a number, got {line[across]!r}")
        found.setdefault(line[by] if by else up, []).append((size, value))
    if not found:
        raise UsageError(f"{str(file)!r} has no line with a value in column {up!r}")
    return [ScalingSeries(name, across, up, *zip(*points, strict=True)) for name, points in found.items()]
