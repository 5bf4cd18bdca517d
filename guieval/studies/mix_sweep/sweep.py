"""A sweep over history mixing: its settings, the outcome of each, and the relation of exact match to the online source ratio.

Source: GUIEvalKit paper, Figure 5 and appendix D.2.2 ("experimental regime construction"). A finished setting is one
:class:`MixOutcome`, a line of ``outcomes.jsonl``.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from guieval.data.files import read_bytes
from guieval.errors import UsageError, known_name
from guieval.history.mixing import (
    ABOVE,
    KAPPA,
    REGIMES,
    WITHIN,
    Mix,
    Mixture,
    Pick,
    Regime,
    Schedule,
    Shape,
    Span,
    admissible_means,
    schedule_name,
)
from guieval.journal import SWEEP, RunFolder, has_records, is_run, write_atomically
from guieval.journal.run_files import Manifest, read_file
from guieval.journal.run_folders import is_rollout
from guieval.steps import StepKey
from guieval.studies.correlation.coefficients import Rank, spearman

OUTCOMES = "outcomes.jsonl"
All: TypeAlias = Literal["all"]


class Sweep(BaseModel, frozen=True, extra="forbid"):
    """The settings of a sweep: every ordered pair (start, end) of ``levels`` values, or ``pairs``, at ``means`` means each.

    The values are evenly spaced over [0, 1]. The paper "uniformly samples" the means within a pair's admissible range; here
    they are the middles of as many equal parts of it, so that a sweep is reproducible, and no mean requires
    a mu of 0 or 1. A pair with a single mean (a stationary one) is repeated as often, with other draws.
    """

    levels: int = Field(
        4, ge=2, le=101, description="number of values over [0, 1]; every ordered pair of them is run (default: the preset's)"
    )
    means: int = Field(50, ge=1, le=10_000, description="means of the probability at each pair (default: the preset's)")
    pairs: tuple[tuple[float, float], ...] = Field((), description="only this pair of probabilities, START:END")
    shape: Shape = Field("logistic", description="shape of the schedule: logistic, linear or constant")
    kappa: float = Field(KAPPA, description="sharpness of the logistic (default: 16)")
    over: Span = Field("history", description="what a schedule spans: each step's history, or the episode")
    seed: int = Field(0, ge=0, description="seed of the draws")
    pick: Pick = Field("first", description="which exact answer of a step is mixed in: first or seeded")
    near: float | None = Field(
        None,
        ge=0,
        le=1,
        description="run each setting also with this probability near diverse decisions (ours, not the paper's)",
    )
    within: int | None = Field(None, ge=0, description=f"how many steps from such a decision are near (default: {WITHIN})")
    above: float | None = Field(
        None, ge=0, allow_inf_nan=False, description=f"diversity in nats above which decisions are diverse (default: {ABOVE})"
    )

    def mixes(self) -> list[Mix]:
        """Every setting, pair by pair and by ascending mean; then, with ``near``, the adaptive one of each in the same order.

        Raises :class:`UsageError` for a pair without a schedule, or a repeated pair.
        """
        values = np.linspace(0.0, 1.0, self.levels).tolist()
        pairs = self.pairs or tuple((start, end) for start in values for end in values)
        if twice := next((pair for pair, count in Counter(pairs).items() if count > 1), None):
            raise UsageError(f"the pair {twice[0]:g}:{twice[1]:g} is given twice, which would repeat the same draws")
        scheduled = [mix for start, end in pairs for mix in self._of_pair(start, end)]
        if self.near is None:
            return scheduled
        within, above = WITHIN if self.within is None else self.within, ABOVE if self.above is None else self.above
        near = {"near": self.near, "within": within, "above": above}
        return scheduled + [mix.model_copy(update=near) for mix in scheduled]

    def _of_pair(self, start: float, end: float) -> Iterator[Mix]:
        Schedule(start, end, self.shape, self.kappa)
        low, high = admissible_means(start, end, self.shape, self.kappa)
        for number in range(self.means):
            several = low < high
            yield Mix(
                start=start,
                end=end,
                shape=self.shape,
                mean=low + (number + 0.5) / self.means * (high - low) if several else low,
                kappa=self.kappa,
                over=self.over,
                seed=self.seed,
                repeat=0 if several else number,
                pick=self.pick,
            )


PRESETS: dict[str, Sweep] = {"paper": Sweep(), "try": Sweep(levels=3, means=4)}
"""``paper``: its 16 pairs at 50 means, 800 settings. ``try``: 9 pairs at 4 means, for a test."""


def get_preset(name: str) -> Sweep:
    """The preset called ``name``; :class:`UsageError` with the nearest name when there is none."""
    return PRESETS[known_name("preset", name, PRESETS)]


def setting_name(number: int, mix: Mix) -> str:
    """The name of a setting's folder: its number and its schedule."""
    return f"{number:04d}-{schedule_name(mix.schedule)}" + ("" if mix.near is None else f"-near{mix.near:.3g}")


