"""Runs from Python: :func:`guieval.run` does all that ``guieval run`` does, in a script or in a notebook.

It prints nothing: warnings go to the logger ``guieval``, metrics into the :class:`RunResult`, and errors are raised as
:class:`guieval.errors.GuievalError`. A progress bar is shown in a notebook and on a terminal.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, Unpack

from guieval.errors import UsageError
from guieval.given import AnyPath, every, one_path
from guieval.journal import new_directory, refuse_nested
from guieval.metrics.of_run import Metrics
from guieval.running.config import run_file
from guieval.running.defaults import new_config
from guieval.running.execute import Executor, Job, Result, execute, repeated, resolve_jobs
from guieval.running.keywords import RunSettings
from guieval.running.progress.display import Display, LogDisplay, shows_bars
from guieval.running.repeats import announce_greedy, further_repeats, repeats_of
from guieval.running.resume.trust import resumed_runs
from guieval.scoring.score import summary_of_runs
from guieval.settings import Cluster, RunConfig
from guieval.wings import offered

logging.getLogger("guieval").addHandler(logging.NullHandler())
_T = TypeVar("_T")


@dataclass(frozen=True)
class RunResult:
    """The results of runs, in the order in which they were done; ``result["sop"]`` is the (first) one in that mode.

    ``directory`` has all of them. ``not_begun`` are the directories of runs that an interrupted one left out.
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
    file, base = begun_with(config)
    if resume is not None and out is not None:
        raise UsageError("'resume' names the run directory; leave out 'out'")
    if resume is not None and base is not None:
        raise UsageError("'resume' continues with the settings of the run; give those that differ by name")
    runs = planned_runs(
        file,
        [],
        plain(settings),
        modes=None if mode is None else every(mode),
        out=one_path(out),
        resume=one_path(resume),
        trust=trust_run,
        base=base,
    )
    root = common_folder([directory for _, directory in runs])
    jobs = resolve_jobs(runs, root=root, accept_changes=accept_changes)
    results = run_all(jobs, fresh=resume is None, display=display_of(progress))
    return RunResult(root, tuple(results), tuple(job.directory for job in jobs[len(results) :]))


def begun_with(config: RunConfig | AnyPath | None) -> tuple[Path | None, dict[str, Any] | None]:
    """The file of settings, or the settings, that a run from Python begins with."""
    return (None, config.model_dump(mode="json")) if isinstance(config, RunConfig) else (one_path(config), None)


def display_of(progress: bool | None) -> Display:
    """Warnings in the log, with a bar if ``progress``, or if one can be seen."""
    return LogDisplay(bar=shows_bars() if progress is None else progress)


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as the command line gives them."""
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
    """The configuration of every run with its directory: a new one for each mode, or those that ``resume`` has.

    Raises :class:`UsageError` if a new directory would lie inside another run.
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
    if first.data.perturb is not None:
        variants = offered("perturbed", "variants")(first.data.perturb)
        places = [(config.having(perturb=each), folder / (each or "clean")) for config, folder in places for each in variants]
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
    """The folder of all runs: the run's own, if there is one."""
    return Path(os.path.commonpath(directories))


def run_all(jobs: Sequence[Job], *, fresh: bool, display: Display, first: Callable[[], None] = lambda: None) -> list[Result]:
    """Do runs in this thread, or in another if an event loop runs in this one; see :func:`execute`."""
    return worked(lambda opened: execute(jobs, fresh=fresh, display=display, first=first, opened=opened))


def worked(work: Callable[[Callable[[Executor], None]], Iterable[_T]]) -> list[_T]:
    """What ``work`` yields, in a thread if an event loop runs in this one; it is given what to call with its executor.

    Ctrl-C, which only this thread gets, then stops the executor in order.
    """
    executors: list[Executor] = []
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return list(work(executors.append))
    with ThreadPoolExecutor(1, thread_name_prefix="guieval") as thread:
        working = thread.submit(lambda: list(work(executors.append)))
        try:
            return working.result()
        except KeyboardInterrupt:
            for executor in executors:
                executor.stop()
            return working.result()
