"""``guieval decisions``: what a model decides behind its actions, how broadly, how steadily, and what shifts between runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guieval.cli import options
from guieval.cli.paths import PATH, path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from guieval.decisions.clustering import ClusterSettings
    from guieval.decisions.measures import DecisionColumns
    from guieval.decisions.tables import Table
    from guieval.reports.plots import Width

FORMATS = ("text", "md", "csv", "json")
FIGURES = {
    "shift": "baseline stability by its shift, Figure 4",
    "pass": "PASS@n, Figure 6",
    "diversity": "how diversity is distributed, Figure 7",
    "trade-off": "diversity and stability, Figure 8",
}
AGAINST = ("shift", "trade-off")
"""The figures that need a baseline."""


def decisions(
    runs: Annotated[
        list[Path],
        typer.Argument(parser=path, metavar="RUNS...", help="Runs of several samples a step, or rollout directories."),
    ],
    against: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="The baseline: what shifts from it to each of RUNS.")
    ] = None,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity", help="What other radii and L1 would make of it: the paper's tables 10 to 15.")
    ] = False,
    protocol: Annotated[str | None, typer.Option(help="Judge under this one (default: the run's own).")] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="What a run is called, once for each of RUNS in order, then for --against.")
    ] = None,
    radius: Annotated[float, typer.Option(help="Neighbourhood of points, in thousandths of the screen.")] = 70.0,
    metric: Annotated[str, typer.Option(help="l2 or l1.")] = "l2",
    min_samples: Annotated[
        int | None,
        typer.Option(help="Executions within the radius that make a dense place (default: 2 up to 7 of a type, else 5)."),
    ] = None,
    loose: Annotated[float, typer.Option(help="Texts: largest edit distance where one contains the other.")] = 0.3,
    strict: Annotated[float, typer.Option(help="Texts: largest edit distance else.")] = 0.1,
    format: Annotated[str, typer.Option(help="text, md, csv or json.")] = "text",
    out: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="Write the tables to this file, not to the screen.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="The picture to write: .pdf, .svg or .png (300 dpi).")
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(help=f"What --plot shows: {'; '.join(f'{name}: {what}' for name, what in FIGURES.items())}."),
    ] = None,
    width: Annotated[str, typer.Option(help="--plot: column (3.3 in) or two-column (6.8 in).")] = "column",
    seed: options.Seed = 0,
) -> None:
    """Tell what a model decides behind its actions: diversity, stability and PASS@n of several samples a step, and shifts."""
    from guieval.cli.run_folders import writable
    from guieval.decisions.clustering import ClusterSettings
    from guieval.decisions.executions import gaps, read_executions
    from guieval.decisions.measures import check_several, measure
    from guieval.decisions.points import METRICS
    from guieval.decisions.shifts import shift
    from guieval.decisions.tables import run_tables, shift_tables
    from guieval.errors import UsageError, nearest
    from guieval.reports.plots import check_file

    if format not in FORMATS:
        raise UsageError(f"unknown --format {format!r}{nearest(format, FORMATS)}; it is one of {', '.join(FORMATS)}")
    if metric not in METRICS:
        raise UsageError(f"unknown --metric {metric!r}{nearest(metric, METRICS)}; it is l2 or l1")
    shown = _figure(figure, plot, against)
    wide = _width(width)
    if plot is not None:
        check_file(plot)
    if out is not None:
        writable(out)
    settings = ClusterSettings(radius, "l1" if metric == "l1" else "l2", min_samples, loose, strict)
    if sensitivity and settings.metric != "l2":
        raise UsageError("--sensitivity tries both metrics itself, with L2 as the baseline; leave --metric out")
    places = [*runs, *([against] if against is not None else [])]
    titles = _titles(places, label)
    measured: list[DecisionColumns] = []
    for place, title in zip(places, titles, strict=True):
        found = measure(read_executions(place, protocol=protocol), settings, title)
        check_several(found)
        measured.append(found)
        for gap in gaps(place):
            typer.echo(f"note: {gap}", err=True)
    tables = run_tables(measured, seed)
    shifts = [shift(measured[-1], run) for run in measured[:-1]] if against is not None else []
    for each in shifts:
        tables += shift_tables(each, seed)
    if sensitivity:
        tables += _sensitivity(places, titles, settings, protocol, against is not None, seed)
    _show(tables, format, out)
    if plot is not None:
        from guieval.reports.plots import write
        from guieval.reports.plots.decisions import diversities, level_shifts, pass_curves, trade_offs

        drawn: Figure
        if shown == "pass":
            drawn = pass_curves(measured, wide, seed)
        elif shown == "diversity":
            drawn = diversities(measured, wide)
        elif shown == "shift":
            drawn = level_shifts(shifts, wide)
        else:
            drawn = trade_offs(shifts, wide)
        write(drawn, plot)
        typer.echo(f"shows:    {FIGURES[shown]}", err=True)
        typer.echo(f"picture:  {plot}", err=True)


def _figure(figure: str | None, plot: Path | None, against: Path | None) -> str:
    from guieval.errors import UsageError, nearest

    if figure is None:
        return "shift" if against is not None else "diversity"
    if figure not in FIGURES:
        raise UsageError(f"unknown --figure {figure!r}{nearest(figure, FIGURES)}; it is one of {', '.join(FIGURES)}")
    if plot is None:
        raise UsageError(f"--figure {figure} is drawn into a file: name it with --plot, e.g. --plot figure.pdf")
    if figure in AGAINST and against is None:
        raise UsageError(f"--figure {figure} shows a shift; name the baseline with --against")
    return figure


def _width(width: str) -> Width:
    from guieval.errors import UsageError, nearest
    from guieval.reports.plots import WIDTHS

    if width not in WIDTHS:
        raise UsageError(f"unknown --width {width!r}{nearest(width, WIDTHS)}; it is one of {', '.join(WIDTHS)}")
    return "two-column" if width == "two-column" else "column"


def _titles(places: Sequence[Path], labels: list[str] | None) -> list[str]:
    """The runs' names, of which none may stand twice: a directory's own, with its parent's where two are called alike."""
    from guieval.errors import UsageError

    if labels is not None and len(labels) != len(places):
        of = f"{len(places)} run{'s' if len(places) > 1 else ''}"
        raise UsageError(f"there are {len(labels)} --label for {of}; give one for each, the baseline's last")
    if labels is None:
        names = [place.resolve().name for place in places]
        labels = [str(place) if names.count(name) > 1 else name for place, name in zip(places, names, strict=True)]
    if twice := next((label for label in labels if labels.count(label) > 1), None):
        raise UsageError(f"two runs would be called {twice!r}; give each its own --label")
    return labels


