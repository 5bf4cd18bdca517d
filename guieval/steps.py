"""The records: one step of an episode as the benchmark gives it, and what a run adds to it.

:class:`StepTaskModel` is immutable metadata; :class:`StepRecord` is a step plus its runtime artifacts (samples, history
sources) as it stands in a journal. Both are one JSON line each way and need no plug-in to be read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from guieval.actions import Action, Boxes
from guieval.errors import DataError, first_problem

Setting: TypeAlias = Literal["high", "low", "grounding"]
Verdict: TypeAlias = Literal["right", "wrong", "unparseable", "unsupported", "infrastructure_failure"]
VERDICTS: tuple[Verdict, ...] = ("right", "wrong", "unparseable", "unsupported", "infrastructure_failure")
HistoryOrigin: TypeAlias = Literal["reference", "model"]
PatchedBy: TypeAlias = Literal["thought-free", "off-policy", "on-policy"]


class StepKey(NamedTuple):
    """What names a step within everything one run can hold."""

    benchmark: str
    subset: str
    episode_id: str
    step_index: int

    def __str__(self) -> str:
        subset = f"{self.subset}/" if self.subset else ""
        return f"{self.benchmark}/{subset}{self.episode_id}#{self.step_index}"


class EpisodeKey(NamedTuple):
    """What names an episode within everything one run can hold."""

    benchmark: str
    subset: str
    episode_id: str

    def __str__(self) -> str:
        return "/".join(part for part in self if part)


Plan: TypeAlias = Mapping[EpisodeKey, Sequence[int]]
"""What a run sets out to do: for every episode the indices of the steps that count, ascending (``range(n)`` for all n)."""


class StepTaskModel(BaseModel):
    """One step to be decided: what the agent may see, and the label it is compared with. Immutable.

    Coordinates (``action``, ``alternatives``, ``boxes``) are unified, [0, 1000] per axis. ``boxes`` holds whatever
    rectangles the benchmark publishes for the step (candidate or layout boxes); a protocol says how they count.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    benchmark: str = Field(min_length=1, description="registered name of the benchmark the step was loaded by")
    dataset: str = Field(min_length=1, description="data set behind it; protocols choose their rule variant by this")
    subset: str = ""
    split: str = "test"
    episode_id: str = Field(min_length=1)
    step_index: int = Field(ge=0, description="position within the episode, from 0 without gaps")
    episode_length: int = Field(ge=1)
    setting: Setting = Field("high", description="what the agent is told: the goal, the step's instruction, or a target")
    instruction: str = Field(description="the episode's goal, or the grounding query")
    low_level_instruction: str | None = Field(None, description="what to do at this step, where the benchmark says it")
    screenshot: str = Field(description="path, relative to the benchmark's data folder, opened only when used")
    screenshot_size: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]] = Field(
        description="(width, height) in pixels"
    )
    action: Action = Field(description="reference action")
    alternatives: tuple[Action, ...] = Field((), description="further actions that are as right as the reference")
    boxes: Boxes = Field(default_factory=Boxes)
    groups: dict[str, str] = Field(default_factory=dict, description="labels to report apart, e.g. platform, element")
    extras: dict[str, Any] = Field(
        default_factory=dict,
        description="whatever else the benchmark publishes, JSON only. Rules read text_patterns (regular expressions that "
        "accept a typed text), polygon (corners of the target in [0, 1000]) and direction_label (a scroll's published word)",
    )

    @model_validator(mode="after")
    def _index_within_episode(self) -> StepTaskModel:
        if self.step_index >= self.episode_length:
            raise ValueError(f"step_index {self.step_index} is not below episode_length {self.episode_length}")
        return self

    @property
    def key(self) -> StepKey:
        """The step's name."""
        return StepKey(self.benchmark, self.subset, self.episode_id, self.step_index)

    @property
    def episode_key(self) -> EpisodeKey:
        """The name of the episode the step belongs to."""
        return EpisodeKey(self.benchmark, self.subset, self.episode_id)


