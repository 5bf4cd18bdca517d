"""The policy's sampled answers to prompts, by TRL's own generation (transformers or vLLM), as rows without pixels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from guieval.errors import UsageError
from guieval.models import ModelInput
from guieval.training.data.examples import Messages, Picture, PromptBuilder
from guieval.training.guard import require_behaviour
from guieval.training.trainers.pictures import BLANK, Pictures
from guieval.training.trainers.rows import TYPES, Row

AT_ONCE = 16
"""Prompts whose pixels are in memory at the same time, and that transformers generates together."""
SAMPLED = "sampling_per_token_logps"


class Answer(NamedTuple):
    """A reply and the row that trains it."""

    row: Row
    text: str


class _Prompt(NamedTuple):
    tokens: list[int]
    types: dict[str, list[int]]
    pictures: tuple[Picture, ...]


class Answers:
    """Samples answers with the trainer's weights. All processes must ask equally often, each with any number of prompts."""

    def __init__(self, trainer: Any, prompts: PromptBuilder, pictures: Pictures) -> None:
        self._trainer = trainer
        self._prompts = prompts
        self._pictures = pictures
        self._blank = lru_cache(maxsize=1)(self._read_blank)

    def __call__(self, asked: Sequence[ModelInput]) -> list[Answer]:
        """One answer per prompt; idle prompts fill up to the number of the other processes."""
        trainer = self._trainer
        count = len(asked)
        most = int(trainer.accelerator.gather(torch.tensor([count], device=trainer.accelerator.device)).max())
        messages = [self._prompts.of(prepared) for prepared in asked] + [self._idle()] * (most - count)
        pictures = [tuple(map(self._prompts.picture, prepared.images)) for prepared in asked] + [(BLANK,)] * (most - count)
        step = max(AT_ONCE, trainer.args.per_device_train_batch_size)
        parts = [slice(start, start + step) for start in range(0, most, step)]
        made: Iterable[tuple[list[_Prompt], list[Any], Mapping[str, Any]]]
        if trainer.use_vllm:  # one request for all: the server batches by itself
            read = [self._read(messages[part], pictures[part])[:2] for part in parts]
            prompts = [prompt for each, _ in read for prompt in each]
            images = [image for _, each in read for image in each]
            made = [(prompts, images, {})] if prompts else []
        else:
            made = (self._read(messages[part], pictures[part]) for part in parts)
        answers: list[Answer] = []
        for prompts, images, fields in made:
            tokens, logps = trainer._generate_single_turn([prompt.tokens for prompt in prompts], images, fields, 1)
            self._check(tokens, logps, len(prompts))
            texts = trainer.processing_class.batch_decode(tokens, skip_special_tokens=True)
            sampled = [None] * len(tokens) if logps is None else logps
            rows = map(self._row, prompts, tokens, sampled)
            answers += map(Answer, rows, texts)
        return answers[:count]

    def filler(self) -> Row:
        """A row that does not count: as short as a prompt with a picture can be."""
        prompt = self._blank()
        return self._with_answer(prompt, [self._trainer.eos_token_ids[0]], counts=False)

    def _idle(self) -> Messages:
        image = {"type": "image", "image": self._pictures.image(BLANK)}
        return [{"role": "user", "content": [image, {"type": "text", "text": "."}]}]

    def _read_blank(self) -> _Prompt:
        (prompt,), _, _ = self._read([self._idle()], [(BLANK,)])
        return prompt

    def _read(
        self, messages: Sequence[Messages], pictures: Sequence[tuple[Picture, ...]]
    ) -> tuple[list[_Prompt], list[Any], Mapping[str, Any]]:
        tokens, images, fields = self._trainer._tokenize_prompts(list(messages))
        pad = self._trainer._tokenizer.pad_token_id
        require_behaviour(
            len(tokens) == len(messages) and all(len(each) and each[0] != pad for each in tokens),
            "GRPOTrainer._tokenize_prompts",
            "returns the tokens of each prompt without padding",
        )
        if unknown := sorted(fields.keys() - {"pixel_values", "image_grid_thw", *TYPES}):
            raise UsageError(f"models whose inputs have {unknown[0]!r} cannot be trained by RL with TRL, only Qwen-VL's kind")
        prompts = [
            _Prompt(list(each), {name: list(fields[name][number]) for name in TYPES if name in fields}, pictures[number])
            for number, each in enumerate(tokens)
        ]
        return prompts, images if images is not None else [None] * len(prompts), fields

    def _check(self, tokens: Sequence[Any], logps: Sequence[Any] | None, count: int) -> None:
        trainer, ends = self._trainer, set(self._trainer.eos_token_ids)
        require_behaviour(
            len(tokens) == count
            and all(len(each) <= trainer.max_completion_length and ends.isdisjoint(map(int, each[:-1])) for each in tokens),
            "GRPOTrainer._generate_single_turn",
            "returns one reply per prompt, cut after its first end token and without padding",
        )
        require_behaviour(
            logps is None or [len(each) for each in logps] == [len(each) for each in tokens],
            "GRPOTrainer._generate_single_turn",
            "returns the sampler's log-probability of every token",
        )

    def _row(self, prompt: _Prompt, answer: Sequence[int], sampled: Sequence[float | None] | None) -> Row:
        """With ``mask_truncated_completions``, a truncated answer does not count."""
        trainer = self._trainer
        ends = [*trainer.eos_token_ids, trainer._tokenizer.pad_token_id]
        cut = trainer.mask_truncated_completions and (not len(answer) or int(answer[-1]) not in ends)
        return self._with_answer(prompt, answer, sampled, counts=not cut)

    def _with_answer(
        self, prompt: _Prompt, answer: Sequence[int], sampled: Sequence[float | None] | None = None, *, counts: bool
    ) -> Row:
        tokens = {}
        if sampled is not None:
            tokens[SAMPLED] = torch.tensor([float("nan") if each is None else each for each in sampled])
        return Row(
            torch.tensor(prompt.tokens),
            torch.tensor(list(answer), dtype=torch.long),
            pictures=prompt.pictures,
            types={name: torch.tensor(types) for name, types in prompt.types.items()},
            tokens=tokens,
            counts=counts,
        )
