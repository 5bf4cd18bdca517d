"""One set of answers under every protocol: a journal, or a file of predictions, becomes columns of steps.

Answers are read once and judged once for each distinct set of deciding rules, however many protocols there are; which steps
count is chosen afterwards, so that every protocol can be looked at on its own sample set. No model is asked.

Of several records of a step the last finished one counts. In a mode that ends an episode at its first mismatch, what lies
behind the first measured step that a protocol calls no exact match is *not reached* under that protocol, recorded or not; where
the run patched mismatches, what lies behind the first that no patch was left for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from guieval.actions import Action, ActionSpace
from guieval.evaluation import ActionEvaluator, Protocol, get_protocol, list_protocols
from guieval.evaluation.table import grounding
from guieval.journal import Records, read_manifest, read_planned
from guieval.matrix.answered_files import answered_file
from guieval.matrix.ledger import Ledger, stopped
from guieval.metrics.columns import NOT_RUN, RunColumns
from guieval.modes import recorded_mode
from guieval.overlays import Overlay, describe_overlay
from guieval.scoring import Answered, RecordedLabels, described_steps, part_of_run, read_again, recorded_model
from guieval.selection import Choice
from guieval.steps import Plan, Setting, StepKey, StepRecord, StepTaskModel

ALL = "all"
"""Stands in a list of protocols for every one written for the data set, the run's own first."""

Answer: TypeAlias = tuple[StepTaskModel, Action | None]


def protocols_for(dataset: str, setting: Setting = "high") -> list[str]:
    """Names of the protocols that were written for a data set, those for any data among them.

    Of a data set that no protocol names, all those of its kind: for ``grounding`` those that were written for grounding data
    and those for any, otherwise every one that was not written for grounding.
    """
    if _written_for(dataset):
        return list_protocols(dataset)
    pointing = {protocol.name for protocol in grounding.PROTOCOLS}
    if setting == "grounding":
        return [name for name in list_protocols() if name in pointing or get_protocol(name).datasets is None]
    return [name for name in list_protocols() if name not in pointing]


def _written_for(dataset: str) -> bool:
    return any(dataset in (get_protocol(name).datasets or ()) for name in list_protocols())


def score_run(
    directory: Path | str,
    protocols: Sequence[str | Protocol] | None = None,
    *,
    choice: Choice | None = None,
    overlay: Overlay | None = None,
) -> RunColumns:
    """A run directory under ``protocols`` (default: the one it was run with), as columns; see :func:`judge_run`.

    ``choice`` restricts it to a part of what was run. Raises :class:`guieval.errors.UsageError` when there is no run, no such
    protocol, or when the run does not hold all of that part.
    """
    return judge_run(directory, protocols, overlay=overlay).columns(choice)


def score_predictions(
    file: Path,
    bench: str | None = None,
    data: Path | None = None,
    protocols: Sequence[str | Protocol] | None = None,
    *,
    choice: Choice | None = None,
    **how: Any,
) -> RunColumns:
    """A predictions file under ``protocols`` (default: its benchmark's own), as columns; see :func:`judge_predictions`."""
    return judge_predictions(file, bench, data, protocols, **how).columns(choice)


class Part(NamedTuple):
    """Which steps count: the plan, a short title, and in words."""

    plan: Plan
    title: str
    text: str


