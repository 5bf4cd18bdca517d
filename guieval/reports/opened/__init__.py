"""Finished and unfinished runs as Python objects: steps as a table, single steps as pictures, figures with intervals.

:func:`open_run` is ``guieval.open_run``. :mod:`.run` has the run and its steps, :mod:`.figures` what ``guieval score`` prints.
"""

from guieval.reports.opened.figures import FigureRow, Figures, score_figures
from guieval.reports.opened.run import OpenedRun, OpenedStep, open_run

__all__ = ["FigureRow", "Figures", "OpenedRun", "OpenedStep", "open_run", "score_figures"]
