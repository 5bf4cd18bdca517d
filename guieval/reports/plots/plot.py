"""``guieval.plot``: a picture for a paper, of runs or of a published table, as PDF, SVG or PNG."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from guieval.data.selection import Choice
from guieval.errors import UsageError, harmless, known_name, nearest
from guieval.evaluation.protocol import EXACT_MATCH, PROGRESS, SUCCESS_RATE, TYPE_MATCH
from guieval.journal import RunFolder
from guieval.journal.repeats import Repeats, grouped
from guieval.journal.run_folders import runs_over, several_runs
from guieval.metrics import Measured
from guieval.metrics.breakdown import mean_breakdown
from guieval.metrics.columns import RunColumns
from guieval.metrics.protocol_metric import ALL_EXACT, ProtocolMetric
from guieval.metrics.repeats import measured
from guieval.metrics.sampling import Sampled, sampled
from guieval.reports.leaderboards.published_results import Joined, get_results, joined
from guieval.reports.plots.breakdowns import bars, between, horizon, ordered
from guieval.reports.plots.budgets import AXES, budgets, discs
from guieval.reports.plots.heat import Grid, heat
from guieval.reports.plots.paper import WIDTHS, Width, check_file, write
from guieval.reports.plots.paradigms import paradigms, three_axes
from guieval.reports.plots.pareto import Spent, on_front, pareto
from guieval.reports.plots.reliability import Panel, reliability
from guieval.reports.plots.run_bars import compared, run_bars
from guieval.reports.plots.samples import samples
from guieval.reports.plots.scaling import against_setting
from guieval.reports.plots.strips import film_strips, strips
from guieval.reports.plots.training import training
from guieval.running.costs import COSTED_STEPS, Price, mean_spending, price_of_run, read_prices, spending
from guieval.scoring.matrix import ALL, judge_run
from guieval.settings.given import AnyPath, OneOrMore, Paths, every, every_path, one_path
from guieval.studies.trained import points, trained_models, training_folders
from guieval.studies.training_curves import training_curves

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOG = logging.getLogger(__name__)
_Models: TypeAlias = Mapping[str, Sequence[RunColumns]]
"""The runs of each label: one, or several that are repeats."""


class Drawn(NamedTuple):
    """A picture, what it shows in words for its caption, and the numbers it was drawn from."""

    figure: Figure
    shows: str
    numbers: Any


KINDS = {
    "actions": "bars by action type",
    "bars": "a metric of runs, each tested against the first",
    "budget": "a table's metric against training samples or GPU hours, with the model's size",
    "horizon": "curves by place in the episode, its length, or length of the reasoning",
    "matrix": "heat map of protocols by runs, or by action types of one run",
    "paradigms": "kinds of evaluation by tasks an hour, tasks, and R² with success online",
    "pareto": "exact match against tokens per step or cost, with the front of the best",
    "reliability": "a table's static metrics against live success",
    "study": "a metric or the GPU hours of trainings against a setting",
    "samples": "what several tries of a step are worth",
    "strip": "one task of an environment by several models",
    "training": "curves of trainings over their optimiser steps",
}
_OF_RUNS = ("actions", "horizon", "matrix", "pareto", "samples")
_OPTIONS = {
    "protocol": (*_OF_RUNS, "bars"),
    **dict.fromkeys(("sample-set", "subset"), _OF_RUNS),
    "table": ("budget", "paradigms", "reliability"),
    **dict.fromkeys(("x", "y"), ("budget", "paradigms", "reliability", "study")),
    "degree": ("reliability",),
    "by": ("actions", "horizon", "study"),
    "metric": ("matrix", "bars"),
    "task": ("strip",),
    **dict.fromkeys(("cost", "prices"), ("pareto",)),
    "label": (*_OF_RUNS, "bars", "paradigms", "strip", "training"),
}
"""The kinds of picture that each option is for."""


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
) -> Drawn:
    """Draw a picture for a paper, as ``guieval plot`` does; ``kind`` is one of :data:`KINDS`.

    The other arguments are the options of the same names. Without ``out`` no file is written; ``figure`` of the result is
    matplotlib's. Raises :class:`guieval.errors.UsageError` for whatever the command refuses.
    """
    known_name("kind of picture", kind, KINDS)
    wide = known_name("width", width, WIDTHS)
    given: dict[str, object] = {"protocol": protocol, "label": label, "by": by, "metric": metric, "table": table, "x": x}
    given |= {"y": y, "degree": degree, "cost": cost, "prices": prices, "sample-set": sample_set, "subset": subset}
    given |= {"task": task}
    for option, value in given.items():
        if value is not None and kind not in _OPTIONS[option]:
            raise UsageError(f"--{option} is for {', '.join(_OPTIONS[option])}, not for {kind}")
    file, places, labels = one_path(out), every_path(runs), None if label is None else every(label)
    if file is not None:
        check_file(file)
    if kind == "training":
        drawn = _training(places, labels, wide)
    elif kind == "study":
        drawn = _study(places, every(x), every(y), by, wide)
    elif kind == "reliability":
        drawn = _reliability(places, every(table), every(x), every(y), degree or 1, wide)
    elif kind == "budget":
        drawn = _budget(places, every(table), every(x), every(y), wide)
    elif not places:
        raise UsageError(f"{kind} is drawn of runs: name at least one run directory")
    elif kind == "paradigms":
        drawn = _paradigms(places, labels, every(table), every(x), every(y), wide)
    elif kind == "bars":
        drawn = _bars(places, every(protocol), labels, metric, wide)
    elif kind == "strip":
        goal, found = strips(several_runs(places), task, labels)
        shows = f"{goal} By {', '.join(f'{each.name} ({each.ended})' for each in found)}"
        numbers = [{"name": each.name, "ended": each.ended, "actions": [one.action for one in each.frames]} for each in found]
        drawn = Drawn(film_strips(found, wide), shows, numbers)
    else:
        priced = (read_prices(Path(prices)) if prices else ()) if cost or prices else None
        drawn = _of_runs(kind, places, every(protocol), labels, by, metric, (sample_set, tuple(every(subset))), priced, wide)
    if file is not None:
        write(drawn.figure, file)
    return drawn


def _of_runs(
    kind: str,
    directories: Sequence[Path],
    protocols: list[str],
    labels: list[str] | None,
    by: str | None,
    metric: str | None,
    steps: tuple[str | None, tuple[str, ...]],
    prices: Sequence[Price] | None,
    width: Width,
) -> Drawn:
    if kind != "matrix" and (len(protocols) > 1 or ALL in protocols):
        raise UsageError(f"{kind} is drawn under one protocol; matrix shows several")
    choice = Choice(sample_set=steps[0], subsets=steps[1])
    instead = "its metrics are in `guieval score RUN`, its trajectories in `guieval report RUN`"
    places = runs_over("steps", several_runs(directories), instead)
    first = judge_run(places[0], protocols or None).columns(choice)
    names = list(first.judged)
    scored = [first, *(judge_run(each, names).columns(choice) for each in places[1:])]
    groups = [Repeats.of(each) for each in places] if kind == "samples" else grouped(places)
    if labels is not None and len(labels) != len(groups):
        what = "rows, repeats as one," if len(groups) < len(places) else "runs"
        raise UsageError(f"there are {len(groups)} {what} and {len(labels)} --label; give one for each, in order")
    kept = [place for place, run in enumerate(scored) if run.answered]
    for place in sorted({*range(len(places))} - {*kept}):
        _LOG.warning("%s", harmless(f"note: the run {str(places[place])!r} is left out: no step of it was answered"))
    if not kept:
        raise UsageError("no step of these runs was answered, so there is nothing to draw")
    answered = {places[place]: scored[place] for place in kept}
    rest = [
        (each.only(answered), place) for place, each in enumerate(groups) if any(run in answered for run in each.directories)
    ]
    labels = None if labels is None else [labels[place] for _, place in rest]
    columns, groups = list(answered.values()), [each for each, _ in rest]
    firsts = [answered[each.first] for each in groups]
    if len({run.dataset for run in columns}) > 1:
        raise UsageError(f"the runs are on different data: {', '.join(sorted({run.dataset for run in columns}))}")
    labels = labels or _titles(firsts)
    models = [[answered[run] for run in each.directories] for each in groups]
    titled = {} if kind == "samples" else dict(zip(_apart(labels, [each.folder for each in groups]), models, strict=True))
    if kind == "samples":
        drawn = _samples(columns, labels, names[0], width)
    elif kind == "pareto":
        drawn = _pareto(titled, groups, names[0], prices, width)
    else:
        draw: Callable[..., Drawn] = {"actions": _actions, "horizon": _horizon, "matrix": _matrix}[kind]
        drawn = draw(titled, names, metric if kind == "matrix" else by, width)
    shows = drawn.shows
    if any(run.stop == "first-mismatch" for run in columns) and metric not in ("progress", "success"):
        shows += "; in a mode that stops, of the steps that it reached"
    for text in dict.fromkeys(each.line for each in groups if each.several):
        shows = shows + f"; {text}"
    for text in dict.fromkeys(run.selection for run in columns):
        shows += f"; data: {text}"
    for text in dict.fromkeys(run.edition_line for run in columns if run.edition_line):
        shows += f"; labels: {text}"
    for text in dict.fromkeys(run.scaffold for run in columns if run.scaffold):
        shows += f"; scaffold: {text}"
    if any(run.episodes != columns[0].episodes or len(run) != len(columns[0]) for run in columns):
        _LOG.warning("note: the runs are not over the same steps")
    return drawn._replace(shows=shows)


def _pareto(models: _Models, groups: Sequence[Repeats], protocol: str, prices: Sequence[Price] | None, width: Width) -> Drawn:
    """Exact match against the mean tokens of a step's requests, or, with ``prices``, against their cost."""
    points: list[Spent] = []
    left_out: dict[str, str] = {}
    axis, currency = "tokens per step", None
    for (name, runs), group in zip(models.items(), groups, strict=True):
        place = group.name
        price = None if prices is None else price_of_run(RunFolder(group.first), prices)
        judged = [(run, run.judged[protocol]) for run in runs]
        spent = mean_spending([each for run in judged if (each := spending(*run, price)) is not None])
        if spent is None:
            left_out[place] = "its server reported no tokens"
            continue
        if prices is not None and (spent.cost is None or currency not in (None, spent.currency)):
            why = "has no price" if spent.cost is None else f"has a price in {spent.currency}, not in {currency}"
            left_out[place] = f"its model {why}; --prices names a file of prices"
            continue
        if spent.cost is not None:
            currency = spent.currency
            axis = f"cost of {COSTED_STEPS:,} steps ({currency})"
        exact = measured(ALL_EXACT, judged)
        if exact.value is not None:
            points.append(Spent(name, spent.tokens if spent.cost is None else spent.cost, exact, runs[0].mode))
    if not points:
        raise UsageError("there is nothing to draw: " + "; ".join(f"run {place!r}: {why}" for place, why in left_out.items()))
    for place, why in left_out.items():
        _LOG.warning("%s", harmless(f"note: the run {place!r} is left out: {why}"))
    best = " and ".join(run.name for run in on_front(points))
    sizes = between({point.share.n for point in points})
    modes = " of its mode" * (len({point.mode for point in points}) > 1)
    caption = f"exact match of {sizes} steps under {protocol} against {axis}, 95 % intervals; on the front{modes}: {best}"
    return Drawn(pareto(points, "exact match", axis, width), caption, [point._asdict() for point in points])


