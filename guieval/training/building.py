"""Builds TRL's trainer from a training's configuration, one function per kind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from guieval.errors import UsageError
from guieval.history import reference_history
from guieval.models import ABCModel
from guieval.online import Observation
from guieval.online.attempt import Attempt
from guieval.online.tasks import EnvironmentTasks
from guieval.rewards.response import ResponseScorer
from guieval.steps import Episode, OnlineTask, StepKey, StepTaskModel
from guieval.training.acting import Stage
from guieval.training.arguments import check_enough, trainer_arguments
from guieval.training.config import GRPOTraining, OnlineTraining, SemiOnlineTraining, SFTTraining, TrainingConfig
from guieval.training.data.curriculum import factors, read_measured
from guieval.training.data.environment_tasks import SCREENS
from guieval.training.data.examples import (
    Example,
    PromptBuilder,
    images_of,
    journal_examples,
    reference_completion,
    without_images,
)
from guieval.training.data.mixture import MixedSources, TaskPlace, drawn, open_data
from guieval.training.data.thoughts import ServedThoughts, read_thoughts_file, with_thought, writes_thoughts
from guieval.training.guard import require_trl
from guieval.training.lengths import edge_of, prompt_length
from guieval.training.model_size import model_size
from guieval.training.reward_watch import RewardWatch, WatchedScorer
from guieval.training.weights import Weights, checkpoint_of, load_weights, lora_config

_LOG = logging.getLogger(__name__)
Task = TypeVar("Task")

A_SCREEN = (1080, 1920)
"""The size of a screenshot for a prompt that is written before there is one."""


@dataclass
class TrainerParts:
    """The parts of a trainer, each built on first use so that cheap mistakes are found first."""

    config: TrainingConfig
    thought_share: float | None = None
    """Of a supervised training on references, once its trainer is built: the share of completions with a thought."""
    longest: int | None = None
    """In a preflight: how many tasks are trained on, those with the longest prompts; ``None``: all."""
    picked: float | None = None
    """Tokens of the longest prompt of those tasks in the mean, once the trainer is built."""

    @cached_property
    def model(self) -> ABCModel:
        return self.config.open_adapter()

    @cached_property
    def data(self) -> MixedSources:
        return open_data(self.config)

    def drawn(self, places: Sequence[TaskPlace], keys: Callable[[TaskPlace], list[StepKey]]) -> list[TaskPlace]:
        """The tasks of an epoch: ``places`` by the weights of sources and curriculum; ``keys`` names the steps of a place."""
        weights = [self.data.weight(place) for place in places]
        if self.config.curriculum is not None:
            curriculum = factors(list(map(keys, places)), self.config.curriculum, read_measured(self.config.curriculum.runs))
            weights = [weight * factor for weight, factor in zip(weights, curriculum, strict=True)]
        tasks = [places[number] for number in drawn(weights, self.config.seed)]
        if not tasks:
            raise UsageError(f"the weights leave no task of {len(places):,}: give higher ones")
        return tasks

    def pick(self, tasks: list[Task], examples: Callable[[Task], Iterable[Example]]) -> list[Task]:
        """The tasks that are trained on, in their order: all, or the ``longest``."""
        if self.longest is None:
            return tasks
        edge = edge_of(model_size(self.config, checkpoint_of(self.config, self.model)))

        def length(number: int) -> int:
            inputs = (self.model.prepare_input(each.task, each.history) for each in examples(tasks[number]))
            return max(sum(prompt_length(each, edge)) for each in inputs)

        lengths = {number: length(number) for number in range(len(tasks))}
        chosen = sorted(sorted(lengths, key=lambda number: -lengths[number])[: self.longest])
        self.picked = fmean(lengths[number] for number in chosen)
        return [tasks[number] for number in chosen]

    @cached_property
    def prompts(self) -> PromptBuilder:
        return PromptBuilder(self.model, self.data.roots)

    @cached_property
    def weights(self) -> Weights:
        return load_weights(self.config, self.model)

    @cached_property
    def scorer(self) -> ResponseScorer:
        """Rewards responses, and shows them to :attr:`watch`."""
        return self._scorer if self.watch is None else WatchedScorer(self._scorer, self.watch)

    @cached_property
    def _scorer(self) -> ResponseScorer:
        from trl import GRPOConfig

        assert isinstance(self.config, GRPOTraining | SemiOnlineTraining)
        longest = self.config.trainer.get("max_completion_length", GRPOConfig.max_completion_length)
        return self.config.reward.open_scorer(self.model, int(longest))

    @cached_property
    def watch(self) -> RewardWatch | None:
        settings = getattr(self.config, "reward_watch", None)
        if settings is None:
            return None
        judge = None if self.config.evaluation is None else self.config.evaluation.protocol
        protocols = {each.benchmark.name: judge or each.benchmark.protocol for each in self.data.data}
        return RewardWatch(settings, self._scorer, protocols)

    @cached_property
    def stage(self) -> Stage:
        """The environments that an online training acts in; to be closed."""
        assert isinstance(self.config, OnlineTraining)
        config = self.config
        return Stage(Path(config.out) / SCREENS, config.environment_timeout, every_step=config.reward.every_step)

    def trainer(self) -> Any:
        """TRL's trainer for a training of this kind. Raises :class:`UsageError` for invalid settings."""
        match self.config:
            case SFTTraining():
                return _sft_trainer(self, self.config)
            case GRPOTraining():
                return _grpo_trainer(self, self.config)
            case SemiOnlineTraining():
                return _semi_online_trainer(self, self.config)
            case OnlineTraining():
                return _online_trainer(self, self.config)
        raise UsageError(f"unknown kind of training {self.config.kind!r}")

    def examples(self) -> tuple[int, Callable[[int], Example]]:
        """The rows of a training on single steps: how many an epoch has, and the row of a number.

        Only supervised rows have a completion. Raises :class:`UsageError` if there is none.
        """
        if isinstance(self.config, SFTTraining):
            return _supervised(self, self.config)
        assert isinstance(self.config, GRPOTraining)
        history, tasks = self.config.history == "reference", self.drawn(self.data.steps, self.data.step_keys)
        return len(tasks), lambda number: self.data.example(tasks[number], history=history)

    def common(self, first: Example) -> dict[str, Any]:
        """Arguments that all trainers share; ``first`` is any example."""
        arguments = trainer_arguments(self.config, self.prompts.template_arguments(first))
        return {
            "model": self.weights.model,
            "args": arguments,
            "processing_class": self.weights.processor,
            "peft_config": None if self.config.lora is None else lora_config(self.config.lora),
        }


