"""How much the decision metrics depend on the radius and the metric: Tables 10 to 15 of the GUIEvalKit paper (C.1.4).

One pass over a run clusters each step's points under every radius and metric that a table needs; distances are computed once
per metric, and everything but points is clustered once. The scale adjustment of L1 and L2 is computed as published and the
other way round (docs/studies/decisions.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from guieval.metrics import Measured
from guieval.steps import StepKey
from guieval.studies.decisions.clustering import ClusterSettings, entropy, literals, noise_apart
from guieval.studies.decisions.executions import StepExecutions
from guieval.studies.decisions.measures import PUBLISHED, Thresholds, mean_of, numbered
from guieval.studies.decisions.points import Floats, Ints, Metric, dbscan_of, limit, separations
from guieval.studies.decisions.shifts import DEC, INC, support_trend
from guieval.studies.decisions.text_clusters import cluster_texts

SCALE = (math.sqrt(2) + 1) / 2
"""The paper's factor between the radii of L1 and L2."""
SUPPORT_RADII = (5.0, 15.0, 35.0, 50.0, 70.0, 100.0)
"""Table 10."""
ALIGNED = ((5.0, 70.0), (15.0, 70.0), (25.0, 70.0), (35.0, 70.0), (70.0, 100.0), (35.0, 100.0))
"""Table 11."""
MOVED = ((5.0, 30.0), (10.0, 30.0), (30.0, 50.0), (50.0, 70.0), (70.0, 100.0), (100.0, 140.0))
"""Table 12."""
METRIC_RADII = (10.0, 20.0, 30.0, 50.0, 70.0, 100.0)
"""Table 13."""
TREND_RADII = (30.0, 90.0, 140.0)
"""Table 14, next to the baseline."""
DIAMETER = 1000 * 2**0.5
"""Of the screen, in its thousandths."""
_DUST = 1e-12


class Neighbourhood(NamedTuple):
    """Which points are neighbours."""

    metric: Metric
    radius: float

    def __str__(self) -> str:
        return f"{self.metric.upper()}, ε = {self.radius:.4g}"


Pair = tuple[Neighbourhood, Neighbourhood]


def l2(radius: float) -> Neighbourhood:
    """Euclidean, the paper's own."""
    return Neighbourhood("l2", radius)


def as_printed(radius: float) -> Pair:
    """L1 at the radius and L2 at 1.207 times that, as the paper states."""
    return Neighbourhood("l1", radius), l2(SCALE * radius)


def turned_about(radius: float) -> Pair:
    """L1 at 1.207 times the radius and L2 at the radius, as the shapes of the two balls require."""
    return Neighbourhood("l1", SCALE * radius), l2(radius)


def moves() -> tuple[Pair, ...]:
    """Every pair whose clusterings' distance is reported: tables 12 and 13, and 13 the other way round."""
    across = [make(radius) for make in (as_printed, turned_about) for radius in METRIC_RADII]
    return (*((l2(one), l2(other)) for one, other in MOVED), *across)


def neighbourhoods(baseline: float) -> tuple[Neighbourhood, ...]:
    """Every neighbourhood that a table needs, once; ``baseline`` is the radius that the others are compared with."""
    found = [l2(baseline), *map(l2, SUPPORT_RADII), *map(l2, TREND_RADII)]
    found += [l2(radius) for pair in ALIGNED for radius in pair]
    found += [each for make in (as_printed, turned_about) for each in make(baseline)]
    found += [each for pair in moves() for each in pair]
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """One run under every neighbourhood; arrays over its m steps that have a decision, in the order they were read.

    ``right`` and ``n``: exact and all measured executions. ``decisions``: K, isolated points among them; ``diversity``: nats.
    ``moved``: of each pair of neighbourhoods the normalised 1-Wasserstein distance of the decisions' prototypes, one value
    for each step and type of points (CLICK, LONG_PRESS) that it has, together with the step's row.
    """

    title: str
    settings: ClusterSettings
    keys: tuple[StepKey, ...]
    episode: Ints
    right: Ints
    n: Ints
    decisions: dict[Neighbourhood, Ints]
    diversity: dict[Neighbourhood, Floats]
    moved: dict[Pair, Floats]
    moved_row: Ints

    @property
    def baseline(self) -> Neighbourhood:
        """The L2 neighbourhood of the settings' radius."""
        return l2(self.settings.radius)

    def mean_decisions(self, at: Neighbourhood) -> Measured:
        """The mean |D| over steps (Table 10)."""
        return mean_of(self.decisions[at], self.episode)

    def mean_support(self, at: Neighbourhood) -> Measured:
        """The mean effective support size over steps."""
        return mean_of(np.exp(self.diversity[at]), self.episode)

    def r2(self, one: Neighbourhood, other: Neighbourhood) -> float | None:
        """How well |D| under one predicts |D| under the other: R² of a line over steps (Table 11).

        ``None`` if one of them does not vary.
        """
        first, second = self.decisions[one].astype(np.float64), self.decisions[other].astype(np.float64)
        if len(first) < 2 or not np.ptp(first) or not np.ptp(second):
            return None
        return float(np.corrcoef(first, second)[0, 1] ** 2)

    def mean_moved(self, pair: Pair) -> Measured:
        """The mean normalised distance over steps and types of points (tables 12 and 13)."""
        return mean_of(self.moved[pair], self.episode[self.moved_row])


