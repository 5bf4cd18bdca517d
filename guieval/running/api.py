"""Runs from Python: :func:`guieval.run` does all that ``guieval run`` does, in a script or in a notebook.

It prints nothing: warnings go to the logger ``guieval``, metrics into the :class:`RunResult`, and errors are raised as
:class:`guieval.errors.GuievalError`. A progress bar is shown in a notebook and on a terminal.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from guieval.errors import UsageError
from guieval.journal import new_directory, refuse_nested
from guieval.metrics.of_run import Metrics
from guieval.running.campaign import planned, read_campaign
from guieval.running.config import run_file
from guieval.running.defaults import new_config
from guieval.running.execute import Executor, Job, Result, execute, repeated, resolve_jobs
from guieval.running.keywords import RunSettings
from guieval.running.progress.display import LogDisplay, shows_bars
from guieval.running.repeats import announce_greedy, further_repeats, repeats_of
from guieval.running.resume.trust import resumed_runs
from guieval.scoring.score import summary_of_runs
from guieval.settings import Cluster, RunConfig

logging.getLogger("guieval").addHandler(logging.NullHandler())


@dataclass(frozen=True)
class RunResult:
    """The results of runs, in the order in which they were done; ``result["sop"]`` is the (first) one in that mode.

    ``directory`` holds all of them. ``not_begun`` are the directories of runs that an interrupted one left out.
    """

    directory: Path
    runs: tuple[Result, ...]
    not_begun: tuple[Path, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every step of every run was answered."""
        return not self.not_begun and all(run.complete for run in self.runs)

    def metrics(self, mode: str | None = None) -> Metrics:
        """The metrics of the only run, or of the one in ``mode``, of repeats their means.

        Raises :class:`UsageError` naming the modes if there are several.
        """
        groups = repeated(self.runs)
        if mode is None and len(groups) != 1:
            raise UsageError(f"there are {len(groups)} runs: name the mode, one of {', '.join(own[0].mode for own in groups)}")
        first = groups[0][0] if mode is None else self[mode]
        own = next(own for own in groups if first in own)
        found = first.metrics()
        return found if len(own) == 1 else replace(found, summary=summary_of_runs([run.directory for run in own]))

    def __iter__(self) -> Iterator[Result]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, mode: str) -> Result:
        for run in self.runs:
            if mode in (run.mode, run.config.history.mode):
                return run
        raise KeyError(f"no run in mode {mode!r}; there are {', '.join(run.mode for run in self.runs)}")


def run(
    config: RunConfig | Path | str | None = None,
    *,
    mode: str | Sequence[str] | None = None,
    out: Path | str | None = None,
    resume: Path | str | None = None,
    accept_changes: bool = False,
    trust_run: bool = False,
    progress: bool | None = None,
    **settings: Unpack[RunSettings],
) -> RunResult:
    """Evaluate a model on a benchmark, or continue a run that was stopped.

    ``config`` is a :class:`RunConfig`, a YAML file of settings, or the name of a shipped one (``configs/runs/``); ``settings``
    are those of :mod:`guieval.settings` over it, by their own names or in groups.
    Several modes give a run each, side by side below ``out`` (default: a new folder below ``runs/``), and ``repeats`` so many
    runs of each with seeds of their own. ``resume`` names the
    directory of the runs to be continued. ``progress`` says whether a bar is shown. The other arguments are the options of
    ``guieval run`` of the same names. Ctrl-C stops in order; the result is then not complete. Works inside of a running event
    loop too, e.g. in a notebook.

    Raises :class:`guieval.errors.GuievalError` for whatever ``guieval run`` refuses, and for what ends a run, whose answers are
    kept: continue with ``resume``.
    """
    modes = [mode] if isinstance(mode, str) else None if mode is None else list(mode)
    file, base = (None, config.model_dump(mode="json")) if isinstance(config, RunConfig) else (config, None)
    if resume is not None and out is not None:
        raise UsageError("'resume' names the run directory; leave out 'out'")
    if resume is not None and base is not None:
        raise UsageError("'resume' continues with the settings of the run; give those that differ by name")
    runs = planned_runs(
        None if file is None else Path(file),
        [],
        _plain(settings),
        modes=modes,
        out=None if out is None else Path(out),
        resume=None if resume is None else Path(resume),
        trust=trust_run,
        base=base,
    )
    root = common_folder([directory for _, directory in runs])
    jobs = resolve_jobs(runs, root=root, accept_changes=accept_changes)
    display = LogDisplay(bar=shows_bars() if progress is None else progress)
    results = _run_all(jobs, fresh=resume is None, display=display)
    return RunResult(root, tuple(results), tuple(job.directory for job in jobs[len(results) :]))


