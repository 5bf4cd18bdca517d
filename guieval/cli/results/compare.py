"""``guieval compare``: runs on the same steps, metric by metric, with what is luck and what is not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.running.run_folders import apart, paired_runs, writable
from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import JSON, echo, print_text, say, show
from guieval.data.doctor.counts import counted
from guieval.reports.comparison import Comparison, compare_all, compare_tables, footnotes, headings, write_flips
from guieval.reports.comparison import flips as flipped
from guieval.reports.comparison_formats import FORMATS, written
from guieval.reports.tables.records import check_ending
from guieval.reports.tables.writers import format_named


def compare(
    first: Annotated[Path, path_argument("A", "A run directory, or a folder of runs.")],
    others: Annotated[
        list[Path], path_argument("B...", "What to compare with it, mode by mode; p-values of several are Holm's.")
    ],
    protocol: options.Protocols = None,
    form: Annotated[
        str | None, typer.Option("--format", help="text, md, csv, latex or json (default: by the file's ending, else text).")
    ] = None,
    metrics: Annotated[str | None, typer.Option(metavar="A,B,...", help="Only these metrics, by name.")] = None,
    out: Annotated[Path | None, path_option("Write to this file.")] = None,
    label: options.Label = None,
    caption: options.Caption = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Compare unlike runs too, on the steps they share.")] = False,
    flips: Annotated[Path | None, path_option("Write every step that flipped to this .csv or .jsonl file.")] = None,
    metrics_from: options.MetricsFrom = None,
    json: JSON = False,
) -> None:
    """Compare runs with the first on the same steps: every metric with difference, interval and p, and what flipped."""
    options.use_metrics(metrics_from)
    chosen = "json" if json else format_named(form, out, FORMATS, "text")
    for file in (out, flips):
        if file is not None:
            writable(file)
    if flips is not None:
        check_ending(flips)
    pairs = [pair for other in others for pair in paired_runs(first, other)]
    compared = compare_all(pairs, protocol, metrics, anyway=anyway)
    if chosen == "text" and out is None and not (label or caption):
        _show(compared)
    else:
        text = written(compared, chosen, label=label, caption=caption)
        if out is None:
            print_text(text)
        else:
            out.write_text(text, encoding="utf-8", newline="")
            echo(f"written:  {out}", err=json)
    if flips is not None:
        apart_by_first = len({one.name for one, _ in pairs}) == len(pairs)
        for found, (one, other) in zip(compared, pairs, strict=True):
            file = apart(flips, one if apart_by_first else Path("-".join(other.parts[-2:])), pairs)
            steps = list(flipped(found))
            write_flips(steps, file)
            echo(f"flips:    {counted(len(steps), 'step')} in {file}", err=chosen != "text")


def _show(compared: Sequence[Comparison]) -> None:
    for found in compared:
        for line in headings(found):
            say(line)
        show(*compare_tables(found))
        for line in footnotes(found):
            say(line)
