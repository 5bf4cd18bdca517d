"""History mixing: histories in which some of the reference's steps are replaced by the model's own, by a schedule.

Source: GUIEvalKit paper, section 5.3 and appendix D.2; the schedule is equations 11 and 12. Every past step t of a history of T
steps is the model's own with probability p_t if it has an artifact, else the reference's. An artifact is the model's own answer
at a step that it got exactly right: equation 10 lets an action and its reasoning into a history only if the action equals
the reference. Steps do not wait for each other, so a mixed run is an offline run.

The paper ends section 5.3 with a limitation of models, that none adapts to steps near a decision. The regime ``adaptive`` is
ours, not the paper's: near a step whose decisions are diverse, p is another one than the schedule's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, Field, ValidationError, model_validator

from guieval.actions import Action
from guieval.errors import UsageError, first_problem, nearest
from guieval.history import HistoryEntry, reference_entry
from guieval.steps import EpisodeKey, HistoryOrigin, StepKey, StepTaskModel

Span: TypeAlias = Literal["history", "episode"]
Shape: TypeAlias = Literal["logistic", "linear", "constant"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
Regime: TypeAlias = Literal["increasing", "stationary", "decreasing", "adaptive"]
REGIMES: tuple[Regime, ...] = get_args(Regime)
KAPPA = 16.0
"""The sharpness in the paper."""
_FLATTEST, _SHARPEST = 0.01, 1000.0
_SAME = 1e-9
WITHIN, ABOVE = 1, 0.5
"""Which steps are near a diverse decision, and the diversity in nats above which it is one; both are ours."""


def normalised_logistic(x: ArrayLike, kappa: float, mu: float) -> NDArray[np.float64]:
    """nlogi+ of equation 11 at x in [0, 1]: 0 at 0, 1 at 1, steepest at ``mu``; nlogi- is 1 minus it. Shape as ``x``."""
    from scipy.special import expit

    at = np.asarray(x, dtype=np.float64)
    low, high = expit(-kappa * mu), expit(kappa * (1 - mu))
    return np.asarray((expit(kappa * (at - mu)) - low) / (high - low), dtype=np.float64)


def mean_of_logistic(kappa: float, mu: float) -> float:
    """The mean of nlogi+ over x in [0, 1] in closed form: the antiderivative of a sigmoid is ln(1 + e^x)."""
    from scipy.special import expit

    low, high = float(expit(-kappa * mu)), float(expit(kappa * (1 - mu)))
    area = float(np.logaddexp(0.0, kappa * (1 - mu)) - np.logaddexp(0.0, -kappa * mu)) / kappa
    return (area - low) / (high - low)


def centre_for(mean: float, kappa: float) -> float:
    """The mu in [0, 1] at which nlogi+ has this mean (which decreases with mu), by Brent's method.

    The means at mu 1 and at mu 0 are the bounds (:func:`mean_of_logistic`); beyond a bound, its mu is returned, since rounding
    can move a mean just within the bounds of a schedule onto or beyond them.
    """
    from scipy.optimize import brentq

    if mean >= mean_of_logistic(kappa, 0.0):
        return 0.0
    if mean <= mean_of_logistic(kappa, 1.0):
        return 1.0
    return float(brentq(lambda mu: mean_of_logistic(kappa, mu) - mean, 0.0, 1.0, xtol=1e-14, rtol=1e-14))


def admissible_means(start: float, end: float, shape: Shape = "logistic", kappa: float = KAPPA) -> tuple[float, float]:
    """The lowest and the highest E[p] of a schedule from ``start`` to ``end``.

    A normalised logistic approaches them as mu in (0, 1) approaches 1 and 0. With kappa 16 and from 0 to 1 they are 0.087 and
    0.913. A line or a constant schedule has one mean.
    """
    if start == end or shape != "logistic":
        middle = (start + end) / 2
        return middle, middle
    low, gap = min(start, end), abs(end - start)
    return low + gap * mean_of_logistic(kappa, 1.0), low + gap * mean_of_logistic(kappa, 0.0)


@dataclass(frozen=True)
class Schedule:
    """The probability that a step of the history is the model's own, from ``start`` (x = 0) to ``end`` (x = 1).

    The paper's p_lb is the smaller of the two, its gap their distance; p+ rises, p- falls, and without a gap p is constant.
    ``mean`` is E[p], the mean of p over x in [0, 1]: among the possible definitions it is the one that depends only on the
    schedule, as in the paper, and not on the lengths of histories. By default it is midway, at mu = 0.5. Raises
    :class:`UsageError` for probabilities outside [0, 1], a kappa outside [0.01, 1000], and a mean that no mu in (0, 1) gives.
    """

    start: float
    end: float
    shape: Shape = "logistic"
    kappa: float = KAPPA
    mean: float | None = None

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"a schedule's {name} is {getattr(self, name)!r}: expected a probability from 0 to 1")
        if self.shape not in SHAPES:
            raise UsageError(
                f"unknown schedule {self.shape!r}{nearest(str(self.shape), SHAPES)}; it is one of {', '.join(SHAPES)}"
            )
        if self.shape == "constant" and self.start != self.end:
            raise UsageError(f"a constant schedule cannot go from {self.start:g} to {self.end:g}; use linear or logistic")
        if not _FLATTEST <= self.kappa <= _SHARPEST:
            raise UsageError(f"kappa is {self.kappa!r}: expected a number from {_FLATTEST:g} to {_SHARPEST:g}")
        low, high = admissible_means(self.start, self.end, self.shape, self.kappa)
        if self.mean is None:
            object.__setattr__(self, "mean", (self.start + self.end) / 2)
        elif low == high and not abs(self.mean - low) <= _SAME:
            raise UsageError(f"the mean is {self.mean!r}: a {self._words} always has the mean {low:.6g}")
        elif low < high and not low < self.mean < high:
            raise UsageError(
                f"the mean is {self.mean!r}: a {self._words} with kappa {self.kappa:g} has one between {low:.6g} and {high:.6g}"
            )

    @property
    def _words(self) -> str:
        return f"{self.shape} schedule from {self.start:.4g} to {self.end:.4g}"

    @property
    def regime(self) -> Regime:
        """Whether the model's own steps become more or less likely towards the current step."""
        if self.start == self.end:
            return "stationary"
        return "increasing" if self.start < self.end else "decreasing"

    @property
    def gap(self) -> float:
        """``end`` - ``start``, in [-1, 1]: the temporal sampling gap, with its sign."""
        return self.end - self.start

    @cached_property
    def mu(self) -> float | None:
        """The centre at which the logistic has the mean, in [0, 1]; ``None`` for other schedules."""
        if self.shape != "logistic" or self.start == self.end or self.mean is None:
            return None
        share = (self.mean - min(self.start, self.end)) / abs(self.gap)
        return centre_for(share if self.start < self.end else 1 - share, self.kappa)

    def at(self, x: ArrayLike) -> NDArray[np.float64]:
        """p at the step ratio x in [0, 1] (equation 12). Shape as ``x``."""
        ratio = np.asarray(x, dtype=np.float64)
        if self.start == self.end:
            return np.full(ratio.shape, self.start)
        risen = ratio if self.mu is None else normalised_logistic(ratio, self.kappa, self.mu)
        if self.start > self.end:
            risen = 1 - risen
        return np.clip(min(self.start, self.end) + abs(self.gap) * risen, 0.0, 1.0)

    def probabilities(self, length: int) -> NDArray[np.float64]:
        """p of each step of a history of T = ``length`` steps, oldest first: p at (t + 1) / T. Shape (T,).

        So the step before the current one has ``end``, also in a history of one step, and long histories begin near ``start``.
        The mean over a history is therefore not E[p] but closer to ``end``, especially for short histories.
        """
        return self.at((np.arange(length) + 1) / length) if length else np.empty(0)


