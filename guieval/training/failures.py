"""Failures of a training that are not its code's: memory, the disk, the rollout server, another process. One sentence each.

TRL, transformers, torch and the servers' clients raise them as exceptions of many types, some only as a ``RuntimeError`` with a
message of C++ code.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from guieval.errors import GuievalError, UsageError, one_line
from guieval.training.checkpoints import is_first
from guieval.training.trainings import checkpoints

_FULL = re.compile(
    r"no space left on device|os error 28|disk quota exceeded|StreamWriter|write failed|unexpected pos \d+|iostream error",
    re.I,
)
_MEMORY = re.compile(r"out of memory|can(no|')t allocate memory", re.I)
_PEER = re.compile(r"gloo|nccl|connection (closed|reset) by peer", re.I)
_CLIENT = re.compile(r"request failed: \d+|vllm server", re.I)
_OF_CLIENTS = ("requests.", "urllib3.", "httpx.")


class TrainingFailed(GuievalError):
    """A training could not be finished; its last complete checkpoint is as it was. Exit code 1."""


@contextmanager
def explained(out: Path) -> Iterator[None]:
    """Raise a failure of the surroundings as :class:`TrainingFailed`, with what the training in ``out`` can resume from.

    Other exceptions, and what ``guieval train`` refuses, are left as they are.
    """
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        sentence = explanation(error, out)
        if sentence is None:
            raise
        raise TrainingFailed(f"{sentence}; {_what_is_left(out)}" if is_first() else sentence) from error


def explanation(error: Exception, out: Path) -> str | None:
    """Why a training failed and how to repair it, in words; ``None`` for an error of its code."""
    text = one_line(str(error), 300)
    name, module = type(error).__name__, type(error).__module__
    of_machine = isinstance(error, RuntimeError | OSError)
    if isinstance(error, MemoryError) or name == "OutOfMemoryError" or (of_machine and _MEMORY.search(text)):
        return (
            f"too little memory ({text or name}): set a smaller trainer.per_device_train_batch_size or "
            "per_device_eval_batch_size, or train with lora or with weights sharded over GPUs"
        )
    if (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)) or _FULL.search(text):
        return f"the disk of {str(out)!r} is full or fails, {_free(out)} MB are free ({text}): make room"
    if module.startswith(_OF_CLIENTS) or (type(error) in (Exception, ConnectionError) and _CLIENT.search(text)):
        return f"the rollout server does not answer ({text}): start it again"
    if name == "EngineDeadError":
        return f"vLLM has ended ({text}); its own message is above"
    if _several() and (name.startswith("Dist") or (of_machine and _PEER.search(text))):
        return f"process {os.environ['RANK']} has lost another process of this training ({text})"
    return str(error) if isinstance(error, GuievalError) else None


def _free(out: Path) -> str:
    try:
        return f"{shutil.disk_usage(out).free // 10**6:,}"
    except OSError:
        return "0"


def _several() -> bool:
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def _what_is_left(out: Path) -> str:
    complete = checkpoints(out)
    if not complete:
        return f"no checkpoint was complete yet, so begin again after removing {str(out)!r}"
    return f"checkpoint-{max(complete)} is complete, and --resume continues from it"
