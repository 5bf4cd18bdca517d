"""The step reward's contract: what an evaluator says of an answer, weighed, one by one and for arrays of answers.

A reward judges nothing itself: type and exact match come from its :class:`ActionEvaluator`, so a policy is rewarded for what it
is evaluated by. The published shapes are in :mod:`guieval.rewards.shapes`, raw replies are :mod:`guieval.rewards.reply`'s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from guieval.actions import Action, Box, Click, LongPress
from guieval.evaluation import ActionEvaluator, PredictionTable, Scores, TargetTable, compile_targets, score
from guieval.evaluation.batch import UNPARSEABLE, UNSUPPORTED
from guieval.evaluation.click_rule import smallest_box
from guieval.rewards.formats import FormatRule
from guieval.steps import StepOutcome, StepTaskModel

Floats: TypeAlias = NDArray[np.float64]
Value = TypeVar("Value", float, Floats)
"""One reward, or an array of them: a formula written once serves both."""


@dataclass(frozen=True)
class RewardParts:
    """A reward, what it is made of, and the verdict behind it.

    ``parts`` are unweighted, in [0, 1], by name; ``total`` is what a trainer gets; ``outcome`` is exactly what the reward's
    evaluator says of the action.
    """

    total: float
    parts: Mapping[str, float]
    outcome: StepOutcome


@dataclass(frozen=True, eq=False)
class RewardTargets:
    """Steps compiled once for :meth:`ABCReward.of_table`; make it with :meth:`ABCReward.targets`."""

    tasks: tuple[StepTaskModel, ...]
    judged: TargetTable

    def __len__(self) -> int:
        """The number of steps."""
        return len(self.tasks)

    @cached_property
    def accepts_unsupported(self) -> NDArray[np.bool_]:
        """(n,) whether an action outside the unified space is among a step's accepted ones."""
        if not len(self.judged):
            return np.empty(0, dtype=np.bool_)
        return np.logical_or.reduceat(self.judged.type == UNSUPPORTED, self.judged.first)

    @cached_property
    def click_boxes(self) -> Floats:
        """(rows, 4) per accepted action of ``judged``: the box that a click's target is in, in thousandths; NaN for none."""
        boxes = np.full((len(self.judged.step), 4), np.nan)
        row = 0
        for task in self.tasks:
            for accepted in (task.action, *task.alternatives):
                if (box := target_box(task, accepted)) is not None:
                    boxes[row] = box
                row += 1
        return boxes


@dataclass(frozen=True)
class Answers:
    """What the parts of many rewards are made of: predictions, their judgements, and predicted boxes, n of each."""

    targets: RewardTargets
    predictions: PredictionTable
    scores: Scores
    boxes: Floats
    """(n, 4) predicted boxes x1, y1, x2, y2 in thousandths; NaN where a reply gave none."""

    @property
    def parsed(self) -> NDArray[np.bool_]:
        """Which answers hold an action that could be compared: neither unparseable nor unsupported."""
        given = self.predictions.type
        inside: NDArray[np.bool_] = (given != UNPARSEABLE) & ((given != UNSUPPORTED) | self.targets.accepts_unsupported)
        return inside


