"""How long prompts are, without a tokenizer: image tokens are exact, and text is counted by its bytes."""

from __future__ import annotations

import math

from guieval.models import ModelInput
from guieval.training.memory import ModelSize

TOKEN_BYTES = 2.5
"""Bytes of text that are counted as one token; most tokenizers need more for one."""


def edge_of(size: ModelSize) -> int:
    """Pixels of an image token's side, of 3 colours and 2 frames."""
    return math.isqrt(size.patch // 6) * math.isqrt(size.patches)


def prompt_length(prepared: ModelInput, edge: int) -> tuple[int, int]:
    """Tokens of text, by its bytes, and of images, of which each token is ``edge`` pixels wide and high."""
    words = pictures = 0
    for message in prepared.messages:
        words += 8  # the template's own
        for part in message.parts:
            if isinstance(part, str):
                words += text_length(part)
            else:
                width, height = part.resize or part.task.screenshot_size
                pictures += math.ceil(width / edge) * math.ceil(height / edge) + 2
    return words, pictures


def text_length(text: str) -> int:
    """Tokens of a text."""
    return math.ceil(len(text.encode()) / TOKEN_BYTES)
