"""The groups of settings of a training, and what is said of an invalid one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, model_validator

from guieval.errors import UsageError, first_problem, nearest
from guieval.history.modes import PatchMethod, PatchPolicy
from guieval.models import ABCModel
from guieval.models.scaffold import OF_TASKS
from guieval.registry import build_model, model_config
from guieval.rewards.overlong import Overlong
from guieval.rewards.response import ResponseScorer
from guieval.rewards.shapes import weighed
from guieval.settings import Group
from guieval.settings.sampling import GREEDY, UNKNOWN_SAMPLING, check_sampling
from guieval.steps import Outcome


def one_or_more(value: Any) -> Any:
    """A text is a tuple of one."""
    return (value,) if isinstance(value, str) else value


def pattern(value: str | None) -> str | None:
    """Refuse what is no regular expression."""
    try:
        re.compile(value or "")
    except (re.error, OverflowError, RecursionError) as error:  # the last two: a count or a depth beyond the machine's
        raise ValueError(f"{value!r:.80} is not a regular expression: {error}") from None
    return value


class Lora(Group):
    """Low-rank adapters in place of training all weights (peft's LoraConfig)."""

    r: int = Field(16, ge=1, description="rank")
    alpha: int = Field(32, ge=1, description="scale is alpha / r")
    dropout: float = Field(0.0, ge=0, lt=1)
    targets: Annotated[tuple[str, ...], BeforeValidator(one_or_more)] = Field(
        ("all-linear",), min_length=1, description="names of the modules, or all-linear"
    )
    exclude: str | None = Field(
        r".*(visual|vision_tower|vision_model)\..*", description="regular expression of modules left alone: the vision tower"
    )


class OverlongSettings(Group):
    """DAPO's soft punishment of long responses (guieval.rewards.overlong)."""

    cache: int = Field(ge=1, description="number of tokens before the longest response at which the punishment begins")
    longest: int | None = Field(
        None, ge=1, description="tokens with the full punishment; the longest response that is generated when not given"
    )
    penalty: float = Field(1.0, gt=0, allow_inf_nan=False, description="the full punishment")

    def rule(self, generated: int) -> Overlong:
        """The punishment if responses of at most ``generated`` tokens are generated."""
        return Overlong(self.longest or generated, self.cache, self.penalty)


class RewardSettings(Group):
    """Which reward a response earns, under which protocol and with which weights."""

    name: str = Field("ui-s1", description="registered reward (guieval.rewards.shapes)")
    protocol: str | None = Field(None, description="protocol that judges; the reward's own when not given")
    weights: dict[str, float] = Field(default_factory=dict, description="weights of its parts over its own")
    overlong: OverlongSettings | None = Field(None, description="punishment of long responses, as DAPO's")

    def open_scorer(self, model: ABCModel, generated: int) -> ResponseScorer:
        """The scorer of responses of ``model``, of at most ``generated`` tokens."""
        overlong = None if self.overlong is None else self.overlong.rule(generated)
        return ResponseScorer(model, weighed(self.name, self.protocol, self.weights), overlong=overlong)


class RewardWatchSettings(Group):
    """Watches whether the reward is gamed (guieval.training.reward_watch)."""

    every: int = Field(10, ge=1, description="optimiser steps between two checks")
    window: int = Field(3, ge=1, description="number of checks at the beginning and at the end that are compared")
    apart: float = Field(
        0.15,
        gt=0,
        lt=1,
        description="warn when the reward, as a share of its highest value, gains more than this above exact match",
    )


class DynamicSampling(Group):
    """Replaces groups whose rollouts do not differ by other groups (DAPO; UI-S1 section 3.4)."""

    eta: float = Field(
        0.0,
        ge=0,
        allow_inf_nan=False,
        description="a group is kept when the standard deviation of its rewards (grpo) or advantages (semi-online) is above",
    )
    most_draws: int = Field(3, ge=1, description="generation batches drawn at most for one, the first included")


class ThoughtServer(Group):
    """An OpenAI-compatible server of the auxiliary model that writes the thoughts of off-policy patches."""

    base_urls: Annotated[tuple[str, ...], BeforeValidator(one_or_more)] = Field(
        min_length=1, description="base URLs, e.g. http://host:8000/v1"
    )
    model: str = Field(min_length=1, description="name of the model there")
    api_key_env: str = Field("PATCH_API_KEY", description="environment variable with the key, if the server requires one")
    timeout: float = Field(120.0, gt=0, allow_inf_nan=False, description="seconds of one try")
    max_attempts: int = Field(5, ge=1, description="tries for each thought")
    patience: float = Field(300.0, ge=0, allow_inf_nan=False, description="seconds to wait for a server that is away")
    sampling: Annotated[dict[str, Any], AfterValidator(check_sampling)] = Field(
        default_factory=dict, description="request parameters (`guieval dev help-config sampling`)"
    )


class RolloutSettings(Group):
    """How a semi-online rollout continues after a mismatch (UI-S1 3.2, Algorithm 1)."""

    patch: PatchMethod = Field("thought-free", description="none, thought-free, off-policy or on-policy")
    budget: int | None = Field(
        1, ge=0, description="patches a rollout may use (the paper's epsilon); null: as many as it needs"
    )
    thoughts: str | None = Field(
        None, description='off-policy: JSONL file of {"step": BENCHMARK/[SUBSET/]EPISODE#INDEX, "thought": TEXT} lines'
    )
    server: ThoughtServer | None = Field(
        None, description="off-policy: the server that writes the thoughts, in place of a file"
    )

    @model_validator(mode="after")
    def _has_its_thoughts(self) -> RolloutSettings:
        given = [name for name in ("thoughts", "server") if getattr(self, name) is not None]
        if self.patch == "off-policy" and len(given) != 1:
            raise ValueError(
                'patch off-policy needs either \'rollout.thoughts\', a JSONL file of {"step": ..., "thought": ...} lines, or '
                "'rollout.server', the model that writes them" + (", and both are given" if given else "")
            )
        if self.patch != "off-policy" and given:
            raise ValueError(f"{given[0]} is for patch off-policy, and patch is {self.patch!r}: remove one of them")
        return self

    def policy(self) -> PatchPolicy:
        return PatchPolicy(self.patch, self.budget)


class Evaluation(Group):
    """Evaluates held-out episodes at intervals; values that are not given are the training's."""

    every: int = Field(1, ge=1, description="optimiser steps between two evaluations; one is made before the first step too")
    at_start: bool = Field(True, description="whether the weights are evaluated before the first step")
    sidecar: bool = Field(
        False,
        description="leave it to `guieval train evaluate OUT`, which evaluates checkpoints in a process of its own",
    )
    mode: str | None = Field(None, description="mode of the evaluation; sop when not given, and online in kind online")
    split: str | None = Field(None, description="split, or all; test if the data has one, when not given")
    bench: str | None = None
    bench_options: dict[str, Any] | None = None
    data: str | None = None
    subset: Annotated[tuple[str, ...], BeforeValidator(one_or_more)] = ()
    sample_set: str | None = Field(None, min_length=1, description="the steps of this set: its name, or a .json file")
    episodes: str | None = Field(None, description="file that lists the episodes")
    limit: int | None = Field(None, ge=1, description="number of episodes in a seeded sample")
    seed: int = Field(0, ge=0)
    protocol: str | None = None
    sampling: Annotated[dict[str, Any], AfterValidator(check_sampling)] = Field(
        default_factory=lambda: dict(GREEDY), description="request parameters over the checkpoint's own"
    )


class AdapterSettings(Group):
    """The model family that writes the prompts and reads the responses."""

    model: str = Field(min_length=1, description="checkpoint name (`guieval models`), which decides how it is asked and read")
    adapter: str | None = Field(None, description="model family, or a Python file, of an unlisted checkpoint")
    scaffold: str | None = Field(None, description="name or YAML file of its settings; the checkpoint's default when not given")
    model_options: dict[str, Any] = Field(
        default_factory=dict, description="adapter options over the checkpoint's, e.g. max_images"
    )
    thinking: bool | None = None

    def open_adapter(self) -> ABCModel:
        """The adapter, with ``model_options`` over the checkpoint's own. Raises :class:`UsageError` for an unknown name."""
        checkpoint = model_config(self.model, self.adapter, self.scaffold)
        if checkpoint.engine == "local":
            raise UsageError(f"model {self.model!r} answers by itself and has no weights to train")
        if unused := [name for name in (*OF_TASKS, "retries", "encoding") if name in checkpoint.scaffold.acts]:
            raise UsageError(
                f"scaffold {checkpoint.scaffold.name!r} sets {' and '.join(unused)}, which trainings do not follow: they take "
                "prompt, images, history, options and thinking of a scaffold"
            )
        options = {**checkpoint.options, **self.model_options}
        if staged := [name for name in ("grounder", "zoom") if options.get(name) is not None]:
            raise UsageError(
                f"a training is of one model with one response to a step: leave out the {' and the '.join(staged)}"
            )
        return build_model(checkpoint.model_copy(update={"options": options}), thinking=self.thinking)


class DataSettings(Group):
    """The choice of steps of one benchmark, as in a run."""

    bench_options: dict[str, Any] = Field(default_factory=dict)
    data: str | None = Field(None, description="the benchmark's data folder")
    split: str | None = Field(None, description="split, or all; test if the data has one, when not given")
    subset: Annotated[tuple[str, ...], BeforeValidator(one_or_more)] = ()
    sample_set: str | None = Field(
        None, min_length=1, description="train on the steps of this set: a name (`guieval data sample-sets`), or a .json file"
    )
    episodes: str | None = Field(None, description="file that lists the episodes, or the steps, to train on")
    limit: int | None = Field(None, ge=1, description="number of episodes in a seeded sample")
    skip_damaged: bool = False


class Source(DataSettings):
    """One of several benchmarks that a training mixes."""

    bench: str = Field(min_length=1, description="benchmark name (`guieval benchmarks`)")
    weight: float = Field(1.0, gt=0, le=1000, description="how often an epoch has each of its tasks; 0.5 is every other task")
    steps: int | None = Field(None, ge=1, description="steps that are chosen of it, for a plan without the data")


class BatchSettings(Group):
    """The size of a batch, for any number of processes; TRL's counts are computed from it."""

    tasks: int = Field(
        ge=1, description="steps (sft, grpo), episodes (semi-online) or tasks (online) per batch, over all processes"
    )
    updates: int = Field(1, ge=1, description="optimiser steps on the responses of one batch; 1 for sft")


class Curriculum(Group):
    """Weights and filters steps by what samples of the policy show (guieval.training.data.curriculum)."""

    runs: Annotated[tuple[str, ...], BeforeValidator(one_or_more)] = Field(
        min_length=1, description="runs of several samples a step, or rollout directories, of the policy before the training"
    )
    pass_rate: tuple[Annotated[float, Field(ge=0, le=1)], Annotated[float, Field(ge=0, le=1)]] = Field(
        (0.0, 1.0), description="least and greatest share of exact matches (decision stability) of a step that is kept"
    )
    diversity: tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)]] | None = Field(
        None, description="least and greatest decision diversity, in nats, of a step that is kept"
    )
    weight: Literal["equal", "learnable", "hard"] = Field(
        "equal", description="of a kept step with pass rate p: equal 1, learnable 4 p (1 - p), hard 1 - p; then to a mean of 1"
    )
    unmeasured: Literal["drop", "keep"] = Field("drop", description="steps that the runs do not hold; keep: with weight 1")

    @model_validator(mode="after")
    def _ascends(self) -> Curriculum:
        for name in ("pass_rate", "diversity"):
            bounds = getattr(self, name)
            if bounds is not None and bounds[0] > bounds[1]:
                raise ValueError(f"{name} is {list(bounds)}: expected the lower bound first")
        return self


