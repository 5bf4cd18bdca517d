"""The optimiser of the tiny policy's own training: Muon for matrices, AdamW for everything else, one learning rate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_CLIP = 1.0


class Optimiser:
    """Steps both, over (name, parameter) pairs ``parameters`` and over ``tables``.

    Tables (embeddings, positions, heads over classes) are not maps between features: AdamW updates them whatever their shape.
    """

    def __init__(self, parameters: Iterable[tuple[str, Any]], rate: float, *, tables: Iterable[Any] = ()) -> None:
        import torch

        matrices: list[Any] = []
        others: list[Any] = [*tables]
        for name, parameter in parameters:
            table = any(word in name for word in ("pos_embed", "embed_tokens", "lm_head"))
            (matrices if parameter.ndim == 2 and not table else others).append(parameter)
        self._all = [*matrices, *others]
        self._rate = rate
        self._parts = [
            torch.optim.Muon(matrices, lr=rate, weight_decay=0.02, momentum=0.95, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(others, lr=rate, weight_decay=0.0, betas=(0.9, 0.98)),
        ]

    def step(self, loss: torch.Tensor, share: float) -> None:
        """One update down the gradient of ``loss``, at ``share`` of the learning rate."""
        import torch

        for part in self._parts:
            part.zero_grad(set_to_none=True)
            for group in part.param_groups:
                group["lr"] = self._rate * share
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._all, _CLIP)
        for part in self._parts:
            part.step()
