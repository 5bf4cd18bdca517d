"""Turns a stream of records into a run's figures while keeping only a few numbers for each step.

Denominators are the point: they come from the plan (what the run set out to do), never from what happens to be recorded,
so a server that dies cannot raise a score. Steps are added in any order, and figures do not depend on it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median
from struct import Struct
from sys import intern
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from guieval.actions import ACTION_TYPES, ActionSpace
from guieval.history.modes import Mode
from guieval.metrics.summary import (
    COVERAGE_NEEDED,
    Average,
    Cell,
    Diagnostics,
    GroupTable,
    Rate,
    RunSummary,
    Scores,
    Sop,
    StepFigures,
    Total,
    Verdicts,
    WithoutOpen,
)
from guieval.steps import EpisodeKey, Plan, ReferenceTypes, StepOutcome, StepRecord, Verdict

_End: TypeAlias = Verdict | Literal["not_reached", "not_run"]
_K = TypeVar("_K")


class _Mark(NamedTuple):
    """What the figures need to know of an answer. There are few different ones, so steps share them."""

    verdict: Verdict
    type_match: bool
    exact_match: bool
    covered: bool
    finished: bool

    @property
    def measured(self) -> bool:
        return self.verdict != "infrastructure_failure"


class _Label(NamedTuple):
    """What the figures need to know of a task; shared between steps too."""

    action_type: str
    groups: tuple[tuple[str, str], ...]


class _Step(NamedTuple):
    mark: _Mark
    label: _Label
    distance: float | None
    text_similarity: float | None
    seconds: float | None
    prompt_tokens: int | None
    completion_tokens: int | None


class _Steps:
    """Steps by number, 46 bytes each: a run may have a hundred thousand, whose Python objects would take six times as much."""

    _row = Struct("<HIdddqq")

    def __init__(self) -> None:
        self._marks: dict[_Mark, int] = {}
        self._labels: dict[_Label, int] = {}
        self._mark_of: list[_Mark] = []
        self._label_of: list[_Label] = []
        self._rows = bytearray()

    def __len__(self) -> int:
        return len(self._rows) // self._row.size

    def mark(self, number: int) -> _Mark:
        mark: int = self._row.unpack_from(self._rows, number * self._row.size)[0]
        return self._mark_of[mark]

    def get(self, number: int) -> _Step:
        mark, label, *floats, prompt, completion = self._row.unpack_from(self._rows, number * self._row.size)
        distance, similarity, seconds = (None if math.isnan(number) else number for number in floats)
        tokens = (None if number < 0 else number for number in (prompt, completion))
        return _Step(self._mark_of[mark], self._label_of[label], distance, similarity, seconds, *tokens)

    def put(self, number: int, step: _Step) -> None:
        """Store a step under a number that is there, or the next one."""
        floats = (math.nan if each is None else each for each in (step.distance, step.text_similarity, step.seconds))
        tokens = (-1 if each is None else each for each in (step.prompt_tokens, step.completion_tokens))
        mark, label = _number(step.mark, self._marks, self._mark_of), _number(step.label, self._labels, self._label_of)
        self._rows[number * self._row.size : (number + 1) * self._row.size] = self._row.pack(mark, label, *floats, *tokens)


def _number(kind: _K, numbers: dict[_K, int], kinds: list[_K]) -> int:
    """The number of what steps share, a new one where it is seen for the first time."""
    number = numbers.setdefault(kind, len(kinds))
    if number == len(kinds):
        kinds.append(kind)
    return number


class RunTally:
    """The records of one run, cut down to what its figures need: about 170 bytes a step in episodes of AndroidControl's length.

    ``mode`` says whether, and at which, mismatch an episode ends; the two action spaces decide coverage. ``types`` are the
    reference types of planned steps, also of those without a record; they are read by :meth:`summary`. Not thread-safe.
    """

    def __init__(
        self, mode: Mode, model_space: ActionSpace, benchmark_space: ActionSpace, types: ReferenceTypes | None = None
    ) -> None:
        self._mode = mode
        self._types: ReferenceTypes = {} if types is None else types
        self._spaces = (model_space, benchmark_space)
        self._episodes: dict[EpisodeKey, dict[int, int]] = {}
        self._steps = _Steps()

    def __len__(self) -> int:
        """How many different steps were added."""
        return len(self._steps)

    def add(self, record: StepRecord, outcome: StepOutcome | None = None) -> None:
        """Take in one record, scored by its first sample.

        ``outcome`` replaces the one stored with that sample, for scoring again under another protocol. Of several records
        of one step the last finished one counts; a failed request never replaces an answer.
        """
        step = self._step(record, outcome or record.sample.outcome)
        steps = self._episodes.get(record.task.episode_key)
        if steps is None:
            benchmark, subset, episode_id = record.task.episode_key
            steps = self._episodes[EpisodeKey(intern(benchmark), intern(subset), episode_id)] = {}
        number = steps.get(record.task.step_index)
        if number is None:
            number = steps[record.task.step_index] = len(self._steps)
        elif not _replaces(step.mark, self._steps.mark(number)):
            return
        self._steps.put(number, step)

    def _step(self, record: StepRecord, outcome: StepOutcome) -> _Step:
        sample, task = record.sample, record.task
        measured = outcome.verdict != "infrastructure_failure"
        expressed = sample.action is not None and outcome.verdict in ("right", "wrong")
        mark = _Mark(
            verdict=outcome.verdict,
            type_match=measured and outcome.type_match,
            exact_match=measured and outcome.exact_match,
            covered=expressed and all(sample.action in space for space in self._spaces if sample.action is not None),
            finished=record.finished,
        )
        label = _Label(task.action.type, tuple(sorted(task.groups.items())))
        return _Step(
            mark=mark,
            label=label,
            distance=outcome.distance,
            text_similarity=outcome.text_similarity,
            seconds=sample.seconds,
            prompt_tokens=_sum_known(one.usage.prompt_tokens for one in record.samples if one.usage),
            completion_tokens=_sum_known(one.usage.completion_tokens for one in record.samples if one.usage),
        )

    def summary(self, plan: Plan, within: Plan | None = None, left_out: int = 0) -> RunSummary:
        """The figures over the planned steps of each planned episode; an episode is the sequence of these steps.

        ``within`` is the plan of the whole run if ``plan`` is only a part of it, so records of the rest are not reported as
        unplanned. ``left_out`` is copied into the summary.

        In a mode that stops at the first mismatch, steps after an episode's first measured step that is not exact are not
        reached, even if a record exists (as when a run is scored again under another protocol). Where mismatches are patched,
        these are the steps after the first mismatch for which no patch is left. A patched step is a mismatch in every figure,
        so progress and success depend on the steps before the first one. Raises ``ValueError`` for an episode without steps.
        """
        ends: dict[_End, int] = dict.fromkeys((*get_args(Verdict), "not_reached", "not_run"), 0)
        sums, without_open = _Sums(), _Sums()
        rows: defaultdict[_Label, _ScoreSums] = defaultdict(_ScoreSums)
        reached: list[_Step] = []
        incomplete_episodes = 0
        planned = 0
        all_types_known = True
        for key, counted in plan.items():
            if not counted:
                raise ValueError(f"episode {key} is planned without steps")
            planned += len(counted)
            known = {index: self._steps.get(number) for index, number in self._episodes.get(key, {}).items()}
            walk = list(_walk(known, counted, self._mode.mismatches))
            told = self._types.get(key, {})
            types = [told.get(at) if s is None else s.label.action_type for at, (_, s) in zip(counted, walk, strict=True)]
            for (end, step), type_ in zip(walk, types, strict=True):
                ends[end] += 1
                if end == "not_reached":
                    all_types_known &= type_ is not None
                    continue
                if type_ is not None:
                    rows[_Label(type_, ()) if step is None else step.label].add(step)
                if step is not None:
                    reached.append(step)
            sums.add(walk)
            without_open.add([visit for visit, type_ in zip(walk, types, strict=True) if type_ != "OPEN"])
            incomplete_episodes += any(end in _UNMEASURED for end, _ in walk)
        verdicts = Verdicts(planned=planned, **ends)
        stops = self._mode.stop == "first-mismatch"
        return RunSummary(
            **sums.figures(),
            mode=self._mode.label,
            stop=self._mode.stop,
            episodes=len(plan),
            verdicts=verdicts,
            complete=verdicts.unmeasured == 0,
            incomplete=verdicts.unmeasured,
            incomplete_episodes=incomplete_episodes,
            unplanned=self._outside(plan if within is None else within),
            left_out=left_out,
            sop=sums.episodes.sop() if stops else None,
            without_open=WithoutOpen(**without_open.figures(whole_episodes=all_types_known)),
            by_action_type=_by_action_type(rows),
            groups=_group_tables(rows),
            diagnostics=_diagnostics(reached),
        )

    def _outside(self, plan: Plan) -> int:
        """How many of the steps that were added are in no plan."""
        planned = (sum(index in counted for index in self._episodes.get(key, ())) for key, counted in plan.items())
        return len(self) - sum(planned)


def summarise(
    records: Iterable[StepRecord],
    plan: Plan,
    mode: Mode,
    model_space: ActionSpace,
    benchmark_space: ActionSpace,
) -> RunSummary:
    """The figures of a run whose records are at hand; see :class:`RunTally` and :meth:`RunTally.summary`."""
    tally = RunTally(mode, model_space, benchmark_space)
    for record in records:
        tally.add(record)
    return tally.summary(plan)


def _replaces(mark: _Mark, known: _Mark) -> bool:
    """Whether a later record of a step counts instead of an earlier one."""
    return (mark.measured, mark.finished) >= (known.measured, known.finished)


_UNMEASURED: tuple[_End, ...] = ("infrastructure_failure", "not_run")


def _walk(known: Mapping[int, _Step], counted: Iterable[int], allowed: float) -> Iterator[tuple[_End, _Step | None]]:
    """Each planned step of an episode in order, as it ended; no step where it left nothing that counts.

    ``allowed`` is how many measured mismatches it goes on behind.
    """
    stopped = False
    mismatches = 0
    for index in counted:
        step = None if stopped else known.get(index)
        if step is None:
            yield ("not_reached" if stopped else "not_run"), None
            continue
        yield step.mark.verdict, step
        mismatches += step.mark.measured and not step.mark.exact_match
        stopped = mismatches > allowed


@dataclass
class _ScoreSums:
    n: int = 0
    unmeasured: int = 0
    type_matches: int = 0
    exact_matches: int = 0

    def add(self, step: _Step | None) -> None:
        self.n += 1
        if step is None or not step.mark.measured:
            self.unmeasured += 1
        else:
            self.type_matches += step.mark.type_match
            self.exact_matches += step.mark.exact_match

    def plus(self, other: _ScoreSums) -> _ScoreSums:
        return _ScoreSums(
            self.n + other.n,
            self.unmeasured + other.unmeasured,
            self.type_matches + other.type_matches,
            self.exact_matches + other.exact_matches,
        )

    def scores(self) -> Scores:
        return Scores(
            n=self.n,
            type_match=_rate(self.type_matches, self.n, self.unmeasured),
            exact_match=_rate(self.exact_matches, self.n, self.unmeasured),
        )


@dataclass
class _StepSums:
    every: _ScoreSums = field(default_factory=_ScoreSums)
    covered: _ScoreSums = field(default_factory=_ScoreSums)

    def add(self, step: _Step | None) -> None:
        self.every.add(step)
        if step is not None and step.mark.covered:
            self.covered.add(step)

    def figures(self) -> StepFigures:
        every, covered = self.every.scores(), self.covered.scores()
        coverage = _rate(self.covered.n, self.every.n - self.every.unmeasured)
        return StepFigures(
            type_match=every.type_match,
            exact_match=every.exact_match,
            coverage=coverage,
            coverage_ok=coverage.value is not None and coverage.value >= COVERAGE_NEEDED,
            covered_type_match=covered.type_match,
            covered_exact_match=covered.exact_match,
        )


@dataclass
class _EpisodeSums:
    """Prefixes of episodes: ``sure`` counts exact steps up to the first other one, ``possible`` passes over unmeasured ones."""

    lengths: list[int] = field(default_factory=list)
    sure: list[int] = field(default_factory=list)
    possible: list[int] = field(default_factory=list)

    def add(self, walk: list[tuple[_End, _Step | None]]) -> None:
        if not walk:
            return
        sure = possible = 0
        for end, step in walk:
            exact = step is not None and step.mark.exact_match
            if not exact and end not in _UNMEASURED:
                break
            if exact and sure == possible:
                sure += 1
            possible += 1
        self.lengths.append(len(walk))
        self.sure.append(sure)
        self.possible.append(possible)

    def episode_mean(self) -> Average:
        sure = [prefix / length for prefix, length in zip(self.sure, self.lengths, strict=True)]
        possible = [prefix / length for prefix, length in zip(self.possible, self.lengths, strict=True)]
        return _mean(sure, possible)

    def step_weighted(self) -> Rate:
        return _rate(sum(self.sure), sum(self.lengths), sum(self.possible) - sum(self.sure))

    def success_rate(self) -> Rate:
        successes = sum(prefix == length for prefix, length in zip(self.sure, self.lengths, strict=True))
        possible = sum(prefix == length for prefix, length in zip(self.possible, self.lengths, strict=True))
        return _rate(successes, len(self.lengths), possible - successes)

    def sop(self) -> Sop:
        pg, tsr = self.episode_mean(), self.success_rate()
        upper = None
        if pg.upper is not None or tsr.upper is not None:
            upper = _half_sum(pg.value if pg.upper is None else pg.upper, tsr.value if tsr.upper is None else tsr.upper)
        return Sop(pg=pg, tsr=tsr, score=Average(value=_half_sum(pg.value, tsr.value), n=pg.n, upper=upper))


@dataclass
class _Sums:
    """Steps and episodes together."""

    steps: _StepSums = field(default_factory=_StepSums)
    episodes: _EpisodeSums = field(default_factory=_EpisodeSums)

    def add(self, walk: list[tuple[_End, _Step | None]]) -> None:
        for end, step in walk:
            if end != "not_reached":
                self.steps.add(step)
        self.episodes.add(walk)

    def figures(self, *, whole_episodes: bool = True) -> dict[str, Any]:
        """The figures by their names in a summary; without ``whole_episodes`` those over episodes are ``None``."""
        return {
            **dict(self.steps.figures()),
            "progress_episode_mean": self.episodes.episode_mean() if whole_episodes else None,
            "progress_step_weighted": self.episodes.step_weighted() if whole_episodes else None,
            "success_rate": self.episodes.success_rate() if whole_episodes else None,
        }


def _half_sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else (one + other) / 2


def _rate(count: int, n: int, missing: int = 0) -> Rate:
    """A rate whose upper bound counts ``missing`` further ones."""
    if n == 0:
        return Rate(value=None, count=count, n=0)
    return Rate(value=count / n, count=count, n=n, upper=(count + missing) / n if missing else None)


def _mean(values: list[float], upper: list[float] | None = None) -> Average:
    n = len(values)
    if n == 0:
        return Average(value=None, n=0)
    bound = math.fsum(upper) / n if upper is not None and upper != values else None
    return Average(value=math.fsum(values) / n, n=n, upper=bound)


def _sum_known(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _by_action_type(rows: Mapping[_Label, _ScoreSums]) -> dict[str, Scores]:
    sums: defaultdict[str, _ScoreSums] = defaultdict(_ScoreSums)
    for label, row in rows.items():
        sums[label.action_type] = sums[label.action_type].plus(row)
    others = sorted(sums.keys() - set(ACTION_TYPES))
    return {name: sums[name].scores() for name in (*ACTION_TYPES, *others) if name in sums}


def _group_tables(rows: Mapping[_Label, _ScoreSums]) -> tuple[GroupTable, ...]:
    keys = sorted({key for label in rows for key, _ in label.groups})
    choices = [*combinations(keys, 1), *combinations(keys, 2)]
    return tuple(_group_table(choice, rows) for choice in choices)


def _group_table(keys: tuple[str, ...], rows: Mapping[_Label, _ScoreSums]) -> GroupTable:
    sums: defaultdict[tuple[str, ...], _ScoreSums] = defaultdict(_ScoreSums)
    for label, row in rows.items():
        groups = dict(label.groups)
        if all(key in groups for key in keys):
            labels = tuple(groups[key] for key in keys)
            sums[labels] = sums[labels].plus(row)
    cells = tuple(Cell(labels=labels, scores=sums[labels].scores()) for labels in sorted(sums))
    return GroupTable(
        keys=keys,
        cells=cells,
        mean_type_match=_mean_of_rates([cell.scores.type_match for cell in cells]),
        mean_exact_match=_mean_of_rates([cell.scores.exact_match for cell in cells]),
    )


def _mean_of_rates(rates: list[Rate]) -> Average:
    values = [rate.count / rate.n for rate in rates]
    upper = [value if rate.upper is None else rate.upper for value, rate in zip(values, rates, strict=True)]
    return _mean(values, upper)


def _diagnostics(steps: list[_Step]) -> Diagnostics:
    answered = [step for step in steps if step.mark.measured]
    distances = [step.distance for step in answered if step.distance is not None and step.label.action_type == "CLICK"]
    prompt = [step.prompt_tokens for step in steps if step.prompt_tokens is not None]
    completion = [step.completion_tokens for step in steps if step.completion_tokens is not None]
    return Diagnostics(
        click_distance_median=Average(value=median(distances) if distances else None, n=len(distances)),
        text_similarity_mean=_mean([step.text_similarity for step in answered if step.text_similarity is not None]),
        seconds_mean=_mean([step.seconds for step in answered if step.seconds is not None]),
        prompt_tokens=Total(value=sum(prompt), n=len(prompt)),
        completion_tokens=Total(value=sum(completion), n=len(completion)),
    )