def _numbers(count: int, make: Callable[[int], dict[str, Any]] | None = None) -> Any:
    """A data set of ``count`` indices; with ``make``, a row is built from its index when it is used."""
    from datasets import Dataset

    numbers = Dataset.from_dict({"index": list(range(count))})
    if make is None:
        return numbers

    def rows(batch: dict[str, list[int]]) -> dict[str, list[Any]]:
        built = [make(number) for number in batch["index"]]
        return {name: [row[name] for row in built] for name in built[0]}

    return numbers.with_transform(rows)


def _sft_trainer(parts: TrainerParts, config: SFTTraining) -> Any:
    from trl import SFTTrainer

    count, example_of = _supervised(parts, config)

    def row(number: int) -> dict[str, Any]:
        example = example_of(number)
        messages = parts.prompts.messages(example.task, example.history)
        answer = [{"role": "assistant", "content": [{"type": "text", "text": example.completion}]}]
        template = parts.prompts.template_arguments(example)
        return {
            "prompt": without_images(messages),
            "completion": answer,
            "images": images_of(messages),
            **({"chat_template_kwargs": template} if template else {}),
        }

    return _made(SFTTrainer, train_dataset=_numbers(count, row), **parts.common(example_of(0)))


def _made(trainer: Callable[..., Any], **arguments: Any) -> Any:
    """The trainer; :class:`UsageError` for settings that TRL rejects only here, and for missing packages."""
    try:
        return trainer(**arguments)
    except (ValueError, NotImplementedError, ImportError) as error:
        raise UsageError(f"TRL refuses the settings in 'trainer': {' '.join(str(error).split())[:500]}") from error


def _supervised(parts: TrainerParts, config: SFTTraining) -> tuple[int, Callable[[int], Example]]:
    if config.journal is not None:
        own = list(journal_examples(Path(config.journal), parts.model))
        if not own:
            raise UsageError(f"the run {config.journal!r} has no exact response to learn from")
        own = parts.pick(own, lambda each: [each])
        if strange := {each.task.benchmark for each in own} - parts.data.roots.keys():
            raise UsageError(
                f"the run {config.journal!r} is of the benchmark {min(strange)!r}, and the training of "
                f"{', '.join(map(repr, parts.data.roots))}, whose screenshots it would need: set bench to the run's"
            )
        return len(own), own.__getitem__
    data = parts.data
    kept = [place for place in data.steps if reference_completion(parts.model, data.step(place)) is not None]
    if not kept:
        raise UsageError(f"model {config.model!r} can express none of the {len(data.steps):,} reference actions")
    reference = config.history == "reference"
    tasks = parts.pick(parts.drawn(kept, data.step_keys), lambda place: [data.example(place, history=reference)])
    thoughts = {} if config.thoughts is None else read_thoughts_file(Path(config.thoughts))
    parts.thought_share = _thought_share(parts, [data.step(place) for place in tasks], thoughts)

    def example(number: int) -> Example:
        step = data.example(tasks[number], history=reference)
        completion = reference_completion(parts.model, step.task, thoughts.get(str(step.task.key)))
        past = tuple(with_thought(entry, thoughts) for entry in step.history)
        return step._replace(history=past, completion=completion)

    return len(tasks), example


