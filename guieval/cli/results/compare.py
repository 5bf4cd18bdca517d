"""``guieval compare``: runs on the same steps, metric by metric, with what is luck and what is not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import JSON, echo, present, say, show
from guieval.data.doctor.counts import counted
from guieval.reports.api import compare as compare_pairs
from guieval.reports.comparison import Comparison
from guieval.reports.comparison_formats import FORMATS, shown_parts, written
from guieval.reports.tables.writers import format_named


def compare(
    first: Annotated[Path, path_argument("A", "A run directory, or a folder of runs, e.g. of repeats.")],
    others: Annotated[
        list[Path] | None,
        path_argument(
            "[B...]", "What to compare with it, mode by mode; p-values of several are Holm's. None: the models in the folder A."
        ),
    ] = None,
    protocol: options.Protocols = None,
    format: Annotated[
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
    given = {name: value for name, value in locals().items() if name not in ("first", "others", "json")}
    chosen = "json" if json else format_named(format, out, FORMATS, "text")
    compared = compare_pairs(first, *(others or ()), **given | {"format": chosen})
    shown = partial(written, compared, chosen, label=label, caption=caption)
    present(chosen, out, shown, None if label or caption else partial(_show, compared))
    for found in compared:
        if found.flips_file is not None:
            steps = sum(each.only_first + each.only_second for each in found.exact.values())
            echo(f"flips:    {counted(steps, 'step')} in {found.flips_file}", err=chosen != "text")


def _show(compared: Sequence[Comparison]) -> None:
    between: list[str] = []
    for heads, tables, feet in shown_parts(compared):
        for line in between + heads:
            say(line)
        show(*tables)
        for line in feet:
            say(line)
        between = [""] * bool(feet)
