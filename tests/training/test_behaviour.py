"""What trainings rely on in TRL, transformers and accelerate: it holds as installed, and a change is refused by name."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from accelerate.state import GradientState
from transformers import Trainer
from trl import GRPOTrainer
from trl.trainer.utils import RepeatSampler

from guieval.errors import UsageError
from guieval.training.building import Parts
from guieval.training.guard import SUPPORTED, check_behaviours, require_trl
from guieval.training.trainers.behaviour import BEHAVIOURS
from tests.training.conftest import Configured, in_training, small_training

Changed = Callable[[Callable[..., Any]], Callable[..., Any]]


@pytest.fixture(scope="module")
def trainer(policy: Any, screens: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A trainer as it is made; building it has tested all behaviours once."""
    out = str(tmp_path_factory.mktemp("out"))
    return Parts(small_training("grpo", policy, screens, out=out, trainer={"max_steps": 1})).trainer()


def test_the_installed_packages_behave_as_relied_on(trainer: Any) -> None:
    metrics, step = {mode: dict(each) for mode, each in trainer._metrics.items()}, trainer._step
    check_behaviours(BEHAVIOURS, "trl", SUPPORTED, trainer)
    assert {mode: dict(each) for mode, each in trainer._metrics.items()} == metrics and trainer._step == step
    assert trainer.accelerator.sync_gradients and trainer.state.log_history == []  # the trainer itself is as before


def scaled(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **named: 2 * original(*given, **named)


def other_order(original: Callable[..., Any]) -> Callable[..., Any]:
    def order(self: Any) -> Any:
        if not self.shuffle:
            return original(self)
        return iter(random.Random(torch.randint(100, (1,)).item()).sample(range(self.num_samples), self.num_samples))

    return order


def one_after_another(original: Callable[..., Any]) -> Callable[..., Any]:
    """Each task's uses are together, not each batch's."""
    return lambda self: iter(sorted(original(self)))


def with_mean_over_counted(original: Callable[..., Any]) -> Callable[..., Any]:
    """A mean over the rows that count, instead of all rows."""

    def loss(self: Any, model: Any, inputs: dict[str, Any]) -> Any:
        counted = inputs["completion_mask"].any(1).sum()
        share = len(inputs["completion_mask"]) / counted if self.loss_type == "grpo" else 1
        return original(self, model, inputs) * share

    return loss


def without(name: str, value: float) -> Changed:
    """As if the input was not looked at."""

    def changed(original: Callable[..., Any]) -> Callable[..., Any]:
        def loss(self: Any, model: Any, inputs: dict[str, Any]) -> Any:
            other = {name: torch.full_like(inputs[name], value)} if name in inputs else {}
            return original(self, model, {**inputs, **other})

        return loss

    return changed


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


def every_time(original: Callable[..., Any]) -> Callable[..., Any]:
    def generate(self: Any, *given: Any) -> Any:
        self._last_loaded_step = -1
        return original(self, *given)

    return generate


def half_a_batch(original: Callable[..., Any]) -> Callable[..., Any]:
    def sampler(self: Any, dataset: Any = None) -> Any:
        made = original(self, dataset)
        made.batch_size = made.batch_size / 2
        return made

    return sampler


def last_value(original: Callable[..., Any]) -> Callable[..., Any]:
    def log(self: Any, logs: dict[str, float], start_time: float | None = None) -> None:
        self._metrics["train"] = {name: values[-1:] for name, values in self._metrics["train"].items()}
        original(self, logs, start_time)

    return log


@pytest.mark.parametrize(
    ("kind", "method", "change", "sentence"),
    [
        (GRPOTrainer, "log", last_value, "GRPOTrainer.log no longer logs the mean"),
        (RepeatSampler, "__iter__", one_after_another, "RepeatSampler no longer repeats each task, and each batch"),
        (RepeatSampler, "__iter__", other_order, "RepeatSampler no longer draws the order of each epoch"),
        (GRPOTrainer, "_get_train_sampler", half_a_batch, "GRPOTrainer._get_train_sampler no longer samples whole generation"),
        (GRPOTrainer, "_compute_loss", scaled, "GRPOTrainer._compute_loss no longer divides by tokens, rows"),
        (GRPOTrainer, "_compute_loss", with_mean_over_counted, "no longer leaves tokens out whose completion_mask is 0"),
        (GRPOTrainer, "_compute_loss", without("old_per_token_logps", 0), "clips the ratio to old_per_token_logps at epsilon_"),
        (GRPOTrainer, "_compute_loss", without("ref_per_token_logps", 0), "no longer adds beta times the divergence"),
        (GRPOTrainer, "_compute_loss", without("importance_sampling_ratio", 1), "multiplies with importance_sampling_ratio"),
        (Trainer, "training_step", divided, "Trainer.training_step no longer passes the loss of compute_loss to backward"),
        (GradientState, "_set_sync_gradients", never, "GradientState._set_sync_gradients no longer switches"),
        (GRPOTrainer, "_generate_single_turn", every_time, "_generate_single_turn no longer sends the weights to vLLM once"),
    ],
)
def test_each_change(kind: Any, method: str, change: Any, sentence: str, trainer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind, method, change(getattr(kind, method)))
    with pytest.raises(UsageError) as caught:
        check_behaviours(BEHAVIOURS, "trl", SUPPORTED, trainer)
    assert sentence in str(caught.value) and "pip install 'trl>=1.16,<1.17'" in str(caught.value)


def test_state_and_names_that_moved_are_refused_by_name(trainer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_metrics", "_logs", "_step", "_tokenizer", "eos_token_ids"):
        with monkeypatch.context() as moved:
            moved.delattr(trainer, name)
            with pytest.raises(UsageError, match=rf"GRPOTrainer no longer keeps .*{name}.* \(AttributeError: .*{name}"):
                check_behaviours(BEHAVIOURS, "trl", SUPPORTED, trainer)
    require_trl()
    monkeypatch.delattr("trl.trainer.utils.use_adapter")
    with pytest.raises(UsageError, match=r"trl\.trainer\.utils\.use_adapter does not exist in the installed trl"):
        require_trl()


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
