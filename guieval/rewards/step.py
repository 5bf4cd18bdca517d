"""The contract of step rewards: a weighted sum over the evaluator's outcome for an answer.

A reward judges nothing itself: type and exact match come from its :class:`ActionEvaluator`, so training rewards what evaluation
measures. The published shapes are in :mod:`guieval.rewards.shapes`, raw responses are :mod:`guieval.rewards.response`'s.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from guieval.actions import Action, Box, Click
from guieval.errors import UsageError, first_problem
from guieval.evaluation import ActionEvaluator
from guieval.evaluation.click_rule import target_boxes
from guieval.rewards.formats import FormatRule
from guieval.steps import StepOutcome, StepTaskModel


@dataclass(frozen=True)
class RewardParts:
    """A reward, its parts, and the outcome that it was computed from.

    ``parts`` are unweighted, in [0, 1], by name; ``total`` is the number for the trainer; ``outcome`` is that of
    the reward's evaluator.
    """

    total: float
    parts: Mapping[str, float]
    outcome: StepOutcome


class RawResponse(NamedTuple):
    """A response as the model wrote it. ``extent`` is (width, height) of the screen in the coordinates that it writes."""

    text: str
    extent: tuple[float, float]


@dataclass(frozen=True)
class ABCReward:
    """A step reward: an evaluator and weights (the fields of subclasses), of which ``of`` makes a number.

    A response that has no action (verdict *unparseable*), and an action outside the unified space (*unsupported*) if none is
    accepted, match neither in type nor exactly: they earn only the format part. Pure, like the evaluator.
    """

    name: ClassVar[str]
    """Registered name."""
    source: ClassVar[str]
    """Where the reward is published."""
    protocol: ClassVar[str]
    """The default protocol."""
    part: ClassVar[str]
    """The name of the exact match among the parts."""
    form: ClassVar[FormatRule]
    """The default rule for a well-formed response."""
    reads_boxes: ClassVar[bool] = False
    """Whether the reward uses a predicted box, which is then searched for in responses."""
    reads_text: ClassVar[bool] = False
    """Whether the reward is of the raw response, and not of the action that the model's adapter read."""

    evaluator: ActionEvaluator

    def __post_init__(self) -> None:
        check_fields(self)

    def of(self, task: StepTaskModel, action: Action | None, *, well_formed: bool, box: Box | None = None) -> RewardParts:
        """Reward one action; ``None`` is a response that has none.

        ``well_formed``: whether the response has the required format; ``box``: the box in the response, if any (thousandths of
        the screen; only rewards with ``reads_boxes`` look at it). Raises :class:`UsageError` for a reward with ``reads_text``.
        """
        if self.reads_text:
            raise UsageError(f"reward {self.name!r} is of a raw response and not of an action: use guieval.rewards.open_scorer")
        return self.grade(task, action, self.evaluator.evaluate(task, action), well_formed=well_formed, box=box)

    def grade(
        self,
        task: StepTaskModel,
        action: Action | None,
        outcome: StepOutcome,
        *,
        well_formed: bool,
        box: Box | None = None,
        raw: RawResponse | None = None,
    ) -> RewardParts:
        """As :meth:`of`, for an action that the reward's evaluator has already judged; ``raw`` is for ``reads_text``."""
        own = self._raw_parts(task, raw) if self.reads_text else self._parts(task, action, outcome, box)
        parts = {"format": float(well_formed), "type": float(outcome.type_match), **own}
        return RewardParts(float(self._weigh(parts)), parts, outcome)

    def _parts(self, task: StepTaskModel, action: Action | None, outcome: StepOutcome, box: Box | None) -> dict[str, float]:
        """The parts other than ``format`` and ``type``: by default the exact match, called :attr:`part`."""
        return {self.part: float(outcome.exact_match)}

    def _raw_parts(self, task: StepTaskModel, raw: RawResponse | None) -> dict[str, float]:
        """The parts of a reward with ``reads_text``; ``None`` if the adapter failed on the response."""
        raise NotImplementedError

    def _weigh(self, parts: Mapping[str, float]) -> float:
        """Combine the parts into the reward: by default the sum of ``PART_weight`` times ``PART``, in the fields' order."""
        weights: dict[str, float] = {name: value for name, value in vars(self).items() if name.endswith("_weight")}
        return sum(weight * parts[name.removesuffix("_weight")] for name, weight in weights.items())

    @property
    def highest(self) -> float:
        """The total of a response that has every part in full."""
        return float(self._weigh(defaultdict(lambda: 1.0)))

    def as_read(self, task: StepTaskModel, action: Action | None) -> Action | None:
        """A predicted action as the protocol understands it: a short press may be a click."""
        return None if action is None else self.evaluator.protocol.rules_for(task.dataset).read(action)

    def describe(self) -> dict[str, Any]:
        """Name, source, protocol and weights, as JSON-able values for a manifest or a report."""
        weights = {name: value for name, value in vars(self).items() if name != "evaluator"}
        return {"name": self.name, "source": self.source, "protocol": self.evaluator.protocol.name, **weights}


def check_fields(of: object) -> None:
    """Raise :class:`UsageError` for a field of a dataclass that has another value than its annotation names or bounds."""
    for name, hint in get_type_hints(type(of), include_extras=True).items():
        if name in vars(of) and get_origin(hint) in (Annotated, Literal):
            try:
                TypeAdapter(hint).validate_python(getattr(of, name), strict=True)
            except ValidationError as error:
                raise UsageError(f"{name} is {getattr(of, name)!r}: {first_problem(error).message}") from None


def clicked_boxes(task: StepTaskModel) -> list[Box]:
    """The boxes that the accepted clicks aim at: the step's targets, or the smallest of its elements around a click's point."""
    clicks = (action for action in (task.action, *task.alternatives) if isinstance(action, Click))
    return list(dict.fromkeys(box for click in clicks for box in target_boxes(task.targets, task.elements, click.point)))
