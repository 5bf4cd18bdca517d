"""A batch of TRL's taken apart and put together again."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from guieval.errors import UsageError
from guieval.training.trainers.rows import Row, filled, packed, unpacked

PAD = 9


def row(prompt: list[int], completion: list[int], images: int, **given: Any) -> Row:
    patches = 4 * images
    return Row(
        torch.tensor(prompt),
        torch.tensor(completion),
        pixels=torch.arange(patches * 3.0).view(patches, 3) + prompt[0] if images else None,
        grid=torch.tensor([[1, 2, 2]] * images) if images else None,
        types={"mm_token_type_ids": torch.tensor([1] * len(prompt))},
        tokens={"old_per_token_logps": -torch.rand(len(completion))},
        **given,
    )


ROWS = [row([1, 2, 3], [4, 5], 1, advantage=0.5), row([6], [7, 8, 1], 0), row([2, 2], [3], 2, advantage=-1.0)]


def test_rows_come_back_as_they_were() -> None:
    batch = packed(ROWS, pad=PAD, device="cpu")
    assert batch["prompt_ids"].tolist() == [[1, 2, 3], [PAD, PAD, 6], [PAD, 2, 2]]
    assert batch["completion_ids"].tolist() == [[4, 5, PAD], [7, 8, 1], [3, PAD, PAD]]
    assert batch["mm_token_type_ids"].tolist() == [[1, 1, 1, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0]]
    assert (batch["num_images"], batch["pixel_values"].shape) == ([1, 0, 2], (12, 3))
    for before, after in zip(ROWS, unpacked(batch), strict=True):
        assert torch.equal(before.prompt, after.prompt) and torch.equal(before.completion, after.completion)
        assert before.advantage == after.advantage and after.counts
        assert (before.pixels is None) == (after.pixels is None)
        if before.pixels is not None:
            assert torch.equal(before.pixels, after.pixels) and torch.equal(before.grid, after.grid)
        for name in ("types", "tokens"):
            assert all(torch.equal(getattr(before, name)[key], value) for key, value in getattr(after, name).items())


def test_rows_may_be_left_out_and_mixed() -> None:
    first, second = unpacked(packed(ROWS, pad=PAD, device="cpu")), unpacked(packed(ROWS[:1], pad=PAD, device="cpu"))
    batch = packed([first[2], second[0]], pad=PAD, device="cpu")
    assert batch["advantages"].tolist() == [-1.0, 0.5]
    assert torch.equal(batch["pixel_values"], torch.cat([ROWS[2].pixels, ROWS[0].pixels]))


def test_fillers_hold_no_token_that_counts() -> None:
    batch = packed(filled(ROWS[:2], 4, ROWS[2]), pad=PAD, device="cpu")
    assert batch["completion_mask"].tolist() == [[1, 1, 0], [1, 1, 1], [0, 0, 0], [0, 0, 0]]
    assert batch["advantages"].tolist() == [0.5, 0.0, 0.0, 0.0]
    assert batch["prompt_mask"].sum(1).tolist() == [3, 1, 2, 2]  # what is in the prompt stays, for the images must fit it
    with pytest.raises(ValueError, match="3 rows do not fit into 2"):
        filled(ROWS, 2, ROWS[0])


def test_images_of_another_kind_are_refused() -> None:
    batch = packed(ROWS, pad=PAD, device="cpu")
    with pytest.raises(UsageError, match="pixel_attention_mask"):
        unpacked({**batch, "pixel_attention_mask": torch.ones(3)})
    del batch["image_grid_thw"]
    with pytest.raises(UsageError, match="Qwen-VL"):
        unpacked(batch)
