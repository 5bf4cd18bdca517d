"""``guieval study fit-scaling``: the scaling law of a metric over the size of the training data, with intervals and a plot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import JSON, echo, print_json, say, show
from guieval.errors import UsageError
from guieval.reports.plots.paper import check_file, write
from guieval.reports.tables.table import Table, columns
from guieval.studies.plots.scaling import scaling
from guieval.studies.scaling import ScalingFit, ScalingSeries
from guieval.studies.scaling import fit_scaling as fit
from guieval.studies.trained import read_scaling_series


def fit_scaling(
    file: Annotated[Path, path_argument("PATH", "Folder of a campaign, or of trainings; or a CSV file of them.")],
    form: Annotated[str, typer.Option(help="log-linear: y = a + b log2 x; exponential: y = A + B e^(kx).")] = "log-linear",
    x: Annotated[
        str | None,
        typer.Option(help="Column or setting of sizes (default: the first)."),
    ] = None,
    y: Annotated[str | None, typer.Option(help="Column or metric (default: the next, or the first metric).")] = None,
    by: Annotated[
        str | None,
        typer.Option(help="Column or setting that names the series; each gets its own fit."),
    ] = None,
    unit: Annotated[float, typer.Option(help="exponential: the unit of x, e.g. 1000.")] = 1.0,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    out: Annotated[Path | None, path_option("Picture to write: .pdf, .svg or .png.")] = None,
    width: options.Width = "column",
    json: JSON = False,
) -> None:
    """Fit a scaling law to trained models' scores: coefficients with intervals, R², and a plot."""
    if not 0 < unit < float("inf"):
        raise UsageError(f"--unit is a number above 0, got {unit:g}")
    if unit != 1 and form == "log-linear":
        raise UsageError("--unit is for --form exponential; what a doubling adds has no unit of size")
    wide = options.check_width(width)
    if out is not None:
        check_file(out)
    found: list[tuple[ScalingSeries, ScalingFit]] = []
    series = read_scaling_series(file, x, y, by)
    for each in series:
        scaled = replace(each, sizes=tuple(size / unit for size in each.sizes))
        try:
            found.append((scaled, fit(form, scaled.sizes, scaled.values, level)))
        except UsageError as error:
            raise UsageError(f"{each.name}: {error}" if len(series) > 1 else str(error)) from None
    if json:
        print_json({"unit": unit, "series": [{"name": one.name, "formula": law.formula(), **vars(law)} for one, law in found]})
    else:
        for one, law in found:
            _show(one.name, law)
    if form == "exponential" and not json:
        per = "one of the sizes" if unit == 1 else f"{unit:g} of the sizes"
        say(f"x is counted in {'ones' if unit == 1 else f'units of {unit:g}'}: k is per {per}, and B stands for B e^C")
    if out is not None:
        name = found[0][0].x
        write(scaling(found, name if unit == 1 else f"{name} / {unit:g}", wide), out)
        echo(f"picture:  {out}")


def _show(name: str, law: ScalingFit) -> None:
    if law.deviation is None:
        exact = tuple((name, f"{each.value:.5g}") for name, each in law.coefficients.items())
        note = f"{law.n} points determine these {law.n} coefficients exactly: no interval and no R²"
        show(Table(f"{name}: {law.formula()}", columns("coefficient", "value"), exact, (note,)))
        return
    rows = (
        (name, f"{each.value:.5g}", f"{each.standard_error:.2g}", f"{each.low:.5g} to {each.high:.5g}")
        for name, each in law.coefficients.items()
    )
    heads = columns("coefficient", "value", "standard error", f"{100 * law.level:g} % interval")
    r2 = "not defined" if law.r2 is None else f"{law.r2:.4f}"
    note = f"R² {r2}, residual standard deviation {law.deviation:.3g}, n = {law.n}"
    show(Table(f"{name}: {law.formula()}", heads, tuple(rows), (note,)))
