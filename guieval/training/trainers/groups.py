"""GRPOTrainer with dynamic sampling (DAPO; UI-S1 section 3.4), the base of offline and semi-online training.

TRL requests one generation batch at a time. Here it consists of *groups* (all rollouts of one task), which are drawn until
enough of them differ within themselves, up to a limit. Subclasses generate the groups.

With several processes, the rollouts of a group may be on different ranks. Every rank sees the statistics of all groups and the
rows of its own rollouts, so all ranks keep the same groups; they return equally many rows, and some may not count.
"""

from __future__ import annotations

import math
import random
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from trl import GRPOTrainer
from trl.trainer.utils import RepeatSampler

from guieval.rewards.dynamic_sampling import collect
from guieval.training.config import DynamicSampling
from guieval.training.guard import check_trainer
from guieval.training.trainers.rows import Row, filled, packed

check_trainer(GRPOTrainer)

INDEX = "index"
"""The only column of the data set: the number of a task in the training's data."""

ROW_WEIGHT = "row_weight"
"""Number of rows per row that counts, over all processes: the factor of a loss that is a mean over rows."""
MEAN_OVER_ROWS = frozenset({"grpo", "sapo", "dr_grpo", "luspo"})
"""TRL's losses that divide by the number of rows, including those that only fill the batch."""


@dataclass(frozen=True)
class Group:
    """All rollouts of one task in one draw: whether they differ enough, and the rows of this process's rollouts."""

    kept: bool
    rows: tuple[Row, ...]


class EpochSampler(RepeatSampler):  # type: ignore[misc]  # TRL has no types
    """TRL's order of the tasks, also after a resume: TRL's own sampler would restart with the first epoch's order.

    ``epoch`` returns the number of the epoch that begins.
    """

    def __init__(self, *arguments: Any, epoch: Callable[[], int], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._epoch = epoch

    def __iter__(self) -> Iterator[int]:
        if self.shuffle and self.seed is not None:
            self.generator.manual_seed(self.seed)
            for _ in range(self._epoch()):
                torch.randperm(self.num_samples, generator=self.generator)
        yield from super().__iter__()


class GroupTrainer(GRPOTrainer):  # type: ignore[misc]  # TRL has no types
    """Trains on groups of rollouts of the tasks in the data set's column ``index``.

    Further groups are drawn from ``tasks`` tasks. Rows with a prompt of more than ``max_prompt_length`` tokens only fill the
    batch. All other arguments are GRPOTrainer's.
    """

    def __init__(
        self,
        *arguments: Any,
        tasks: int,
        sampling: DynamicSampling | None,
        max_prompt_length: int | None = None,
        **named: Any,
    ) -> None:
        super().__init__(*arguments, **named)
        self._tasks = tasks
        self._sampling = sampling
        self._longest = math.inf if max_prompt_length is None else max_prompt_length
        self._generated = (-1, 0)  # optimiser step, and number of batches since

    def _get_train_sampler(self, dataset: Any = None) -> EpochSampler:
        sampler = super()._get_train_sampler(dataset)
        settings = ("data_source", "mini_repeat_count", "batch_size", "repeat_count", "shuffle", "seed")
        return EpochSampler(**{name: getattr(sampler, name) for name in settings}, epoch=self._epoch)

    def _epoch(self) -> int:
        """The epoch of the current optimiser step, from 0."""
        batches = len(self.callback_handler.train_dataloader)
        return int(self.state.global_step // max(1, math.ceil(batches / self.args.gradient_accumulation_steps)))

    @abstractmethod
    def _groups(self, indices: Sequence[int], first: int) -> list[Group]:
        """Generate and score one batch of this process: ``indices`` of tasks, one per rollout.

        ``first`` is the position of the first one among the rollouts of all processes; consecutive :meth:`_rollouts_each`
        rollouts are a group. Returns the groups of all processes in that order.
        """

    def _rollouts_each(self) -> int:
        return int(self.num_generations if self.model.training else self.num_generations_eval)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        mode = "train" if self.model.training else "eval"
        world, rank = self.accelerator.num_processes, self.accelerator.process_index
        wanted = max(1, len(inputs) * world // self._rollouts_each())
        batches = self._batches([row[INDEX] for row in inputs], wanted)
        waiting: deque[Group] = deque()
        seen: list[Group] = []

        def draw() -> Group | None:
            if not waiting:
                batch = next(batches, None)
                if batch is None:
                    return None
                waiting.extend(self._groups(batch, rank * len(batch)))
                seen.extend(waiting)
            return waiting.popleft()

        sampling = self._sampling if mode == "train" else None
        most = wanted if sampling is None else wanted * sampling.most_draws
        collected = collect(draw, lambda group: sampling is None or group.kept, groups=wanted, most_draws=most)
        if sampling is not None:
            self._metrics[mode]["dynamic_sampling/groups_drawn"].append(float(collected.drawn))
            self._metrics[mode]["dynamic_sampling/kept_share"].append(collected.kept_share or 0.0)
        return self._batch([row for group in collected.kept for row in group.rows], seen, mode)

    def _batches(self, indices: list[int], groups: int) -> Iterator[list[int]]:
        """TRL's batch, then the allowed number of further ones, the same on all processes."""
        yield indices
        most = 1 if self._sampling is None or not self.model.training else self._sampling.most_draws
        step, before = self.state.global_step, self._generated
        self._generated = (step, before[1] + 1 if before[0] == step else 0)
        dice = random.Random("/".join(map(str, (self.args.seed, *self._generated))))  # the same on all ranks, also if resumed
        for _ in range(most - 1):
            drawn = (
                dice.sample(range(self._tasks), groups) if groups <= self._tasks else dice.choices(range(self._tasks), k=groups)
            )
            everywhere = [index for index in drawn for _ in range(self._rollouts_each())]
            start = self.accelerator.process_index * len(indices)
            yield everywhere[start : start + len(indices)]

    def _batch(self, rows: list[Row], seen: Sequence[Group], mode: str) -> dict[str, Any]:
        chunks = self.args.steps_per_generation if mode == "train" else 1
        device = self.accelerator.device
        counts = self.accelerator.gather(torch.tensor([len(rows)], device=device))
        count = max(chunks, math.ceil(int(counts.max()) / chunks) * chunks)
        filler = next((row for row in rows), None) or next(row for group in seen for row in group.rows)
        rows = [row if len(row.prompt) <= self._longest else row.filler() for row in rows]
        trained = self.accelerator.gather(torch.tensor([sum(row.counts for row in rows)], device=device)).sum()
        self._metrics[mode]["rows/trained"].append(float(trained))
        batch = packed(filled(rows, count, filler), pad=self._tokenizer.pad_token_id, device=device)
        batch["num_items_in_batch"] = self.accelerator.gather(batch["completion_mask"].sum()).sum()
        if self.loss_type in MEAN_OVER_ROWS:
            batch[ROW_WEIGHT] = count * self.accelerator.num_processes / trained.clamp(min=1).float()
        return batch

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """TRL's loss over the rows that count."""
        loss = super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        return loss * inputs[ROW_WEIGHT] if ROW_WEIGHT in inputs else loss
