"""Loads the weights and the processor to train, by the rules of the engines that evaluate them.

So a prompt has the same tokens in training and evaluation (:class:`guieval.engines.in_process.checkpoint.Checkpoint`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guieval.data.shipped import config_folder
from guieval.engines.in_process.attention import batch_windows, implementation
from guieval.engines.in_process.checkpoint import Checkpoint
from guieval.errors import UsageError
from guieval.models import ABCModel
from guieval.training.config import TrainingConfig
from guieval.training.settings import Lora


@dataclass(frozen=True)
class Weights:
    """A model of transformers, its processor, and the checkpoint that they were loaded from."""

    model: Any
    processor: Any
    checkpoint: Checkpoint


def load_weights(config: TrainingConfig, model: ABCModel) -> Weights:
    """The weights that a training begins with; :class:`UsageError` if they cannot be found or loaded."""
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    checkpoint = checkpoint_of(config, model)
    source = {name: checkpoint.arguments[name] for name in ("revision", "trust_remote_code") if name in checkpoint.arguments}
    limits = checkpoint.arguments.get("mm_processor_kwargs") or {}
    try:
        processor = AutoProcessor.from_pretrained(checkpoint.path, **source, **limits)
        weights = AutoModelForImageTextToText.from_pretrained(
            checkpoint.path,
            dtype=getattr(torch, config.dtype),
            attn_implementation=implementation(
                config.attention, half=torch.cuda.is_available()
            ),  # autocast, if not the weights
            **source,
        )
    except (OSError, ValueError, KeyError, ImportError) as error:  # no such model, no network, an unknown architecture
        reason = " ".join(str(error).split())[:300]
        raise UsageError(f"the weights {checkpoint.path!r} cannot be loaded: {reason}") from error
    if checkpoint.chat_template is not None:
        processor.chat_template = checkpoint.chat_template
    processor.tokenizer.padding_side = "left"
    batch_windows(weights)
    if config.freeze is not None:
        freeze(weights, config.freeze)
    return Weights(weights, processor, checkpoint)


def checkpoint_of(config: TrainingConfig, model: ABCModel) -> Checkpoint:
    """Where the weights of a training are, and how its model is asked; :class:`UsageError` if nothing names them."""
    shipped = None if model.config.folder is None else str(config_folder() / "checkpoints" / model.config.folder)
    return Checkpoint(model.config, path=config.model_path or shipped, chat_templates=config_folder() / "chat_templates")


def freeze(weights: Any, pattern: str) -> None:
    """Leave the weights of a model alone whose whole names match; :class:`UsageError` if none does, or all do."""
    names = {name: bool(re.fullmatch(pattern, name)) for name, _ in weights.named_parameters()}
    if len(set(names.values())) < 2:
        which = "all weights" if all(names.values()) else f"none, e.g. not {next(iter(names))!r}"
        raise UsageError(
            f"setting 'freeze' is {pattern!r}: expected to match whole names of some weights, and it matches {which}"
        )
    for name, parameter in weights.named_parameters():
        parameter.requires_grad_(not names[name])


def lora_config(lora: Lora) -> Any:
    """peft's ``LoraConfig``: rank, scale, and the layers that are adapted."""
    from peft import LoraConfig

    targets = "all-linear" if lora.targets == ("all-linear",) else list(lora.targets)
    return LoraConfig(
        r=lora.r,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=targets,
        exclude_modules=lora.exclude,
        task_type="CAUSAL_LM",
    )


def merge_adapter(base: Any, adapter: Path, out: Path) -> None:
    """Write the weights of ``base`` with a LoRA adapter added to them, as one model that every engine loads."""
    from peft import PeftModel

    PeftModel.from_pretrained(base, str(adapter)).merge_and_unload().save_pretrained(str(out))
