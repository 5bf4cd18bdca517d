"""Runs of each kind on the command line: the tables of their metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from guieval.cli.tables import say
from guieval.history.modes import Kind, Mode
from guieval.journal import RunFolder
from guieval.reports.console import Run, online_tables, report_tables, warning_lines
from guieval.reports.tables.table import Table


class Shown(NamedTuple):
    """How the metrics of runs of one kind are shown; each run is given with its heading."""

    tables: Callable[[Sequence[Run]], Sequence[Table | None]]
    warnings: Callable[[Sequence[Run]], Sequence[str]]


def task_heading(run: RunFolder) -> str:
    """The heading of an online run."""
    title = "" if run.manifest.selection is None else run.manifest.selection.title
    return "\n".join(filter(None, (run.label, f"{run.manifest.config.data.bench} online", title)))


SHOWN: Mapping[Kind, Shown] = {
    "steps": Shown(report_tables, warning_lines),
    "tasks": Shown(online_tables, lambda runs: ()),
}


def show_all(runs: Sequence[tuple[Mode, Run]], show: Callable[..., None]) -> None:
    """Print the tables of runs, kind by kind, and what to know of their metrics."""
    of_kinds = [(shown, [run for mode, run in runs if mode.is_over(kind)]) for kind, shown in SHOWN.items()]
    show(*(table for shown, own in of_kinds if own for table in shown.tables(own)))
    for shown, own in of_kinds:
        for line in shown.warnings(own):
            say(f"Warning: {line}")
