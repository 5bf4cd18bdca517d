"""History mixing: histories in which some of the reference's steps are replaced by the model's own, by a schedule.

Source: GUIEvalKit paper, section 5.3 and appendix D.2. Every past step t of a history of T steps is the model's own with
probability p_t (:mod:`guieval.history.schedules`) if it has an artifact, else the reference's. An artifact is the model's own
answer at a step that it got exactly right: equation 10 lets an action and its reasoning into a history only where the action
equals the reference. Steps do not wait for each other, so a mixed run is an offline run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from guieval.actions import Action
from guieval.errors import UsageError, first_problem, nearest
from guieval.history import HistoryEntry, reference_entry
from guieval.history.schedules import KAPPA, Schedule, Shape
from guieval.steps import EpisodeKey, HistoryOrigin, StepKey, StepTaskModel

Span: TypeAlias = Literal["history", "episode"]
Pick: TypeAlias = Literal["first", "seeded"]


class Artifact(NamedTuple):
    """One exact answer: its action (coordinates in [0, 1000]), its texts without tags, and the unchanged reply."""

    action: Action
    thought: str | None
    conclusion: str | None
    raw_response: str | None


@dataclass(frozen=True, eq=False)
class Artifacts:
    """The artifacts of one checkpoint on one benchmark by step, with a fingerprint of them all."""

    directory: Path
    model: str
    benchmark: str
    steps: Mapping[StepKey, Artifact]
    sha256: str

    def entry(self, task: StepTaskModel) -> HistoryEntry | None:
        """The model's own entry for a step, varphi of equation 10; ``None`` if it was never exactly right."""
        artifact = self.steps.get(task.key)
        return None if artifact is None else HistoryEntry(task, *artifact, "model")


def drawn(*parts: object) -> int:
    """64 pseudo-random bits that are a pure function of ``parts``, independent of the order of work."""
    return int.from_bytes(blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def uniform(*parts: object) -> float:
    """:func:`drawn` as a number in [0, 1)."""
    return float(np.ldexp(drawn(*parts) >> 11, -53))


class Mix(BaseModel):
    """The setting ``mix`` of :class:`guieval.running.config.RunConfig`, which makes a run a mixed one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    start: float = Field(ge=0, le=1, description="probability that a history's first steps are the model's own")
    end: float | None = Field(
        None, ge=0, le=1, description="the same for the step before the current one; start when not given"
    )
    shape: Shape = Field("logistic", description="logistic, linear or constant")
    mean: float | None = Field(None, ge=0, le=1, description="wanted mean of p over [0, 1]; midway when not given")
    kappa: float = Field(KAPPA, description="sharpness of the logistic")
    over: Span = Field("history", description="T of (t + 1) / T: the length of each step's history, or of the episode's whole")
    seed: int = Field(0, ge=0, description="seed of the draws")
    repeat: int = Field(0, ge=0, description="number that distinguishes otherwise equal settings")
    pick: Pick = Field("first", description="which exact answer of a step is its artifact: first or seeded")

    @cached_property
    def schedule(self) -> Schedule:
        """Its schedule; :class:`UsageError` for impossible values."""
        return Schedule(self.start, self.start if self.end is None else self.end, self.shape, self.kappa, self.mean)


def read_mix(values: Mapping[str, Any]) -> Mix:
    """Validate the setting ``mix`` of a run; :class:`UsageError` names the problem."""
    for name in values:
        if name not in Mix.model_fields:
            raise UsageError(f"unknown setting 'mix.{name}'{nearest(name, Mix.model_fields)}")
    try:
        mix = Mix.model_validate(dict(values))
    except ValidationError as error:
        problem = first_problem(error)
        if problem.kind == "missing":
            raise UsageError(f"the setting 'mix.{problem.field}' is required for a mixed history") from None
        raise UsageError(f"setting 'mix.{problem.field}' is {problem.value!r}: {problem.message}") from None
    _ = mix.schedule  # raises now if it is impossible
    return mix


@dataclass(frozen=True, eq=False)
class Mixture:
    """The history selection operator psi of equation 10, with its draws. Thread-safe and immutable.

    The draw of a past step is a number u in [0, 1), a hash of the seed, the setting, the episode and the step: the step is the
    model's own if u < p_t. The number is the same for all later steps of the episode, so under a stationary schedule a step
    that is the model's own in one history is so in all; p_t follows the schedule over each history. Order, concurrency and
    resume do not change a draw.
    """

    mix: Mix
    artifacts: Artifacts

    def history(self, past: Sequence[StepTaskModel]) -> tuple[HistoryEntry, ...]:
        """The history for ``past``, all steps of an episode before the current one, oldest first."""
        if not past:
            return ()
        origins = self.origins(past[0].episode_key, len(past), past[0].episode_length)
        own = (self.artifacts.entry(task) if origin == "model" else None for task, origin in zip(past, origins, strict=True))
        return tuple(entry or reference_entry(task) for task, entry in zip(past, own, strict=True))

    def origins(self, episode: EpisodeKey, length: int, episode_length: int) -> tuple[HistoryOrigin, ...]:
        """The origin of each of an episode's first ``length`` steps in the history of the step after them."""
        drawn = self.draws(episode, length, episode_length) if length else np.empty(0, dtype=np.bool_)
        has = self.artifacts.steps
        return tuple("model" if own and StepKey(*episode, step) in has else "reference" for step, own in enumerate(drawn))

    def draws(self, episode: EpisodeKey, length: int, episode_length: int) -> NDArray[np.bool_]:
        """I_t of a history of ``length`` steps, with or without artifacts. Shape (length,).

        With ``over="episode"``, T is the number of the episode's steps that can be in a history: all but its last.
        """
        whole = length if self.mix.over == "history" else episode_length - 1
        numbers = np.array([self._number(episode, step) for step in range(length)])
        return np.asarray(numbers < self._probabilities(whole)[:length])

    def to_json(self) -> dict[str, Any]:
        """The manifest's entry: the schedule with its mu, the seed, and the artifacts with their fingerprint."""
        schedule = self.mix.schedule
        return {
            "schedule": {
                "regime": schedule.regime,
                **asdict(schedule),
                "mu": schedule.mu,
                "over": self.mix.over,
            },
            "seed": self.mix.seed,
            "repeat": self.mix.repeat,
            "artifacts": {
                "directory": str(self.artifacts.directory),
                "steps": len(self.artifacts.steps),
                "pick": self.mix.pick,
                "sha256": self.artifacts.sha256,
            },
        }

    @cached_property
    def _number(self) -> Any:
        mix, schedule = self.mix, self.mix.schedule
        setting = (schedule.start, schedule.end, schedule.shape, schedule.kappa, schedule.mean, mix.over, mix.repeat)

        @lru_cache(maxsize=65536)
        def number(episode: EpisodeKey, step: int) -> float:
            return uniform(mix.seed, setting, tuple(episode), step, "mix")

        return number

    @cached_property
    def _probabilities(self) -> Any:
        return lru_cache(maxsize=4096)(self.mix.schedule.probabilities)
