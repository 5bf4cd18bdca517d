"""TRL's own arguments: those in a training's file, with defaults for this machine and this data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from types import NoneType, SimpleNamespace
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from guieval.errors import UsageError, first_problem, nearest
from guieval.training.config import SFTTraining, TrainingConfig
from guieval.training.settings import BatchSettings
from guieval.training.trainings import CHECKPOINTS

TRUNCATED = {"vllm_importance_sampling_mode": "token_truncate", "vllm_importance_sampling_clip_max": 2.0}
"""Importance correction of vLLM's responses per token, truncated at 2. TRL's default leaves out whole responses above 3."""

DEFAULTS: dict[str, Any] = {
    "per_device_train_batch_size": 8,
    "per_device_eval_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "num_train_epochs": 3.0,
    "max_steps": -1,
    "save_steps": 500,
    "save_strategy": "steps",
    "save_total_limit": None,
    "bf16": None,
    "fp16": False,
    "gradient_checkpointing": True,
    "num_generations": 8,
    "num_iterations": 1,
    "steps_per_generation": None,
    "generation_batch_size": None,
    "max_completion_length": 512,
    "beta": 0.0,
    "use_vllm": False,
    "vllm_mode": "colocate",
    "vllm_gpu_memory_utilization": 0.3,
    "vllm_tensor_parallel_size": 1,
    "vllm_max_model_length": None,
    "vllm_enable_sleep_mode": False,
}
"""Defaults of TRL 1.16 that a plan needs, for a machine without TRL."""


def trainer_arguments(config: TrainingConfig, template: Mapping[str, Any]) -> Any:
    """TRL's ``SFTConfig`` or ``GRPOConfig``; ``template`` are the arguments of the chat template.

    Raises :class:`UsageError` for an unknown name (with the nearest one), a value of the wrong type, values that contradict
    each other, and a tracker that is not installed.
    """
    import torch

    kind = trainer_kind(config)
    values = trainer_values(config, template, on_gpu=torch.cuda.is_available(), processes=_processes())
    _check_trackers(config)
    if values.get("use_vllm") and find_spec("vllm") is None:  # TRL would say so after loading the weights
        raise UsageError(
            "setting 'trainer.use_vllm' is true, and vLLM is not installed: pip install 'guieval[train-vllm]', or add "
            "--set trainer.use_vllm=false"
        )
    try:
        arguments = kind(**values)
    except (ValueError, TypeError, ImportError) as error:
        raise UsageError(f"TRL refuses the settings in 'trainer': {' '.join(str(error).split())}") from error
    if config.batch is not None and arguments.world_size != _processes():
        raise UsageError(
            f"setting 'batch' needs the number of processes in WORLD_SIZE, which is {_processes()} while the launcher "
            f"started {arguments.world_size}: start the training with `accelerate launch`"
        )
    if arguments.deepspeed_plugin is not None:  # DeepSpeed would add up the gradients of many rows in bfloat16
        arguments.deepspeed_plugin.deepspeed_config.setdefault("data_types", {"grad_accum_dtype": "fp32"})
    return arguments


def trainer_kind(config: TrainingConfig) -> Any:
    """TRL's class of arguments for a training; without TRL, what a plan needs of it (:data:`DEFAULTS`)."""
    if find_spec("trl") is None:
        return SimpleNamespace(**DEFAULTS)
    from trl import GRPOConfig, SFTConfig

    return SFTConfig if isinstance(config, SFTTraining) else GRPOConfig


def trainer_values(config: TrainingConfig, template: Mapping[str, Any], *, on_gpu: bool, processes: int) -> dict[str, Any]:
    """The arguments that differ from TRL's defaults, by TRL's names: the file's, and ours for this machine and this data.

    Raises :class:`UsageError` for a batch that cannot be divided and, if TRL is installed, for an unknown name and a value of
    the wrong type.
    """
    kind, supervised = trainer_kind(config), isinstance(config, SFTTraining)
    given = config.trainer if isinstance(kind, SimpleNamespace) else _checked(kind, config.trainer)
    values: dict[str, Any] = {
        "use_cpu": not on_gpu,
        "bf16": on_gpu and config.dtype != "float16",
        "fp16": on_gpu and config.dtype == "float16",
        "gradient_checkpointing": on_gpu,
        "dataloader_pin_memory": on_gpu,
        "save_total_limit": 2,  # of a 7B with ZeRO-3 a checkpoint has 133 GB
        "logging_steps": 1,
        "disable_tqdm": True,
    }
    if supervised:
        values["max_length"] = None  # a cut prompt would lose image tokens
    else:
        values |= TRUNCATED
        if template:
            values["chat_template_kwargs"] = dict(template)
    if os.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true":  # else each process would add up whole gradients
        values["accelerator_config"] = {"gradient_accumulation_kwargs": {"sync_each_batch": True}}
    values |= given
    if config.batch is not None:
        each = values.get("per_device_train_batch_size", kind.per_device_train_batch_size)
        replies = 1 if supervised else values.get("num_generations", kind.num_generations)
        values |= batch_counts(config.batch, processes=processes, rows=each, replies=replies, kind=config.kind)
    return values | {
        "output_dir": str(Path(config.out) / CHECKPOINTS),
        "seed": config.seed,
        "report_to": list(config.report_to) or "none",
        "remove_unused_columns": False,  # rows are built when they are used, from a column that TRL does not know
    }


