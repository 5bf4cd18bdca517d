"""Points on the screen by density: scikit-learn's DBSCAN, with the number of executions as the weight of a point.

All distances are computed once, in memory of n² numbers, and serve several radii (:func:`separations`). scikit-learn gives a
border point to the cluster that it found first; here it goes to the nearest core, whatever the order of the points.

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
    ``min_samples`` executions are within ``radius`` of it, its own and those on the border included; cores within ``radius`` of
    each other belong to one cluster. A border point belongs to the cluster of the nearest core within ``radius`` (the first of
    equally near ones), so labels hardly depend on the order of the points.
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
    from sklearn.cluster import dbscan as scikit_learn_dbscan

    cores, labels = scikit_learn_dbscan(
        separation, eps=most, min_samples=min_samples, metric="precomputed", sample_weight=weights
    )
    border = np.setdiff1d(np.flatnonzero(labels != NOISE), cores, assume_unique=True)
    if len(border):
        labels[border] = labels[cores[separation[np.ix_(border, cores)].argmin(axis=1)]]
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
