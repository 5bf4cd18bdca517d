"""verifiers, and prime-rl by it: a rubric's reward function (v0), and a method of a task (v1, from 0.4)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from guieval.errors import UsageError
from guieval.rewards.adapters.rows import TASK, task_of
from guieval.rewards.response import ResponseScorer


def rubric_function(scorer: ResponseScorer) -> Callable[..., float]:
    """v0: ``Rubric(funcs=[...])``; the step is ``info["task"]``, else ``answer``."""

    def guieval_reward(completion: Any, info: Mapping[str, Any] | None = None, answer: Any = None) -> float:
        step = (info or {}).get(TASK, answer)
        return scorer.score(task_of(step), completion).reward.total

    return guieval_reward


def task_method(scorer: ResponseScorer) -> Callable[..., Coroutine[Any, Any, dict[str, float]]]:
    """v1: put ``@vf.reward`` on it in the body of a ``vf.Task``; its data needs a field ``task`` with the step's text.

    It returns the reward alone, under its name; the response judged is the trace's last.
    """

    async def guieval_reward(self: Any, trace: Any) -> dict[str, float]:
        step = getattr(self.data, TASK, None)
        if step is None:
            raise UsageError(f"the task's data has no field {TASK!r}, the text of StepTaskModel.model_dump_json()")
        return {scorer.reward.name: scorer.score(task_of(step), trace.last_reply).reward.total}

    return guieval_reward
