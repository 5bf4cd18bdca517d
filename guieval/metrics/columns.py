"""A run as columns: one row for each planned step, in plan order, and how each protocol judges it, as arrays.

Metrics, intervals, comparisons, breakdowns and plots all start from here, so that planned, answered and judged steps are
determined once. Denominators come from the plan, never from the records that happen to exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guieval.actions import ACTION_TYPES
from guieval.errors import UsageError, nearest
from guieval.metrics.measured import Measured, share_of
from guieval.steps import VERDICTS, EpisodeKey, StepKey, Usage, Verdict, usage_by_model

End: TypeAlias = Verdict | Literal["not_reached", "not_run"]
"""How a planned step ended; ``not_reached`` is by design (the mode stopped before it), ``not_run`` is not."""
ENDS: tuple[End, ...] = (*VERDICTS, "not_reached", "not_run")
"""The ends of episodes that the codes of :attr:`Judged.end` index."""
RIGHT, WRONG, UNPARSEABLE, UNSUPPORTED, FAILED, NOT_REACHED, NOT_RUN = range(len(ENDS))
TYPES: tuple[str, ...] = (*ACTION_TYPES, "UNSUPPORTED")
"""Action types, indexed by :attr:`RunColumns.reference_type` and :attr:`RunColumns.predicted_type`; -1 is none or unknown."""


@dataclass(frozen=True, eq=False)
class Judged:
    """How one protocol judges a run's n steps; arrays of length n.

    ``end``: int8, indices into :data:`ENDS`. ``type_match``, ``exact_match``: bool, of the first sample, false without a
    judgement. ``distance``: thousandths of the screen, NaN if it has no meaning. ``similarity``: of texts, in [0, 1],
    or NaN. ``exact_samples``: int16, how many of the step's answered samples match exactly. ``vote``: bool, whether the
    action that most of its samples agree on does (the first sample's if there is one sample).
    """

    protocol: str
    end: NDArray[np.int8]
    type_match: NDArray[np.bool_]
    exact_match: NDArray[np.bool_]
    distance: NDArray[np.float64]
    similarity: NDArray[np.float64]
    exact_samples: NDArray[np.int16]
    vote: NDArray[np.bool_]

    @cached_property
    def measured(self) -> NDArray[np.bool_]:
        """(n,) steps that were answered and judged."""
        below: NDArray[np.bool_] = self.end <= UNSUPPORTED
        return below

    @cached_property
    def reached(self) -> NDArray[np.bool_]:
        """(n,) steps that the mode reaches; step metrics leave the others out."""
        others: NDArray[np.bool_] = self.end != NOT_REACHED
        return others

    @property
    def unmeasured(self) -> NDArray[np.bool_]:
        """(n,) steps that should have been answered and were not: their request failed, or was never made."""
        return np.isin(self.end, (FAILED, NOT_RUN))

    @property
    def counts(self) -> dict[End, int]:
        """How many of the steps ended in which way."""
        return dict(zip(ENDS, np.bincount(self.end, minlength=len(ENDS)).tolist(), strict=True))


@dataclass(frozen=True, eq=False, kw_only=True)
class RunColumns:
    """One run (or predictions file): n planned steps of e episodes, judged by some protocols.

    Rows are in plan order: episode by episode, steps ascending. ``episode``: int32, indices into ``episodes``. ``step_index``:
    int32, the step's place in its episode; ``length``: int32, the episode's whole length as the benchmark has it (of a step
    that was never recorded, the number of its planned steps). ``reference_type``, ``predicted_type``: int8, indices into
    :data:`TYPES`, -1 for a step without a record, or a response without an action. ``covered``: bool, the prediction is in the
    action spaces of both model and benchmark (GUIEvalKit paper 3.3.1; it does not depend on the label). ``samples``: int16,
    answered samples of the step; ``drawn``: int16, with those never answered, ``None`` if that is the same. ``groups``: for
    each key of the steps' labels, n values ("" if a step has none). ``elsewhere``: bool, the predicted point is in one of the
    screen's boxes (border included, as published, not enlarged) that does not hold the reference point; ``None`` if that is
    unknown. ``claims``: int8, 0 for a prediction that does not stop, 1 for one that stops as finished rightly, 2 wrongly, 3 and
    4 likewise as impossible; ``None`` if that is unknown. ``prompt_tokens``, ``completion_tokens``: int64, of all samples of
    the step as the server reported them, -1 if it reported none; ``None`` for answers without requests. ``tokens_by_model``: of
    a composition, for each of its models (n, 2) int64, its part of both. ``seconds``: from sending the first sample's request
    to its whole answer, NaN if unknown. ``reasoning``: int32, the characters of the first sample's reasoning and thought, -1
    for a step without an answer, ``None`` if unknown. ``label_digests``: (n, 4) uint64, each step's
    :class:`guieval.data.editions.LabelDigest`, zeros if the step is unknown. ``key_of`` names a row.

    ``title`` is the run's name in reports; protocols choose their rules by ``dataset``; ``mode`` and ``stop`` are the run's.
    ``selection`` describes the steps; ``edition`` is that of their labels as JSON values (``None``: not known), and
    ``edition_line`` the same in words for a data set of which several exist. ``scaffold`` is the run's in words, "" for answers
    of no run. ``left_out`` is the number of rows of a predictions file with its own steps that are missing here because their
    answer cannot be read, ``unplanned`` the number of recorded steps outside the plan.

    Of an online run a row is a task. ``outcomes``: (n, k) float64, sums over the outcomes of its repetitions
    (:mod:`guieval.metrics.tasks`); ``ended``: (n, 7) int32, how many of these ended in which of the :data:`ENDS`. Of steps both
    are ``None``.
    """

    title: str = ""
    benchmark: str = ""
    dataset: str = ""
    model: str = ""
    mode: str
    stop: str
    selection: str = ""
    edition: Mapping[str, Any] | None = None
    edition_line: str = ""
    scaffold: str = ""
    episodes: tuple[EpisodeKey, ...]
    episode: NDArray[np.int32]
    step_index: NDArray[np.int32]
    length: NDArray[np.int32]
    reference_type: NDArray[np.int8]
    predicted_type: NDArray[np.int8]
    covered: NDArray[np.bool_]
    samples: NDArray[np.int16]
    groups: Mapping[str, Sequence[str]]
    judged: Mapping[str, Judged]
    elsewhere: NDArray[np.bool_] | None = None
    claims: NDArray[np.int8] | None = None
    drawn: NDArray[np.int16] | None = None
    prompt_tokens: NDArray[np.int64] | None = None
    completion_tokens: NDArray[np.int64] | None = None
    tokens_by_model: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    label_digests: NDArray[np.uint64] | None = None
    seconds: NDArray[np.float64] | None = None
    reasoning: NDArray[np.int32] | None = None
    outcomes: NDArray[np.float64] | None = None
    ended: NDArray[np.int32] | None = None
    left_out: int = 0
    unplanned: int = 0

    def __len__(self) -> int:
        return len(self.episode)

    def key_of(self, row: int) -> StepKey:
        return StepKey(*self.episodes[int(self.episode[row])], int(self.step_index[row]))

    @cached_property
    def answered(self) -> bool:
        """Whether any step was answered and judged."""
        return any(bool(judged.measured.any()) for judged in self.judged.values())

    @property
    def unit(self) -> Literal["step", "task"]:
        return "step" if self.ended is None else "task"

    @property
    def size(self) -> str:
        """How many rows there are, in words."""
        return f"{len(self):,} tasks" if self.ended is not None else f"{len(self):,} steps of {len(self.episodes):,} episodes"

    @property
    def repetitions(self) -> int:
        """How often each task was to be repeated; 1 of steps."""
        return 1 if self.ended is None or not len(self) else int(self.ended.sum(axis=1).max())

    def ends(self, judged: Judged) -> dict[End, int]:
        """How many of the steps, or of all repetitions of the tasks, ended in which way."""
        if self.ended is None:
            return judged.counts
        return dict(zip(ENDS, self.ended.sum(axis=0).tolist(), strict=True))

    def coverage(self, judged: Judged) -> Measured:
        """The share of the judged answers that lie in both action spaces; tasks have none."""
        if self.ended is not None:
            return Measured(None)
        return share_of(int((self.covered & judged.measured).sum()), int(judged.measured.sum()), "answered steps")

    def judged_by(self, protocol: str) -> Judged:
        """The judgements of a protocol; :class:`UsageError` if the run was not judged by it."""
        if protocol not in self.judged:
            raise UsageError(f"{self.title!r} was not judged by {protocol!r}{nearest(protocol, self.judged)}")
        return self.judged[protocol]

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """(e,) each episode's first row."""
        return np.searchsorted(self.episode, np.arange(len(self.episodes)))

    def labels(self, key: str) -> Sequence[str]:
        """The n values of one key of the steps' labels, "" for none; ``subset`` defaults to the episodes' subsets."""
        if key in self.groups:
            return self.groups[key]
        if key == "subset":
            return [self.episodes[each].subset for each in self.episode.tolist()]
        return [""] * len(self)

    def per_episode(self, values: NDArray[np.float64] | NDArray[np.bool_]) -> NDArray[np.float64]:
        """(e,) the sum of a row value over each episode. Every episode has a row, so there is no empty one."""
        return np.add.reduceat(values.astype(np.float64), self.starts) if len(self) else np.empty(0)

    def only(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> RunColumns:
        """The run cut down to some rows, in the order given, in which an episode's rows stand together.

        Episodes without any row go too.
        """
        places = np.arange(len(self))[rows]
        of_rows = self.episode[places]
        opens = np.flatnonzero(np.diff(of_rows, prepend=-1))
        numbers = np.repeat(np.arange(len(opens), dtype=np.int32), np.diff([*opens.tolist(), len(places)]))
        changes: dict[str, Any] = {
            **_taken(self, places),
            "episodes": tuple(self.episodes[each] for each in of_rows[opens].tolist()),
            "episode": numbers,
            "groups": {key: [values[row] for row in places.tolist()] for key, values in self.groups.items()},
            "judged": {name: replace(each, **_taken(each, places)) for name, each in self.judged.items()},
            "tokens_by_model": {name: tokens[places] for name, tokens in self.tokens_by_model.items()},
        }
        return replace(self, **changes)


def _taken(of: RunColumns | Judged, rows: NDArray[np.intp]) -> dict[str, Any]:
    values = {field.name: getattr(of, field.name) for field in fields(of)}
    return {name: value[rows] for name, value in values.items() if isinstance(value, np.ndarray)}


def concatenated(runs: Sequence[RunColumns]) -> RunColumns:
    """Runs over different episodes, of one model in one mode judged by the same protocols, as one over all of these.

    What is unknown of one of them is unknown of all. Names that differ are joined by " + ".
    """
    if len(runs) == 1:
        return runs[0]
    firsts = np.cumsum([0, *(len(run.episodes) for run in runs[:-1])])
    names = ("title", "benchmark", "dataset", "model", "selection", "edition_line", "scaffold")
    keys = dict.fromkeys(key for run in runs for key in run.groups)
    changes: dict[str, Any] = {
        **{name: " + ".join(dict.fromkeys(filter(None, (getattr(run, name) for run in runs)))) for name in names},
        **_joined(runs),
        "edition": None,
        "episodes": tuple(key for run in runs for key in run.episodes),
        "episode": np.concatenate([run.episode + first for run, first in zip(runs, firsts, strict=True)]).astype(np.int32),
        "groups": {key: [label for run in runs for label in run.labels(key)] for key in keys},
        "judged": {
            name: replace(each, **_joined([run.judged_by(name) for run in runs])) for name, each in runs[0].judged.items()
        },
        "tokens_by_model": {
            name: np.concatenate([run.tokens_by_model.get(name, np.zeros((len(run), 2), np.int64)) for run in runs])
            for name in {name: None for run in runs for name in run.tokens_by_model}
        },
        **{name: sum(getattr(run, name) for run in runs) for name in ("left_out", "unplanned")},
    }
    return replace(runs[0], **changes)


def _joined(runs: Sequence[RunColumns] | Sequence[Judged]) -> dict[str, Any]:
    values = {field.name: [getattr(run, field.name) for run in runs] for field in fields(runs[0])}
    arrays = {name: [each for each in of if isinstance(each, np.ndarray)] for name, of in values.items()}
    return {name: np.concatenate(of) if len(of) == len(runs) else None for name, of in arrays.items() if of}


def stopped(judged: Judged, episode: NDArray[np.int32], starts: NDArray[np.intp], allowed: float = 0) -> Judged:
    """The same in a mode in which an episode ends at its first measured step without an exact match.

    ``allowed`` is the number of such steps that are patched before the next one ends the episode.
    """
    if not len(episode):
        return judged
    missed = (judged.measured & ~judged.exact_match).astype(np.int64)
    before = np.cumsum(missed) - missed
    beyond = before - before[starts][episode] > allowed
    return replace(
        judged,
        end=np.where(beyond, NOT_REACHED, judged.end).astype(np.int8),
        type_match=judged.type_match & ~beyond,
        exact_match=judged.exact_match & ~beyond,
        distance=np.where(beyond, np.nan, judged.distance),
        similarity=np.where(beyond, np.nan, judged.similarity),
        exact_samples=np.where(beyond, 0, judged.exact_samples).astype(np.int16),
        vote=judged.vote & ~beyond,
    )


def put_by_model(found: dict[str, NDArray[np.int64]], row: int, rows: int, usages: Iterable[Usage | None]) -> None:
    """Write the tokens of a row, one of ``rows``, into ``found``, as in :attr:`RunColumns.tokens_by_model`."""
    for each in found.values():
        each[row] = 0
    for name, usage in usage_by_model(usages).items():
        found.setdefault(name, np.zeros((rows, 2), np.int64))[row] = usage.prompt_tokens or 0, usage.completion_tokens or 0


def total_known(numbers: Iterable[int | None]) -> int:
    """The sum without the unknown (-1) numbers; -1 if none is known."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else -1
