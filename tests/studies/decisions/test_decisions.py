"""From executions to decisions and their figures: cases worked out by hand, and policies of known decision distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.actions import Action, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.errors import UsageError
from guieval.studies.decisions.clustering import UNDECIDED, ClusterSettings, cluster, decide
from guieval.studies.decisions.measures import LEVELS, level_of, level_share, mean, measure, pass_at
from guieval.studies.decisions.shifts import DEC, INC, NEGL, shift, support_trend
from tests.rows import every_row
from tests.studies.decisions.scripted_executions import TARGETS, click, executions, scattered, task


def scroll(direction: str, x: float = 500.0) -> Scroll:
    return Scroll.model_validate({"point": (x, 500.0), "direction": direction})


def test_each_action_type_is_clustered_by_its_own_rule() -> None:
    # a long press is a type of its own at the same place; where a scroll begins does not tell decisions apart
    actions: list[Action | None] = [click(100, 100), LongPress(point=Point(100, 100)), click(150, 100)]
    actions += [scroll("up"), scroll("up", 10.0), scroll("down")]
    actions += [Type(text="Science Fair tomorrow"), Type(text="science fair tomorro"), Open(app="Science Fair tomorrow")]
    actions += [Press(button="BACK"), Press(button="HOME"), Wait(), Wait(duration=5.0), Stop(), Stop(status="impossible")]
    actions += [LongPress(point=Point(100, 100), duration=1.0), None, Unsupported(name="hover")]
    labels = cluster(actions, np.ones(len(actions), dtype=np.int64))
    assert labels.tolist() == [*(0, 1, 0), *(2, 2, 3), *(4, 4, 5), *(6, 7, 8, 8, 9, 9), *(1, UNDECIDED, UNDECIDED)]


def test_noise_is_a_decision_of_its_own_with_its_share() -> None:
    drawn = [*[click(100, 100)] * 8, click(120, 100), click(900, 900), click(500, 900)]
    found = decide(executions(drawn))
    assert [(each.count, each.isolated) for each in found.clusters] == [(9, False), (1, True), (1, True)]
    shares = [9 / 11, 1 / 11, 1 / 11]
    assert found.distribution.tolist() == pytest.approx(shares)
    assert found.diversity == pytest.approx(-sum(p * math.log(p) for p in shares))
    assert found.support_size == pytest.approx(math.exp(found.diversity or 0.0))


def test_the_fewer_of_a_type_there_are_the_fewer_are_dense() -> None:
    pair = [click(100, 100), click(110, 100)]
    assert decide(executions([*pair, *[Stop()] * 500])).clusters[1].count == 2
    far = [click(900, 100 * i) for i in range(6)]  # 8 clicks: five are needed
    assert max(each.count for each in decide(executions([*pair, *far])).clusters) == 1
    assert decide(executions([*pair, *far]), ClusterSettings(min_samples=2)).clusters[0].count == 2


def test_decisions_of_a_step_by_hand() -> None:
    drawn: list[Action | None] = [click(100, 100), click(100, 100), click(120, 100), Type(text="hello there"), None, None]
    drawn += [Unsupported(name="hover"), Type(text="hello ther"), Press(button="BACK"), click(100, 100), click(100, 100)]
    found = decide(executions(drawn, right=[click(100, 100)], failed=3))
    assert [(each.type, each.count) for each in found.clusters] == [("CLICK", 5), ("TYPE", 2), ("PRESS", 1)]
    clicks, texts, press = found.clusters
    assert clicks.prototype == click((4 * 100 + 120) / 5, 100)
    assert texts.prototype == Type(text="hello there") and press.prototype == Press(button="BACK")
    assert (clicks.members.tolist(), texts.members.tolist(), press.members.tolist()) == ([0, 1], [2, 5], [6])
    assert found.labels.tolist() == [0, 0, 1, UNDECIDED, UNDECIDED, 1, 2]
    assert (found.n, found.right, found.unparseable, found.unsupported, found.failed) == (11, 4, 2, 1, 3)
    assert found.distribution.tolist() == [5 / 8, 2 / 8, 1 / 8]  # equation 6: of those with a decision


def test_a_step_without_any_decision_or_execution() -> None:
    nothing = decide(executions([None, None]))
    assert (nothing.diversity, nothing.support_size, nothing.right) == (None, None, 0)
    lost = decide(executions([], failed=4))
    assert (lost.diversity, lost.n, lost.failed) == (None, 0, 4)


@given(st.integers(0, 2**32 - 1))
def test_executions_drawn_often_are_the_same_as_given_again_and_again(seed: int) -> None:
    rng = np.random.default_rng(seed)
    step = scattered((0.5, 0.3, 0.2), 40, rng)
    counts = rng.integers(1, 9, len(step.actions))
    again = [action for action, count in zip(step.actions, counts.tolist(), strict=True) for _ in range(count)]
    once = cluster(step.actions, counts)
    assert np.array_equal(cluster(again, np.ones(len(again), dtype=np.int64)), np.repeat(once, counts))


def test_mistakes_in_the_settings() -> None:
    cases = {"metric": ("l3", "unknown metric 'l3'; known: l2, l1"), "radius": (0.0, "above 0")}
    for name, (value, message) in (cases | {"min_samples": (0, "at least 1"), "strict": (2.0, "'strict'.*got 2")}).items():
        with pytest.raises(UsageError, match=message):
            ClusterSettings(**{name: value})  # type: ignore[arg-type]


# Policies whose decisions are known. Bounds are 5 standard errors: once in two million draws one would be beyond them.


@pytest.mark.ci
@every_row("shares", [(1.0,), (0.7, 0.2, 0.1), (0.25, 0.25, 0.25, 0.25), (0.05, 0.95)])
def test_a_policys_distribution_comes_back_from_its_executions(shares: tuple[float, ...]) -> None:
    n = 4096
    step = scattered(shares, n, np.random.default_rng(3))
    found = decide(step)
    counted = {}
    for each in found.clusters:
        assert isinstance(each.prototype, type(click(0, 0)))
        place = min(range(len(shares)), key=lambda at: math.dist(each.prototype.point, TARGETS[at]))  # type: ignore[union-attr]
        counted[place] = each.count
        assert math.dist(each.prototype.point, TARGETS[place]) < 10
    assert len(counted) == len(found.clusters) == len(shares)
    for place, p in enumerate(shares):
        assert abs(counted[place] / n - p) <= 5 * math.sqrt(p * (1 - p) / n)
    true = -sum(p * math.log(p) for p in shares)
    spread = math.sqrt(max(sum(p * math.log(p) ** 2 for p in shares) - true**2, 0.0) / n)
    assert found.diversity is not None and abs(found.diversity - true) <= 5 * spread + len(shares) / n
    assert abs(found.right / found.n - shares[0]) <= 5 * math.sqrt(shares[0] * (1 - shares[0]) / n)


def test_shifts_are_over_the_steps_that_both_runs_measured() -> None:
    before = [executions([Stop(), Wait()], [Stop()], task("a", i, 4)) for i in range(3)]
    after = [executions([Stop(), Stop()], [Stop()], task("a", i, 4)) for i in (3, 2, 1)]
    after.append(executions([], of=task("a", 0, 4), failed=2))
    found = shift(measure(before, ClusterSettings(), "one"), measure(after, ClusterSettings(), "two"))
    assert [key.step_index for key in found.before.keys] == [key.step_index for key in found.after.keys] == [1, 2]
    assert (found.only_before, found.only_after) == (1, 1)
    assert found.stability.tolist() == [0.5, 0.5] and found.support.tolist() == pytest.approx([-1.0, -1.0])
    assert found.mean_by_trend("inc").value == 0.5 and found.mean_by_trend("inc").n == 2
    assert found.support_by_stability().tolist() == [[0, 0, 2], [0, 0, 0], [0, 0, 0]]
    assert found.levels_by_trend().tolist() == [[0, 0, 0], [0, 0, 2], [0, 0, 0]]
    with pytest.raises(UsageError, match="'one' and 'two' share no measured step"):
        shift(measure(before[:1], ClusterSettings(), "one"), measure(after, ClusterSettings(), "two"))


def test_discretisations_at_their_borders() -> None:
    right, n = np.array([0, 2, 205, 3, 4, 409, 410, 5]), np.array([5, 5, 512, 5, 5, 512, 512, 5])
    expected = ["low"] * 2 + ["medium"] * 4 + ["high"] * 2
    assert [LEVELS[level] for level in level_of(right, n)] == expected
    moved = np.array([0.0, 0.1, 1.1 - 1.0, 0.1001, -0.1, -0.1001, math.nan])
    assert support_trend(moved).tolist() == [NEGL, NEGL, NEGL, INC, NEGL, DEC, NEGL]


def test_levels_are_shares_of_the_measured_steps() -> None:
    steps = [
        executions([Stop()] * right + [Wait()] * (10 - right), [Stop()], task("a", i, 4)) for i, right in enumerate((4, 8, 9))
    ]
    run = measure([*steps, executions([], of=task("a", 3, 4), failed=1)], ClusterSettings())
    assert [level_share(run, level).value for level in LEVELS] == [1 / 3, 1 / 3, 1 / 3]
    assert run.level.tolist() == [0, 1, 2, -1]


def test_a_request_that_nobody_answered_is_not_right() -> None:
    steps = [executions([Stop()] * 3, [Stop()], task("a", 0, 2), failed=1), executions([Wait()] * 4, [Stop()], task("a", 1, 2))]
    run = measure(steps, ClusterSettings())
    assert pass_at(run, 1).measured.value == (3 / 4 + 0) / 2
    assert mean(run, "stability").value == (1 + 0) / 2
    with pytest.raises(UsageError, match="5 answers"):
        pass_at(run, 5)
