"""The plug-in's settings: the group ``guieval`` of a verl configuration; all other groups are verl's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from guieval.errors import UsageError
from guieval.models import ABCModel
from guieval.registry import build_model, model_config
from guieval.rewards.advantages import AdvantageSettings
from guieval.rewards.reply import ReplyScorer
from guieval.rewards.shapes import weighed
from guieval.training.config import (
    DynamicSampling,
    RewardSettings,
    RolloutSettings,
    Settings,
    setting_error,
)

GROUP = "guieval"
"""The name of the group, of the agent loop, of the trainer, and of our place in a row's extra fields."""


class VerlSettings(Settings):
    """The group ``guieval``; the meaning of a name is the same as in a training with TRL."""

    model: str = Field(min_length=1, description="checkpoint name (`guieval models`), which says how it is asked and read")
    adapter: str | None = Field(None, description="model family, or a Python file, of an unlisted checkpoint")
    model_options: dict[str, Any] = Field(
        default_factory=dict, description="adapter options over the checkpoint's, e.g. max_images"
    )
    thinking: bool | None = None
    history: Literal["reference", "none"] = Field("reference", description="the past of one-step rows")
    reward: RewardSettings = RewardSettings()
    rollout: RolloutSettings = RolloutSettings()
    advantages: AdvantageSettings = AdvantageSettings()
    dynamic_sampling: DynamicSampling | None = DynamicSampling(eta=0.3)
    mini_batches: int | None = Field(
        None, ge=1, description="optimiser steps a batch is cut into, however many rows it has; null: by ppo_mini_batch_size"
    )

    @model_validator(mode="after")
    def _patches_can_be_written(self) -> VerlSettings:
        if self.rollout.patch == "off-policy":
            raise ValueError(
                "rollout.patch off-policy is for `guieval train` alone; with verl it is none, thought-free or on-policy"
            )
        return self

    def open_model(self) -> ABCModel:
        """The adapter, with ``model_options`` over the checkpoint's own. Raises :class:`UsageError` for an unknown name."""
        checkpoint = model_config(self.model, self.adapter)
        options = {**checkpoint.options, **self.model_options}
        return build_model(checkpoint.model_copy(update={"options": options}), thinking=self.thinking)

    def open_scorer(self, model: ABCModel) -> ReplyScorer:
        """What rewards the replies of ``model``."""
        return ReplyScorer(model, weighed(self.reward.name, self.reward.protocol, self.reward.weights))


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
    """Cached, because every rollout needs it."""
    try:
        return VerlSettings.model_validate_json(text)
    except ValidationError as error:
        raise setting_error(error, VerlSettings, group=GROUP) from None


def _plain(group: Any) -> Any:
    if isinstance(group, Mapping) and type(group) is dict:
        return group
    from omegaconf import OmegaConf

    return OmegaConf.to_container(group, resolve=True)
