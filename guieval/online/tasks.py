"""The tasks of an environment, listed as a benchmark lists its episodes, so that they are selected in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from guieval.data.benchmark import EpisodeRef, Listing
from guieval.errors import DataError, UsageError, nearest
from guieval.online.contract import ABCEnvironment, EnvironmentTask
from guieval.steps import DATASET, EpisodeKey, OnlineTask

PROTOCOL = "environment"
"""The protocol of online runs: the environment's own score."""


class EnvironmentTasks(Listing[OnlineTask]):
    """The tasks of ``environment``; ``root`` is not read.

    A task may take ``flat`` steps, or ``per_complexity`` for each point of its complexity, or else as many as the environment
    says; ``max_steps`` limits them further. It lists the tasks with an id in ``only``, if any, and none in ``without``.
    Raises :class:`UsageError` if a task has no complexity, and for an id that no task has.
    """

    needs_data = False
    protocol = PROTOCOL
    dataset = DATASET

    def __init__(
        self,
        root: Path,
        environment: ABCEnvironment,
        max_steps: int | None = None,
        *,
        flat: int | None = None,
        per_complexity: float | None = None,
        only: Sequence[str] = (),
        without: Sequence[str] = (),
    ) -> None:
        super().__init__(root)
        # the object represents any environment, so it has what a benchmark's class states
        vars(self).update({name: getattr(environment, name) for name in ("name", "title", "source", "licence")})
        self.environment = environment
        self.most_at_once = environment.most_devices
        self.max_steps = max_steps
        self._flat, self._per_complexity = flat, per_complexity
        self._only, self._without = only, without

    def index(self) -> Sequence[EpisodeRef]:
        tasks = list(self.environment.tasks())
        ids = {task.id for task in tasks}
        for name in (*self._only, *self._without):
            if name not in ids:
                raise UsageError(f"the scaffold lists {name!r}, which is no task of {self.name!r}{nearest(name, ids)}")
        chosen = (task for task in tasks if (not self._only or task.id in self._only) and task.id not in self._without)
        return tuple(EpisodeRef(self.environment.key(task), 1, task) for task in chosen)

    def load(self, ref: EpisodeRef) -> OnlineTask:
        task = ref.locator
        if not isinstance(task, EnvironmentTask):
            raise DataError(f"{self.environment.title} has no task {ref.key}")
        return OnlineTask(
            benchmark=self.name,
            subset=task.subset,
            episode_id=task.id,
            instruction=task.goal or f"the goal that {self.environment.title} sets for {task.id}",
            max_steps=self.steps(task),
            groups=dict(task.groups),
        )

    def named(self, task: OnlineTask) -> EnvironmentTask:
        """The task that a record is about."""
        return self._by_key[task.episode_key]

    def digest(self, refs: Iterable[EpisodeRef]) -> str:
        """SHA-256 over the content of some tasks and the version of their environment."""
        lines = [self.environment.version, *(self.load(ref).model_dump_json() for ref in refs)]
        return sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()

    @cached_property
    def _by_key(self) -> dict[EpisodeKey, EnvironmentTask]:
        return {self.environment.key(task): task for task in self.environment.tasks()}

    def steps(self, task: EnvironmentTask) -> int:
        """The most steps of a task in this run."""
        most = self._flat or task.max_steps
        if self._per_complexity is not None:
            if task.complexity is None:
                raise UsageError(
                    f"the budget of {self._per_complexity:g} steps for each point of complexity does not fit environment "
                    f"{self.name!r}: its task {task.id!r} has none"
                )
            most = max(1, int(self._per_complexity * task.complexity))
        return most if self.max_steps is None else min(most, self.max_steps)
