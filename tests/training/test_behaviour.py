"""What trainings rely on in TRL, transformers and accelerate: a change is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from accelerate.state import GradientState
from transformers import Trainer

from guieval.errors import UsageError
from guieval.training.building import TrainerParts
from guieval.training.trainers.behaviour import check_behaviour
from tests.training.conftest import Configured, in_training, small_training


@pytest.fixture(scope="module")
def trainer(policy: Any, screens: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A trainer as it is made; building it has tested all behaviours once."""
    out = str(tmp_path_factory.mktemp("out"))
    return TrainerParts(small_training("grpo", policy, screens, out=out, trainer={"max_steps": 1})).trainer()


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
