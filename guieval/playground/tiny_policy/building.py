"""Builds the untrained tiny policy: a real Qwen3-VL of three million weights, and its processor.

Two initialisations differ from transformers' own, because training for minutes fails without them: the table of positions
starts as sinusoids (with the usual one, the constant white of a screen dominates the position), and queries of the language
model start equal to keys (so that attention begins with similar tokens).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from guieval.playground.icons.screens import HEIGHT, WIDTH, IconScreen, PlacedIcon
from guieval.playground.tiny_policy.tokens import (
    CHAT_TEMPLATE,
    END_OF_TEXT,
    END_OF_TURN,
    IMAGE,
    VIDEO,
    VISION_END,
    VISION_START,
    build_tokenizer,
)

if TYPE_CHECKING:
    import torch

PATCH, MERGE = 14, 2
PIXEL_MEAN, PIXEL_STD = 0.9, 0.35
"""Centres pixel values in [0, 1] on the light backgrounds."""
ROWS, COLUMNS = HEIGHT // PATCH // MERGE, WIDTH // PATCH // MERGE
"""Image tokens of a screen: down and across."""
TOKENS = ROWS * COLUMNS
_TOKEN_PIXELS = PATCH * MERGE  # side of the square that an image token covers
_OVERLAP = 6  # pixels of an icon, in each direction, from which on a token shows it
_POSITIONS = 32  # per side of the table of positions
_HIDDEN, _LAYERS, _HEADS, _KEY_HEADS = 192, 4, 4, 2
_VISION_HIDDEN, _VISION_LAYERS = 128, 2


class Policy(NamedTuple):
    """A ``Qwen3VLForConditionalGeneration`` and its ``Qwen3VLProcessor``."""

    model: Any
    processor: Any

    def look_at(self, screens: Sequence[IconScreen]) -> Any:
        """The vision model's output for drawn screens."""
        inputs = self.processor.image_processor([screen.render() for screen in screens], return_tensors="pt")
        return self.model.model.visual(inputs["pixel_values"], grid_thw=inputs["image_grid_thw"])

    def save(self, folder: Path, dtype: torch.dtype) -> None:
        """Write the checkpoint, weights as ``dtype``; the model itself stays as it is."""
        import copy

        copy.deepcopy(self.model).to(dtype).save_pretrained(folder)
        for file in folder.glob("*.safetensors"):
            file.chmod(0o644)  # transformers leaves it readable to its owner alone
        self.processor.save_pretrained(folder)


def tokens_of(placed: PlacedIcon) -> list[int]:
    """The numbers of the image tokens that show the icon, row by row from the top."""
    x1, y1, x2, y2 = placed.pixels
    down = [row for row in range(ROWS) if _overlap(y1, y2, row) > _OVERLAP]
    across = [column for column in range(COLUMNS) if _overlap(x1, x2, column) > _OVERLAP]
    return [row * COLUMNS + column for row in down for column in across]


def _overlap(start: int, end: int, number: int) -> int:
    return min(end, (number + 1) * _TOKEN_PIXELS) - max(start, number * _TOKEN_PIXELS)


def build_policy(seed: int) -> Policy:
    """The untrained policy, its weights drawn from ``seed``; float32."""
    import torch
    from transformers import Qwen2VLImageProcessor, Qwen3VLForConditionalGeneration, Qwen3VLProcessor, Qwen3VLVideoProcessor

    tokenizer = build_tokenizer()
    torch.manual_seed(seed)
    model = Qwen3VLForConditionalGeneration(_config(tokenizer))
    model.generation_config.eos_token_id = tokenizer.convert_tokens_to_ids(END_OF_TURN)
    model.generation_config.pad_token_id = tokenizer.convert_tokens_to_ids(END_OF_TEXT)
    with torch.no_grad():
        _match_queries_to_keys(model.model.language_model)
        _start_positions(model.model.visual)
    images = Qwen2VLImageProcessor(
        patch_size=PATCH,
        merge_size=MERGE,
        temporal_patch_size=2,
        min_pixels=4 * (PATCH * MERGE) ** 2,
        max_pixels=256 * (PATCH * MERGE) ** 2,
        image_mean=[PIXEL_MEAN] * 3,
        image_std=[PIXEL_STD] * 3,
    )
    processor = Qwen3VLProcessor(
        image_processor=images,
        tokenizer=tokenizer,
        video_processor=Qwen3VLVideoProcessor(patch_size=PATCH, merge_size=MERGE),
        chat_template=CHAT_TEMPLATE,
    )
    return Policy(model, processor)


def _config(tokenizer: Any) -> Any:
    from transformers import Qwen3VLConfig

    number = tokenizer.convert_tokens_to_ids
    head = _HIDDEN // _HEADS
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": _HIDDEN,
        "intermediate_size": 512,
        "num_hidden_layers": _LAYERS,
        "num_attention_heads": _HEADS,
        "num_key_value_heads": _KEY_HEADS,
        "head_dim": head,
        "max_position_embeddings": 4096,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000.0,
            "mrope_section": [head // 6] * 3,
            "mrope_interleaved": True,
        },
        "tie_word_embeddings": True,
        "bos_token_id": number(END_OF_TEXT),
        "eos_token_id": number(END_OF_TURN),
        "pad_token_id": number(END_OF_TEXT),
        "initializer_range": 0.04,
    }
    vision = {
        "depth": _VISION_LAYERS,
        "hidden_size": _VISION_HIDDEN,
        "intermediate_size": 2 * _VISION_HIDDEN,
        "num_heads": 4,
        "out_hidden_size": _HIDDEN,
        "patch_size": PATCH,
        "temporal_patch_size": 2,
        "spatial_merge_size": MERGE,
        "num_position_embeddings": _POSITIONS**2,
        "deepstack_visual_indexes": [0],
        "initializer_range": 0.04,
    }
    return Qwen3VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=number(IMAGE),
        video_token_id=number(VIDEO),
        vision_start_token_id=number(VISION_START),
        vision_end_token_id=number(VISION_END),
        tie_word_embeddings=True,
    )


def _match_queries_to_keys(language: Any) -> None:
    head, shared = _HIDDEN // _HEADS, _HEADS // _KEY_HEADS
    for layer in language.layers:
        queries, keys = layer.self_attn.q_proj.weight, layer.self_attn.k_proj.weight
        keys.normal_(0, _HIDDEN**-0.5)
        for number in range(_HEADS):
            source = number // shared
            queries[number * head : (number + 1) * head] = keys[source * head : (source + 1) * head]
    language.embed_tokens.weight.normal_(0, 0.1)


def _start_positions(visual: Any) -> None:
    import torch

    table = visual.pos_embed.weight
    quarter = table.shape[1] // 4
    along = torch.linspace(0, 1, _POSITIONS)[:, None] * (2 * math.pi * torch.logspace(-0.6, 1.0, quarter))
    waves = torch.cat([along.sin(), along.cos()], dim=1)
    rows = waves[:, None, :].expand(_POSITIONS, _POSITIONS, -1)
    columns = waves[None].expand(_POSITIONS, _POSITIONS, -1)
    table.copy_(0.5 * torch.cat([rows, columns], dim=-1).reshape(_POSITIONS**2, -1))
    visual.patch_embed.proj.weight.normal_(0, 0.02)
    for merger in visual.deepstack_merger_list:
        merger.linear_fc2.weight.zero_()  # an untrained shortcut past the vision model adds noise to what is trained first