def _titles(columns: Sequence[RunColumns]) -> list[str]:
    """A label from those of model, benchmark and mode that differ between runs; the model if none differs."""
    named = [(run.model, run.benchmark, run.mode) for run in columns]
    telling = [place for place in range(3) if len({each[place] for each in named}) > 1] or [0]
    return [", ".join(each[place] for place in telling) for each in named]


def _apart(labels: Sequence[str], places: Sequence[Path]) -> list[str]:
    """Unique labels: the run's directory is added to duplicates."""
    titles = [
        f"{label} ({place.name})" if labels.count(label) > 1 else label for label, place in zip(labels, places, strict=True)
    ]
    if twice := next((label for label in titles if titles.count(label) > 1), None):
        raise UsageError(f"two runs would be called {twice!r}; give each its own --label")
    return titles


def _over(models: _Models) -> str:
    """What intervals are over."""
    return "episodes" + " and repeats" * any(len(runs) > 1 for runs in models.values())


def _actions(models: _Models, protocols: list[str], by: str | None, width: Width) -> Drawn:
    by = by or "action"
    cells = {label: mean_breakdown(runs, protocols[0], by) for label, runs in models.items()}
    words = "action type" if by == "action" else by
    caption = f"exact match by {words} under {protocols[0]}, 95 % intervals over {_over(models)}"
    return Drawn(bars(cells, width=width), caption, cells)


