"""A server manager of verl that gives scripted answers: the one part of a rollout that cannot run without an accelerator."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guieval.registry import load_model
from guieval.steps import Episode

EMPTY: tuple[Any, ...] = ()
WRONG = '<think>\nhm\n</think>\n<action>\n{"action": "click", "coordinate": [1, 1]}\n</action>'
"""A click that is on no icon, as UI-S1 writes it."""


@dataclass
class ScriptedServer:
    """Answers the n-th request with ``say(n, prompt)``; keeps every prompt as text, and how many images came with it."""

    tokenizer: Any
    say: Callable[[int, str], str]
    prompts: list[str] = field(default_factory=list)
    images: list[int] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    async def generate(self, request_id: str, *, prompt_ids: Sequence[int], image_data: Any = None, **others: Any) -> Any:
        from verl.workers.rollout.replica import TokenOutput

        prompt = self.tokenizer.decode(prompt_ids)
        answer = self.say(len(self.prompts), prompt)
        self.prompts.append(prompt)
        self.images.append(len(image_data or EMPTY))
        self.requests.append(request_id)
        ids = [*self.tokenizer(answer, add_special_tokens=False)["input_ids"], self.tokenizer.eos_token_id]
        weights = {"min_global_steps": 0, "max_global_steps": 0, "global_steps": 0}
        return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids), extra_fields=weights)


class _ByTheDice:
    """A policy that is right about every other time, by a seed; it travels to verl's worker processes."""

    def __init__(self, tokenizer: Path) -> None:
        self._tokenizer, self._dice = tokenizer, random.Random(1)

    async def generate(self, request_id: str, *, prompt_ids: Sequence[int], **others: Any) -> Any:
        from verl.utils.tokenizer import hf_tokenizer

        server = ScriptedServer(hf_tokenizer(str(self._tokenizer)), self._say)
        return await server.generate(request_id, prompt_ids=prompt_ids, **others)

    def _say(self, number: int, prompt: str) -> str:
        raise NotImplementedError


class HalfRight(_ByTheDice):
    """It knows the episodes; ``never`` holds goals at which it is always wrong, so that their rollouts do not differ."""

    def __init__(self, tokenizer: Path, episodes: Sequence[Episode], *, never: Sequence[str] = ()) -> None:
        super().__init__(tokenizer)
        self._episodes, self._never = list(episodes), list(never)

    def _say(self, number: int, prompt: str) -> str:
        episode = next(each for each in self._episodes if each.steps[0].instruction in prompt)
        task = episode.steps[prompt.count("<|im_start|>assistant") - 1]
        if task.instruction in self._never or self._dice.random() < 0.5:
            return WRONG
        return load_model("qwen2.5-vl-7b-ui-s1").render(task, task.action, "seen")


class Chance(_ByTheDice):
    """It knows the right first reply to each goal of ``right``."""

    def __init__(self, tokenizer: Path, right: Mapping[str, str]) -> None:
        super().__init__(tokenizer)
        self._right = dict(right)

    def _say(self, number: int, prompt: str) -> str:
        right = next(reply for goal, reply in self._right.items() if goal in prompt)
        return right if self._dice.random() < 0.5 else WRONG
