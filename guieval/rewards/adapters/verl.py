"""verl (0.9.1): ``reward.custom_reward_function.path`` is this file's, ``name: compute_score``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guieval.rewards.adapters.rows import TASK, metrics, named_scorer, task_of


def compute_score(
    data_source: str | None = None,
    solution_str: str = "",
    ground_truth: Any = None,
    extra_info: Mapping[str, Any] | None = None,
    *,
    model: str = "qwen2.5-vl-7b-ui-s1",
    reward: str = "ui-s1",
    protocol: str | None = None,
    weights: Mapping[str, float] | None = None,
    **ignored: Any,
) -> dict[str, float]:
    """Return ``score``, and every part for the metrics.

    The step is the row's ``reward_model["ground_truth"]``, else ``extra_info["task"]``. ``model``, ``reward``, ``protocol`` and
    ``weights`` come from ``reward_kwargs``; all other arguments of verl are ignored.
    """
    scorer = named_scorer(model, reward, protocol, weights)
    step = ground_truth if ground_truth is not None else (extra_info or {}).get(TASK)
    scored = scorer.score(task_of(step), solution_str)
    return {"score": scored.reward.total, **metrics(scored)}
