"""Recorded answers and the steps they answer, before anything is scored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from guieval.actions import ActionSpace
from guieval.data.benchmark import EpisodeRef
from guieval.data.editions import Edition
from guieval.data.selection import Choice, Selection
from guieval.evaluation import ActionEvaluator
from guieval.history.modes import Mode
from guieval.steps import Plan, ReferenceTypes, Setting


@dataclass(frozen=True, eq=False)
class Scorable:
    """Answers and the steps they answer.

    ``title`` names them. ``protocol`` is the one they are scored under by default. ``spaces`` are the model's and the
    benchmark's. ``plan`` and ``refs`` hold every step that may count. ``types`` are the reference types of planned steps as
    the run recorded them. ``left_out`` counts rows of an imported file that have no answer that can be read, and no step among
    these. ``served`` is the :func:`guieval.journal.caveats.mark` of the run. ``edition`` is that of the planned steps' labels
    as it recorded it, and ``scaffold`` the run's in words.

    ``answers`` yields steps with their samples, none if a step has no answer; an evaluator scores responses that are parsed on
    the way. Of an online run it yields tasks with their repetitions. ``select`` returns the steps that a choice
    asks for; it raises :class:`guieval.errors.UsageError` when there are none, or not all of them. ``notes`` returns, once the
    answers were read, what the reader should know of the input, with notes on the protocols in their place.
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
    types: ReferenceTypes | None = None
    overlays: tuple[str, ...] = ()
    left_out: int = 0
    served: str = ""
    edition: Edition | None = None
    scaffold: str = ""
