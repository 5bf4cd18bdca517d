"""The trainings of a campaign before they begin: their settings checked, and their optimiser steps if these are known."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from guieval.errors import UsageError
from guieval.training.config import TrainingConfig, parse_config
from guieval.training.session import refuse_another
from guieval.training.settings import RewardSettings
from guieval.training.trainings import PlannedTraining


def check_trainings(trainings: Sequence[PlannedTraining]) -> list[TrainingConfig]:
    """The configuration of each training.

    Raises :class:`UsageError` naming the training with a wrong setting, or whose folder has one with other settings.
    """
    found = []
    for each in trainings:
        try:
            config = parse_config({**each.values, "out": str(each.directory)})
            if isinstance(reward := getattr(config, "reward", None), RewardSettings):
                reward.open_scorer(config.open_adapter(), generated=1)
            if each.state != "not begun":
                refuse_another(config, Path(config.out))
        except UsageError as error:
            raise UsageError(f"training {each.name!r}: {error}") from None
        found.append(config)
    return found


class TrainingForecast(NamedTuple):
    """The optimiser steps of a training and the GPU hours of its arithmetic; ``None`` without what tells them.

    The hours are of the ``measured`` data, or of the sizes that the settings state until it is there.
    """

    steps: int | None
    gpu_hours: float | None = None
    measured: bool = False


def forecasts(trainings: Sequence[PlannedTraining], configs: Sequence[TrainingConfig]) -> dict[str, TrainingForecast]:
    """What is known of each training before it begins, by its name. Needs no torch for models whose sizes are shipped."""
    from guieval.training.building import TrainerParts
    from guieval.training.launch import Launch
    from guieval.training.planning import make_plan, total_steps

    found: dict[str, TrainingForecast] = {}
    origins: dict[str, str | None] = {}
    for each, given in zip(trainings, configs, strict=True):
        # the weights that it starts from are not made yet: they have the shape of those that they were made from
        origins[each.name] = origins.get(each.starts_from.name) if each.starts_from is not None else given.model_path
        config = given.model_copy(update={"model_path": origins[each.name]})
        found[each.name] = TrainingForecast(_most(config))
        launch = Launch(each.processes, "zero3" if config.lora is None else "ddp")
        # no data yet, for example, or a curriculum's runs that are not made yet
        with suppress(UsageError), _silent():
            found[each.name] = TrainingForecast(found[each.name].steps or total_steps(TrainerParts(config), each.processes))
        for there in (config, _without_data(config, each)):
            with suppress(UsageError), _silent():
                plan = make_plan(TrainerParts(there), launch)
                hours = None if plan.work is None else plan.work.gpu_hours()
                found[each.name] = TrainingForecast(plan.batch.total, hours, plan.measured)
                break
    return found


def _without_data(config: TrainingConfig, training: PlannedTraining) -> TrainingConfig:
    """The configuration without its data; the recipe's ``stated`` sizes are not those of steps that the campaign sets."""
    sources = tuple(source.model_copy(update={"data": None}) for source in config.sources)
    own = {each.partition("=")[0] for each in training.overrides}
    other = {"sources", "sample_set", "episodes", "bench", "subset", "split"} & own
    unknown = other and not (sources and all(source.steps for source in sources))
    return config.model_copy(update={"data": None, "sources": sources, **({"stated": None} if unknown else {})})


@contextmanager
def _silent() -> Iterator[None]:
    """Without the remarks on a training's data, which it makes itself when it begins."""
    log = logging.getLogger("guieval.training")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def _most(config: TrainingConfig) -> int | None:
    given = config.trainer.get("max_steps")
    return given if isinstance(given, int) and given > 0 else None
