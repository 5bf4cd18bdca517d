"""Sweeps over mixed histories, begun, resumed and drawn: :func:`guieval.mix`, and what ``guieval study mix`` calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from pydantic import ValidationError

from guieval.errors import UsageError, first_problem, known_name
from guieval.given import AnyPath, one_path
from guieval.history.mixing import Pick, Shape, Span
from guieval.journal import SWEEP, new_directory, refuse_nested, write_atomically
from guieval.reports.plots.paper import WIDTHS, Width, check_file, write
from guieval.running.api import begun_with, display_of, plain, worked
from guieval.running.config import run_file
from guieval.running.defaults import new_config
from guieval.running.keywords import RunSettings
from guieval.running.resume.trust import resumed
from guieval.settings import RunConfig
from guieval.studies.mix_sweep.running import OpenSweep
from guieval.studies.mix_sweep.sweep import (
    MixOutcome,
    RegimeMetrics,
    Sweep,
    as_csv,
    by_regime,
    get_preset,
    points_by_regime,
    pooled_outcomes,
    read_outcomes,
    read_sweep,
    sweeps_below,
)
from guieval.studies.plots.scaling import mixing
from guieval.studies.rollout import drawn_as as drawn

TABLE = "mixing.csv"


class PlannedSweep(NamedTuple):
    """A sweep in ``directory``; ``fresh``: it is to be begun."""

    directory: Path
    config: RunConfig
    sweep: Sweep
    fresh: bool

    def open(self) -> OpenSweep | None:
        """The sweep with the settings that are left; ``None`` if none is."""
        return OpenSweep.of(self.config, self.sweep, self.directory, resumed=not self.fresh)


@dataclass(frozen=True)
class SweepResult:
    """A sweep in ``directory``: the outcomes of its finished ``settings``, and how they go together, regime by regime.

    ``benchmarks`` has those of each benchmark: of sweeps that are read as one ``outcomes`` are over all of them.
    """

    directory: Path
    settings: int
    outcomes: tuple[MixOutcome, ...]
    benchmarks: Mapping[str, tuple[MixOutcome, ...]]

    @property
    def complete(self) -> bool:
        """Whether every setting is finished."""
        return len(self.outcomes) == self.settings

    @cached_property
    def regimes(self) -> list[RegimeMetrics]:
        """The metrics of each regime that has settings, then of all together."""
        return by_regime(self.outcomes)


def planned_sweep(
    file: Path | None,
    overrides: Sequence[str],
    settings: Mapping[str, Any],
    *,
    preset: str | None,
    drawn_as: str | None,
    sweep: Mapping[str, Any],
    out: Path | None,
    resume: Path | None,
    trust: bool,
    base: Mapping[str, Any] | None = None,
) -> PlannedSweep:
    """A new sweep, or the one that ``resume`` has; ``sweep`` are fields of :class:`Sweep` over the preset's.

    Raises :class:`UsageError` for what a sweep cannot be, and pydantic's error for a wrong field.
    """
    path = run_file(file)
    if resume is None:
        made = Sweep.model_validate({**get_preset(preset or "try").model_dump(), **sweep})
        # hundreds of runs over the same steps
        merged = new_config(path, overrides, settings, base=base, fallback={"compact": True})
        merged = merged if drawn_as is None else drawn(drawn_as, merged)
        directory = out or new_directory(merged.model.name, merged.data.bench, "mix")
        if not (directory / SWEEP).exists():  # beginning one if there is one already has its own answer
            refuse_nested(directory)
    else:
        if out is not None:
            raise UsageError("--resume names the sweep's folder; leave out --out")
        if sweep or preset is not None or drawn_as is not None:
            raise UsageError("--resume goes on with the settings that the sweep has; leave out what asks for others")
        held = read_sweep(resume)
        made, directory = held.sweep, resume
        recorded = held.manifest.config.to_json()
        recorded.get("history", {}).pop("mix", None)
        merged = resumed(recorded, path, overrides, settings, trust=trust, folder=resume)
    if merged.history.mix:
        raise UsageError("a sweep makes every setting's mix itself; leave out mix, or use `guieval run` for a single one")
    if merged.history.mix_artifacts is None:
        raise UsageError("a sweep needs the answers to mix in: add --artifacts RUN, a run or rollout of the same model")
    if made.near is not None and merged.history.mix_decisions is None:
        raise UsageError(
            "--near needs to know where decisions are diverse: add --decisions FILE, which "
            "`guieval study decisions RUN --steps FILE.jsonl` writes"
        )
    if made.near is None and (merged.history.mix_decisions, made.within, made.above) != (None, None, None):
        raise UsageError(
            "--decisions, --within and --above say what is near a diverse decision: add --near P, the probability there"
        )
    if merged.cluster.kind != "none":
        raise UsageError("a sweep runs on this machine; leave out cluster")
    if merged.tracking.budget is not None:
        raise UsageError("a budget is a run's, and a sweep has many; leave it out")
    return PlannedSweep(directory, merged, made, resume is None)


def finished(planned: PlannedSweep, plot: Path | None = None, width: Width = "column") -> SweepResult:
    """What a sweep has come to; its table is written into its folder, and with ``plot`` its picture."""
    outcomes = tuple(read_outcomes(planned.directory))
    benchmark = read_sweep(planned.directory).manifest.benchmark.name if outcomes else planned.config.data.bench
    found = SweepResult(planned.directory, len(planned.sweep.mixes()), outcomes, {benchmark: outcomes})
    return _written(found, plot, width)


def check_pool(others: Iterable[str]) -> None:
    """Raise :class:`UsageError` if other arguments than those of the output are given together with the folder of a pool."""
    if named := [f"--{name.replace('_', '-')}" for name in others]:
        raise UsageError(f"--pool reads finished sweeps; leave out {', '.join(named)}")


def pooled(directory: Path, plot: Path | None = None, width: Width = "column") -> SweepResult:
    """The sweeps in a folder, e.g. of several benchmarks, as one; table and picture as of a sweep.

    Raises :class:`UsageError` as :func:`guieval.studies.mix_sweep.sweep.sweeps_below` does.
    """
    places = sweeps_below(directory)
    parts = {name: tuple(read_outcomes(place)) for name, place in places.items()}
    settings = len(read_sweep(next(iter(places.values()))).sweep.mixes())
    return _written(SweepResult(directory, settings, tuple(pooled_outcomes([*parts.values()])), parts), plot, width)


def _written(found: SweepResult, plot: Path | None, width: Width) -> SweepResult:
    if found.outcomes:
        tables = {"all": found.outcomes, **found.benchmarks} if len(found.benchmarks) > 1 else found.benchmarks
        write_atomically(found.directory / TABLE, as_csv(tables))
    if plot is not None and found.regimes:
        rho: dict[str, float | None] = {each.regime: each.rank.rho for each in found.regimes}
        points = {str(regime): each for regime, each in points_by_regime(found.outcomes).items()}
        write(mixing(points, rho, width), plot)
    return found


def mix(
    config: RunConfig | AnyPath | None = None,
    *,
    preset: str | None = None,
    drawn_as: str | None = None,
    levels: int | None = None,
    means: int | None = None,
    pair: Sequence[tuple[float, float]] | None = None,
    shape: Shape | None = None,
    kappa: float | None = None,
    over: Span | None = None,
    mix_seed: int | None = None,
    pick: Pick | None = None,
    near: float | None = None,
    within: int | None = None,
    above: float | None = None,
    out: AnyPath | None = None,
    resume: AnyPath | None = None,
    pool: AnyPath | None = None,
    plot: AnyPath | None = None,
    width: Width = "column",
    drop_answers: bool = False,
    trust_run: bool = False,
    progress: bool | None = None,
    **settings: Unpack[RunSettings],
) -> SweepResult:
    """Run a model under mixed histories, as ``guieval study mix`` does, or continue a sweep that was stopped.

    ``config``, ``progress``, ``settings`` and what is raised are as in :func:`guieval.run`, and the other arguments are the
    options of the same names. Ctrl-C stops in order; the result is then not complete.
    """
    wide, picture = known_name("width", width, WIDTHS), one_path(plot)
    if picture is not None:
        check_file(picture)
    file, base = begun_with(config)
    pairs = None if pair is None else tuple(pair)
    fields: dict[str, object] = {"levels": levels, "means": means, "pairs": pairs, "shape": shape}
    fields |= {"kappa": kappa, "over": over, "seed": mix_seed, "pick": pick}
    fields |= {"near": near, "within": within, "above": above}
    given = {name: value for name, value in fields.items() if value is not None}
    where = {"out": one_path(out), "resume": one_path(resume)}
    if (folder := one_path(pool)) is not None:
        others = {**where, "config": config, "preset": preset, "drawn_as": drawn_as, **given, **settings}
        check_pool(name for name, value in others.items() if value is not None)
        return pooled(folder, picture, wide)
    try:
        planned = planned_sweep(
            file, [], plain(settings), preset=preset, drawn_as=drawn_as, sweep=given, trust=trust_run, base=base, **where
        )
    except ValidationError as error:
        problem = first_problem(error)
        raise UsageError(f"{problem.field} is {problem.value!r}: {problem.message}") from None
    opened = planned.open()
    if opened is not None:
        worked(lambda executor: opened.run(display_of(progress), drop_answers=drop_answers, opened=executor))
    return finished(planned, picture, wide)
