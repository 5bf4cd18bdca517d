"""Several answers and several seeds: against enumeration of all draws, published numbers, and small runs by hand."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.errors import UsageError
from guieval.metrics.intervals import quoted
from guieval.metrics.sampling import Luck, pass_all, pass_any, sampled
from tests.metrics.made_columns import PROTOCOL, made_columns
from tests.rows import every_row


@every_row("n", range(1, 8))
def test_against_all_subsets(n: int) -> None:
    for right, k in itertools.product(range(n + 1), range(1, n + 1)):
        draws = list(itertools.combinations([answer < right for answer in range(n)], k))
        answers, good = np.array([n]), np.array([right])
        assert pass_any(answers, good, k)[0] == pytest.approx(sum(map(any, draws)) / len(draws), rel=1e-15)
        assert pass_all(answers, good, k)[0] == pytest.approx(sum(map(all, draws)) / len(draws), rel=1e-15)


@given(st.integers(1, 512), st.data())
def test_the_two_are_each_other_turned_round_and_grow_and_shrink_with_k(n: int, data: st.DataObject) -> None:
    right, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    any_of, all_of = (float(f(np.array([n]), np.array([right]), k)[0]) for f in (pass_any, pass_all))
    assert any_of == pytest.approx(1 - float(pass_all(np.array([n]), np.array([n - right]), k)[0]), abs=1e-15)
    assert all_of <= right / n + 1e-15 <= any_of + 2e-15
    if k == 1:
        assert any_of == all_of == right / n


def test_absurd_counts_are_computed_at_once_without_overflow_or_refused() -> None:
    # One right of 100,000: k of them hold it with chance k / n, and the other 99,999 are all right with 1 - k / n.
    n = np.array([100_000])
    assert pass_any(n, np.array([1]), 50_000)[0] == 0.5
    assert pass_all(n, np.array([99_999]), 25_000)[0] == 0.75
    huge = np.array([2**31])
    for right, k, chance in ((2**30, 2**20, 1.0), (2000, 2**20, -math.expm1(2000 * math.log1p(-(2**-11)))), (0, 2**31, 0.0)):
        assert pass_any(huge, np.array([right]), k)[0] == pytest.approx(chance, rel=1e-4)
        assert pass_all(huge, huge - right, k)[0] == pytest.approx(1 - chance, rel=1e-4)
    with pytest.raises(UsageError, match="not computed for 1,099,511,627,776 answers to a step"):
        pass_any(np.array([2**40]), np.array([2**39]), 2**39)


def test_many_factors_agree_with_whole_numbers() -> None:
    n, right, k = 40_000, 1500, 1200
    exact = Fraction(math.comb(n - right, k), math.comb(n, k))
    assert pass_any(np.array([n]), np.array([right]), k)[0] == float(1 - exact)
    assert pass_all(np.array([n]), np.array([n - right]), k)[0] == pytest.approx(float(exact), rel=1e-12)


def test_the_interval_does_not_widen_once_every_step_passes() -> None:
    run = made_columns("abcdefghijkl", exact=[True] * 12, samples=[8] * 12, right_samples=[5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7, 8])
    bands = [sampled([run], PROTOCOL, "any", k).measured.interval for k in range(1, 9)]
    lows = [band.low for band in bands if band is not None]
    assert {band.high for band in bands[3:] if band is not None} == {1.0}
    assert len(lows) == 8 and lows == sorted(lows) and lows[3:] == [lows[3]] * 5  # PASS@4 is 1 everywhere
    turned = made_columns("abcdefghijkl", exact=[False] * 12, samples=[8] * 12, right_samples=[3, 2, 1, 0] * 3)
    bands = [sampled([turned], PROTOCOL, "all", k).measured.interval for k in range(1, 9)]
    highs = [band.high for band in bands if band is not None]
    assert len(highs) == 8 and highs == sorted(highs, reverse=True) and highs[3:] == [highs[3]] * 5


def test_numbers_of_answers_may_differ_between_steps() -> None:
    assert pass_any(np.array([2, 4, 4]), np.array([1, 2, 0]), 2).tolist() == [1.0, 5 / 6, 0.0]
    assert pass_any(np.array([], dtype=int), np.array([], dtype=int), 3).tolist() == []


@pytest.mark.parametrize("k", [0, 3])
def test_no_more_answers_can_be_drawn_than_there_are(k: int) -> None:
    with pytest.raises(UsageError, match=f"{k} answers cannot be drawn where there are 2"):
        pass_any(np.array([2, 5]), np.array([1, 1]), k)


@every_row(
    ("luck", "k", "name", "value"),
    [
        *[("any", 2, "pass@2", (1 + 1 / 2 + 5 / 6) / 3), ("any", None, "pass@4", 1.0)],
        *[("all", 2, "pass^2", (1 + 0 + 1 / 6) / 3), ("all", 4, "pass^4", 1 / 3), ("mean", None, "mean@4", 7 / 12)],
        ("vote", None, "vote@4", 2 / 3),
    ],
)
def test_one_run_with_four_answers_to_each_step(luck: Luck, k: int | None, name: str, value: float) -> None:
    """Exact match, by which all first answers are wrong here, is another figure."""
    run = made_columns("aab", exact=[False] * 3, vote=[True, False, True], samples=[4, 4, 4], right_samples=[4, 1, 2])
    found = sampled([run], PROTOCOL, luck, k)
    assert (found.name, found.measured.n, found.samples) == (name, 3, 4)
    assert found.measured.value == pytest.approx(value)


def test_missing_answers_are_wrong_unreached_steps_do_not_count_and_none_have_no_interval() -> None:
    run = made_columns("abc", ends=["right", "right", "infrastructure_failure"], samples=[4, 1, 0], right_samples=[4, 1, 0])
    assert sampled([run], PROTOCOL, "any", 1).measured.value == pytest.approx((1 + 1 / 4 + 0) / 3)
    run = made_columns("aab", ends=["wrong", "not_reached", "right"], stop="first-mismatch")
    found = sampled([run], PROTOCOL, "mean")
    assert (found.measured.value, found.measured.n) == (0.5, 2)
    found = sampled([made_columns([], exact=[])], PROTOCOL, "any")
    assert (found.measured.value, found.measured.n, found.measured.interval) == (None, 0, None)
    run = made_columns("ab", ends=["not_run"] * 2, samples=[0, 0], right_samples=[0, 0])
    assert sampled([run], PROTOCOL, "mean").measured.interval is None


def test_runs_of_several_seeds_are_further_answers() -> None:
    one, other = (made_columns("aab", exact=[True, False, True]), made_columns("aab", exact=[True, True, False]))
    assert sampled([one, other], PROTOCOL, "any").measured.value == 1.0
    assert sampled([one, other], PROTOCOL, "all").measured.value == pytest.approx(1 / 3)
    assert sampled([one, other], PROTOCOL, "mean").measured.value == pytest.approx(4 / 6)


def test_intervals_are_over_episodes() -> None:
    names = [name for name in "abcdefgh" for _ in range(3)]
    right = [4] * 12 + [1] * 9 + [0] * 3
    run = made_columns(names, exact=[each > 0 for each in right], samples=[4] * 24, right_samples=right)
    per_episode = np.array([3.0] * 4 + [0.75] * 3 + [0.0])
    assert sampled([run], PROTOCOL, "mean").measured.interval == quoted(per_episode, np.full(8, 3.0))


@every_row("luck", ["any", "mean", "all", "vote"])
def test_missing_answers_may_all_have_been_right(luck: Luck) -> None:
    names = list("abcdefghijkl")
    ends = ["right"] * 6 + ["wrong"] * 2 + ["infrastructure_failure"] * 4
    given, right = [4] * 8 + [0] * 4, [4] * 6 + [0] * 6
    lost = sampled([made_columns(names, ends=ends, samples=given, right_samples=right)], PROTOCOL, luck).measured
    answered = [4] * 6 + [0] * 2 + [4] * 4
    whole = made_columns(names, exact=[each > 0 for each in answered], samples=[4] * 12, right_samples=answered)
    best = sampled([whole], PROTOCOL, luck).measured
    assert lost.value == 0.5 and lost.interval is not None and best.interval is not None
    assert lost.interval.low < 0.4 and lost.interval.high == best.interval.high > 10 / 12


def test_mistakes_are_named() -> None:
    run = made_columns("a", exact=[True], title="one")
    other = made_columns("b", exact=[True], title="other")
    stopping = made_columns("a", exact=[True], stop="first-mismatch")
    with pytest.raises(UsageError, match="no run"):
        sampled([], PROTOCOL, "any")
    with pytest.raises(UsageError, match=r"'one' was not judged by 'guievalki' \(did you mean 'guievalkit'\?\)"):
        sampled([run], "guievalki", "any")
    with pytest.raises(UsageError, match="'other' and 'one' do not hold the same steps"):
        sampled([run, other], PROTOCOL, "any")
    with pytest.raises(UsageError, match="a vote"):
        sampled([run, run], PROTOCOL, "vote")
    with pytest.raises(UsageError, match="'sop' reach different steps"):
        sampled([stopping, stopping], PROTOCOL, "any")
    with pytest.raises(UsageError, match="2 answers cannot be drawn where there are 1"):
        sampled([run], PROTOCOL, "any", 2)
