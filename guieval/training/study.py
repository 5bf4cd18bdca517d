"""The trainings of a campaign before they begin: their settings checked, and their optimiser steps if these are known."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from guieval.errors import UsageError
from guieval.training.config import RewardSettings, TrainingConfig, parse_config
from guieval.training.session import refuse_another
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


def planned_steps(trainings: Sequence[PlannedTraining], configs: Sequence[TrainingConfig]) -> dict[str, int | None]:
    """The optimiser steps of each training, by its name; ``None`` without the data or the packages that tell it."""
    if any(find_spec(name) is None for name in ("torch", "trl")):
        return {each.name: _most(config) for each, config in zip(trainings, configs, strict=True)}
    from guieval.training.building import TrainerParts
    from guieval.training.planning import total_steps

    found: dict[str, int | None] = {}
    for each, config in zip(trainings, configs, strict=True):
        found[each.name] = _most(config)
        if found[each.name] is None:
            # no data yet, for example, or a curriculum's runs that are not made yet
            with suppress(UsageError), _silent():
                found[each.name] = total_steps(TrainerParts(config), each.processes)
    return found


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
