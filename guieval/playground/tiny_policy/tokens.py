"""The tiny policy's tokenizer: a byte-level BPE with one token for each word of its task and for each digit.

A word is the same token wherever it occurs: spaces are tokens of their own, so that a name in the goal, in the past and in the
response is matched by the same token.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from guieval.playground.icons.screens import COLOURS, SHAPES

END_OF_TEXT, TURN, END_OF_TURN = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
VISION_START, VISION_END, IMAGE, VIDEO = "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"
SPECIAL = (END_OF_TEXT, TURN, END_OF_TURN, VISION_START, VISION_END, IMAGE, VIDEO)

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type in ('image', 'image_url') %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}"
    "{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""ChatML as in the Qwen family: a turn's parts in order, without separators, and no default system message."""

_PIECES = r" ?click\(|, |[a-z]+|[0-9]|\s|[^a-z0-9\s]"
"""Boundaries that no token crosses."""
_MOST_TOKENS = 512


def build_tokenizer() -> Any:
    """The tokenizer (a ``PreTrainedTokenizerFast``), the same every time."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(_PIECES), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    bpe.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=_MOST_TOKENS, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    bpe.train_from_iterator(_corpus(), trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token=END_OF_TURN, pad_token=END_OF_TEXT, chat_template=CHAT_TEMPLATE, padding_side="left"
    )
    # the Qwen processor reads its placeholders from these attributes
    tokenizer.image_token, tokenizer.video_token = IMAGE, VIDEO
    tokenizer.vision_start_token, tokenizer.vision_end_token = VISION_START, VISION_END
    return tokenizer


def _corpus() -> Iterator[str]:
    """Every word often enough to be one token at the end."""
    for word in (*COLOURS, *SHAPES, "tap", "user", "assistant", "system"):
        for _ in range(50):
            yield word
    for _ in range(50):
        yield "star click(012,345)"
        yield "click(678,901)"
        yield "red circle, blue star"
