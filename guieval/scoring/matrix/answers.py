"""One set of answers under every protocol: a journal becomes columns of steps.

Answers are read once and judged once for each distinct set of deciding rules, however many protocols there are; which steps
count is chosen afterwards, so that every protocol can be looked at on its own sample set. No model is queried.

Of several records of a step the last finished one counts. In a mode that ends an episode at its first mismatch, a step that
comes after the first measured one without an exact match is *not reached* under that protocol, recorded or not; if the run
patched mismatches, a step after the first mismatch that no patch was left for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from guieval.data.doctor.counts import counted
from guieval.data.editions import Edition, LabelDigest
from guieval.data.selection import Choice, Selection
from guieval.evaluation import ActionEvaluator, Protocol, get_protocol, list_protocols
from guieval.evaluation.table import grounding
from guieval.metrics import AnyLedger, ledger_of
from guieval.metrics.columns import RunColumns
from guieval.scoring.answered import Scorable
from guieval.scoring.recorded_run import recorded_answers
from guieval.steps import DATASET, Plan, Setting, StepOutcome

ALL = "all"
"""In a list of protocols: every one written for the data set, the run's own first."""

Answer: TypeAlias = tuple[Any, Any]
"""A step with its first sample, or a task with its first repetition."""


def protocols_for(dataset: str, setting: Setting = "high") -> list[str]:
    """Names of the protocols that were written for a data set, those for any data among them.

    Of a data set that no protocol names, all those of its kind: for ``grounding`` those that were written for grounding data
    and those for any, otherwise every one that was not written for grounding.
    """
    if _written_for(dataset) or dataset == DATASET:
        return list_protocols(dataset)
    pointing = {protocol.name for protocol in grounding.PROTOCOLS}
    if setting == "grounding":
        return [name for name in list_protocols() if name in pointing or get_protocol(name).datasets is None]
    return [name for name in list_protocols() if name not in pointing]


def _written_for(dataset: str) -> bool:
    return any(dataset in (get_protocol(name).datasets or ()) for name in list_protocols())


@dataclass(frozen=True, eq=False)
class JudgedAnswers:
    """Answers judged under some protocols, before it is chosen which steps count.

    ``answered`` is where they come from, ``notes`` what the reader should know about them, ``datasets`` those of their steps.
    """

    answered: Scorable
    notes: tuple[str, ...]
    datasets: tuple[str, ...]
    _ledger: AnyLedger

    @property
    def evaluators(self) -> tuple[ActionEvaluator, ...]:
        return self._ledger.evaluators

    @property
    def protocols(self) -> tuple[str, ...]:
        return tuple(evaluator.protocol.name for evaluator in self._ledger.evaluators)

    def part(self, choice: Choice | None = None) -> Selection:
        """The steps of ``choice`` (``None``: all that the run set out to do).

        Raises :class:`guieval.errors.UsageError` when there are none, or not all of them.
        """
        return self.answered.select(choice or Choice())

    def again(self) -> Iterator[Answer]:
        """Read the answers that count once more, each with its step."""
        for number, (task, samples) in enumerate(self.answered.answers(self.evaluators[0])):
            if self.counts(number, task):
                yield task, samples[0]

    def outcome(self, protocol: str, answer: Answer) -> StepOutcome:
        """The score of an answer under one of the protocols, with its reason."""
        return self._ledger.outcome(protocol, *answer)

    def counts(self, number: int, task: Any) -> bool:
        """Whether the ``number``-th of all answers, from 0, is the one that counts for its step."""
        return self._ledger.counts(number, task)

    def hold(self, plan: Plan) -> bool:
        """Whether there is a record of every step of ``plan``, even of a failed request."""
        return self._ledger.recorded(plan) == sum(map(len, plan.values()))

    def columns(self, choice: Choice | None = None, protocols: Sequence[str] | None = None) -> RunColumns:
        """The steps of ``choice`` under ``protocols`` (default: all that judged); raises as :meth:`part`."""
        return self.columns_of(self.part(choice), protocols)

    def columns_of(self, part: Selection, protocols: Sequence[str] | None = None) -> RunColumns:
        """The steps of ``part``, which must lie within the answers' plan, as :meth:`columns`."""
        answered = self.answered
        columns = self._ledger.columns(
            part.plan,
            protocols,
            title=answered.title,
            benchmark=answered.benchmark,
            dataset=answered.dataset,
            model=answered.model,
            selection=part.text,
            left_out=answered.left_out,
        )
        edition = self._edition(columns)
        return replace(
            columns,
            edition=None if edition is None else edition.model_dump(mode="json"),
            edition_line="" if edition is None else edition.line,
            scaffold=answered.scaffold,
        )

    def _edition(self, columns: RunColumns) -> Edition | None:
        """The edition of the labels of a part's steps, if all are known; else that of the run, as it recorded it."""
        digests = [] if columns.label_digests is None else columns.label_digests.tolist()
        if not digests or not all(map(any, digests)):
            return self.answered.edition
        return Edition.of(self.answered.dataset, {columns.key_of(row): LabelDigest(*each) for row, each in enumerate(digests)})


