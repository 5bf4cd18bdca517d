"""Runs one training, new or resumed, with its evaluations and logs.

Its folder has ``training.yaml`` (the full configuration), ``checkpoints/`` (TRL's; a complete one is enough to resume from,
:mod:`guieval.training.checkpoints`), ``evaluations/`` and ``evaluations.jsonl``, ``log.jsonl`` (every line the trainer logged),
``hours.jsonl`` (what its steps took) and ``final/`` (weights and processor; of a LoRA training merged, next to ``adapter/``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml

from guieval.data.files import read_text
from guieval.data.yaml_text import read_yaml
from guieval.errors import UsageError
from guieval.journal import refuse_nested, write_atomically
from guieval.training.building import TrainerParts
from guieval.training.checkpoints import (
    completion_callback,
    discard_after,
    keep_until,
    last_checkpoint,
    mark,
)
from guieval.training.clock import clock_callbacks
from guieval.training.config import OnlineTraining, TrainingConfig
from guieval.training.evaluation import FILE as EVALUATIONS
from guieval.training.evaluation import Evaluator, evaluation_callback, lockstep_engine
from guieval.training.guard import require_extra
from guieval.training.meter import Meter
from guieval.training.planning import check_memory
from guieval.training.reward_watch import watch_callback
from guieval.training.sharding import sharding_callback
from guieval.training.trainings import FINAL, HOURS, checkpoints
from guieval.training.weights import load_weights, merge_adapter

SETTINGS = "training.yaml"
ADAPTER = "adapter"
"""Folder of a LoRA training's adapter alone."""
LOG = "log.jsonl"
_MAY_CHANGE = frozenset({"attention", "data", "out", "evaluation", "report_to", "stated", "trainer", "notes"})
"""Settings that may change when a training is resumed: locations, length and speed."""


def train(config: TrainingConfig, *, resume: bool = False, meter: Meter | None = None, longest: int | None = None) -> Path:
    """Train, and return the folder of the final weights.

    ``resume`` continues from the last complete checkpoint below ``config.out``. ``meter`` measures the phases, and ``longest``
    is how many tasks are trained on, those with the longest prompts (both for :mod:`guieval.training.preflight`). Raises
    :class:`UsageError` when the extra is missing, a setting is invalid, the folder already has a training, or, on resume, has
    none or another one.
    """
    require_extra()
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")  # read at the first allocation on a GPU
    out = Path(config.out)
    step, checkpoint = last_checkpoint(out) if resume else (0, None)
    _check_folder(config, out, resume=resume)
    check_memory(TrainerParts(config))
    parts = TrainerParts(config, longest=longest)
    trainer = parts.trainer()
    trainer.add_callback(sharding_callback(trainer))
    measured = () if meter is None else meter.callbacks(trainer, out, parts.picked)
    for callback in measured[:1]:
        trainer.add_callback(callback)
    stop_clock, start_clock = clock_callbacks(out / HOURS, trainer.accelerator.num_processes)
    trainer.add_callback(stop_clock)
    if config.evaluation is not None and not config.evaluation.sidecar:
        engine = lockstep_engine(trainer, parts.weights, config.seed)
        evaluator = Evaluator(config, config.evaluation, parts.model, engine)
        trainer.add_callback(evaluation_callback(evaluator, trainer, parts.weights))
    for callback in measured[1:]:
        trainer.add_callback(callback)
    if parts.watch is not None:
        trainer.add_callback(watch_callback(parts.watch, trainer, out / LOG))
    trainer.add_callback(_log_callback(out / LOG, {"thought_share": parts.thought_share}))
    trainer.add_callback(start_clock)
    trainer.add_callback(completion_callback(trainer))
    if trainer.accelerator.is_main_process:
        out.mkdir(parents=True, exist_ok=True)
        settings = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
        write_atomically(out / SETTINGS, settings)
        if checkpoint is not None:
            discard_after(out, step)
            for file in (out / LOG, out / EVALUATIONS):
                keep_until(file, step)
    trainer.accelerator.wait_for_everyone()  # others read the log too
    with ExitStack() as stack:
        if isinstance(config, OnlineTraining):
            stack.callback(parts.stage.close)
        if hasattr(getattr(parts.weights.model, "model", None), "visual"):
            from guieval.training.speed import fast_on_cpu, frozen_vision

            if trainer.args.use_cpu:
                stack.enter_context(fast_on_cpu(parts.weights.model))
            sharded = trainer.accelerator.distributed_type in ("FSDP", "DEEPSPEED")
            stack.enter_context(frozen_vision(parts.weights.model, once=not sharded))
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    trainer.save_model(str(out / (FINAL if config.lora is None else ADAPTER)))
    if trainer.accelerator.is_main_process:
        if config.lora is not None:
            merge_adapter(load_weights(config, parts.model).model, out / ADAPTER, out / FINAL)
        parts.weights.processor.save_pretrained(out / FINAL)
        mark(out / FINAL)
    return out / FINAL


def _check_folder(config: TrainingConfig, out: Path, *, resume: bool) -> None:
    file = out / SETTINGS
    if out.exists() and not out.is_dir():
        raise UsageError(f"out is {str(out)!r}, which is a file: expected a folder")
    if not resume:
        if not file.exists():
            refuse_nested(out)  # its evaluations are runs
            return
        if checkpoints(out):
            raise UsageError(f"{str(out)!r} already has a training: add --resume to continue it, or give another --out")
        raise UsageError(
            f"{str(out)!r} already has a training, without a complete checkpoint to resume from: give another --out, or "
            "remove it"
        )
    refuse_another(config, out)


def refuse_another(config: TrainingConfig, out: Path) -> None:
    """Raise :class:`UsageError` if the folder's training has other settings, of those that a resumed one must share."""
    try:
        before = read_yaml(read_text(out / SETTINGS))
    except (OSError, ValueError):
        before = None
    if not isinstance(before, dict):
        raise UsageError(f"{str(out)!r} cannot be resumed: its {SETTINGS} is not what a training wrote")
    before, now = _identity(before), _identity(config.model_dump(mode="json"))
    for name in now:
        if name in before and before[name] != now[name]:
            raise UsageError(
                f"{str(out)!r} cannot be resumed, because setting {name!r} differs: it was {before.get(name)!r}, "
                f"now {now[name]!r}"
            )


def _identity(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that a resumed training must share; an earlier version may not have known all of them."""
    kept = {name: value for name, value in settings.items() if name not in _MAY_CHANGE}
    if isinstance(rollout := kept.get("rollout"), dict) and isinstance(server := rollout.get("server"), dict):
        asked = {name: server.get(name) for name in ("model", "sampling")}  # one that ended may be started elsewhere
        kept["rollout"] = {**rollout, "server": asked}
    sources = kept.get("sources") or []
    return {**kept, "sources": [{**source, "data": None} for source in sources]}


def _log_callback(file: Path, first: Mapping[str, float | None]) -> Any:
    """Writes every logged line to ``file``, and the ``first`` metrics before them."""
    from transformers import TrainerCallback

    metrics = {name: value for name, value in first.items() if value is not None}

    class LogCallback(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            if not state.global_step:
                self.on_log(args, state, control, metrics)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any) -> None:
            if state.is_world_process_zero and logs:
                with file.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps({"step": state.global_step, **logs}, default=float) + "\n")

    return LogCallback()
