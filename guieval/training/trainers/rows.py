"""Rows of a training, and TRL's micro-batches of them.

A row is one prompt, one completion and its advantage. It names its screenshots and has no pixels, so it can be sent to
another process and saved with a checkpoint. TRL's loss takes prompts padded on the left and completions padded on the right,
(rows, tokens) each; the image patches of all rows, concatenated, with a grid (frames, rows, columns of patches) per image and
the number of images per row; token types of prompt and completion together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from guieval.training.data.examples import SizedPicture
from guieval.training.trainers.pictures import BatchPictures

TYPES = ("token_type_ids", "mm_token_type_ids")


@dataclass(frozen=True)
class CompletedPrompt:
    """One prompt with its completion.

    ``prompt`` (p,) and ``completion`` (c,) are token numbers without padding. ``types`` are (p,) by TRL's field name.
    ``tokens`` are (c,) by TRL's field name, or (1,) for a number per response. A row that does not ``count`` only fills the
    batch: its tokens are not in the loss, its normaliser or any mean.
    """

    prompt: Tensor
    completion: Tensor
    advantage: float = 0.0
    pictures: tuple[SizedPicture, ...] = ()
    types: Mapping[str, Tensor] = field(default_factory=dict)
    tokens: Mapping[str, Tensor] = field(default_factory=dict)
    counts: bool = True

    def __len__(self) -> int:
        return len(self.prompt) + len(self.completion)


def packed(rows: Sequence[CompletedPrompt], *, pad: int, pictures: BatchPictures) -> dict[str, Any]:
    """A micro-batch of at least one row, on the CPU, without ``num_items_in_batch``, which is over all processes."""
    prompts = _padded([row.prompt for row in rows], pad, left=True)
    completions = _padded([row.completion for row in rows], pad, left=False)
    counted = [torch.full_like(row.completion, int(row.counts)) for row in rows]
    batch: dict[str, Any] = {
        "prompt_ids": prompts,
        "prompt_mask": _padded([torch.ones_like(row.prompt) for row in rows], 0, left=True),
        "completion_ids": completions,
        "completion_mask": _padded(counted, 0, left=False),
        "advantages": torch.tensor([row.advantage for row in rows], dtype=torch.float32),
    }
    for name in {name: None for row in rows for name in row.tokens}:
        zero = torch.zeros(1)
        batch[name] = _padded([row.tokens.get(name, zero) for row in rows], 0, left=False)
    for name in rows[0].types:
        types = _padded([row.types[name] for row in rows], 0, left=True)
        batch[name] = torch.cat([types, torch.zeros_like(completions, dtype=types.dtype)], dim=1)
    return {**batch, **pictures.batch([row.pictures for row in rows])}


def _padded(values: Sequence[Tensor], value: int, *, left: bool) -> Tensor:
    """(rows, longest), each padded with ``value`` on one side."""
    longest = max(1, *map(len, values)) if len(values) > 1 else max(1, len(values[0]))
    missing = [longest - len(row) for row in values]
    sides = [(short, 0) if left else (0, short) for short in missing]
    return torch.stack([torch.nn.functional.pad(row, side, value=value) for row, side in zip(values, sides, strict=True)])
