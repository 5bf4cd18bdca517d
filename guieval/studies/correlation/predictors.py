"""Which of several metrics predicts another one best, over the same models?

R² of a straight line, Spearman's rho and Kendall's tau-b of each metric with the predicted one, and the differences between
the metrics. Intervals are percentile bootstrap intervals over models, or over families of models that are alike: these are
resampled, all metrics of a model together, so differences are paired. They hold for models, or families, drawn like these
ones, and say nothing of other kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guieval.errors import UsageError
from guieval.metrics.intervals import LEVEL, Floats, Interval, sums
from guieval.metrics.measured import Measured

RESAMPLES = 5000


@dataclass(frozen=True)
class Prediction:
    """How each metric goes with the predicted one, over ``n`` models: :data:`MEASURES` by name, and the differences of two
    metrics (the first less the second) over the same resampled models; ``families`` is the number of families that were
    resampled whole (``None``: models were), ``resamples`` and ``seed`` are those of the intervals."""

    n: int
    families: int | None
    predictors: Mapping[str, Mapping[str, Measured]]
    differences: Mapping[str, Mapping[str, Measured]]
    resamples: int
    seed: int


def compare_predictors(
    metrics: Mapping[str, Sequence[float] | Floats],
    predicted: Sequence[float] | Floats,
    *,
    families: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Prediction:
    """Compare metrics by how they go with ``predicted``, all of them over the same n models in the same order.

    With ``families``, the family of each model, whole families are resampled (a cluster bootstrap). Raises :class:`UsageError`
    for fewer than 4 models or families, unlike numbers of values, and numbers that are not finite.
    """
    n, y = len(predicted), np.asarray(predicted, dtype=np.float64)
    if n < 4:
        raise UsageError(f"predictors are compared over at least 4 models that have every metric, got {n}")
    columns = {name: np.asarray(values, dtype=np.float64) for name, values in metrics.items()}
    for name, column in columns.items():
        if len(column) != n:
            raise UsageError(f"{name!r} has {len(column)} values for {n} models")
        if not (np.isfinite(column).all() and np.isfinite(y).all()):
            raise UsageError(f"{name!r} and the predicted metric need finite numbers")
    names, of = np.unique(np.arange(n) if families is None else families, return_inverse=True)
    if len(names) < 4:
        raise UsageError(
            f"families are resampled from at least 4, and the {n} models that have every metric are of {len(names)}"
        )
    drawn = np.random.default_rng(seed).integers(0, len(names), (resamples, len(names)))
    times = np.stack([np.bincount(each, minlength=len(names)) for each in drawn])
    weights = np.concatenate([np.ones((1, n)), times[:, of]])  # the first row is the models themselves
    values = {
        name: {measure: compute(column, y, weights) for measure, compute in MEASURES.items()}
        for name, column in columns.items()
    }
    return Prediction(
        n=n,
        families=None if families is None else len(names),
        predictors={
            name: {measure: _estimate(drawn_values) for measure, drawn_values in own.items()} for name, own in values.items()
        },
        differences={
            f"{one} - {other}": {name: _estimate(values[one][name] - values[other][name]) for name in MEASURES}
            for one, other in combinations(values, 2)
        },
        resamples=resamples,
        seed=seed,
    )


MOST_CHOSEN = 16
"""The largest number of models whose choices are gone through (65,536 of 16)."""


@dataclass(frozen=True)
class Choices:
    """What all choices of ``size`` models give: for each metric R² of the ``nearest`` choice, and the smallest and the largest.

    ``nearest`` are the places of the models whose largest distance to the stated values is the smallest.
    """

    size: int
    choices: int
    r2: tuple[tuple[float, float, float], ...]
    nearest: tuple[int, ...]


def choices_of_models(
    metrics: Mapping[str, Sequence[float]], predicted: Sequence[float], stated: Sequence[float]
) -> list[Choices]:
    """How R² with ``predicted`` hangs on the choice of models, from all n of them down to four.

    ``stated``: a value of R² for each metric. Choices over which a metric does not vary are left out. Raises
    :class:`UsageError` for fewer than 4 models and more than 16.
    """
    n, y = len(predicted), np.asarray(predicted, dtype=np.float64)
    if not 4 <= n <= MOST_CHOSEN:
        raise UsageError(f"choices are made of 4 to {MOST_CHOSEN} models that have every metric, got {n}")
    found = []
    for size in range(n, 3, -1):
        rows = np.array(list(combinations(range(n), size)))
        chosen = (rows[:, :, None] == np.arange(n)).any(axis=1).astype(np.float64)
        r2 = np.stack([_r2(np.asarray(column, dtype=np.float64), y, chosen) for column in metrics.values()])
        rows, r2 = rows[defined := ~np.isnan(r2).any(axis=0)], r2[:, defined]
        if not len(rows):
            continue
        best = int(np.abs(r2 - np.asarray(stated)[:, None]).max(axis=0).argmin())
        each = tuple((float(own[best]), float(own.min()), float(own.max())) for own in r2)
        found.append(Choices(size, len(rows), each, tuple(rows[best].tolist())))
    return found


class Common(NamedTuple):
    """The n models that have all metrics: their names, each metric and the predicted one over them, and how many lack one."""

    models: list[str]
    metrics: dict[str, list[float]]
    predicted: list[float]
    left_out: int


def common(points: Mapping[str, Sequence[tuple[str, float, float]]]) -> Common:
    """The models that have all metrics, in the order of the first; ``points`` of each are (model, metric, predicted)."""
    values = {metric: {name: (across, up) for name, across, up in of} for metric, of in points.items()}
    first = next(iter(values.values()))
    models = [name for name in first if all(name in own for own in values.values())]
    metrics = {metric: [own[name][0] for name in models] for metric, own in values.items()}
    return Common(models, metrics, [first[name][1] for name in models], len(set().union(*values.values())) - len(models))


def _estimate(values: Floats) -> Measured:
    """The first value, and the interval of the others; resamples in which a metric does not vary have none."""
    defined = values[1:][~np.isnan(values[1:])]
    if np.isnan(values[0]) or not len(defined):
        return Measured(None, unit="")
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    interval = Interval(float(low), float(high), LEVEL, "percentile")
    return Measured(float(values[0]), unit="", interval=interval)


def _pearson(x: Floats, y: Floats, weights: Floats) -> Floats:
    """(r,) Pearson's r of each set; NaN if x or y does not vary in it."""
    total = sums(weights)[:, None]
    one, other = x - sums(weights * x)[:, None] / total, y - sums(weights * y)[:, None] / total
    scale = np.sqrt(sums(weights * one**2) * sums(weights * other**2))
    varied = _varies(x, weights) & _varies(y, weights)
    r: Floats = np.divide(sums(weights * one * other), scale, out=np.full(len(weights), np.nan), where=varied)
    return r