def _sensitivity(
    places: Sequence[Path], titles: Sequence[str], settings: ClusterSettings, protocol: str | None, paired: bool, seed: int
) -> list[Table]:
    from guieval.decisions.executions import read_executions
    from guieval.decisions.sensitivity import sensitivity
    from guieval.decisions.tables import sensitivity_tables, trend_tables

    found = [
        sensitivity(read_executions(place, protocol=protocol), settings, title)
        for place, title in zip(places, titles, strict=True)
    ]
    tables = [table for each in found for table in sensitivity_tables(each, seed)]
    for after in found[:-1] if paired else []:
        tables += trend_tables(found[-1], after)
    return tables


def _show(tables: Sequence[Table], format: str, out: Path | None) -> None:
    from guieval.decisions.tables import as_json, comma_separated, markdown

    text = {"text": _text, "md": markdown, "csv": comma_separated, "json": as_json}[format](tables)
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
        typer.echo(f"tables:   {out}")


def _text(tables: Sequence[Table]) -> str:
    """Aligned columns, as wide as they need to be: a number without its last digits is another number."""
    from guieval.decisions.tables import shown

    lines: list[str] = []
    for table in tables:
        rows = [list(table.header), *([shown(cell) for cell in row] for row in table.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines += ["", table.title]
        for place, row in enumerate(rows):
            first, *others = (
                cell.ljust(width) if not at else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            lines.append("  ".join(["", first, *others]).rstrip())
            if not place:
                lines.append("  " + "-" * (sum(widths) + 2 * len(widths) - 2))
        lines += [f"  {table.note}"] if table.note else []
    return "\n".join(lines[1:]) + "\n"
