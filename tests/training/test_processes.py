"""Trainings on several processes (gloo, CPUs): the gradient does not depend on their number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from guieval.training.building import TrainerParts
from guieval.training.config import parse_config
from tests.training.conftest import by_torchrun, small_training
from tests.training.one_gradient import gradient

LOSSES = ("dapo", "grpo", "dr_grpo")
"""TRL's three ways to count rows and tokens."""


@pytest.fixture(scope="module")
def values(policy: Path, screens: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A batch of two episodes x 4 rollouts, whose rows take several passes, with a reference model and without clipping."""
    batches = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": None, "max_steps": 1, "learning_rate": None}
    trainer = {**batches, "beta": 0.01, "max_grad_norm": 0.0, "optim": "sgd", "save_strategy": "no", "save_steps": None}
    given = {"limit": 4, "batch": {"tasks": 2}, "rollout": {"patch": "thought-free", "budget": None}, "trainer": trainer}
    out = str(tmp_path_factory.mktemp("training"))
    config = small_training("semi-online", policy, screens, out=out, dynamic_sampling=None, **given)
    return config.model_dump(mode="json", exclude_unset=True)


@pytest.fixture(scope="module")
def rollouts(values: dict[str, Any]) -> list[list[Any]]:
    """Nine rows of the policy's own rollouts, divided among eight rollouts: they do not divide evenly among processes."""
    trainer = TrainerParts(parse_config(values)).trainer()
    trainer.model.train()
    rows = [row for group in trainer._groups([0] * 4 + [1] * 4, 0) for row in group.rows][:9]
    assert len(rows) == 9 and len({row.advantage for row in rows}) > 1
    return [rows[place::8] for place in range(8)]


@pytest.fixture(scope="module")
def alone(values: dict[str, Any], rollouts: list[list[Any]]) -> dict[str, dict[str, Any]]:
    """The gradient on one process for each loss."""
    configs = [parse_config({**values, "trainer": {**values["trainer"], "loss_type": loss}}) for loss in LOSSES]
    found = {loss: gradient(config, rollouts) for loss, config in zip(LOSSES, configs, strict=True)}
    assert all(each.pop("filled") == 1.0 for each in found.values())
    return found


@pytest.mark.parametrize("processes", [2, 4])
def test_any_number_of_processes_gives_one_gradient(
    processes: int, values: dict[str, Any], rollouts: list[list[Any]], alone: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    torch.save(rollouts, tmp_path / "rows.pt")
    (tmp_path / "training.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    words = ["-m", "tests.training.one_gradient", *(str(tmp_path / name) for name in ("training.yaml", "rows.pt", "out.pt"))]
    done = by_torchrun([*words, *LOSSES], processes)
    assert done.returncode == 0, done.stderr[-3000:]
    found = torch.load(tmp_path / "out.pt")
    for loss in LOSSES:
        assert found[loss].pop("filled") == pytest.approx(0.9 if processes == 2 else 0.75)
        assert found[loss].keys() == alone[loss].keys()
        scale = max(float(value.abs().max()) for value in alone[loss].values())
        assert scale > 1e-3
        for name, value in alone[loss].items():
            assert torch.allclose(found[loss][name], value, atol=1e-5 * scale, rtol=1e-4), (loss, name)
