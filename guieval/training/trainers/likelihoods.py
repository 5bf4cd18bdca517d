"""Log-probabilities of a generation batch that the loss needs besides the current ones: old, reference, and the sampler's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from trl.models.utils import disable_gradient_checkpointing
from trl.trainer.utils import use_adapter

from guieval.training.trainers.answers import SAMPLED
from guieval.training.trainers.correction import divergence, importance_ratio, log_difference
from guieval.training.trainers.dealing import micro_batches
from guieval.training.trainers.pictures import BatchPictures
from guieval.training.trainers.rows import TYPES, CompletedPrompt, packed

OLD, REFERENCE, RATIO = "old_per_token_logps", "ref_per_token_logps", "importance_sampling_ratio"


class Likelihoods:
    """Adds log-probabilities to rows, computed in micro-batches; all processes must call it with equally many rows."""

    def __init__(self, trainer: Any, pictures: BatchPictures) -> None:
        self._trainer = trainer
        self._pictures = pictures

    def added(self, rows: Sequence[CompletedPrompt]) -> list[CompletedPrompt]:
        """The rows with the log-probabilities that the loss needs; metrics about the sampler are added to TRL's log."""
        trainer = self._trainer
        # TRL's condition: old log-probabilities are needed for rows that are used after the weights have changed
        changed = trainer.args.gradient_accumulation_steps % (trainer.args.steps_per_generation * trainer.num_iterations) != 0
        corrected = trainer.use_vllm and trainer.vllm_importance_sampling_correction
        if not (changed or corrected or trainer.beta):
            return list(rows)
        made: list[CompletedPrompt] = []
        with torch.no_grad(), disable_gradient_checkpointing(trainer.model, trainer.args.gradient_checkpointing_kwargs):
            for part in micro_batches(len(rows), trainer.args.per_device_train_batch_size):
                few = rows[part.start : part.stop]
                batch = trainer._prepare_inputs(packed(few, pad=trainer._tokenizer.pad_token_id, pictures=self._pictures))
                tokens = {}
                if changed or corrected:
                    tokens[OLD] = self._of(trainer.model, batch)
                if corrected:
                    tokens[RATIO] = self._ratio(tokens[OLD], batch)
                if trainer.beta:
                    tokens[REFERENCE] = self._of_reference(batch)
                made += [replace(row, tokens={**row.tokens, **_of_row(tokens, place, row)}) for place, row in enumerate(few)]
        return made

    def _of(self, model: Any, batch: Mapping[str, Any]) -> Tensor:
        """(rows, longest completion) log-probabilities of the completions' tokens."""
        images = {name: batch[name] for name in ("pixel_values", "image_grid_thw", "num_images", *TYPES) if name in batch}
        logps: Tensor = self._trainer._get_per_token_logps_and_entropies(
            model,
            torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1),
            torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1),
            batch["completion_ids"].size(1),
            **images,
        )[0]
        return logps

    def _of_reference(self, batch: Mapping[str, Any]) -> Tensor:
        trainer = self._trainer
        if trainer.ref_model is not None:
            return self._of(trainer.ref_model, batch)
        model = trainer.accelerator.unwrap_model(trainer.model)
        with use_adapter(model, adapter_name="ref" if "ref" in model.peft_config else None):
            return self._of(trainer.model, batch)

    def _ratio(self, old: Tensor, batch: Mapping[str, Any]) -> Tensor:
        trainer, mask = self._trainer, batch["completion_mask"]
        sampled = batch.get(SAMPLED, old)
        ratio = importance_ratio(
            old,
            sampled,
            mask,
            mode=trainer.vllm_importance_sampling_mode,
            least=trainer.vllm_importance_sampling_clip_min,
            most=trainer.vllm_importance_sampling_clip_max,
        )
        difference = log_difference(old, sampled, mask)
        counted = mask.bool() if ratio.shape == mask.shape else mask.any(1, keepdim=True)
        sums = [divergence(difference, mask), (difference.abs() * mask).sum(), (ratio * counted).sum()]
        counts = [mask.sum(), mask.sum(), counted.sum()]
        totals = trainer.accelerator.gather(torch.stack([*sums, *counts]).double()).view(-1, 2, 3).sum(0)
        log = trainer._metrics["train"]
        if totals[1].all():
            means = (totals[0] / totals[1]).tolist()
            log["sampling/kl"].append(means[0])
            log["sampling/sampling_logp_difference/mean"].append(means[1])
            log["sampling/importance_sampling_ratio/mean"].append(means[2])
        return ratio


def _of_row(tokens: Mapping[str, Tensor], place: int, row: CompletedPrompt) -> dict[str, Tensor]:
    """The row's part of (rows, longest completion) or (rows, 1), on the CPU."""
    return {
        name: (value[place, : len(row.completion)] if value.shape[1] > 1 else value[place]).float().cpu()
        for name, value in tokens.items()
    }
