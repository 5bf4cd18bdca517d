"""Importance correction between the engine that sampled the responses and the model that is trained (truncated by default:
TIS).

vLLM computes with other kernels and in other types than the trainer, so its probabilities differ for equal weights. TRL's own
correction is inside the method that this package replaces; the modes and their names are TRL's.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from guieval.errors import UsageError, nearest

MODES = ("token_truncate", "token_mask", "sequence_truncate", "sequence_mask")


def importance_ratio(
    trained: Tensor, sampled: Tensor, mask: Tensor, *, mode: str, least: float | None = None, most: float | None = None
) -> Tensor:
    """The factor of each token's loss: probability under the trained model / probability under the sampler.

    All are (rows, tokens) log-probabilities, ``mask`` is 1 for tokens that count; a NaN in ``sampled`` is a token whose
    probability is unknown, with factor 1. The ``sequence`` modes give one factor per row, (rows, 1), for the product over its
    tokens. ``truncate`` clamps factors to [``least``, ``most``], ``mask`` sets those outside to 0.
    """
    if mode not in MODES:
        raise UsageError(
            f"setting 'trainer.vllm_importance_sampling_mode' is {mode!r}{nearest(mode, MODES)}; known: {', '.join(MODES)}"
        )
    difference = log_difference(trained, sampled, mask)
    if mode.startswith("sequence"):
        difference = difference.sum(-1, keepdim=True)
    ratio = difference.exp()
    low, high = -math.inf if least is None else least, math.inf if most is None else most
    if mode.endswith("truncate"):
        return ratio.clamp(low, high)
    return ratio.masked_fill((ratio < low) | (ratio > high), 0.0)


def log_difference(trained: Tensor, sampled: Tensor, mask: Tensor) -> Tensor:
    """The difference of log-probabilities, 0 for tokens that do not count or whose probability is unknown."""
    return torch.nan_to_num((trained - sampled) * mask, nan=0.0)


def divergence(difference: Tensor, mask: Tensor) -> Tensor:
    """The sum over tokens of the unbiased estimate of KL(sampler, trainer): exp(d) - 1 - d, never negative."""
    return ((difference.exp() - 1 - difference) * mask).sum()
