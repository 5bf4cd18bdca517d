"""The tasks of an environment as a benchmark: an episode of one step each, whose label is success.

So selection, journals, resume, samples and scoring are the same for online runs as for all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from guieval.actions import ActionSpace
from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.errors import DataError, UsageError
from guieval.online.contract import ABCEnvironment, EnvironmentTask
from guieval.online.trajectory import outcome_action
from guieval.steps import Episode, EpisodeKey, StepTaskModel

PROTOCOL = "environment"
"""The protocol of online runs: the environment's own judgement."""


class EnvironmentTasks(ABCBenchmark):
    """The tasks of ``environment``; ``root`` is not read.

    A task may take ``flat`` steps, or ``per_complexity`` for each point of its complexity, or else as many as the environment
    says; ``max_steps`` limits them further. Raises :class:`UsageError` where a task has no complexity.
    """

    needs_data = False
    protocol = PROTOCOL
    dataset = "online"
    action_space = ActionSpace()

    def __init__(
        self,
        root: Path,
        environment: ABCEnvironment,
        max_steps: int | None = None,
        *,
        flat: int | None = None,
        per_complexity: float | None = None,
    ) -> None:
        super().__init__(root)
        # the object stands for any environment, so it has what a benchmark's class states
        vars(self).update({name: getattr(environment, name) for name in ("name", "title", "source", "licence")})
        self.environment = environment
        self.max_steps = max_steps
        self._flat, self._per_complexity = flat, per_complexity

    def index(self) -> Sequence[EpisodeRef]:
        return tuple(EpisodeRef(self.environment.key(task), 1, task) for task in self.environment.tasks())

    def load(self, ref: EpisodeRef) -> Episode:
        task = self.task(ref)
        return Episode(
            steps=(
                StepTaskModel(
                    benchmark=self.name,
                    dataset=self.dataset,
                    subset=task.subset,
                    episode_id=task.id,
                    step_index=0,
                    episode_length=1,
                    instruction=task.goal or f"the goal that {self.environment.title} sets for {task.id}",
                    screenshot="none",
                    screenshot_size=(1, 1),
                    action=outcome_action(True),
                    groups=dict(task.groups),
                    extras={"max_steps": self.steps(task), "environment": self.environment.version},
                ),
            )
        )

    def task(self, ref: EpisodeRef) -> EnvironmentTask:
        """The task of a reference; :class:`DataError` for one of another environment."""
        if not isinstance(ref.locator, EnvironmentTask):
            raise DataError(f"{self.environment.title} has no task {ref.key}")
        return ref.locator

    def named(self, step: StepTaskModel) -> EnvironmentTask:
        """The task that a record is about."""
        return self._by_key[step.episode_key]

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