class Stated(Group):
    """Sizes of data that is not at hand yet, for a plan; data that is there is measured."""

    prompt: int = Field(ge=1, description="tokens of the longest prompt, with its images")
    mean: float | None = Field(None, gt=0, description="tokens of a prompt in the mean; the longest when not given")
    image: int | None = Field(None, ge=1, description="those of images among them; all when not given")
    completion: int = Field(100, ge=1, description="tokens of the longest response that is learned (sft)")
    steps: int | None = Field(None, ge=1, description="steps of an epoch")
    episodes: int | None = Field(None, ge=1, description="episodes of an epoch")


class JudgeReward(Group):
    """The reward of a rollout from its environment's judgement: a weighted sum, by default 1 for a success and else 0.

    Each step has a part of it: an unreadable response its own penalty, with ``every_step`` a step that changes the progress its
    share of it, and the last step the rest.
    """

    success: float = Field(1.0, allow_inf_nan=False, description="for a success")
    progress: float = Field(0.0, allow_inf_nan=False, description="times the part of the task that is done, in [0, 1]")
    every_step: bool = Field(False, description="ask the judge after every step, so that progress is rewarded at its step")
    side_effects: float = Field(0.0, ge=0, allow_inf_nan=False, description="subtracted if there is any side effect")
    unreadable: float = Field(0.0, ge=0, allow_inf_nan=False, description="subtracted for each response without an action")

    def of(self, outcome: Outcome) -> float:
        score = outcome.score
        return (
            self.success * score.success
            + self.progress * score.progress
            - self.side_effects * bool(score.side_effects)
            - self.unreadable * outcome.unparseable
        )

    def of_steps(self, outcome: Outcome, readable: Sequence[bool], progress: Sequence[float]) -> list[float]:
        """The parts of :meth:`of` by step, (n,): which were readable and, with ``every_step``, progress after each."""
        parts = [0.0 if each else -self.unreadable for each in readable]
        if self.every_step:
            before = [0.0, *progress]
            parts = [part + self.progress * (now - then) for part, then, now in zip(parts, before, progress, strict=False)]
        parts[-1] += self.of(outcome) - sum(parts)
        return parts


