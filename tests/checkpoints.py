"""Which checkpoints stand for all in tests: the first of each adapter and set of options.

The core tier goes through :func:`of_each_kind`, the full tier through ``list_models``.
"""

from __future__ import annotations

import json
from functools import cache

from guieval.models import ModelConfig
from guieval.registry import list_models, model_config

SERVING = {"name", "hf_id", "served_as", "scaffold", "context_length", "vllm", "licence", "notes", "frame"}
"""Settings of a checkpoint that change neither a prompt nor how a reply is read."""


def kind(config: ModelConfig) -> str:
    """What checkpoints have to have in common so that one stands for all of them."""
    values = config.model_dump(exclude=SERVING) | {"thinking": config.scaffold.thinking is None}
    return json.dumps(values, sort_keys=True)


@cache
def _first() -> dict[str, str]:
    first: dict[str, str] = {}
    for name in list_models():
        first.setdefault(kind(model_config(name)), name)
    return first


def of_each_kind() -> tuple[str, ...]:
    """The names of one checkpoint of each kind."""
    return tuple(_first().values())


def twin(name: str) -> str:
    """The checkpoint that stands for the one called ``name``."""
    return _first()[kind(model_config(name))]
