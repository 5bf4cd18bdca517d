"""``guieval.plot``: a picture for a paper, of runs or of a published table, as PDF, SVG or PNG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from guieval.errors import known_name
from guieval.given import AnyPath, OneOrMore, Paths, every, every_path, one_path
from guieval.journal.run_folders import several_runs
from guieval.reports.plots.breakdowns import between
from guieval.reports.plots.drawn import RUNS, Drawn, PlotKind, PlotOptions
from guieval.reports.plots.of_steps import Scored, actions, horizon_of, matrix, of_steps, pareto_of, samples_of
from guieval.reports.plots.paper import WIDTHS, Width, check_file, write
from guieval.reports.plots.pooled import of_pools
from guieval.reports.plots.run_bars import compared, run_bars
from guieval.reports.plots.strips import film_strips, strips
from guieval.wings import offered, offers


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
    chosen.check(given, KINDS)
    file = one_path(out)
    if file is not None:
        check_file(file)
    drawn = chosen.draw(given)
    if file is not None:
        write(drawn.figure, file)
    return drawn


def _bars(options: PlotOptions) -> Drawn:
    found = compared(several_runs(options.runs), options.label, options.metric, next(iter(options.protocol), None))
    tests = f", p of the difference to {found.bars[0].name} (paired, Holm)" * (len(found.bars) > 1)
    sizes = between({bar.value.n for bar in found.bars})
    caption = f"{found.metric} under {found.protocol}, n = {sizes}, 95 % intervals{tests}"
    return Drawn(run_bars(found, options.width), caption, found._asdict())


def _strip(options: PlotOptions) -> Drawn:
    goal, found = strips(several_runs(options.runs), options.task, options.label)
    shows = f"{goal} By {', '.join(f'{each.name} ({each.ended})' for each in found)}"
    numbers = [{"name": each.name, "ended": each.ended, "actions": [one.action for one in each.frames]} for each in found]
    return Drawn(film_strips(found, options.width), shows, numbers)


def _of_runs(draw: Callable[[Scored, PlotOptions], Drawn], options: PlotOptions) -> Drawn:
    return (of_pools if options.pool else of_steps)(draw, options)


_STEPS = "protocol label sample_set subset"
_OWN = {
    "actions": PlotKind("bars by action type", RUNS, f"{_STEPS} by pool", partial(_of_runs, actions)),
    "bars": PlotKind("a metric of runs, each tested against the first", RUNS, "protocol label metric", _bars),
    "horizon": PlotKind(
        "curves by place in the episode, its length, or length of the reasoning",
        RUNS,
        f"{_STEPS} by pool",
        partial(_of_runs, horizon_of),
    ),
    "matrix": PlotKind(
        "heat map of protocols by runs, or by action types of one run", RUNS, f"{_STEPS} metric", partial(of_steps, matrix)
    ),
    "pareto": PlotKind(
        "exact match against tokens per step or cost, with the front of the best",
        RUNS,
        f"{_STEPS} cost prices",
        partial(of_steps, pareto_of),
    ),
    "samples": PlotKind("what several tries of a step are worth", RUNS, _STEPS, partial(of_steps, samples_of)),
    "strip": PlotKind("one task of an environment by several models", RUNS, "label task", _strip),
}
KINDS: dict[str, PlotKind] = dict(
    sorted([*_OWN.items(), *(each for name in offers("plots") for each in offered("plots", name).items())])
)
"""What ``guieval plot`` draws, by name: of runs, and what the wings add."""
