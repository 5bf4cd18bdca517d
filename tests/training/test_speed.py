"""Shortcuts on a CPU do not change what is computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from guieval.playground.tiny_policy.building import build_policy
from guieval.training.speed import fast_on_cpu, frozen_vision_once

SIZES = ((84, 56), (56, 84), (84, 56), (112, 112))


@pytest.fixture(scope="module")
def policy() -> Any:
    return build_policy(0)


@pytest.fixture(scope="module")
def pictures(policy: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Pixels and grid of four pictures, two of one size."""
    from PIL import Image

    images = [Image.effect_noise(size, 90).convert("RGB") for size in SIZES]
    made = [policy.processor.image_processor(images=[image], return_tensors="pt") for image in images]
    return [(each["pixel_values"], each["image_grid_thw"]) for each in made]


@pytest.fixture
def frozen(policy: Any) -> Iterator[Any]:
    """The model with a frozen vision tower that counts its passes."""
    model, passes = policy.model, []
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
        with frozen_vision_once(frozen):
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


def test_a_tower_in_training_is_left_alone(policy: Any, pictures: Any) -> None:
    with frozen_vision_once(policy.model):
        assert "forward" not in vars(policy.model.model.visual)
        features(policy.model, pictures)[0].sum().backward()
    assert any(weight.grad is not None for weight in policy.model.model.visual.parameters())
    policy.model.zero_grad()


def test_it_ends_with_its_block_drops_the_oldest_and_keeps_precisions_apart(frozen: Any, pictures: Any) -> None:
    with frozen_vision_once(frozen):
        assert "forward" in vars(frozen.model.visual)
    assert "forward" not in vars(frozen.model.visual)
    with frozen_vision_once(frozen, kept_bytes=1):
        for number in (0, 1, 1, 0):
            features(frozen, [pictures[number]])
    assert len(frozen.passes) == 3
    with frozen_vision_once(frozen), fast_on_cpu(frozen):
        exact = features(frozen, pictures[:1])
        with torch.autocast("cpu", torch.bfloat16):
            rounded = features(frozen, pictures[:1])
        again = features(frozen, pictures[:1])
    assert torch.equal(exact[0], again[0]) and not torch.equal(exact[0], rounded[0].float())
