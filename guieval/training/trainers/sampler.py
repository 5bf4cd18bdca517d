"""The order of the tasks in each epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from trl.trainer.utils import RepeatSampler


class EpochSampler(RepeatSampler):
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
