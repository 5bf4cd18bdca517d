"""Splits a batch of TRL's GRPOTrainer into rows and builds batches from rows.

A row is one prompt, one completion and its advantage. ``GRPOTrainer._generate_and_score_completions`` returns prompts padded on
the left and completions padded on the right, (rows, tokens) each; the image patches of all rows, concatenated, with a grid
(frames, rows, columns of patches) per image and the number of images per row; token types of prompt and completion together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor

from guieval.errors import UsageError

PER_TOKEN = ("old_per_token_logps", "ref_per_token_logps", "importance_sampling_ratio", "sampling_per_token_logps", "tool_mask")
"""Fields with one number per completion token, or one per row if TRL weighs whole sequences."""
TYPES = ("token_type_ids", "mm_token_type_ids")
KNOWN = frozenset(
    {"prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "advantages", "num_items_in_batch"}
    | {"pixel_values", "image_grid_thw", "num_images", *PER_TOKEN, *TYPES}
)


@dataclass(frozen=True)
class Row:
    """One prompt with its completion.

    ``prompt`` (p,) and ``completion`` (c,) are token numbers without padding. ``pixels`` (patches, values) and ``grid``
    (images, 3) are of the prompt's images, ``None`` without any. ``types`` are (p,) by TRL's field name. ``tokens`` are (c,) or
    (1,) by TRL's field name. A row that does not ``count`` only fills the batch: its tokens are not in the loss, its
    normaliser or any mean.
    """

    prompt: Tensor
    completion: Tensor
    advantage: float = 0.0
    pixels: Tensor | None = None
    grid: Tensor | None = None
    types: Mapping[str, Tensor] = field(default_factory=dict)
    tokens: Mapping[str, Tensor] = field(default_factory=dict)
    counts: bool = True

    def filler(self) -> Row:
        """The same row as one that only fills the batch."""
        return replace(self, advantage=0.0, counts=False)


def unpacked(output: Mapping[str, Any]) -> list[Row]:
    """The rows of a batch. Raises :class:`UsageError` for a model family whose images TRL keeps in another way."""
    if unknown := sorted(name for name, value in output.items() if name not in KNOWN and value is not None):
        raise UsageError(f"models whose inputs have {unknown[0]!r} cannot be trained with dynamic sampling; leave it out")
    prompts, completions = output["prompt_ids"], output["completion_ids"]
    prompt_masks, completion_masks = output["prompt_mask"].bool(), output["completion_mask"].bool()
    images = _images(output, len(prompts))
    rows = []
    for number in range(len(prompts)):
        prompt, completion = prompt_masks[number], completion_masks[number]
        tokens = {}
        for name in PER_TOKEN:
            values = output.get(name)
            if values is not None:
                tokens[name] = values[number][completion] if values.shape[1] == completion.shape[0] else values[number]
        rows.append(
            Row(
                prompts[number][prompt],
                completions[number][completion],
                float(output["advantages"][number]),
                *images[number],
                types={name: output[name][number, : len(prompt)][prompt] for name in TYPES if output.get(name) is not None},
                tokens=tokens,
            )
        )
    return rows


def _images(output: Mapping[str, Any], rows: int) -> list[tuple[Tensor | None, Tensor | None]]:
    counts = output.get("num_images")
    if counts is None or output.get("pixel_values") is None:
        return [(None, None)] * rows
    if output.get("image_grid_thw") is None:
        raise UsageError("only models of the Qwen-VL kind (image_grid_thw) can be trained with dynamic sampling; leave it out")
    return images_by_row(output["pixel_values"], output["image_grid_thw"], counts)


def images_by_row(pixels: Tensor, grids: Tensor, counts: Iterable[int]) -> list[tuple[Tensor | None, Tensor | None]]:
    """The patches and the grids of each row; ``counts`` are the images per row, ``grids`` is (images, 3)."""
    patches = [0, *accumulate(grids.prod(-1).tolist())]
    return [
        (pixels[patches[first] : patches[end]], grids[first:end]) if end > first else (None, None)
        for first, end in pairwise([0, *accumulate(counts)])
    ]


def packed(rows: Sequence[Row], *, pad: int, device: Any) -> dict[str, Any]:
    """A batch of at least one row for TRL's trainer, without ``num_items_in_batch``, which is over all processes."""
    prompts = _padded([row.prompt for row in rows], pad, left=True)
    completions = _padded([row.completion for row in rows], pad, left=False)
    counted = [torch.full_like(row.completion, int(row.counts)) for row in rows]
    output: dict[str, Any] = {
        "prompt_ids": prompts,
        "prompt_mask": _padded([torch.ones_like(row.prompt) for row in rows], 0, left=True),
        "completion_ids": completions,
        "completion_mask": _padded(counted, 0, left=False),
        "advantages": torch.tensor([row.advantage for row in rows], dtype=torch.float32),
    }
    for name in rows[0].tokens:
        output[name] = _padded([row.tokens[name] for row in rows], 1 if name == "tool_mask" else 0, left=False)
    for name in rows[0].types:
        types = _padded([row.types[name] for row in rows], 0, left=True)
        output[name] = torch.cat([types, torch.zeros_like(completions, dtype=types.dtype)], dim=1)
    pixels = [row.pixels for row in rows if row.pixels is not None]
    if pixels:
        output["pixel_values"] = torch.cat(pixels)
        output["image_grid_thw"] = torch.cat([row.grid for row in rows if row.grid is not None])
    output = {name: value.to(device) for name, value in output.items()}
    if pixels:
        output["num_images"] = [0 if row.grid is None else len(row.grid) for row in rows]
    return output


def filled(rows: Sequence[Row], count: int, filler: Row) -> list[Row]:
    """The rows, filled up to ``count``; ``ValueError`` if there are more already."""
    if len(rows) > count:
        raise ValueError(f"{len(rows)} rows do not fit into {count}")
    return [*rows, *[filler.filler()] * (count - len(rows))]


def _padded(values: Sequence[Tensor], value: int, *, left: bool) -> Tensor:
    """(rows, longest), each padded with ``value`` on one side."""
    longest = max(1, *(len(row) for row in values)) if len(values) > 1 else max(1, len(values[0]))
    missing = [longest - len(row) for row in values]
    sides = [(short, 0) if left else (0, short) for short in missing]
    return torch.stack([torch.nn.functional.pad(row, side, value=value) for row, side in zip(values, sides, strict=True)])
