"""Online runs on the command line: their metrics, and how commands on recorded steps treat them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from guieval.cli.tables import echo
from guieval.errors import UsageError
from guieval.journal import RunFolder, is_run
from guieval.online.metrics import OnlineMetrics, online_metrics


def is_online(directory: Path) -> bool:
    """Whether a directory holds an online run."""
    return is_run(directory) and RunFolder(directory).online


def online_run(directory: Path) -> tuple[str, OnlineMetrics]:
    """The heading and the metrics of a run."""
    run = RunFolder(directory)
    heading = [run.label, f"{run.manifest.config.data.bench} online"]
    if run.manifest.selection is not None and run.manifest.selection.title:
        heading.append(run.manifest.selection.title)
    return "\n".join(heading), online_metrics(run.records, run.plan)


def without_online(directories: Sequence[Path], instead: str) -> list[Path]:
    """The runs that are not online, for a command that compares actions with references, which online steps do not have.

    Online runs are named on standard error; :class:`UsageError`, ending with what to use ``instead``, if there are no others.
    """
    kept = [directory for directory in directories if not is_online(directory)]
    left_out = [directory for directory in directories if directory not in kept]
    if left_out and not kept:
        raise UsageError(f"{str(left_out[0])!r} is an online run, whose steps have no reference actions; {instead}")
    for directory in left_out:
        echo(f"note: the run {str(directory)!r} is left out: it is an online run", err=True)
    return kept
