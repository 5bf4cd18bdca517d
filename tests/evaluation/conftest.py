"""Fixtures for judging steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from guieval.actions import Action
from guieval.steps import StepTaskModel


@pytest.fixture(scope="session")
def step() -> Callable[..., StepTaskModel]:
    """Makes a step with the fields that a rule reads; the rest has defaults."""

    def make(
        action: Action,
        boxes: Sequence[Sequence[float]] = (),
        *,
        dataset: str = "androidcontrol",
        alternatives: Sequence[Action] = (),
        extras: dict[str, Any] | None = None,
    ) -> StepTaskModel:
        return StepTaskModel(
            benchmark="test",
            dataset=dataset,
            episode_id="e",
            step_index=0,
            episode_length=1,
            instruction="",
            screenshot="s.png",
            screenshot_size=(1080, 2400),
            action=action,
            alternatives=tuple(alternatives),
            boxes=boxes,
            extras=extras or {},
        )

    return make