def campaign(
    file: Path | str,
    *,
    out: Path | str | None = None,
    only: Sequence[str] = (),
    progress: bool | None = None,
    **settings: Unpack[RunSettings],
) -> tuple[Result, ...]:
    """Do every run of a campaign, as ``guieval campaign`` does, or continue one that was stopped; the results so far.

    ``file`` is the campaign's, or the name of a shipped one; ``settings`` count for every run, over the file's. The other
    arguments are the options of the same names. Raises :class:`guieval.errors.GuievalError` as :func:`run` does.
    """
    path = Path(file)
    folder = Path("runs") / path.stem if out is None else Path(out)
    runs = planned(read_campaign(path), folder, only=only, settings=_plain(settings))
    jobs = resolve_jobs([(each.config, each.directory) for each in runs], root=folder)
    return tuple(_run_all(jobs, fresh=False, display=LogDisplay(bar=shows_bars() if progress is None else progress)))


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in settings.items()}


def planned_runs(
    file: Path | None,
    overrides: Sequence[str],
    settings: Mapping[str, Any],
    *,
    modes: Sequence[str] | None,
    out: Path | None,
    resume: Path | None,
    trust: bool,
    base: Mapping[str, Any] | None = None,
) -> list[tuple[RunConfig, Path]]:
    """The configuration of every run with its directory: a new one for each mode, or those that ``resume`` holds.

    Raises :class:`UsageError` where a new directory would lie inside another run.
    """
    path = run_file(file)
    if settings.get("replay") is not None:
        settings = {"engine": "replay", **settings}
    if resume is not None:
        found = resumed_runs(resume, modes, path, overrides, settings, trust=trust)
        return [*found, *further_repeats(found)]
    first = new_config(path, overrides, {**settings, "mode": modes[0] if modes else None}, base=base)
    _refuse_unused_cluster_settings(first)
    modes = modes or [first.history.mode]
    configs = [first.having(mode=mode) for mode in dict.fromkeys(modes)]
    parent = out or new_directory(first.model.name, first.data.bench, *(modes if len(modes) == 1 else []))
    places = [(config, parent / config.history.mode if len(configs) > 1 else parent) for config in configs]
    runs = [run for place in places for run in repeats_of(*place)]
    announce_greedy(config for config, _ in runs)
    for _, directory in runs:
        refuse_nested(directory)
    return runs


def _refuse_unused_cluster_settings(config: RunConfig) -> None:
    if config.cluster.kind == "none":
        for name, value in config.cluster:
            option = f"--{name.replace('_', '-')}"
            if value != Cluster.model_fields[name].default:
                raise UsageError(f"{option} {value} needs a cluster: add --cluster ray, or leave {option} out")


def common_folder(directories: Sequence[Path]) -> Path:
    """The folder that holds all runs: the run's own, where there is one."""
    return Path(os.path.commonpath(directories))


def _run_all(jobs: Sequence[Job], *, fresh: bool, display: LogDisplay) -> list[Result]:
    executors: list[Executor] = []

    def work() -> list[Result]:
        return list(execute(jobs, fresh=fresh, display=display, opened=executors.append))

    def stop() -> None:
        for executor in executors:
            executor.stop()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    return _in_thread(work, stop)


def _in_thread(work: Callable[[], list[Result]], stop: Callable[[], None]) -> list[Result]:
    """Do the work in a thread, since an event loop runs in this one; Ctrl-C, which only this thread gets, stops it in order."""
    with ThreadPoolExecutor(1, thread_name_prefix="guieval") as thread:
        working = thread.submit(work)
        try:
            return working.result()
        except KeyboardInterrupt:
            stop()
            return working.result()
