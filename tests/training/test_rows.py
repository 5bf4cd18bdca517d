"""Micro-batches of rows in TRL's form, and screenshots that are read when a micro-batch needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from guieval.errors import UsageError
from guieval.training.data.examples import SizedPicture
from guieval.training.trainers.pictures import BLANK, BatchPictures
from guieval.training.trainers.rows import CompletedPrompt, packed

PAD = 9


class Processor:
    """Patches that hold the picture's first red value, four for each picture."""

    def __init__(self, fields: tuple[str, ...] = ("pixel_values", "image_grid_thw")) -> None:
        self.calls = 0
        self._fields = fields

    def image_processor(self, images: list[Image.Image], return_tensors: str) -> dict[str, Any]:
        self.calls += 1
        red = images[0].getpixel((0, 0))
        assert isinstance(red, tuple)
        made = {"pixel_values": torch.full((4, 3), float(red[0])), "image_grid_thw": torch.tensor([[1, 2, 2]])}
        return {name: made[name] for name in self._fields}


def named(number: int) -> SizedPicture:
    return SizedPicture(Path("/screens"), str(number), (8, 8), None)


def pictures(processor: Any = None, **given: Any) -> BatchPictures:
    return BatchPictures(processor or Processor(), lambda picture: Image.new("RGB", (8, 8), (int(picture.file), 0, 0)), **given)


def row(prompt: list[int], completion: list[int], *shown: int, **given: Any) -> CompletedPrompt:
    return CompletedPrompt(
        torch.tensor(prompt),
        torch.tensor(completion),
        pictures=tuple(map(named, shown)),
        types={"mm_token_type_ids": torch.tensor([1] * len(prompt))},
        tokens={"old_per_token_logps": torch.arange(1.0, 1 + len(completion))},
        **given,
    )


ROWS = [row([1, 2, 3], [4, 5], 7, advantage=0.5), row([6], [7, 8, 1]), row([2, 2], [3], 8, 9, advantage=-1.0)]


def test_rows_are_padded_and_their_pictures_follow_each_other() -> None:
    batch = packed(ROWS, pad=PAD, pictures=pictures())
    assert batch["prompt_ids"].tolist() == [[1, 2, 3], [PAD, PAD, 6], [PAD, 2, 2]]
    assert batch["prompt_mask"].tolist() == [[1, 1, 1], [0, 0, 1], [0, 1, 1]]
    assert batch["completion_ids"].tolist() == [[4, 5, PAD], [7, 8, 1], [3, PAD, PAD]]
    assert batch["completion_mask"].tolist() == [[1, 1, 0], [1, 1, 1], [1, 0, 0]]
    assert batch["advantages"].tolist() == [0.5, 0.0, -1.0]
    assert batch["old_per_token_logps"].tolist() == [[1.0, 2.0, 0.0], [1.0, 2.0, 3.0], [1.0, 0.0, 0.0]]
    assert batch["mm_token_type_ids"].tolist() == [[1, 1, 1, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0]]
    assert batch["num_images"] == [1, 0, 2]
    assert batch["pixel_values"][::4, 0].tolist() == [7.0, 8.0, 9.0]
    assert batch["image_grid_thw"].tolist() == [[1, 2, 2]] * 3
    # a row that does not count has no token in the loss
    filler = CompletedPrompt(torch.tensor([1]), torch.tensor([2]), pictures=(BLANK,), types=row([1], []).types, counts=False)
    batch = packed([ROWS[0], filler], pad=PAD, pictures=pictures())
    assert batch["completion_mask"].tolist() == [[1, 1], [0, 0]]
    assert batch["old_per_token_logps"].tolist() == [[1.0, 2.0], [0.0, 0.0]]
    assert batch["num_images"] == [1, 1]


def test_a_screenshot_is_processed_once_the_oldest_is_forgotten_other_images_are_refused() -> None:
    processor = Processor()
    kept = pictures(processor, kept_bytes=2 * 48)  # two of 4 x 3 numbers of four bytes
    for number, calls in ((1, 1), (2, 2), (1, 2), (3, 3), (1, 3), (2, 4)):  # the third drives out the second
        assert kept.patches(named(number))[0][0, 0] == number
        assert processor.calls == calls
    with pytest.raises(UsageError, match="Qwen-VL"):
        packed(ROWS, pad=PAD, pictures=pictures(Processor(("pixel_values",))))