class MixOutcome(BaseModel, frozen=True, extra="forbid"):
    """The outcome of one setting: ``exact`` of ``steps`` measured steps matched, ``replaced`` of ``past`` steps of history.

    A past step counts once for each history that it was shown in: the sums of equation 8 run over all steps e, t with a
    record and over all steps of the history of each, since a step's past is drawn for it. ``available`` of them have an
    artifact, which is the most that can be replaced; ``expected`` is the sum of p over them all, artifact or not.
    """

    number: int = Field(ge=0)
    mix: Mix
    regime: Regime
    mu: FiniteFloat | None
    steps: int = Field(ge=1)
    exact: int = Field(ge=0)
    past: int = Field(ge=0)
    replaced: int = Field(ge=0)
    available: int = Field(ge=0)
    expected: FiniteFloat

    @property
    def osr(self) -> float | None:
        """Online source ratio (equation 8), in [0, 1]; ``None`` if no step has a past."""
        return self.replaced / self.past if self.past else None

    @property
    def exact_match(self) -> float:
        """Share of exact matches, in [0, 1]; a step without a past counts as any other."""
        return self.exact / self.steps


def read_outcome(directory: Path, number: int, mixture: Mixture) -> MixOutcome | None:
    """The outcome of a run with this mixture; ``None`` if a planned step has not been measured yet.

    If the journal has several records of a step, the last answered one counts.
    """
    run, has = RunFolder(directory), mixture.artifacts.steps
    counts: Counter[str] = Counter()
    probabilities: list[float] = []
    for key in run.plan:
        for past, record in run.read(key).items():
            if record.finished:
                counts["steps"] += 1
                counts["exact"] += record.sample.outcome.exact_match
                counts["past"] += past
                counts["replaced"] += record.history.count("model")
                counts["available"] += sum(StepKey(*key, earlier) in has for earlier in range(past))
                probabilities += mixture.probabilities(key, past, record.task.episode_length).tolist()
    if counts["steps"] < sum(map(len, run.plan.values())):
        return None
    return MixOutcome(
        number=number,
        mix=mixture.mix,
        regime=mixture.mix.regime,
        mu=mixture.mix.schedule.mu,
        expected=math.fsum(probabilities),
        **counts,
    )


class SweepFile(BaseModel, frozen=True, extra="forbid"):
    """``mix.json``: the settings of a sweep, for a resume; ``manifest`` is that of its first setting."""

    schema_version: Literal[1] = 1
    sweep: Sweep
    manifest: Manifest


def write_sweep(directory: Path, file: SweepFile) -> None:
    """Begin a sweep; :class:`UsageError` if the folder already has a sweep, or a run with its own journal."""
    if any((directory / name).exists() for name in (SWEEP, OUTCOMES)):
        where = str(directory)
        raise UsageError(f"{where!r} has a sweep; `guieval study mix --resume {where}` continues it; or give another --out")
    if is_run(directory) or is_rollout(directory) or has_records(directory):
        raise UsageError(f"{str(directory)!r} has a run, and a sweep needs a folder of its own; give another --out")
    directory.mkdir(parents=True, exist_ok=True)
    write_atomically(
        directory / SWEEP, json.dumps({**file.model_dump(mode="json"), "manifest": file.manifest.to_json()}, indent=2) + "\n"
    )


def read_sweep(directory: Path) -> SweepFile:
    """The sweep in a folder; :class:`UsageError` without one."""
    try:
        return read_file(directory / SWEEP, SweepFile)
    except FileNotFoundError:
        raise UsageError(f"there is nothing to resume: {str(directory)!r} has no sweep (no {SWEEP})") from None


def append_outcome(directory: Path, outcome: MixOutcome) -> None:
    """Append a finished setting's outcome; it is on the disk when this returns."""
    path = directory / OUTCOMES
    torn = path.exists() and path.stat().st_size > 0 and read_bytes(path)[-1:] != b"\n"
    with path.open("ab") as stream:
        stream.write(b"\n" * torn + outcome.model_dump_json().encode() + b"\n")
        stream.flush()
        os.fsync(stream.fileno())


