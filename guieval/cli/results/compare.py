"""``guieval compare``: two runs on the same steps, metric by metric, with what is luck and what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import JSON, echo, print_json, say, show
from guieval.data.doctor.counts import counted
from guieval.reports.api import compare as compare_pairs
from guieval.reports.comparison import compare_json, compare_tables, footnotes, headings


def compare(
    first: Annotated[Path, path_argument("A", "A run directory, or a folder of runs.")],
    second: Annotated[Path, path_argument("B", "What to compare with it, mode by mode.")],
    protocol: options.Protocols = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Compare unlike runs too, on the steps they share.")] = False,
    flips: Annotated[Path | None, path_option("Write every step that flipped to this .csv or .jsonl file.")] = None,
    metrics_from: options.MetricsFrom = None,
    json: JSON = False,
) -> None:
    """Compare two runs on the same steps: every metric with its interval, and the steps that flipped."""
    compared = compare_pairs(first, second, protocol=protocol, anyway=anyway, flips=flips, metrics_from=metrics_from)
    if json:
        print_json({"comparisons": [compare_json(found) for found in compared]})
    for found in compared:
        if not json:
            for line in headings(found):
                say(line)
            show(*compare_tables(found))
            for line in footnotes(found):
                say(line)
        if found.flips_file is not None:
            steps = sum(each.only_first + each.only_second for each in found.exact.values())
            echo(f"flips:    {counted(steps, 'step')} in {found.flips_file}", err=json)
