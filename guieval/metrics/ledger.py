"""The one accumulator: planned steps as rows, and what was answered and judged at each; records stream in, in any order.

Runs, ``guieval score``, the tables of many protocols and the viewer all sum up here, so a metric has one value. Denominators
come from the plan, never from what happens to be recorded, so a server that dies cannot raise a score. A step costs about 120
bytes.

An answer is judged once for each distinct set of deciding rules, however many protocols there are: per step there are few,
because most protocols differ in rules that do not apply to a step's two action types.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guieval.actions import Action, ActionSpace, Click, LongPress, Open, Scroll, Type, Unsupported, type_of
from guieval.data.editions import PARTS, LabelDigest
from guieval.evaluation import ActionEvaluator, TextRule
from guieval.evaluation.judgement import Judgement
from guieval.history.modes import Mode
from guieval.metrics.claims import claim_code
from guieval.metrics.columns import (
    FAILED,
    NOT_RUN,
    RIGHT,
    TYPES,
    UNPARSEABLE,
    UNSUPPORTED,
    WRONG,
    Judged,
    RunColumns,
    put_by_model,
    stopped,
    total_known,
)
from guieval.steps import EpisodeKey, Plan, ReferenceTypes, Sample, StepKey, StepOutcome, StepRecord, StepTaskModel, faulty

NEAR = 40.0
"""Points of two samples within this many thousandths of the screen are the same click to a vote."""

_TEXT = TextRule()
_TYPE_CODES = {name: code for code, name in enumerate(TYPES)}


class _Bucket:
    """Answers of one kind: the protocols that judge it alike are one group, whose judgements stand in one column."""

    def __init__(self, evaluators: Sequence[ActionEvaluator], group_of: Sequence[int]) -> None:
        self.evaluators = evaluators
        """One of each group."""
        self.group_of = np.asarray(group_of, dtype=np.intp)
        """(p,) the group of each protocol."""
        self.row, self.number = array("q"), array("q")
        self.matches = [array("b") for _ in evaluators]
        """1: the type matches, 2: everything does."""
        self.distance = [array("d") for _ in evaluators]
        self.similarity = [array("d") for _ in evaluators]

    def add(self, row: int, number: int, task: StepTaskModel, action: Action, judged: StepOutcome | None = None) -> None:
        """Judge the answer that counts for a step, unless it was ``judged`` under the only protocol."""
        self.row.append(row)
        self.number.append(number)
        for evaluator, matches, distance, similarity in zip(
            self.evaluators, self.matches, self.distance, self.similarity, strict=True
        ):
            judgement: Judgement | StepOutcome = judged or evaluator.judge(task, action)
            matches.append(judgement.type_match + 2 * judgement.exact_match)
            distance.append(math.nan if judgement.distance is None else judgement.distance)
            similarity.append(math.nan if judgement.text_similarity is None else judgement.text_similarity)

    def exact(self, task: StepTaskModel, action: Action) -> NDArray[np.bool_]:
        """(p,) whether a sample's action is exact under each protocol."""
        return np.array([evaluator.judge(task, action).exact_match for evaluator in self.evaluators])[self.group_of]

    def last(self) -> NDArray[np.bool_]:
        """(p,) whether the answer added last is exact under each protocol."""
        return np.array([matches[-1] > 1 for matches in self.matches])[self.group_of]


