"""``guieval compare``: two runs on the same steps, figure by figure, with what is luck and what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.paths import PATH, path


def compare(
    first: Annotated[Path, typer.Argument(parser=path, metavar="A", help="A run directory.")],
    second: Annotated[Path, typer.Argument(parser=path, metavar="B", help="The run directory to compare with it.")],
    protocol: Annotated[
        list[str] | None,
        typer.Option(help="Judge both under this one; may be repeated. all: every one. Default: the runs' own."),
    ] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Compare unlike runs too, on the steps they share.")] = False,
    flips: Annotated[
        Path | None,
        typer.Option(parser=path, metavar=PATH, help="Write every step that flipped to this .csv or .jsonl file."),
    ] = None,
    seed: options.Seed = 0,
) -> None:
    """Tell how two runs on the same steps differ: every figure with its interval, and the steps that flipped."""
    import sys

    from rich.console import Console

    from guieval.cli.run_folders import one_run, writable
    from guieval.cli.tables import PIPED_WIDTH
    from guieval.reports.compare_table import print_comparison
    from guieval.reports.comparison import check_ending, compare_runs, write_flips
    from guieval.reports.comparison import flips as flipped

    for each in (first, second):
        one_run(each)
    if flips is not None:
        check_ending(flips)
        writable(flips)
    found = compare_runs(first, second, protocol, anyway=anyway, seed=seed)
    print_comparison(found, Console(width=None if sys.stdout.isatty() else PIPED_WIDTH))
    if flips is not None:
        steps = list(flipped(found, first, second))
        write_flips(steps, flips)
        typer.echo(f"flips:    {len(steps):,} steps in {flips}")
