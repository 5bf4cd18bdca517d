"""Fixtures for judging steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from guieval.actions import Action
from guieval.steps import StepTaskModel
from tests import made_runs


@pytest.fixture(scope="session")
def step() -> Callable[..., StepTaskModel]:
    """Makes a step with the fields that a rule reads; the rest has defaults."""

    def make(
        action: Action,
        elements: Sequence[Sequence[float]] = (),
        *,
        targets: Sequence[Sequence[float]] = (),
        dataset: str = "androidcontrol",
        alternatives: Sequence[Action] = (),
        extras: dict[str, Any] | None = None,
    ) -> StepTaskModel:
        more: dict[str, Any] = {
            "targets": targets,
            "elements": elements,
            "alternatives": tuple(alternatives),
            "extras": extras or {},
        }
        return made_runs.step(action, dataset=dataset, **more)

    return make
