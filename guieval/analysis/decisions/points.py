"""Weighted DBSCAN on the screen: equal points are one point with a weight, so a hundred equal clicks cost as much as one.

All distances are computed at once, in memory of n² numbers, so one matrix serves several radii (:func:`separations`). That is
why this is not scikit-learn's DBSCAN, which searches the neighbours again for every radius, needs more than a millisecond even
for two points, and assigns a border point by the order of the points; the tests compare the two.

Source: M. Ester, H.-P. Kriegel, J. Sander, X. Xu, "A density-based algorithm for discovering clusters", KDD 1996.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Metric: TypeAlias = Literal["l2", "l1"]
METRICS: tuple[Metric, ...] = ("l2", "l1")
NOISE = -1
"""Label of a point that is neither a core nor within the radius of one."""


def dbscan(points: Floats, weights: Ints, radius: float, min_samples: int, metric: Metric = "l2") -> Ints:
    """(n,) the cluster of each point, numbered from 0 by first point; :data:`NOISE` for points in no cluster.

    ``points``: (n, 2) in [0, 1000]; ``weights``: (n,) the number of executions at each. A point is a *core* if at least
    ``min_samples`` executions lie within ``radius`` of it, its own and those on the border included; cores within ``radius`` of
    each other belong to one cluster. A border point belongs to the cluster of the nearest core within ``radius`` (the first of
    equally near ones), so labels hardly depend on the order of the points. scikit-learn assigns a border point to the cluster
    that it grew first; all other labels are equal.
    """
    return dbscan_of(separations(points, metric), limit(radius, metric), weights, min_samples)


def separations(points: Floats, metric: Metric) -> Floats:
    """(n, n) distances between all points: squared for ``l2``, the sum over both axes for ``l1``."""
    from scipy.spatial.distance import cdist

    return cdist(points, points, "sqeuclidean" if metric == "l2" else "cityblock")


def limit(radius: float, metric: Metric) -> float:
    """The largest separation within ``radius``."""
    return radius * radius if metric == "l2" else radius


def dbscan_of(separation: Floats, most: float, weights: Ints, min_samples: int) -> Ints:
    """:func:`dbscan` on a matrix of separations; neighbours are at most ``most`` apart."""
    from scipy.sparse.csgraph import connected_components

    near: NDArray[np.bool_] = separation <= most
    core: NDArray[np.bool_] = near @ weights.astype(np.float64) >= min_samples
    labels = np.full(len(weights), NOISE, dtype=np.int64)
    cores = np.flatnonzero(core)
    if not len(cores):
        return labels
    labels[cores] = connected_components(near[np.ix_(cores, cores)], directed=False)[1]
    others = np.flatnonzero(~core)
    if len(others):
        away = np.where(near[np.ix_(others, cores)], separation[np.ix_(others, cores)], np.inf)
        closest = away.argmin(axis=1)
        reached = np.isfinite(away[np.arange(len(others)), closest])
        labels[others[reached]] = labels[cores[closest[reached]]]
    return in_order(labels)


def in_order(labels: Ints) -> Ints:
    """The labels renumbered from 0 by first occurrence; negative labels stay."""
    known = labels >= 0
    _, first, place = np.unique(labels[known], return_index=True, return_inverse=True)
    numbers = np.empty(len(first), dtype=np.int64)
    numbers[np.argsort(first)] = np.arange(len(first))
    ordered = labels.copy()
    ordered[known] = numbers[place]
    return ordered
