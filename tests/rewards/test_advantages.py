"""Returns, advantages and the groups that are kept: by hand, by equation 9 as it stands, and by what always has to hold."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from guieval.errors import UsageError
from guieval.rewards.advantages import SEGMENTS, AdvantageSettings, Trajectory, advantages, keep_group, spread, step_returns
from guieval.rewards.dynamic_sampling import collect
from tests.conftest import REPOSITORY
from tests.rows import every_row

PAPER, RELEASED = AdvantageSettings.paper(), AdvantageSettings.released()
SETTINGS = [
    replace(base, normalise=normalise, episode_level=level)
    for base in (PAPER, RELEASED)
    for normalise in ("mean-std", "mean")
    for level in ("trajectory", "last", "steps", "none")
]


def made(rewards: tuple[float, ...], matched: tuple[bool, ...], uid: str = "u") -> Trajectory:
    return Trajectory(uid, tuple(range(len(rewards))), rewards, matched)


# Three rollouts of one task, budget 1: all right; a patch at step 1; over at step 0 (budget spent elsewhere).
GROUP = [made((1.0, 1.0, 1.0), (True, True, True)), made((1.0, 0.5, 1.0), (True, False, True)), made((0.1,), (False,))]


def test_advantages_by_hand() -> None:
    # returns (gamma 1/2): 1.75 1.5 1; 1.25 0.5 1; 0.1; totals: 3, 2.5, 0.1; mean only, so that every number can be seen
    # step 0: mean 3.1/3; step 1: mean 1; step 2: both 1, so 0; episodes: mean 5.6/3
    found = advantages(GROUP, replace(PAPER, normalise="mean"))
    zero, episode, pooled = 3.1 / 3, 5.6 / 3, 5.6 / 7
    assert found[0] == pytest.approx([(3 - episode) + (1.75 - zero), (3 - episode) + 0.5, 3 - episode])
    assert found[1] == pytest.approx([(2.5 - episode) + (1.25 - zero), (2.5 - episode) - 0.5, 2.5 - episode])
    assert found[2] == pytest.approx([(0.1 - episode) + (0.1 - zero)])
    # Two rollouts of one step, rewards 1 and 0: mean 1/2, sample deviation sqrt(1/2), so 1/sqrt(2) at each of the levels.
    group = [made((1.0,), (True,)), made((0.0,), (False,))]
    assert [each[0] for each in advantages(group)] == pytest.approx([2 / math.sqrt(2), -2 / math.sqrt(2)])
    of_all = replace(PAPER, ddof=0)
    assert [each[0] for each in advantages(group, of_all)] == pytest.approx([2.0, -2.0])
    assert [each[0] for each in advantages(group, replace(of_all, omega=0.0))] == pytest.approx([1.0, -1.0])
    # Returns: 1.75 1.5 1; 1 0.5 1; 0.1, for the mismatch of step 1 gives nothing back. Episode level: seven rewards pooled.
    found = advantages(GROUP, replace(RELEASED, normalise="mean"))
    zero = 2.85 / 3
    assert found[0] == pytest.approx([(1 - pooled) + (1.75 - zero), (1 - pooled) + 0.5, 1 - pooled])
    assert found[1] == pytest.approx([(1 - pooled) + (1 - zero), (0.5 - pooled) - 0.5, 1 - pooled])
    assert found[2] == pytest.approx([(0.1 - pooled) + (0.1 - zero)])
    rewards = (1.0, 1.0, 1.0, 1.0, 0.5, 1.0, 0.1)
    deviation = math.sqrt(sum((reward - pooled) ** 2 for reward in rewards) / 6)
    whole = advantages(GROUP, replace(RELEASED, omega=0.0))
    assert whole[2] == pytest.approx([(0.1 - pooled) / (deviation + 1e-6)])
    # Equation 9 at t = T, the paper's R_T word for word: 1, 1, 0.1; a patched rollout is as good as a perfect one.
    at_last = advantages(GROUP, replace(PAPER, normalise="mean", omega=0.0, episode_level="last"))
    assert at_last == [pytest.approx([0.3] * 3), pytest.approx([0.3] * 3), pytest.approx([-0.6])]
    # Without the episode level what is left of the first case is its step level.
    alone = advantages(GROUP, replace(PAPER, normalise="mean", episode_level="none"))
    assert alone == [
        pytest.approx([1.75 - 3.1 / 3, 0.5, 0.0]),
        pytest.approx([1.25 - 3.1 / 3, -0.5, 0.0]),
        pytest.approx([0.1 - 3.1 / 3]),
    ]


@every_row("settings", [PAPER, RELEASED])
def test_groups_of_one_and_of_equals_are_nought(settings: AdvantageSettings) -> None:
    assert advantages([GROUP[1]], replace(settings, episode_level="trajectory")) == [[0.0, 0.0, 0.0]]
    same = [made((0.1, 0.7, 0.2), (True, False, True))] * 3
    assert advantages(same, replace(settings, episode_level="trajectory")) == [[0.0] * 3] * 3
    # 0.1 + 0.2 and 0.3 are equal but for rounding, which is not to become an advantage of 1
    close = [made((0.1 + 0.2,), (True,)), made((0.3,), (True,))]
    assert advantages(close, settings) == [[0.0], [0.0]]
    # 0.1 + 0.2 - 0.3 is not 0 in floating point, and is no better than 0.
    alone = replace(settings, omega=0.0, episode_level="trajectory")
    assert advantages([made((0.1, 0.2, -0.3), (True,) * 3), made((0.0,) * 3, (True,) * 3)], alone) == [[0.0] * 3] * 2


def test_the_step_level_compares_places_in_the_episode_that_several_rollouts_reach() -> None:
    group = [made((1.0, 1.0), (True, True)), made((0.0,), (False,))]
    with_it, without = (advantages(group, replace(PAPER, omega=omega)) for omega in (1.0, 0.0))
    assert with_it[0][1] == without[0][1] and with_it[0][0] != without[0][0]
    # Rollouts over chosen steps 1 and 3 of an episode meet those of other rollouts at 1 and 3, not at 0 and 1.
    group = [Trajectory("u", (1, 3), (1.0, 1.0), (True, True)), Trajectory("u", (3,), (0.0,), (False,))]
    found = advantages(group, replace(PAPER, normalise="mean", gamma=0.0))
    assert found == [[1.0, 1.5], [-1.5]]


def test_tasks_are_apart_and_settings_say_what_they_are() -> None:
    other = [made((0.3,), (False,), "v"), made((0.9, 0.2), (True, False), "v")]
    mixed = [GROUP[0], other[0], GROUP[1], other[1], GROUP[2]]
    for settings in SETTINGS:
        one, two, both = (advantages(group, settings) for group in (GROUP, other, mixed))
        assert both == [one[0], two[0], one[1], two[1], one[2]]
    assert (PAPER.gamma, PAPER.omega, PAPER.segment, PAPER.episode_level) == (0.5, 1.0, "natural", "trajectory")
    assert AdvantageSettings() == PAPER != RELEASED
    assert (RELEASED.segment, RELEASED.episode_level, RELEASED.spread_of) == ("released", "steps", "first-returns")


REWARD = st.integers(0, 20).map(lambda number: number / 20)
ROLLOUT = st.lists(st.tuples(REWARD, st.booleans()), min_size=1, max_size=5).map(
    lambda steps: made(tuple(reward for reward, _ in steps), tuple(match for _, match in steps))
)
GROUPS = st.lists(ROLLOUT, min_size=1, max_size=6)
CHOICES = st.sampled_from(SETTINGS)


def close(one: list[list[float]], other: list[list[float]]) -> bool:
    return all(a == pytest.approx(b, abs=1e-7) for a, b in zip(one, other, strict=True))


@given(GROUPS, CHOICES, st.randoms())
def test_the_order_of_the_rollouts_does_not_matter(group: list[Trajectory], settings: AdvantageSettings, dice: Any) -> None:
    places = list(range(len(group)))
    dice.shuffle(places)
    found = advantages(group, settings)
    assert advantages([group[place] for place in places], settings) == [found[place] for place in places]


def changed(group: list[Trajectory], change: Any) -> list[Trajectory]:
    return [replace(one, rewards=tuple(map(change, one.rewards))) for one in group]


@given(GROUPS, CHOICES, st.sampled_from([0.5, 2.0, 10.0]))
def test_the_unit_of_a_reward_does_not_matter(group: list[Trajectory], settings: AdvantageSettings, factor: float) -> None:
    scaled = changed(group, lambda reward: reward * factor)
    plain = replace(settings, normalise="mean")
    found = advantages(group, plain)
    assert close(advantages(scaled, plain), [[value * factor for value in each] for each in found])
    exact = replace(settings, normalise="mean-std", epsilon=0.0)
    assert close(advantages(scaled, exact), advantages(group, exact))


@given(GROUPS, CHOICES, st.sampled_from([-1.0, 0.25, 3.0]))
def test_more_for_all_is_none_without_a_future(group: list[Trajectory], settings: AdvantageSettings, more: float) -> None:
    """For one-step comparisons; a sum over more steps has more of it, which is why the trajectory level is left out."""
    assume(settings.episode_level != "trajectory")
    alone = replace(settings, gamma=0.0)
    assert close(advantages(changed(group, lambda reward: reward + more), alone), advantages(group, alone))


@given(GROUPS, CHOICES)
def test_advantages_of_a_level_sum_to_nought(group: list[Trajectory], settings: AdvantageSettings) -> None:
    """The step level over each step's rollouts, the episode level over what it compares."""
    both, whole = advantages(group, settings), advantages(group, replace(settings, omega=0.0))
    for index in range(5):
        there = [place for place, one in enumerate(group) if index in one.steps]
        assert math.fsum(both[place][index] - whole[place][index] for place in there) == pytest.approx(0, abs=1e-6)
    values = whole if settings.episode_level == "steps" else [each[:1] for each in whole]
    assert math.fsum(value for each in values for value in each) == pytest.approx(0, abs=1e-6)


