"""Metrics of a run: pure functions of its journal's records and of its plan.

The :class:`Ledger` takes in records and turns them into :class:`guieval.metrics.columns.RunColumns`, every step under several
protocols; :func:`summarise` computes all metrics of a run from these, each a :class:`Measured`. The evaluators score single
answers, and the reports show the metrics.
"""

from guieval.metrics.kinds import AnyLedger, Summary, ledger_of, summary_of, summary_of_repeats
from guieval.metrics.ledger import Ledger
from guieval.metrics.measured import Measured
from guieval.metrics.registry import metric
from guieval.metrics.summary import RunSummary, summarise
from guieval.metrics.tasks import TaskSummary

__all__ = [
    "AnyLedger",
    "Ledger",
    "Measured",
    "RunSummary",
    "Summary",
    "TaskSummary",
    "ledger_of",
    "metric",
    "summarise",
    "summary_of",
    "summary_of_repeats",
]
