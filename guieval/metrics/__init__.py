"""Figures of a run: pure functions of its journal's records and of its plan.

:class:`RunSummary` is what a run prints at its end; :class:`guieval.metrics.columns.RunColumns` hold every step under several
protocols, from which :mod:`guieval.metrics.figures` computes what each protocol's source reports. The evaluators score single
answers, and the reports show the figures.
"""

from guieval.metrics.summary import RunSummary
from guieval.metrics.tally import RunTally

__all__ = ["RunSummary", "RunTally"]
