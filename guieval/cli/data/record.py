"""``guieval record``: make an offline benchmark of what succeeded online."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli.running.online import is_online
from guieval.cli.running.run_folders import several_runs
from guieval.cli.settings import path_option
from guieval.cli.tables import echo
from guieval.errors import UsageError
from guieval.journal import Records
from guieval.online.record import record as write_episodes


def record(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Online runs, or folders of runs.")],
    out: Annotated[Path, path_option("Folder to write.")],
) -> None:
    """Make an offline benchmark of the successful trajectories of online runs; `--bench episodes` reads it."""
    chosen = [run for run in several_runs(runs) if is_online(run)]
    if not chosen:
        raise UsageError(f"{str(runs[0])!r} holds no online run; `guieval run --mode online` makes one")
    recorded = write_episodes({run: list(Records(run)) for run in chosen}, out)
    echo(f"{out}: {recorded.episodes:,} episodes, {recorded.steps:,} steps; {recorded.failed:,} tasks without a success")
    echo(f"next: guieval run --model NAME --bench episodes --data {shlex.quote(str(out))}")
