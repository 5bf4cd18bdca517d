"""OpenRLHF (0.11): a ``reward_func`` for the file given as ``--reward.remote_url``.

OpenRLHF passes prompt and response as one text decoded from tokens: it contains special tokens, an image is as many
placeholders as it has tokens, and a prompt that was too long is cut at its beginning. The response is what follows the prompt
nevertheless.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from guieval.errors import UsageError
from guieval.rewards.adapters.rows import metrics, task_of
from guieval.rewards.response import ResponseScorer

_REPEATED = re.compile(r"(<\|[^<>|]+\|>)\1+")
_TAIL = 200


def reward_function(scorer: ResponseScorer, tensor: Callable[[list[float]], Any] = list) -> Callable[..., dict[str, Any]]:
    """The scorer as OpenRLHF's reward function, with ``labels`` holding the steps.

    It returns ``rewards``, ``scores`` in [0, 1] for dynamic filtering (the share of the highest reward there is), and
    ``extra_logs``, each made by ``tensor``: OpenRLHF needs ``torch.tensor``, which is left to the caller so that nothing here
    imports torch::

        reward_func = reward_function(open_scorer(), tensor=torch.tensor)
    """

    def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **ignored: Any) -> dict[str, Any]:
        if not len(queries) == len(prompts) == len(labels):
            raise UsageError(f"{len(queries)} queries, {len(prompts)} prompts and {len(labels)} labels: expected equally many")
        scored = [
            scorer.score(task_of(label), reply_in(query, prompt))
            for query, prompt, label in zip(queries, prompts, labels, strict=True)
        ]
        rewards = [each.reward.total for each in scored]
        highest = scorer.reward.highest
        logs = [metrics(each) for each in scored]
        names = list(dict.fromkeys(name for each in logs for name in each))
        return {
            "rewards": tensor(rewards),
            "scores": tensor([min(1.0, max(0.0, each / highest)) if highest > 0 else 0.0 for each in rewards]),
            "extra_logs": {name: tensor([each.get(name, 0.0) for each in logs]) for name in names},
        }

    return reward_func


def reply_in(query: str, prompt: str) -> str:
    """The response in a query. Raises :class:`UsageError` if the prompt is not found."""
    if query.startswith(prompt):
        reply = query.removeprefix(prompt)
    else:
        once, asked = _REPEATED.sub(r"\1", query), _REPEATED.sub(r"\1", prompt)
        tail = asked[-_TAIL:]
        if once.startswith(asked):
            reply = once.removeprefix(asked)
        elif tail in once:
            reply = once.rpartition(tail)[2]
        else:
            raise UsageError(f"the query {query!r:.60} does not hold its prompt, which ends with {prompt[-40:]!r}")
    return reply