def read_outcomes(directory: Path) -> list[MixOutcome]:
    """The outcomes of a sweep by number; an incomplete line is skipped, and its setting is read again."""
    path = directory / OUTCOMES
    found: dict[int, MixOutcome] = {}
    for line in read_bytes(path).splitlines() if path.exists() else ():
        try:
            outcome = MixOutcome.model_validate_json(line)
        except ValidationError:
            continue
        found[outcome.number] = outcome
    return [found[number] for number in sorted(found)]


def sweeps_below(directory: Path) -> dict[str, Path]:
    """The sweeps in the subfolders of a folder by their benchmarks, or the sweep that it is: those to read as one.

    Raises :class:`UsageError` if there is none, or if they differ in model, mode, protocol or settings, or share a benchmark.
    """
    places = [directory] if (directory / SWEEP).exists() else []
    if not places and directory.is_dir():
        places = [path for path in sorted(directory.iterdir()) if (path / SWEEP).exists()]
    if not places:
        raise UsageError(f"{str(directory)!r} holds no sweep (no folder with {SWEEP}); `guieval study mix --out` begins one")
    found: dict[str, Path] = {}
    first = read_sweep(places[0])
    for place in places:
        file = read_sweep(place)
        for what, own, other in (
            ("models", file.manifest.model_name, first.manifest.model_name),
            ("modes", file.manifest.mode.label, first.manifest.mode.label),
            ("protocols", file.manifest.protocol.name, first.manifest.protocol.name),
            ("settings", file.sweep, first.sweep),
        ):
            if own != other:
                named = f"{places[0].name!r} and {place.name!r}"
                told = "" if what == "settings" else f" ({other}, {own})"
                raise UsageError(f"{str(directory)!r} cannot be pooled: {named} are sweeps of different {what}{told}")
        name = file.manifest.benchmark.name
        if name in found:
            named = f"{found[name].name!r} and {place.name!r}"
            raise UsageError(f"{str(directory)!r} cannot be pooled: {named} are both over {name!r}")
        found[name] = place
    return found


def pooled_outcomes(parts: Sequence[Sequence[MixOutcome]]) -> list[MixOutcome]:
    """Each setting that every part has finished, with the sums of their counts: equation 8 and exact match over all steps."""
    by_number = [{each.number: each for each in part} for part in parts]
    counts = ("steps", "exact", "past", "replaced", "available", "expected")
    return [
        one.model_copy(update={name: sum(getattr(of[number], name) for of in by_number) for name in counts})
        for number, one in by_number[0].items()
        if all(number in of for of in by_number)
    ]


@dataclass(frozen=True)
class RegimeMetrics:
    """Over the ``n`` settings of one regime, or of all: the ranges of OSR and exact match, and Spearman's rho of the two."""

    regime: Regime | All
    n: int
    osr: tuple[float, float]
    exact_match: tuple[float, float]
    mean_exact_match: float
    rank: Rank


def by_regime(outcomes: Sequence[MixOutcome]) -> list[RegimeMetrics]:
    """The metrics of each regime that has settings, then of all together. Settings without any past count nowhere."""
    found = [_metrics(regime, points) for regime, points in points_by_regime(outcomes).items()]
    return [*found, _metrics("all", _points(outcomes))] if found else []


def _points(outcomes: Sequence[MixOutcome]) -> list[tuple[float, float]]:
    return [(outcome.osr, outcome.exact_match) for outcome in outcomes if outcome.osr is not None]


def points_by_regime(outcomes: Sequence[MixOutcome]) -> dict[Regime, list[tuple[float, float]]]:
    """(OSR, exact match), both in [0, 1], of every setting of each regime that has any."""
    found = {regime: _points([outcome for outcome in outcomes if outcome.regime == regime]) for regime in REGIMES}
    return {regime: points for regime, points in found.items() if points}


def _metrics(name: Regime | All, points: Sequence[tuple[float, float]]) -> RegimeMetrics:
    osr, exact = np.array(points).T
    rank = spearman(osr, exact) if len(points) > 2 else Rank(None, None, "exact")  # of two points it is 1, -1 or nothing
    return RegimeMetrics(
        name,
        len(points),
        (float(osr.min()), float(osr.max())),
        (float(exact.min()), float(exact.max())),
        float(exact.mean()),
        rank,
    )


