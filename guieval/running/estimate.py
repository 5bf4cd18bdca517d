"""Estimates of runs before they begin: requests, cost, time, and the smallest difference that they can show."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from guieval.data.sample_sets import get_sample_set
from guieval.errors import NoServer, UsageError
from guieval.evaluation import get_protocol
from guieval.journal import METRICS, RunFolder, is_run
from guieval.metrics.power import even_lengths, independent_steps, smallest_paired
from guieval.online.find import environments
from guieval.registry import benchmark_class, model_config
from guieval.running.engine_choice import asks_a_model, never_asked
from guieval.running.execute import Job, asked_once
from guieval.running.forecast import Forecast, forecast
from guieval.running.kinds import RunKind, kind_of
from guieval.running.resolve import resolve, run_mode, sample_parameters
from guieval.running.resolved import ResolvedRun
from guieval.settings import RunConfig


class Sized(NamedTuple):
    """A run to estimate, with the numbers of steps of its episodes.

    If its data are not on this machine, or its environment's server is not up, ``run`` is ``None``, and the lengths are the
    published ones, 1 for a task; ``None`` if not known.
    """

    config: RunConfig
    directory: Path
    run: ResolvedRun | None
    lengths: Sequence[int] | None


@dataclass(frozen=True)
class Estimate:
    """The estimate of one run; ``None`` is what is not known.

    ``left`` is how many of its ``steps`` (online: tasks) have no record yet, ``seconds`` how long these take. ``at_most``: the
    mode may end earlier. ``forecast`` is ``None`` if no model is asked (``asks``), or the data are missing
    (``missing_data``). ``detectable`` is the smallest true difference in exact match (online: in success) to another run on the
    same steps that is found with a power of 80 %.
    """

    config: RunConfig
    name: str
    steps: int | None
    episodes: int | None
    left: int | None
    forecast: Forecast | None
    asks: bool
    missing_data: bool
    seconds: float | None
    at_most: bool
    detectable: float | None


def of_jobs(jobs: Sequence[Job]) -> list[Sized]:
    """Resolved runs, to be estimated."""
    return [Sized(run.config, directory, run, [len(steps) for steps in run.plan.values()]) for run, directory in jobs]


def without_servers(configs: Sequence[tuple[RunConfig, Path]]) -> list[Sized]:
    """Runs that are only estimated, which needs neither an engine nor a server, and of most benchmarks no data.

    Raises :class:`UsageError` for wrong settings.
    """
    found: list[Sized] = []
    like: ResolvedRun | None = None
    for config, directory in configs:
        folder = config.data.folder
        if kind_of(config).needs_data(config) and (folder is None or not Path(folder).exists()):
            found.append(Sized(config, directory, None, _published_lengths(config)))
            continue
        try:
            resolved = resolve(never_asked(config), like=like)
        except NoServer:  # only the server knows the tasks
            found.append(Sized(config, directory, None, _published_tasks(config)))
        else:
            like = resolved
            found += of_jobs([Job(resolved, directory)])
    kept = {job.directory for job in asked_once([Job(each.run, each.directory) for each in found if each.run is not None])}
    return [each for each in found if each.run is None or each.directory in kept]


def estimates(runs: Sequence[Sized], *, pace: float | None, disagreement: float, icc: float) -> list[Estimate]:
    """Estimate every run. ``pace`` is in answers a second (default: that of the finished runs of the same model)."""
    paces: dict[tuple[str, RunKind], list[float]] = {}
    for each in runs:
        if (measured := _pace(each.directory)) is not None:
            paces.setdefault((each.config.model.name, kind_of(each.config)), []).append(measured)
    return [
        _estimate(each, pace, paces.get((each.config.model.name, kind_of(each.config)), ()), disagreement, icc) for each in runs
    ]


def side_by_side(seconds: Sequence[float], workers: int) -> float:
    """How long jobs take that ``workers`` take up in order, each the next one when it is free."""
    free = [0.0] * max(1, workers)
    for each in seconds:
        heapq.heapreplace(free, free[0] + each)
    return max(free)


def _estimate(of: Sized, pace: float | None, measured: Sequence[float], disagreement: float, icc: float) -> Estimate:
    config, run = of.config, of.run
    steps = None if of.lengths is None else sum(of.lengths)
    left = None if steps is None else _left(of.directory, steps)
    needed, at_most = (None, run_mode(config).stop != "never") if run is None else kind_of(config).requests(run)
    if needed is None and steps is not None and kind_of(config).needs_data(config):
        needed = steps * config.sampling.samples
    seconds = None
    if left == 0:
        seconds = 0.0
    elif pace and needed is not None and left is not None and steps:
        seconds = left / steps * needed / pace
    elif measured and left is not None:
        seconds = left / (sum(measured) / len(measured))
    asks = asks_a_model(config, model_config(config.model.name, config.model.adapter))
    return Estimate(
        config=config,
        name=of.directory.name if config.sampling.repeat is None else f"{of.directory.parent.name}/{of.directory.name}",
        steps=steps,
        episodes=None if of.lengths is None else len(of.lengths),
        left=left,
        forecast=forecast(run) if asks and run is not None else None,
        asks=asks,
        missing_data=run is None,
        seconds=seconds,
        at_most=at_most,
        detectable=smallest_paired(independent_steps(of.lengths, icc), disagreement) if of.lengths else None,
    )


def _published_lengths(config: RunConfig) -> Sequence[int] | None:
    """The lengths of the episodes of a run without its data, whose other settings are checked.

    They are the sample set's, or those of the published test split, evenly long.
    """
    sample_parameters(config, model_config(config.model.name, config.model.adapter, config.model.scaffold))
    run_mode(config)
    kind = benchmark_class(config.data.bench)
    get_protocol(config.data.protocol or kind.protocol)
    chosen = None if config.data.sample_set is None else get_sample_set(config.data.sample_set)
    if config.data.split or config.data.subset or config.data.episodes or config.data.limit or config.data.bench_options:
        return None
    if chosen is not None:
        lengths = [len(chosen.counted(name)) for name in chosen.ids]
        episodes, steps = chosen.episodes - len(lengths), chosen.steps - sum(lengths)
        return lengths + (even_lengths(steps, episodes) if episodes else [])
    whole = [count for count in kind.published if count.subset is None and not count.groups]
    for split in ("test", None):
        sizes = {(count.steps, count.episodes) for count in whole if count.split == split}
        if len(sizes) == 1:
            published, number = sizes.pop()
            return None if number is None or published is None else even_lengths(published, number)
        if sizes:
            break
    return None


def _published_tasks(config: RunConfig) -> Sequence[int] | None:
    """The published tasks of an environment, as episodes of one step; ``None`` if some are chosen, or they are not known."""
    data = config.data
    kind = environments().get(data.bench)
    number = None if kind is None else kind.published_tasks(data.bench_options)
    return None if number is None or data.subset or data.episodes or data.limit else [1] * number


def _left(directory: Path, steps: int) -> int:
    """Steps without an outcome, failed ones among them; none in a finished run, which need not have reached all."""
    if not is_run(directory):
        return steps
    if RunFolder(directory).ended_complete:
        return 0
    return max(0, steps - len({record.task.key for record in RunFolder(directory).records if record.finished}))


def _pace(directory: Path) -> float | None:
    """Steps a second of a finished run, from its beginning to its metrics; an interruption makes it slower."""
    seconds = duration(directory)
    return None if seconds is None else sum(1 for _ in RunFolder(directory).records) / seconds


def duration(directory: Path) -> float | None:
    """The seconds from a finished run's beginning to its metrics, by the time of that file; ``None`` of any other folder."""
    if not is_run(directory) or not (directory / METRICS).is_file():
        return None
    try:
        begun = datetime.fromisoformat(RunFolder(directory).manifest.created).timestamp()
    except (UsageError, ValueError):
        return None
    seconds = (directory / METRICS).stat().st_mtime - begun
    return seconds if seconds > 0 else None
