"""First stage: the vision model alone learns the content of each image token, through heads that are discarded.

From next-token loss alone a model this small does not learn to see in any number of minutes. Here each image token predicts
which icon it is on and where that icon's centre is. An icon is recognised by closeness to the sum of its name's own token
embeddings, so visual features and words are already similar when the language model's training begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guieval.frames import PER_999
from guieval.playground.icons.screens import ICONS, SIZE, IconScreen, draw_screen
from guieval.playground.phone.dice import Dice
from guieval.playground.tiny_policy.building import TOKENS, Policy, tokens_of
from guieval.playground.tiny_policy.optimiser import Optimiser
from guieval.training.speed import autocast

BATCH = 16
_RATE = 1e-3
_BACKGROUND_WEIGHT = 0.15
_IGNORED = -100
_NUMBERS = {icon: number for number, icon in enumerate(ICONS, 1)}


def warm_up_vision(policy: Policy, *, steps: int, seed: int, say: Callable[[str], None]) -> None:
    """Train the vision model and the embeddings of the names for ``steps`` steps of :data:`BATCH` screens."""
    import torch

    visual = policy.model.model.visual
    heads = _Heads(policy)
    embeddings = policy.model.get_input_embeddings().weight
    optimiser = Optimiser(visual.named_parameters(), _RATE, tables=[embeddings, *heads.parameters()])
    seen = right = 0.0
    for step in range(steps):
        screens = [draw_screen(Dice("tiny vision", seed, step, number)) for number in range(BATCH)]
        wanted = torch.from_numpy(np.concatenate([_targets(screen) for screen in screens]))
        with autocast():
            features = policy.look_at(screens).pooler_output
        kinds, digits = heads.scores(features.float(), embeddings)
        loss = _loss(kinds, digits, wanted)
        share = min(1.0, (step + 1) / 30) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / steps)))
        optimiser.step(loss, share)
        shown = wanted[:, 0] > 0
        right = 0.95 * right + 0.05 * float((kinds.argmax(-1) == wanted[:, 0])[shown].float().mean())
        seen = 0.95 * seen + 0.05
        if (step + 1) % 25 == 0:
            say(f"vision {step + 1}/{steps}: loss {float(loss):.3f}, tokens on icons recognised {right / seen:.3f}")


class _Heads:
    """Heads that are trained with the vision model and discarded: scores of background and icons, and of six digits."""

    def __init__(self, policy: Policy) -> None:
        import torch

        hidden = policy.model.config.text_config.hidden_size
        tokenizer = policy.processor.tokenizer
        # colour and shape, without the space between them
        words = [[tokenizer.convert_tokens_to_ids(word) for word in (icon.colour, icon.shape)] for icon in ICONS]
        self._words = torch.tensor(words)
        self._norm = torch.nn.LayerNorm(hidden)
        self._digits = torch.nn.Linear(hidden, 60)
        self._background = torch.nn.Parameter(torch.randn(hidden) * 0.1)
        self._sharpness = torch.nn.Parameter(torch.tensor(12.0))

    def parameters(self) -> list[Any]:
        return [*self._norm.parameters(), *self._digits.parameters(), self._background, self._sharpness]

    def scores(self, features: Any, embeddings: Any) -> tuple[Any, Any]:
        """From features (n, hidden): scores of background and icons (n, 41), and of six digits (n, 6, 10)."""
        import torch
        from torch.nn import functional

        named = functional.normalize(embeddings[self._words], dim=-1).sum(1)
        kinds = functional.normalize(torch.cat([self._background[None], named]), dim=-1)
        normed = self._norm(features)
        closeness = self._sharpness * functional.normalize(normed, dim=-1) @ kinds.T
        return closeness, self._digits(normed).reshape(-1, 6, 10)


def _targets(screen: IconScreen) -> NDArray[np.int64]:
    """(tokens, 7): which icon an image token shows (0: none), and the digits of its middle as the policy writes them."""
    labels = np.full((TOKENS, 7), _IGNORED, dtype=np.int64)
    labels[:, 0] = 0
    for placed in screen.icons:
        x, y = PER_999.quantise(placed.centre, SIZE)
        labels[tokens_of(placed)] = [_NUMBERS[placed.icon], *map(int, f"{x:03.0f}{y:03.0f}")]
    return labels


def _loss(kinds: Any, digits: Any, wanted: Any) -> Any:
    import torch
    from torch.nn import functional

    weights = torch.ones(len(ICONS) + 1)
    weights[0] = _BACKGROUND_WEIGHT
    named = functional.cross_entropy(kinds, wanted[:, 0], weight=weights)
    return named + functional.cross_entropy(digits.reshape(-1, 10), wanted[:, 1:].reshape(-1), ignore_index=_IGNORED)
