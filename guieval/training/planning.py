"""The needs of a training, before anything is loaded: its batches and steps, and the memory of each process.

``guieval train plan`` prints it for any number of GPUs; on a machine with GPUs every training is checked against theirs
before it begins.
"""

from __future__ import annotations

import logging
import math
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from guieval.errors import UsageError
from guieval.training.arguments import trainer_kind, trainer_values
from guieval.training.building import TrainerParts
from guieval.training.config import OnlineTraining, SemiOnlineTraining, SFTTraining, TrainingConfig
from guieval.training.data.examples import Example
from guieval.training.launch import Launch, gpu_memory, launched_sharding
from guieval.training.lengths import edge_of, prompt_length, text_length
from guieval.training.memory import (
    BYTES,
    GIB,
    PHASES,
    MemoryPart,
    Method,
    ModelSize,
    Phase,
    Rows,
    checkpoint_bytes,
    counted,
    items,
    peak,
)
from guieval.training.model_size import model_size
from guieval.training.weights import checkpoint_of
from guieval.training.work import Work, of_a_row

_LOG = logging.getLogger(__name__)

MEASURED = 64
"""Prompts whose length is measured, evenly over the data."""
AT_ONCE = 16
"""Prompts that transformers answers together (guieval.training.trainers.answers)."""


@dataclass(frozen=True)
class BatchSizes:
    """Sizes over all processes: ``tasks`` (steps or episodes) with ``responses`` each are used for ``updates`` optimiser steps.

    ``epoch`` is the number of tasks of an epoch and ``steps`` its optimiser steps; ``total`` is the training's. ``None`` is
    unknown without the data.
    """

    tasks: int
    responses: int
    updates: float
    epoch: int | None
    steps: int | None
    total: int | None


@dataclass(frozen=True)
class VLLM:
    """A vLLM in the training's own processes: its share of the GPU, and the bytes that it needs at least."""

    share: float
    needed: float


@dataclass(frozen=True)
class Disk:
    """Bytes of a checkpoint, how many are on the disk at the same time, and the bytes of the final weights.

    One is written ``every`` so many optimiser steps; ``None``: none is.
    """

    checkpoint: float
    kept: int
    final: float
    every: int | None

    @property
    def total(self) -> float:
        return self.checkpoint * self.kept + self.final


@dataclass(frozen=True)
class Plan:
    """A training's batches, the memory of each process, and the disk of all; ``measured`` prompts are those of its data."""

    config: TrainingConfig
    launch: Launch
    size: ModelSize
    rows: Rows
    parts: list[MemoryPart]
    batch: BatchSizes
    vllm: VLLM | None
    disk: Disk
    work: Work | None
    prompt: float | None
    """Tokens of a prompt in the mean, if they are known."""
    measured: bool

    @property
    def peaks(self) -> dict[Phase, float]:
        """Bytes of each process in the phases that this training has."""
        phases = [each for each in PHASES if each == "training" or any(part.when == each for part in self.parts)]
        return {phase: peak(self.parts, phase) for phase in phases}

    def problem(self, *, certain: bool = False) -> str | None:
        """Why the training does not fit, in one sentence: by all parts, or (``certain``) by those that are counted."""
        gpu, launch = self.launch.gpu, self.launch
        if gpu is None:
            return None
        if self.vllm is not None and self.vllm.needed > self.vllm.share * gpu:
            return (
                f"setting 'trainer.vllm_gpu_memory_utilization' is {self.vllm.share}, which gives vLLM "
                f"{gibibytes(self.vllm.share * gpu)} GiB, and its weights and one sequence need {gibibytes(self.vllm.needed)}: "
                "raise it, or set trainer.vllm_tensor_parallel_size"
            )
        needed = counted(self.parts) if certain else max(self.peaks.values())
        if needed <= gpu:
            return None
        cures = ["more processes"] if launch.sharding != "ddp" else ["an accelerate configuration that shards (zero3, fsdp2)"]
        cures += [] if self.size.adapters else ["lora"]
        if any(part.name.startswith("vLLM") and part.when == "always" for part in self.parts):
            cures.append("trainer.vllm_enable_sleep_mode=true")
        cures += [] if self.vllm is None else ["trainer.vllm_mode=server"]
        if self.peaks.get("evaluation", 0.0) == max(self.peaks.values()):
            cures += ["evaluation.sidecar=true", "a smaller trainer.per_device_eval_batch_size"]
        return (
            f"model {self.config.model!r} with {launch.sharding} on {launch.processes} processes needs "
            f"{'at least' if certain else 'about'} {gibibytes(needed)} GiB in each, and a GPU has {gibibytes(gpu)}: use "
            + ", or ".join(cures)
        )


def gibibytes(number: float) -> str:
    """Bytes in GiB, with one decimal."""
    return f"{number / GIB:,.1f}"


