"""``guieval study correlate``: does a metric of static data go with success in live environments?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import JSON, print_json, say, show
from guieval.data.doctor.counts import counted
from guieval.errors import DataError, UsageError, nearest, refuse
from guieval.journal.run_folders import several_runs
from guieval.metrics.measured import SHARE, Measured
from guieval.metrics.rounding import alike
from guieval.reports.leaderboards.leaderboard import leaderboard
from guieval.reports.leaderboards.published_results import joined
from guieval.reports.tables.table import Number, Table, columns
from guieval.studies.correlation.coefficients import Correlation
from guieval.studies.correlation.coefficients import correlate as correlation_of
from guieval.studies.correlation.predictors import MEASURES, choices_of_models, common, compare_predictors
from guieval.studies.csv_columns import number, read_columns

if TYPE_CHECKING:
    Point = tuple[str, float, float]


def correlate(
    source: Annotated[list[Path] | None, path_argument("[CSV | RUNS...]", "A CSV file, or run directories.")] = None,
    x: Annotated[
        list[str] | None,
        typer.Option(help="Column, or metric of the runs' protocol, that predicts --y; several are compared with each other."),
    ] = None,
    y: Annotated[str | None, typer.Option(help="Column to predict, e.g. success in AndroidWorld.")] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            help="A published table, see `guieval leaderboard --list-references`, or a .yaml path; several are joined by model "
            "(a column that two have is TABLE:COLUMN)."
        ),
    ] = None,
    online: Annotated[Path | None, path_option("Runs: CSV file with a column model and the column --y.")] = None,
    protocol: Annotated[str | None, typer.Option(help="Runs: judge under this protocol. Default: each run's own.")] = None,
    stated: Annotated[
        list[float] | None,
        typer.Option(
            metavar="R2",
            min=0,
            max=1,
            help="R² as a paper states it of each --x, in order: shows what choices of the models give, and the nearest.",
        ),
    ] = None,
    json: JSON = False,
) -> None:
    """Correlate two metrics over models: R² of a line, Spearman's rho with its p-value, and Legendre curves.

    With several --x: R², Spearman's rho and Kendall's tau of each with --y, and of every two the difference, with bootstrap
    intervals over the models that have all metrics, or over their families if the rows of the --table name them.
    """
    points_of, notes, families = _points_of(list(source or ()), table, online, protocol)
    if not x or y is None:
        raise UsageError("--x and --y name the two columns to correlate")
    if twice := next((name for name in x if x.count(name) > 1), None):
        raise UsageError(f"--x {twice} is given twice")
    if stated and len(stated) != len(x):
        raise UsageError(f"there are {len(stated)} --stated for {len(x)} --x; give one for each, in order")
    columns_of = {name: points_of(name, y) for name in x}
    if stated:
        _show_choices(columns_of, stated, y, notes, json=json)
    elif len(x) == 1:
        _show(columns_of[x[0]], x[0], y, notes, json=json)
    else:
        _compare(columns_of, y, notes, families, json=json)


def _points_of(
    files: list[Path], table: list[str] | None, online: Path | None, protocol: str | None
) -> tuple[Callable[[str, str], list[Point]], list[str], dict[str, str]]:
    """What gives the points of two columns of the source, notes on the source, and the models' families."""
    published = joined(table) if table else None
    if (published is None) == (not files):
        raise UsageError("say what to correlate: either --table NAME, or a CSV file or run directories")
    lone = next((str(each) for each in files if not each.is_dir()), None)
    if published is None and lone is None:
        if online is None:
            raise UsageError("runs need --online, a CSV file with a column model and the column --y")
        return lambda x, y: _of_runs(files, x, y, online, protocol), [], {}
    why = "is for run directories; a table or a CSV file holds both columns itself"
    refuse({"online": online, "protocol": protocol}, why)
    if published is not None:
        notes = [f"source: {published.source}", *(f"note: {note}" for note in published.notes)]
        return published.pairs, notes, published.families
    if len(files) > 1:
        raise UsageError(f"several sources must all be run directories, and {lone!r} is none")
    if not files[0].exists():
        raise UsageError(f"there is neither a CSV file nor a run directory at {lone!r}")
    return lambda x, y: _of_csv(files[0], x, y), [], {}


def _of_csv(file: Path, x: str, y: str) -> list[Point]:
    """(name, x, y) of each line that has both numbers; a line's name is its first column that is neither."""
    points = []
    for place, line in read_columns(file, (x, y))[1]:
        name = next((text for column, text in line.items() if column not in (x, y)), f"line {place}")
        values = [number(line[column], file, place, column) for column in (x, y)]
        if values[0] is not None and values[1] is not None:
            points.append((name, values[0], values[1]))
    return points


def _of_runs(directories: list[Path], x: str, y: str, online: Path, protocol: str | None) -> list[Point]:
    """(run, its metric ``x`` in %, its model's ``y``); every run must have both, and every model one run."""
    live: dict[str, float] = {}
    for place, line in read_columns(online, ("model", y))[1]:
        value = number(line[y], online, place, y)
        if line["model"] in live:
            raise DataError(f"{online}, line {place}: the model {line['model']!r} has a value already")
        if value is not None:
            live[line["model"]] = value
    board = leaderboard(several_runs(directories), None if protocol is None else [protocol])
    places = [at for at, column in enumerate(board.columns) if column.metric == x]
    if not places:
        names = list(dict.fromkeys(column.metric for column in board.columns))
        raise UsageError(f"the runs have no metric {x!r}{nearest(x, names)}; they have: {', '.join(names)}")
    if len(places) > 1:
        where = [f"{board.columns[place].benchmark} under {board.columns[place].protocol}" for place in places]
        raise UsageError(
            f"the runs are unlike: {x!r} stands in {len(places)} columns ({'; '.join(where)}), which cannot be mixed"
        )
    modes = sorted({row.mode for row in board.rows})
    if len(modes) > 1:
        raise UsageError(f"the runs are in several modes ({', '.join(modes)}), whose metrics cannot be mixed")
    runs_of = Counter(row.model for row in board.rows)
    if twice := next((model for model, count in runs_of.items() if count > 1), None):
        raise UsageError(f"the model {twice!r} has several runs here; a model is one point, so give one run of each")
    points = []
    for row in board.rows:
        cell = row.cells[places[0]]
        if cell is None or (value := cell.measured.value) is None:
            raise UsageError(f"{row.model!r} ({row.mode}) has no metric {x!r}")
        if row.model not in live:
            raise UsageError(f"{str(online)!r} has no {y!r} of the model {row.model!r}{nearest(row.model, live)}")
        points.append((f"{row.model} ({row.mode})", 100 * value if cell.measured.unit == SHARE else value, live[row.model]))
    return points