class Ledger:
    """The planned steps as rows, and what was answered and judged at each.

    ``mode`` decides whether, and at which, mismatch an episode ends; ``spaces``, the model's and the benchmark's, decide
    coverage; ``lengths`` are those of whole episodes, as far as they are known. Raises ``ValueError`` for an episode without
    planned steps. Not thread-safe.
    """

    def __init__(
        self,
        plan: Plan,
        evaluators: Sequence[ActionEvaluator],
        spaces: Sequence[ActionSpace],
        mode: Mode,
        lengths: Mapping[EpisodeKey, int] | None = None,
    ) -> None:
        self.evaluators = tuple(evaluators)
        self.outside: set[StepKey] = set()
        """Recorded steps that are not planned; they count nowhere."""
        self._mode, self._added = mode, 0
        self._none = np.zeros(len(evaluators), dtype=np.bool_)
        self._spaces = spaces
        self._steps = dict(plan)
        if empty := next((key for key, steps in plan.items() if not steps), None):
            raise ValueError(f"episode {empty} is planned without steps")
        counts = [len(steps) for steps in plan.values()]
        n = sum(counts)
        self._start = dict(zip(plan, np.cumsum([0, *counts]).tolist(), strict=False))
        self._buckets: dict[tuple[Any, ...], _Bucket] = {}
        self._many: dict[int, tuple[NDArray[np.int16], NDArray[np.bool_]]] = {}
        self._kept: dict[int, str] = {}
        """By row, the protocol under which its source found a response right that it did not keep."""
        self._labels: dict[tuple[tuple[str, str], ...], int] = {(): 0}
        # One value a row; arrays of Python, whose single items are written several times as fast as numpy's.
        self._length = array("i")
        for key, steps in plan.items():
            self._length.extend([(lengths or {}).get(key, steps[-1] + 1)] * len(steps))
        self._step_index = array("i", [index for steps in plan.values() for index in steps])
        self._label, self._rank, self._number = array("i", [0]) * n, array("b", [-1]) * n, array("q", [-1]) * n
        self._reference_type, self._predicted_type = array("b", [-1]) * n, array("b", [-1]) * n
        self._digests = np.zeros((n, len(PARTS)), dtype=np.uint64)
        self._covered, self._elsewhere, self._claims = (array("b", [0]) * n for _ in range(3))
        self._samples, self._drawn = array("h", [0]) * n, array("h", [0]) * n
        self._prompt_tokens, self._completion_tokens = array("q", [-1]) * n, array("q", [-1]) * n
        self._by_model: dict[str, NDArray[np.int64]] = {}
        self._seconds, self._reasoning = array("d", [math.nan]) * n, array("i", [-1]) * n
        self._base_end = array("b", [NOT_RUN]) * n
        """How a step ended if that does not depend on a protocol; of the others WRONG."""

    def __len__(self) -> int:
        """The number of different steps with a record."""
        return len(self._rank) - self._rank.count(-1) + len(self.outside)

    def expect(self, types: ReferenceTypes) -> None:
        """Add the reference types of planned steps, answered or not."""
        for key, of_steps in types.items():
            for index, type_ in of_steps.items():
                row = self._row(key, index)
                if row is not None:
                    self._reference_type[row] = _TYPE_CODES.get(type_, -1)

    def _row(self, key: EpisodeKey, index: int) -> int | None:
        steps = self._steps.get(key, ())
        return self._start[key] + steps.index(index) if index in steps else None

    def rows_of(self, plan: Plan) -> NDArray[np.intp]:
        """The rows of a part of the plan, in its order."""
        pieces: list[NDArray[np.intp]] = []
        for key, steps in plan.items():
            start, own = self._start[key], self._steps[key]
            places = np.asarray(steps, dtype=np.intp)
            pieces.append(start + (places if isinstance(own, range) else np.searchsorted(np.asarray(own), places)))
        return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.intp)

    def counts(self, number: int, task: StepTaskModel) -> bool:
        """Whether the record that was added as the ``number``-th, from 0, is the one that counts for its step."""
        row = self._row(task.episode_key, task.step_index)
        return row is not None and self._number[row] == number

    def label(self, task: StepTaskModel) -> int | None:
        """Take in what a step is, answered or not; its row, or ``None`` if it is not in the plan."""
        row = self._row(task.episode_key, task.step_index)
        if row is not None:
            self._reference_type[row] = _TYPE_CODES[task.action.type]
            self._label[row] = self._labels.setdefault(tuple(sorted(task.groups.items())), len(self._labels))
            self._length[row] = task.episode_length
            self._digests[row] = LabelDigest.of(task)
        return row

    def add(self, task: StepTaskModel, samples: Sequence[Sample], judged: StepOutcome | None = None) -> None:
        """Take in one record; a later one of the same step replaces it unless that is less finished.

        ``judged`` is the outcome of the first sample if the only protocol has judged it already. A failed request never
        replaces an answer.
        """
        row, number = self.label(task), self._added
        self._added += 1
        if row is None:
            self.outside.add(task.key)
            return
        if not samples:
            return
        answered = [sample for sample in samples if sample.answered]
        first = samples[0]
        measured = first.answered and (judged is None or judged.verdict != "infrastructure_failure")
        rank = 2 * measured + (len(answered) == len(samples))
        if rank < self._rank[row]:
            return
        self._rank[row], self._number[row] = rank, number
        self._samples[row], self._drawn[row] = len(answered), len(samples)
        usages = [usage for sample in samples if (usage := sample.paid) is not None]
        self._prompt_tokens[row] = total_known(usage.prompt_tokens for usage in usages)
        self._completion_tokens[row] = total_known(usage.completion_tokens for usage in usages)
        put_by_model(self._by_model, row, len(self._number), (usage for sample in samples for usage in sample.responses))
        self._seconds[row] = math.nan if first.seconds is None else first.seconds
        self._reasoning[row] = len(first.thought or "") + len(first.reasoning or "") if first.answered else -1
        self._many.pop(row, None)
        action = task.action if first.right_under else first.action  # right: of the reference's type, within its space
        self._kept.pop(row, None)
        self._predicted_type[row] = -1 if action is None else _TYPE_CODES[type_of(action)]
        self._covered[row] = measured and action is not None and all(action in space for space in self._spaces)
        self._elsewhere[row] = measured and _in_another_element(task, action)
        self._claims[row] = claim_code(task, action)
        bucket = self._bucket(task, action) if measured else NOT_RUN if faulty(first) else FAILED
        self._base_end[row] = bucket if isinstance(bucket, int) else WRONG
        if first.right_under:
            self._kept[row] = first.right_under
            return
        if not isinstance(bucket, int) and action is not None:
            bucket.add(row, number, task, action, judged)
        if len(samples) > 1 and answered:
            votes = [] if not measured else [self._none if isinstance(bucket, int) else bucket.last()]
            votes += [self._exact(task, sample.action) for sample in answered[len(votes) :]]
            self._many[row] = (np.sum(votes, axis=0, dtype=np.int16), votes[voted([sample.action for sample in answered])])

    def take(self, record: StepRecord) -> None:
        """Take in a record as its run judged it, for the only protocol."""
        self.add(record.task, record.billed, record.sample.outcome)

    def outcome(self, protocol: str, task: StepTaskModel, sample: Sample) -> StepOutcome:
        """The score of one answer under one of the protocols, with its reason."""
        return next(each for each in self.evaluators if each.protocol.name == protocol).rescore(task, sample)

    def _exact(self, task: StepTaskModel, action: Action | None) -> NDArray[np.bool_]:
        bucket = self._bucket(task, action)
        return self._none if action is None or isinstance(bucket, int) else bucket.exact(task, action)

    def _bucket(self, task: StepTaskModel, action: Action | None) -> _Bucket | int:
        """Where an answer is judged, or how the step ends when there is nothing to judge."""
        if action is None:
            return UNPARSEABLE
        accepted = (task.action.type, *dict.fromkeys(each.type for each in task.alternatives if each.type != task.action.type))
        known = action.known if isinstance(action, Unsupported) else None
        if known is None and action.type == "UNSUPPORTED" and action.type not in accepted:
            return UNSUPPORTED
        kind = (task.dataset, accepted, known or action.type, known is not None)
        bucket = self._buckets.get(kind)
        if bucket is None:
            groups: dict[Any, int] = {}
            chosen: list[ActionEvaluator] = []
            group_of: list[int] = []
            for evaluator in self.evaluators:
                rules = evaluator.protocol.rules_for(task.dataset)
                parts = (rules.deciding(type_, action.type) for type_ in accepted)
                deciding = (rules.deciding_type,) if known is not None else tuple(parts)
                if deciding not in groups:
                    groups[deciding] = len(groups)
                    chosen.append(evaluator)
                group_of.append(groups[deciding])
            bucket = self._buckets[kind] = _Bucket(chosen, group_of)
        return bucket

    def judged(self, protocol: int, rows: NDArray[np.intp]) -> Judged:
        """The judgements of some rows under one protocol, in a mode that does not stop."""
        n = len(self._number)
        end = np.array(self._base_end)
        type_match, exact_match = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
        distance, similarity = np.full(n, np.nan), np.full(n, np.nan)
        for bucket in self._buckets.values():
            where, number = np.array(bucket.row, dtype=np.intp), np.array(bucket.number)
            counts = np.asarray(self._number)[where] == number
            where = where[counts]
            group = int(bucket.group_of[protocol])
            matches = np.array(bucket.matches[group])[counts]
            type_match[where] = (matches & 1) > 0
            exact_match[where] = matches > 1
            end[where] = np.where(matches > 1, RIGHT, WRONG)
            distance[where] = np.array(bucket.distance[group])[counts]
            similarity[where] = np.array(bucket.similarity[group])[counts]
        for row, source in self._kept.items():
            right = source == self.evaluators[protocol].protocol.name
            end[row], type_match[row], exact_match[row] = RIGHT if right else FAILED, right, right
        exact_samples, vote = exact_match.astype(np.int16), exact_match.copy()
        for row, (counted_exact, voted_exact) in self._many.items():
            exact_samples[row], vote[row] = counted_exact[protocol], voted_exact[protocol]
        return Judged(
            self.evaluators[protocol].protocol.name,
            end[rows],
            type_match[rows],
            exact_match[rows],
            distance[rows],
            similarity[rows],
            exact_samples[rows],
            vote[rows],
        )

    def recorded(self, plan: Plan) -> int:
        """How many steps of a part of the plan have a record."""
        return int((np.asarray(self._rank)[self.rows_of(plan)] >= 0).sum())

    def columns(self, plan: Plan | None = None, protocols: Sequence[str] | None = None, **about: Any) -> RunColumns:
        """The steps of ``plan``, a part of the whole (``None``: all), under ``protocols`` (``None``: all that judged).

        In a mode that ends an episode at a mismatch, later steps are not reached, even if they have a record. ``about`` are
        further fields of :class:`guieval.metrics.columns.RunColumns`: the run's title, model, data ...
        """
        plan = self._steps if plan is None else plan
        rows = self.rows_of(plan)
        episode = np.repeat(np.arange(len(plan), dtype=np.int32), [len(steps) for steps in plan.values()])
        names = [evaluator.protocol.name for evaluator in self.evaluators]
        judged = {name: self.judged(names.index(name), rows) for name in (names if protocols is None else protocols)}
        if self._mode.stop == "first-mismatch":
            starts = np.searchsorted(episode, np.arange(len(plan)))
            judged = {name: stopped(each, episode, starts, self._mode.mismatches) for name, each in judged.items()}
        return RunColumns(
            mode=self._mode.label,
            stop=self._mode.stop,
            episodes=tuple(plan),
            episode=episode,
            step_index=np.asarray(self._step_index)[rows],
            length=np.asarray(self._length)[rows],
            reference_type=np.asarray(self._reference_type)[rows],
            predicted_type=np.asarray(self._predicted_type)[rows],
            covered=np.asarray(self._covered)[rows].astype(np.bool_),
            elsewhere=np.asarray(self._elsewhere)[rows].astype(np.bool_),
            claims=np.asarray(self._claims)[rows],
            samples=np.asarray(self._samples)[rows],
            drawn=np.asarray(self._drawn)[rows],
            prompt_tokens=np.asarray(self._prompt_tokens)[rows],
            completion_tokens=np.asarray(self._completion_tokens)[rows],
            tokens_by_model={name: tokens[rows] for name, tokens in self._by_model.items()},
            seconds=np.asarray(self._seconds)[rows],
            reasoning=np.asarray(self._reasoning)[rows],
            groups=self._groups(rows),
            label_digests=self._digests[rows],
            judged=judged,
            unplanned=len(self.outside),
            **about,
        )

    def _groups(self, rows: NDArray[np.intp]) -> dict[str, list[str]]:
        """For each key of the steps' labels the rows' values, "" if a step has none."""
        labels = [dict(label) for label in self._labels]
        mine = np.asarray(self._label)[rows].tolist()
        keys = sorted({key for number in set(mine) for key in labels[number]})
        return {key: [labels[number].get(key, "") for number in mine] for key in keys}