def make_plan(parts: TrainerParts, launch: Launch) -> Plan:
    """The plan of a training, from its model's ``config.json`` and, if it is at hand, its data.

    Raises :class:`UsageError` for invalid settings, and if the length of a prompt is known neither from
    ``max_prompt_length`` nor from data.
    """
    config = parts.config
    size = model_size(config, checkpoint_of(config, parts.model))
    values = trainer_values(config, {}, on_gpu=True, processes=launch.processes)
    kind = trainer_kind(config)

    def given(name: str) -> Any:
        return values.get(name, getattr(kind, name))

    count, example = _examples(parts)
    sample = [example(number * count // MEASURED) for number in range(MEASURED)] if count else []
    edge, stated = edge_of(size), config.stated
    lengths = [prompt_length(parts.model.prepare_input(each.task, each.history), edge) for each in sample]
    rows = _rows(config, given, sample, lengths)
    method = _method(config, given, rows)
    memory = items(size, method, rows, sharding=launch.sharding, processes=launch.processes, gpu=launch.gpu)
    batch = _batch(config, given, launch.processes, _epoch(parts, count))
    vllm = _vllm(given, size, rows) if method.vllm else None
    disk = _disk(given, size, method, launch, batch.total)
    prompt = statistics.fmean(map(sum, lengths)) if lengths else None if stated is None else stated.mean or stated.prompt
    work = _work(parts, size, method, rows, batch, launch, prompt)
    return Plan(config, launch, size, rows, memory, batch, vllm, disk, work, prompt, bool(sample))


def total_steps(parts: TrainerParts, processes: int) -> int | None:
    """The optimiser steps of a training by ``processes``; ``None`` if only its data, which is not at hand, tells."""
    values, kind = trainer_values(parts.config, {}, on_gpu=True, processes=processes), trainer_kind(parts.config)
    count, _ = _examples(parts)
    return _batch(parts.config, lambda name: values.get(name, getattr(kind, name)), processes, _epoch(parts, count)).total


def _disk(given: Callable[[str], Any], size: ModelSize, method: Method, launch: Launch, total: int | None) -> Disk:
    """A new checkpoint is complete before the oldest is removed. Without a limit, and a known end, three are counted."""
    most, every = given("save_total_limit"), max(1, int(given("save_steps")))
    saves = str(given("save_strategy")) != "no"
    written = 0 if not saves else math.inf if total is None else math.ceil(total / every)
    kept = min(written, math.inf if most is None else most + 1)
    stored = 2 if launch.sharding == "zero3" and method.mixed else BYTES[method.dtype]
    final = float(stored * size.parameters)
    return Disk(
        checkpoint_bytes(size, method, launch.sharding), 3 if kept == math.inf else int(kept), final, every if saves else None
    )


def _work(
    parts: TrainerParts,
    size: ModelSize,
    method: Method,
    rows: Rows,
    batch: BatchSizes,
    launch: Launch,
    prompt: float | None,
) -> Work | None:
    """What the training computes; ``None`` if its steps are unknown, or the steps that an episode has."""
    config, stated = parts.config, parts.config.stated
    each = batch.tasks * batch.responses / batch.updates
    if isinstance(config, SemiOnlineTraining):
        if _examples(parts)[0]:
            each *= len(parts.data.steps) / len(parts.data.episodes)
        elif stated is not None and stated.steps is not None and stated.episodes is not None:
            each *= stated.steps / stated.episodes
        else:
            return None
    if batch.total is None or isinstance(config, OnlineTraining):
        return None
    tokens = float(rows.tokens if prompt is None else min(prompt + rows.completion, rows.tokens))
    answered = not isinstance(config, SFTTraining)
    return Work(each * of_a_row(size, method, rows, tokens, launch.sharding, answered=answered), batch.total, launch.processes)


def _vllm(given: Callable[[str], Any], size: ModelSize, rows: Rows) -> VLLM:
    parallel, longest = given("vllm_tensor_parallel_size"), given("vllm_max_model_length") or rows.tokens
    needed = 2 * (size.parameters + size.cached * longest) / parallel  # in bfloat16
    return VLLM(given("vllm_gpu_memory_utilization"), needed)


def _method(config: TrainingConfig, given: Callable[[str], Any], rows: Rows) -> Method:
    replies, evaluation = not isinstance(config, SFTTraining), config.evaluation
    vllm = replies and given("use_vllm")
    colocated = vllm and given("vllm_mode") == "colocate"
    inside = evaluation is not None and not evaluation.sidecar
    return Method(
        dtype=config.dtype,
        mixed=bool(given("bf16") or given("fp16")),
        checkpointing=bool(given("gradient_checkpointing")),
        reference=replies and given("beta") != 0,
        generated=max(AT_ONCE, rows.rows) if replies and not vllm else 0,
        evaluated=given("per_device_eval_batch_size") if inside and not vllm else 0,
        expandable="expandable_segments:False" not in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""),
        vllm=given("vllm_gpu_memory_utilization") if colocated else 0.0,
        sleeps=colocated and given("vllm_enable_sleep_mode"),
        evaluates=colocated and inside,
    )


def _batch(config: TrainingConfig, given: Callable[[str], Any], processes: int, epoch: int | None) -> BatchSizes:
    """TRL's counts: a batch of responses is used for several optimiser steps, and tasks that do not fill one are left out."""
    rows, accumulated = given("per_device_train_batch_size"), given("gradient_accumulation_steps")
    if isinstance(config, SFTTraining):
        tasks, replies, updates = rows * processes * accumulated, 1, 1
        steps = None if epoch is None else math.ceil(math.ceil(math.ceil(epoch / rows) / processes) / accumulated)
    else:
        replies = given("num_generations")
        chunks = given("steps_per_generation") or accumulated
        drawn = given("generation_batch_size") or rows * processes * chunks
        chunks = drawn // (rows * processes)
        tasks, each = drawn // replies, chunks * given("num_iterations")
        updates = each / accumulated
        steps = None if epoch is None else max(1, math.ceil(epoch // tasks * each / accumulated))
    total = given("max_steps")
    if total <= 0:
        total = None if steps is None else math.ceil(steps * given("num_train_epochs"))
    return BatchSizes(tasks, replies, updates, epoch, steps, total)


def _examples(parts: TrainerParts) -> tuple[int, Callable[[int], Example]]:
    """The steps that prompts are made of: how many, and each by its number; none if the data is not at hand."""
    sources = parts.config.all_sources
    if isinstance(parts.config, OnlineTraining):  # a prompt's screenshot is the environment's
        return 0, lambda number: parts.data.example(parts.data.steps[number])
    try:
        if isinstance(parts.config, SemiOnlineTraining):
            steps = parts.data.steps
            return len(steps), lambda number: parts.data.example(steps[number])
        return parts.examples()
    except UsageError:
        if all(source.data is not None for source in sources):
            raise
        return 0, lambda number: parts.data.example(parts.data.steps[number])


def _epoch(parts: TrainerParts, examples: int) -> int | None:
    """Tasks of an epoch: steps, or episodes in semi-online training; without data, by ``limit`` and the stated sizes."""
    config = parts.config
    if isinstance(config, OnlineTraining) or (isinstance(config, SemiOnlineTraining) and examples):
        return len(parts.drawn(parts.data.episodes, parts.data.episode_keys))
    if examples:
        return examples
    stated, limits = config.stated, [source.limit for source in config.all_sources]
    if config.curriculum is not None:
        return None
    if all(limit is not None for limit in limits):
        episodes: int | None = round(sum((source.limit or 0) * source.weight for source in config.all_sources))
    else:
        episodes = None if stated is None else stated.episodes
    if isinstance(config, SemiOnlineTraining):
        return episodes
    chosen = [source.weight * source.steps for source in config.sources if source.steps is not None]
    if chosen and len(chosen) == len(config.sources):
        return round(sum(chosen))
    if stated is None or stated.steps is None:
        return None
    share = 1.0 if episodes is None or stated.episodes is None else episodes / stated.episodes
    return round(stated.steps * share)


def _rows(
    config: TrainingConfig, given: Callable[[str], Any], examples: Sequence[Example], lengths: list[tuple[int, int]]
) -> Rows:
    """The longest rows: of ``max_prompt_length`` if it is set, else of the longest prompt among ``examples``."""
    bound, stated = getattr(config, "max_prompt_length", None), config.stated
    if not lengths and bound is None and stated is not None:
        lengths = [(stated.prompt - (stated.image or stated.prompt), stated.image or stated.prompt)]
    if bound is None and not lengths:
        measure = "" if isinstance(config, OnlineTraining) else "give --data, so that prompts can be measured, or "
        name = "stated.prompt" if isinstance(config, SFTTraining) else "max_prompt_length"
        raise UsageError(f"the length of a prompt is not known: {measure}--set {name}=N")
    image = max((pictures for _, pictures in lengths), default=bound or 0)
    prompt = max((words + pictures for words, pictures in lengths), default=0) if bound is None else bound
    if isinstance(config, SFTTraining):
        measured = max((text_length(each.completion or "") for each in examples), default=0)
        completion = measured or (0 if stated is None else stated.completion)
    else:
        completion = given("max_completion_length")
    return Rows(given("per_device_train_batch_size"), prompt + completion, min(image, prompt), completion)


def check_memory(parts: TrainerParts) -> None:
    """Compare a training that begins with the GPUs of this machine; without one, or if it cannot be planned, do nothing.

    Raises :class:`UsageError` if even what is counted does not fit, and warns if only the estimates do not.
    """
    gpu, sharding = gpu_memory(), launched_sharding()
    if gpu is None or sharding is None:
        return
    try:
        plan = make_plan(parts, Launch(int(os.environ.get("WORLD_SIZE", "1")), sharding, gpu))
    except UsageError as error:  # a model of another family, for example; real mistakes are reported later, by the training
        _LOG.debug("the memory of this training is not checked: %s", error)
        return
    if certain := plan.problem(certain=True):
        raise UsageError(certain)
    if likely := plan.problem():
        _LOG.warning("%s", likely)
