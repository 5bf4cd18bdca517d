"""The records: one step of an episode as the benchmark provides it, and the same step with the results of a run; tasks online.

:class:`StepTaskModel` is immutable metadata; :class:`StepRecord` adds a run's results (samples, history sources), as stored
in a journal. Both are written as one JSON line and can be read without their plug-in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import not_
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeAlias, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from guieval.actions import Action, Boxes, Frozen, StopStatus
from guieval.errors import BOXES_DIVIDED, DataError, first_problem

Setting: TypeAlias = Literal["high", "low", "grounding"]
Verdict: TypeAlias = Literal["right", "wrong", "unparseable", "unsupported", "infrastructure_failure"]
Model = TypeVar("Model", bound=BaseModel)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
HistoryOrigin: TypeAlias = Literal["reference", "model"]
PatchedBy: TypeAlias = Literal["thought-free", "off-policy", "on-policy"]

_Side: TypeAlias = Annotated[int, Field(ge=1)]
MOST_TOKENS = 10**9
"""Larger counts for one request are treated as unknown."""
LOWEST_LOGPROB, HIGHEST_LOGPROB = -9999.0, 0.01
"""vLLM's server writes lower values as the first, since JSON has no infinity; rounding can exceed 0 slightly."""


def known_count(value: Any) -> int | None:
    """A token count that is possible for one request; ``None`` (unknown) for anything else."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


def known_logprob(value: Any) -> float | None:
    """A possible natural log-probability of a token; ``None`` for anything else."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and LOWEST_LOGPROB <= value <= HIGHEST_LOGPROB else None


# checked on the record and not on the server's response, so that journals of older versions are checked too
TokenCount: TypeAlias = Annotated[int | None, BeforeValidator(known_count)]
LogProbability: TypeAlias = Annotated[float | None, BeforeValidator(known_logprob)]


def _rare(default: Any, description: str) -> Any:
    """A field that a line has only if it is not empty, as in earlier versions."""
    return Field(default, description=description, exclude_if=not_)


class StepKey(NamedTuple):
    """Identifies a step within a run."""

    benchmark: str
    subset: str
    episode_id: str
    step_index: int

    def __str__(self) -> str:
        subset = f"{self.subset}/" if self.subset else ""
        return f"{self.benchmark}/{subset}{self.episode_id}#{self.step_index}"


class EpisodeKey(NamedTuple):
    """Identifies an episode within a run."""

    benchmark: str
    subset: str
    episode_id: str

    def __str__(self) -> str:
        return "/".join(part for part in self if part)


Plan: TypeAlias = Mapping[EpisodeKey, Sequence[int]]
"""The steps that a run evaluates: for every episode their indices, ascending (``range(n)`` for all n)."""
ReferenceTypes: TypeAlias = Mapping[EpisodeKey, Mapping[int, str]]
"""The reference action types of a plan's steps, by step index; steps with an unknown type are left out."""


class Perturbation(Frozen):
    """What was drawn into a step's screenshot (:mod:`guieval.perturbed`); boxes in thousandths of the screen."""

    variant: str = Field(description="the kind, or its neutral box")
    skipped: str = _rare("", "why nothing was drawn on this step")
    lure: Boxes = Field(default_factory=Boxes, description="where a click follows the distractor")
    close: Boxes = Field(default_factory=Boxes, description="what closes the distractor")
    obeys: Action | None = Field(None, description="the action that the distractor's text asks for")
    clean: str = Field(description="the screenshot without it")
    clean_size: tuple[int, int] = Field(description="(width, height) of that in pixels")


