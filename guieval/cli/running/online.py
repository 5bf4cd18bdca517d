"""Runs of each kind on the command line: the tables of their metrics, and commands that are for runs over steps only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from guieval.cli.tables import say
from guieval.history.modes import Kind
from guieval.journal import RunFolder, is_run
from guieval.metrics import TaskSummary
from guieval.reports.console import Run, report_json, report_tables, warning_lines
from guieval.reports.online_tables import online_tables
from guieval.reports.tables.table import Table


class Shown(NamedTuple):
    """How the metrics of runs of one kind are shown; each run is given with its heading."""

    tables: Callable[[Sequence[Run]], Sequence[Table | None]]
    plain: Callable[[Run], Mapping[str, Any]]
    warnings: Callable[[Sequence[Run]], Sequence[str]]
    heading: Callable[[RunFolder, Sequence[str]], str]
    judged_again: bool
    """Whether other protocols can judge it."""


def task_heading(run: RunFolder, more: Sequence[str] = ()) -> str:
    """The heading of an online run."""
    title = "" if run.manifest.selection is None else run.manifest.selection.title
    return "\n".join(filter(None, (run.label, f"{run.manifest.config.data.bench} online", title)))


def plain_tasks(summary: TaskSummary) -> Mapping[str, Any]:
    """The metrics of an online run for JSON."""
    return {name: value for name, value in vars(summary).items() if name not in ("mode", "protocol", "verdicts")}


SHOWN: Mapping[Kind, Shown] = {
    "steps": Shown(
        lambda runs: report_tables(list(runs)),
        report_json,
        lambda runs: [*warning_lines(list(runs))],
        lambda run, more: "\n".join((run.label, *more)),
        True,
    ),
    "tasks": Shown(
        lambda runs: online_tables([(run.label, run.summary) for run in runs]),
        lambda run: plain_tasks(run.summary),
        lambda runs: (),
        task_heading,
        False,
    ),
}


def show_all(runs: Sequence[tuple[Kind, Run]], show: Callable[..., None]) -> None:
    """Print the tables of runs, kind by kind, and what to know of their metrics."""
    of_kinds = [(shown, [run for each, run in runs if each == kind]) for kind, shown in SHOWN.items()]
    show(*(table for shown, own in of_kinds if own for table in shown.tables(own)))
    for shown, own in of_kinds:
        for line in shown.warnings(own):
            say(f"Warning: {line}")


def over_steps(directories: Sequence[Path], instead: str) -> list[Path]:
    """The runs that are over steps, for a command that compares actions with references, which tasks do not have.

    Online runs are named on standard error; :class:`UsageError`, ending with what to use ``instead``, if there are no others.
    """
    kept: list[Path] = []
    left_out: list[Path] = []
    for directory in directories:
        of_steps = not is_run(directory) or RunFolder(directory).kind == "steps"
        (kept if of_steps else left_out).append(directory)
    if left_out and not kept:
        RunFolder(left_out[0]).expect("steps", instead)
    for directory in left_out:
        say(f"note: the run {str(directory)!r} is left out: it is an online run", err=True)
    return kept
