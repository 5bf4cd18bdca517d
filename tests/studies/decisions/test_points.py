"""Clusters of points, with what we add to DBSCAN, and of texts by Algorithm 1, against a transcript of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from guieval.studies.decisions.points import METRICS, NOISE, Metric, dbscan, limit, separations
from guieval.studies.decisions.text_clusters import cluster_texts

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


def by_the_letter(texts: list[str], loose: float, strict: float) -> tuple[list[int], list[int]]:
    """Lines 4 to 20 of Algorithm 1, with ED and Contain spelt out."""

    def distance(one: str, other: str) -> float:
        row = list(range(len(other) + 1))
        for i, a in enumerate(one, 1):
            before, row[0] = row[0], i
            for j, b in enumerate(other, 1):
                before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
        return row[-1] / max(len(one), len(other)) if one or other else 0.0

    prototypes, labels = [0], [0]
    for i in range(1, len(texts)):
        x = texts[i]
        j = next(
            (
                j
                for j, p in enumerate(prototypes)
                if (x.lower() in texts[p].lower() or texts[p].lower() in x.lower()) and distance(x, texts[p]) <= loose
            ),
            None,
        )
        if j is None:
            gamma = [j for j, p in enumerate(prototypes) if distance(x, texts[p]) <= strict]
            if gamma:
                j = min(gamma, key=lambda j: distance(x, texts[prototypes[j]]))
            else:
                j = len(prototypes)
                prototypes.append(i)
        labels.append(j)
    return labels, prototypes


@st.composite
def alike(draw: st.DrawFn) -> list[str]:
    """Different texts that are edits, truncations and other spellings of each other."""
    letters = draw(st.sampled_from(["ab", "abcAB ", "abcdefghij ", "aİßΣσς多😀"]))
    texts = [draw(st.text(letters, max_size=draw(st.sampled_from([4, 15, 40]))))]
    for _ in range(draw(st.integers(0, 14))):
        text = draw(st.sampled_from(texts))
        for _ in range(draw(st.integers(0, 4))):
            at = draw(st.integers(0, len(text)))
            text = text[:at] + draw(st.sampled_from([*letters, ""])) + text[at + draw(st.integers(0, 1)) :]
        cut = draw(st.sampled_from([0, 0, 1, 2, 5]))
        text = text[cut:] if draw(st.booleans()) else text[: len(text) - cut]
        texts.append(text.swapcase() if draw(st.integers(0, 5)) == 0 else text)
    return list(dict.fromkeys(texts))


@pytest.mark.ci
@settings(max_examples=1000)
@given(alike(), st.sampled_from([(0.3, 0.1), (0.3, 0.1), (0.5, 0.3), (0.1, 0.3), (0.0, 0.0), (1.0, 1.0)]))
@example(["", "a"], (0.3, 0.1))
@example(["a\ud800b", "a\ud800"], (0.5, 0.1))
def test_clusters_are_those_of_the_algorithm(texts: list[str], thresholds: tuple[float, float]) -> None:
    labels, prototypes = cluster_texts(texts, *thresholds)
    assert (labels.tolist(), prototypes) == by_the_letter(texts, *thresholds)


def test_the_prototypes_of_table_16_stay_apart() -> None:
    for prototypes in (
        [
            "There will be a Science Fair in our city next month.",
            "There will be a Science Fair at Lincoln High School tomorrow.",
            "There will be a great science fair event this Sunday.",
            "Science Fair will come soon",
            "There will be a Science Fair Event next week.",
            "There will be a science fair held in our school tomorrow",
        ],
        [
            "m so happy today",
            "m so happy today because my family came together",
            "m",
            "I'm tired",
            "I am really happy today because it's my birthday!",
            "I am alone",
        ],
    ):
        assert cluster_texts(prototypes)[0].tolist() == list(range(6))


def test_a_truncated_text_joins_its_prototype_and_a_whole_one_a_truncated_prototype() -> None:
    whole, cut, severe = "Science Fair tomorrow", "Science Fair tomo", "Science"
    assert cluster_texts([whole, cut, severe])[0].tolist() == [0, 0, 1]
    assert cluster_texts([cut, whole])[0].tolist() == [0, 0]
    assert cluster_texts(["google maps", "GOOGLE MAP"])[0].tolist() == [0, 1]  # ED is of the texts as given
    assert cluster_texts(["Google maps", "google map"])[0].tolist() == [0, 0]


def test_of_several_prototypes_the_first_contains_and_the_nearest_is_strict() -> None:
    # 5 of 24 characters differ between the prototypes; the third text is 1 edit from the second and 4 or 5 from the first.
    first, second, third = "a" * 20 + "bcde", "a" * 20 + "fghi", "a" * 20 + "fghj"
    assert cluster_texts([first, second, third])[0].tolist() == [0, 1, 1]
    # Contained in both prototypes within 0.3, and nearer to the second: the first one counts.
    assert cluster_texts(["abcdefghij", "ABCDEFGHI", "abcdefgh"], 0.3, 0.0)[0].tolist() == [0, 1, 0]
