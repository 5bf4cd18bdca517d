"""TRL's own arguments: those in a training's file, with defaults for this machine and this data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from guieval.errors import UsageError, first_problem, nearest
from guieval.training.config import SFTTraining, TrainingConfig

CHECKPOINTS = "checkpoints"
"""Folder of TRL's checkpoints in a training's folder."""


def trainer_arguments(config: TrainingConfig, template: Mapping[str, Any]) -> Any:
    """TRL's ``SFTConfig`` or ``GRPOConfig``; ``template`` are the arguments of the chat template.

    Raises :class:`UsageError` for an unknown name (with the nearest one), a value of the wrong type, values that contradict
    each other, and a tracker that is not installed.
    """
    import torch
    from trl import GRPOConfig, SFTConfig

    kind = SFTConfig if isinstance(config, SFTTraining) else GRPOConfig
    known = {field.name for field in fields(kind) if field.init}
    for name in config.trainer:
        if name not in known:
            raise UsageError(f"setting 'trainer.{name}' is unknown to TRL's {kind.__name__}{nearest(name, known)}")
    on_gpu = torch.cuda.is_available()
    values: dict[str, Any] = {
        "use_cpu": not on_gpu,
        "bf16": on_gpu and config.dtype != "float16",
        "fp16": on_gpu and config.dtype == "float16",
        "gradient_checkpointing": on_gpu,
        "dataloader_pin_memory": on_gpu,
        "logging_steps": 1,
        "disable_tqdm": True,
    }
    if kind is SFTConfig:
        values["max_length"] = None  # a cut prompt would lose image tokens
    elif template:
        values["chat_template_kwargs"] = dict(template)
    values |= {name: _fitting(kind, name, value) for name, value in config.trainer.items()}
    values |= {
        "output_dir": str(Path(config.out) / CHECKPOINTS),
        "seed": config.seed,
        "report_to": list(config.report_to) or "none",
        "remove_unused_columns": False,  # rows are built when they are used, from a column that TRL does not know
    }
    _check_trackers(config)
    try:
        return kind(**values)
    except (ValueError, TypeError, ImportError) as error:
        raise UsageError(f"TRL refuses the settings in 'trainer': {' '.join(str(error).split())}") from error


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
        raise UsageError(
            f"there are {tasks} tasks to train on, and a generation batch needs {groups} (per_device_train_batch_size x "
            f"processes x steps_per_generation / num_generations): choose more episodes, or smaller batches"
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
