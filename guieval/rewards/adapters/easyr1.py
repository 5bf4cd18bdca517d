"""EasyR1: ``worker.reward.reward_function: .../easyr1.py:compute_score`` (sequential), or ``:compute_scores`` (batch)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from guieval.rewards.adapters.rows import metrics, named_scorer, task_of

REWARD_NAME = "guieval"
REWARD_TYPE = "sequential"
"""EasyR1 reads these two names; for ``compute_scores`` write a file of your own with ``REWARD_TYPE = "batch"``."""


def compute_score(reward_input: Mapping[str, Any], **names: Any) -> dict[str, float]:
    """``overall`` and every part of one response, whose ``ground_truth`` is the step.

    ``reward_function_kwargs`` gives the scorer by name: ``model``, ``reward``, ``protocol`` and ``weights``.
    """
    scored = named_scorer(**names).score(task_of(reward_input.get("ground_truth")), reward_input.get("response"))
    return {"overall": scored.reward.total, **metrics(scored)}


def compute_scores(reward_inputs: Sequence[Mapping[str, Any]], **names: Any) -> list[dict[str, float]]:
    """The same for a batch."""
    return [compute_score(each, **names) for each in reward_inputs]
