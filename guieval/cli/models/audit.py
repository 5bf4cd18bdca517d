"""``guieval audit``: in which coordinate frame a model's answers really are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from guieval.cli import options
from guieval.cli.running.online import over_steps
from guieval.cli.running.run_folders import several_runs
from guieval.cli.settings import path_argument
from guieval.cli.tables import JSON, echo, print_json, say, show
from guieval.journal import RunFolder
from guieval.metrics.intervals import quoted
from guieval.metrics.rounding import percentage
from guieval.models.frame_audit import FrameReport, audit_records
from guieval.reports.tables.table import Cell, Table, columns
from guieval.scoring.recorded_run import recorded_model


def audit(
    source: Annotated[Path, path_argument("RUN", "A run, or a folder of runs.")],
    adapter: options.ReadingAdapter = None,
    json: JSON = False,
) -> None:
    """Test a model's points under every coordinate frame and axis order against the targets, and say which fits best.

    Clicks on steps whose reference is a click are counted. A point hits inside the smallest box around the reference, or, where
    no box tells the target, within 50 thousandths of it on both axes. The exit code is 1 when a frame fits far better than the
    one the adapter declares: on 50 steps or more, by 20 points or more, and with McNemar's paired p below 1e-6.
    """
    found = over_steps(several_runs([source]), "audit a run of the model with --mode offline")
    reports = {each: audit_records(recorded_model(RunFolder(each).manifest, adapter), RunFolder(each).steps) for each in found}
    if json:
        print_json([{"run": each, **_plain(report)} for each, report in reports.items()])
    for each, report in () if json else reports.items():
        echo(f"run:      {each}")
        if report is not None:
            show(_table(report))
        say(f"finding:  {_sentence(report)}")
    if any(report is not None and report.better is not None for report in reports.values()):
        raise typer.Exit(1)


def _sentence(report: FrameReport | None) -> str:
    return "no step has both a click as its reference and a click as its answer" if report is None else report.sentence


def _plain(report: FrameReport | None) -> dict[str, Any]:
    if report is None:
        return {"steps": 0, "fits": [], "better": None, "finding": _sentence(report)}
    better = None if report.better is None else report.better.name
    return {"steps": report.steps, "fits": report.fits, "better": better, "finding": _sentence(report)}


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
