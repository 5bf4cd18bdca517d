"""The policy's sampled answers to prompts, by TRL's own generation (transformers or vLLM), as rows without pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from guieval.errors import UsageError
from guieval.models import ModelInput
from guieval.training.data.examples import Messages, PromptBuilder, SizedPicture
from guieval.training.trainers.pictures import BLANK, BatchPictures
from guieval.training.trainers.rows import TYPES, CompletedPrompt
from guieval.training.vllm_evaluation import READ_OTHERWISE

AT_ONCE = 16
"""Prompts whose pixels are in memory at the same time, and that transformers generates together."""
SAMPLED = "sampling_per_token_logps"


class SampledResponse(NamedTuple):
    """A response and the row that trains it."""

    row: CompletedPrompt
    text: str


class _Prompt(NamedTuple):
    """``short`` are the tokens before those of a picture are repeated for each of its patches."""

    short: list[int]
    tokens: list[int]
    types: dict[str, list[int]]
    pictures: tuple[SizedPicture, ...]


class Answers:
    """Samples answers with the trainer's weights. All processes must ask equally often, each with any number of prompts."""

    def __init__(self, trainer: Any, prompts: PromptBuilder, pictures: BatchPictures) -> None:
        self._trainer = trainer
        self._prompts = prompts
        self._pictures = pictures
        self._blank = lru_cache(maxsize=1)(self._read_blank)
        self._vllm_read: list[list[int]] | None = None
        if trainer.use_vllm:
            trainer.vllm_generation.generate = self._watched(trainer.vllm_generation.generate)

    def __call__(self, asked: Sequence[ModelInput]) -> list[SampledResponse]:
        """One answer per prompt; idle prompts fill up to the number of the other processes."""
        trainer = self._trainer
        count = len(asked)
        most = int(trainer.accelerator.gather(torch.tensor([count], device=trainer.accelerator.device)).max())
        messages = [self._prompts.of(prepared) for prepared in asked] + [self._idle()] * (most - count)
        pictures = [tuple(map(self._prompts.picture, prepared.images)) for prepared in asked] + [(BLANK,)] * (most - count)
        step = max(AT_ONCE, trainer.args.per_device_train_batch_size)
        parts = [slice(start, start + step) for start in range(0, most, step)]
        if trainer.use_vllm:  # one request for all: vLLM batches by itself
            parts = [slice(0, most)] if most else []
        answers: list[SampledResponse] = []
        for part in parts:
            prompts = self._read(messages[part], pictures[part])
            tokens, logps = self._generated(prompts)
            texts = trainer.processing_class.batch_decode(tokens, skip_special_tokens=True)
            sampled = [None] * len(tokens) if logps is None else logps
            rows = map(self._row, prompts, tokens, sampled)
            answers += map(SampledResponse, rows, texts)
        return answers[:count]

    def filler(self) -> CompletedPrompt:
        """A row that does not count: as short as a prompt with a picture can be."""
        prompt = self._blank()
        return self._with_answer(prompt, [self._trainer.eos_token_ids[0]], counts=False)

    def _idle(self) -> Messages:
        image = {"type": "image", "image": self._pictures.image(BLANK)}
        return [{"role": "user", "content": [image, {"type": "text", "text": "."}]}]

    def _read_blank(self) -> _Prompt:
        """The shortest prompt, with the types of tokens that TRL reads."""
        _, _, fields = self._trainer._tokenize_prompts([self._idle()])
        if unknown := sorted(fields.keys() - {"pixel_values", "image_grid_thw", *TYPES}):
            raise UsageError(f"models whose inputs have {unknown[0]!r} cannot be trained by RL with TRL, only Qwen-VL's kind")
        types = {name: list(fields[name][0]) for name in TYPES if name in fields}
        (short, whole, _) = self._tokens([self._idle()], [(BLANK,)])[0]
        return _Prompt(short, whole, types, (BLANK,))

    def _read(self, messages: Sequence[Messages], pictures: Sequence[tuple[SizedPicture, ...]]) -> list[_Prompt]:
        """TRL's reading of prompts, but with pictures that are processed once for all prompts, and for the loss."""
        names = self._blank().types
        read = zip(self._tokens(messages, pictures), pictures, strict=True)
        return [_Prompt(short, whole, dict.fromkeys(names, marks), shown) for (short, whole, marks), shown in read]

    def _tokens(
        self, messages: Sequence[Messages], pictures: Sequence[tuple[SizedPicture, ...]]
    ) -> list[tuple[list[int], list[int], list[int]]]:
        """Each prompt's tokens with one per picture, and with all; for each of the latter 1 if it is a picture's, else 0."""
        trainer, processor = self._trainer, self._trainer.processing_class
        texts = processor.apply_chat_template(
            list(messages),
            chat_template=trainer.chat_template,
            add_generation_prompt=True,
            tokenize=False,
            **trainer.chat_template_kwargs,
        )
        image, merged = processor.image_token_id, processor.image_processor.merge_size**2
        found = []
        for short, shown in zip(trainer._tokenizer(texts, add_special_tokens=False)["input_ids"], pictures, strict=True):
            if short.count(image) != len(shown):
                raise UsageError(
                    f"a prompt with {len(shown)} screenshots names {short.count(image)}: its text contains a placeholder"
                )
            counts = iter(int(self._pictures.patches(picture)[1].prod()) // merged for picture in shown)
            whole = [token for each in short for token in ([image] * next(counts) if each == image else [each])]
            found.append((short, whole, [int(token == image) for token in whole]))
        return found

    def _generated(self, prompts: Sequence[_Prompt]) -> tuple[Sequence[Any], Sequence[Any] | None]:
        """The tokens of a response to each prompt and, from vLLM, their log-probabilities."""
        trainer = self._trainer
        pictures = [prompt.pictures for prompt in prompts]
        whole = [prompt.tokens for prompt in prompts]
        if not trainer.use_vllm:
            fields = self._pictures.batch(pictures)
            fields.pop("num_images", None)
            fields |= {name: [prompt.types[name] for prompt in prompts] for name in prompts[0].types}
            replies: tuple[Any, Any] = trainer._generate_single_turn(whole, None, fields, 1)
            return replies
        images = [[self._pictures.image(picture) for picture in shown] or None for shown in pictures]
        # a vLLM in this process repeats the tokens of pictures itself, also if they are repeated already; a server does not
        sent = [prompt.short for prompt in prompts] if trainer.vllm_mode == "colocate" else whole
        replies = trainer._generate_single_turn(sent, images, {}, 1)
        if self._vllm_read is not None and self._vllm_read != whole:
            raise UsageError(READ_OTHERWISE)
        return replies

    def _watched(self, generate: Callable[..., Any]) -> Callable[..., Any]:
        """vLLM's generation; keeps the prompts that it has read."""

        def watched(*arguments: Any, **named: Any) -> Any:
            made = generate(*arguments, **named)
            self._vllm_read = [list(prompt) for prompt in made[0]]
            return made

        return watched

    def _row(self, prompt: _Prompt, answer: Sequence[int], sampled: Sequence[float | None] | None) -> CompletedPrompt:
        """With ``mask_truncated_completions``, a truncated answer does not count."""
        trainer = self._trainer
        ends = [*trainer.eos_token_ids, trainer._tokenizer.pad_token_id]
        cut = trainer.mask_truncated_completions and (not len(answer) or int(answer[-1]) not in ends)
        return self._with_answer(prompt, answer, sampled, counts=not cut)

    def _with_answer(
        self, prompt: _Prompt, answer: Sequence[int], sampled: Sequence[float | None] | None = None, *, counts: bool
    ) -> CompletedPrompt:
        tokens = {}
        if sampled is not None:
            tokens[SAMPLED] = torch.tensor([float("nan") if each is None else each for each in sampled])
        return CompletedPrompt(
            torch.tensor(prompt.tokens),
            torch.tensor(list(answer), dtype=torch.long),
            pictures=prompt.pictures,
            types={name: torch.tensor(types) for name, types in prompt.types.items()},
            tokens=tokens,
            counts=counts,
        )