def _horizon(models: _Models, protocols: list[str], by: str | None, width: Width) -> Drawn:
    by = by or "ratio"
    known = ("ratio", "step", "length", "reasoning", "ratio-step")
    if by not in known:
        raise UsageError(f"horizon curves do not go by {by!r}{nearest(by, known)}; they go by {', '.join(known)}")
    cells = {label: mean_breakdown(runs, protocols[0], by.split("-")) for label, runs in models.items()}
    words = {
        "ratio": "part of the episode",
        "step": "step index",
        "length": "episode length",
        "reasoning": "length of the reasoning",
    }
    what = words.get(by, "step index in each part of the episode")
    caption = f"exact match by {what} under {protocols[0]}, 95 % intervals over {_over(models)}"
    return Drawn(horizon(cells, by, width=width), caption, cells)


def _matrix(models: _Models, protocols: list[str], metric: str | None, width: Width) -> Drawn:
    known = {"exact": EXACT_MATCH, "type": TYPE_MATCH, "progress": PROGRESS, "success": SUCCESS_RATE}
    shown = ProtocolMetric(known[known_name("metric", metric or "exact", known)])
    if len(models) > 1 or metric in ("progress", "success"):
        found = [
            [measured(shown, [(run, run.judged[name]) for run in runs], intervals=False) for runs in models.values()]
            for name in protocols
        ]
        names, by = list(models), ""
    else:
        (runs,) = models.values()
        cut = [{cell.label: cell for cell in mean_breakdown(runs, name, "action")} for name in protocols]
        names = ordered(label for cells in cut for label in cells)
        which = "type_match" if metric == "type" else "exact_match"
        found = [[getattr(cells[each], which) if each in cells else Measured(None) for each in names] for cells in cut]
        by = " by action type"
    sizes = [between({row[place].n for row in found if row[place].value is not None} or {0}) for place in range(len(names))]
    of = "episodes" if shown.of_episodes else "steps"
    grid = Grid(protocols, names, [[each.value for each in row] for row in found], sizes, of)
    under = protocols[0] if len(protocols) == 1 else f"{len(protocols)} protocols"
    caption = f"{shown.name}{by} under {under}, missing steps as wrong"
    return Drawn(heat(grid, f"{shown.name} (%)", width), caption, {"rows": protocols, "columns": names, "values": found})


