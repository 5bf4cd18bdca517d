"""``guieval.plot``: a picture for a paper, of runs or of a published table, as PDF, SVG or PNG."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import NamedTuple

from guieval.errors import UsageError, known_name
from guieval.journal.run_folders import several_runs
from guieval.reports.leaderboards.published_results import Joined, get_results, joined
from guieval.reports.plots.breakdowns import between
from guieval.reports.plots.budgets import AXES, budgets, discs
from guieval.reports.plots.clusters import clusters, reachabilities
from guieval.reports.plots.drawn import Drawn, PlotOptions
from guieval.reports.plots.of_steps import Scored, actions, horizon_of, matrix, of_steps, pareto_of, samples_of
from guieval.reports.plots.paper import WIDTHS, Width, check_file, write
from guieval.reports.plots.paradigms import paradigms, three_axes
from guieval.reports.plots.pooled import of_pools
from guieval.reports.plots.reliability import Panel, reliability
from guieval.reports.plots.run_bars import compared, run_bars
from guieval.reports.plots.scaling import against_setting
from guieval.reports.plots.schedules import nlogi
from guieval.reports.plots.strips import film_strips, strips
from guieval.reports.plots.training import training
from guieval.scoring.matrix import ALL
from guieval.settings.given import AnyPath, OneOrMore, Paths, every, every_path, one_path
from guieval.studies.trained import points, trained_models, training_folders
from guieval.studies.training_curves import training_curves

_LOG = logging.getLogger(__name__)


def plot(
    kind: str,
    runs: Paths = (),
    *,
    out: AnyPath | None = None,
    width: Width = "column",
    protocol: OneOrMore | None = None,
    label: OneOrMore | None = None,
    by: str | None = None,
    metric: str | None = None,
    table: OneOrMore | None = None,
    x: OneOrMore | None = None,
    y: OneOrMore | None = None,
    degree: int | None = None,
    cost: bool | None = None,
    prices: AnyPath | None = None,
    sample_set: str | None = None,
    subset: OneOrMore | None = None,
    task: str | None = None,
    pool: bool = False,
    kappa: Sequence[float] | None = None,
    gap: Sequence[float] | None = None,
) -> Drawn:
    """Draw a picture for a paper, as ``guieval plot`` does; ``kind`` is one of :data:`KINDS`.

    The other arguments are the options of the same names. Without ``out`` no file is written; ``figure`` of the result is
    matplotlib's. Raises :class:`guieval.errors.UsageError` for whatever the command refuses.
    """
    chosen = KINDS[known_name("kind of picture", kind, KINDS)]
    labels = None if label is None else every(label)
    given = PlotOptions(kind, every_path(runs), known_name("width", width, WIDTHS), every(protocol), labels, by, metric)
    given = given._replace(table=every(table), x=every(x), y=every(y), degree=degree, cost=cost, prices=one_path(prices))
    given = given._replace(sample_set=sample_set, subset=every(subset), task=task, pool=pool, kappa=kappa or (), gap=gap or ())
    chosen.check(given)
    file = one_path(out)
    if file is not None:
        check_file(file)
    drawn = chosen.draw(given)
    if file is not None:
        write(drawn.figure, file)
    return drawn


def _bars(options: PlotOptions) -> Drawn:
    if len(options.protocol) > 1 or ALL in options.protocol:
        raise UsageError("bars are drawn under one protocol; matrix shows several")
    found = compared(several_runs(options.runs), options.label, options.metric, next(iter(options.protocol), None))
    tests = f", p of the difference to {found.bars[0].name} (paired, Holm)" * (len(found.bars) > 1)
    sizes = between({bar.value.n for bar in found.bars})
    caption = f"{found.metric} under {found.protocol}, n = {sizes}, 95 % intervals{tests}"
    return Drawn(run_bars(found, options.width), caption, found._asdict())


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
        pairs = [shown.pairs(name, live) for name in x]
        every_x = set.intersection(*({model for model, _, _ in points} for points in pairs))
        for name, found in zip(x, pairs, strict=True):
            points = [point for point in found if point[0] in every_x]
            across, up = [point[1] for point in points], [point[2] for point in points]
            panels.append(Panel(_axis(shown, name), [point[0] for point in points], across, up))
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


def _strip(options: PlotOptions) -> Drawn:
    goal, found = strips(several_runs(options.runs), options.task, options.label)
    shows = f"{goal} By {', '.join(f'{each.name} ({each.ended})' for each in found)}"
    numbers = [{"name": each.name, "ended": each.ended, "actions": [one.action for one in each.frames]} for each in found]
    return Drawn(film_strips(found, options.width), shows, numbers)


def _of_runs(draw: Callable[[Scored, PlotOptions], Drawn], options: PlotOptions) -> Drawn:
    return (of_pools if options.pool else of_steps)(draw, options)


def _axis(tables: Joined, name: str) -> str:
    column = tables.column(name)
    return f"{column.title} (%)" if "in %" in column.meaning else column.title


class PlotKind(NamedTuple):
    """A kind of picture: what it shows, what it is drawn of (empty: no directories), the options it takes, and how."""

    what: str
    of: str
    takes: str
    draw: Callable[[PlotOptions], Drawn]

    def check(self, given: PlotOptions) -> None:
        """Raise :class:`UsageError` for an option that is for other kinds, and for directories missing or not needed."""
        for option, value in given._asdict().items():
            fitting = [name for name, kind in KINDS.items() if option in kind.takes.split()]
            if value and fitting and given.kind not in fitting:
                raise UsageError(f"--{option.replace('_', '-')} is for {', '.join(fitting)}, not for {given.kind}")
        if self.of and not given.runs:
            raise UsageError(f"{given.kind} is drawn of {self.of}")
        if given.runs and not self.of:
            raise UsageError(f"{given.kind} is drawn without runs, and {str(given.runs[0])!r} was given")


_RUNS = "runs: name at least one run directory"
_TRAININGS = "trainings: name at least one folder that `guieval train` wrote, or that of a campaign with `train`"
_STEPS = "protocol label sample_set subset"
KINDS = {
    "actions": PlotKind("bars by action type", _RUNS, f"{_STEPS} by pool", partial(_of_runs, actions)),
    "bars": PlotKind("a metric of runs, each tested against the first", _RUNS, "protocol label metric", _bars),
    "budget": PlotKind(
        "a table's metric against training samples or GPU hours, with the model's size", "", "table x y", _budget
    ),
    "clusters": PlotKind("the decisions of one step by several models, on its screen", _RUNS, "label task", clusters),
    "horizon": PlotKind(
        "curves by place in the episode, its length, or length of the reasoning",
        _RUNS,
        f"{_STEPS} by pool",
        partial(_of_runs, horizon_of),
    ),
    "matrix": PlotKind(
        "heat map of protocols by runs, or by action types of one run", _RUNS, f"{_STEPS} metric", partial(of_steps, matrix)
    ),
    "nlogi": PlotKind("the schedule of mixed histories under kappa and gap", "", "kappa gap", nlogi),
    "paradigms": PlotKind(
        "kinds of evaluation by tasks an hour, tasks, and R² with success online", _RUNS, "label table x y", _paradigms
    ),
    "pareto": PlotKind(
        "exact match against tokens per step or cost, with the front of the best",
        _RUNS,
        f"{_STEPS} cost prices",
        partial(of_steps, pareto_of),
    ),
    "reachability": PlotKind(
        "OPTICS of a step's clicks, and their clusters on the screen", _RUNS, "label task", reachabilities
    ),
    "reliability": PlotKind("a table's static metrics against live success", "", "table x y degree", _reliability),
    "samples": PlotKind("what several tries of a step are worth", _RUNS, _STEPS, partial(of_steps, samples_of)),
    "strip": PlotKind("one task of an environment by several models", _RUNS, "label task", _strip),
    "study": PlotKind("a metric or the GPU hours of trainings against a setting", _TRAININGS, "x y by", _study),
    "training": PlotKind("curves of trainings over their optimiser steps", _TRAININGS, "label", _training),
}
"""What ``guieval plot`` draws, by name."""
