"""Discounted returns and advantages of semi-online rollouts: step and episode level, normalised in groups, added up.

Source: UI-S1 paper, equations 9 to 12, Table 8, and the variance condition of equation 13. If the paper and its
released code differ, both are available (:meth:`AdvantageSettings.paper`, the default, and :meth:`AdvantageSettings.released`);
``docs/development/advantages.md`` has the table. Without torch: a trainer broadcasts a step's advantage to the tokens of its
response.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, ClassVar, Literal, TypeAlias, TypeVar, get_args

from pydantic import ConfigDict, Field

from guieval.errors import UsageError, known_name
from guieval.rewards.rollout import RolloutStep
from guieval.rewards.step import check_fields

Segment: TypeAlias = Literal["natural", "trajectory", "released"]
"""How far a step's return looks ahead. ``natural``: to the end of its run of matches and the step after it, which is the
mismatch that ended it (equation 9: t_end = min(max{k >= t | all of t..k match} + 1, T); of a mismatch only itself).
``trajectory``: to the rollout's last step, across mismatches (Table 8, t_end = T). ``released``: as natural, but the mismatch
keeps its reward to itself and passes nothing back (the released code)."""
SEGMENTS: tuple[Segment, ...] = get_args(Segment)
Normalise: TypeAlias = Literal["mean-std", "mean"]
"""``mean-std``: (x - mean) / standard deviation of the group (equations 10 and 11); ``mean``: x - mean."""
EpisodeLevel: TypeAlias = Literal["trajectory", "last", "steps", "none"]
"""The values in equation 11. ``trajectory``: one number per rollout, the sum of its steps' rewards, over the rollouts.
``last``: one number per rollout, equation 9's return at its last step, which is that step's reward. ``steps``: every step's own
reward, over all steps of all rollouts (released code), so that long rollouts weigh more and it differs within a rollout.
``none``: the episode level is 0, and only the step level counts (Figure 8)."""
SpreadOf: TypeAlias = Literal["advantages", "first-returns"]
"""The values whose standard deviation must exceed eta: all combined advantages of the group (the paper), or the rollouts'
returns at their first step, by which a group of one rollout is always kept (released code)."""

_SAME, _NONE = 1e-9, 1e-12
"""Values whose range is below this share of their size differ by rounding alone, which must not become advantages; and so do
those within the second of one another, in which penalties and rewards cancel out and leave no size to compare with."""
_K = TypeVar("_K", bound=Hashable)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0


@dataclass(frozen=True)
class AdvantageSettings:
    """How advantages are computed; the defaults are the paper's (Table 9: gamma 0.5, omega 1).

    ``gamma``: discount in [0, 1]. ``omega``: weight of the step level (equation 12). ``ddof``: 1 divides by n - 1 (sample
    standard deviation, as in the released code; the paper is silent), 0 by n. ``epsilon`` is added to a standard deviation
    before dividing by it. The spread that eta is compared with is always the population's (ddof 0).
    Raises :class:`UsageError` for a value that cannot be.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    gamma: Annotated[float, Field(ge=0, le=1)] = 0.5
    omega: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    normalise: Normalise = "mean-std"
    segment: Segment = "natural"
    episode_level: EpisodeLevel = "trajectory"
    ddof: Literal[0, 1] = 1
    epsilon: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    spread_of: SpreadOf = "advantages"

    def __post_init__(self) -> None:
        check_fields(self)

    @classmethod
    def paper(cls) -> AdvantageSettings:
        """The paper's, with its training parameters (Table 9)."""
        return cls()

    @classmethod
    def released(cls) -> AdvantageSettings:
        """The released code's, with the parameters of its training script (X-PLUG/MobileAgent, UI-S1)."""
        return cls(segment="released", episode_level="steps", epsilon=1e-6, spread_of="first-returns")


PAPER = AdvantageSettings.paper()


@dataclass(frozen=True)
class Trajectory:
    """The part of one rollout of n >= 1 steps from which advantages are computed.

    ``uid`` names the task: rollouts of one task share it and are compared. ``steps``: the steps' indices in their episode,
    ascending. ``rewards``, ``matched``: of the policy's own answers, not of their patches. Raises ``ValueError`` if these
    do not have one length.
    """

    uid: Hashable
    steps: tuple[int, ...]
    rewards: tuple[float, ...]
    matched: tuple[bool, ...]

    def __post_init__(self) -> None:
        if not len(self.steps) == len(self.rewards) == len(self.matched) > 0:
            raise ValueError(
                f"a trajectory of {len(self.steps)} steps, {len(self.rewards)} rewards and {len(self.matched)} matches: "
                "expected one of each a step, and at least one step"
            )
        if any(later <= earlier for earlier, later in zip(self.steps, self.steps[1:], strict=False)):
            raise ValueError(f"a trajectory's steps are {self.steps}: expected ascending indices")
        if not all(map(math.isfinite, self.rewards)):
            raise ValueError(f"a trajectory's rewards are {self.rewards}: expected finite numbers")

    @classmethod
    def of(cls, uid: Hashable, steps: Iterable[RolloutStep]) -> Trajectory:
        """A rollout's steps (:attr:`guieval.rewards.rollout.SemiOnlineRollout.steps`) as advantages need them."""
        steps = list(steps)
        return cls(
            uid,
            tuple(step.task.step_index for step in steps),
            tuple(step.reward for step in steps),
            tuple(step.matched for step in steps),
        )