def _samples(columns: Sequence[RunColumns], labels: Sequence[str], protocol: str, width: Width) -> Drawn:
    """Runs of one label are tries of the same; a run with several responses to a step has a vote, too."""
    found: dict[str, list[Sampled]] = {}
    for label in dict.fromkeys(labels):
        tries = [run for run, of in zip(columns, labels, strict=True) if of == label]
        most = sampled(tries, protocol, "mean").samples
        sizes = [k for k in range(1, most + 1) if k <= 8 or k & (k - 1) == 0 or k == most]
        found[label] = [sampled(tries, protocol, "any", k) for k in sizes] + [sampled(tries, protocol, "all", k) for k in sizes]
        if len(tries) == 1 and most > 1:
            found[label].append(sampled(tries, protocol, "vote"))
    tries_of = ", ".join(f"{label}: {max(each.k for each in curves)}" for label, curves in found.items())
    caption = f"steps right under {protocol} in n tries (tries: {tries_of}), 95 % intervals"
    return Drawn(samples(found, width=width), caption, found)


def _bars(
    directories: Sequence[Path], protocols: list[str], labels: list[str] | None, metric: str | None, width: Width
) -> Drawn:
    if len(protocols) > 1 or ALL in protocols:
        raise UsageError("bars are drawn under one protocol; matrix shows several")
    found = compared(several_runs(directories), labels, metric, protocols[0] if protocols else None)
    tests = f", p of the difference to {found.bars[0].name} (paired, Holm)" * (len(found.bars) > 1)
    sizes = between({bar.value.n for bar in found.bars})
    caption = f"{found.metric} under {found.protocol}, n = {sizes}, 95 % intervals{tests}"
    return Drawn(run_bars(found, width), caption, found._asdict())


