"""``guieval compare``: two runs on the same steps, metric by metric, with what is luck and what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.running.run_folders import apart, paired_repeats, writable
from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import JSON, echo, print_json, say, show
from guieval.data.doctor.counts import counted
from guieval.reports.comparison import compare_json, compare_runs, compare_tables, footnotes, headings, write_flips
from guieval.reports.comparison import flips as flipped
from guieval.reports.tables.records import check_ending


def compare(
    first: Annotated[Path, path_argument("A", "A run directory, or a folder of runs, e.g. of repeats.")],
    second: Annotated[Path, path_argument("B", "What to compare with it, mode by mode.")],
    protocol: options.Protocols = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Compare unlike runs too, on the steps they share.")] = False,
    flips: Annotated[Path | None, path_option("Write every step that flipped to this .csv or .jsonl file.")] = None,
    metrics_from: options.MetricsFrom = None,
    json: JSON = False,
) -> None:
    """Compare two runs, or the repeats of two models, on the same steps: every metric with its interval, and flipped steps."""
    options.use_metrics(metrics_from)
    pairs = paired_repeats(first, second)
    if flips is not None:
        check_ending(flips)
        writable(flips)
    compared = [compare_runs(*pair, protocol, anyway=anyway) for pair in pairs]
    if json:
        plain = [compare_json(found) for found in compared]
        print_json(plain if len(plain) > 1 else plain[0])
    for found, pair in zip(compared, pairs, strict=True):
        if not json:
            for line in headings(found):
                say(line)
            show(*compare_tables(found))
            for line in footnotes(found):
                say(line)
        if flips is not None:
            file = apart(flips, pair[0].first, pairs)
            steps = list(flipped(found))
            write_flips(steps, file)
            echo(f"flips:    {counted(len(steps), 'step')} in {file}", err=json)
