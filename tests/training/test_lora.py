"""What a LoRA training leaves: an adapter, and one model with the adapter added to the weights it started from."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file

from guieval.training.session import train

from .conftest import Configured


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """All tensors of a folder, by the ends of their names that no wrapper changes."""
    tensors: dict[str, torch.Tensor] = {}
    for file in folder.glob("*.safetensors"):
        tensors |= load_file(file)
    names = {name: name.rpartition("layers.")[2] if "language_model" in name else name for name in tensors}
    return {names[name]: value.float() for name, value in tensors.items()}


def test_the_final_weights_hold_the_adapter(configured: Configured, policy: Path) -> None:
    """W + (alpha / r) B A in every adapted layer, and nothing else has changed."""
    config = configured("sft", lora={"r": 4, "alpha": 8}, trainer={"learning_rate": 1e-2})
    final = train(config)
    settings = json.loads((final.parent / "adapter" / "adapter_config.json").read_text())
    before, after, low_rank = weights(policy), weights(final), weights(final.parent / "adapter")
    scale = settings["lora_alpha"] / settings["r"]
    adapted = [name.removesuffix(".lora_A.weight") for name in low_rank if name.endswith(".lora_A.weight")]
    assert adapted and scale == 2
    for name in adapted:
        change = scale * low_rank[f"{name}.lora_B.weight"] @ low_rank[f"{name}.lora_A.weight"]
        assert change.abs().max() > 0
        torch.testing.assert_close(after[f"{name}.weight"], before[f"{name}.weight"] + change, atol=1e-5, rtol=1e-4)
    for name in before.keys() - {f"{name}.weight" for name in adapted}:
        torch.testing.assert_close(after[name], before[name], atol=0, rtol=0)
