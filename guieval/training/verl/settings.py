"""The plug-in's settings: the group ``guieval`` of a verl configuration; all other groups are verl's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from pydantic import Field, ValidationError

from guieval.errors import UsageError
from guieval.rewards.advantages import AdvantageSettings
from guieval.settings import Group
from guieval.training.settings import (
    AdapterSettings,
    DynamicSampling,
    JudgeReward,
    RewardSettings,
    RewardWatchSettings,
    RolloutSettings,
    setting_error,
)

GROUP = "guieval"
"""The name of the group, the agent loop, the trainer, and our part of a row's extra fields."""
TASKS = "guieval_online"
"""The name of the agent loop of tasks in an environment."""


class EnvironmentSettings(Group):
    """The environments of a training on tasks written by ``rows --online``."""

    devices: int = Field(8, ge=1, le=1024, description="open at once in each of verl's agent workers")
    timeout: float = Field(
        120.0, gt=0, allow_inf_nan=False, description="seconds for one call of an environment before it counts as failed"
    )


class VerlSettings(AdapterSettings):
    """The group ``guieval``; names have the same meaning as in a training with TRL."""

    history: Literal["reference", "none"] = Field("reference", description="the past of one-step rows")
    reward: RewardSettings = RewardSettings()
    reward_watch: RewardWatchSettings | None = RewardWatchSettings()
    rollout: RolloutSettings = RolloutSettings()
    judge: JudgeReward = JudgeReward()
    environment: EnvironmentSettings = EnvironmentSettings()
    advantages: AdvantageSettings = AdvantageSettings()
    dynamic_sampling: DynamicSampling | None = DynamicSampling(eta=0.3)
    mini_batches: int | None = Field(
        None, ge=1, description="optimiser steps per batch, for any number of rows; null: by ppo_mini_batch_size"
    )


def read_settings(config: Any) -> VerlSettings:
    """The settings in a whole verl configuration (a mapping of its groups, plain or OmegaConf's, resolved or not).

    Raises :class:`UsageError` for a missing group, an unknown setting (with the nearest name) and a value that does not fit.
    """
    group = config.get(GROUP)
    if group is None:
        raise UsageError(f"the configuration has no group {GROUP!r}: begin with one of those in configs/training/verl")
    return _parsed(json.dumps(_plain(group), sort_keys=True))


@lru_cache(maxsize=8)
def _parsed(text: str) -> VerlSettings:
    try:
        return VerlSettings.model_validate_json(text)
    except ValidationError as error:
        raise setting_error(error, VerlSettings, group=GROUP) from None


def _plain(group: Any) -> Any:
    if isinstance(group, Mapping) and type(group) is dict:
        return group
    from omegaconf import OmegaConf

    return OmegaConf.to_container(group, resolve=True)