def batch_counts(batch: BatchSettings, *, processes: int, rows: int, replies: int, kind: str) -> dict[str, int]:
    """TRL's counts of a ``batch`` on ``processes`` processes, each of which computes ``rows`` responses at once.

    ``replies`` are drawn per task. Raises :class:`UsageError` if the batch cannot be divided so.
    """
    if kind == "sft" and batch.updates != 1:
        raise UsageError(f"setting 'batch.updates' is {batch.updates}: expected 1, since kind sft draws no responses to reuse")
    total = batch.tasks * replies
    parts = processes * rows * batch.updates
    if total % parts:
        fitting = [count for count in range(1, total + 1) if total % (count * rows * batch.updates) == 0]
        hint = f"use {_listed(fitting)} processes" if fitting else "use a smaller trainer.per_device_train_batch_size"
        raise UsageError(
            f"a batch of {batch.tasks} tasks x {replies} responses in {batch.updates} updates cannot be divided among "
            f"{processes} processes x {rows} rows (trainer.per_device_train_batch_size): {hint}"
        )
    accumulated = total // parts
    if kind == "sft":
        return {"gradient_accumulation_steps": accumulated}
    return {"gradient_accumulation_steps": accumulated, "steps_per_generation": accumulated * batch.updates}


def _listed(counts: list[int]) -> str:
    *others, last = map(str, counts)
    return f"{', '.join(others)} or {last}" if others else last


def _processes() -> int:
    """The processes of this training, as accelerate and torchrun announce them."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def _checked(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments in a training's file, with values of TRL's types."""
    known = {field.name for field in fields(kind) if field.init}
    for name in given:
        if name not in known:
            raise UsageError(f"setting 'trainer.{name}' is unknown to TRL's {kind.__name__}{nearest(name, known)}")
    return {name: _fitting(kind, name, value) for name, value in given.items()}


def _fitting(kind: Any, name: str, value: Any) -> Any:
    """Validate numbers and switches by TRL's type, since TRL itself would fail in the middle of a training; others as given."""
    hint = get_type_hints(kind)[name]
    choices = set(get_args(hint)) or {hint}
    expected = choices - {NoneType}
    if not expected <= {bool, int, float} or (value is None and NoneType in choices):
        return value
    try:
        return TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        raise UsageError(f"setting 'trainer.{name}' is {value!r}: {first_problem(error).message}") from None


def check_enough(arguments: Any, tasks: int) -> None:
    """Raise :class:`UsageError` for fewer ``tasks`` than a generation batch needs: TRL would end before its first step."""
    groups = arguments.generation_batch_size // arguments.num_generations
    if tasks < groups:
        found = "there is 1 task" if tasks == 1 else f"there are {tasks:,} tasks"
        raise UsageError(
            f"{found} to train on, and a generation batch needs {groups:,} (per_device_train_batch_size x "
            f"processes x steps_per_generation / num_generations, or batch.tasks): choose more episodes, or smaller batches"
        )


def _check_trackers(config: TrainingConfig) -> None:
    from transformers.integrations import get_available_reporting_integrations
    from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

    installed = get_available_reporting_integrations()
    for name in config.report_to:
        if name not in INTEGRATION_TO_CALLBACK:
            raise UsageError(
                f"setting 'report_to' names {name!r}{nearest(name, INTEGRATION_TO_CALLBACK)}, which transformers does not know"
            )
        if name not in installed:
            raise UsageError(f"setting 'report_to' names {name!r}, which is not installed: pip install {name}")
