"""``guieval dev audit``: in which coordinate frame a model's answers really are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from guieval.cli import options
from guieval.cli.settings import path_argument
from guieval.cli.tables import JSON, echo, print_json, say, show
from guieval.metrics.intervals import quoted
from guieval.metrics.rounding import percentage
from guieval.models.frame_audit import FrameReport
from guieval.reports.tables.table import Cell, Table, columns
from guieval.scoring.audit import Audit
from guieval.scoring.audit import audit as audited


def audit(
    source: Annotated[Path, path_argument("RUN", "A run, or a folder of runs.")],
    adapter: options.ReadingAdapter = None,
    json: JSON = False,
) -> None:
    """Test a model's points under every coordinate frame and axis order against the targets, and say which fits best.

    Clicks on steps whose reference is a click are counted. A point hits inside the smallest box around the reference, or, if
    no box tells the target, within 50 thousandths of it on both axes. The exit code is 1 when a frame fits far better than the
    one the adapter declares: on 50 steps or more, by 20 points or more, and with McNemar's paired p below 1e-6.
    """
    found = audited(source, adapter=adapter)
    if json:
        print_json({"runs": [{"directory": each.source, **_plain(each)} for each in found]})
    for each in () if json else found:
        echo(f"run:      {each.source}")
        if each.report is not None:
            show(_table(each.report))
        say(f"finding:  {each.finding}")
    if any(each.better is not None for each in found):
        raise typer.Exit(1)


def _plain(each: Audit) -> dict[str, Any]:
    steps, fits = (0, ()) if each.report is None else (each.report.steps, each.report.fits)
    return {"steps": steps, "fits": fits, "better": each.better, "finding": each.finding}


def _table(report: FrameReport) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for index, fit in enumerate(report.fits):
        hit = (np.arange(report.steps) < fit.hits).astype(np.float64)
        interval = quoted(hit, np.ones(report.steps))
        between = "" if interval is None else f"{interval.low:.1%} to {interval.high:.1%}"
        compared = (f"{fit.gained:,}", f"{fit.lost:,}", f"{fit.chance:.1e}") if index else ("", "", "")
        share = (f"{percentage(fit.hits / report.steps, '.1f')}%", between)
        rows.append((fit.name if index else f"{fit.name} (declared)", f"{fit.hits:,}", *share, f"{fit.outside:,}", *compared))
    heads = columns(
        "numbers read as",
        "hits",
        "share",
        "95 % interval",
        "off the screen",
        "more hits",
        "fewer hits",
        "p",
        folds=("numbers read as",),
        spare=("off the screen", "95 % interval", "fewer hits", "more hits"),
    )
    note = f"Of {report.steps:,} steps. More and fewer hits than the declared frame; p: McNemar's exact test."
    return Table("", heads, tuple(rows), (note,))
