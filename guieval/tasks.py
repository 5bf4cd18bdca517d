"""The records of online runs: a task in an environment, and how each repetition of it ended.

:class:`OnlineTask` is what the environment states of a task; :class:`TaskRecord` adds a run's results, as stored in a journal.
The steps that were taken are in a file next to the journal (:mod:`guieval.online.trajectory`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from guieval.actions import StopStatus
from guieval.steps import EpisodeKey, KeyRemoved, OtherUsage, StepError, StepKey, StepRecord, Usage, Verdict, total_usage

DATASET = "online"
"""The data set of all tasks, by which protocols are chosen."""

Ended: TypeAlias = Literal["success", "false completion", "wrong stop", "failed", "step limit", "unparseable"]
"""How a task ended. ``success``: so scored. ``false completion``: the model stopped it as finished, and the environment
disagrees. ``wrong stop``: the model stopped it as impossible. ``failed``: the environment ended it. ``step limit``: no step was
left. ``unparseable``: too many responses in a row had no action."""
ENDS: tuple[Ended, ...] = get_args(Ended)


class OnlineTask(BaseModel):
    """A task as its environment states it. Immutable; ``max_steps`` is the most steps of this run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    benchmark: str = Field(min_length=1, description="registered name of the environment")
    subset: str = ""
    episode_id: str = Field(min_length=1, description="id of the task")
    instruction: str = Field(description="the goal, as far as it is known before the task begins")
    max_steps: int = Field(ge=1)
    groups: dict[str, str] = Field(default_factory=dict, description="labels to report apart")

    @property
    def episode_key(self) -> EpisodeKey:
        """The key of the task."""
        return EpisodeKey(self.benchmark, self.subset, self.episode_id)

    @property
    def key(self) -> StepKey:
        """The key in plans and journals, in which a task is one unit."""
        return StepKey(*self.episode_key, 0)

    @property
    def dataset(self) -> str:
        """:data:`DATASET`."""
        return DATASET


class Score(BaseModel):
    """The score of the environment at the end of a task.

    ``progress`` is the part of the task that is done, in [0, 1]; 1 for a success. ``side_effects`` are changes that the task
    did not ask for, in words.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    success: bool
    progress: Annotated[float, Field(ge=0.0, le=1.0)]
    side_effects: tuple[str, ...] = ()
    reason: str = ""


class Outcome(BaseModel):
    """The outcome of a task: how it ended, its score, and the steps taken in the attempt that counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ended: Ended
    score: Score
    steps: int = Field(ge=0)
    attempt: int = Field(0, ge=0)
    stopped: StopStatus | None = Field(None, description="how the model stopped the task, if it did")
    unparseable: int = Field(0, ge=0, description="responses that had no action")
    unsupported: int = Field(0, ge=0, description="actions that the environment cannot carry out")
    screenshot: str | None = Field(None, description="the last screen, relative to the run directory")

    @property
    def verdict(self) -> Verdict:
        """The outcome as the verdict of a step."""
        return "right" if self.score.success else "unparseable" if self.ended == "unparseable" else "wrong"


class Repetition(BaseModel):
    """One repetition of a task: its ``outcome``, or the ``error`` for which it has none.

    ``usage`` and ``seconds`` are sums over the responses of all its attempts, ``usage`` without those in ``other_usage``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    outcome: Outcome | None = None
    error: StepError | None = None
    usage: Usage | None = None
    other_usage: OtherUsage = ()
    seconds: float | None = None
    key_removed: KeyRemoved = False

    @property
    def answered(self) -> bool:
        """Whether it has an outcome."""
        return self.outcome is not None

    @property
    def verdict(self) -> Verdict:
        """How it counts among the verdicts of steps."""
        return "infrastructure_failure" if self.outcome is None else self.outcome.verdict

    @property
    def responses(self) -> tuple[Usage | None, ...]:
        """What was paid for it: the sum as one usage, then the others."""
        received = self.outcome is not None or self.usage is not None
        return (*((self.usage,) if received else ()), *self.other_usage)

    @property
    def paid(self) -> Usage | None:
        """The tokens of all its :attr:`responses`; ``None`` if none states any."""
        return total_usage(self.responses)


class TaskRecord(BaseModel):
    """A task and its repetitions: one line of ``tasks.jsonl``. ``environment`` is the version of the environment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    environment: str = ""
    task: OnlineTask
    samples: tuple[Repetition, ...] = Field(min_length=1, description="the repetitions")
    earlier: tuple[int, ...] = Field((), description="indices of repetitions that an earlier record of the task also has")
    models: tuple[str, ...] = Field((), description="model names that the responses report, without repetitions")

    @model_serializer(mode="wrap")
    def _without_empty_fields(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: Mapping[str, Any] = whole(self)
        return {name: value for name, value in values.items() if name not in ("earlier", "models") or value}

    @property
    def finished(self) -> bool:
        """Whether every repetition has an outcome, so that a resume skips the task."""
        return all(sample.answered for sample in self.samples)

    @property
    def billed(self) -> tuple[Repetition, ...]:
        """The repetitions, which together are what the task cost."""
        return self.samples

    @property
    def verdict(self) -> Verdict:
        """That of the first repetition."""
        return self.samples[0].verdict

    @property
    def exact(self) -> bool:
        """Whether the first repetition is a success."""
        return self.verdict == "right"


Record: TypeAlias = StepRecord | TaskRecord
"""One line of a journal."""
