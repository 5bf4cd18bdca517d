"""The small files of a checkpoint that say what it is: its configuration, its image processor and its chat template."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from guieval.data.files import read_text

CONFIG = "config.json"
PROCESSORS = ("processor_config.json", "preprocessor_config.json")
TEMPLATES = ("chat_template.json", "tokenizer_config.json")
JINJA = "chat_template.jinja"
FILES = (CONFIG, *PROCESSORS, JINJA, *TEMPLATES)
"""All files that are read, of any checkpoint."""


@dataclass(frozen=True)
class CheckpointFiles:
    """What the files say: ``config.json``, ``min_pixels`` and ``max_pixels`` of the processor, and the template's text."""

    config: Mapping[str, Any]
    limits: Mapping[str, int]
    template: str | None

    @classmethod
    def read(cls, find: Callable[[str], Path | None]) -> Self:
        """Read the files that ``find`` finds by name; what is missing, or cannot be read, is empty."""
        limits: Mapping[str, int] = {}
        for name in PROCESSORS:
            values = _json(find(name))
            limits = limits or pixel_limits(values.get("image_processor", values))
        template = _text(find(JINJA))
        for name in TEMPLATES:
            template = template or _json(find(name)).get("chat_template")
        return cls(_json(find(CONFIG)), limits, template if isinstance(template, str) else None)


def pixel_limits(processor: Any) -> dict[str, int]:
    """``min_pixels`` and ``max_pixels`` of an image processor's settings.

    Processors of Qwen's kind, which merge patches, keep them as the edges of their ``size``.
    """
    if not isinstance(processor, Mapping):
        return {}
    size = processor.get("size")
    edges = size if isinstance(size, Mapping) and "merge_size" in processor else {}
    found = {
        "min_pixels": processor.get("min_pixels") or edges.get("shortest_edge"),
        "max_pixels": processor.get("max_pixels") or edges.get("longest_edge"),
    }
    return {name: value for name, value in found.items() if type(value) is int}


def _text(file: Path | None) -> str | None:
    try:
        return None if file is None else read_text(file)
    except (OSError, ValueError):
        return None


def _json(file: Path | None) -> dict[str, Any]:
    try:
        values = json.loads(_text(file) or "{}")
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}
