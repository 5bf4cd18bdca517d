"""ms-swift (4.6): a class for ``swift.rewards.orms``, from a file given as ``--external_plugins``."""

from __future__ import annotations

from typing import Any, ClassVar

from guieval.rewards.adapters.rows import column
from guieval.rewards.response import ResponseScorer, open_scorer


class GuievalReward:
    """A reward for ms-swift, which creates it with the trainer's arguments and calls it with strings and the data's columns.

    A subclass selects the scorer, and ms-swift logs the rewards under its name::

        from swift.rewards import orms
        class UIS1(GuievalReward):
            model, reward = "qwen2.5-vl-7b-ui-s1", "ui-s1"
        orms["ui-s1"] = UIS1
    """

    model: ClassVar[str] = "qwen2.5-vl-7b-ui-s1"
    reward: ClassVar[str] = "ui-s1"
    protocol: ClassVar[str | None] = None

    def __init__(self, args: Any = None, **ignored: Any) -> None:
        self.args = args
        self.scorer: ResponseScorer = open_scorer(self.model, self.reward, protocol=self.protocol)

    def __call__(self, completions: list[str], **columns: Any) -> list[float]:
        """One reward per completion, by the column ``task``."""
        steps = column(columns, len(completions))
        return [self.scorer.score(task, text).reward.total for task, text in zip(steps, completions, strict=True)]
