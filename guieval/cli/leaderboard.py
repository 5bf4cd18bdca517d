"""``guieval leaderboard``: several runs as one table, with ranks, intervals and published figures beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.paths import PATH, path


def leaderboard(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(parser=path, metavar="RUNS...", help="Run directories, or folders that hold several."),
    ] = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option(help="Judge under this one; may be repeated. all: every one. Default: each run's own."),
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="md, csv, latex, json or html (default: by the file's ending, else md).")
    ] = None,
    out: Annotated[Path | None, typer.Option(parser=path, metavar=PATH, help="Write to this file.")] = None,
    reference: Annotated[
        list[str] | None, typer.Option(help="A published table to put beside; may be repeated. A .yaml path: your own.")
    ] = None,
    list_references: Annotated[bool, typer.Option("--list-references", help="List the published tables.")] = False,
    seed: options.Seed = 0,
) -> None:
    """Put runs into one table: a column for each benchmark, protocol and figure, with intervals and ranks."""
    from guieval.errors import UsageError

    if list_references:
        _list_references()
        return
    from guieval.cli.run_folders import several_runs, writable
    from guieval.reports.leaderboard import leaderboard as board_of
    from guieval.reports.leaderboard_formats import format_named, written
    from guieval.results import get_results

    if not runs:
        raise UsageError("a leaderboard needs run directories, e.g. `guieval leaderboard runs/*`")
    chosen = format_named(form, out)
    if out is not None:
        writable(out)
    tables = [get_results(name) for name in dict.fromkeys(reference or ())]
    text = written(board_of(several_runs(runs), protocol, tables, seed=seed), chosen)
    if out is None:
        typer.echo(text, nl=False)
        return
    out.write_text(text, encoding="utf-8", newline="")
    typer.echo(f"written:  {out}")


def _list_references() -> None:
    from guieval.cli.tables import print_table
    from guieval.results import get_results, list_results

    tables = [get_results(name) for name in list_results()]
    print_table(
        ("table", "source", "models", "columns", "shows"),
        (
            (each.name, each.source, str(len(each.rows)), ", ".join(column.name for column in each.columns), each.caption)
            for each in tables
        ),
    )