class StepTaskModel(Frozen):
    """One step to predict: the inputs of the agent, and the label it is compared with. Immutable.

    Coordinates (``action``, ``alternatives``, ``targets``, ``elements``) are unified, [0, 1000] per axis. A box of
    ``elements`` may be around the reference too, in data that lists a screen's elements and does not say which is the target.
    """

    benchmark: str = Field(min_length=1, description="registered name of the benchmark that loaded the step")
    dataset: str = Field(min_length=1, description="underlying data set; protocols choose their rule variant by it")
    subset: str = ""
    split: str = "test"
    episode_id: str = Field(min_length=1)
    step_index: int = Field(ge=0, description="position within the episode, from 0 without gaps")
    episode_length: int = Field(ge=1)
    setting: Setting = Field("high", description="what the agent is given: the goal, the step's instruction, or a target")
    instruction: str = Field(description="the episode's goal, or the grounding query")
    low_level_instruction: str | None = Field(None, description="what to do at this step, if the benchmark provides it")
    screenshot: str = Field(description="path, relative to the benchmark's data folder, opened only when used")
    screenshot_size: tuple[_Side, _Side] = Field(description="(width, height) in pixels")
    action: Action = Field(description="reference action")
    alternatives: tuple[Action, ...] = Field((), description="further actions that count as right, like the reference")
    targets: Boxes = Field(default_factory=Boxes, description="boxes where a right click may land")
    elements: Boxes = Field(default_factory=Boxes, description="boxes of what else is on the screen")
    groups: dict[str, str] = Field(default_factory=dict, description="labels to report apart, e.g. platform, element")
    perturbation: Perturbation | None = _rare(None, "what was drawn into the screenshot, and where")
    extras: dict[str, Any] = Field(
        default_factory=dict,
        description="other published data of the step, JSON only. Rules read text_patterns (regular expressions that "
        "accept a typed text), polygon (corners of the target in [0, 1000]) and direction_label (a scroll's published word)",
    )

    def __new__(cls, **values: Any) -> Self:
        """Refuse ``boxes`` by name; not a validator before all others, which would cost every record that is read."""
        if "boxes" in values:
            raise ValueError(f"boxes {BOXES_DIVIDED}")
        return super().__new__(cls)

    @model_validator(mode="after")
    def _index_within_episode(self) -> StepTaskModel:
        if self.step_index >= self.episode_length:
            raise ValueError(f"step_index {self.step_index} is not below episode_length {self.episode_length}")
        return self

    @property
    def key(self) -> StepKey:
        return StepKey(self.benchmark, self.subset, self.episode_id, self.step_index)

    @property
    def episode_key(self) -> EpisodeKey:
        return EpisodeKey(self.benchmark, self.subset, self.episode_id)

    @property
    def boxes_of_screen(self) -> Boxes:
        return self.targets + self.elements


