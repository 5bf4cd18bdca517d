"""How prompts are read and answered: by TRL's own reading, by vLLM's, and with each screenshot processed once."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import torch

from guieval.errors import UsageError
from guieval.history import reference_history
from guieval.journal import RunFolder
from guieval.running.api import run
from guieval.training.building import TrainerParts
from guieval.training.evaluation import metrics_of, run_config
from guieval.training.lockstep import LiveModel
from guieval.training.session import train
from guieval.training.trainers.answers import SAMPLED

from .conftest import Configured, evaluations, in_training
from .stand_in_vllm import StandIn, engine_of, install


def with_vllm(configured: Configured, patch: pytest.MonkeyPatch, policy: Path, mode: str) -> tuple[Any, StandIn, list[Any]]:
    install(patch)
    settings = {"use_vllm": True, "vllm_mode": mode, "vllm_server_base_url": f"http://{policy}"}
    trainer = in_training(configured("grpo", dynamic_sampling=None, trainer=settings))
    examples = [trainer._example(number) for number in (0, 1, 0)]
    asked = [trainer._prompts.model.prepare_input(each.task, each.history) for each in examples]
    return trainer, engine_of(trainer), asked


@pytest.mark.parametrize("mode", ["colocate", "server"])
def test_vllm_reads_the_prompt_that_is_trained(
    mode: str, configured: Configured, monkeypatch: pytest.MonkeyPatch, policy: Path
) -> None:
    trainer, engine, asked = with_vllm(configured, monkeypatch, policy, mode)
    answers = trainer._answers(asked)
    (pairs,) = engine.asked
    token = trainer.processing_class.image_token_id
    assert [prompt.count(token) for prompt, _ in pairs] == ([1, 1, 1] if mode == "colocate" else [144, 144, 144])
    assert [len(images) for _, images in pairs] == [1, 1, 1]
    whole = trainer._tokenize_prompts([trainer._prompts.of(each) for each in asked])[0]
    assert [answer.row.prompt.tolist() for answer in answers] == whole
    row = answers[0].row
    assert torch.allclose(row.tokens[SAMPLED], -0.1 * torch.arange(1, len(row.completion) + 1))
    assert engine.events.count("load") == 1  # once for these weights
    trainer._answers(asked)
    assert engine.events.count("load") == 1
    trainer.state.global_step += 1
    trainer._answers(asked)
    assert engine.events.count("load") == 2
    if mode == "colocate":
        engine.bent = 1
        with pytest.raises(UsageError, match="vLLM reads prompts otherwise than the model that is trained"):
            trainer._answers(asked)


@pytest.mark.parametrize("mode", ["colocate", "server"])
def test_evaluations_go_through_vllm_with_the_weights_of_their_step(
    mode: str, configured: Configured, monkeypatch: pytest.MonkeyPatch, policy: Path
) -> None:
    """What it answers is what the saved weights answer, and the copy in this process sleeps whenever it is not asked."""
    install(monkeypatch)
    made: list[StandIn] = []
    monkeypatch.setattr(StandIn, "__init__", _kept(StandIn.__init__, made))
    monkeypatch.setattr(LiveModel, "_replies", lambda *given: pytest.fail("the weights in training answer"))
    vllm = {"use_vllm": True, "vllm_mode": mode, "vllm_server_base_url": f"http://{policy}", "vllm_enable_sleep_mode": True}
    evaluation = {"every": 1, "bench_options": {"split": "test"}, "limit": 4}
    config = configured("grpo", evaluation=evaluation, trainer={**vllm, "max_steps": 1, "learning_rate": 1e-4})
    final = train(config)
    assert config.evaluation is not None
    base, folder = run_config(config, config.evaluation, 1), Path(config.out) / "again"
    (same,) = run(base, out=folder, model_path=str(final), data=config.data, progress=False).runs
    assert evaluations(config)[-1] == {"step": 1, **metrics_of(same.summary)}
    saved = [RunFolder(Path(config.out) / name) for name in ("evaluations/step-0", "evaluations/step-1", "again")]
    before, after, again = ({str(each.task.key): each.sample.raw_response for each in folder.records} for folder in saved)
    assert before != after == again and saved[1].manifest.config.server.engine == "vllm"
    (engine,) = made
    phases = [name for name, _ in groupby(engine.events)]
    if mode == "server":  # rollouts have the weights of the evaluation before them
        assert phases == ["load", "generate"] * 2
    else:
        assert phases == ["sleep", *["load", "generate", "sleep"] * 3] and not engine.awake
    assert engine.events.count("generate") > 3  # several rounds without a sleep between them


def _kept(original: Any, made: list[StandIn]) -> Any:
    def kept(self: StandIn, *given: Any, **named: Any) -> None:
        original(self, *given, **named)
        made.append(self)

    return kept


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