def test_the_papers_spread_is_of_all_combined_advantages_the_released_of_first_returns() -> None:
    group = [made((1.0,), (True,)), made((0.0,), (False,))]
    assert spread(group, replace(PAPER, ddof=0)) == pytest.approx(2.0)  # advantages 2 and -2
    assert keep_group(group, 0.3, PAPER) and not keep_group(group, 2.0, replace(PAPER, ddof=0, normalise="mean"))
    assert not keep_group([GROUP[0]], 0.3, PAPER) and not keep_group([GROUP[0]] * 4, 0.3, PAPER)
    # First returns of the group: 1.75, 1 and 0.1, as a population: mean 0.95, sum of squares 1.365.
    assert spread(GROUP, RELEASED) == pytest.approx(math.sqrt(1.365 / 3))
    assert keep_group(GROUP, 0.3, RELEASED) and not keep_group(GROUP, 0.7, RELEASED)
    assert keep_group([GROUP[0]], 0.3, RELEASED) and not keep_group([GROUP[0]] * 2, 0.3, RELEASED)
    # above eta, and not at it
    assert not keep_group(group, 0.5, RELEASED) and keep_group(group, 0.4999, RELEASED)


@every_row(
    ("wrong", "message"),
    [
        *[({"gamma": -0.1}, r"gamma is -0\.1: expected 0 or more"), ({"gamma": math.nan}, "gamma is nan")],
        *[({"gamma": "0.5"}, "gamma is '0.5': expected a number"), ({"omega": -1.0}, r"omega is -1\.0")],
        ({"omega": None}, "omega is None: expected a number"),
        ({"normalise": "mean_std"}, "normalise is 'mean_std': .*did you mean 'mean-std'"),
        ({"segment": "relesed"}, "segment is 'relesed': .*did you mean 'released'"),
        ({"episode_level": "step"}, "episode_level is 'step': .*did you mean 'steps'"),
        *[({"spread_of": "returns"}, "spread_of is 'returns'"), ({"ddof": 2}, "ddof is 2: expected 0 or 1")],
        ({"epsilon": math.inf}, "epsilon is inf"),
    ],
)
def test_an_impossible_setting_is_reported(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        AdvantageSettings(**wrong)


def test_the_example_in_the_docs_runs() -> None:
    page = (REPOSITORY / "docs" / "development" / "advantages.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    assert names["worth_training_on"] is True
    assert names["one_number_a_step"] == advantages(names["group"]) != advantages(names["group"], RELEASED)


def test_each_eta_of_table_7_keeps_other_groups_by_the_first_returns_alone() -> None:
    """Rollouts of one step and reward 0.1, one of them with more: first returns spread by 0.15, 0.4 and 0.47."""
    groups = [
        [Trajectory("task", (0,), (reward,), (reward == 1.0,)) for reward in rewards]
        for rewards in ((0.1, 0.1, 0.1, 0.45), (0.2, 0.2, 1.0, 1.0), (0.0, 0.0, 1.0, 1.0, 1.0, 1.0))
    ]
    kept = {}
    for of in ("first-returns", "advantages"):
        settings = AdvantageSettings(spread_of=of)
        kept[of] = [[keep_group(group, eta, settings) for group in groups] for eta in (0.1, 0.3, 0.5)]
    assert kept["first-returns"] == [[True, True, True], [False, True, True], [False, False, False]]
    assert kept["advantages"] == [[True, True, True]] * 3  # normalised advantages spread alike, whatever the rewards


REWARDS = (1.0, 1.0, 0.5, 1.0, 0.25)
MATCHED = (True, True, False, True, False)
ROLLOUTS = st.lists(st.tuples(st.floats(-2, 2), st.booleans()), min_size=1, max_size=8)


def test_returns_by_hand() -> None:
    # natural segments: step 0: r0 + r1/2 + r2/4, the mismatch of step 2 being its segment's last; step 2 has only itself;
    # step 3: r3 + r4/2
    assert step_returns(REWARDS, MATCHED, gamma=0.5) == [1.625, 1.25, 0.5, 1.125, 0.25]
    # a whole trajectory looks across mismatches; from the end: 0.25; 1 + 0.125; 0.5 + 0.5625; 1 + 0.53125; 1 + 0.765625
    assert step_returns(REWARDS, MATCHED, gamma=0.5, segment="trajectory") == [1.765625, 1.53125, 1.0625, 1.125, 0.25]
    # as released, steps 1 and 3 get nothing of the mismatches after them, which have their own reward all the same
    assert step_returns(REWARDS, MATCHED, gamma=0.5, segment="released") == [1.5, 1.0, 0.5, 1.0, 0.25]
    for segment in SEGMENTS:  # all matched, and without a future
        assert step_returns((1.0, 1.0, 1.0), (True,) * 3, gamma=0.5, segment=segment) == [1.75, 1.5, 1.0]
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
def test_a_mismatch_cuts_the_rollout(steps: list[tuple[float, bool]], others: list[float], segment: Any) -> None:
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


def test_impossible_trajectories_returns_and_caps_are_reported() -> None:
    with pytest.raises(UsageError, match=r"gamma is 1\.5: expected a number from 0 to 1"):
        step_returns((1.0,), (True,), gamma=1.5)
    with pytest.raises(UsageError, match=r"unknown segment 'natrual' .did you mean 'natural'"):
        step_returns((1.0,), (True,), gamma=0.5, segment="natrual")  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        step_returns((1.0, 0.0), (True,), gamma=0.5)
    assert step_returns((), (), gamma=0.5) == []
    for groups, message in ((3, "most_draws is 2"), (0, "groups is 0")):
        with pytest.raises(ValueError, match=message):
            collect(lambda: 1, lambda _: True, groups=groups, most_draws=2)
    unequal = ((0, 1), (1.0,), (True,))
    for steps, rewards, matched in (((), (), ()), unequal, ((1, 1), (1.0, 1.0), (True, True)), ((0,), (math.nan,), (True,))):
        with pytest.raises(ValueError, match="a trajectory"):
            Trajectory("u", steps, rewards, matched)
    with pytest.raises(ValueError, match="one task"):
        spread([GROUP[0], made((1.0,), (True,), "v")])
    with pytest.raises(ValueError, match="one task"):
        spread([])
    with pytest.raises(UsageError, match="eta"):
        keep_group(GROUP, -1)


def test_groups_are_drawn_until_enough_pass_the_cap_is_reached_or_the_data_ends() -> None:
    numbers = count()
    found = collect(lambda: next(numbers), lambda number: number % 3 == 0, groups=3, most_draws=100)
    assert (found.kept, found.drawn, found.complete) == ((0, 3, 6), 7, True)
    assert next(numbers) == 7
    found = collect(lambda: 1, lambda _: False, groups=2, most_draws=5)
    assert (found.kept, found.drawn, found.complete) == ((), 5, False)
    groups = iter([1, 2])
    found = collect(lambda: next(groups, None), lambda _: True, groups=3, most_draws=9)
    assert (found.kept, found.drawn, found.complete) == ((1, 2), 2, False)


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(1, 5), st.integers(0, 20))
def test_what_is_kept_is_the_first_that_pass(passes: list[bool], groups: int, more: int) -> None:
    order = iter(enumerate(passes))
    found = collect(lambda: next(order, None), lambda each: each[1], groups=groups, most_draws=groups + more)
    seen = list(enumerate(passes))[: groups + more]
    assert list(found.kept) == [each for each in seen if each[1]][:groups]
    assert found.drawn <= groups + more and found.complete == (len(found.kept) == groups)
