"""What perf/rows_over_ranks.py simulates: by hand on batches without chance, and the numbers of docs/training/training.md."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from statistics import fmean

import pytest

from perf.rows_over_ranks import CHUNKS, ROLLOUTS, TASKS, Group, group, new_rule, old_rule


def drawing(*groups: Group) -> Callable[[], Group]:
    """The given groups, then kept ones of one row a rollout."""
    left: Iterator[Group] = iter(groups)
    return lambda: next(left, ([1] * ROLLOUTS, True))


def test_only_a_dropped_group_is_drawn_again() -> None:
    dropped = ([1] * ROLLOUTS, False)
    assert new_rule(drawing(dropped), 8) == (1.0, TASKS / (TASKS + 1))
    assert old_rule(drawing(dropped), 8)[1] == TASKS / (2 * TASKS)  # a whole batch more


def test_a_long_rollout_is_dealt_out_and_was_waited_for() -> None:
    long = ([65, *[1] * (ROLLOUTS - 1)], True)  # 64 rows more than the others
    rows = TASKS * ROLLOUTS + 64
    assert new_rule(drawing(long), 8) == (1.0, 1.0)
    fullest = TASKS * ROLLOUTS // 8 + 64  # the first process had them all
    assert old_rule(drawing(long), 8)[0] == rows / (8 * fullest) and fullest % CHUNKS == 0


@pytest.mark.parametrize(("ranks", "before", "now"), [(8, 0.63, 0.997), (32, 0.38, 0.987)])
def test_the_figures_of_the_documentation(ranks: int, before: float, now: float) -> None:
    def shares(rule: Callable[[Callable[[], Group], int], tuple[float, float]]) -> list[float]:
        dice = random.Random(1)  # another seed than the documentation's
        return [fmean(each) for each in zip(*(rule(partial(group, dice), ranks) for _ in range(30)), strict=True)]

    assert shares(new_rule) == pytest.approx([now, 0.94], abs=0.02)
    assert shares(old_rule) == pytest.approx([before, 0.54], abs=0.05)
