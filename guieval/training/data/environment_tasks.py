"""The tasks of an online training: those of its environments, in place of recorded episodes."""

from __future__ import annotations

from pathlib import Path

from guieval.data.selection import Choice
from guieval.data.selection import select as select_episodes
from guieval.online.find import load_environment
from guieval.online.tasks import EnvironmentTasks
from guieval.training.data.examples import TrainingData
from guieval.training.settings import Source

SCREENS = "screens"
"""Folder of a training's present screenshots below its own."""


def open_tasks(
    source: Source, screens: Path, seed: int, *, max_steps: int | None = None, allow_network: bool = False
) -> TrainingData:
    """The tasks of one environment; ``screens`` is for the screenshots of rollouts.

    Raises :class:`UsageError` for an unknown name or option, and an empty selection.
    """
    environment = load_environment(source.bench, allow_network=allow_network, **source.bench_options)
    tasks = EnvironmentTasks(screens, environment, max_steps)
    episodes = None if source.episodes is None else Path(source.episodes)
    choice = Choice(source.split, source.subset, None, episodes, source.limit, seed)
    return TrainingData(tasks, select_episodes(tasks, choice))