def sensitivity(executions: Iterable[StepExecutions], settings: ClusterSettings, title: str = "") -> Sensitivity:
    """Cluster every step under every neighbourhood of the paper's tables, and of ``settings.radius`` as their baseline.

    The other settings hold throughout; steps without any decision are left out.
    """
    needed, pairs = neighbourhoods(settings.radius), moves()
    moving = dict.fromkeys(each for pair in pairs for each in pair)
    keys: list[StepKey] = []
    right: list[int] = []
    n: list[int] = []
    sizes: list[list[int]] = []
    entropies: list[list[float]] = []
    distances: list[list[float]] = []
    moved_row: list[int] = []
    for step in executions:
        by_type = literals(step.actions, step.counts)
        if not by_type:
            continue
        fixed: list[Ints] = []
        clustered: list[dict[Neighbourhood, Ints]] = []
        for kind, distinct in by_type.items():
            if kind in ("CLICK", "LONG_PRESS"):
                points = np.array(distinct.values, dtype=np.float64)
                labels_at = _labels(points, distinct.counts, needed, settings)
                clustered.append({at: _sizes(labels, distinct.counts) for at, labels in labels_at.items()})
                centres = {at: _centres(points, distinct.counts, labels_at[at]) for at in moving}
                distances.append([wasserstein(*centres[one], *centres[other]) / DIAMETER for one, other in pairs])
                moved_row.append(len(keys))
            elif kind in ("TYPE", "OPEN"):
                labels, _ = cluster_texts(list(map(str, distinct.values)), settings.loose, settings.strict)
                fixed.append(_sizes(labels, distinct.counts))
            else:
                fixed.append(distinct.counts)
        counted = [np.concatenate([*fixed, *(sizes_at[at] for sizes_at in clustered)]) for at in needed]
        keys.append(step.task.key)
        right.append(step.right)
        n.append(step.n)
        sizes.append(list(map(len, counted)))
        entropies.append(list(map(entropy, counted)))
    size = np.array(sizes, dtype=np.int64).reshape(-1, len(needed))
    diversity = np.array(entropies, dtype=np.float64).reshape(-1, len(needed))
    moved = np.array(distances, dtype=np.float64).reshape(-1, len(pairs))
    return Sensitivity(
        title=title,
        settings=settings,
        keys=tuple(keys),
        episode=numbered(keys)[1],
        right=np.array(right, dtype=np.int64),
        n=np.array(n, dtype=np.int64),
        decisions={at: size[:, place] for place, at in enumerate(needed)},
        diversity={at: diversity[:, place] for place, at in enumerate(needed)},
        moved={pair: moved[:, place] for place, pair in enumerate(pairs)},
        moved_row=np.array(moved_row, dtype=np.int64),
    )


