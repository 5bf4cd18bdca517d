"""Pictures of runs over recorded steps: by action type, horizon, protocol and tries, and against their cost."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from guieval.data.selection import Choice
from guieval.errors import UsageError, harmless, known_name, nearest
from guieval.evaluation.protocol import EXACT_MATCH, PROGRESS, SUCCESS_RATE, TYPE_MATCH
from guieval.journal import RunFolder
from guieval.journal.repeats import Repeats, grouped
from guieval.journal.run_folders import runs_over, several_runs
from guieval.metrics import Measured
from guieval.metrics.breakdown import mean_breakdown
from guieval.metrics.columns import RunColumns
from guieval.metrics.front import Spent, fronts
from guieval.metrics.protocol_metric import ALL_EXACT, ProtocolMetric
from guieval.metrics.repeats import measured
from guieval.metrics.sampling import Sampled, sampled
from guieval.reports.plots.breakdowns import HORIZONS, bars, between, horizon, ordered
from guieval.reports.plots.drawn import Drawn, PlotOptions, apart, check_labels, titles_of
from guieval.reports.plots.heat import Grid, heat
from guieval.reports.plots.pareto import pareto
from guieval.reports.plots.samples import samples
from guieval.running.costs import COSTED_STEPS, mean_spending, price_of_run, read_prices, spending
from guieval.scoring.matrix import judge_run

_LOG = logging.getLogger(__name__)
POOLED = ("actions", "horizon")
"""Kinds that also read the runs in a folder as one (:mod:`guieval.reports.plots.pooled`)."""
INSTEAD = "its metrics are in `guieval score RUN`, its trajectories in `guieval report RUN`"
"""What to read of a run of tasks."""


@dataclass(frozen=True)
class Scored:
    """Runs under the same protocols, without those of which no step was answered; ``labels`` and ``groups`` belong together.

    A group's runs are repeats; in a picture of samples each run is a group of its own.
    """

    columns: Sequence[RunColumns]
    labels: Sequence[str]
    groups: Sequence[Repeats]
    by_group: Sequence[Sequence[RunColumns]]

    @property
    def protocols(self) -> list[str]:
        return list(self.columns[0].judged)

    @property
    def protocol(self) -> str:
        """The first protocol: the only one, but in a matrix."""
        return self.protocols[0]

    @cached_property
    def models(self) -> Mapping[str, Sequence[RunColumns]]:
        """The runs of each label: one, or several that are repeats; a directory is added to a label that occurs twice."""
        return dict(zip(apart(self.labels, [each.folder for each in self.groups]), self.by_group, strict=True))

    @property
    def intervals_over(self) -> str:
        return "episodes" + " and repeats" * any(len(runs) > 1 for runs in self.by_group)


def of_steps(draw: Callable[[Scored, PlotOptions], Drawn], options: PlotOptions) -> Drawn:
    """A picture of runs, with a caption that says what they are over.

    Raises :class:`UsageError` for runs that are not comparable or not over recorded steps, and where no step was answered.
    """
    scored = _score(options)
    drawn = draw(scored, options)
    first = scored.columns[0]
    if any(run.episodes != first.episodes or len(run) != len(first) for run in scored.columns):
        _LOG.warning("note: the runs are not over the same steps")
    return drawn._replace(shows="; ".join([drawn.shows, *_remarks(scored, options.metric)]))


def _score(options: PlotOptions) -> Scored:
    kind, labels = options.kind, options.label
    choice = Choice(sample_set=options.sample_set, subsets=tuple(options.subset))
    places = runs_over("steps", several_runs(options.runs), INSTEAD)
    first = judge_run(places[0], options.protocol or None).columns(choice)
    scored = [first, *(judge_run(each, list(first.judged)).columns(choice) for each in places[1:])]
    groups = [Repeats.of(each) for each in places] if kind == "samples" else grouped(places)
    check_labels(labels, len(groups), "rows, repeats as one," if len(groups) < len(places) else "runs")
    answered = {place: run for place, run in zip(places, scored, strict=True) if run.answered}
    for place in sorted({*places} - {*answered}, key=places.index):
        _LOG.warning("%s", harmless(f"note: the run {str(place)!r} is left out: no step of it was answered"))
    if not answered:
        raise UsageError("no step of these runs was answered, so there is nothing to draw")
    rest = [
        (each.only(answered), place) for place, each in enumerate(groups) if any(run in answered for run in each.directories)
    ]
    groups = [each for each, _ in rest]
    by_group = [[answered[run] for run in each.directories] for each in groups]
    if len({run.dataset for run in answered.values()}) > 1:
        datasets = ", ".join(sorted({run.dataset for run in answered.values()}))
        hint = "; --pool reads the runs in a folder as one" if kind in POOLED else ""
        raise UsageError(f"the runs are on different data: {datasets}{hint}")
    titles = titles_of([runs[0] for runs in by_group]) if labels is None else [labels[place] for _, place in rest]
    return Scored(list(answered.values()), titles, groups, by_group)


def _remarks(scored: Scored, metric: str | None) -> Iterator[str]:
    """What a caption says of the steps, data, labels and scaffolds of the runs."""
    if any(run.stop == "first-mismatch" for run in scored.columns) and metric not in ("progress", "success"):
        yield "in a mode that stops, of the steps that it reached"
    yield from dict.fromkeys(each.line for each in scored.groups if each.several)
    yield from dict.fromkeys(f"data: {run.selection}" for run in scored.columns)
    yield from dict.fromkeys(f"labels: {run.edition_line}" for run in scored.columns if run.edition_line)
    yield from dict.fromkeys(f"scaffold: {run.scaffold}" for run in scored.columns if run.scaffold)


def pareto_of(scored: Scored, options: PlotOptions) -> Drawn:
    """Exact match against the mean tokens of a step's requests, or, with ``cost`` or ``prices``, against their cost."""
    prices = (read_prices(options.prices) if options.prices else ()) if options.cost or options.prices else None
    points: list[Spent] = []
    left_out: dict[str, str] = {}
    axis, currency = "tokens per step", None
    for (name, runs), group in zip(scored.models.items(), scored.groups, strict=True):
        place = group.name
        price = None if prices is None else price_of_run(RunFolder(group.first), prices)
        judged = [(run, run.judged[scored.protocol]) for run in runs]
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
    best = " and ".join(run.name for of_mode in fronts(points) for run in of_mode)
    sizes = between({point.share.n for point in points})
    modes = " of its mode" * (len({point.mode for point in points}) > 1)
    caption = (
        f"exact match of {sizes} steps under {scored.protocol} against {axis}, 95 % intervals; on the front{modes}: {best}"
    )
    return Drawn(pareto(points, "exact match", axis, options.width), caption, [point._asdict() for point in points])


