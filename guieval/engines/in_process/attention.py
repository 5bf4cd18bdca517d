"""The attention of models in this process: which implementation, and the windows of Qwen2.5-VL's vision tower in few calls.

Without flash attention, transformers computes each window alone: 6,160 calls for a screenshot of 1080x2400 pixels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from types import MethodType
from typing import Any

from guieval.errors import UsageError
from guieval.settings import Attention

_WINDOWED = "Qwen2_5_VLVisionAttention"


def installed() -> list[str]:
    """The implementations that this machine can use, best first; needs torch and transformers."""
    from transformers.utils import import_utils as packages
    from transformers.utils import is_flash_attn_2_available

    flash = {
        "flash_attention_3": getattr(packages, "is_flash_attn_3_available", lambda: False),  # since transformers 4.56
        "flash_attention_2": is_flash_attn_2_available,
    }
    return [*(name for name, available in flash.items() if available()), "sdpa", "eager"]


def implementation(wanted: Attention, *, half: bool) -> str:
    """The name that transformers is given: ``auto`` is the best that is installed.

    ``half`` says that the model computes in bfloat16 or float16, which flash attention needs. Raises :class:`UsageError` if
    what is wanted cannot be used here.
    """
    usable = [name for name in installed() if half or not name.startswith("flash")]
    if wanted == "auto":
        return usable[0]
    if wanted not in usable:
        reason = "its package or a GPU is missing" if half else "it needs dtype bfloat16 or float16"
        raise UsageError(f"attention {wanted!r} cannot be used here, because {reason}: expected auto, {' or '.join(usable)}")
    return wanted


def batch_windows(model: Any) -> None:
    """Let the windows of equal length of each layer of a Qwen2.5-VL vision tower be computed in one call.

    A screenshot has windows of up to four lengths: whole ones, and those at its right edge, its lower edge and its corner.
    Models of other kinds, and flash attention, which takes windows of any length, are left as they are.
    """
    for module in model.modules():
        if type(module).__name__ == _WINDOWED and not str(module.config._attn_implementation).startswith("flash"):
            module.forward = MethodType(_attend, module)


def _attend(module: Any, hidden_states: Any, cu_seqlens: Any, position_embeddings: Any = None, **others: Any) -> Any:
    """The layer's forward pass: ``hidden_states`` are (patches, dim), ``cu_seqlens`` the bounds of the windows."""
    import torch
    from transformers.models.qwen2_5_vl import modeling_qwen2_5_vl as made

    others.pop("max_seqlen", None)
    patches = hidden_states.shape[0]
    query, key, value = module.qkv(hidden_states).reshape(patches, 3, module.num_heads, -1).permute(1, 0, 2, 3).unbind(0)
    query, key = made.apply_rotary_pos_emb_vision(query, key, *position_embeddings)
    attention = made.ALL_ATTENTION_FUNCTIONS.get_interface(module.config._attn_implementation, made.eager_attention_forward)
    output = torch.empty_like(query)
    for places in _by_length(cu_seqlens.tolist(), hidden_states.device):
        shown, _ = attention(
            module,
            *(each[places].transpose(1, 2) for each in (query, key, value)),  # windows, heads, patches, dim
            attention_mask=None,
            scaling=module.scaling,
            dropout=0.0,
            is_causal=False,
            **others,
        )
        output = output.index_put((places,), shown.to(output.dtype))
    return module.proj(output.reshape(patches, -1))


def _by_length(bounds: list[int], device: Any) -> Iterator[Any]:
    """For each length of a window, the patches of all such windows: (windows, length)."""
    import torch

    starts = defaultdict(list)
    for start, end in pairwise(bounds):
        starts[end - start].append(start)
    for length, found in starts.items():
        yield torch.tensor(found, device=device)[:, None] + torch.arange(length, device=device)
