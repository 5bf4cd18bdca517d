"""Rollouts as they are begun and resumed: :func:`guieval.rollout`, and how ``guieval study rollout`` plans them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from guieval.errors import UsageError
from guieval.given import AnyPath, one_path
from guieval.journal import new_directory, refuse_nested
from guieval.journal.run_folders import is_rollout, rollouts_below
from guieval.registry import load_benchmark
from guieval.running.api import begun_with, display_of, plain, run_all
from guieval.running.config import run_file
from guieval.running.defaults import new_config
from guieval.running.execute import Result, resolve_jobs
from guieval.running.keywords import RunSettings
from guieval.running.kinds import kind_of
from guieval.running.resume.trust import resumed
from guieval.settings import RunConfig
from guieval.studies.decisions.subset import get_subset
from guieval.studies.rollouts import PAPER_SAMPLES, Round, plan_rounds, read_rollout, write_rollout


class PlannedRollout(NamedTuple):
    """The rounds of a rollout in ``directory``; ``fresh``: it is to be begun."""

    directory: Path
    config: RunConfig
    rounds: list[Round]
    fresh: bool

    @property
    def runs(self) -> list[tuple[RunConfig, Path]]:
        """The rounds as runs, with their directories."""
        return [(each.config, self.directory / each.folder) for each in self.rounds]

    def begin(self) -> None:
        """Make the folder of a new rollout; :class:`UsageError` if it has something already."""
        if self.fresh:
            write_rollout(self.directory, self.config, self.rounds)


def planned_rollout(
    file: Path | None,
    overrides: Sequence[str],
    settings: Mapping[str, Any],
    *,
    rounds: int | None,
    seeds: Sequence[int] | None,
    preset: str | None,
    out: Path | None,
    resume: Path | None,
    trust: bool,
    base: Mapping[str, Any] | None = None,
) -> PlannedRollout:
    """The rounds of a new rollout, or those that ``resume`` has; :class:`UsageError` for what a rollout cannot be."""
    path = run_file(file)
    if resume is not None:
        for option, value in {"out": out, "rounds": rounds, "seeds": seeds, "preset": preset}.items():
            if value is not None:
                raise UsageError(f"--resume goes on with the rounds that are there; leave out --{option}")
        kept, known = read_rollout(resume)
        merged = resumed(kept, path, overrides, settings, trust=trust, folder=resume)
        planned, directory = plan_rounds(merged, seeds=known), resume
    else:
        merged = new_config(path, overrides, settings, base=base, fallback={"samples": PAPER_SAMPLES})
        if preset is not None:
            merged = drawn_as(preset, merged)
        if "seed" in settings and merged.data.limit is None:
            raise UsageError(
                f"--seed {settings['seed']} draws the episodes of --limit N, and there is no --limit; "
                f"the rounds' seeds are --seeds A,B,..."
            )
        planned = plan_rounds(merged, rounds, seeds or ())
        directory = out or new_directory(merged.model.name, merged.data.bench, "rollout", merged.history.mode)
        if not is_rollout(directory):  # beginning one if there is one already has its own answer
            refuse_nested(directory)
    if merged.cluster.kind != "none":
        raise UsageError("a rollout is done on one machine: leave out the setting 'cluster'")
    kind_of(merged).check_rounds()
    return PlannedRollout(directory, merged, planned, resume is None)


def planned_rollouts(
    benches: Sequence[str],
    file: Path | None,
    overrides: Sequence[str],
    settings: Mapping[str, Any],
    *,
    out: Path | None,
    resume: Path | None,
    **how: Any,
) -> tuple[Path, list[PlannedRollout]]:
    """The rollout over each of several benchmarks, as :func:`planned_rollout` plans one, and the folder that holds them.

    Each is in a subfolder with its benchmark's name; ``data`` and ``fixed_thoughts`` are then folders of that kind, too.
    """
    if resume is not None and not is_rollout(resume) and (begun := rollouts_below(resume)):
        if benches:
            raise UsageError(f"--resume goes on with the benchmarks that are there; leave out --bench {benches[0]}")
        return resume, [planned_rollout(file, overrides, settings, out=out, resume=each, **how) for each in begun]
    if len(benches) < 2:
        own = {**settings, **({"bench": benches[0]} if benches else {})}
        planned = planned_rollout(file, overrides, own, out=out, resume=resume, **how)
        return planned.directory, [planned]
    if twice := next((each for each in benches if benches.count(each) > 1), None):
        raise UsageError(f"--bench {twice} is given twice")
    folder = out or new_directory(*filter(None, [settings.get("model")]), *benches, "rollout")
    found = []
    for bench in benches:
        parts = {name: str(Path(settings[name]) / bench) for name in ("data", "fixed_thoughts") if name in settings}
        own = {**settings, **parts, "bench": bench}
        found.append(planned_rollout(file, overrides, own, out=folder / bench, resume=resume, **how))
    return folder, found


def rollout(
    config: RunConfig | AnyPath | None = None,
    *,
    mode: str | None = None,
    rounds: int | None = None,
    seeds: Sequence[int] | None = None,
    preset: str | None = None,
    out: AnyPath | None = None,
    resume: AnyPath | None = None,
    accept_changes: bool = False,
    trust_run: bool = False,
    progress: bool | None = None,
    **settings: Unpack[RunSettings],
) -> tuple[Result, ...]:
    """Draw many samples of every step in rounds of one seed each, as ``guieval study rollout`` does; the result of each round.

    ``config``, ``progress``, ``settings`` and what is raised are as in :func:`guieval.run`, and the other arguments are the
    options of the same names. ``guieval.open_run`` shows the rounds of the folder together.
    """
    file, base = begun_with(config)
    given = plain({**settings, **({} if mode is None else {"mode": mode})})
    folders = {"out": one_path(out), "resume": one_path(resume)}
    planned = planned_rollout(file, [], given, rounds=rounds, seeds=seeds, preset=preset, trust=trust_run, base=base, **folders)
    jobs = resolve_jobs(planned.runs, root=planned.directory, accept_changes=accept_changes)
    return tuple(run_all(jobs, fresh=planned.fresh, display=display_of(progress), first=planned.begin))


def drawn_as(preset: str, settings: RunConfig) -> RunConfig:
    """The settings with as many episodes as a study drew; :class:`UsageError` for a benchmark that it did not use."""
    if settings.data.limit is not None:
        raise UsageError(f"{preset} says how many episodes are drawn: leave out --limit")
    benchmark = load_benchmark(settings.data.bench, settings.data.folder, **settings.data.bench_options)
    subset = get_subset(preset)
    dataset = benchmark.dataset or benchmark.load(next(iter(benchmark.index()))).steps[0].dataset
    return settings.having(limit=subset.limit(dataset))
