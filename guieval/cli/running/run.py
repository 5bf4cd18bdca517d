"""``guieval run``: the command's options; :mod:`guieval.cli.running.perform` does the work, so that the help is quick."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.settings import RUN, Given, path_option, run_panels
from guieval.cli.tables import JSON


@RUN.options(*chain(*run_panels().values()), without=["mode"])
def run(
    settings: Given,
    mode: Annotated[
        list[str] | None,
        typer.Option(help="offline, soeval, sop, sop-retry, graph or online; may be repeated. With --resume: only these."),
    ] = None,
    out: Annotated[Path | None, path_option("Run directory to create (default: below runs/).")] = None,
    resume: Annotated[Path | None, path_option("Continue the run, or the runs, in this directory.")] = None,
    config: options.Config = None,
    override: options.Override = None,
    trust_run: options.TrustRun = False,
    accept_changes: options.AcceptChanges = False,
    quiet: options.Quiet = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the requests, tokens and cost to expect; send nothing.")
    ] = False,
    json: JSON = False,
) -> None:
    """Evaluate a model on a benchmark, or continue a run that was stopped."""
    from guieval.cli.running.perform import perform, print_forecast, print_results
    from guieval.errors import UsageError
    from guieval.running.api import planned_runs

    if resume is not None and out is not None:
        raise UsageError("--resume names the run directory; leave out --out")
    runs = planned_runs(config, override or [], settings, modes=mode, out=out, resume=resume, trust=trust_run)
    if dry_run:
        print_forecast(runs)
        return
    perform(
        runs, fresh=resume is None, accept=accept_changes, quiet=quiet, show=lambda results: print_results(results, json=json)
    )
