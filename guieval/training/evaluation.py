"""Evaluates the weights in training on held-out episodes with the runner that evaluates every other model.

Each evaluation is a run directory of its own (``OUT/evaluations/step-N``, which ``guieval score`` and ``guieval report`` read),
a line of ``OUT/evaluations.jsonl``, and metrics in the trainer's log. All processes generate, the first one records
(:mod:`guieval.training.lockstep`). It does not affect the training: random numbers, generation settings and modes are restored
afterwards.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial, singledispatch
from pathlib import Path
from typing import Any

from guieval.errors import FatalEngineError
from guieval.metrics import TaskSummary
from guieval.models import ABCModel
from guieval.running.config import parse
from guieval.running.engine_choice import Answering
from guieval.running.kinds import kind_of, kind_of_mode
from guieval.running.resolve import resolve
from guieval.running.resolved import GivenParts
from guieval.running.runner.runner import Runner
from guieval.settings import RunConfig
from guieval.training.checkpoints import keep_until
from guieval.training.config import TrainingConfig
from guieval.training.lockstep import LiveModel, LockstepEngine
from guieval.training.settings import Evaluation
from guieval.training.sharding import whole_root
from guieval.training.vllm_evaluation import AT_ONCE, RolloutVLLM, awake
from guieval.training.weights import Weights

FILE = "evaluations.jsonl"


class Evaluator:
    """Runs the held-out episodes of a training. Created before the training begins, so that a wrong setting fails early."""

    def __init__(self, config: TrainingConfig, evaluation: Evaluation, model: ABCModel, engine: LockstepEngine) -> None:
        self.every = evaluation.every
        self.at_start = evaluation.at_start
        self._out = Path(config.out)
        self._engine = engine
        given = run_config(config, evaluation, engine.capacity, engine.name)
        data = evaluation.data or (config.data if evaluation.bench in (None, config.bench) else None)
        placed = given.model_copy(update={"data": given.data.model_copy(update={"folder": data})})
        benchmark, _ = kind_of(given).open(placed, model.config.scaffold)
        # a round waits for every task in flight, so each must have its device
        at_once = min(engine.capacity, benchmark.most_at_once or engine.capacity)
        parts = GivenParts(benchmark, model, Answering(engine, at_once))
        self._run = resolve(run_config(config, evaluation, at_once, engine.name), parts=parts)  # an unknown split is found now

    def evaluate(self, step: int, weights: Any, processor: Any) -> dict[str, float] | None:
        """Run the episodes with ``weights`` (a transformers model), append the metrics to the file and return them.

        All processes call it; those after the first return ``None``. ``weights`` is in training mode before and after. Raises
        ``KeyboardInterrupt`` when the user stops the run, and what made the weights fail, e.g. too little memory.
        """
        with _as_evaluated(weights):
            self._engine.adopt(weights, processor)
            if self._engine.rank:
                self._engine.follow()
                return None
            directory = self._out / "evaluations" / f"step-{step}"
            shutil.rmtree(directory, ignore_errors=True)  # of an earlier session that saved no checkpoint after it
            try:
                outcome = Runner(self._run, directory, on_progress=self._engine.watch).execute(resume=False)
            except FatalEngineError:
                if self._engine.failure is not None:
                    raise self._engine.failure from None
                raise
            finally:
                self._engine.dismiss()
        if outcome.interrupted:
            raise KeyboardInterrupt
        row = metrics_of(outcome.summary())
        keep_until(self._out / FILE, step - 1)  # a resumed training repeats later evaluations
        with (self._out / FILE).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"step": step, **row}) + "\n")
        return row


@singledispatch
def metrics_of(summary: Any) -> dict[str, float]:
    """The logged metrics of an evaluation's summary: shares in [0, 1], and the numbers of steps and episodes.

    ``pg``, ``tsr`` and ``sop_score`` are UI-S1's (appendix C), in modes that stop at the first mismatch.
    """
    values: dict[str, float | None] = {
        "type_match": summary.type_match.value,
        "exact_match": summary.exact_match.value,
        "steps": float(summary.exact_match.n),
        "episodes": float(summary.episodes),
        "unmeasured": float(summary.incomplete),
    }
    found = summary.all_metrics
    if summary.stop == "first-mismatch":
        values |= {"pg": found["PG"].value, "tsr": found["TSR"].value, "sop_score": found["score"].value}
    return {name: value for name, value in values.items() if value is not None}


@metrics_of.register
def _(found: TaskSummary) -> dict[str, float]:
    """The logged metrics of an online evaluation: shares in [0, 1], mean steps, and the number of tasks."""
    values = {
        "success": found.success.value,
        "progress": found.metrics["progress"].value,
        "steps": found.metrics["mean steps"].value,
        "episodes": float(found.tasks),
        "unmeasured": float(found.failed + found.not_run),
    }
    return {name: value for name, value in values.items() if value is not None}


def evaluation_callback(evaluator: Evaluator, trainer: Any, weights: Weights) -> Any:
    """A callback for transformers' trainers that evaluates the weights and logs the metrics as ``eval/NAME``."""
    from transformers import TrainerCallback

    class EvaluationCallback(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            if evaluator.at_start and not state.global_step:
                self._evaluate(state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            if state.global_step % evaluator.every == 0:
                logs = control.should_log
                self._evaluate(state.global_step)
                control.should_log = logs  # the evaluation's own line counts as the step's

        def _evaluate(self, step: int) -> None:
            with _able_to_answer(trainer) as model:
                result = evaluator.evaluate(step, model, weights.processor)
            if result is not None:
                trainer.model.eval()  # a model in training mode would add the means of the current step to this line
                trainer.log({f"eval/{name}": value for name, value in result.items()})
                trainer.model.train()

    return EvaluationCallback()


@contextmanager
def _able_to_answer(trainer: Any) -> Iterator[Any]:
    """The model in training, whole on each process; if the training has a vLLM, as it is, with the vLLM awake."""
    from trl.models.utils import unwrap_model_for_generation

    wrapped, settings = trainer.model_wrapped, trainer.args
    if uses_vllm(trainer):
        with awake(trainer):
            yield trainer.accelerator.unwrap_model(wrapped)
        return
    with (
        unwrap_model_for_generation(
            wrapped,
            trainer.accelerator,
            gather_deepspeed3_params=getattr(settings, "ds3_gather_for_generation", True),
            gradient_checkpointing_kwargs=settings.gradient_checkpointing_kwargs,  # to switch it on again afterwards
        ) as model,
        whole_root(wrapped),
    ):
        yield model


def uses_vllm(trainer: Any) -> bool:
    """Whether a training draws its rollouts by vLLM, which then answers its evaluations too."""
    return bool(getattr(trainer, "use_vllm", False))


def lockstep_engine(trainer: Any, weights: Weights, seed: int) -> LockstepEngine:
    """The engine of the evaluations in a training: its vLLM, else the weights themselves.

    Of these, ``per_device_eval_batch_size`` bounds the batch of a process.
    """
    accelerator, settings = trainer.accelerator, trainer.args
    by_vllm = uses_vllm(trainer)
    return LockstepEngine(
        weights.checkpoint,
        live=partial(RolloutVLLM, trainer=trainer) if by_vllm else LiveModel,
        name="vllm" if by_vllm else "transformers",
        processes=accelerator.num_processes,
        rank=accelerator.process_index,
        batch=AT_ONCE if by_vllm else settings.per_device_eval_batch_size,
        timeout=float(settings.ddp_timeout),
        seed=seed,
        sharded=accelerator.distributed_type in ("FSDP", "DEEPSPEED"),
    )


@contextmanager
def _as_evaluated(weights: Any) -> Iterator[None]:
    """The model in evaluation mode; mode, cache and generation settings are restored afterwards."""
    import torch

    training, settings = weights.training, weights.generation_config
    cached = weights.config.get_text_config().use_cache
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        weights.eval()
        weights.config.get_text_config().use_cache = True
        try:
            yield
        finally:
            weights.generation_config = settings
            weights.config.get_text_config().use_cache = cached
            weights.train(training)


def _options(config: TrainingConfig, evaluation: Evaluation) -> dict[str, Any]:
    """The evaluation's loader options, over the training's if the benchmark is the same."""
    shared = {} if evaluation.bench not in (None, config.bench) else config.bench_options
    return {**shared, **(evaluation.bench_options or {})}


def run_config(config: TrainingConfig, evaluation: Evaluation, at_once: int, engine: str = "transformers") -> RunConfig:
    """The evaluation as a run, without the weights; ``at_once`` is the number of environments of an online one."""
    mode = evaluation.mode or config.evaluated_in
    values = {
        **evaluation.model_dump(exclude={"every", "at_start", "data", "sidecar"}),
        "mode": mode,
        "model": config.model,
        "adapter": config.adapter,
        "bench": evaluation.bench or config.bench,
        "scaffold": config.scaffold,
        "thinking": config.thinking,
        "options": config.model_options,
        "engine": engine,
        "skip_damaged": config.skip_damaged,
        "bench_options": _options(config, evaluation),
    }
    own = kind_of_mode(mode).settings
    values |= {name: getattr(config, name) for name in own if name in type(config).model_fields}
    return parse({name: value for name, value in values.items() if value is not None} | {"environments": at_once})
