"""``guieval plot``: a picture for a paper, of runs or of a published table, as PDF, SVG or PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from guieval.cli import options
from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import JSON, echo, print_json, say
from guieval.errors import UsageError, known_name
from guieval.reports.plots.plot import KINDS
from guieval.reports.plots.plot import plot as draw

Protocol: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="Judge every run under this one (default: the first run's own). matrix: may be repeated, or all."),
]
Label: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="Label of a run; give one for each in order. Runs of one label are tries (samples) or seeds (training)."),
]
By: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="horizon: ratio (default), step, length, reasoning, ratio-step. actions: action (default), app ... study: any."
    ),
]
Metric: TypeAlias = Annotated[
    str | None, typer.Option(help="matrix: exact (default), type, progress, success. bars: its name in tables.")
]
Table: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        help="A published table, see `guieval leaderboard --list-references`, or a .yaml path; several are joined by model."
    ),
]
X: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="Column of a static metric; may be repeated. budget: samples or gpu-hours. study: setting."),
]
Y: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="Column of a live metric (reliability: may be repeated). budget: any. study: metric, or gpu_hours."),
]
Degree: TypeAlias = Annotated[int | None, typer.Option(min=1, max=3, help="reliability: of the curve (default 1, a line).")]
Cost: TypeAlias = Annotated[
    bool | None, typer.Option("--cost", help="pareto: cost instead of tokens, at the prices that the runs recorded.")
]
Prices: TypeAlias = Annotated[
    Path | None, path_option("pareto: file of prices as for `guieval run --prices`, used before the recorded ones.")
]
Task: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="strip: the task (default: the first). clusters, reachability: EPISODE#STEP (default: the most divided)."
    ),
]
Pool: TypeAlias = Annotated[
    bool, typer.Option("--pool", help="horizon, actions: read the runs in each folder, e.g. of several benchmarks, as one.")
]
Kappa: TypeAlias = Annotated[list[float] | None, typer.Option(help="nlogi: sharpness of a curve; may be repeated.")]
Gap: TypeAlias = Annotated[list[float] | None, typer.Option(help="nlogi: p at the end of a curve; may be repeated.")]


def plot(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="; ".join(f"{name}: {row.what}" for name, row in KINDS.items()))],
    runs: Annotated[list[Path] | None, path_argument("[RUNS...]", "Run directories, or those of `guieval train`.")] = None,
    out: Annotated[Path | None, path_option("The picture to write: .pdf, .svg or .png (300 dpi).")] = None,
    width: options.Width = "column",
    protocol: Protocol = None,
    label: Label = None,
    by: By = None,
    metric: Metric = None,
    table: Table = None,
    x: X = None,
    y: Y = None,
    degree: Degree = None,
    cost: Cost = None,
    prices: Prices = None,
    sample_set: options.SampleSet = None,
    subset: options.Subset = None,
    pool: Pool = False,
    task: Task = None,
    kappa: Kappa = None,
    gap: Gap = None,
    json: JSON = False,
) -> None:
    """Draw a picture for a paper: runs by action type, horizon, protocol or tries, trainings, or a table's correlations."""
    given = locals() | {"runs": runs or (), "width": options.check_width(width)}
    known_name("kind of picture", kind, KINDS)
    if out is None:
        raise UsageError("--out names the picture to write, e.g. --out figure.pdf")
    drawn = draw(**{name: value for name, value in given.items() if name != "json"})
    say(f"shows:    {drawn.shows}")
    echo(f"picture:  {out}")
    if json:
        print_json({"shows": drawn.shows, "numbers": drawn.numbers})
