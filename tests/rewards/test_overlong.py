"""DAPO's soft overlong punishment, by its equation 13 with numbers worked out by hand."""

from __future__ import annotations

import pytest

from guieval.actions import Boxes, Click, Point
from guieval.errors import UsageError
from guieval.registry import load_model
from guieval.rewards import Overlong, ResponseScorer, get_reward
from guieval.rewards.adapters.trl import reward_function
from tests.model_adapters.steps import step
from tests.rows import every_row


@every_row(
    ("tokens", "worth"),
    [(0, 0.0), (16_384, 0.0), (16_385, -1 / 4_096), (17_408, -0.25), (18_432, -0.5), (20_480, -1.0), (30_000, -1.0)],
)
def test_the_papers_lengths(tokens: int, worth: float) -> None:
    """16,384 expected tokens and a cache of 4,096: (16,384 - |y|) / 4,096 in between, -1 from 20,480 on."""
    assert Overlong(longest=20_480, cache=4_096).of(tokens) == worth


def test_another_penalty_scales_it_and_the_cache_may_be_the_whole_length() -> None:
    assert Overlong(longest=4, cache=4, penalty=2.0).of(1) == -0.5
    assert [Overlong(longest=4, cache=1).of(tokens) for tokens in (3, 4)] == [0.0, -1.0]


@every_row(("cache", "penalty"), [(0, 1.0), (11, 1.0), (5, 0.0), (5, float("nan"))])
def test_settings_that_cannot_be_are_refused(cache: int, penalty: float) -> None:
    with pytest.raises(UsageError, match=r"reward\.overlong"):
        Overlong(longest=10, cache=cache, penalty=penalty)


def test_a_long_reply_earns_less_and_the_log_has_the_punishment() -> None:
    task = step(Click(point=Point(500, 500)), targets=Boxes([[400.0, 400.0, 600.0, 600.0]]))
    scorer = ResponseScorer(load_model("tiny-policy"), get_reward("hypertrack"), overlong=Overlong(longest=10, cache=4))
    logged: dict[str, float] = {}
    rewards = reward_function(scorer)(
        completions=["click(500,500)"] * 3,
        completion_ids=[[0] * 6, [0] * 7, [0] * 10],
        task=[task.model_dump_json()] * 3,
        log_metric=lambda name, value: logged.update({name: value}),
    )
    assert rewards == [2.0, 1.75, 1.0]
    assert logged["hypertrack/overlong"] == pytest.approx(-1.25 / 3)
    assert scorer.score(task, "click(500,500)").reward.total == 2.0  # of an unknown length
