"""Scripted episodes in subsets and splits, some of them damaged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guieval.actions import Action
from guieval.data.benchmark import EpisodeRef
from guieval.errors import DataError
from guieval.steps import Episode
from tests.scripted import ListBenchmark, make_episode


def placed(name: str, actions: Sequence[Action], subset: str = "", split: str = "test", **more: Any) -> Episode:
    steps = make_episode(name, actions).steps
    return Episode(steps=tuple(step.model_copy(update={"subset": subset, "split": split, **more}) for step in steps))


class Placed(ListBenchmark):
    """Lists the split of each episode, and finds those called *bad* damaged."""

    dataset = "scripted"

    def index(self) -> list[EpisodeRef]:
        return [EpisodeRef(each.key, len(each), split=each.steps[0].split) for each in self._episodes.values()]

    def load(self, ref: EpisodeRef) -> Episode:
        if ref.key.episode_id.startswith("bad"):
            raise DataError(f"file.json, episode {ref.key.episode_id}, field action: expected a word")
        return super().load(ref)
