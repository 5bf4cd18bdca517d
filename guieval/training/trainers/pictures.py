"""Screenshots as the model's processor makes them: on the CPU, each once, in the processor's type."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from guieval.errors import UsageError
from guieval.training.data.examples import SizedPicture

if TYPE_CHECKING:
    from PIL.Image import Image

KEPT_BYTES = 4 << 30
"""Memory for processed screenshots in each process; others are read again when a micro-batch needs them."""
BLANK = SizedPicture(None, "", (32, 32), None)
"""The smallest picture: a row without one would skip the vision tower, and other processes would wait for it."""


class BatchPictures:
    """Reads and processes the screenshots of micro-batches, and keeps the latest ones."""

    def __init__(self, processor: Any, read: Callable[[SizedPicture], Image], kept_bytes: int = KEPT_BYTES) -> None:
        self._processor = processor
        self._read = read
        self._most = kept_bytes
        self._bytes = 0
        self._kept: OrderedDict[SizedPicture, tuple[Tensor, Tensor]] = OrderedDict()

    def image(self, picture: SizedPicture) -> Image:
        if picture == BLANK:
            from PIL import Image

            return Image.new("RGB", BLANK.size)
        return self._read(picture)

    def patches(self, picture: SizedPicture) -> tuple[Tensor, Tensor]:
        """(patches, values) and the grid (1, 3) of a screenshot. Raises :class:`UsageError` for an unsupported family."""
        if picture in self._kept:
            self._kept.move_to_end(picture)
            return self._kept[picture]
        made = self._processor.image_processor(images=[self.image(picture)], return_tensors="pt")
        if "image_grid_thw" not in made:
            raise UsageError("only models whose images are described by image_grid_thw (Qwen-VL) can be trained by RL with TRL")
        values, grid = made["pixel_values"], made["image_grid_thw"]
        self._kept[picture] = values, grid
        self._bytes += values.nbytes
        while self._bytes > self._most and len(self._kept) > 1:
            _, (oldest, _) = self._kept.popitem(last=False)
            self._bytes -= oldest.nbytes
        return values, grid

    def forget(self) -> None:
        """Drop what is kept if it will not be needed again."""
        self._kept.clear()
        self._bytes = 0

    def batch(self, rows: Sequence[Sequence[SizedPicture]]) -> dict[str, Any]:
        """TRL's image fields of a micro-batch, empty if no row has a picture."""
        made = [self.patches(picture) for row in rows for picture in row]
        if not made:
            return {}
        return {
            "pixel_values": torch.cat([values for values, _ in made]),
            "image_grid_thw": torch.cat([grid for _, grid in made]),
            "num_images": [len(row) for row in rows],
        }
