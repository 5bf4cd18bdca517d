"""Shortcuts do not change what is computed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch

from guieval.engines.in_process.attention import batch_windows, implementation
from guieval.errors import UsageError
from guieval.playground.tiny_policy.building import build_policy
from guieval.training import session, speed
from guieval.training.building import TrainerParts
from guieval.training.speed import fast_on_cpu, frozen_vision

from .conftest import Configured, log

SIZES = ((84, 56), (56, 84), (84, 56), (112, 112))


@pytest.fixture(scope="module")
def built() -> Any:
    return build_policy(0)


@pytest.fixture(scope="module")
def pictures(built: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Pixels and grid of four pictures, two of one size."""
    from PIL import Image

    images = [Image.effect_noise(size, 90).convert("RGB") for size in SIZES]
    made = [built.processor.image_processor(images=[image], return_tensors="pt") for image in images]
    return [(each["pixel_values"], each["image_grid_thw"]) for each in made]


@pytest.fixture
def frozen(built: Any) -> Iterator[Any]:
    """The model with a frozen vision tower that counts its passes."""
    model, passes = built.model, []
    tower = model.model.visual
    tower.requires_grad_(False)
    hook = tower.blocks[0].register_forward_hook(lambda *given: passes.append(1))
    model.passes = passes
    yield model
    hook.remove()
    tower.requires_grad_(True)


def features(model: Any, shown: list[tuple[torch.Tensor, torch.Tensor]]) -> list[torch.Tensor]:
    """All that the language model reads of pictures, each a tensor over the patches of all."""
    output = model.model.get_image_features(torch.cat([pixels for pixels, _ in shown]), torch.cat([grid for _, grid in shown]))
    return [torch.cat(output.pooler_output), *(torch.cat(layer) for layer in output.deepstack_features)]


@pytest.mark.parametrize("precision", [None, torch.bfloat16])
def test_features_are_the_towers_and_each_picture_is_computed_once(frozen: Any, pictures: Any, precision: Any) -> None:
    shown = [pictures[number] for number in (0, 1, 0, 2, 3, 3)]
    with torch.autocast("cpu", precision, enabled=precision is not None), fast_on_cpu(frozen):
        expected = features(frozen, shown)
        frozen.passes.clear()
        with frozen_vision(frozen):
            found = [features(frozen, shown), features(frozen, shown)]
            assert len(frozen.passes) == 4
            alone = features(frozen, [pictures[1]])
    close = {"atol": 1e-5, "rtol": 1e-4} if precision is None else {"atol": 0.05, "rtol": 0.05}
    for each in found:
        for value, other in zip(each, expected, strict=True):
            torch.testing.assert_close(value.float(), other.float(), **close)
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
    before = len(shown[0][0]) // 4
    assert torch.equal(alone[0], found[0][0][before : before + len(alone[0])])  # whatever else is in the batch


def test_a_tower_in_training_is_left_alone(built: Any, pictures: Any) -> None:
    with frozen_vision(built.model):
        assert "forward" not in vars(built.model.model.visual)
        features(built.model, pictures)[0].sum().backward()
    assert any(weight.grad is not None for weight in built.model.model.visual.parameters())
    built.model.zero_grad()


def test_it_ends_with_its_block_drops_the_oldest_and_keeps_precisions_apart(frozen: Any, pictures: Any) -> None:
    with frozen_vision(frozen):
        assert "forward" in vars(frozen.model.visual)
    assert "forward" not in vars(frozen.model.visual)
    with frozen_vision(frozen, kept_bytes=1):
        for number in (0, 1, 1, 0):
            features(frozen, [pictures[number]])
    assert len(frozen.passes) == 3
    with frozen_vision(frozen), fast_on_cpu(frozen):
        exact = features(frozen, pictures[:1])
        with torch.autocast("cpu", torch.bfloat16):
            rounded = features(frozen, pictures[:1])
        again = features(frozen, pictures[:1])
    assert torch.equal(exact[0], again[0]) and not torch.equal(exact[0], rounded[0].float())


