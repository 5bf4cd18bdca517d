"""``guieval study decisions``: how diverse and stable a model's decisions are, and how they shift between runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guieval.cli import options
from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import FORMATS, JSON, echo, say, write_tables
from guieval.errors import UsageError, nearest
from guieval.journal import RunFolder
from guieval.journal.caveats import mark, notes
from guieval.journal.run_files import Manifest
from guieval.journal.run_folders import is_rollout, one_run, open_folder, pooled_parts, rounds_of, runs_over, several_runs
from guieval.reports.plots.paper import Width, check_file, write
from guieval.reports.tables.records import check_ending, writable, write_file
from guieval.reports.tables.table import Table
from guieval.steps import StepKey
from guieval.studies.decisions.clustering import ClusterSettings
from guieval.studies.decisions.executions import gaps, read_executions
from guieval.studies.decisions.measures import PUBLISHED, DecisionColumns, Thresholds, check_several, measure
from guieval.studies.decisions.plots import diversities, level_shifts, pass_curves, trade_offs
from guieval.studies.decisions.points import METRICS
from guieval.studies.decisions.seeds import progress_by_seed
from guieval.studies.decisions.sensitivity import sensitivity
from guieval.studies.decisions.shifts import ShiftCell, Shifts, shift
from guieval.studies.decisions.tables import (
    STEP_COLUMNS,
    cell_table,
    progress_table,
    run_tables,
    sensitivity_tables,
    shift_tables,
    step_rows,
    trend_tables,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FIGURES = {
    "shift": "baseline stability by its shift, Figure 4",
    "pass": "PASS@n, Figure 6",
    "diversity": "how diversity is distributed, Figure 7",
    "trade-off": "diversity and stability, Figure 8",
}
INSTEAD = "draw samples of recorded steps with `guieval study rollout`; `guieval score` gives the pass@n of an online run"
"""What to do with a run of tasks, whose decisions cannot be measured."""
AGAINST = ("shift", "trade-off")
"""The plots that need a baseline."""


def decisions(
    runs: Annotated[list[Path], path_argument("RUNS...", "Runs of several samples a step, or rollout directories.")],
    against: Annotated[Path | None, path_option("The baseline that each of RUNS is compared with.")] = None,
    pool: Annotated[
        bool, typer.Option("--pool", help="Read the runs or rollouts in each folder, e.g. of several benchmarks, as one.")
    ] = False,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity", help="Show how other radii and L1 change it: the paper's tables 10 to 15.")
    ] = False,
    protocol: Annotated[str | None, typer.Option(help="Protocol (default: the run's own).")] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="Label of a run; give one for each of RUNS in order, then one for --against.")
    ] = None,
    radius: Annotated[float, typer.Option(help="Radius for points, in thousandths of the screen.")] = 70.0,
    metric: Annotated[str, typer.Option(help="l2 or l1.")] = "l2",
    min_samples: Annotated[
        int | None,
        typer.Option(help="Executions within the radius that make a cluster (default: 2 for up to 7 of a type, else 5)."),
    ] = None,
    loose: Annotated[float, typer.Option(help="Texts: largest edit distance if one contains the other.")] = 0.3,
    strict: Annotated[float, typer.Option(help="Texts: largest edit distance otherwise.")] = 0.1,
    low: Annotated[float, typer.Option(help="Stability up to this is low.")] = PUBLISHED.low,
    high: Annotated[float, typer.Option(help="Stability above this is high.")] = PUBLISHED.high,
    negligible: Annotated[
        float, typer.Option(help="A shift of the support size up to this is negligible.")
    ] = PUBLISHED.negligible,
    cell: Annotated[
        str | None,
        typer.Option(metavar="ROW:COLUMN", help="List the steps of a cell: low:inc of Figure 4, inc:dec of Figure 8."),
    ] = None,
    form: options.Format = "text",
    json: JSON = False,
    out: Annotated[Path | None, path_option("Write the tables to this file, not to the screen.")] = None,
    steps: Annotated[Path | None, path_option("Also write the decisions of every step to this .csv or .jsonl file.")] = None,
    plot: options.Picture = None,
    figure: Annotated[
        str | None, typer.Option(help=f"What --plot shows: {'; '.join(f'{name}: {what}' for name, what in FIGURES.items())}.")
    ] = None,
    width: options.Width = "column",
) -> None:
    """Measure a model's decisions from several samples per step: diversity, stability, PASS@n, and shifts between runs."""
    chosen = "json" if json else options.one_of("format", form, FORMATS)
    settings = _settings(radius, metric, min_samples, loose, strict, both=sensitivity)
    thresholds = Thresholds(low, high, negligible)
    shown = _figure(figure, plot, against)
    listed = None if cell is None else _cell(cell, against)
    wide = options.check_width(width)
    _check_files(out, steps)
    studies = _studies(runs, against, pool=pool)
    read = _read(studies, _titles(list(studies), label), settings, thresholds, protocol, 0 if against is None else 1)
    studies, measured = {place: studies[place] for place in read}, list(read.values())
    shifts = [shift(measured[-1], run) for run in measured[:-1]] if against is not None else []
    tables = _tables(studies, measured, shifts, protocol, listed)
    if sensitivity:
        tables += _sensitivity(studies, measured, settings, protocol, against is not None)
    write_tables(tables, chosen, out)
    if steps is not None:
        _write_steps(read, studies, steps)
    if plot is not None:
        _draw(shown, measured, shifts, wide, plot)