@dataclass(frozen=True)
class EqualOsr:
    """The settings whose OSR is in one part of the range that all regimes reach: the mean exact match of each regime that has
    any, and how many settings that is over.
    """

    osr: tuple[float, float]
    mean_exact_match: dict[Regime, float]
    n: dict[Regime, int]


PARTS = 5
"""Parts of the range of OSR in which regimes are compared."""


def at_equal_osr(outcomes: Sequence[MixOutcome]) -> list[EqualOsr]:
    """The regimes side by side (section 5.3, "at comparable OSR levels"): the OSR that all of them reach in five equal parts.

    Adaptive settings do not limit it. Empty with fewer than two regimes, or if no OSR is reached by all.
    """
    points = {regime: np.array(each) for regime, each in points_by_regime(outcomes).items()}
    scheduled = [each for regime, each in points.items() if regime != "adaptive"]
    low = max((float(each[:, 0].min()) for each in scheduled), default=0.0)
    high = min((float(each[:, 0].max()) for each in scheduled), default=0.0)
    if len(points) < 2 or not low < high:
        return []
    edges = np.linspace(low, high, PARTS + 1)
    found = []
    for part in range(PARTS):
        held: dict[Regime, NDArray[np.float64]] = {}
        for regime, each in points.items():
            within = (each[:, 0] >= edges[part]) & (each[:, 0] <= edges[part + 1])
            if part + 1 < PARTS:
                within &= each[:, 0] < edges[part + 1]
            if within.any():
                held[regime] = each[within, 1]
        means = {regime: float(values.mean()) for regime, values in held.items()}
        found.append(
            EqualOsr((float(edges[part]), float(edges[part + 1])), means, {name: len(of) for name, of in held.items()})
        )
    return found


def effect_of_gap(outcomes: Sequence[MixOutcome]) -> float | None:
    """By how much exact match rises from a gap of 0 to one of 1 at equal OSR: least squares on OSR and the gap, over settings.

    Adaptive settings are left out, because their gap is not the schedule's. ``None`` if the settings do not tell the two apart.
    """
    scheduled = [each for each in outcomes if each.regime != "adaptive" and each.osr is not None]
    rows = [(1.0, each.osr, each.mix.schedule.gap, each.exact_match) for each in scheduled]
    values = np.array(rows).reshape(-1, 4)
    solution, _, rank, _ = np.linalg.lstsq(values[:, :3], values[:, 3], rcond=None)
    return float(solution[2]) if rank == 3 and len(values) > 3 else None


class NearEffect(NamedTuple):
    """By how much OSR and exact match (fractions) of ``n`` adaptive settings exceed those of their schedules alone (means)."""

    n: int
    osr: float
    exact_match: float


def effect_of_near(outcomes: Sequence[MixOutcome]) -> NearEffect | None:
    """The mean difference over pairs of an adaptive setting and the same one without ``near``; ``None`` without any pair."""
    scheduled = {_schedule_of(each): each for each in outcomes if each.regime != "adaptive" and each.osr is not None}
    pairs = [(each, scheduled.get(_schedule_of(each))) for each in outcomes if each.regime == "adaptive"]
    found = [
        ((each.osr or 0.0) - (alone.osr or 0.0), each.exact_match - alone.exact_match)
        for each, alone in pairs
        if alone is not None
    ]
    return NearEffect(len(found), *np.mean(found, axis=0).tolist()) if found else None


def _schedule_of(outcome: MixOutcome) -> str:
    return outcome.mix.model_dump_json(exclude={"near", "within", "above"})


COLUMNS = (
    *("benchmark", "number", "regime", "start", "end", "gap", "shape", "kappa", "mean", "mu", "over", "seed", "repeat"),
    *("near", "within", "above"),
    *("steps", "exact", "exact_match", "past", "replaced", "osr", "available", "expected"),
)


def as_csv(outcomes: Mapping[str, Sequence[MixOutcome]]) -> str:
    """One line per setting of each benchmark; shares are fractions in [0, 1], and an undefined metric is an empty field."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for benchmark, outcome in ((name, each) for name, of in outcomes.items() for each in of):
        schedule = outcome.mix.schedule
        more = {"gap": schedule.gap, "osr": outcome.osr, "exact_match": outcome.exact_match, "benchmark": benchmark}
        writer.writerow({**outcome.mix.model_dump(), **asdict(schedule), **outcome.model_dump(), **more})
    return text.getvalue()