@pytest.mark.parametrize("kind", ["sft", "grpo"])
def test_on_a_gpu_too_a_frozen_tower_is_run_once_without_gradients(
    kind: str, configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``use_cpu: false`` takes a GPU's path; gradient checkpointing hooks the patches of Qwen2.5-VL."""
    ran: list[tuple[bool, int]] = []
    make = TrainerParts.trainer

    def watched(parts: TrainerParts) -> Any:
        tower = parts.weights.model.model.visual
        tower.requires_grad_(False)
        tower.patch_embed.register_forward_hook(lambda module, given, output: output.requires_grad_())
        tower.blocks[0].attn.register_forward_hook(
            lambda module, given, output: ran.append((output.requires_grad, len(output)))
        )
        return make(parts)

    monkeypatch.setattr(TrainerParts, "trainer", watched)
    given = {
        "lora": {"r": 4, "alpha": 8, "exclude": ".*visual.*"},
        "trainer": {"use_cpu": False, "gradient_checkpointing": True, "learning_rate": 1e-3},
    }
    config = configured(kind, **given)
    session.train(config)
    once, found = sum(patches for _, patches in ran), [line["loss"] for line in log(config) if "loss" in line]
    assert once and not any(gradient for gradient, _ in ran)
    ran.clear()
    monkeypatch.setattr(speed, "frozen_vision", lambda model, once: nullcontext())
    other = configured(kind, **given, out=str(config.out) + "-before")
    session.train(other)
    assert any(gradient for gradient, _ in ran) and sum(patches for _, patches in ran) >= 2 * once
    assert found == pytest.approx([line["loss"] for line in log(other) if "loss" in line], abs=1e-6)


def test_windows_in_few_calls_are_the_windows_one_by_one() -> None:
    """A screenshot of 5 x 7 windows, the last ones cut: each layer attends four times instead of 35, and once if it is full."""
    from transformers import Qwen2_5_VLConfig
    from transformers.models.qwen2_5_vl import modeling_qwen2_5_vl as made

    sizes = {"hidden_size": 32, "num_heads": 4, "intermediate_size": 48, "depth": 4, "out_hidden_size": 32}
    config = Qwen2_5_VLConfig(vision_config=sizes | {"fullatt_block_indexes": [3]}).vision_config
    config._attn_implementation = "sdpa"
    torch.manual_seed(0)
    tower = made.Qwen2_5_VisionTransformerPretrainedModel(config).to(torch.bfloat16)
    grid = torch.tensor([[1, 38, 50]])
    pixels = torch.randn(38 * 50, config.in_channels * config.temporal_patch_size * config.patch_size**2).to(torch.bfloat16)
    expected = tower(pixels, grid_thw=grid).pooler_output
    calls = []
    attention = made.ALL_ATTENTION_FUNCTIONS["sdpa"]

    def counted(*given: Any, **named: Any) -> Any:
        calls.append(1)
        return attention(*given, **named)

    made.ALL_ATTENTION_FUNCTIONS["sdpa"] = counted
    try:
        tower(pixels, grid_thw=grid)
        before = len(calls)
        batch_windows(tower)
        found = tower(pixels, grid_thw=grid).pooler_output
    finally:
        made.ALL_ATTENTION_FUNCTIONS["sdpa"] = attention
    assert (before, len(calls) - before) == (3 * 35 + 1, 3 * 4 + 1)
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-3)
    found.float().sum().backward()
    assert tower.blocks[0].attn.qkv.weight.grad.abs().sum() > 0


def test_an_attention_that_cannot_be_used_is_refused_by_name() -> None:
    assert implementation("auto", half=False) == "sdpa"
    with pytest.raises(UsageError, match=r"attention 'flash_attention_2' cannot be used here, because it needs dtype bfloat16"):
        implementation("flash_attention_2", half=False)


def test_a_training_in_bfloat16_runs_on_a_cpu(configured: Configured) -> None:
    """So that each recipe has a dry run with a tiny checkpoint; its products had float32 on one side."""
    config = configured("sft", lora={"r": 4, "alpha": 8}, dtype="bfloat16")
    assert session.train(config).is_dir() and all(line["loss"] > 0 for line in log(config) if "loss" in line)
