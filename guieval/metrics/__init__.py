"""Figures of a run: pure functions of its journal's records and of what it set out to do.

Scoring one answer is left to the evaluators, showing the figures to the reports.
"""

from guieval.metrics.summary import (
    COVERAGE_NEEDED,
    Average,
    Cell,
    Diagnostics,
    GroupTable,
    Rate,
    RunSummary,
    Scores,
    Sop,
    StepFigures,
    Total,
    Verdicts,
    WithoutOpen,
)
from guieval.metrics.tally import RunTally, summarise

__all__ = [
    "COVERAGE_NEEDED",
    "Average",
    "Cell",
    "Diagnostics",
    "GroupTable",
    "Rate",
    "RunSummary",
    "RunTally",
    "Scores",
    "Sop",
    "StepFigures",
    "Total",
    "Verdicts",
    "WithoutOpen",
    "summarise",
]