def _thought_share(parts: TrainerParts, tasks: Sequence[StepTaskModel], thoughts: Mapping[str, str]) -> float | None:
    """The share of references with a thought, with a warning if some have none; ``None`` for a family that writes none."""
    if not writes_thoughts(parts.model, tasks[0]):
        return None
    without = sum(not thoughts.get(str(task.key)) for task in tasks)
    if without == len(tasks) and thoughts:
        raise UsageError(
            f"none of the {len(tasks):,} steps has a thought in the file that 'thoughts' names, e.g. not {str(tasks[0].key)!r}"
        )
    if without:
        _LOG.warning(
            "%s of %s references have no thought, so the model learns to answer without one: write them with "
            "`guieval study thoughts` and set 'thoughts'",
            f"{without:,}",
            f"{len(tasks):,}",
        )
    return 1 - without / len(tasks)


def _grpo_trainer(parts: TrainerParts, config: GRPOTraining) -> Any:
    history = config.history == "reference"
    scorer, tasks = parts.scorer, parts.drawn(parts.data.steps, parts.data.step_keys)
    tasks = parts.pick(tasks, lambda place: [parts.data.example(place, history=history)])
    common = parts.common(parts.data.example(tasks[0], history=history))
    check_enough(common["args"], len(tasks))
    require_trl()
    from guieval.training.trainers.grpo import StepGRPOTrainer

    return _made(
        StepGRPOTrainer,
        example=lambda number: parts.data.example(tasks[number], history=history),
        prompts=parts.prompts,
        scorer=scorer,
        tasks=len(tasks),
        sampling=config.dynamic_sampling,
        max_prompt_length=config.max_prompt_length,
        train_dataset=_numbers(len(tasks)),
        **common,
    )


def _semi_online_trainer(parts: TrainerParts, config: SemiOnlineTraining) -> Any:
    scorer, tasks = parts.scorer, parts.drawn(parts.data.episodes, parts.data.episode_keys)
    tasks = parts.pick(tasks, lambda place: referenced(*parts.data.episode(place)))
    first, _ = parts.data.episode(tasks[0])
    common = parts.common(Example(first.steps[0], ()))
    arguments = common["args"]
    require_trl()
    from guieval.training.trainers.semi_online import SemiOnlineTrainer

    check_enough(arguments, len(tasks))
    return _made(
        SemiOnlineTrainer,
        episode=lambda number: parts.data.episode(tasks[number]),
        prompts=parts.prompts,
        scorer=scorer,
        policy=config.rollout.policy(),
        settings=config.advantages,
        thoughts=_thoughts(parts, config),
        tasks=len(tasks),
        sampling=config.dynamic_sampling,
        max_prompt_length=config.max_prompt_length,
        train_dataset=_numbers(len(tasks)),
        **common,
    )


def _online_trainer(parts: TrainerParts, config: OnlineTraining) -> Any:
    places = parts.drawn(parts.data.episodes, parts.data.episode_keys)

    def task(number: int) -> tuple[EnvironmentTasks, OnlineTask]:
        data = parts.data.data[places[number].source]
        assert isinstance(data.benchmark, EnvironmentTasks)
        return data.benchmark, data.benchmark.load(data.refs[places[number].number])

    _, first = task(0)
    shown = Attempt(first).shown(Observation(first.instruction, b"", A_SCREEN), "a screen")
    common = parts.common(Example(shown, ()))
    arguments = common["args"]
    require_trl()
    from guieval.training.trainers.online import OnlineTrainer

    check_enough(arguments, len(places))
    return _made(
        OnlineTrainer,
        task=task,
        reward=config.reward,
        settings=config.advantages,
        stage=parts.stage,
        at_once=_at_once(parts, config, arguments.world_size),
        prompts=parts.prompts,
        tasks=len(places),
        sampling=config.dynamic_sampling,
        max_prompt_length=config.max_prompt_length,
        train_dataset=_numbers(len(places)),
        **common,
    )


def _at_once(parts: TrainerParts, config: OnlineTraining, processes: int) -> int:
    """How many environments a process opens at once; :class:`UsageError` if there are too few for all processes."""
    fewest = config.environments
    for data in parts.data.data:
        most = data.benchmark.most_at_once
        if most is not None and most < processes:
            raise UsageError(
                f"{data.benchmark.title} opens at most {most} at a time, and there are {processes} processes: start {most}"
            )
        fewest = fewest if most is None else min(fewest, most // processes)
    return fewest


def referenced(episode: Episode, counted: Sequence[int]) -> list[Example]:
    """The steps of an episode that count, each with the reference's history."""
    return [Example(episode.steps[index], reference_history(episode.steps[:index])) for index in counted]


def _thoughts(parts: TrainerParts, config: SemiOnlineTraining) -> Callable[[Sequence[StepTaskModel]], list[str | None]] | None:
    if config.rollout.server is not None:
        return ServedThoughts(config.rollout.server, parts.data.roots)
    if config.rollout.thoughts is None:
        return None
    written = read_thoughts_file(Path(config.rollout.thoughts))
    return lambda tasks: [written.get(str(task.key)) for task in tasks]