def _budget(runs: list[Path], tables: Sequence[str], x: Sequence[str], y: Sequence[str], width: Width) -> Drawn:
    if runs or len(tables) != 1 or len(y) != 1 or len(x) > 1:
        raise UsageError("budget is drawn of one --table and one of its columns, --y, without runs")
    table, axis = get_results(tables[0]), known_name("budget", x[0] if x else "samples", AXES)
    found, left_out = discs(table, axis, y[0])
    if left_out:
        _LOG.warning("note: not drawn, since a number is missing: %s", ", ".join(left_out))
    caption = f"{y[0]} of {table.source} against {AXES[axis]}; the area of a disc is the number of parameters"
    return Drawn(budgets(found, AXES[axis], _axis(joined(tables), y[0]), width), caption, [each._asdict() for each in found])


def _paradigms(
    runs: list[Path], labels: list[str] | None, tables: Sequence[str], x: Sequence[str], y: Sequence[str], width: Width
) -> Drawn:
    if not tables or not x or len(y) != 1:
        raise UsageError("paradigms needs --table, an --x for each run but the online one, and one --y (live success)")
    shown = joined(tables)
    found, models = paradigms(runs, labels, shown, x, y[0])
    caption = (
        f"tasks an hour by the clock, number of tasks, and R² of a line of {', '.join(x)} with {y[0]} over {models} models of "
        f"{shown.source}"
    )
    return Drawn(three_axes(found, width), caption, [each._asdict() for each in found])


def _reliability(
    runs: list[Path], tables: Sequence[str], x: Sequence[str], y: Sequence[str], degree: int, width: Width
) -> Drawn:
    if runs:
        raise UsageError("reliability is drawn of a table: name it with --table, without run directories")
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
    drawn = reliability(panels, [_axis(shown, live) for live in y], degree, width)
    same = ", over the models that have all of them" * (len(x) > 1)
    caption = (
        f"{', '.join(x)} against {', '.join(y)} of {shown.source}{same}; least-squares curve of degree {degree}, Spearman's rho"
    )
    return Drawn(drawn, caption, [asdict(panel) for panel in panels])


def _study(folders: Sequence[Path], x: Sequence[str], y: Sequence[str], by: str | None, width: Width) -> Drawn:
    if not folders:
        raise UsageError("study is drawn of trainings: name the folder of a campaign with `train`, or one of trainings")
    for option, names in {"--x": x, "--y": y}.items():
        if len(names) > 1:
            raise UsageError(f"{option} is given {len(names)} times: study has one of each")
    models = [model for folder in folders for model in trained_models(folder)]
    found = points(models, next(iter(x), None), next(iter(y), None), by)
    return Drawn(against_setting(found, width), f"{found.y} against {found.x}, a point for each training", found._asdict())


def _training(folders: Sequence[Path], labels: Sequence[str] | None, width: Width) -> Drawn:
    folders = [each for folder in folders for each in training_folders(folder) or [folder]]
    if not folders:
        raise UsageError("training is drawn of trainings: name at least one folder that `guieval train` wrote")
    series = training_curves(folders, labels)
    seeds = ", ".join(f"{each.label}: {each.seeds}" for each in series)
    caption = f"training by optimiser step, means and 95 % intervals (Student's) over seeds ({seeds})"
    return Drawn(training(series, width), caption, [asdict(each) for each in series])


def _axis(tables: Joined, name: str) -> str:
    column = tables.column(name)
    return f"{column.title} (%)" if "in %" in column.meaning else column.title