def _studies(runs: Sequence[Path], against: Path | None, *, pool: bool) -> dict[Path, tuple[Path, ...]]:
    """What each column is read of, by its folder: a run or rollout, or with ``pool`` all in the folder; the baseline last."""
    if pool:
        named = [*runs, *filter(None, (against,))]
        return {place: tuple(runs_over("steps", pooled_parts(place), INSTEAD)) for place in named}
    baseline = [] if against is None else [against if is_rollout(against) else one_run(against)]
    places = [*runs_over("steps", several_runs(runs, rollouts=True), INSTEAD), *runs_over("steps", baseline, INSTEAD)]
    if baseline and places.count(baseline[0]) > 1:
        raise UsageError(f"the baseline {str(against)!r} is also one of the runs; two runs would be called the same")
    return {place: (place,) for place in places}


def _tables(
    studies: Mapping[Path, Sequence[Path]],
    measured: Sequence[DecisionColumns],
    shifts: Sequence[Shifts],
    protocol: str | None,
    listed: ShiftCell | None,
) -> list[Table]:
    """The tables of the runs, of their shifts, and of the steps of the ``listed`` cell."""
    tables = run_tables(measured)
    progress = {run.title: progress_by_seed(parts, protocol) for run, parts in zip(measured, studies.values(), strict=True)}
    if any(len(of) > 1 for of in progress.values()):
        tables.append(progress_table({title: of for title, of in progress.items() if len(of) > 1}))
    tables += (table for moved in shifts for table in shift_tables(moved))
    if listed is not None:
        tables += (
            cell_table(moved, listed, [(part, _steps_of(part)) for part in parts])
            for moved, parts in zip(shifts, studies.values(), strict=False)
        )
    return tables


def _cell(cell: str, against: Path | None) -> ShiftCell:
    listed = ShiftCell.of(cell)
    if against is None:
        raise UsageError(f"--cell {cell} is a cell of a shift; name the baseline with --against")
    return listed


def _steps_of(part: Path) -> Collection[StepKey]:
    return {StepKey(*key, index) for key, steps in open_folder(part).plan.items() for index in steps}


def _settings(
    radius: float, metric: str, min_samples: int | None, loose: float, strict: float, *, both: bool
) -> ClusterSettings:
    if metric not in METRICS:
        raise UsageError(f"unknown --metric {metric!r}{nearest(metric, METRICS)}; it is l2 or l1")
    if both and metric != "l2":
        raise UsageError("--sensitivity tries both metrics itself, with L2 as the baseline; leave --metric out")
    return ClusterSettings(radius, "l1" if metric == "l1" else "l2", min_samples, loose, strict)


def _draw(shown: str, measured: list[DecisionColumns], shifts: list[Shifts], width: Width, file: Path) -> None:
    drawn: Figure
    if shown == "pass":
        drawn = pass_curves(measured, width)
    elif shown == "diversity":
        drawn = diversities(measured, width)
    else:
        drawn = (level_shifts if shown == "shift" else trade_offs)(shifts, width)
    write(drawn, file)
    say(f"shows:    {FIGURES[shown]}", err=True)
    echo(f"picture:  {file}", err=True)