def step_returns(
    rewards: Sequence[float], matched: Sequence[bool], *, gamma: float, segment: Segment = "natural"
) -> list[float]:
    """R_t of a rollout's n steps (n,), of their rewards and of whether each matched by itself (not by a patch).

    ``gamma`` in [0, 1] discounts a reward once for each step that it is ahead. Raises :class:`UsageError` for another
    gamma or an unknown segment, and ``ValueError`` when there are not as many rewards as matches.
    """
    if not 0 <= gamma <= 1:
        raise UsageError(f"gamma is {gamma!r}: expected a number from 0 to 1")
    known_name("segment", segment, SEGMENTS)
    returns = [0.0] * len(rewards)
    ahead = 0.0
    for t, (reward, match) in reversed(list(enumerate(zip(rewards, matched, strict=True)))):
        looks_ahead = match or segment == "trajectory"
        returns[t] = reward + gamma * ahead if looks_ahead else float(reward)
        ahead = 0.0 if segment == "released" and not match else returns[t]
    return returns


def advantages(group: Sequence[Trajectory], settings: AdvantageSettings = PAPER) -> list[list[float]]:
    """A(a_t) of every step: one list for each trajectory, in the order given, of as many numbers as it has steps (eq. 12).

    A = episode level + omega * step level. The episode level compares the rollouts of a task (:data:`EpisodeLevel`), the step
    level the returns (equation 9) of the rollouts of a task that reached the same step. A group of one, for which the paper's
    formula has no value, and one whose values are all equal give 0. Trajectories of several tasks may be given at once.
    """
    local = _normalised(
        [[(one.uid, step) for step in one.steps] for one in group], [_returns(one, settings) for one in group], settings
    )
    if settings.episode_level == "none":
        whole = [[0.0] * len(one.steps) for one in group]
    elif settings.episode_level == "steps":
        whole = _normalised([[one.uid] * len(one.steps) for one in group], [list(one.rewards) for one in group], settings)
    else:
        last = settings.episode_level == "last"
        totals = [[one.rewards[-1] if last else math.fsum(one.rewards)] for one in group]
        each = _normalised([[one.uid] for one in group], totals, settings)
        whole = [value * len(one.steps) for value, one in zip(each, group, strict=True)]
    return [
        [of_episode + settings.omega * of_step for of_episode, of_step in zip(*both, strict=True)]
        for both in zip(whole, local, strict=True)
    ]


def spread(group: Sequence[Trajectory], settings: AdvantageSettings = PAPER) -> float:
    """How much a task's rollouts differ: the population standard deviation of what ``settings.spread_of`` names.

    Raises ``ValueError`` for an empty group, or rollouts of several tasks.
    """
    if len({one.uid for one in group}) != 1:
        raise ValueError("a group has rollouts of exactly one task")
    if settings.spread_of == "first-returns":
        values = [_returns(one, settings)[0] for one in group]
    else:
        values = [value for each in advantages(group, settings) for value in each]
    return _deviation(values, ddof=0)


def keep_group(group: Sequence[Trajectory], eta: float, settings: AdvantageSettings = PAPER) -> bool:
    """Whether a task's rollouts differ enough to be trained on: their :func:`spread` is above ``eta`` (the paper: 0.3).

    As in the released code, of which it is part, ``first-returns`` keeps a group of one rollout in any case; by ``advantages``
    such a group has spread 0. Raises :class:`UsageError` for an eta below 0, otherwise as :func:`spread`.
    """
    if not _is_number(eta):
        raise UsageError(f"eta is {eta!r}: expected a number from 0")
    value = spread(group, settings)
    return value > eta or (len(group) == 1 and settings.spread_of == "first-returns")


def _returns(one: Trajectory, settings: AdvantageSettings) -> list[float]:
    return step_returns(one.rewards, one.matched, gamma=settings.gamma, segment=settings.segment)


def _normalised(keys: Sequence[Sequence[_K]], values: Sequence[list[float]], settings: AdvantageSettings) -> list[list[float]]:
    """Each value compared with all that share its key; ``keys`` and the result are shaped as ``values``."""
    groups: defaultdict[_K, list[float]] = defaultdict(list)
    for row_keys, row in zip(keys, values, strict=True):
        for key, value in zip(row_keys, row, strict=True):
            groups[key].append(value)
    scales = {key: _scale(members, settings) for key, members in groups.items()}
    return [
        [(value - scales[key][0]) * scales[key][1] for key, value in zip(row_keys, row, strict=True)]
        for row_keys, row in zip(keys, values, strict=True)
    ]


def _scale(members: list[float], settings: AdvantageSettings) -> tuple[float, float]:
    """A group's mean, and what a difference from it is multiplied by: 0 if all members are the same."""
    mean = fmean(members)
    deviation = _deviation(members, ddof=settings.ddof)
    if not deviation:
        return mean, 0.0
    return mean, 1.0 if settings.normalise == "mean" else 1 / (deviation + settings.epsilon)


def _deviation(values: Sequence[float], *, ddof: int) -> float:
    """The standard deviation; exactly 0 of one value, and of values that differ by rounding alone."""
    if max(values) - min(values) <= max(_SAME * max(map(abs, values)), _NONE):
        return 0.0
    mean = fmean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - ddof))
