"""GRPOTrainer with dynamic sampling (DAPO; UI-S1 section 3.4), the base of offline and semi-online training.

TRL requests one generation batch at a time. Here it consists of *groups* (all rollouts of one task). Dropped groups
are replaced one by one, up to a limit. Subclasses generate the groups. The rows of all processes are then shuffled and
dealt out evenly, so it does not matter where a group was dropped or a rollout was long.

TRL splits a generation batch into ``steps_per_generation`` chunks, one per forward and backward pass. Here a chunk of more than
``per_device_train_batch_size`` rows takes several passes, and only the rows of one pass are on the accelerator.
"""

from __future__ import annotations

import math
import random
import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import DistributedType, gather_object
from trl import GRPOTrainer

from guieval.errors import UsageError
from guieval.steps import StepKey
from guieval.training.data.examples import PromptBuilder, SizedPicture
from guieval.training.settings import DynamicSampling
from guieval.training.trainers.answers import Answers
from guieval.training.trainers.behaviour import check_behaviour
from guieval.training.trainers.dealing import dealt, divided, micro_batches, rows_each
from guieval.training.trainers.likelihoods import Likelihoods
from guieval.training.trainers.pictures import BatchPictures
from guieval.training.trainers.rows import CompletedPrompt, packed
from guieval.training.trainers.sampler import EpochSampler

INDEX = "index"
"""The only column of the data set: the number of a task in the training's data."""

ROW_WEIGHT = "row_weight"
"""The factor of a loss that is a mean over rows: it makes all rows that count weigh the same."""
MEAN_OVER_ROWS = frozenset({"grpo", "sapo", "dr_grpo", "luspo"})
"""TRL's losses that divide by the number of rows, including those that only fill the batch."""
CHECKPOINT = "checkpoint"


@dataclass(frozen=True)
class TaskGroup:
    """All rollouts of one task in one draw: whether they differ enough, and the rows of this process's rollouts."""

    kept: bool
    rows: tuple[CompletedPrompt, ...]


@dataclass(frozen=True)
class Batch:
    """The rows of this process in one generation batch, by chunk, and what all processes train on together."""

    chunks: list[list[CompletedPrompt]]
    trained: int
    tokens: int


KEPT = [Batch, CompletedPrompt, SizedPicture, type(Path())]
"""What a checkpoint's rows are made of besides tensors; nothing else is loaded, so a checkpoint of others runs no code."""


