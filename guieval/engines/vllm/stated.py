"""What is known of a vLLM server that guieval started: from its log, its command, and the files of its checkpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from guieval.data.checkpoint import CheckpointFiles, pixel_limits
from guieval.data.files import read_text
from guieval.journal.setup import EngineFacts, text_digest

MOST_OF_A_LOG = 1024 * 1024
"""Bytes of a log that are read: a server describes itself while it starts."""
_CONFIG = re.compile(
    r"LLM engine \(v(?P<version>[^)\s]+)\) with config: "
    r".*?\bdtype=(?:torch\.)?(?P<dtype>\w+),.*?\bquantization=(?P<quantization>\w+)"
)
_ATTENTION = re.compile(r"Using (?P<name>\w+(?: \w+)*?) (?:attention )?backend(?: out of| on V1|\.)")


def facts_of_log(text: str) -> EngineFacts:
    """The facts in a server's log; those of the last start, if it has several."""
    found = list(_CONFIG.finditer(text))
    if not found:
        return EngineFacts()
    attention = _ATTENTION.search(text, found[-1].start())
    said = found[-1].groupdict()
    return EngineFacts(
        name="vLLM",
        version=said["version"],
        dtype=said["dtype"],
        quantization=said["quantization"].lower(),
        attention=attention["name"] if attention is not None else None,
    )


def facts_of_command(words: Sequence[str]) -> EngineFacts:
    """The facts in a server's command (:func:`guieval.engines.vllm.command.server_command`) and in its checkpoint's files."""
    given = {option.removeprefix("--"): value for option, value in pairwise(words) if option.startswith("--")}
    given |= dict(word.removeprefix("--").split("=", 1) for word in words if word.startswith("--") and "=" in word)
    weights = given.get("model") or words[words.index("serve") + 1]
    template = given.get("chat-template")
    try:
        text = None if template is None else template if "{" in template else read_text(Path(template))
        processor = json.loads(given.get("mm-processor-kwargs", "{}"))
    except (OSError, ValueError):
        text, processor = None, {}
    files = facts_of_checkpoint(weights, given.get("revision"), processor)
    dtype, quantization, attention = (given.get(option) for option in ("dtype", "quantization", "attention-backend"))
    return EngineFacts(
        name="vLLM",
        chat_template=files.chat_template if template is None else text and text_digest(text),
        min_pixels=files.min_pixels,
        max_pixels=files.max_pixels,
        dtype=None if dtype == "auto" else dtype,
        quantization=quantization,
        attention=attention,
    )


def facts_of_checkpoint(weights: str, revision: str | None, given: Mapping[str, Any]) -> EngineFacts:
    """Chat template and processor's limits in a checkpoint's files, if they are on this machine; ``given`` limits win."""
    files = CheckpointFiles.read(lambda name: _file_of(weights, revision, name))
    limits: Mapping[str, Any] = {**files.limits, **pixel_limits(given)}
    return EngineFacts(chat_template=None if files.template is None else text_digest(files.template), **limits)


def _file_of(weights: str, revision: str | None, name: str) -> Path | None:
    """A file of a checkpoint in its folder, or in the cache of the Hugging Face hub."""
    if Path(weights).is_dir():
        return Path(weights, name)
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    try:
        found = try_to_load_from_cache(weights, name, revision=revision)
    except ValueError:  # no name of a repository
        return None
    return Path(found) if isinstance(found, str) else None
