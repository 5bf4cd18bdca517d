"""``guieval leaderboard``: several runs as one table, with ranks, intervals and published numbers next to them."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import JSON, echo, present, show
from guieval.reports.api import leaderboard as board_of
from guieval.reports.leaderboards.formats import FORMATS, board_tables, without_intervals, written
from guieval.reports.leaderboards.published_results import get_results, list_results
from guieval.reports.tables.table import Table, columns
from guieval.reports.tables.writers import format_named


def leaderboard(
    runs: Annotated[list[Path] | None, path_argument("RUNS...", "Run directories, or folders that hold several.")] = None,
    protocol: options.Protocols = None,
    format: Annotated[
        str | None,
        typer.Option(help="text, md, csv, latex, json or html (default: by the file's ending; text on a terminal, else md)."),
    ] = None,
    metrics: Annotated[str | None, typer.Option(metavar="A,B,...", help="Only these metrics, by name.")] = None,
    metrics_from: options.MetricsFrom = None,
    by: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="A column for each category, tag, ... in place of further metrics.")
    ] = None,
    sort: Annotated[
        str | None, typer.Option(metavar="METRIC", help="Best run by this metric first (default: the first).")
    ] = None,
    out: Annotated[Path | None, path_option("Write to this file.")] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(help="A published table to show next to the runs, or all; may be repeated. A .yaml path: your own."),
    ] = None,
    list_references: Annotated[bool, typer.Option("--list-references", help="List the published tables.")] = False,
    prices: Annotated[
        Path | None, path_option("File of prices as for `guieval run --prices`, used before the recorded ones.")
    ] = None,
    no_intervals: Annotated[bool, typer.Option("--no-intervals", help="Leave out intervals; CSV and JSON keep them.")] = False,
    site: Annotated[
        Path | None, path_option("Write pages into this folder, with every protocol (docs/board/board.md).")
    ] = None,
    label: options.Label = None,
    caption: options.Caption = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Rank runs whose labels differ too, with a note.")] = False,
    json: JSON = False,
) -> None:
    """Compare runs in tables: metrics with intervals and ranks, tokens per step, cost, and Pareto fronts."""
    given = {name: value for name, value in locals().items() if name not in ("runs", "list_references", "json")}
    if list_references:
        _list_references()
        return

    if site is not None:
        board_of(runs or (), **given)
        echo(f"{site / 'index.html'}: open it in a browser")
        return
    chosen = "json" if json else format_named(format, out, FORMATS, "text" if sys.stdout.isatty() else "md")
    board = board_of(runs or (), **given | {"format": chosen})
    tables = board_tables(without_intervals(board) if no_intervals else board, brief=True)
    text = partial(written, board, chosen, intervals=not no_intervals, label=label, caption=caption)
    present(chosen, out, text, None if label or caption else partial(show, *tables))


def _list_references() -> None:
    rows = (
        (table.name, table.source, len(table.rows), ", ".join(table.names), table.caption)
        for table in map(get_results, list_results())
    )
    words = ("source", "columns", "shows")
    heads = columns("table", "source", "rows", "columns", "shows", folds=words, spare=("shows", "rows"))
    show(Table("", heads, tuple(rows)), full="A wider terminal shows all.")
