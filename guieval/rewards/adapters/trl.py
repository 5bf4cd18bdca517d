"""TRL (1.16): a reward function of ``GRPOTrainer(reward_funcs=...)``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from guieval.rewards.adapters.rows import column, metrics
from guieval.rewards.response import ResponseScorer


class TRLReward(Protocol):
    """The type of TRL's reward functions; TRL logs the rewards under ``__name__``."""

    __name__: str

    def __call__(
        self, *, completions: Sequence[Any], log_metric: Callable[[str, float], None] | None = None, **columns: Any
    ) -> list[float | None]: ...


def reward_function(scorer: ResponseScorer, name: str | None = None) -> TRLReward:
    """The scorer as TRL's synchronous reward function, called ``name`` (default: the reward's, as an identifier).

    The data set needs a column ``task``. A completion on which the adapter itself failed gets ``None``, which TRL
    leaves out. A scorer that punishes long responses takes their lengths from TRL's ``completion_ids``. With TRL's
    ``log_metric`` the batch's mean of every part is logged as ``NAME/PART``.
    """

    def reward(
        *, completions: Sequence[Any], log_metric: Callable[[str, float], None] | None = None, **columns: Any
    ) -> list[float | None]:
        rewards: list[float | None] = []
        logged: defaultdict[str, list[float]] = defaultdict(list)
        tokens = columns.get("completion_ids")
        for number, (task, completion) in enumerate(zip(column(columns, len(completions)), completions, strict=True)):
            scored = scorer.score(task, completion, tokens=None if tokens is None else len(tokens[number]))
            rewards.append(scored.reward.total if scored.measured else None)
            if scored.measured:
                for part, value in metrics(scored).items():
                    logged[part].append(value)
        if log_metric is not None:
            for part, values in logged.items():
                log_metric(f"{reward.__name__}/{part}", sum(values) / len(values))
        return rewards

    reward.__name__ = (name or scorer.reward.name).replace("-", "_")
    return reward