def _varies(x: Floats, weights: Floats) -> NDArray[np.bool_]:
    of_set = np.where(weights > 0, x, np.nan)
    varies: NDArray[np.bool_] = np.nanmax(of_set, axis=1) > np.nanmin(of_set, axis=1)
    return varies


def _r2(x: Floats, y: Floats, weights: Floats) -> Floats:
    return _pearson(x, y, weights) ** 2


def _spearman(x: Floats, y: Floats, weights: Floats) -> Floats:
    return _pearson(_ranks(x, weights), _ranks(y, weights), weights)


def _ranks(x: Floats, weights: Floats) -> Floats:
    """(r, n) the rank of each model among those of a set, ties sharing the mean of theirs."""
    ranks: Floats = weights @ (np.sign(x[None, :] - x[:, None]) / 2) + (sums(weights)[:, None] + 1) / 2
    return ranks


def _kendall(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Tau-b: concordant less discordant pairs, over the geometric mean of the pairs that are not tied in x and in y."""
    one, other = np.sign(x[:, None] - x[None, :]), np.sign(y[:, None] - y[None, :])

    def pairs(signs: Floats) -> Floats:
        return sums((weights @ signs) * weights)

    scale = np.sqrt(pairs(one**2) * pairs(other**2))
    tau: Floats = np.divide(pairs(one * other), scale, out=np.full(len(weights), np.nan), where=scale > 0)
    return tau


MEASURES: dict[str, Callable[[Floats, Floats, Floats], Floats]] = {"R²": _r2, "Spearman": _spearman, "Kendall": _kendall}
"""Each takes (n,) x and y and (r, n) how often each model is in each of r sets, and gives (r,) values."""
