"""Drawn screens as the vision model's input, without the way through files and the image processor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from guieval.testing.icons.screens import HEIGHT, WIDTH, IconScreen, PlacedIcon
from guieval.training.tiny.building import MERGE, PATCH, PIXEL_MEAN, PIXEL_STD

if TYPE_CHECKING:
    import torch

ROWS, COLUMNS = HEIGHT // PATCH // MERGE, WIDTH // PATCH // MERGE
"""Image tokens of a screen: down and across."""
TOKENS = ROWS * COLUMNS
TOKEN_PIXELS = PATCH * MERGE
"""Side of the square that an image token stands for."""


_OVERLAP = 6  # pixels of an icon, each way, that make a token show it


def tokens_of(placed: PlacedIcon) -> list[int]:
    """The numbers of the image tokens that show the icon, row by row from the top."""
    x1, y1, x2, y2 = placed.pixels
    down = [row for row in range(ROWS) if _overlap(y1, y2, row) > _OVERLAP]
    across = [column for column in range(COLUMNS) if _overlap(x1, x2, column) > _OVERLAP]
    return [row * COLUMNS + column for row in down for column in across]


def _overlap(start: int, end: int, number: int) -> int:
    return min(end, (number + 1) * TOKEN_PIXELS) - max(start, number * TOKEN_PIXELS)


def grid(count: int) -> torch.Tensor:
    """``image_grid_thw`` of so many screens: (count, 3) frames, rows and columns of patches."""
    import torch

    return torch.tensor([[1, ROWS * MERGE, COLUMNS * MERGE]] * count)


def patches(screens: Sequence[IconScreen]) -> torch.Tensor:
    """``pixel_values`` of the screens: (count * rows * columns of patches, 3 * 2 * patch²) float32, as the processor's."""
    import torch

    raw = np.stack([np.asarray(screen.render(), dtype=np.float32) for screen in screens])
    values = (raw / 255 - PIXEL_MEAN) / PIXEL_STD
    count = len(screens)
    cut = values.transpose(0, 3, 1, 2).reshape(count, 3, ROWS, MERGE, PATCH, COLUMNS, MERGE, PATCH)
    # a token's four patches follow one another
    ordered = cut.transpose(0, 2, 5, 3, 6, 1, 4, 7)
    frames = np.repeat(ordered[:, :, :, :, :, :, None], 2, axis=6)  # a picture is two equal frames
    return torch.from_numpy(np.ascontiguousarray(frames.reshape(count * TOKENS * MERGE**2, -1)))
