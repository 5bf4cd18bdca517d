"""Figures of a run: pure functions of its journal's records and of what it set out to do.

:class:`RunSummary` is what a run tells at its end; :class:`RunColumns` hold every step under several protocols, from which
:mod:`guieval.metrics.figures` computes what each protocol's source reports. Scoring one answer is left to the evaluators,
showing the figures to the reports.
"""

from guieval.metrics.columns import Judged, RunColumns
from guieval.metrics.figures import FigureValue, compute, figures_of, terms
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
from guieval.metrics.tally import RunTally

__all__ = [
    "COVERAGE_NEEDED",
    "Average",
    "Cell",
    "Diagnostics",
    "FigureValue",
    "GroupTable",
    "Judged",
    "Rate",
    "RunColumns",
    "RunSummary",
    "RunTally",
    "Scores",
    "Sop",
    "StepFigures",
    "Total",
    "Verdicts",
    "WithoutOpen",
    "compute",
    "figures_of",
    "terms",
]