class GroupTrainer(GRPOTrainer):
    """Trains on groups of rollouts of the tasks in the data set's column ``index``.

    Further groups are drawn from ``tasks`` tasks. Rows with a prompt of more than ``max_prompt_length`` tokens are not trained
    on. All other arguments are GRPOTrainer's.
    """

    current_gradient_accumulation_steps: int

    def __init__(
        self,
        *arguments: Any,
        tasks: int,
        prompts: PromptBuilder,
        sampling: DynamicSampling | None,
        max_prompt_length: int | None = None,
        **named: Any,
    ) -> None:
        super().__init__(*arguments, reward_funcs=[_rewarded_here], **named)
        check_behaviour(self)
        self._tasks = tasks
        self._prompts = prompts
        self._sampling = sampling
        self._step_time = 0.0
        self._sums: dict[str, tuple[float, int]] = {}
        self._longest = math.inf if max_prompt_length is None else max_prompt_length
        self._generated = (-1, 0)  # optimiser step, and number of batches since
        self._buffer: Batch | None = None
        self._resumed: Path | None = None
        self._pictures = BatchPictures(self.processing_class, prompts.image)
        self._answers = Answers(self, prompts, self._pictures)
        self._likelihoods = Likelihoods(self, self._pictures)

    @abstractmethod
    def _groups(self, indices: Sequence[int], first: int) -> list[TaskGroup]:
        """Generate and score rollouts of this process: ``indices`` of tasks, one per rollout, maybe none.

        ``first`` is the position of the first one among the rollouts of all processes; consecutive ``num_generations``
        rollouts are a group. Returns the groups of all processes in that order.
        """

    def _any(self, count: int) -> bool:
        """Whether any process has work left; all must generate equally often."""
        return bool(self.accelerator.gather(torch.tensor([count], device=self.accelerator.device)).sum() > 0)

    # The order of the tasks, and going on after an interruption

    def _get_train_sampler(self, dataset: Any = None) -> EpochSampler:
        sampler = super()._get_train_sampler(dataset)
        settings = ("data_source", "mini_repeat_count", "batch_size", "repeat_count", "shuffle", "seed")
        return EpochSampler(**{name: getattr(sampler, name) for name in settings}, epoch=self._epoch)

    def _epoch(self) -> int:
        """The epoch of the current optimiser step, from 0."""
        batches = len(self.callback_handler.train_dataloader)
        return int(self.state.global_step // max(1, math.ceil(batches / self.args.gradient_accumulation_steps)))

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """TRL's checkpoint, and this process's rows of a generation batch that is not used up."""
        super()._save_checkpoint(model, trial)
        folder = Path(self._get_output_dir(trial=trial)) / f"{CHECKPOINT}-{self.state.global_step}"
        if self._step % self._every and folder.is_dir():
            torch.save(self._buffer, folder / self._rows_file)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        self._resumed = None if checkpoint is None else Path(checkpoint)

    def _go_on(self, folder: Path) -> None:
        """Continue within the generation batch of a checkpoint, if every process has its rows of it."""
        file = folder / self._rows_file
        found = file.is_file()
        if bool(self.accelerator.gather(torch.tensor([int(found)], device=self.accelerator.device)).all()):
            self._step = self.state.global_step * self.args.gradient_accumulation_steps
            with torch.serialization.safe_globals(KEPT):
                self._buffer = torch.load(file, weights_only=True)

    @property
    def _rows_file(self) -> str:
        return f"rows_{self.accelerator.process_index}_of_{self.accelerator.num_processes}.pt"

    @property
    def _every(self) -> int:
        """Chunks that are trained on before the next batch is generated."""
        return int(self.args.steps_per_generation * self.num_iterations)

    # One chunk: generated when it is due, and computed in micro-batches

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
        """The forward and backward passes of one chunk of rows; returns its loss."""
        began = time.perf_counter()
        model.train()
        if self._resumed is not None:
            self._go_on(self._resumed)
            self._resumed = None
        if self._buffer is None or self._step % self._every == 0:
            self._buffer = self._generate_batch(inputs)
        loss = self._passes(model, self._buffer, self._buffer.chunks[self._step % self.args.steps_per_generation])
        self._step += 1
        self._step_time += time.perf_counter() - began
        if self._step % self.args.gradient_accumulation_steps == 0:
            self._metrics["train"]["step_time"].append(self._step_time)
            self._step_time = 0.0
        return loss

    def _passes(self, model: Any, batch: Batch, rows: Sequence[CompletedPrompt]) -> Any:
        """TRL's loss of a chunk in micro-batches: each has the chunk's normaliser, so the gradients add up to the chunk's."""
        parts = micro_batches(len(rows), self.args.per_device_train_batch_size)
        accumulated: int = self.current_gradient_accumulation_steps
        synchronised = self.accelerator.sync_gradients
        self.current_gradient_accumulation_steps = accumulated * len(parts)
        loss: Any = 0.0
        try:
            for part in parts:
                last = part is parts[-1]
                self.accelerator.gradient_state._set_sync_gradients(synchronised and last)
                with nullcontext() if last else self._without_synchronisation(model):
                    inputs = self._packed(batch, rows[part.start : part.stop], len(parts))
                    loss += super(GRPOTrainer, self).training_step(model, inputs, None)
        finally:
            self.current_gradient_accumulation_steps = accumulated
            self.accelerator.gradient_state._set_sync_gradients(synchronised)
        return loss

    def _without_synchronisation(self, model: Any) -> AbstractContextManager[Any]:
        """Gradients of other processes are added with the last micro-batch, unless that would keep whole gradients."""
        each = self.accelerator.gradient_state.plugin_kwargs.get("sync_each_batch", False)
        if each or self.accelerator.distributed_type == DistributedType.DEEPSPEED:
            return nullcontext()
        context: AbstractContextManager[Any] = self.accelerator.no_sync(model)
        return context

    def _prepare_inputs(self, inputs: Any) -> Any:
        return super(GRPOTrainer, self)._prepare_inputs(inputs)

    def _packed(self, batch: Batch, rows: Sequence[CompletedPrompt], parts: int) -> dict[str, Any]:
        inputs = packed(rows, pad=self._tokenizer.pad_token_id, pictures=self._pictures)
        inputs["num_items_in_batch"] = torch.tensor(batch.tokens / parts)
        if self.loss_type in MEAN_OVER_ROWS:
            share = len(rows) * parts * self.args.steps_per_generation * self.accelerator.num_processes
            inputs[ROW_WEIGHT] = share / max(1, batch.trained)
        return inputs

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """TRL's loss over the rows that count."""
        loss = super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        return loss * inputs[ROW_WEIGHT] if ROW_WEIGHT in inputs else loss

    # One generation batch: groups that differ, then the same number of rows for every process

    def _generate_batch(self, inputs: Sequence[dict[str, Any]]) -> Batch:
        dice = self._dice()
        rows = [row for group in self._drawn([row[INDEX] for row in inputs], dice) for row in group.rows]
        rows = [row for row in rows if row.counts and len(row.prompt) <= self._longest]
        everywhere: list[CompletedPrompt] = gather_object(rows)
        self._log_tallies()
        dice.shuffle(everywhere)
        world, chunks = self.accelerator.num_processes, self.args.steps_per_generation
        hand = dealt([len(row) for row in everywhere], world, chunks)[self.accelerator.process_index]
        each = rows_each(len(everywhere), world, chunks)
        filler = self._answers.filler()
        mine = [
            [*(everywhere[number] for number in numbers), *[filler] * (len(part) - len(numbers))]
            for numbers, part in zip(hand, divided(each, chunks), strict=True)
        ]
        self._metrics["train"]["rows/trained"].append(float(len(everywhere)))
        self._metrics["train"]["rows/useful_share"].append(len(everywhere) / (each * world))
        tokens = sum(len(row.completion) for row in everywhere)
        return Batch([self._likelihoods.added(chunk) for chunk in mine], len(everywhere), tokens)

    def _tally(self, metrics: Mapping[str, Sequence[float]]) -> None:
        """Add this process's values of a draw to the means that are logged for the generation batch."""
        for name, values in metrics.items():
            total, count = self._sums.get(name, (0.0, 0))
            self._sums[name] = total + sum(values), count + len(values)

    def _log_replies(self, replies: Sequence[tuple[StepKey, str]], rewards: Sequence[float], worth: Iterable[float]) -> None:
        """Add the steps of all processes to TRL's table of completions; ``rewards`` and their advantages are of all."""
        self._logs["prompt"].extend(gather_object([[{"role": "user", "content": str(key)}] for key, _ in replies]))
        self._logs["completion"].extend(gather_object([[{"role": "assistant", "content": text}] for _, text in replies]))
        self._logs["rewards"]["reward"].extend(rewards)
        self._logs["advantages"].extend(worth)

    def _log_tallies(self) -> None:
        everywhere: list[dict[str, tuple[float, int]]] = gather_object([self._sums])
        self._sums = {}
        for name in {name: None for each in everywhere for name in each}:
            totals, counts = zip(*(each[name] for each in everywhere if name in each), strict=True)
            if sum(counts):
                self._metrics["train"][name].append(sum(totals) / sum(counts))

    def _dice(self) -> random.Random:
        """The same on all processes, another one for each generation batch, and the same after a resume."""
        step, before = self.state.global_step, self._generated
        self._generated = (step, before[1] + 1 if before[0] == step else 0)
        return random.Random("/".join(map(str, (self.args.seed, *self._generated))))

    def _drawn(self, indices: Sequence[int], dice: random.Random) -> list[TaskGroup]:
        """The groups of TRL's batch that are kept, and as many others as are missing, if there are enough within the limit."""
        world, rank, size = self.accelerator.num_processes, self.accelerator.process_index, self.num_generations
        everywhere: list[int] = gather_object(list(indices))
        wanted = len(everywhere) // size
        most = wanted if self._sampling is None else wanted * self._sampling.most_draws
        seen = set(everywhere)
        first, drawn = rank * len(indices), 0
        kept: list[TaskGroup] = []
        while True:
            groups = self._groups(indices, first)
            drawn += len(groups)
            kept += [group for group in groups if self._sampling is None or group.kept]
            missing = min(wanted - len(kept), most - drawn)
            if missing < 1:
                break
            others = [task for task in range(self._tasks) if task not in seen] or list(range(self._tasks))
            tasks = dice.sample(others, missing) if missing <= len(others) else dice.choices(others, k=missing)
            seen.update(tasks)
            mine = divided(missing * size, world)[rank]
            indices, first = [tasks[place // size] for place in mine], mine.start
        if self._sampling is not None:
            self._metrics["train"]["dynamic_sampling/groups_drawn"].append(float(drawn))
            self._metrics["train"]["dynamic_sampling/kept_share"].append(len(kept) / drawn)
        return kept


def _rewarded_here(**columns: Any) -> list[float | None]:
    """A reward function for TRL, which requires one; the trainers reward responses and rollouts themselves."""
    raise UsageError("responses are rewarded by the trainer itself")
