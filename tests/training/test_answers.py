"""How prompts are read and answered: by TRL's own reading, by vLLM's, and with each screenshot processed once."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from guieval.errors import UsageError
from guieval.history import reference_history
from guieval.training.building import TrainerParts
from guieval.training.trainers.answers import SAMPLED, Answers

from .conftest import Configured, in_training


class Sampler:
    """As TRL's vLLM: in this process it repeats the first token of each picture, whether or not it is repeated already."""

    def __init__(self, trainer: Any) -> None:
        self.trainer, self.synced = trainer, 0
        self.asked: list[Any] = []
        self.bent = 0

    def sync_weights(self) -> None:
        self.synced += 1

    def generate(self, prompts: Any, images: Any, num_generations: int, profiler: Any) -> Any:
        self.asked.append((prompts, images))
        read = [self._repeated(*each) for each in zip(prompts, images, strict=True)]
        ends = self.trainer.eos_token_ids[0]
        replies = [[5, 6, ends] for _ in prompts]
        return read, replies, [[[-0.1], [-0.2], [None]] for _ in prompts], None

    def _repeated(self, prompt: list[int], images: list[Any]) -> list[int]:
        if self.trainer.vllm_mode == "server":
            return prompt
        token, read, rest = self.trainer.processing_class.image_token_id, [], iter(images)
        for place, each in enumerate(prompt):
            image = next(rest, None) if each == token else None
            read += [each] if image is None else [each] * (self._tokens(image) + self.bent)
            if image is None:
                continue
            assert prompt[place + 1] != token, "the tokens of a picture would be repeated twice"
        return read

    def _tokens(self, image: Any) -> int:
        processor = self.trainer.processing_class.image_processor
        patches = int(processor(images=[image], return_tensors="pt")["image_grid_thw"].prod())
        return patches // int(processor.merge_size) ** 2


def with_vllm(configured: Configured, mode: str) -> tuple[Any, Sampler, list[Any]]:
    trainer = in_training(configured("grpo", dynamic_sampling=None))
    trainer.use_vllm, trainer.vllm_mode, trainer._last_loaded_step = True, mode, -1
    trainer.vllm_generation = sampler = Sampler(trainer)
    trainer._answers = Answers(trainer, trainer._prompts, trainer._pictures)
    examples = [trainer._example(number) for number in (0, 1, 0)]
    return trainer, sampler, [trainer._prompts.model.prepare_input(each.task, each.history) for each in examples]


@pytest.mark.parametrize("mode", ["colocate", "server"])
def test_vllm_reads_the_prompt_that_is_trained(mode: str, configured: Configured) -> None:
    trainer, sampler, asked = with_vllm(configured, mode)
    answers = trainer._answers(asked)
    ((prompts, images),) = sampler.asked
    token = trainer.processing_class.image_token_id
    assert [each.count(token) for each in prompts] == [1, 1, 1] if mode == "colocate" else [144, 144, 144]
    assert [len(each) for each in images] == [1, 1, 1]
    whole = trainer._tokenize_prompts([trainer._prompts.of(each) for each in asked])[0]
    assert [answer.row.prompt.tolist() for answer in answers] == whole
    assert sampler.synced == 1  # once for these weights
    trainer._answers(asked)
    assert sampler.synced == 1
    trainer.state.global_step += 1
    trainer._answers(asked)
    assert sampler.synced == 2


def test_the_samplers_log_probabilities_are_kept_and_its_reading_has_to_be_the_models(configured: Configured) -> None:
    trainer, sampler, asked = with_vllm(configured, "colocate")
    (row, *_) = [answer.row for answer in trainer._answers(asked)]
    assert torch.allclose(row.tokens[SAMPLED], torch.tensor([-0.1, -0.2, torch.nan]), equal_nan=True)
    sampler.bent = 1
    with pytest.raises(UsageError, match="vLLM reads prompts otherwise than the model that is trained"):
        trainer._answers(asked)


def test_prompts_are_read_as_trl_reads_them(configured: Configured) -> None:
    """With no, one and two screenshots: the tokens, their types, and what transformers generates from."""
    parts = TrainerParts(configured("semi-online", dynamic_sampling=None))
    trainer = parts.trainer()
    steps = parts.data.episode(parts.data.episodes[0])[0].steps
    asked = [parts.model.prepare_input(step, reference_history(steps[:place])) for place, step in enumerate(steps[:3])]
    messages = [parts.prompts.of(each) for each in asked]
    pictures = [tuple(map(parts.prompts.picture, each.images)) for each in asked]
    both = [block for each in messages[:2] for message in each for block in message["content"]]
    messages += [[{"role": "user", "content": both}], [{"role": "user", "content": [{"type": "text", "text": "Say yes."}]}]]
    pictures += [pictures[0] + pictures[1], ()]
    seen: list[Any] = []
    trainer._generate_single_turn = lambda *given: seen.append(given)
    prompts = trainer._answers._read(messages, pictures)
    trainer._answers._generated(prompts)
    tokens, _, fields = trainer._tokenize_prompts(messages)
    ((sent, images, given, count),) = seen
    assert (sent, images, count) == (tokens, None, 1)
    assert given.keys() == fields.keys() and torch.equal(given["pixel_values"], fields["pixel_values"])
    assert torch.equal(given["image_grid_thw"], fields["image_grid_thw"])
    assert given["mm_token_type_ids"] == [list(each) for each in fields["mm_token_type_ids"]]
    placeholder = [[{"role": "user", "content": [{"type": "text", "text": f"Tap {trainer.processing_class.image_token}."}]}]]
    with pytest.raises(UsageError, match="a prompt with 0 screenshots names 1: its text contains a placeholder"):
        trainer._answers._read(placeholder, [()])


def test_each_screenshot_is_processed_once(configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both for all rollouts' prompts and for the passes of the loss."""
    trainer = in_training(configured("grpo", dynamic_sampling=None))
    kind = type(trainer.processing_class.image_processor)
    processed: list[Any] = []
    original = kind.__call__

    def counted(self: Any, images: Any, *arguments: Any, **named: Any) -> Any:
        flat = [image for each in images for image in (each if isinstance(each, list) else [each])]
        processed.extend(image.size for image in flat)
        return original(self, images, *arguments, **named)

    monkeypatch.setattr(kind, "__call__", counted)
    batch = trainer._generate_batch([{"index": task} for task in (0, 1) for _ in range(4)])
    for chunk in batch.chunks:
        trainer._passes(trainer.model, batch, chunk)
    screens = [size for size in processed if size != (32, 32)]
    assert len(screens) == len({picture for chunk in batch.chunks for row in chunk for picture in row.pictures}) == 2
