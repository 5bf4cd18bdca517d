"""Recorded answers and the steps they answer, before anything is judged: one form for runs and predictions files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from guieval.actions import ActionSpace
from guieval.data.benchmark import EpisodeRef
from guieval.data.editions import Edition
from guieval.data.selection import Choice, Selection
from guieval.evaluation import ActionEvaluator
from guieval.evaluation.evaluator import infrastructure_failure
from guieval.history.modes import Mode
from guieval.steps import Plan, ReferenceTypes, Setting, StepKey, StepOutcome, StepTaskModel


@dataclass(frozen=True)
class Unkept:
    """Steps whose answers a file does not hold, but that its authors found right under ``protocol``."""

    protocol: str
    steps: frozenset[StepKey]

    def outcome(self, protocol: str) -> StepOutcome:
        """The outcome of each of the steps: not measured under any protocol but that one."""
        if protocol != self.protocol:
            return infrastructure_failure(f"the file has no reply to this step, only that it is right under {self.protocol}")
        return StepOutcome(verdict="right", type_match=True, exact_match=True, reason="the verdict in the file")


@dataclass(frozen=True, eq=False)
class Answered:
    """Answers and the steps they answer.

    ``title`` names them. ``protocol`` is the one they are scored under by default. ``spaces`` are the model's and the
    benchmark's. ``plan`` and ``refs`` hold every step that may count. ``types`` are the reference types of planned steps as
    the run recorded them; ``None`` where the steps have them. ``left_out`` counts rows of a file that have no answer
    that can be read, and no step among these. ``count`` is the number of predictions, ``None`` for a run. ``served`` is the
    :func:`guieval.journal.caveats.mark` of a run. ``unkept`` are steps with a verdict and no answer; ``answers`` yields their
    reference action in its place. ``edition`` is that of the planned steps' labels as a run recorded it,
    and ``scaffold`` the run's in words.

    ``answers`` yields steps with their samples, none where a step has no answer; an evaluator judges replies that are parsed
    on the way. Of an online run (``mode.kind``) it yields tasks with their repetitions. ``unanswered`` yields the steps of an
    episode that ``answers`` skips. ``select`` returns the steps that a choice asks for; it raises
    :class:`guieval.errors.UsageError` when there are none, or not all of them. ``notes`` returns, once the answers were read,
    what the reader should know of the input, with notes on the protocols in their place.
    """

    title: str
    benchmark: str
    dataset: str
    setting: Setting
    protocol: str
    model: str
    mode: Mode
    spaces: tuple[ActionSpace, ActionSpace]
    plan: Plan
    refs: Sequence[EpisodeRef]
    answers: Callable[[ActionEvaluator], Iterator[tuple[Any, tuple[Any, ...]]]]
    select: Callable[[Choice], Selection]
    notes: Callable[[Sequence[str]], list[str]]
    unanswered: Callable[[EpisodeRef], Iterable[StepTaskModel]] = lambda ref: ()
    types: ReferenceTypes | None = None
    overlays: tuple[str, ...] = ()
    left_out: int = 0
    count: int | None = None
    served: str = ""
    unkept: Unkept | None = None
    edition: Edition | None = None
    scaffold: str = ""
