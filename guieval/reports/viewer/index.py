"""The viewer's index: what filters, the list of episodes and links need of every step, in a few characters each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from typing import Any

from guieval.actions import type_of
from guieval.reports.viewer.reading import SeenStep
from guieval.reports.viewer.step import clipped
from guieval.steps import EpisodeKey, StepTaskModel

INSTRUCTION_LIMIT = 300
_NONE = -1


class Index:
    """The data of filters: a character or a small number per step, a line per episode."""

    def __init__(self, runs: int, protocols: int) -> None:
        self._episode: EpisodeKey | None = None
        self._labels: dict[str, None] = {}
        self._instructions: list[str] = []
        self._subsets: defaultdict[str, int] = defaultdict(count().__next__)  # numbered by first occurrence
        self._subset: list[int] = []
        self._starts: list[int] = []
        self._steps: list[int] = []
        self._types: defaultdict[str, int] = defaultdict(count().__next__)
        self._reference: list[int] = []
        self._predicted: list[list[int]] = [[] for _ in range(runs)]
        self._ends: list[list[list[str]]] = [[[] for _ in range(protocols)] for _ in range(runs)]
        self._groups: dict[str, tuple[dict[str, int], list[int]]] = {}

    def __len__(self) -> int:
        return len(self._steps)

    def _begin_episode(self, key: EpisodeKey, task: StepTaskModel | None) -> None:
        self._episode = key
        label = name = "/".join(part for part in (key.subset, key.episode_id) if part)
        repeated = 1
        while label in self._labels:  # a/b may be episode b of subset a, or an episode of that name without subset
            repeated += 1
            label = f"{name} ({repeated})"
        self._labels[label] = None
        self._instructions.append("" if task is None else clipped(task.instruction, INSTRUCTION_LIMIT) or "")
        self._subset.append(self._subsets[key.subset])
        self._starts.append(len(self._steps))

    def add(self, key: EpisodeKey, step: int, task: StepTaskModel | None, both: Sequence[SeenStep]) -> None:
        """Add the next step in plan order; ``both`` are its results in each run."""
        if key != self._episode:
            self._begin_episode(key, task)
        elif task is not None and not self._instructions[-1]:
            self._instructions[-1] = clipped(task.instruction, INSTRUCTION_LIMIT) or ""
        row = len(self._steps)
        self._steps.append(step)
        self._reference.append(_NONE if task is None else self._types[task.action.type])
        for seen, predicted, ends in zip(both, self._predicted, self._ends, strict=True):
            action = None if seen.record is None else seen.record.sample.action
            predicted.append(_NONE if action is None else self._types[type_of(action)])
            for column, code in zip(ends, seen.ends, strict=True):
                column.append(str(code))
        for name, value in ({} if task is None else task.groups).items():
            values, column_of = self._groups.setdefault(name, ({}, []))
            column_of += [_NONE] * (row - len(column_of))
            column_of.append(values.setdefault(value, len(values)))

    def values(self) -> dict[str, Any]:
        """The page's data."""
        return {
            "labels": list(self._labels),
            "instructions": self._instructions,
            "subsets": list(self._subsets),
            "subset": self._subset,
            "starts": self._starts,
            "steps": self._steps,
            "types": list(self._types),
            "reference": self._reference,
            "predicted": self._predicted,
            "ends": [["".join(column) for column in ends] for ends in self._ends],
            "groups": [
                {"name": name, "values": list(values), "of": column + [_NONE] * (len(self) - len(column))}
                for name, (values, column) in self._groups.items()
            ],
        }
