"""Writes a tiny random Qwen2.5-VL, whole enough for vLLM and transformers: weights, byte-level tokenizer, processor, template.

It looks at its images (another picture, another answer), and what it says is text: hidden size 0 carries a constant through
the whole network, and the output layer takes that constant from every token that is not a letter, digit or common sign. So a
reply is never cut inside a character, and the best token is ahead of the second by far more than two implementations differ.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SEED = 20
SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>"),
    *("<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>"),
    *("<|image_pad|>", "<|video_pad|>"),
)
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif 'text' in part %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
HIDDEN = 128
PIXELS = {"min_pixels": 4 * 28 * 28, "max_pixels": 16384 * 28 * 28}


def write_tiny_model(folder: Path) -> None:
    """Make the checkpoint in ``folder``; the same seed gives the same files."""
    import torch
    from transformers import GenerationConfig, Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, Qwen2_5_VLProcessor
    from transformers import Qwen2VLImageProcessor as ImageProcessor
    from transformers import Qwen2VLVideoProcessor as VideoProcessor

    tokenizer = _tokenizer()
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in SPECIAL}
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": HIDDEN,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,  # of size 64: vLLM's attention on a CPU knows none of 16
        "num_key_value_heads": 1,
        "max_position_embeddings": 32768,
        "rope_scaling": {"type": "mrope", "mrope_section": [8, 12, 12]},
        **{"bos_token_id": ids["<|endoftext|>"], "eos_token_id": ids["<|im_end|>"], "tie_word_embeddings": False},
    }
    vision = {"depth": 2, "hidden_size": 64, "intermediate_size": 128, "num_heads": 2, "out_hidden_size": HIDDEN}
    sight = {**vision, "patch_size": 14, "fullatt_block_indexes": [1]}
    places = {f"{kind}_token_id": ids[f"<|{kind}_pad|>"] for kind in ("image", "video")}
    places |= {f"vision_{end}_token_id": ids[f"<|vision_{end}|>"] for end in ("start", "end")}
    config = Qwen2_5_VLConfig(text_config=text, vision_config=sight, tie_word_embeddings=False, **places)
    torch.manual_seed(SEED)
    model = Qwen2_5_VLForConditionalGeneration(config).float()
    _make_it_say_text(model, tokenizer)
    end, pad = ids["<|im_end|>"], ids["<|endoftext|>"]
    model.generation_config = GenerationConfig(eos_token_id=[end, pad], pad_token_id=pad)
    model.save_pretrained(folder)
    Qwen2_5_VLProcessor(
        image_processor=ImageProcessor(**PIXELS), tokenizer=tokenizer, video_processor=VideoProcessor(), chat_template=TEMPLATE
    ).save_pretrained(folder)
    (folder / "seed.json").write_text(json.dumps(SEED), encoding="utf-8")


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import Qwen2TokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(list(SPECIAL))
    tokens: Any = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "additional_special_tokens": list(SPECIAL)}
    return Qwen2TokenizerFast(tokenizer_object=backend, model_max_length=32768, **tokens)


def _make_it_say_text(model: Any, tokenizer: Any) -> None:
    import torch

    wanted = {*(chr(code) for code in range(ord("a"), ord("z") + 1)), *"0123456789 .,()=", "<|im_end|>"}
    message = torch.tensor([tokenizer.decode([number]) in wanted for number in range(len(tokenizer))])
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.normal_(0.0, 2.5 / weight[0].numel() ** 0.5)
            elif name.endswith("bias"):
                weight.zero_()
        language = model.model.language_model
        language.embed_tokens.weight.normal_(0.0, 1.0)
        language.embed_tokens.weight[:, 0] = 3.0
        for layer in language.layers:
            layer.self_attn.o_proj.weight[0] = 0.0
            layer.mlp.down_proj.weight[0] = 0.0
        model.lm_head.weight.normal_(0.0, 0.3)
        model.lm_head.weight[:, 0] = torch.where(message, 0.0, -100.0)
        model.lm_head.weight[tokenizer.convert_tokens_to_ids("<|im_end|>"), 1:] *= 0.5  # an end now and then, not at once


if __name__ == "__main__":
    write_tiny_model(Path(sys.argv[1]))