class Episode(BaseModel):
    """A whole reference trajectory: its steps in order, without gaps."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: tuple[StepTaskModel, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _steps_belong_together(self) -> Episode:
        first = self.steps[0]
        for index, step in enumerate(self.steps):
            if step.episode_key != first.episode_key:
                raise ValueError(f"steps.{index} belongs to episode {step.episode_key}, not to {first.episode_key}")
            if step.step_index != index or step.episode_length != len(self.steps):
                raise ValueError(
                    f"steps.{index} says it is step {step.step_index} of {step.episode_length}, "
                    f"not {index} of {len(self.steps)}"
                )
        return self

    @property
    def key(self) -> EpisodeKey:
        """The episode's name."""
        return self.steps[0].episode_key

    def __len__(self) -> int:
        return len(self.steps)


class StepOutcome(BaseModel):
    """What one protocol says of one answer.

    ``distance`` is the Euclidean distance to the reference point in thousandths of the screen (both axes scaled to
    [0, 1000]); ``text_similarity`` is the normalised Levenshtein similarity in [0, 1]. Both are ``None`` where they have
    no meaning. ``reason`` says in words why the verdict is what it is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    verdict: Verdict
    type_match: bool = False
    exact_match: bool = False
    distance: float | None = None
    text_similarity: float | None = None
    reason: str = ""


class StepError(BaseModel):
    """Where an answer got lost: ``stage`` is screenshot, prepare, generate or parse; ``message`` is one sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: Literal["screenshot", "prepare", "generate", "parse"]
    message: str


class Usage(BaseModel):
    """What a request cost, as the server tells it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Sample(BaseModel):
    """One answer of the model to one step. ``raw_response`` is ``None`` when there was none (infrastructure failure)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    raw_response: str | None = None
    reasoning: str | None = Field(None, description="text the server's reasoning parser took out of the reply")
    thought: str | None = None
    conclusion: str | None = None
    action: Action | None = None
    error: StepError | None = None
    outcome: StepOutcome
    usage: Usage | None = None
    finish_reason: str | None = None
    seconds: float | None = Field(None, description="from sending the request to its whole answer; not compared")
    attempts: int = 1
    logprob: float | None = Field(None, description="mean natural log-probability of the reply's tokens, where asked for")


class Patch(BaseModel):
    """What took the place of a mismatched answer in the history: the reference action, with ``thought`` where one was written.

    ``usage`` is what the request for the thought cost.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: PatchedBy
    thought: str | None = None
    usage: Usage | None = None


class StepRecord(BaseModel):
    """A step, what the model was shown of the past, and what it answered: one line of a journal."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: StepTaskModel
    history: tuple[HistoryOrigin, ...] = Field((), description="where each past step in the prompt came from, in order")
    samples: tuple[Sample, ...] = Field(min_length=1)
    patch: Patch | None = Field(None, description="what later steps see of this one, where its mismatch was patched")

    @model_serializer(mode="wrap")
    def _without_empty_patch(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A line says nothing of patches where there is none: it is the one that was written before there were patches."""
        values: dict[str, Any] = whole(self)
        if self.patch is None:
            values.pop("patch", None)
        return values

    @property
    def sample(self) -> Sample:
        """The first sample, which step metrics score."""
        return self.samples[0]

    @property
    def finished(self) -> bool:
        """Whether every sample was really answered, so that a resume need not ask again."""
        return all(sample.outcome.verdict != "infrastructure_failure" for sample in self.samples)


def validated(model: type[BaseModel], text: str | bytes, *, file: Path | str, line: int) -> Any:
    """Parse one JSON line into ``model``; a :class:`DataError` names file, line and field when it does not fit."""
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        problem = first_problem(error)
        field = problem.field or "(whole line)"
        raise DataError(f"{file}, line {line}, field {field}: {problem.said} (got {problem.value!r:.80})") from None


def read_lines(model: type[BaseModel], file: Path) -> Iterator[Any]:
    """Yield every line of a JSONL file as ``model``, lazily; blank lines are skipped. Raises :class:`DataError`."""
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")  # the byte-order mark some editors write
            if line.strip():
                yield validated(model, line, file=file, line=number)


def pattern_problem(pattern: str) -> str | None:
    """Why a text is no regular expression for ``extras["text_patterns"]``, in one clause; ``None`` when it is one."""
    import re

    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:  # the last two: a count or a depth beyond the machine's
        return f"{pattern!r:.80} is no regular expression: {error}"
    return None


def whole_text(text: str) -> str:
    """The text with half surrogate pairs (an emoji cut in two) replaced, for no file can hold them; halves that meet join."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
