"""What trainings rely on in transformers and accelerate beyond their public interfaces: any newer version may be installed.

It is tested on a copy of the trainer with tiny inputs and without the model, which takes milliseconds, whatever the model and
the number of processes; all processes run the same tests.
"""

from __future__ import annotations

from copy import copy
from types import SimpleNamespace
from typing import Any

import torch
from trl import GRPOTrainer

from guieval.training.guard import require_behaviour


def check_behaviour(trainer: Any) -> None:
    """:class:`UsageError` that names what is no longer true; ``trainer`` stays as it is."""
    require_behaviour(
        _steps_without_scaling(trainer), "Trainer.training_step", "passes the loss of compute_loss to backward undivided"
    )
    require_behaviour(
        _switches_synchronisation(trainer), "GradientState._set_sync_gradients", "switches Accelerator.sync_gradients"
    )


def _steps_without_scaling(trainer: Any) -> bool:
    steps: list[str] = []
    losses: list[float] = []

    class RecordedLosses:
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

    probe = copy(trainer)
    probe.model, probe.accelerator = SimpleNamespace(training=True), RecordedLosses()
    probe.current_gradient_accumulation_steps = 4
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