@dataclass(frozen=True, eq=False)
class JudgedAnswers:
    """Answers judged under some protocols, before it is said which steps count.

    In a mode that stops, an episode goes on behind ``mismatches`` of its mismatches: those that were patched.
    ``own`` is the protocol they were made under. ``notes`` say what the reader should know of the input, ``overlays`` what else
    was accepted. ``part`` finds the steps that a choice asks for (``None``: all that the run set out to do) and raises
    :class:`guieval.errors.UsageError` when there are none, or not all of them. ``again`` reads the answers that count once
    more, each with its step.
    """

    title: str
    benchmark: str
    dataset: str
    model: str
    mode: str
    stop: str
    own: str
    notes: tuple[str, ...]
    overlays: tuple[str, ...]
    part: Callable[[Choice | None], Part]
    again: Callable[[], Iterator[Answer]]
    _ledger: Ledger
    mismatches: float = 0

    @property
    def evaluators(self) -> tuple[ActionEvaluator, ...]:
        """What judged, in the order of the protocols."""
        return self._ledger.evaluators

    @property
    def protocols(self) -> tuple[str, ...]:
        """The protocols' names."""
        return tuple(each.protocol.name for each in self._ledger.evaluators)

    def hold(self, plan: Plan) -> bool:
        """Whether there is a record of every step of ``plan``, be it of a request that failed."""
        rows = self._ledger.rows_of(plan)
        return bool((self._ledger.base_end[rows] != NOT_RUN).all())

    def columns(self, choice: Choice | None = None, protocols: Sequence[str] | None = None) -> RunColumns:
        """The steps of ``choice`` (default: all that the run set out to do) under ``protocols`` (default: all that judged).

        Raises :class:`guieval.errors.UsageError` when there are no such steps, or not all of them.
        """
        return self.columns_of(self.part(choice), protocols)

    def columns_of(self, part: Part, protocols: Sequence[str] | None = None) -> RunColumns:
        """The steps of ``part``, which must lie within the answers' plan, as :meth:`columns`."""
        ledger = self._ledger
        rows = ledger.rows_of(part.plan)
        names = self.protocols if protocols is None else tuple(protocols)
        numbers = np.repeat(np.arange(len(part.plan), dtype=np.int32), [len(steps) for steps in part.plan.values()])
        starts = np.searchsorted(numbers, np.arange(len(part.plan)))
        judged = {name: ledger.judged(self.protocols.index(name), rows) for name in names}
        if self.stop == "first-mismatch":
            judged = {name: stopped(each, numbers, starts, self.mismatches) for name, each in judged.items()}
        return RunColumns(
            title=self.title,
            benchmark=self.benchmark,
            dataset=self.dataset,
            model=self.model,
            mode=self.mode,
            stop=self.stop,
            selection=part.text,
            episodes=tuple(part.plan),
            episode=numbers,
            step_index=ledger.step_index[rows],
            length=ledger.length[rows],
            reference_type=ledger.reference_type[rows],
            predicted_type=ledger.predicted_type[rows],
            covered=ledger.covered[rows],
            samples=ledger.samples[rows],
            groups=ledger.groups(rows),
            judged=judged,
            elsewhere=ledger.elsewhere[rows],
        )


def judge_run(
    directory: Path | str,
    protocols: Sequence[str | Protocol] | None = None,
    *,
    reparse: bool = False,
    overlay: Overlay | None = None,
) -> JudgedAnswers:
    """Read a run directory once and judge its answers under ``protocols`` (default: the one it was run with).

    :data:`ALL` among them stands for every protocol written for the run's data set. ``reparse`` reads the raw replies again
    with the adapter as it is now. Raises :class:`guieval.errors.UsageError` when there is no run, or no such protocol.
    """
    directory = Path(directory)
    manifest = read_manifest(directory)
    own = manifest["protocol"]["name"]
    records = Records(directory)
    first = next(iter(records), None)
    dataset = manifest["benchmark"]["name"] if first is None else first.task.dataset
    setting: Setting = "high" if first is None else first.task.setting
    evaluators = _evaluators(protocols, own, dataset, setting)
    spaces = [ActionSpace.from_json(manifest["action_spaces"][side]) for side in ("model", "benchmark")]
    planned = read_planned(directory)
    model = recorded_model(manifest) if reparse else None
    known = RecordedLabels()
    ledger = Ledger(planned.plan, planned.refs, evaluators, spaces)
    overlaid: set[StepKey] = set()

    def read() -> Iterator[StepRecord]:
        for record in records:
            if overlay is not None and (task := overlay.apply(record.task)) is not record.task:
                overlaid.add(task.key)
                record = record.model_copy(update={"task": task})
            if model is not None:
                samples = tuple(read_again(evaluators[0], model, record.task, one) for one in record.samples)
                record = record.model_copy(update={"samples": samples})
            yield record

    def again() -> Iterator[Answer]:
        for number, record in enumerate(read()):
            if ledger.counts(number, record.task):
                yield record.task, record.sample.action

    for number, record in enumerate(read()):
        known.add(record.task)
        ledger.add(number, record.task, record.samples)
    notes = [f"line {number} of {records.path} holds no record and was passed over" for number in records.damaged]
    notes += _stands_in(protocols, dataset, setting)
    if overlay is not None and len(overlaid) < overlay.steps:
        notes.append(f"{len(overlaid):,} of the {overlay.steps:,} steps that the overlay adds to are recorded in this run")
    if ledger.unplanned:
        notes.append(f"{ledger.unplanned:,} records are of steps outside the plan and count nowhere")
    title, text = described_steps(manifest, len(planned.plan))

    def part(choice: Choice | None) -> Part:
        if choice is None or not choice.narrows:
            return Part(planned.plan, title, text)
        chosen = part_of_run(directory, planned, choice, known)
        short = chosen.title if choice.sample_set is not None or not title else f"{chosen.title} of {title}"
        return Part(chosen.plan, short, f"{chosen.text}, of a run over {text}")

    name = manifest["model"].get("name") or manifest["config"]["model"]
    mode = recorded_mode(manifest["mode"])
    return JudgedAnswers(
        title=f"{name} on {manifest['benchmark']['name']}, {mode.label}",
        benchmark=manifest["benchmark"]["name"],
        dataset=dataset,
        model=name,
        mode=mode.label,
        stop=mode.stop,
        own=own,
        notes=tuple(notes),
        overlays=tuple(describe_overlay(each) for each in (manifest.get("overlay"), overlay and overlay.to_json()) if each),
        part=part,
        again=again,
        _ledger=ledger,
        mismatches=mode.mismatches,
    )