def _in_another_element(task: StepTaskModel, action: Action | None) -> bool:
    """Whether a predicted point is in one of the screen's boxes that does not hold the reference point."""
    if not (isinstance(action, Click | LongPress) and isinstance(task.action, Click | LongPress)):
        return False
    boxes = task.boxes_of_screen
    inside = boxes.containing(action.point)
    return bool(inside.any()) and bool((inside & ~boxes.containing(task.action.point)).any())


def voted(actions: Sequence[Action | None]) -> int:
    """The place of the action that most samples agree on; among equally many the first one.

    Actions are taken in order, and each joins the first group with whose first action it agrees: equal types, and points
    within :data:`NEAR` (clicks and long presses), equal directions, buttons or ends, equal texts and app names once
    lower-cased and stripped; what is outside the unified space must be equal altogether. Responses without an action agree
    with each other. The vote is the same under all protocols.
    """
    groups: list[list[int]] = []
    for place, action in enumerate(actions):
        for group in groups:
            if _agree(actions[group[0]], action):
                group.append(place)
                break
        else:
            groups.append([place])
    return max(groups, key=len)[0]


def _agree(one: Action | None, other: Action | None) -> bool:
    if isinstance(one, Click | LongPress) and isinstance(other, Click | LongPress):
        return one.type == other.type and math.dist(one.point, other.point) <= NEAR
    if isinstance(one, Scroll) and isinstance(other, Scroll):
        return one.direction == other.direction
    if isinstance(one, Type) and isinstance(other, Type):
        return _TEXT.normalise(one.text) == _TEXT.normalise(other.text)
    if isinstance(one, Open) and isinstance(other, Open):
        return _TEXT.normalise(one.app) == _TEXT.normalise(other.app)
    if one is not None and other is not None and one.type == other.type == "WAIT":
        return True
    return one == other
