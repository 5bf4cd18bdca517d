"""vLLM's arguments for a checkpoint, the same to a server and to vLLM in this process: the file's, and the user's over them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from guieval.errors import UsageError, nearest
from guieval.models import ModelConfig

_OPTION = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_SET_HERE = {
    "host": "the server listens on this machine only",
    "port": "guieval takes a free one",
    "uds": "guieval reaches the server over a port",
    "root-path": "guieval reaches the server at /v1",
    "ssl-keyfile": "the server listens on this machine only",
    "ssl-certfile": "the server listens on this machine only",
    "allowed-local-media-path": "it is the data folder, and nothing else may be read",
    "config": "its lines can be given as vllm.ARGUMENT",
}
_LIMITS = ("min_pixels", "max_pixels")
_SECRET = {"api-key": "VLLM_API_KEY (and --api-key-env VLLM_API_KEY)", "hf-token": "HF_TOKEN"}


def named_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by their names with hyphens, however they were written (``--max-model-len``, ``max_model_len``).

    Raises :class:`UsageError` for an invalid name, for an argument that guieval sets itself, and for a secret: a run stores
    its settings, and every user of a machine can read the command line of a process. The secret is not repeated.
    """
    named = {str(name).removeprefix("--").replace("_", "-"): value for name, value in values.items()}
    for name, value in named.items():
        if not _OPTION.fullmatch(name):
            raise UsageError(f"vllm.{name} is not an argument of vLLM's server: expected a name like tensor-parallel-size")
        if value is None:  # leaves it to vLLM
            continue
        if name in _SECRET:
            raise UsageError(f"vllm.{name} cannot be given as a setting, for it is a secret: set {_SECRET[name]}")
        if name in _SET_HERE:
            raise UsageError(f"vllm.{name} cannot be set: {_SET_HERE[name]}")
    return named


def merged_arguments(model: ModelConfig, given: Mapping[str, Any]) -> dict[str, Any]:
    """The checkpoint's arguments with ``given`` over them, names with hyphens; a group over a group replaces what it names.

    The image limits of the adapter's options become the processor's, so that vLLM does not resize an image a second time.
    ``None`` stays: it says that an argument is to be left out. Raises what :func:`named_arguments` raises.
    """
    merged = named_arguments(model.vllm)
    limits = {name: model.options[name] for name in _LIMITS if model.options.get(name) is not None}
    if limits:
        merged["mm-processor-kwargs"] = {**limits, **(merged.get("mm-processor-kwargs") or {})}
    for name, value in named_arguments(given).items():
        old = merged.get(name)
        merged[name] = {**old, **value} if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def find_chat_template(value: str, folder: Path | None) -> Path | None:
    """The file of a chat template, looked for in ``folder``, then from the working directory; ``None``: it is written out.

    Raises :class:`UsageError` listing those in ``folder`` when there is no such file.
    """
    if "{" in value:
        return None
    for place in (*([folder / value] if folder is not None else []), Path(value).expanduser()):
        if place.is_file():
            return place.resolve()
    known = sorted(file.name for file in folder.glob("*.jinja")) if folder is not None else []
    raise UsageError(f"there is no chat template {value!r}{nearest(value, known)}; shipped: {', '.join(known) or 'none'}")