def judge_answers(answered: Answered, protocols: Sequence[str | Protocol] | None = None) -> JudgedAnswers:
    """Judge a file's answers under ``protocols`` (default: their own); :data:`ALL` stands for those of its data set.

    Raises :class:`guieval.errors.UsageError` for a protocol that there is not.
    """
    evaluators = _evaluators(protocols, answered.protocol, answered.dataset, answered.setting)
    ledger = Ledger(answered.plan, answered.refs, evaluators, answered.spaces)
    for number, (task, sample) in enumerate(answered.answers(evaluators[0])):
        ledger.add(number, task, () if sample is None else (sample,))

    def part(choice: Choice | None) -> Part:
        chosen = answered.select(choice or Choice())
        for ref in chosen.refs:  # what was not predicted has a label all the same, and belongs into its cell
            for task in answered.unanswered(ref):
                ledger.label(task)
        return Part(chosen.plan, chosen.title, chosen.text)

    def again() -> Iterator[Answer]:
        return ((task, sample.action) for task, sample in answered.answers(evaluators[0]) if sample is not None)

    return JudgedAnswers(
        title=answered.title,
        benchmark=answered.benchmark,
        dataset=answered.dataset,
        model=answered.model,
        mode=answered.mode.label,
        stop=answered.mode.stop,
        own=answered.protocol,
        notes=(*answered.notes, *_stands_in(protocols, answered.dataset, answered.setting), f"{answered.count:,} predictions"),
        overlays=answered.overlays,
        part=part,
        again=again,
        _ledger=ledger,
        mismatches=answered.mode.mismatches,
    )


def judge_predictions(
    file: Path,
    bench: str | None = None,
    data: Path | None = None,
    protocols: Sequence[str | Protocol] | None = None,
    **how: Any,
) -> JudgedAnswers:
    """Judge a predictions file of any format under ``protocols`` (default: its benchmark's own).

    Arguments and errors as in :func:`guieval.matrix.answered_file` and :func:`judge_answers`.
    """
    return judge_answers(answered_file(file, bench, data, **how), protocols)


def _evaluators(
    protocols: Sequence[str | Protocol] | None, own: str, dataset: str, setting: Setting
) -> tuple[ActionEvaluator, ...]:
    asked: list[str | Protocol] = []
    for each in [own] if protocols is None else protocols:
        asked += [own, *protocols_for(dataset, setting)] if each == ALL else [each]
    evaluators = [ActionEvaluator(each) for each in dict.fromkeys(asked)]
    return tuple({each.protocol.name: each for each in evaluators}.values())


def _stands_in(protocols: Sequence[str | Protocol] | None, dataset: str, setting: Setting) -> tuple[str, ...]:
    """What to say where "all" cannot mean the protocols that were written for the data."""
    if protocols is None or ALL not in protocols or _written_for(dataset):
        return ()
    kind = "grounding" if setting == "grounding" else "step navigation"
    return (f"no protocol is written for the data set {dataset!r}, so all means every protocol of {kind}",)
