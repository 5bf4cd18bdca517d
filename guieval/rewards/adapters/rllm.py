"""rLLM: a reward function that is given a task's fields and the model's last response."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from guieval.errors import UsageError
from guieval.rewards.adapters.rows import TASK, metrics, task_of
from guieval.rewards.response import ResponseScorer


@dataclass
class RewardOutput:
    """The fields of rLLM's class of that name."""

    reward: float
    metadata: dict[str, Any] = field(default_factory=dict)
    is_correct: bool | None = None


def reward_function(scorer: ResponseScorer, output: Callable[..., Any] = RewardOutput) -> Callable[..., Any]:
    """The scorer as ``f(task_info, action)``; the step is ``task_info["task"]``, else its ``ground_truth``.

    The result is made by ``output``: give rLLM's own ``RewardOutput``. ``is_correct`` is the exact match.
    """

    def reward_fn(task_info: Mapping[str, Any], action: Any) -> Any:
        step = task_info.get(TASK, task_info.get("ground_truth"))
        if step is None:
            raise UsageError(f"task_info has no {TASK!r}, the step's text; its keys are: {', '.join(task_info)}")
        scored = scorer.score(task_of(step), getattr(action, "action", action))
        return output(reward=scored.reward.total, metadata=metrics(scored), is_correct=scored.reward.outcome.exact_match)

    return reward_fn
