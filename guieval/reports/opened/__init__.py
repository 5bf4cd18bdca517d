"""Finished and unfinished runs as Python objects: steps as a table, single steps as pictures, metrics with intervals.

:func:`open_run` is ``guieval.open_run``. :mod:`.run` has the run and its steps, :mod:`.online` online runs.
"""

from guieval.metrics.of_run import Metrics
from guieval.reports.opened.online import OpenedOnlineRun, OpenedTrajectory, OpenedTrajectoryStep
from guieval.reports.opened.run import OpenedRun, OpenedStep, open_run

__all__ = ["Metrics", "OpenedOnlineRun", "OpenedRun", "OpenedStep", "OpenedTrajectory", "OpenedTrajectoryStep", "open_run"]
