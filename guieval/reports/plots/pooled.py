"""Bars and curves of the runs in each folder together, e.g. of several benchmarks; the rounds of rollouts are repeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from guieval.data.doctor.counts import counted
from guieval.errors import UsageError
from guieval.journal import RunFolder
from guieval.journal.repeats import Repeats, Seeds
from guieval.journal.run_folders import pooled_parts, rounds_of, runs_over
from guieval.metrics.breakdown import mean_breakdown
from guieval.metrics.columns import RunColumns, concatenated
from guieval.reports.plots.breakdowns import ordered
from guieval.reports.plots.drawn import Drawn, PlotOptions, check_labels, titles_of
from guieval.reports.plots.of_steps import INSTEAD, Scored
from guieval.scoring.matrix import judge_run

_FEW = 6
"""Cells that a caption names one by one."""


def of_pools(draw: Callable[[Scored, PlotOptions], Drawn], options: PlotOptions) -> Drawn:
    """A picture of folders of runs, each as one run over all their steps; its caption counts the steps of each benchmark.

    Raises :class:`UsageError` for folders that are not on the same data, and for steps chosen from one benchmark.
    """
    if options.sample_set is not None or options.subset:
        raise UsageError("--sample-set and --subset are of one benchmark, and --pool reads several; leave them out")
    scored = _score(options)
    drawn = draw(scored, options)
    way = (options.by or ("action" if options.kind == "actions" else "ratio")).split("-")
    cut = {
        title: {name: mean_breakdown(of, scored.protocol, way) for name, of in _benchmarks(runs).items()}
        for title, runs in scored.models.items()
    }
    sizes = {title: {name: sum(cell.n for cell in cells) for name, cells in of.items()} for title, of in cut.items()}
    counts = {title: f"{counted(sum(of.values()), 'step')} ({_listed(of)})" for title, of in sizes.items()}
    alike = len(set(counts.values())) == 1
    shows = f"{drawn.shows}; of " + (next(iter(counts.values())) if alike else _listed(counts))
    held = {name: {cell.label for of in cut.values() for cell in of[name]} for name in sizes[next(iter(sizes))]}
    labelled = ordered(set().union(*held.values()))
    if some := [label for label in labelled if not all(label in of for of in held.values())]:
        few = ", ".join(some) if len(some) <= _FEW else f"{len(some)} of {len(labelled)} cells"
        shows += f"; not of every benchmark: {few}"
    return Drawn(drawn.figure, shows, {title: {"all": cells, **cut[title]} for title, cells in drawn.numbers.items()})


def _score(options: PlotOptions) -> Scored:
    folders, labels = options.runs, options.label
    check_labels(labels, len(folders), "folders")
    protocol = next(iter(options.protocol), None) or RunFolder(rounds_of(pooled_parts(folders[0])[0])[0]).protocol
    studies: list[list[RunColumns]] = []
    for folder in folders:
        rounds = zip(*map(rounds_of, runs_over("steps", pooled_parts(folder), INSTEAD)), strict=False)
        judged = [[judge_run(run, [protocol]).columns() for run in repeat] for repeat in rounds]
        if silent := next((run for run in judged[0] if not run.answered), None):
            raise UsageError(f"{str(folder)!r} cannot be pooled: no step of {silent.title!r} was answered")
        studies.append([concatenated(repeat) for repeat in judged])
    if len({frozenset(_benchmarks(runs)) for runs in studies}) > 1:
        named = "; ".join(f"{str(place)!r}: {', '.join(_benchmarks(of))}" for place, of in zip(folders, studies, strict=True))
        raise UsageError(f"the folders are on different data: {named}")
    firsts = [runs[0] for runs in studies]
    return Scored(
        firsts, labels or titles_of(firsts), [Repeats((folder,), (Seeds(None, None),), 1) for folder in folders], studies
    )


def _listed(of: Mapping[str, int] | Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value:,}" if isinstance(value, int) else f"{name}: {value}" for name, value in of.items())


def _benchmarks(runs: Sequence[RunColumns]) -> dict[str, list[RunColumns]]:
    """The steps of each benchmark of pooled runs."""
    found: dict[str, list[RunColumns]] = {}
    for run in runs:
        benchmarks = np.array([key.benchmark for key in run.episodes])[run.episode]
        for name in dict.fromkeys(benchmarks.tolist()):
            found.setdefault(name, []).append(run.only(benchmarks == name))
    return found