class Episode(Frozen):
    """A whole reference trajectory: its steps in order, without gaps."""

    steps: tuple[StepTaskModel, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _steps_belong_together(self) -> Episode:
        first = self.steps[0]
        for index, step in enumerate(self.steps):
            if step.episode_key != first.episode_key:
                raise ValueError(f"steps.{index} belongs to episode {step.episode_key}, not to {first.episode_key}")
            if step.step_index != index or step.episode_length != len(self.steps):
                given, expected = f"{step.step_index} of {step.episode_length}", f"{index} of {len(self.steps)}"
                raise ValueError(f"steps.{index} is step {given}, expected {expected}")
        return self

    @property
    def key(self) -> EpisodeKey:
        return self.steps[0].episode_key

    def __len__(self) -> int:
        return len(self.steps)


class StepOutcome(Frozen):
    """The score of one answer under one protocol.

    ``distance`` is the Euclidean distance to the reference point in thousandths of the screen (both axes scaled to
    [0, 1000]); ``text_similarity`` is the normalised Levenshtein similarity in [0, 1]. Both are ``None`` if they do
    not apply. ``reason`` explains the verdict.
    """

    verdict: Verdict
    type_match: bool = False
    exact_match: bool = False
    distance: float | None = None
    text_similarity: float | None = None
    reason: str = ""


Stage: TypeAlias = Literal["screenshot", "prepare", "generate", "parse", "adapter", "environment"]
"""Where a step failed. ``adapter``: a fault in the adapter's own code, whatever it was doing."""


class StepError(Frozen):
    """Where a step failed, and why in one sentence."""

    stage: Stage
    message: str


class Usage(Frozen):
    """The token usage of a request, as reported by the server; impossible counts are treated as unknown."""

    prompt_tokens: TokenCount = None
    completion_tokens: TokenCount = None
    model: str | None = _rare(None, "of a composition: the checkpoint that answered")

    @property
    def stated(self) -> bool:
        return self.prompt_tokens is not None or self.completion_tokens is not None

    @property
    def whole(self) -> bool:
        return self.prompt_tokens is not None and self.completion_tokens is not None


_REST = "of the other responses that were received and paid for: attempts that could not be used, looks of a computer-use model"
OtherUsage: TypeAlias = Annotated[tuple[Usage, ...], Field(exclude_if=not_, description=_REST)]
_KEY = "the response held the API key, which was removed from it"
KeyRemoved: TypeAlias = Annotated[bool, Field(exclude_if=not_, description=_KEY)]


def total_usage(usages: Iterable[Usage | None]) -> Usage | None:
    """The tokens of several responses, each count over those that state it; ``None`` if none states any."""
    known = [usage for usage in usages if usage is not None]
    prompts = [usage.prompt_tokens for usage in known if usage.prompt_tokens is not None]
    completions = [usage.completion_tokens for usage in known if usage.completion_tokens is not None]
    total = Usage(prompt_tokens=sum(prompts) if prompts else None, completion_tokens=sum(completions) if completions else None)
    return total if total.stated else None


def usage_by_model(usages: Iterable[Usage | None]) -> dict[str, Usage]:
    """The tokens of a composition's responses, a sum for each of its models that states any; of one model none."""
    known = [usage for usage in usages if usage is not None]
    sums = {name: total_usage(each for each in known if each.model == name) for name in (each.model for each in known) if name}
    return {name: usage.model_copy(update={"model": name}) for name, usage in sums.items() if usage is not None}


class Sample(Frozen):
    """One answer of the model to one step. ``raw_response`` is ``None`` after an infrastructure failure.

    ``usage`` is that of the response that counted; :attr:`paid` adds those of the others.
    """

    raw_response: str | None = None
    reasoning: str | None = Field(None, description="text that the server's reasoning parser removed from the response")
    thought: str | None = None
    conclusion: str | None = None
    action: Action | None = None
    batch: tuple[Action, ...] = _rare((), "all actions of a response with several; the first is scored")
    stage: str = _rare("", "of a composition: whose place counts, and why not the next one's")
    error: StepError | None = None
    outcome: StepOutcome
    usage: Usage | None = None
    other_usage: OtherUsage = ()
    finish_reason: str | None = None
    seconds: float | None = Field(None, description="from sending the request to the end of its answer; not compared")
    attempts: int = 1
    logprob: LogProbability = Field(None, description="mean natural log-probability of the response's tokens, if requested")
    in_reasoning: bool = _rare(False, "the text was empty, and the reasoning was read in its place")
    key_removed: KeyRemoved = False
    right_under: str = _rare("", "imported: the protocol under which its source found it right, without keeping the response")

    @property
    def actions(self) -> tuple[Action, ...]:
        """The actions of the response in order; empty if it has none."""
        return self.batch or (() if self.action is None else (self.action,))

    @property
    def responses(self) -> tuple[Usage | None, ...]:
        """The usage of every response that was received and paid for it, whether its server stated that or not."""
        received = self.raw_response is not None or self.usage is not None
        return (*((self.usage,) if received else ()), *self.other_usage)

    @property
    def paid(self) -> Usage | None:
        """The tokens of all its :attr:`responses`; ``None`` if none states any."""
        return total_usage(self.responses)

    @property
    def answered(self) -> bool:
        return self.outcome.verdict != "infrastructure_failure"


class Patch(Frozen):
    """Replaces a mismatched answer in the history: the reference action, with ``thought`` if one was generated.

    ``usage`` is the token usage of the request for the thought, ``other_usage`` that of attempts at it that could not be used.
    """

    method: PatchedBy
    thought: str | None = None
    usage: Usage | None = None
    other_usage: OtherUsage = ()

    @property
    def responses(self) -> tuple[Usage | None, ...]:
        """The usage of every response of the policy to it; those of an auxiliary model (off-policy) have another price."""
        if self.method != "on-policy":
            return ()
        received = self.thought is not None or self.usage is not None
        return (*((self.usage,) if received else ()), *self.other_usage)


class StepRecord(Frozen):
    """A step, the origin of its history, and the model's answers: one line of a journal."""

    task: StepTaskModel
    history: tuple[HistoryOrigin, ...] = Field((), description="origin of each past step in the prompt, in order")
    samples: tuple[Sample, ...] = Field(min_length=1)
    retried: tuple[Sample, ...] = _rare((), "mode sop-retry: the wrong responses to the screen before, in order")
    patch: Patch | None = _rare(None, "what later steps see of this one, if its mismatch was patched")
    earlier: tuple[int, ...] = _rare((), "indices of samples that an earlier record of the step also has")
    models: tuple[str, ...] = _rare((), "model names that the responses report, without repetitions")
    screen: tuple[int, str] | None = _rare(None, "the screenshot sent: bytes of its file, first 16 digits of its SHA-256")

    @property
    def sample(self) -> Sample:
        return self.samples[0]

    @property
    def billed(self) -> tuple[Sample, ...]:
        """The samples, the first with the responses of earlier tries and of the step's patch too: what the step cost."""
        besides = [usage for each in (*self.retried, self.patch) if each is not None for usage in each.responses]
        if not besides:
            return self.samples
        others = (*self.sample.other_usage, *(usage or Usage() for usage in besides))
        return (self.sample.model_copy(update={"other_usage": others}), *self.samples[1:])

    @property
    def verdict(self) -> Verdict:
        return self.sample.outcome.verdict

    @property
    def exact(self) -> bool:
        return self.sample.outcome.exact_match

    @property
    def finished(self) -> bool:
        """Whether every sample was answered, so that a resume skips the step."""
        return all(sample.answered for sample in self.samples)


DATASET = "online"
"""The data set of all tasks, by which protocols are chosen."""

Ended: TypeAlias = Literal[
    "success", "false completion", "wrong stop", "failed", "step limit", "unparseable", "loop", "not judged"
]
"""How a task ended. ``success``: so scored. ``false completion``: the model stopped it as finished, and the environment
disagrees. ``wrong stop``: the model stopped it as impossible. ``failed``: the environment ended it. ``step limit``: no step was
left. ``unparseable``: too many responses in a row had no action. ``loop``: the model repeated itself as often as its scaffold
allows. ``not judged``: the model stopped it, and its environment has no judge."""
ENDS: tuple[Ended, ...] = get_args(Ended)
SEVERAL = ", "
"""Between the values of a label of a task that has several, e.g. tags or apps: the task counts under each of them."""


class OnlineTask(Frozen):
    """A task as its environment states it. Immutable; ``max_steps`` is the most steps of this run."""

    benchmark: str = Field(min_length=1, description="registered name of the environment")
    subset: str = ""
    episode_id: str = Field(min_length=1, description="id of the task")
    instruction: str = Field(description="the goal, as far as it is known before the task begins")
    max_steps: int = Field(ge=1)
    groups: dict[str, str] = Field(default_factory=dict, description="labels to report apart")

    @property
    def episode_key(self) -> EpisodeKey:
        """What the task is called in tables of episodes."""
        return EpisodeKey(self.benchmark, self.subset, self.episode_id)

    @property
    def key(self) -> StepKey:
        """The key in plans and journals, in which a task is one unit."""
        return StepKey(*self.episode_key, 0)

    @property
    def dataset(self) -> str:
        return DATASET


class Score(Frozen):
    """The score of the environment at the end of a task.

    ``progress`` is the part of the task that is done, in [0, 1]; the reward, if an environment gives one. ``side_effects`` are
    changes that the task did not ask for, in words.
    """

    success: bool
    progress: Annotated[float, Field(ge=0.0, le=1.0)]
    side_effects: tuple[str, ...] = ()
    reason: str = ""
    needs_stop: bool = _rare(False, "by the environment's own rule a task is a success only if the model ended it")
    unjudged: bool = _rare(False, "the environment has no judge, so the task counts in neither success nor progress")
    counts: dict[str, float] = _rare({}, "what the environment counted besides, by name")

    @classmethod
    def of_reward(cls, reward: float, *, success: bool, reason: str) -> Self:
        """The score of an environment that gives a reward; one above 1 or below 0 is cut off."""
        return cls(success=success, progress=min(1.0, max(0.0, reward)), reason=reason)


class Outcome(Frozen):
    """The outcome of a task: how it ended, its score, and the steps taken in the attempt that counts."""

    ended: Ended
    score: Score
    steps: int | None = Field(ge=0, description="unknown of some imported runs")
    attempt: int = Field(0, ge=0)
    stopped: StopStatus | None = Field(None, description="how the model stopped the task, if it did")
    unparseable: int = Field(0, ge=0, description="responses that had no action")
    unsupported: int = Field(0, ge=0, description="actions that the environment cannot carry out")
    screenshot: str | None = Field(None, description="the last screen, relative to the run directory")

    @property
    def verdict(self) -> Verdict:
        return "right" if self.score.success else "unparseable" if self.ended == "unparseable" else "wrong"


class Repetition(Frozen):
    """One repetition of a task: its ``outcome``, or the ``error`` for which it has none.

    ``usage`` and ``seconds`` are sums over the responses of all its attempts, ``usage`` without those in ``other_usage``.
    """

    outcome: Outcome | None = None
    error: StepError | None = None
    usage: Usage | None = None
    usage_by_model: tuple[Usage, ...] = _rare((), "of a composition: usage, a sum for each of its models")
    other_usage: OtherUsage = ()
    seconds: float | None = None
    key_removed: KeyRemoved = False

    @property
    def answered(self) -> bool:
        return self.outcome is not None

    @property
    def verdict(self) -> Verdict:
        """How it counts among the verdicts of steps."""
        return "infrastructure_failure" if self.outcome is None else self.outcome.verdict

    @property
    def responses(self) -> tuple[Usage | None, ...]:
        """What was paid for it: the sum as one usage (of a composition, one for each model), then the others."""
        received = self.outcome is not None or self.usage is not None
        return (*((self.usage_by_model or (self.usage,)) if received else ()), *self.other_usage)

    @property
    def paid(self) -> Usage | None:
        """The tokens of all its :attr:`responses`; ``None`` if none states any."""
        return total_usage(self.responses)


class TaskRecord(Frozen):
    """A task and its repetitions: one line of ``tasks.jsonl``. ``environment`` is the version of the environment."""

    environment: str = ""
    task: OnlineTask
    samples: tuple[Repetition, ...] = Field(min_length=1, description="the repetitions")
    earlier: tuple[int, ...] = _rare((), "indices of repetitions that an earlier record of the task also has")
    models: tuple[str, ...] = _rare((), "model names that the responses report, without repetitions")

    @property
    def finished(self) -> bool:
        """Whether every repetition has an outcome, so that a resume skips the task."""
        return all(sample.answered for sample in self.samples)

    @property
    def billed(self) -> tuple[Repetition, ...]:
        return self.samples

    @property
    def verdict(self) -> Verdict:
        return self.samples[0].verdict

    @property
    def exact(self) -> bool:
        return self.verdict == "right"


def faulty(sample: Sample | Repetition) -> bool:
    """Whether it failed by a fault in the adapter's code, which is neither the model's failure nor the server's."""
    return sample.error is not None and sample.error.stage == "adapter"


Record: TypeAlias = StepRecord | TaskRecord
"""One line of a journal."""


def validated(model: type[Model], text: str | bytes, *, file: Path | str, line: int) -> Model:
    """Parse one JSON line into ``model``; a :class:`DataError` names file, line and field when it does not fit."""
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        problem = first_problem(error, model)
        field = f", field {problem.field}" if problem.path else ""
        raise DataError(f"{file}, line {line}{field}: {problem.sentence}") from None
