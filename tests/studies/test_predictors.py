"""Comparing predictors: measures against SciPy, intervals that hold what they should, paired differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.errors import UsageError
from guieval.reports.leaderboards.published_results import joined
from guieval.studies.correlation.predictors import MEASURES, compare_predictors
from tests.alone import REPOSITORY

values = st.lists(st.integers(0, 5), min_size=4, max_size=9).filter(lambda numbers: len(set(numbers)) > 1)


@given(values, values)
def test_the_measures_are_scipys_ties_and_all(x: list[int], y: list[int]) -> None:
    from scipy.stats import kendalltau, pearsonr, spearmanr  # takes most of a second to import

    n = min(len(x), len(y))
    x, y = x[:n], y[:n]
    if len(set(x)) == 1 or len(set(y)) == 1:
        return
    found = compare_predictors({"x": x}, y, resamples=10).predictors["x"]
    expected = {"R²": pearsonr(x, y)[0] ** 2, "Spearman": spearmanr(x, y)[0], "Kendall": kendalltau(x, y)[0]}
    assert {name: found[name].value for name in MEASURES} == pytest.approx(expected, abs=1e-9)


def test_a_perfect_and_an_unrelated_predictor() -> None:
    rng = np.random.default_rng(5)
    y = np.arange(30.0)
    noise = rng.permutation(30).astype(float)
    found = compare_predictors({"same": y**3, "noise": noise}, y)
    same, other = found.predictors.values()
    assert same["Spearman"].value == same["Kendall"].low == pytest.approx(1)
    interval = other["Spearman"]
    assert interval.low is not None and interval.high is not None and interval.low < 0 < interval.high
    low = found.differences["same - noise"]["Spearman"].low
    assert low is not None and low > 0
    assert found == compare_predictors({"same": y**3, "noise": noise}, y)


def test_differences_are_paired() -> None:
    """Two figures that are nearly the same differ by nearly nothing, though each alone is uncertain."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=25)
    x = y + rng.normal(size=25)
    found = compare_predictors({"x": x, "almost x": x + 1e-9}, y)
    alone, difference = found.predictors["x"]["R²"], found.differences["x - almost x"]["R²"]
    assert alone.interval is not None and difference.interval is not None
    assert alone.interval.high - alone.interval.low > 0.2
    assert abs(difference.interval.high - difference.interval.low) < 1e-6


def test_copies_of_a_model_in_one_family_add_nothing() -> None:
    """The interval over 12 families of three copies is that over the 12 models; over 36 models it is too narrow."""
    rng = np.random.default_rng(3)
    y = rng.normal(size=12)
    x = y + rng.normal(size=12)
    alone = compare_predictors({"x": x}, y)
    families = [f"{number:02}" for number in range(12)] * 3
    copied = compare_predictors({"x": np.tile(x, 3)}, np.tile(y, 3), families=families)
    assert (copied.n, copied.families) == (36, 12)
    for measure, own in alone.predictors["x"].items():
        same = copied.predictors["x"][measure]
        assert (same.value, same.low, same.high) == pytest.approx((own.value, own.low, own.high), abs=1e-9), measure
    apart = compare_predictors({"x": np.tile(x, 3)}, np.tile(y, 3)).predictors["x"]["R²"]
    one, other = apart.interval, alone.predictors["x"]["R²"].interval
    assert one is not None and other is not None and one.high - one.low < 0.8 * (other.high - other.low)


@pytest.mark.parametrize("table", ["phone", "miniwob"])
def test_the_tables_of_the_docs_name_families(table: str) -> None:
    found = joined([str(REPOSITORY / "docs" / f"online-{table}.yaml")])
    names = {model for model, _, _ in found.pairs("sop_pg", "online")}
    assert found.families.keys() == names and len(set(found.families.values())) >= 7


@pytest.mark.ci
def test_coverage_of_the_interval() -> None:
    """Of 200 studies with 30 models the 95 % interval of R² covers the true one (0.5) in roughly that many."""
    covered = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=30)
        y = x + rng.normal(size=30)
        estimate = compare_predictors({"x": x}, y, resamples=300).predictors["x"]["R²"]
        assert estimate.low is not None and estimate.high is not None
        covered += estimate.low <= 0.5 <= estimate.high
    assert 175 <= covered <= 200


def test_a_figure_that_does_not_vary_has_no_measures() -> None:
    found = compare_predictors({"flat": [1.0] * 5, "x": [1.0, 2.0, 3.0, 4.0, 5.0]}, [1.0, 2.0, 3.0, 4.0, 6.0])
    assert found.predictors["flat"]["R²"].value is None and found.differences["flat - x"]["R²"].value is None
    assert found.predictors["x"]["R²"].value == pytest.approx(0.9730, abs=1e-4)


def test_what_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="at least 4 models"):
        compare_predictors({"x": [1, 2, 3]}, [1, 2, 3])
    with pytest.raises(UsageError, match="'x' has 3 values for 4"):
        compare_predictors({"x": [1, 2, 3]}, [1, 2, 3, 4])
    with pytest.raises(UsageError, match="at least 4, and the 4 models that have every metric are of 2"):
        compare_predictors({"x": [1, 2, 3, 4]}, [1, 2, 3, 4], families=["a", "a", "b", "b"])
    with pytest.raises(UsageError, match="finite"):
        compare_predictors({"x": [1, 2, 3, float("nan")]}, [1, 2, 3, 4])
