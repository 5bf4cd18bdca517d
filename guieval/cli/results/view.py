"""``guieval view``: runs in a browser, served on this machine to this machine alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.settings import path_argument
from guieval.cli.tables import echo

DEFAULT = Path("runs")


def view(
    runs: Annotated[list[Path] | None, path_argument("RUN", "Runs, rollouts or folders of them (default: runs/).")] = None,
    port: Annotated[int | None, typer.Option(help="Port on loopback (default: the first free one from 8770).")] = None,
    data: options.RunData = None,
    adapter: options.ReadingAdapter = None,
    metrics_from: options.MetricsFrom = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
) -> None:
    """Look at runs in a browser: overview, steps, comparison, trajectories, and notes on them.

    Serves on this machine alone, until Ctrl-C; on another machine, the printed ssh line makes it reachable. Only notes are
    written, to notes.jsonl in the run's folder.
    """
    given = locals() | {"runs": runs or DEFAULT}
    from guieval.reports.server.view import view as show

    show(**given, announce=echo)
