"""Saves the gradient of the rows in a file: ``torchrun ... -m tests.training.one_gradient CONFIG ROWS OUT LOSS...``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import yaml
from transformers import TrainerCallback

from guieval.training.building import Parts
from guieval.training.config import TrainingConfig, parse_config
from guieval.training.speed import fast_on_cpu
from guieval.training.trainers.groups import Group
from guieval.training.trainers.rows import Row


class Noted(TrainerCallback):  # type: ignore[misc]  # transformers has no types here
    """Keeps the gradient before the optimiser step."""

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **others: Any) -> None:
        weights = getattr(model, "module", model).named_parameters()
        self.gradient = {name: weight.grad.clone() for name, weight in weights if weight.grad is not None}


def gradient(config: TrainingConfig, rollouts: Sequence[Sequence[Row]]) -> dict[str, torch.Tensor]:
    """The gradient of one optimiser step on the rows of all processes, and under ``filled`` the share of rows that count."""
    torch.set_num_threads(1)
    parts = Parts(config)
    trainer = parts.trainer()

    def groups(indices: Sequence[int], first: int) -> list[Group]:
        size, mine = trainer.num_generations, range(first, first + len(indices))
        return [
            Group(True, tuple(row for place in range(start, start + size) if place in mine for row in rollouts[place]))
            for start in range(0, len(rollouts), size)
        ]

    trainer._groups = groups
    noted = Noted()
    trainer.add_callback(noted)
    with fast_on_cpu(parts.weights.model):
        trainer.train()
    line = next(line for line in trainer.state.log_history if "rows/useful_share" in line)
    return {**noted.gradient, "filled": torch.tensor(line["rows/useful_share"])}


def main() -> None:
    config, rows, out, *losses = sys.argv[1:]
    values = yaml.safe_load(Path(config).read_text(encoding="utf-8"))
    rollouts = torch.load(rows, weights_only=False)
    found = {}
    for loss in losses:
        found[loss] = gradient(parse_config({**values, "trainer": {**values["trainer"], "loss_type": loss}}), rollouts)
    if torch.distributed.get_rank() == 0:
        torch.save(found, out)


if __name__ == "__main__":
    main()