def _read(
    studies: Mapping[Path, Sequence[Path]],
    titles: Sequence[str],
    settings: ClusterSettings,
    thresholds: Thresholds,
    protocol: str | None,
    baselines: int,
) -> dict[Path, DecisionColumns]:
    """Measure each run; print a note for a run without answers and leave it out. The last ``baselines`` runs must have some."""
    read: dict[Path, DecisionColumns] = {}
    for number, ((place, parts), title) in enumerate(zip(studies.items(), titles, strict=True)):
        unasked: list[StepKey] = []
        executions = chain.from_iterable([read_executions(part, protocol=protocol, unasked=unasked) for part in parts])
        found = measure(executions, settings, title, unasked, thresholds)
        caveats = dict.fromkeys(caveat for part in parts for manifest in _manifests(part) for caveat in notes(manifest))
        for note in [*(gap for part in parts for gap in gaps(part)), *caveats]:
            say(f"note: {note}", err=True)
        if found.measured.any():
            check_several(found)
            read[place] = found
        elif number >= len(studies) - baselines:
            raise UsageError(f"no step of the baseline {str(place)!r} was answered")
        else:
            say(f"note: the run {str(place)!r} is left out: no step of it was answered", err=True)
    if len(read) == baselines:
        raise UsageError("no step of these runs was answered, so there is nothing to show")
    return read


def _figure(figure: str | None, plot: Path | None, against: Path | None) -> str:
    if plot is not None:
        check_file(plot)
    if figure is None:
        return "shift" if against is not None else "diversity"
    options.one_of("figure", figure, FIGURES)
    if plot is None:
        raise UsageError(f"--figure {figure} is drawn into a file: name it with --plot, e.g. --plot figure.pdf")
    if figure in AGAINST and against is None:
        raise UsageError(f"--figure {figure} shows a shift; name the baseline with --against")
    return figure


def _titles(places: Sequence[Path], labels: list[str] | None) -> list[str]:
    """Unique titles of the runs: the directory's name, or its whole path if another run has the same name."""
    if labels is not None and len(labels) != len(places):
        of = f"{len(places)} run{'s' if len(places) > 1 else ''}"
        raise UsageError(f"there are {len(labels)} --label for {of}; give one for each, the baseline's last")
    if labels is None:
        names = [_name(place) for place in places]
        labels = [str(place) if names.count(name) > 1 else name for place, name in zip(places, names, strict=True)]
    if twice := next((label for label in labels if labels.count(label) > 1), None):
        raise UsageError(f"two runs would be called {twice!r}; give each its own --label")
    return labels


def _name(place: Path) -> str:
    """The directory's name, with a mark if the run's checkpoint may not be the one that answered."""
    name = place.resolve().name
    parts = pooled_parts(place)
    marks = dict.fromkeys(filter(None, (mark(each) for part in parts for each in _manifests(part))))
    return f"{name} ({', '.join(marks)})" if marks else name


def _manifests(place: Path) -> list[Manifest]:
    return [RunFolder(each).manifest for each in rounds_of(place)]


def _check_files(tables: Path | None, steps: Path | None) -> None:
    if tables is not None:
        writable(tables)
    if steps is not None:
        check_ending(writable(steps))


def _write_steps(read: Mapping[Path, DecisionColumns], studies: Mapping[Path, Sequence[Path]], file: Path) -> None:
    models = {place: _manifests(parts[0])[0].model_name for place, parts in studies.items()}
    rows = chain.from_iterable(step_rows(run, models[place]) for place, run in read.items())
    say(f"steps:    {write_file(file, rows, STEP_COLUMNS):,} in {file}", err=True)


def _sensitivity(
    studies: Mapping[Path, Sequence[Path]],
    measured: Sequence[DecisionColumns],
    settings: ClusterSettings,
    protocol: str | None,
    paired: bool,
) -> list[Table]:
    found = [
        sensitivity(chain.from_iterable(read_executions(part, protocol=protocol) for part in parts), settings, run.title)
        for parts, run in zip(studies.values(), measured, strict=True)
    ]
    tables = [table for each in found for table in sensitivity_tables(each)]
    for after in found[:-1] if paired else []:
        tables += trend_tables(found[-1], after, measured[-1].thresholds)
    return tables