def _show(points: list[Point], x: str, y: str, notes: list[str], *, json: bool) -> None:
    found = correlation_of([point[1] for point in points], [point[2] for point in points])
    notes = [*(f"note: {line}" for line in found.warnings), *notes]
    if json:
        values = [{"model": name, "x": across, "y": up} for name, across, up in points]
        print_json({"x": x, "y": y, "points": values, **vars(found), "notes": notes})
        return
    names, across, up = zip(*points, strict=True)
    rows = tuple(zip(names, alike(across), alike(up), strict=True))
    measures = Table(f"Over {found.n} models", columns("measure", "value", "how", folds=("how",)), tuple(_measures(found)))
    show(Table("", columns("model", x, y), rows), measures)
    for line in notes:
        say(line)


def _compare(columns_of: dict[str, list[Point]], y: str, notes: list[str], families: dict[str, str], *, json: bool) -> None:
    """Compare several columns by how they predict ``y``, over the models that have all of them."""
    models, metrics, predicted, left_out = common(columns_of)
    alike_as = [families[model] for model in models] if families.keys() >= set(models) else None
    if alike_as is not None and len(set(alike_as)) < 4:
        few = f"note: intervals are over models, since these are of fewer than 4 families ({', '.join(sorted(set(alike_as)))})"
        alike_as, notes = None, [few, *notes]
    found, notes = compare_predictors(metrics, predicted, families=alike_as), [*_missing(left_out), *notes]
    if json:
        print_json({"y": y, "models": models, **asdict(found), "notes": notes})
        return
    unit = "models" if found.families is None else "families"
    title = f"How each predicts {y}, over {found.n} models (95 % intervals)"
    rows, between = (
        tuple((name, *map(_estimate, measures.values())) for name, measures in each.items())
        for each in (found.predictors, found.differences)
    )
    show(
        Table(title, columns("metric", *MEASURES), rows),
        Table(f"Differences, over the same resampled {unit}", columns("metrics", *MEASURES), between),
    )
    of = unit if found.families is None else f"{found.families} families of models"
    say(f"Bootstrap over {of}: {found.resamples:,} resamples, seed {found.seed}. It is valid for models like these only.")
    for line in notes:
        say(line)


def _missing(models: int) -> list[str]:
    return [f"note: {counted(models, 'model')} left out, because a metric is missing"] * bool(models)


def _show_choices(columns_of: dict[str, list[Point]], stated: list[float], y: str, notes: list[str], *, json: bool) -> None:
    """R² over every choice of the models that have all columns, by its size, next to what is stated."""
    models, metrics, predicted, left_out = common(columns_of)
    found, notes = choices_of_models(metrics, predicted, stated), [*_missing(left_out), *notes]
    named = [", ".join(models[place] for place in each.nearest) for each in found]
    if json:
        rows = [{**asdict(each), "nearest": name} for each, name in zip(found, named, strict=True)]
        print_json(
            {"y": y, "models": models, "stated": dict(zip(metrics, stated, strict=True)), "choices": rows, "notes": notes}
        )
        return
    heads = columns("models", "choices", *(f"{name} ({value:g} stated)" for name, value in zip(metrics, stated, strict=True)))
    table = Table(
        f"R² of a line with {y}: of the choice nearest to what is stated, and [smallest, largest] of all choices of this size",
        heads,
        tuple((each.size, each.choices, *(f"{at:.3f} [{low:.2f}, {high:.2f}]" for at, low, high in each.r2)) for each in found),
    )
    nearest_of = Table(
        "",
        columns("models", "nearest choice", folds=("nearest choice",)),
        tuple((each.size, name) for each, name in zip(found, named, strict=True)),
    )
    show(table, nearest_of)
    for line in notes:
        say(line)


def _estimate(estimate: Measured) -> str | Number:
    return "not defined" if estimate.value is None else Number(estimate)


def _measures(found: Correlation) -> Iterator[tuple[str, str, str]]:
    rank = found.rank
    if rank.rho is None or rank.p_value is None:
        yield "Spearman rho", "not defined", "one of the columns does not vary"
    else:
        method = f"exact, of all orders of {found.n}" if rank.method == "exact" else "Student's t"
        p = "p < 0.0001" if rank.p_value < 0.0001 else f"p = {rank.p_value:.4f}"
        yield "Spearman rho", f"{rank.rho:.4f}", f"{p}, {method}"
    for fit in found.fits:
        curve = " ".join(f"{value:+.4g} P{place}" for place, value in enumerate(fit.coefficients))
        name = "R², line" if fit.degree == 1 else f"R², degree {fit.degree}"
        yield (
            name,
            "not defined" if fit.r2 is None else f"{fit.r2:.4f}",
            f"{curve}, x from {' to '.join(alike(fit.domain))}",
        )