def actions(scored: Scored, options: PlotOptions) -> Drawn:
    """Exact match of each action type, or of what ``by`` names."""
    by = options.by or "action"
    cells = {label: mean_breakdown(runs, scored.protocol, by) for label, runs in scored.models.items()}
    words = "action type" if by == "action" else by
    caption = f"exact match by {words} under {scored.protocol}, 95 % intervals over {scored.intervals_over}"
    return Drawn(bars(cells, width=options.width), caption, cells)


def horizon_of(scored: Scored, options: PlotOptions) -> Drawn:
    """Exact match by place in the episode, its length, or the length of the reasoning."""
    by = options.by or "ratio"
    if by not in HORIZONS:
        raise UsageError(f"horizon curves do not go by {by!r}{nearest(by, HORIZONS)}; they go by {', '.join(HORIZONS)}")
    cells = {label: mean_breakdown(runs, scored.protocol, by.split("-")) for label, runs in scored.models.items()}
    caption = f"exact match by {HORIZONS[by]} under {scored.protocol}, 95 % intervals over {scored.intervals_over}"
    return Drawn(horizon(cells, by, width=options.width), caption, cells)


def matrix(scored: Scored, options: PlotOptions) -> Drawn:
    """A metric of each run, or of each action type of one, under several protocols."""
    models, protocols, metric = scored.models, scored.protocols, options.metric
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
    under = scored.protocol if len(protocols) == 1 else f"{len(protocols)} protocols"
    caption = f"{shown.name}{by} under {under}, missing steps as wrong"
    return Drawn(
        heat(grid, f"{shown.name} (%)", options.width), caption, {"rows": protocols, "columns": names, "values": found}
    )


def samples_of(scored: Scored, options: PlotOptions) -> Drawn:
    """Runs of one label are tries of the same; a run that holds several answers to a step has a vote, too."""
    found: dict[str, list[Sampled]] = {}
    for label in dict.fromkeys(scored.labels):
        tries = [run for run, of in zip(scored.columns, scored.labels, strict=True) if of == label]
        most = sampled(tries, scored.protocol, "mean").samples
        sizes = [k for k in range(1, most + 1) if k <= 8 or k & (k - 1) == 0 or k == most]
        found[label] = [sampled(tries, scored.protocol, "any", k) for k in sizes] + [
            sampled(tries, scored.protocol, "all", k) for k in sizes
        ]
        if len(tries) == 1 and most > 1:
            found[label].append(sampled(tries, scored.protocol, "vote"))
    tries_of = ", ".join(f"{label}: {max(each.k for each in curves)}" for label, curves in found.items())
    caption = f"steps right under {scored.protocol} in n tries (tries: {tries_of}), 95 % intervals"
    return Drawn(samples(found, width=options.width), caption, found)
