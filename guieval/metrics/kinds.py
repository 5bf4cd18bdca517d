"""The metrics of each kind of run: what sums its records up, and what the sums come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias
from typing import Protocol as Shape

from guieval.evaluation import Protocol
from guieval.history.modes import Kind
from guieval.metrics.columns import RunColumns
from guieval.metrics.ledger import Ledger
from guieval.metrics.summary import RunSummary, summarise
from guieval.metrics.tasks import TaskLedger, TaskSummary, summarise_tasks

AnyLedger: TypeAlias = Ledger | TaskLedger
Summary: TypeAlias = RunSummary | TaskSummary
LEDGERS: Mapping[Kind, type[AnyLedger]] = {"steps": Ledger, "tasks": TaskLedger}


class _Summarise(Shape):
    def __call__(self, columns: RunColumns, protocol: Protocol, *, intervals: bool = ..., users: bool = ...) -> Any: ...


_SUMMARISE: Mapping[str, _Summarise] = {"step": summarise, "task": summarise_tasks}


def summary_of(columns: RunColumns, protocol: Protocol, *, intervals: bool = True, users: bool = True) -> Any:
    """The :class:`RunSummary` or :class:`TaskSummary` of columns, as :func:`guieval.metrics.summarise` computes it."""
    return _SUMMARISE[columns.unit](columns, protocol, intervals=intervals, users=users)
