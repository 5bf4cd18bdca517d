"""DBSCAN of weighted points on the screen: equal points are one point with a weight, so a hundred equal clicks cost as one.

The distances of all pairs are worked out at once (512 points: about 1 ms), which also serves several radii
(:func:`separations`). Memory is n² numbers for n different points, far less than a step's executions usually ask for.

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
_ROWS_AT_ONCE = 32
"""Keeps what is worked out for 512 points at a time in the processor's cache, which is twice as fast."""
NOISE = -1
"""Label of a point that neither is in a dense place nor next to one."""


def dbscan(points: Floats, weights: Ints, radius: float, min_samples: int, metric: Metric = "l2") -> Ints:
    """(n,) the cluster of each point, numbered from 0 by first point, :data:`NOISE` for those in none.

    ``points``: (n, 2) in [0, 1000]; ``weights``: (n,) how many executions stand at each. A point is a *core* where the
    executions within ``radius`` of it, its own and those on the border included, are at least ``min_samples``; cores within
    ``radius`` of each other are of one cluster. A point that is no core goes with the nearest core within ``radius`` (of
    equally near ones with the first), so that labels hardly depend on the points' order; scikit-learn, whose labels are equal
    otherwise, gives such a point to whichever cluster it grew first.
    """
    return dbscan_of(separations(points, metric), limit(radius, metric), weights, min_samples)


def separations(points: Floats, metric: Metric) -> Floats:
    """(n, n) how far apart the points are: for ``l2`` the squared distance, for ``l1`` the sum of both axes'."""
    x, y = np.ascontiguousarray(points[:, 0]), np.ascontiguousarray(points[:, 1])
    apart = np.empty((len(points), len(points)))
    for start in range(0, len(points), _ROWS_AT_ONCE):
        own = slice(start, start + _ROWS_AT_ONCE)
        across, down = x[own, None] - x, y[own, None] - y
        size = np.square if metric == "l2" else np.abs
        np.add(size(across, out=across), size(down, out=down), out=apart[own])
    return apart


def limit(radius: float, metric: Metric) -> float:
    """What a separation may be at most within ``radius``."""
    return radius * radius if metric == "l2" else radius


def dbscan_of(separation: Floats, most: float, weights: Ints, min_samples: int) -> Ints:
    """:func:`dbscan` of points of which ``separation`` says how far apart they are; neighbours are at most ``most`` apart."""
    near: NDArray[np.bool_] = separation <= most
    core: NDArray[np.bool_] = near @ weights.astype(np.float64) >= min_samples
    labels = np.full(len(weights), NOISE, dtype=np.int64)
    cores = np.flatnonzero(core)
    if not len(cores):
        return labels
    labels[cores] = _components(near if len(cores) == len(core) else near[np.ix_(cores, cores)])
    others = np.flatnonzero(~core)
    if len(others):
        away = np.where(near[np.ix_(others, cores)], separation[np.ix_(others, cores)], np.inf)
        closest = away.argmin(axis=1)
        reached = np.isfinite(away[np.arange(len(others)), closest])
        labels[others[reached]] = labels[cores[closest[reached]]]
    return in_order(labels)


def in_order(labels: Ints) -> Ints:
    """The labels numbered from 0 by where each first stands; negative ones stay."""
    known = labels >= 0
    _, first, place = np.unique(labels[known], return_index=True, return_inverse=True)
    numbers = np.empty(len(first), dtype=np.int64)
    numbers[np.argsort(first)] = np.arange(len(first))
    found = labels.copy()
    found[known] = numbers[place]
    return found


def _components(near: NDArray[np.bool_]) -> Ints:
    """(n,) connected components of a symmetric relation; each point's row is looked at once."""
    labels = np.full(len(near), NOISE, dtype=np.int64)
    unseen = np.ones(len(near), dtype=np.bool_)
    number = 0
    for start in range(len(near)):
        if not unseen[start]:
            continue
        unseen[start], labels[start] = False, number
        reached = np.flatnonzero(near[start] & unseen)
        while len(reached):
            unseen[reached], labels[reached] = False, number
            reached = np.flatnonzero(near[reached].any(axis=0) & unseen)
        number += 1
    return labels