def wasserstein(points: Floats, masses: Floats, others: Floats, other_masses: Floats) -> float:
    """The 1-Wasserstein distance of two distributions, in thousandths of the screen.

    ``points`` (k, 2) and ``others`` (l, 2) carry masses (k,) and (l,), which each sum to 1. The ground cost is Euclidean. Mass
    that both distributions have at the same point is removed first, since it does not move.
    """
    left: dict[tuple[float, float], float] = {}
    for sign, places, held in ((1.0, points, masses), (-1.0, others, other_masses)):
        for (x, y), mass in zip(places.tolist(), held.tolist(), strict=True):
            left[x, y] = left.get((x, y), 0.0) + sign * mass
    sources = [(point, mass) for point, mass in left.items() if mass > _DUST]
    sinks = [(point, -mass) for point, mass in left.items() if mass < -_DUST]
    if not sources or not sinks:
        return 0.0
    start, supply = np.array([point for point, _ in sources]), np.array([mass for _, mass in sources])
    end, demand = np.array([point for point, _ in sinks]), np.array([mass for _, mass in sinks])
    demand *= supply.sum() / demand.sum()  # both are what rounding left of the same mass
    costs = np.hypot(start[:, None, 0] - end[:, 0], start[:, None, 1] - end[:, 1])
    if len(sources) == 1 or len(sinks) == 1:
        return float((costs * supply[:, None] * demand).sum() / supply.sum())
    return _transport(costs, supply, demand)


def _transport(costs: Floats, supply: Floats, demand: Floats) -> float:
    """The least cost of carrying the supplies (k,) to the demands (l,) at costs (k, l) each."""
    from scipy.optimize import LinearConstraint, milp
    from scipy.sparse import csr_array

    k, l = costs.shape  # noqa: E741  # the customary letters of the transport problem
    lane = np.arange(k * l)
    rows = np.concatenate([lane // l, k + lane % l])
    sums = csr_array((np.ones(2 * k * l), (rows, np.concatenate([lane, lane]))), shape=(k + l, k * l))
    # One of the k + l sums follows from the others; left out, rounding cannot make the programme infeasible.
    held = np.concatenate([supply, demand])[:-1]
    # No variable is to be a whole number: this is SciPy's leanest way to HiGHS, several times quicker than `linprog`.
    done = milp(costs.ravel(), constraints=LinearConstraint(sums[:-1], held, held))
    if not done.success:
        raise ArithmeticError(f"the transport problem was not solved: {done.message}")
    return float(done.fun)


def trends(before: Sensitivity, after: Sensitivity, at: Neighbourhood, thresholds: Thresholds = PUBLISHED) -> Ints:
    """(2, 2) steps whose diversity and stability both moved from one run to the other, under one neighbourhood.

    Rows: diversity up, down; columns: stability up, down (tables 14, 15).
    """
    places = {key: row for row, key in enumerate(after.keys)}
    rows = np.array([row for row, key in enumerate(before.keys) if key in places], dtype=np.int64)
    others = np.array([places[before.keys[row]] for row in rows.tolist()], dtype=np.int64)
    wider = support_trend(np.exp(after.diversity[at][others]) - np.exp(before.diversity[at][rows]), thresholds)
    steadier = np.sign(after.right[others] * before.n[rows] - before.right[rows] * after.n[others])

    return np.array([[((wider == moved) & (steadier == sign)).sum() for sign in (1, -1)] for moved in (INC, DEC)])


def _labels(
    points: Floats, weights: Ints, needed: Sequence[Neighbourhood], settings: ClusterSettings
) -> dict[Neighbourhood, Ints]:
    """(n,) the clusters of a step's points under each neighbourhood."""
    least = settings.needed(int(weights.sum()))
    apart = {metric: separations(points, metric) for metric in dict.fromkeys(at.metric for at in needed)}
    return {at: noise_apart(dbscan_of(apart[at.metric], limit(at.radius, at.metric), weights, least))[0] for at in needed}


def _sizes(labels: Ints, weights: Ints) -> Ints:
    return np.bincount(labels, weights=weights).astype(np.int64)


def _centres(points: Floats, weights: Ints, labels: Ints) -> tuple[Floats, Floats]:
    """(k, 2) the mean points of the clusters, and (k,) their shares of the executions."""
    sizes = np.bincount(labels, weights=weights)
    centres = np.stack([np.bincount(labels, weights=weights * axis) / sizes for axis in points.T], axis=1)
    return centres, sizes / sizes.sum()