@dataclass(frozen=True)
class ABCReward(ABC):
    """A step reward: an evaluator and weights (the fields of subclasses), of which ``of`` makes a number.

    A reply that holds no action (verdict *unparseable*), and an action outside the unified space (*unsupported*) where none is
    accepted, match neither in type nor exactly: they earn 0 and whatever the format part gives. Pure, like the evaluator.
    """

    name: ClassVar[str]
    """Registered name."""
    source: ClassVar[str]
    """Where the reward is published."""
    protocol: ClassVar[str]
    """The protocol it is built on when no other is asked for."""
    form: ClassVar[FormatRule]
    """What makes a reply well formed when nothing else is said."""
    reads_boxes: ClassVar[bool] = False
    """Whether a predicted box matters, so that replies are searched for one."""

    evaluator: ActionEvaluator

    def of(self, task: StepTaskModel, action: Action | None, *, well_formed: bool, box: Box | None = None) -> RewardParts:
        """Reward one action; ``None`` is a reply that holds none.

        ``well_formed`` says whether the reply has the wanted form, ``box`` is the box it gave, if any (thousandths of the
        screen; only rewards with ``reads_boxes`` look at it).
        """
        return self.grade(task, action, self.evaluator.evaluate(task, action), well_formed=well_formed, box=box)

    def grade(
        self,
        task: StepTaskModel,
        action: Action | None,
        outcome: StepOutcome,
        *,
        well_formed: bool,
        box: Box | None = None,
    ) -> RewardParts:
        """As :meth:`of`, of an action that the reward's evaluator has judged already."""
        parts = {"format": float(well_formed), "type": float(outcome.type_match), **self._parts(task, action, outcome, box)}
        return RewardParts(float(self._weigh(parts)), parts, outcome)

    def targets(self, tasks: Iterable[StepTaskModel]) -> RewardTargets:
        """Work out once what is accepted at each step, for :meth:`of_table`."""
        steps = tuple(tasks)
        return RewardTargets(steps, compile_targets(steps, self.evaluator.protocol))

    def of_table(
        self,
        targets: RewardTargets,
        predictions: PredictionTable,
        well_formed: NDArray[np.bool_],
        boxes: Floats | None = None,
    ) -> Floats:
        """The ``total`` of :meth:`of` for prediction i as the answer to step i, shape (n,).

        ``boxes`` are predicted boxes, (n, 4) in thousandths with NaN for none. Raises ``ValueError`` for unlike lengths.
        """
        n = len(targets)
        scores = score(targets.judged, predictions)
        if well_formed.shape != (n,) or (boxes is not None and boxes.shape != (n, 4)):
            raise ValueError(f"well_formed must have the shape ({n},) and boxes ({n}, 4), as there are {n} steps")
        given = np.full((n, 4), np.nan) if boxes is None else boxes
        answers = Answers(targets, predictions, scores, given)
        parts = {
            "format": well_formed.astype(np.float64),
            "type": scores.type_match.astype(np.float64),
            **self._table_parts(answers),
        }
        return self._weigh(parts)

    @abstractmethod
    def _parts(self, task: StepTaskModel, action: Action | None, outcome: StepOutcome, box: Box | None) -> dict[str, float]:
        """The parts beside ``format`` and ``type``."""

    @abstractmethod
    def _table_parts(self, answers: Answers) -> dict[str, Floats]:
        """The same for many answers."""

    @abstractmethod
    def _weigh(self, parts: Mapping[str, Value]) -> Value:
        """The reward that parts make."""

    @property
    def highest(self) -> float:
        """The total of a reply that has every part in full."""
        return float(self._weigh(defaultdict(lambda: 1.0)))

    def as_read(self, task: StepTaskModel, action: Action | None) -> Action | None:
        """A predicted action as the protocol understands it: a short press may be a click."""
        return None if action is None else self.evaluator.protocol.rules_for(task.dataset).read(action)

    def describe(self) -> dict[str, Any]:
        """Name, source, protocol and weights, as JSON-able values for a manifest or a report."""
        weights = {name: value for name, value in vars(self).items() if name != "evaluator"}
        return {"name": self.name, "source": self.source, "protocol": self.evaluator.protocol.name, **weights}


def target_box(task: StepTaskModel, accepted: Action) -> Box | None:
    """The box of the element that a click or long press is for: the smallest of the step's that holds its point."""
    if not isinstance(accepted, Click | LongPress):
        return None
    index = smallest_box(task.boxes, accepted.point)
    return None if index is None else task.boxes[index]


def clicked_boxes(task: StepTaskModel) -> list[Box]:
    """The target boxes of the accepted clicks that have one."""
    accepted = (each for each in (task.action, *task.alternatives) if isinstance(each, Click))
    return [box for each in accepted if (box := target_box(task, each)) is not None]
