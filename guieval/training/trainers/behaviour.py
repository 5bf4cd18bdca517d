"""Behaviours of TRL, transformers and accelerate that trainings rely on beyond their public interfaces.

Each is tested on a copy of the trainer with tiny inputs and without the model, which takes milliseconds, whatever the model and
the number of processes; all processes run the same tests.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from copy import copy
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from trl import GRPOTrainer
from trl.trainer.utils import RepeatSampler

from guieval.training.guard import Behaviour
from guieval.training.trainers.sampler import EpochSampler

TOKENS, ACCUMULATED = 10.0, 4
"""Tokens of the generation batch and accumulated passes in the tests of the loss."""
ADVANTAGES, MASK = (1.0, 3.0), ((1, 1), (1, 0))
"""Two replies of two tokens and of one."""


def _has_state(trainer: Any) -> bool:
    log = trainer._logs
    return (
        trainer._step == 0
        and isinstance(trainer._metrics["train"]["never logged"], list)
        and trainer._metrics["train"].pop("never logged") == []
        and all(hasattr(log[name], "extend") for name in ("prompt", "completion", "advantages"))
        and hasattr(log["rewards"], "keys")
        and isinstance(trainer._tokenizer.pad_token_id, int)
        and all(isinstance(each, int) for each in trainer.eos_token_ids)
        and hasattr(trainer.callback_handler, "train_dataloader")
    )


def _logs_means(trainer: Any) -> bool:
    lines: list[dict[str, float]] = []

    def on_log(args: Any, state: Any, control: Any, logs: dict[str, float]) -> Any:
        lines.append(dict(logs))
        return control

    probe = _copied(trainer)
    probe.callback_handler = SimpleNamespace(on_log=on_log)
    probe.state = copy(trainer.state)
    probe.state.log_history = []
    probe.log_completions = False
    probe._metrics["train"] = {"metric": [1.0, 3.0]}
    probe.log({"loss": 0.5})
    return len(lines) == 1 and lines[0]["metric"] == 2.0 and lines[0]["loss"] == 0.5 and not probe._metrics["train"]


def _repeats_tasks(trainer: Any) -> bool:
    order = list(RepeatSampler(range(5), mini_repeat_count=2, batch_size=2, repeat_count=2, shuffle=False))
    return order == [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3]


def _orders_epochs(trainer: Any) -> bool:
    one = RepeatSampler(range(7), mini_repeat_count=1, seed=3)
    epochs = [list(one) for _ in range(3)]
    resumed = [list(EpochSampler(range(7), mini_repeat_count=1, seed=3, epoch=partial(int, number))) for number in range(3)]
    return epochs == resumed and epochs[0] != epochs[1]


def _samples_generation_batches(trainer: Any) -> bool:
    sampler, args = GRPOTrainer._get_train_sampler(trainer, range(7)), trainer.args
    return (
        sampler.data_source == range(7)
        and sampler.mini_repeat_count == trainer.num_generations
        and sampler.batch_size * trainer.num_generations == args.generation_batch_size
        and sampler.repeat_count == trainer.num_iterations * args.steps_per_generation
        and (sampler.shuffle, sampler.seed) == (trainer.shuffle_dataset, args.seed)
    )


def _divides_the_loss(trainer: Any) -> bool:
    """By hand: with equal old and new probabilities, the loss of a token is minus its advantage."""
    total = -sum(advantage * sum(row) for advantage, row in zip(ADVANTAGES, MASK, strict=True))
    share = TOKENS / trainer.accelerator.num_processes * ACCUMULATED / trainer.args.steps_per_generation
    expected = {
        "dapo": total / share,
        "grpo": -sum(ADVANTAGES) / 2 / ACCUMULATED,
        "dr_grpo": total / (2 * trainer.max_completion_length) / ACCUMULATED,
        "bnpo": total / 3 / ACCUMULATED,
    }
    return all(math.isclose(_loss(trainer, loss_type=name), value, rel_tol=1e-5) for name, value in expected.items())


def _skips_masked_rows(trainer: Any) -> bool:
    """A row without counted tokens adds nothing, but is one of the rows of a mean over rows."""
    mask = torch.tensor([*MASK, (0, 0)])
    summed, mean = (_loss(trainer, loss_type=name, completion_mask=mask, rows=3) for name in ("dapo", "grpo"))
    alone, mean_alone = (_loss(trainer, loss_type=name) for name in ("dapo", "grpo"))
    return math.isclose(summed, alone, rel_tol=1e-5) and math.isclose(mean * 3, mean_alone * 2, rel_tol=1e-5)


def _clips_old_probabilities(trainer: Any) -> bool:
    old = torch.full((2, 2), -math.log(2.0))  # the new ones are twice as high
    most = min(2.0, 1.0 + trainer.epsilon_high)
    return math.isclose(_loss(trainer, old_per_token_logps=old), most * _loss(trainer), rel_tol=1e-5)


def _adds_the_divergence(trainer: Any) -> bool:
    """The unbiased estimate exp(d) - d - 1 of the reference's log-probability minus the policy's, d = -ln 2."""
    reference = torch.full((2, 2), -math.log(2.0))
    difference = _loss(trainer, beta=0.5, ref_per_token_logps=reference) - _loss(trainer)
    return math.isclose(difference, 0.5 * (0.5 + math.log(2.0) - 1.0) / ACCUMULATED, rel_tol=1e-4)


def _corrects_the_sampler(trainer: Any) -> bool:
    ratio = torch.full((2, 2), 0.25)
    loss = _loss(trainer, importance_sampling_ratio=ratio, use_vllm=True, vllm_importance_sampling_correction=True)
    return math.isclose(loss, 0.25 * _loss(trainer), rel_tol=1e-5)


def _loss(trainer: Any, *, rows: int = 2, loss_type: str = "grpo", beta: float = 0.0, **given: Any) -> float:
    """TRL's loss of log-probabilities 0; tensors among ``given`` are inputs, other values are attributes of the trainer."""
    device, zeros = trainer.accelerator.device, torch.zeros(rows, 2, device=trainer.accelerator.device)
    tensors = {
        "prompt_ids": torch.ones(rows, 1),
        "prompt_mask": torch.ones(rows, 1),
        "completion_ids": torch.ones(rows, 2),
        "completion_mask": torch.tensor(MASK),
        "advantages": torch.tensor([*ADVANTAGES, 7.0][:rows]),
        "num_items_in_batch": torch.tensor(TOKENS),
        **{name: value for name, value in given.items() if isinstance(value, torch.Tensor)},
    }
    plain = {"use_vllm": False, "aux_loss_enabled": False, "importance_sampling_level": "token"}
    plain |= {name: value for name, value in given.items() if not isinstance(value, torch.Tensor)}
    probe = _copied(trainer, loss_type=loss_type, beta=beta, current_gradient_accumulation_steps=ACCUMULATED, **plain)
    probe.args = copy(trainer.args)
    probe.args.delta = None
    probe._get_per_token_logps_and_entropies = lambda *arguments, **named: (zeros, zeros, None)
    return float(probe._compute_loss(None, {name: value.to(device) for name, value in tensors.items()}))


