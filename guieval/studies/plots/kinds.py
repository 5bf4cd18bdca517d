"""The pictures of studies: published tables, trainings, decisions and schedules."""

from __future__ import annotations

import logging
from dataclasses import asdict

from guieval.errors import UsageError, known_name
from guieval.reports.leaderboards.published_results import Joined, get_results, joined
from guieval.reports.plots.drawn import RUNS, Drawn, PlotKind, PlotOptions
from guieval.studies.correlation.predictors import common
from guieval.studies.plots.budgets import AXES, budgets, discs
from guieval.studies.plots.clusters import clusters, reachabilities
from guieval.studies.plots.paradigms import paradigms, three_axes
from guieval.studies.plots.reliability import Panel, reliability
from guieval.studies.plots.scaling import against_setting
from guieval.studies.plots.schedules import nlogi
from guieval.studies.plots.training import training
from guieval.studies.trained import points, trained_models, training_folders
from guieval.studies.training_curves import training_curves

_LOG = logging.getLogger(__name__)


def _budget(options: PlotOptions) -> Drawn:
    tables, x, y = options.table, options.x, options.y
    if len(tables) != 1 or len(y) != 1 or len(x) > 1:
        raise UsageError("budget is drawn of one --table and one of its columns, --y")
    table, axis = get_results(tables[0]), known_name("budget", x[0] if x else "samples", AXES)
    found, left_out = discs(table, axis, y[0])
    if left_out:
        _LOG.warning("note: not drawn, since a number is missing: %s", ", ".join(left_out))
    caption = f"{y[0]} of {table.source} against {AXES[axis]}; the area of a disc is the number of parameters"
    return Drawn(
        budgets(found, AXES[axis], _axis(joined(tables), y[0]), options.width), caption, [each._asdict() for each in found]
    )


def _paradigms(options: PlotOptions) -> Drawn:
    tables, x, y = options.table, options.x, options.y
    if not tables or not x or len(y) != 1:
        raise UsageError("paradigms needs --table, an --x for each run but the online one, and one --y (live success)")
    shown = joined(tables)
    found, models = paradigms(options.runs, options.label, shown, x, y[0])
    caption = (
        f"tasks an hour by the clock, number of tasks, and R² of a line of {', '.join(x)} with {y[0]} over {models} models of "
        f"{shown.source}"
    )
    return Drawn(three_axes(found, options.width), caption, [each._asdict() for each in found])


def _reliability(options: PlotOptions) -> Drawn:
    tables, x, y, degree = options.table, options.x, options.y, options.degree or 1
    if not tables or not x or not y:
        raise UsageError("reliability needs --table, at least one --x (a static metric) and one --y (a live one)")
    shown = joined(tables)
    panels = []
    for live in y:
        models, metrics, up, _ = common({name: shown.pairs(name, live) for name in x})
        panels += [Panel(_axis(shown, name), models, metrics[name], up) for name in x]
    drawn = reliability(panels, [_axis(shown, live) for live in y], degree, options.width)
    same = ", over the models that have all of them" * (len(x) > 1)
    caption = (
        f"{', '.join(x)} against {', '.join(y)} of {shown.source}{same}; least-squares curve of degree {degree}, Spearman's rho"
    )
    return Drawn(drawn, caption, [asdict(panel) for panel in panels])


def _study(options: PlotOptions) -> Drawn:
    x, y = options.x, options.y
    for option, names in {"--x": x, "--y": y}.items():
        if len(names) > 1:
            raise UsageError(f"{option} is given {len(names)} times: study has one of each")
    models = [model for folder in options.runs for model in trained_models(folder)]
    found = points(models, next(iter(x), None), next(iter(y), None), options.by)
    return Drawn(
        against_setting(found, options.width), f"{found.y} against {found.x}, a point for each training", found._asdict()
    )


def _training(options: PlotOptions) -> Drawn:
    folders = [each for folder in options.runs for each in training_folders(folder) or [folder]]
    series = training_curves(folders, options.label)
    seeds = ", ".join(f"{each.label}: {each.seeds}" for each in series)
    caption = f"training by optimiser step, means and 95 % intervals (Student's) over seeds ({seeds})"
    return Drawn(training(series, options.width), caption, [asdict(each) for each in series])


def _axis(tables: Joined, name: str) -> str:
    column = tables.column(name)
    return f"{column.title} (%)" if "in %" in column.meaning else column.title


_TRAININGS = "trainings: name at least one folder that `guieval train` wrote, or that of a campaign with `train`"
KINDS = {
    "budget": PlotKind(
        "a table's metric against training samples or GPU hours, with the model's size", "", "table x y", _budget
    ),
    "clusters": PlotKind("the decisions of one step by several models, on its screen", RUNS, "label task", clusters),
    "nlogi": PlotKind("the schedule of mixed histories under kappa and gap", "", "kappa gap", nlogi),
    "paradigms": PlotKind(
        "kinds of evaluation by tasks an hour, tasks, and R² with success online", RUNS, "label table x y", _paradigms
    ),
    "reachability": PlotKind("OPTICS of a step's clicks, and their clusters on the screen", RUNS, "label task", reachabilities),
    "reliability": PlotKind("a table's static metrics against live success", "", "table x y degree", _reliability),
    "study": PlotKind("a metric or the GPU hours of trainings against a setting", _TRAININGS, "x y by", _study),
    "training": PlotKind("curves of trainings over their optimiser steps", _TRAININGS, "label", _training),
}
"""What ``guieval plot`` draws of studies, by name."""