def schedule_name(schedule: Schedule) -> str:
    """A schedule in a few characters, for the name of a folder, e.g. ``0-0.667-mean0.3812``."""
    mean = math.nan if schedule.mean is None else schedule.mean
    return f"{schedule.start:.3g}-{schedule.end:.3g}-mean{mean:.4f}"


Pick: TypeAlias = Literal["first", "seeded"]


class Artifact(NamedTuple):
    """One exact answer: its action (coordinates in [0, 1000]), its texts without tags, and the unchanged response."""

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


@dataclass(frozen=True, eq=False)
class Diversities:
    """The diversity of one model's decisions on one benchmark by step, in nats, with a fingerprint of them all."""

    file: Path
    steps: Mapping[StepKey, float]
    sha256: str

    def diverse(self, above: float) -> dict[EpisodeKey, list[int]]:
        """The steps of each episode with a diversity above a threshold, in ascending order."""
        found: dict[EpisodeKey, list[int]] = {}
        for key in sorted(key for key, diversity in self.steps.items() if diversity > above):
            found.setdefault(EpisodeKey(*key[:3]), []).append(key.step_index)
        return found


def drawn(*parts: object) -> int:
    """64 pseudo-random bits that are a pure function of ``parts``, independent of the order of work."""
    return int.from_bytes(blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def uniform(*parts: object) -> float:
    """:func:`drawn` as a number in [0, 1)."""
    return float(np.ldexp(drawn(*parts) >> 11, -53))


class Mix(BaseModel, frozen=True, extra="forbid"):
    """The setting ``mix`` of :class:`guieval.settings.History`, which makes a run a mixed one."""

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
    near: float | None = Field(
        None, ge=0, le=1, description="not the schedule's probability but this one near a diverse decision of mix_decisions"
    )
    within: int | None = Field(None, ge=0, description=f"how many steps from it are near; {WITHIN} when not given")
    above: float | None = Field(
        None, ge=0, allow_inf_nan=False, description=f"diversity in nats above which it is diverse; {ABOVE} when not given"
    )

    @model_validator(mode="after")
    def _of_near(self) -> Self:
        if self.near is None and (self.within is not None or self.above is not None):
            raise ValueError("within and above say what is near a diverse decision: give near, the probability there, too")
        return self

    @property
    def reach(self) -> int:
        """``within``, or its default."""
        return WITHIN if self.within is None else self.within

    @property
    def threshold(self) -> float:
        """``above``, or its default."""
        return ABOVE if self.above is None else self.above

    @property
    def regime(self) -> Regime:
        """That of its schedule, unless it is adaptive."""
        return self.schedule.regime if self.near is None else "adaptive"

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
    resume do not change a draw. An adaptive setting has the numbers of the same setting without ``near``: the two differ only
    near diverse decisions. ``diversities`` are those of an adaptive setting.
    """

    mix: Mix
    artifacts: Artifacts
    diversities: Diversities | None = None

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
        numbers = np.array([_number(self.mix, episode, step) for step in range(length)])
        return np.asarray(numbers < self.probabilities(episode, length, episode_length))

    def probabilities(self, episode: EpisodeKey, length: int, episode_length: int) -> NDArray[np.float64]:
        """p of each step of a history of ``length`` steps. Shape (length,).

        It is ``near`` if one of the steps up to ``within`` before or after it is diverse and not later than the current step,
        whose diversity is known from an earlier rollout.
        """
        whole = length if self.mix.over == "history" else episode_length - 1
        scheduled = np.asarray(self._scheduled(whole)[:length])
        diverse = np.array([step for step in self._diverse.get(episode, ()) if step <= length])
        if self.mix.near is None or not diverse.size:
            return scheduled
        near = (np.abs(np.arange(length)[:, None] - diverse) <= self.mix.reach).any(axis=1)
        return np.where(near, self.mix.near, scheduled)

    def to_json(self) -> dict[str, Any]:
        """The manifest's entry: the schedule with its mu, the seed, and the artifacts with their fingerprint."""
        schedule = self.mix.schedule
        adaptive = {"near": self.mix.near, "within": self.mix.reach, "above": self.mix.threshold}
        of = self.diversities
        return {
            "schedule": {
                "regime": self.mix.regime,
                **asdict(schedule),
                "mu": schedule.mu,
                "over": self.mix.over,
                **({} if self.mix.near is None else adaptive),
            },
            "seed": self.mix.seed,
            "repeat": self.mix.repeat,
            "artifacts": {
                "directory": str(self.artifacts.directory),
                "steps": len(self.artifacts.steps),
                "pick": self.mix.pick,
                "sha256": self.artifacts.sha256,
            },
            **({} if of is None else {"decisions": {"file": str(of.file), "steps": len(of.steps), "sha256": of.sha256}}),
        }

    @cached_property
    def _scheduled(self) -> Any:
        return lru_cache(maxsize=4096)(self.mix.schedule.probabilities)

    @cached_property
    def _diverse(self) -> Mapping[EpisodeKey, Sequence[int]]:
        return {} if self.diversities is None else self.diversities.diverse(self.mix.threshold)


@lru_cache(maxsize=65536)
def _number(mix: Mix, episode: EpisodeKey, step: int) -> float:
    schedule = mix.schedule
    setting = (schedule.start, schedule.end, schedule.shape, schedule.kappa, schedule.mean, mix.over, mix.repeat)
    return uniform(mix.seed, setting, tuple(episode), step, "mix")
