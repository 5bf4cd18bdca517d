"""Which of several metrics predicts another one best, over the same models?

R² of a straight line, Spearman's rho and Kendall's tau-b of each metric with the predicted one, and the differences between
the metrics. Intervals are percentile bootstrap intervals over models: the models are resampled, all metrics of a model
together, so differences are paired. They hold for models drawn like these ones, and say nothing of other kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from guieval.errors import UsageError
from guieval.metrics.intervals import LEVEL, Floats, Interval, sums
from guieval.metrics.measured import Measured

RESAMPLES = 5000


@dataclass(frozen=True)
class Prediction:
    """How each metric goes with the predicted one, over ``n`` models: :data:`MEASURES` by name, and the differences of two
    metrics (the first less the second) over the same resampled models; ``resamples`` and ``seed`` are those of the
    intervals."""

    n: int
    predictors: Mapping[str, Mapping[str, Measured]]
    differences: Mapping[str, Mapping[str, Measured]]
    resamples: int
    seed: int


def compare_predictors(
    metrics: Mapping[str, Sequence[float] | Floats],
    predicted: Sequence[float] | Floats,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Prediction:
    """Compare metrics by how they go with ``predicted``, all of them over the same n models in the same order.

    Raises :class:`UsageError` for fewer than 4 models, unlike numbers of values, and numbers that are not finite.
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
    drawn = np.random.default_rng(seed).integers(0, n, (resamples, n))
    rows = np.concatenate([np.arange(n)[None], drawn])  # the first row is the models themselves
    values = {
        name: {measure: compute(column[rows], y[rows]) for measure, compute in MEASURES.items()}
        for name, column in columns.items()
    }
    return Prediction(
        n=n,
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
        r2 = np.stack([_r2(np.asarray(column, dtype=np.float64)[rows], y[rows]) for column in metrics.values()])
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


def _pearson(x: Floats, y: Floats) -> Floats:
    """(r,) Pearson's r of each row of two (r, n) arrays; NaN if one does not vary."""
    one, other = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    scale = np.sqrt(sums(one**2) * sums(other**2))
    varied = (np.ptp(x, axis=1) > 0) & (np.ptp(y, axis=1) > 0)
    r: Floats = np.divide(sums(one * other), scale, out=np.full(len(x), np.nan), where=varied)
    return r


def _r2(x: Floats, y: Floats) -> Floats:
    return _pearson(x, y) ** 2


def _spearman(x: Floats, y: Floats) -> Floats:
    from scipy.stats import rankdata

    return _pearson(rankdata(x, axis=1), rankdata(y, axis=1))


def _kendall(x: Floats, y: Floats) -> Floats:
    """Tau-b: concordant less discordant pairs, over the geometric mean of the pairs that are not tied in x and in y."""
    first, second = np.triu_indices(x.shape[1], 1)
    one, other = np.sign(x[:, first] - x[:, second]), np.sign(y[:, first] - y[:, second])
    scale = np.sqrt(sums(one**2) * sums(other**2))
    tau: Floats = np.divide(sums(one * other), scale, out=np.full(len(x), np.nan), where=scale > 0)
    return tau


MEASURES: dict[str, Callable[[Floats, Floats], Floats]] = {"R²": _r2, "Spearman": _spearman, "Kendall": _kendall}
"""Each takes two (r, n) arrays, r sets of n models, and gives (r,) values."""
