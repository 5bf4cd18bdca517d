"""Changes that make training several times faster and leave the checkpoint as it is: a frozen vision tower, layers on a CPU."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

KEPT_BYTES = 1 << 28
"""Memory for the outputs of a frozen vision tower on each process's device: some ten screenshots of a 7B model."""


def autocast() -> Any:
    """Matrix products in bfloat16, which CPUs with AMX do ten times faster; weights stay float32."""
    import torch

    return torch.autocast("cpu", torch.bfloat16)


@dataclass
class Watched:
    """Queries (rows, heads, length, dim) and keys (rows, key heads, length, dim) of one layer's last attention, in float32.

    ``layer`` is the number of the watched layer of the language model; ``None`` for no layer.
    """

    layer: int | None = None
    queries: Any = None
    keys: Any = None


@contextmanager
def fast_on_cpu(model: Any) -> Iterator[Watched]:
    """Run the patch embedding as a matrix product and attention outside autocast; queries and keys of one layer can be watched.

    The bfloat16 backward passes of a 3D convolution and of scaled dot-product attention are several times slower on a CPU.
    """
    import torch
    from torch.nn import functional
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import sdpa_mask

    def embed(pixels: Any) -> Any:
        weight = projection.weight
        return functional.linear(pixels.to(weight.dtype), weight.reshape(weight.shape[0], -1), projection.bias)

    def attend(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **others: Any) -> Any:
        if attention_mask is not None and attention_mask.is_floating_point():
            attention_mask = attention_mask.float()
        given = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else query.dtype
        query, key, value = query.float(), key.float(), value.float()
        if watched.layer is not None and getattr(module, "layer_idx", None) == watched.layer:
            watched.queries, watched.keys = query, key
        with torch.autocast("cpu", enabled=False):
            output, weights = sdpa_attention_forward(module, query, key, value, attention_mask, **others)
        return output.to(given), weights

    watched = Watched()
    embedding = model.model.visual.patch_embed
    projection = embedding.proj
    AttentionInterface.register("sdpa_in_float32", attend)
    AttentionMaskInterface.register("sdpa_in_float32", sdpa_mask)
    before = model.config._attn_implementation
    model.set_attn_implementation("sdpa_in_float32")
    embedding.forward = embed
    try:
        yield watched
    finally:
        del embedding.forward
        model.set_attn_implementation(before)


@contextmanager
def frozen_vision(model: Any, *, once: bool = True, kept_bytes: int = KEPT_BYTES) -> Iterator[None]:
    """Run the vision tower without gradients, and ``once`` for each picture, if no weight of it is trained.

    Gradient checkpointing makes the output of every embedding require a gradient (transformers'
    ``enable_input_require_grads``), the tower's too; without this, a frozen tower is recomputed and run backward for nothing.
    The rollouts of a group, their references and passes share pictures. Each is computed alone, so that its output does not
    depend on what else is in the batch. Not ``once`` for sharded weights, whose processes must call the tower equally often.
    """
    import torch
    from xxhash import xxh3_128_digest

    tower = model.model.visual
    if any(weight.requires_grad for weight in tower.parameters()):
        yield
        return
    compute = torch.no_grad()(tower.forward)
    kept: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
    total = 0

    def remembered(pixels: Any, grid_thw: Any, **named: Any) -> Any:
        nonlocal total
        outputs = []
        device = pixels.device.type
        for picture, grid in zip(pixels.split(grid_thw.prod(-1).tolist()), grid_thw, strict=True):
            precision = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else picture.dtype
            key = (xxh3_128_digest(picture.contiguous().view(torch.uint8).cpu().numpy()), *grid.tolist(), precision)
            if key not in kept:
                kept[key] = compute(picture, grid_thw=grid[None], **named)
                total += _bytes(kept[key])
            kept.move_to_end(key)
            outputs.append(kept[key])
        while total > kept_bytes and len(kept) > 1:
            total -= _bytes(kept.popitem(last=False)[1])
        return type(outputs[0])(**{name: _joined([output[name] for output in outputs]) for name in outputs[0]})

    tower.forward = remembered if once else compute
    try:
        yield
    finally:
        del tower.forward


def _bytes(output: Any) -> int:
    return sum(tensor.nbytes for value in output.values() for tensor in (value if isinstance(value, list) else [value]))


def _joined(values: list[Any]) -> Any:
    """Tensors of several pictures as one, also inside lists (one tensor per layer)."""
    import torch

    if isinstance(values[0], list):
        return [torch.cat(each) for each in zip(*values, strict=True)]
    return torch.cat(values)
