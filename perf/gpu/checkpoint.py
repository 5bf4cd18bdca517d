"""Writes a checkpoint of Qwen2.5-VL's shape with random weights: its speed and memory are those of the real one.

    python -m perf.gpu.checkpoint FOLDER 7b|3b|tiny

The tokenizer has as many entries as Qwen's and divides English as finely (it learns from guieval's own pages); the names of the
places of images are at Qwen's own numbers. Weights are drawn on the GPU if there is one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.vllm.tiny_model import PIXELS, SPECIAL, TEMPLATE

ROOT = Path(__file__).resolve().parents[2]
LEARNT = 30_000
VOCABULARY = {"7b": 151_643, "3b": 151_643, "tiny": 2_000}
"""Entries before the special ones."""
SMALL: dict[str, dict[str, Any]] = {
    "text": {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2}
    | {"num_key_value_heads": 1, "vocab_size": 2_048, "rope_scaling": {"type": "mrope", "mrope_section": [8, 12, 12]}},
    "vision": {"depth": 2, "hidden_size": 64, "intermediate_size": 128, "num_heads": 2, "out_hidden_size": 128}
    | {"fullatt_block_indexes": [1]},
}
"""What the tiny shape has in place of the 3B's."""
WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
"""Where Qwen's tokenizer divides a text before it looks for its entries."""


def write_checkpoint(folder: Path, shape: str) -> None:
    """Write configuration, tokenizer, processor and random bfloat16 weights of ``shape`` (a key of :data:`VOCABULARY`)."""
    import torch
    from transformers import AutoModelForImageTextToText, GenerationConfig, Qwen2_5_VLConfig, Qwen2_5_VLProcessor
    from transformers import Qwen2VLImageProcessor as ImageProcessor
    from transformers import Qwen2VLVideoProcessor as VideoProcessor

    words = _tokenizer(VOCABULARY[shape])
    ids = {name: words.convert_tokens_to_ids(name) for name in SPECIAL}
    file = ROOT / "configs" / "training" / "architectures" / f"qwen2.5-vl-{'7b' if shape == '7b' else '3b'}.json"
    values = json.loads(file.read_text(encoding="utf-8"))
    text = {name: value for name, value in values.items() if name not in ("checkpoints", "architectures", "model_type")}
    vision, tied = text.pop("vision_config"), text.pop("tie_word_embeddings")
    if shape == "tiny":
        text, vision = text | SMALL["text"], vision | SMALL["vision"]
    text |= {"bos_token_id": ids["<|endoftext|>"], "eos_token_id": ids["<|im_end|>"], "tie_word_embeddings": tied}
    places = {f"{kind}_token_id": ids[f"<|{kind}_pad|>"] for kind in ("image", "video")}
    places |= {f"vision_{end}_token_id": ids[f"<|vision_{end}|>"] for end in ("start", "end")}
    config = Qwen2_5_VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=tied, **places)
    torch.manual_seed(0)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = AutoModelForImageTextToText.from_config(config, dtype=torch.bfloat16)
    end, pad = ids["<|im_end|>"], ids["<|endoftext|>"]
    model.generation_config = GenerationConfig(eos_token_id=[end, pad], pad_token_id=pad)
    model.save_pretrained(folder, max_shard_size="4GB")
    Qwen2_5_VLProcessor(
        image_processor=ImageProcessor(**PIXELS), tokenizer=words, video_processor=VideoProcessor(), chat_template=TEMPLATE
    ).save_pretrained(folder)


def _tokenizer(vocabulary: int) -> Any:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import Qwen2TokenizerFast

    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    divided = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(WORDS), "isolated"), letters])
    learnt = Tokenizer(models.BPE())
    learnt.pre_tokenizer = divided
    files = [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "model_adapters" / "prompts").glob("*.txt"))]
    learnt.train_from_iterator(
        (file.read_text(encoding="utf-8") for file in files),
        trainers.BpeTrainer(
            vocab_size=min(vocabulary, LEARNT),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=[],
            show_progress=False,
        ),
    )
    model = json.loads(learnt.to_str())["model"]
    entries: dict[str, int] = model["vocab"]
    for number in range(vocabulary - len(entries)):  # so that each number that a model may draw is a word
        entries[f"Ġw{number:x}"] = len(entries)
    backend = Tokenizer(models.BPE(vocab=entries, merges=[tuple(pair) for pair in model["merges"]]))
    backend.pre_tokenizer, backend.decoder = divided, decoders.ByteLevel()
    backend.add_special_tokens(list(SPECIAL))
    tokens: Any = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "additional_special_tokens": list(SPECIAL)}
    return Qwen2TokenizerFast(tokenizer_object=backend, model_max_length=131_072, **tokens)


if __name__ == "__main__":
    write_checkpoint(Path(sys.argv[1]), sys.argv[2])
