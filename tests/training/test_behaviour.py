"""What trainings rely on in TRL, transformers and accelerate: a change is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from accelerate.state import GradientState
from transformers import Trainer
from trl import GRPOTrainer

from guieval.errors import UsageError
from guieval.training.building import Parts
from guieval.training.trainers.behaviour import check_behaviour
from tests.training.conftest import Configured, in_training, small_training


@pytest.fixture(scope="module")
def trainer(policy: Any, screens: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A trainer as it is made; building it has tested all behaviours once."""
    out = str(tmp_path_factory.mktemp("out"))
    return Parts(small_training("grpo", policy, screens, out=out, trainer={"max_steps": 1})).trainer()


def divided(original: Callable[..., Any]) -> Callable[..., Any]:
    """transformers divides by the accumulated passes unless the loss is marked as scaled."""

    def step(self: Any, model: Any, inputs: Any, items: Any = None) -> Any:
        self.compute_loss_func = self.loss_is_scaled_for_ga = None
        self.model_accepts_loss_kwargs = False
        return original(self, model, inputs, items)

    return step


def never(original: Callable[..., Any]) -> Callable[..., Any]:
    def set_sync(self: Any, value: bool) -> None:
        original(self, True)

    return set_sync


@pytest.mark.parametrize(
    ("kind", "method", "change", "sentence"),
    [
        (Trainer, "training_step", divided, "Trainer.training_step no longer passes the loss of compute_loss to backward"),
        (GradientState, "_set_sync_gradients", never, "GradientState._set_sync_gradients no longer switches"),
    ],
)
def test_each_change(kind: Any, method: str, change: Any, sentence: str, trainer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert trainer.accelerator.sync_gradients and trainer.state.log_history == []  # the tests left the trainer as it was
    monkeypatch.setattr(kind, method, change(getattr(kind, method)))
    with pytest.raises(UsageError) as caught:
        check_behaviour(trainer)
    assert sentence in str(caught.value) and "pip install 'trl>=1.16,<1.17'" in str(caught.value)


def padded(trainer: Any, result: Any) -> Any:
    return [[trainer._tokenizer.pad_token_id, *each] for each in result[0]], *result[1:]


def uncut(trainer: Any, result: Any) -> Any:
    return [[*each, trainer.eos_token_ids[0], *each] for each in result[0]], result[1]


def too_few(trainer: Any, result: Any) -> Any:
    return result[0], [[0.0]] * len(result[0])


def too_many(trainer: Any, result: Any) -> Any:
    return torch.cat([result[0][:, :1], result[0]], dim=1), *result[1:]


@pytest.mark.parametrize(
    ("method", "change", "sentence"),
    [
        ("_tokenize_prompts", padded, "the tokens of each prompt without padding"),
        ("_generate_single_turn", uncut, "one reply per prompt, cut after its first end token"),
        ("_generate_single_turn", too_few, "the sampler's log-probability of every token"),
        ("_get_per_token_logps_and_entropies", too_many, "the log-probabilities of the completions' tokens alone"),
    ],
)
def test_odd_results(method: str, change: Any, sentence: str, configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = in_training(configured("grpo", dynamic_sampling=None, trainer={"beta": 0.1}))
    original = getattr(GRPOTrainer, method)
    monkeypatch.setattr(GRPOTrainer, method, lambda self, *given, **named: change(self, original(self, *given, **named)))
    with pytest.raises(UsageError) as caught:
        trainer._generate_batch([{"index": 0} for _ in range(4)])
    assert f"{method} no longer returns {sentence}" in str(caught.value)


def test_log_probabilities_are_those_of_the_model(configured: Configured) -> None:
    """TRL's private function against a softmax over the model's own output, at the sampling temperature."""
    trainer = in_training(configured("grpo", dynamic_sampling=None, trainer={"beta": 0.1, "temperature": 0.8}))
    batch = trainer._generate_batch([{"index": 0} for _ in range(4)])
    row = batch.chunks[0][0]
    inputs = trainer._packed(batch, [row], 1)
    model = trainer.accelerator.unwrap_model(trainer.model)
    tokens = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
    pictures = {name: inputs[name] for name in ("pixel_values", "image_grid_thw", "mm_token_type_ids")}
    with torch.no_grad():
        logits = model(input_ids=tokens, attention_mask=torch.ones_like(tokens), **pictures).logits
        found = trainer._likelihoods._of(trainer.model, inputs)
    likely = (logits / 0.8).log_softmax(-1)[:, :-1].gather(2, tokens[:, 1:, None])[..., 0]
    assert torch.allclose(found, likely[:, -len(row.completion) :], atol=1e-5)
