"""NeMo-RL: a reward function of its VLM environment, which ``combine_reward_functions`` combines with others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from guieval.rewards.adapters.rows import task_of
from guieval.rewards.response import ResponseScorer


def reward_function(scorer: ResponseScorer) -> Callable[..., tuple[float, bool | None]]:
    """The scorer as ``f(ground_truth, response) -> (reward, is_correct)``; the ground truth is the step's text."""

    def guieval_reward(ground_truth: str, response: str, **ignored: Any) -> tuple[float, bool | None]:
        scored = scorer.score(task_of(ground_truth), response)
        return scored.reward.total, scored.reward.outcome.exact_match if scored.measured else None

    return guieval_reward
