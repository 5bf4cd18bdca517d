"""What we add to DBSCAN: distances, weights, and the clusters of border points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from guieval.studies.decisions.points import METRICS, NOISE, Metric, dbscan, limit, separations

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@st.composite
def point_sets(draw: st.DrawFn) -> tuple[Floats, Ints, float, int, Metric]:
    """Points on a coarse grid (so that distances equal to the radius happen), in clumps or all over the screen."""
    seed = draw(st.integers(0, 2**32 - 1))
    n = draw(st.integers(1, 60))
    clumps = draw(st.integers(0, 5))
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 1000, (n, 2))
    if clumps:
        centres = rng.uniform(0, 1000, (clumps, 2))
        points = np.clip(
            centres[rng.integers(0, clumps, n)] + rng.normal(0, draw(st.sampled_from([5, 30, 80])), (n, 2)), 0, 1000
        )
    if draw(st.booleans()):
        points = np.round(points / 7) * 7
    points = np.unique(points, axis=0)
    rng.shuffle(points)
    weights = rng.integers(1, draw(st.sampled_from([2, 4, 20])), len(points))
    metric = draw(st.sampled_from(METRICS))
    return points, weights, draw(st.sampled_from([5.0, 35.0, 70.0, 140.0])), draw(st.integers(1, 12)), metric


@pytest.mark.ci
@settings(max_examples=1500)
@given(point_sets())
def test_a_point_has_the_label_of_its_nearest_core_or_is_noise(case: tuple[Floats, Ints, float, int, Metric]) -> None:
    points, weights, radius, least, metric = case
    labels, apart = dbscan(points, weights, radius, least, metric), separations(points, metric)
    near = apart <= limit(radius, metric)
    core = near @ weights >= least
    away = np.where(near & core, apart, np.inf)
    assert ((labels == NOISE) == np.isinf(away.min(axis=1))).all()
    assert (labels == np.where(labels == NOISE, NOISE, labels[away.argmin(axis=1)])).all()
    one, other = np.nonzero(near & core & core[:, None])
    assert (labels[one] == labels[other]).all(), "cores near each other are in one cluster"


@settings(max_examples=500)
@given(point_sets())
def test_weights_stand_for_points_that_come_again(case: tuple[Floats, Ints, float, int, Metric]) -> None:
    points, weights, radius, least, metric = case
    once = dbscan(points, weights, radius, least, metric)
    which = np.repeat(np.arange(len(points)), weights)
    again = dbscan(points[which], np.ones(len(which), dtype=np.int64), radius, least, metric)
    assert np.array_equal(again, once[which])


def test_a_border_point_goes_with_the_nearest_core_whatever_the_order() -> None:
    # The last point is 90 from the second, a core of the left cluster, and 80 from the third, one of the right.
    points = np.array([[0.0, 0.0], [90.0, 0.0], [260.0, 0.0], [350.0, 0.0], [180.0, 0.0]])
    weights = np.array([4, 1, 1, 4, 1])
    assert dbscan(points, weights, 100.0, 5).tolist() == [0, 0, 1, 1, 1]
    order = np.array([4, 0, 1, 2, 3])
    assert dbscan(points[order], weights[order], 100.0, 5).tolist() == [0, 1, 1, 0, 0]


def test_the_radius_itself_is_near_and_the_weight_of_a_point_counts_for_itself() -> None:
    points = np.array([[0.0, 0.0], [42.0, 56.0]])  # 70 apart
    assert dbscan(points, np.array([1, 1]), 70.0, 2).tolist() == [0, 0]
    assert dbscan(points, np.array([1, 1]), 69.999, 2).tolist() == [NOISE, NOISE]
    assert dbscan(points, np.array([2, 1]), 69.999, 2).tolist() == [0, NOISE]
    assert dbscan(points, np.array([1, 1]), 98.0, 2, "l1").tolist() == [0, 0]
    assert dbscan(points, np.array([1, 1]), 97.999, 2, "l1").tolist() == [NOISE, NOISE]
