"""How a training's processes are started: by options, an accelerate configuration, or accelerate's environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guieval.data.user_files import read_values
from guieval.errors import UsageError
from guieval.training.memory import Sharding

PLANNED = "expected DDP, DeepSpeed's ZeRO-3 or FSDP2, without offloading"


@dataclass(frozen=True)
class Launch:
    """How many processes are started, how they share the model, and the bytes of each one's GPU, if known."""

    processes: int
    sharding: Sharding
    gpu: float | None = None


def read_launch(file: Path | None = None, processes: int | None = None, gpu: float | None = None) -> Launch:
    """How a training would be started by ``accelerate launch --config_file FILE``, or is started now.

    ``processes`` and ``gpu`` (bytes) precede what the file and this machine say. Raises :class:`UsageError` for a file that
    is not accelerate's, or shares the model in another way than DDP, ZeRO-3 or FSDP2.
    """
    if file is None:
        sharding = launched_sharding()
        if sharding is None:
            raise UsageError(f"accelerate has started this training in a way that cannot be planned for: {PLANNED}")
        return Launch(processes or int(os.environ.get("WORLD_SIZE", "1")), sharding, gpu or gpu_memory())
    values = read_values(file, "the accelerate configuration")
    if not isinstance(values, Mapping) or "distributed_type" not in values:
        raise UsageError(f"{str(file)!r} is not a configuration of accelerate: it has no distributed_type")
    sharding = _sharding(values)
    if sharding is None:
        raise UsageError(f"{str(file)!r} shares the model in a way that cannot be planned for: {PLANNED}")
    return Launch(processes or int(values.get("num_processes") or 1), sharding, gpu or gpu_memory())


def _sharding(values: Mapping[str, Any]) -> Sharding | None:
    deepspeed, fsdp = values.get("deepspeed_config") or {}, values.get("fsdp_config") or {}
    match str(values["distributed_type"]):
        case "NO" | "MULTI_GPU":
            return "ddp"
        case "DEEPSPEED":
            devices = {deepspeed.get(f"offload_{part}_device", "none") for part in ("optimizer", "param")}
            return "zero3" if deepspeed.get("zero_stage") == 3 and devices == {"none"} else None
        case "FSDP":
            return "fsdp2" if fsdp.get("fsdp_version") == 2 and not fsdp.get("fsdp_offload_params") else None
    return None


def launched_sharding() -> Sharding | None:
    """How this process shares the model with others, by accelerate's environment; ``None`` if that cannot be planned for."""

    def on(name: str) -> bool:
        return os.environ.get(name, "").lower() == "true"

    if on("ACCELERATE_USE_DEEPSPEED"):
        names = ("ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE", "ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE")
        stays = all(os.environ.get(name, "none") == "none" for name in names)
        return "zero3" if os.environ.get("ACCELERATE_DEEPSPEED_ZERO_STAGE") == "3" and stays else None
    if on("ACCELERATE_USE_FSDP"):
        return "fsdp2" if os.environ.get("FSDP_VERSION") == "2" and not on("FSDP_OFFLOAD_PARAMS") else None
    return "ddp"


def gpu_memory() -> float | None:
    """Bytes of this machine's first GPU, if it has one."""
    import torch

    return float(torch.cuda.get_device_properties(0).total_memory) if torch.cuda.is_available() else None
