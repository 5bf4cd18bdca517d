"""Returns against cases worked out by hand, and against equation 9 written out as it stands."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.errors import UsageError
from guieval.rewards.advantages import SEGMENTS, Segment, step_returns

REWARDS = (1.0, 1.0, 0.5, 1.0, 0.25)
MATCHED = (True, True, False, True, False)
ROLLOUTS = st.lists(st.tuples(st.floats(-2, 2), st.booleans()), min_size=1, max_size=8)


def test_natural_segments_end_with_the_mismatch_after_them() -> None:
    """Step 0: r0 + r1/2 + r2/4, the mismatch of step 2 being its segment's last; step 2 has only itself; step 3: r3 + r4/2."""
    assert step_returns(REWARDS, MATCHED, gamma=0.5) == [1.625, 1.25, 0.5, 1.125, 0.25]


def test_the_trajectory_variant_looks_across_mismatches() -> None:
    """From the end: 0.25; 1 + 0.125; 0.5 + 0.5625; 1 + 0.53125; 1 + 0.765625."""
    assert step_returns(REWARDS, MATCHED, gamma=0.5, segment="trajectory") == [1.765625, 1.53125, 1.0625, 1.125, 0.25]


def test_the_released_code_lets_a_mismatch_keep_its_reward() -> None:
    """Steps 1 and 3 get nothing of the mismatches after them; the mismatches have their own reward all the same."""
    assert step_returns(REWARDS, MATCHED, gamma=0.5, segment="released") == [1.5, 1.0, 0.5, 1.0, 0.25]


def test_an_all_matched_rollout_is_the_same_under_every_segment() -> None:
    for segment in SEGMENTS:
        assert step_returns((1.0, 1.0, 1.0), (True,) * 3, gamma=0.5, segment=segment) == [1.75, 1.5, 1.0]


@pytest.mark.parametrize("segment", SEGMENTS)
def test_without_a_future_a_return_is_the_reward(segment: Segment) -> None:
    assert step_returns(REWARDS, MATCHED, gamma=0.0, segment=segment) == list(REWARDS)


def t_end(t: int, matched: list[bool]) -> int:
    """Equation 9 word for word, from 0; the maximum over no k is taken to be t - 1, so that a mismatch ends its own segment."""
    last = len(matched) - 1
    run = [k for k in range(t, last + 1) if all(matched[t : k + 1])]
    return min(max(run, default=t - 1) + 1, last)


@given(ROLLOUTS, st.floats(0, 1))
def test_the_recursion_is_equation_9(steps: list[tuple[float, bool]], gamma: float) -> None:
    rewards, matched = [reward for reward, _ in steps], [match for _, match in steps]
    direct = [sum(gamma ** (k - t) * rewards[k] for k in range(t, t_end(t, matched) + 1)) for t in range(len(steps))]
    assert step_returns(rewards, matched, gamma=gamma) == pytest.approx(direct, abs=1e-12)
    whole = [sum(gamma ** (k - t) * rewards[k] for k in range(t, len(steps))) for t in range(len(steps))]
    assert step_returns(rewards, matched, gamma=gamma, segment="trajectory") == pytest.approx(whole, abs=1e-12)


@given(ROLLOUTS, st.lists(st.floats(-2, 2), min_size=8, max_size=8), st.sampled_from(["natural", "released"]))
def test_a_mismatch_cuts_the_rollout(steps: list[tuple[float, bool]], others: list[float], segment: Segment) -> None:
    """Whatever happens after a patched step, what lies before it and it itself are not changed."""
    cut = next((place for place, (_, match) in enumerate(steps) if not match), len(steps) - 1)
    changed = [*steps[: cut + 1], *((other, match) for other, (_, match) in zip(others, steps[cut + 1 :], strict=False))]
    one, other = (step_returns(*zip(*each, strict=True), gamma=0.5, segment=segment) for each in (steps, changed))
    assert one[: cut + 1] == other[: cut + 1]


@given(ROLLOUTS)
def test_the_segments_differ_only_by_what_a_mismatch_passes_back(steps: list[tuple[float, bool]]) -> None:
    rewards, matched = zip(*steps, strict=True)
    natural, released = (step_returns(rewards, matched, gamma=0.5, segment=each) for each in ("natural", "released"))
    starts_over = [not match for match in matched]
    for place, (now, ahead) in enumerate(pairwise(range(len(steps)))):
        if matched[now] and starts_over[ahead]:
            assert natural[place] - released[place] == pytest.approx(0.5 * rewards[ahead], abs=1e-12)


def test_mistakes_are_reported() -> None:
    with pytest.raises(UsageError, match=r"gamma is 1\.5: expected a number from 0 to 1"):
        step_returns((1.0,), (True,), gamma=1.5)
    with pytest.raises(UsageError, match=r"unknown segment 'natrual' .did you mean 'natural'"):
        step_returns((1.0,), (True,), gamma=0.5, segment="natrual")  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        step_returns((1.0, 0.0), (True,), gamma=0.5)
    assert step_returns((), (), gamma=0.5) == []