def setting_error(error: ValidationError, model: type[BaseModel], *, place: str = "", group: str = "") -> UsageError:
    """The first problem of invalid settings in one sentence: the setting, its value and what was expected.

    ``place`` describes the top level of the settings, ``group`` is a prefix of all their names.
    """
    problem = first_problem(error)
    path = problem.path
    field = ".".join([group, *path] if group else path)
    if problem.kind in ("extra_forbidden", "unexpected_keyword_argument"):  # of a model, and of a dataclass
        where = ".".join(path[:-1]) or place
        close = nearest(path[-1], _fields_at(model, path[:-1]))
        return UsageError(f"unknown setting {field!r}{close}" + (f" in {where}" if place else ""))
    if problem.kind == "missing":
        return UsageError(f"the setting {field!r} is required")
    if problem.kind == UNKNOWN_SAMPLING:
        return UsageError(f"the setting {field!r} {problem.message}")
    if not path:
        return UsageError(f"setting {problem.message}")
    return UsageError(f"setting {field!r} is {problem.value!r}: {problem.message}")


def _fields_at(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    for part in path:
        if part.isdecimal():  # a place in a list of groups
            continue
        annotation = model.model_fields[part].annotation
        group = next(kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type))
        if is_dataclass(group):
            return [field.name for field in fields(group)]
        assert issubclass(group, BaseModel)
        model = group
    return list(model.model_fields)
