"""The tasks of a training: the steps or the episodes of one benchmark or of several, repeated by weight.

A task is a number. An epoch has every task once, or ``weight`` times on average: a weight of 2.5 gives two or three times,
drawn by the training's seed, and the total is the rounded sum of all weights.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

from guieval.steps import Episode, StepKey, StepTaskModel
from guieval.training.config import OnlineTraining, TrainingConfig
from guieval.training.data.environment_tasks import SCREENS, open_tasks
from guieval.training.data.examples import Example, TrainingData, open_source
from guieval.training.settings import Source


class TaskPlace(NamedTuple):
    """One task: the number of its source, and its number among the steps or the episodes of that source."""

    source: int
    number: int


@dataclass(frozen=True)
class MixedSources:
    """The sources of a training with their weights; episodes are loaded one at a time."""

    sources: tuple[Source, ...]
    data: tuple[TrainingData, ...]

    @cached_property
    def steps(self) -> Sequence[TaskPlace]:
        return [TaskPlace(source, number) for source, data in enumerate(self.data) for number in range(len(data.steps))]

    @cached_property
    def episodes(self) -> Sequence[TaskPlace]:
        return [TaskPlace(source, number) for source, data in enumerate(self.data) for number in range(len(data.refs))]

    @property
    def roots(self) -> dict[str, Path]:
        """The folder of screenshots of each benchmark."""
        return {data.benchmark.name: data.benchmark.root for data in self.data}

    def weight(self, place: TaskPlace) -> float:
        return self.sources[place.source].weight

    def step_keys(self, place: TaskPlace) -> list[StepKey]:
        data = self.data[place.source]
        episode, index = data.steps[place.number]
        return [StepKey(*data.refs[episode].key, index)]

    def episode_keys(self, place: TaskPlace) -> list[StepKey]:
        data = self.data[place.source]
        return [StepKey(*data.refs[place.number].key, index) for index in data.counted(place.number)]

    def step(self, place: TaskPlace) -> StepTaskModel:
        data = self.data[place.source]
        episode, index = data.steps[place.number]
        return data.episode(episode).steps[index]

    def example(self, place: TaskPlace, *, history: bool = True) -> Example:
        return self.data[place.source].example(place.number, history=history)

    def episode(self, place: TaskPlace) -> tuple[Episode, Sequence[int]]:
        data = self.data[place.source]
        return data.episode(place.number), data.counted(place.number)


def open_data(config: TrainingConfig) -> MixedSources:
    """The data or the tasks of a training.

    Raises :class:`guieval.errors.UsageError` for an unknown name, a missing folder, and an empty selection.
    """
    sources = config.all_sources
    if isinstance(config, OnlineTraining):
        opened = partial(
            open_tasks,
            screens=Path(config.out) / SCREENS,
            seed=config.seed,
            max_steps=config.max_steps,
            allow_network=config.allow_network,
        )
        return MixedSources(sources, tuple(map(opened, sources)))
    return MixedSources(sources, tuple(open_source(source, config.seed) for source in sources))


def drawn(weights: Sequence[float], seed: int) -> list[int]:
    """The numbers of one epoch, ascending: each one ``floor`` or ``ceil`` of its weight times (systematic sampling)."""
    order = list(range(len(weights)))
    dice = random.Random(seed)
    dice.shuffle(order)
    return sorted(_systematic([weights[number] for number in order], order, dice.random()))


def _systematic(weights: Sequence[float], numbers: Sequence[int], offset: float) -> Iterator[int]:
    total, before = 0.0, math.floor(offset)
    for weight, number in zip(weights, numbers, strict=True):
        total += weight
        now = math.floor(total + offset + 1e-9)
        yield from [number] * (now - before)
        before = now
