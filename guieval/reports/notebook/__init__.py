"""What a notebook shows of runs, benchmarks and episodes: :mod:`.views` draws them, IPython gets the names of their types.

The types know nothing of it. The views are imported when the first of them is drawn.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

VIEWS = {
    "guieval.data.benchmark.ABCBenchmark": "benchmark_html",
    "guieval.steps.Episode": "episode_html",
    "guieval.running.api.RunResult": "result_html",
    "guieval.metrics.of_run.Metrics": "metrics_html",
    "guieval.reports.opened.run.OpenedRun": "run_html",
    "guieval.reports.opened.run.OpenedStep": "step_html",
    "guieval.reports.opened.online.OpenedOnlineRun": "online_run_html",
    "guieval.reports.opened.online.OpenedTrajectory": "trajectory_html",
    "guieval.reports.opened.online.OpenedTrajectoryStep": "trajectory_step_html",
}
"""The function of :mod:`.views` for each type; it also shows the type's subclasses."""


def register(shell: Any) -> None:
    """Let an IPython shell show all types of :data:`VIEWS` as HTML."""
    formatter = shell.display_formatter.formatters["text/html"]
    for name, view in VIEWS.items():
        formatter.for_type_by_name(*name.rsplit(".", 1), partial(_shown, view))


def _shown(view: str, value: Any) -> str:
    html: str = getattr(import_module("guieval.reports.notebook.views"), view)(value)
    return html
