"""The metrics of each kind of run: what sums its records up, and what the sums come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from typing import Protocol as Shape

from guieval.evaluation import ActionEvaluator, Protocol
from guieval.history.modes import Kind, Mode
from guieval.metrics.columns import RunColumns
from guieval.metrics.ledger import Ledger
from guieval.metrics.measured import Measured
from guieval.metrics.summary import RunSummary, State, Verdicts, summarise_repeats
from guieval.metrics.tasks import TaskLedger, TaskSummary, summarise_tasks
from guieval.steps import Plan, ReferenceTypes, StepKey, StepOutcome


class AnyLedger(Shape):
    """A :class:`Ledger`, or a :class:`TaskLedger` of an online run."""

    evaluators: tuple[ActionEvaluator, ...]
    outside: set[StepKey]

    def __len__(self) -> int: ...
    def expect(self, types: ReferenceTypes) -> None: ...
    def label(self, task: Any) -> Any: ...
    def take(self, record: Any) -> None: ...
    def add(self, task: Any, samples: Any, judged: StepOutcome | None = None) -> None: ...
    def counts(self, number: int, task: Any) -> bool: ...
    def outcome(self, protocol: str, task: Any, sample: Any) -> StepOutcome: ...
    def recorded(self, plan: Plan) -> int: ...
    def columns(self, plan: Plan | None = None, protocols: Sequence[str] | None = None, **about: Any) -> RunColumns: ...


class Summary(Shape):
    """What a :class:`guieval.metrics.RunSummary` and a :class:`guieval.metrics.TaskSummary` of an online run have."""

    @property
    def mode(self) -> str: ...
    @property
    def protocol(self) -> str: ...
    @property
    def verdicts(self) -> Verdicts: ...
    @property
    def metrics(self) -> Mapping[str, Measured]: ...
    @property
    def all_metrics(self) -> Mapping[str, Measured]: ...
    @property
    def state(self) -> State: ...
    @property
    def complete(self) -> bool: ...
    def model_dump(self, *, mode: str) -> dict[str, Any]: ...


_LEDGERS: Mapping[Kind, Callable[..., AnyLedger]] = {"steps": Ledger, "tasks": TaskLedger}


def ledger_of(mode: Mode, plan: Plan, evaluators: Sequence[ActionEvaluator], spaces: Any, lengths: Any) -> AnyLedger:
    """What sums up the records of a run in ``mode``."""
    return mode.of_kind(_LEDGERS)(plan, evaluators, spaces, mode, lengths)


class _Summarise(Shape):
    def __call__(
        self, runs: Sequence[RunColumns], protocol: Protocol, *, intervals: bool = ..., users: bool = ...
    ) -> Summary: ...


_SUMMARISE: Mapping[str, _Summarise] = {"step": summarise_repeats, "task": summarise_tasks}


def of_steps(summary: Summary) -> RunSummary:
    """The summary of a run that is known to be over steps."""
    assert isinstance(summary, RunSummary)
    return summary


def of_tasks(summary: Summary) -> TaskSummary:
    """The summary of a run that is known to be over tasks."""
    assert isinstance(summary, TaskSummary)
    return summary


def summary_of(columns: RunColumns, protocol: Protocol, *, intervals: bool = True, users: bool = True) -> Summary:
    """The summary of columns, as :func:`guieval.metrics.summarise` computes it for steps."""
    return summary_of_repeats([columns], protocol, intervals=intervals, users=users)


def summary_of_repeats(
    runs: Sequence[RunColumns], protocol: Protocol, *, intervals: bool = True, users: bool = True
) -> Summary:
    """The summary of runs that are repeats: metrics are means over them, counts are sums."""
    return _SUMMARISE[runs[0].unit](runs, protocol, intervals=intervals, users=users)
