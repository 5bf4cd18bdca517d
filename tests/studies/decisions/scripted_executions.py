"""Executions drawn from decision distributions that a test states, so that the true figures are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from guieval.actions import Action, Click, Point, Stop, action_to_json
from guieval.steps import StepTaskModel
from guieval.studies.decisions.executions import StepExecutions
from tests.made_runs import step


def task(episode: str = "e", index: int = 0, length: int = 1, action: Action | None = None) -> StepTaskModel:
    return step(action or Stop(), episode=episode, index=index, length=length)


def click(x: float, y: float) -> Click:
    return Click(point=Point(x, y))


def executions(
    drawn: Sequence[Action | None], right: Sequence[Action] = (), of: StepTaskModel | None = None, failed: int = 0
) -> StepExecutions:
    """What was drawn, in that order; executions equal to one of ``right`` are exact."""
    counts: dict[str, int] = {}
    actions: dict[str, Action | None] = {}
    for action in drawn:
        name = "" if action is None else action_to_json(action)
        actions[name] = action
        counts[name] = counts.get(name, 0) + 1
    exact = {action_to_json(action) for action in right}
    numbers = np.array(list(counts.values()), dtype=np.int64)
    matched = sum(count for name, count in counts.items() if name in exact)
    return StepExecutions(of or task(), tuple(actions.values()), numbers, matched, failed)


TARGETS = (Point(200.0, 200.0), Point(800.0, 200.0), Point(500.0, 800.0), Point(200.0, 600.0))
"""Places far enough from each other to be decisions of their own, whatever falls about them."""


def scattered(
    shares: Sequence[float], n: int, rng: np.random.Generator, *, of: StepTaskModel | None = None, noise: float = 0.0
) -> StepExecutions:
    """n clicks about :data:`TARGETS`, each with its share; those about the first are exact.

    A click lies within 20 thousandths of its target. With ``noise`` so large a share of them falls on the other targets alike.
    """
    mixed = (1 - noise) * np.asarray(shares) + noise * (np.arange(len(shares)) > 0) / max(1, len(shares) - 1)
    chosen = rng.choice(len(shares), n, p=mixed / mixed.sum())
    drawn: list[Action] = []
    for place in chosen.tolist():
        x, y = TARGETS[place]
        drawn.append(click(x + round(float(rng.uniform(-20, 20)), 2), y + round(float(rng.uniform(-20, 20)), 2)))
    right = [action for action, place in zip(drawn, chosen.tolist(), strict=True) if place == 0]
    return executions(drawn, right, of)
