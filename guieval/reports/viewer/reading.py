"""A run as the viewer walks it: episode by episode in plan order, each step judged under every protocol that is shown.

Two passes over the journal: the first notes where each step's record lies, the second reads them in plan order. So memory
holds one episode at a time and a few bytes for every step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from guieval.decisions.executions import rounds_of
from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator, get_protocol, list_protocols
from guieval.journal import Planned, Records, read_manifest, read_planned
from guieval.modes import recorded_mode
from guieval.steps import EpisodeKey, Sample, StepOutcome, StepRecord, Verdict

Prompter: TypeAlias = Callable[[StepRecord, Mapping[int, StepRecord]], tuple[str, str]]
"""What a step's prompt was, from its record and the records of its episode by step: (text, note). The text is empty where it
cannot be told; the note then says why, and is empty where there is nothing to say."""

RIGHT, MISS, WRONG_TYPE, UNPARSEABLE, UNSUPPORTED, FAILED, NOT_REACHED, NOT_RUN, ABSENT = range(9)
"""How a step ended, in more detail than its verdict: ``MISS`` is wrong with the right type, ``WRONG_TYPE`` wrong without;
``ABSENT`` is a step that the run never planned (only of the run it is compared with)."""
_CODES: dict[Verdict, int] = {
    "right": RIGHT,
    "unparseable": UNPARSEABLE,
    "unsupported": UNSUPPORTED,
    "infrastructure_failure": FAILED,
}
MOST_SAMPLES = 64
"""Samples of a step that the page gets with all they say; decisions are of all of them."""
EVERY = "all"
"""The protocol name that asks for every one written for the run's data set."""


@dataclass(frozen=True)
class SeenStep:
    """A step of one run. ``ends``: one code a protocol. ``outcomes``: for each sample that is shown, one outcome a protocol."""

    ends: tuple[int, ...]
    record: StepRecord | None = None
    outcomes: tuple[tuple[StepOutcome, ...], ...] = ()


@dataclass
class ShownRun:
    """A run directory that is shown: its manifest and plan, where its records lie, and how to tell its prompts.

    Of a rollout directory it is the first round, to whose samples those of the ``further`` rounds are added.
    """

    directory: Path
    manifest: Mapping[str, Any]
    planned: Planned
    dataset: str
    records: Records
    offsets: dict[EpisodeKey, dict[int, int]]
    notes: list[str] = field(default_factory=list)
    prompter: Prompter | None = None
    further: Sequence[ShownRun] = ()

    @property
    def protocol(self) -> str:
        """The protocol it was run under."""
        return str(self.manifest["protocol"]["name"])

    def read(self, key: EpisodeKey) -> dict[int, StepRecord]:
        """The records of an episode by step."""
        found = {index: self.records.at(offset) for index, offset in self.offsets.get(key, {}).items()}
        for each in self.further:
            for index, record in each.read(key).items():
                first = found.get(index)
                whole = record if first is None else first.model_copy(update={"samples": (*first.samples, *record.samples)})
                found[index] = whole
        return dict(sorted(found.items()))

    def walk(
        self, key: EpisodeKey, known: Mapping[int, StepRecord], evaluators: Sequence[ActionEvaluator]
    ) -> dict[int, SeenStep]:
        """The planned steps of an episode as they ended; ``known`` are its records.

        In a mode that stops at the first mismatch, what lies behind the first measured step that is not exact is not
        reached, under each protocol by itself, even where a record exists; where mismatches
        are patched, behind the first that no patch is left for.
        """
        allowed = recorded_mode(self.manifest["mode"]).mismatches
        stopped = [False] * len(evaluators)
        mismatches = [0] * len(evaluators)
        seen: dict[int, SeenStep] = {}
        for index in self.planned.plan.get(key, ()):
            record = known.get(index)
            if record is None:
                seen[index] = SeenStep(tuple(NOT_REACHED if each else NOT_RUN for each in stopped))
                continue
            outcomes = tuple(
                tuple(_judge(each, record, sample) for each in evaluators) for sample in record.samples[:MOST_SAMPLES]
            )
            codes = []
            for place, outcome in enumerate(outcomes[0]):
                codes.append(NOT_REACHED if stopped[place] else code_of(outcome))
                measured = outcome.verdict != "infrastructure_failure"
                mismatches[place] += measured and not outcome.exact_match
                stopped[place] = mismatches[place] > allowed
            seen[index] = SeenStep(tuple(codes), record, outcomes)
        return seen


def code_of(outcome: StepOutcome) -> int:
    """An outcome as one of the codes."""
    if outcome.verdict == "wrong":
        return MISS if outcome.type_match else WRONG_TYPE
    return _CODES[outcome.verdict]


def open_run(directory: Path, prompter: Prompter | None = None) -> ShownRun:
    """Read what a run directory, or a rollout directory, holds, but for its records.

    Raises :class:`UsageError` when there is no run or nothing in it.
    """
    first, *others = rounds_of(directory)
    shown = _open_one(first, prompter)
    if others:
        shown.further = [_open_one(each, None) for each in others]
        shown.notes.append(f"The samples of {len(others) + 1} rounds are shown together.")
        if any(each.planned.plan != shown.planned.plan for each in shown.further):
            raise UsageError(f"the rounds of {str(directory)!r} are over different steps, so they cannot be shown together")
    return shown


def _open_one(directory: Path, prompter: Prompter | None) -> ShownRun:
    manifest = read_manifest(directory)
    planned = read_planned(directory)
    records = Records(directory)
    offsets: dict[EpisodeKey, dict[int, int]] = {}
    answered: dict[EpisodeKey, set[int]] = {}
    outside = 0
    dataset = ""
    for offset, record in records.with_offsets():
        key, index = record.task.episode_key, record.task.step_index
        if index not in planned.plan.get(key, ()):
            outside += 1
            continue
        dataset = dataset or record.task.dataset
        done = answered.setdefault(key, set())
        if record.finished:
            done.add(index)
        elif index in done:
            continue  # an answer is there already, and a later failure does not undo it
        offsets.setdefault(key, {})[index] = offset
    if not offsets:
        raise UsageError(f"the run {str(directory)!r} holds no step of its plan yet, so there is nothing to show")
    notes = [f"{outside:,} recorded steps lie outside the plan and are not shown."] if outside else []
    if records.damaged:
        notes.append(f"{len(records.damaged):,} lines of the journal hold no record and were passed over.")
    return ShownRun(directory, manifest, planned, dataset, records, offsets, notes, prompter)


def protocols_to_show(run: ShownRun, names: Sequence[str]) -> list[str]:
    """The protocols a report is over: those named, by default the run's own; ``all`` stands for all of the data set's.

    Raises :class:`UsageError` for an unknown name.
    """
    chosen: dict[str, None] = {}
    for name in names or (run.protocol,):
        if name == EVERY:
            chosen.update(dict.fromkeys((run.protocol, *list_protocols(run.dataset))))
        else:
            chosen[get_protocol(name).name] = None
    return list(chosen)


def _judge(evaluator: ActionEvaluator, record: StepRecord, sample: Sample) -> StepOutcome:
    """An answer's outcome; where nobody answered there is nothing to judge, and what was recorded stands."""
    if sample.outcome.verdict == "infrastructure_failure":
        return sample.outcome
    return evaluator.evaluate(record.task, sample.action)