def _steps_without_scaling(trainer: Any) -> bool:
    steps: list[str] = []
    losses: list[float] = []

    class Recorded:
        def __getattr__(self, name: str) -> Any:
            return getattr(trainer.accelerator, name)

        def backward(self, loss: Any, **named: Any) -> None:
            losses.append(float(loss.detach()))

    def prepared(inputs: Any) -> Any:
        steps.append("prepare")
        return inputs

    def computed(model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
        steps.append("compute")
        return torch.tensor(3.0, requires_grad=True)

    probe = _copied(trainer, accelerator=Recorded(), current_gradient_accumulation_steps=ACCUMULATED)
    probe._prepare_inputs, probe.compute_loss = prepared, computed
    returned = super(GRPOTrainer, probe).training_step(torch.nn.Identity(), {}, None)
    return (steps, losses, float(returned)) == (["prepare", "compute"], [3.0], 3.0)


def _switches_synchronisation(trainer: Any) -> bool:
    accelerator, seen = trainer.accelerator, []
    before = accelerator.sync_gradients
    try:
        for value in (False, True):
            accelerator.gradient_state._set_sync_gradients(value)
            seen.append(accelerator.sync_gradients)
    finally:
        accelerator.gradient_state._set_sync_gradients(before)
    return seen == [False, True] and isinstance(accelerator.gradient_state.plugin_kwargs, dict)


def _synchronises_vllm(trainer: Any) -> bool:
    synchronised: list[int] = []
    probe = _copied(trainer, use_vllm=True, _last_loaded_step=6)
    probe.state = SimpleNamespace(global_step=7)
    probe.vllm_generation = SimpleNamespace(
        sync_weights=lambda: synchronised.append(7),
        generate=lambda prompts, **named: (prompts, [[5, 6]], [[[-0.5, -1.0], [-0.25, -2.0]]], None),
    )
    answers = [probe._generate_single_turn([[1, 2]], [None], {}, 1) for _ in range(2)]
    return synchronised == [7] and answers == [([[5, 6]], [[-0.5, -0.25]])] * 2


def _copied(trainer: Any, **attributes: Any) -> Any:
    """A shallow copy in training mode, whose attributes can be replaced without an effect on the trainer."""
    probe = copy(trainer)
    probe.model = SimpleNamespace(training=True)
    probe._metrics = {"train": defaultdict(list)}
    for name, value in attributes.items():
        setattr(probe, name, value)
    return probe


def _of(name: str, does: str, holds: Callable[[Any], bool]) -> Behaviour:
    return Behaviour(name, does, holds)


BEHAVIOURS = (
    _of("GRPOTrainer", "keeps _step, _metrics, _logs, _tokenizer and eos_token_ids as before", _has_state),
    _of("GRPOTrainer.log", "logs the mean of each list in _metrics['train'] and clears them", _logs_means),
    _of("RepeatSampler", "repeats each task, and each batch of tasks, in the same order", _repeats_tasks),
    _of("RepeatSampler", "draws the order of each epoch by one torch.randperm from its seed", _orders_epochs),
    _of("GRPOTrainer._get_train_sampler", "samples whole generation batches", _samples_generation_batches),
    _of("GRPOTrainer._compute_loss", "divides by tokens, rows and accumulated passes as before", _divides_the_loss),
    _of("GRPOTrainer._compute_loss", "leaves tokens out whose completion_mask is 0", _skips_masked_rows),
    _of("GRPOTrainer._compute_loss", "clips the ratio to old_per_token_logps at epsilon_high", _clips_old_probabilities),
    _of("GRPOTrainer._compute_loss", "adds beta times the divergence from ref_per_token_logps", _adds_the_divergence),
    _of("GRPOTrainer._compute_loss", "multiplies with importance_sampling_ratio", _corrects_the_sampler),
    _of("Trainer.training_step", "passes the loss of compute_loss to backward undivided", _steps_without_scaling),
    _of("GradientState._set_sync_gradients", "switches Accelerator.sync_gradients", _switches_synchronisation),
    _of("GRPOTrainer._generate_single_turn", "sends the weights to vLLM once per step", _synchronises_vllm),
)