def judge_answers(
    answered: Scorable,
    protocols: Sequence[str | Protocol] | None = None,
    *,
    judge: Callable[[Any, tuple[Any, ...]], StepOutcome | None] | None = None,
) -> JudgedAnswers:
    """Judge answers under ``protocols`` (default: their own); :data:`ALL` means those of their data set.

    ``judge``, for a single protocol, is called with every step and its samples, and its outcome is the judgement of the first
    sample under that protocol, so that nothing is read or judged twice. Raises :class:`guieval.errors.UsageError` for an
    unknown protocol.
    """
    dataset, setting = answered.dataset, answered.setting
    evaluators = _evaluators(protocols, answered.protocol, dataset, setting)
    lengths = {ref.key: ref.length for ref in answered.refs}
    ledger = ledger_of(answered.mode, answered.plan, evaluators, answered.spaces, lengths)
    ledger.expect(answered.types or {})
    datasets: dict[str, None] = {}
    for task, samples in answered.answers(evaluators[0]):
        datasets[task.dataset] = None
        ledger.add(task, samples, None if judge is None else judge(task, samples))
    notes = answered.notes(_unfit(protocols, evaluators, dataset, setting))
    if ledger.outside:
        notes.append(f"{counted(len(ledger.outside), 'recorded step')} outside the plan count nowhere")
    return JudgedAnswers(answered, tuple(notes), tuple(datasets), ledger)


def judge_run(directory: Path | str, protocols: Sequence[str | Protocol] | None = None, **how: Any) -> JudgedAnswers:
    """Read a run directory once and judge its answers under ``protocols`` (default: the one it was run with).

    Arguments and errors as in :func:`guieval.scoring.recorded_run.recorded_answers` and :func:`judge_answers`.
    """
    return judge_answers(recorded_answers(directory, **how), protocols)


def _evaluators(
    protocols: Sequence[str | Protocol] | None, own: str, dataset: str, setting: Setting
) -> tuple[ActionEvaluator, ...]:
    named: list[str | Protocol] = []
    for protocol in [own] if protocols is None else protocols:
        named += [own, *protocols_for(dataset, setting)] if protocol == ALL else [protocol]
    evaluators = [ActionEvaluator(protocol) for protocol in dict.fromkeys(named)]
    return tuple({evaluator.protocol.name: evaluator for evaluator in evaluators}.values())


def _unfit(
    protocols: Sequence[str | Protocol] | None, evaluators: Sequence[ActionEvaluator], dataset: str, setting: Setting
) -> list[str]:
    if ALL in (protocols or ()) and not _written_for(dataset):
        kind = "grounding" if setting == "grounding" else "step navigation"
        return [f"no protocol is written for the data set {dataset!r}, so all means every protocol of {kind}"]
    return list(filter(None, (evaluator.protocol.foreign_note(dataset) for evaluator in evaluators)))
