"""The size of a model from its ``config.json``: parameters are counted on PyTorch's meta device, without any weights.

Folders and Hugging Face ids are read by transformers. For the sizes of Qwen2.5-VL and Qwen3-VL that
guieval's trainings begin with, the numbers of ``config.json`` are shipped, so that they can be planned for on a machine without
the weights. Without torch, their parameters are summed up from these numbers (:func:`summed_size`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from guieval.data.files import read_text
from guieval.data.shipped import config_folder
from guieval.engines.in_process.checkpoint import Checkpoint
from guieval.errors import UsageError
from guieval.training.config import TrainingConfig
from guieval.training.memory import Layer, ModelSize
from guieval.training.settings import Lora
from guieval.training.weights import freeze, lora_config


def model_size(config: TrainingConfig, checkpoint: Checkpoint) -> ModelSize:
    """The size of a training's model. Raises :class:`UsageError` if only its configuration is missing, or of another family."""
    if find_spec("torch") is None:
        return summed_size(config, checkpoint.path)
    import torch
    from peft import get_peft_model
    from transformers import AutoModelForImageTextToText

    read = read_configuration(checkpoint)
    text, vision = read.get_text_config(), getattr(read, "vision_config", None)
    if vision is None:
        raise UsageError(
            f"the weights {checkpoint.path!r} have no vision tower: only vision-language models can be planned for"
        )
    with torch.device("meta"):
        model = AutoModelForImageTextToText.from_config(read)
        units = {type(module).__name__: module for module in model.modules()}
        layers = [units[name] for name in model._no_split_modules or () if name in units]
        head = model.get_output_embeddings()
        parameters = _count(model.parameters())
        unit = max((_count(layer.parameters()) for layer in layers), default=parameters)
        if config.freeze is not None:
            freeze(model, config.freeze)
        if config.lora is not None:
            model = get_peft_model(model, lora_config(config.lora))
        trained = {name: weight.numel() for name, weight in model.named_parameters() if weight.requires_grad}
    try:
        layer, block = _text_layer(text), _vision_layer(vision)
        patch = 3 * vision.temporal_patch_size * vision.patch_size**2
        patches = vision.spatial_merge_size**2
        blocks = vision.depth
    except AttributeError as error:
        raise UsageError(
            f"the shape of a model of type {read.model_type!r} is not known: only Qwen-VL's kind can be planned for"
        ) from error
    return ModelSize(
        parameters=parameters,
        trained=sum(trained.values()),
        adapters=0 if config.lora is None else sum(trained.values()),
        unit=unit,
        head=0 if head is None else _count(head.parameters()),
        layers=text.num_hidden_layers,
        text=layer,
        vocabulary=text.vocab_size,
        blocks=blocks,
        vision=block,
        vision_trained=any("visual" in name for name in trained),
        patch=patch,
        patches=patches,
    )


def summed_size(config: TrainingConfig, path: str) -> ModelSize:
    """The size of a Qwen2.5-VL or Qwen3-VL whose configuration is shipped, by arithmetic.

    Raises :class:`UsageError` for another model, and for settings that choose weights by the names of modules.
    """
    values, lora = shipped_configurations().get(path), config.lora
    by_name = config.freeze is not None or (lora is not None and lora != lora.model_copy(update=_ADAPTED))
    if values is None or by_name:
        raise UsageError(f"the size of {path!r} can only be counted with torch: pip install 'guieval[train]'")
    text, vision = _text(values), SimpleNamespace(**values["vision_config"])
    layer, block, inner = _text_layer(text), _vision_layer(vision), getattr(vision, "deepstack_visual_indexes", None)
    hidden, width, joined = layer.hidden, block.hidden, block.hidden * vision.spatial_merge_size**2
    patch = 3 * vision.temporal_patch_size * vision.patch_size**2
    linear = hidden * (2 * layer.queries + 2 * layer.keys + 3 * layer.intermediate)
    attention, merger = 4 * width * (width + 1), joined * (joined + 1) + (joined + 1) * vision.out_hidden_size
    if inner is None:  # Qwen2.5-VL
        unit = linear + 2 * hidden + layer.queries + 2 * layer.keys
        each = attention + 3 * width * block.intermediate + 2 * block.intermediate + 3 * width
        tower = patch * width + vision.depth * each + merger + width
    else:  # Qwen3-VL: norms and patches with a bias, places of patches, and mergers of inner layers
        unit = linear + 2 * hidden + 2 * text.head_dim
        each = attention + 2 * width * block.intermediate + block.intermediate + 5 * width
        tower = patch * width + vision.depth * each + merger + (3 + vision.num_position_embeddings) * width
        tower += len(inner) * (merger + 2 * joined)
    head = text.vocab_size * hidden
    parameters = head * (1 if values["tie_word_embeddings"] else 2) + text.num_hidden_layers * unit + hidden + tower
    ends = 4 * hidden + 2 * layer.queries + 2 * layer.keys + 3 * (hidden + layer.intermediate)  # of inputs and outputs
    adapters = 0 if lora is None else lora.r * text.num_hidden_layers * ends
    return ModelSize(
        parameters=parameters,
        trained=adapters or parameters,
        adapters=adapters,
        unit=unit,
        head=head,
        layers=text.num_hidden_layers,
        text=layer,
        vocabulary=text.vocab_size,
        blocks=vision.depth,
        vision=block,
        vision_trained=lora is None,
        patch=patch,
        patches=vision.spatial_merge_size**2,
    )


_ADAPTED = {name: Lora().model_dump()[name] for name in ("targets", "exclude")}
"""All linear layers of the language model."""


def _text(values: Mapping[str, Any]) -> Any:
    text = SimpleNamespace(**values.get("text_config", values))
    text.head_dim = getattr(text, "head_dim", text.hidden_size // text.num_attention_heads)
    return text


def _text_layer(text: Any) -> Layer:
    heads = text.num_attention_heads
    width = getattr(text, "head_dim", None) or text.hidden_size // heads
    return Layer(text.hidden_size, heads * width, text.num_key_value_heads * width, text.intermediate_size, heads)


def _vision_layer(vision: Any) -> Layer:
    width = getattr(vision, "embed_dim", None) or vision.hidden_size  # Qwen2-VL's hidden_size is that of the language model
    intermediate = getattr(vision, "intermediate_size", None) or int(width * vision.mlp_ratio)
    return Layer(width, width, width, intermediate, vision.num_heads)


def read_configuration(checkpoint: Checkpoint) -> Any:
    """The configuration of a checkpoint for transformers; the shipped one if guieval has it."""
    from transformers import AutoConfig
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    shipped = shipped_configurations()
    if checkpoint.path in shipped:
        values = shipped[checkpoint.path]
        return CONFIG_MAPPING[values["model_type"]].from_dict(values)
    source = {name: checkpoint.arguments[name] for name in ("revision", "trust_remote_code") if name in checkpoint.arguments}
    try:
        return AutoConfig.from_pretrained(checkpoint.path, **source)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise UsageError(
            f"the config.json of {checkpoint.path!r} cannot be read, and a plan needs nothing else of the weights: set "
            f"model_path to a folder that has it, or to one of {', '.join(shipped)}"
        ) from error


def shipped_configurations() -> dict[str, dict[str, Any]]:
    """The shipped configurations by the Hugging Face id of each checkpoint."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(Path(str(config_folder() / "training" / "architectures")).glob("*.json")):
        values = json.loads(read_text(file))
        found |= dict.fromkeys(values.pop("checkpoints"), values)
    return found


def _count(weights: Any) -> int:
    return sum(weight.numel() for weight in weights)
