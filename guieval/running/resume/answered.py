"""The journal of earlier sessions of a run: the finished steps, and those that must run again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guieval.data.benchmark import EpisodeRef
from guieval.journal import RunFolder, journal_file
from guieval.metrics import AnyLedger, ledger_of
from guieval.running.costs import Tokens
from guieval.running.kinds import kind_of
from guieval.running.progress.counts import RunProgress
from guieval.running.resolved import ResolvedRun
from guieval.running.resume.changes import reference_types
from guieval.steps import EpisodeKey, Record, StepKey, Verdict


@dataclass(frozen=True)
class DoneStep:
    """A finished step of an earlier session: the place of its record, how it ended, and whether it matched."""

    offset: int
    exact: bool
    verdict: Verdict


class EarlierRecords:
    """Reads the journal in ``directory`` once; the records themselves are read again when they are needed."""

    def __init__(self, run: ResolvedRun, directory: Path) -> None:
        self._run = run
        self._directory = directory
        self._records = RunFolder(directory).records
        spaces, lengths = (
            (run.model.action_space, run.benchmark.action_space),
            {ref.key: ref.length for ref in run.selection.refs},
        )
        self.ledger: AnyLedger = ledger_of(run.mode, run.plan, [run.evaluator], spaces, lengths)
        """Sums up the run's records under its own protocol."""
        self.ledger.expect(reference_types(run, directory))
        self.tokens = Tokens()
        self._kind = kind_of(run.config)
        self._done: dict[EpisodeKey, dict[int, DoneStep]] = {}
        self._partial: dict[StepKey, int] = {}
        """The place of the record of a step that has some of its samples."""
        for offset, record in self._records.with_offsets():
            self.take(offset, record)

    def take(self, offset: int, record: Record) -> None:
        """Take in the record that the journal has at a byte offset, after all before it."""
        self.ledger.take(record)
        self._kind.count(self.tokens, record)
        key = record.task.key
        if any(sample.answered for sample in record.samples) and len(record.samples) == len(self._run.sampling):
            self._partial[key] = offset
        if record.finished and key.step_index in self._run.plan.get(record.task.episode_key, ()):
            self._partial.pop(key, None)
            done = self._done.setdefault(record.task.episode_key, {})
            done[key.step_index] = DoneStep(offset, record.exact, record.verdict)

    def progress(self) -> RunProgress:
        """The state of the run at the start of a session."""
        done = [step for steps in self._done.values() for step in steps.values()]
        progress = RunProgress(sum(map(len, self._run.plan.values())), done=len(done), resumed=len(done), tokens=self.tokens)
        progress.unit, progress.measure = self._kind.unit, self._kind.measure
        progress.shrinks = self._run.mode.stop == "first-mismatch"
        progress.verdicts.update(step.verdict for step in done)
        progress.exact = sum(step.exact for step in done)
        return progress

    @property
    def damage(self) -> str | None:
        """How many lines of the journal hold no record, in words."""
        if not (damaged := self._records.damaged):
            return None
        lines = "1 line" if len(damaged) == 1 else f"{len(damaged):,} lines"
        return f"{lines} of {str(journal_file(self._directory))!r} held no record, first: line {damaged[0]}; " + (
            "their steps are run again" if self.has_work() else "no step is missing"
        )

    def has_work(self) -> bool:
        return not all(self.is_over(ref, self.kept(ref)) for ref in self._run.selection.refs)

    def kept(self, ref: EpisodeRef) -> Mapping[int, DoneStep]:
        """The finished steps of an episode that need not be asked again."""
        done = self._done.get(ref.key, {})
        return _unbroken(done, self._run.plan[ref.key]) if self._run.mode.sequential else done

    def is_over(self, ref: EpisodeRef, kept: Mapping[int, DoneStep]) -> bool:
        """Whether an episode with these kept steps has ended."""
        mismatches = sum(not step.exact for step in kept.values())
        return mismatches > self._run.mode.mismatches or len(kept) == len(self._run.plan[ref.key])

    def take_back(self, ref: EpisodeRef, kept: Mapping[int, DoneStep], progress: RunProgress) -> None:
        """Take out of ``progress`` the finished steps of an episode that will run again."""
        again = [step for index, step in self._done.get(ref.key, {}).items() if index not in kept]
        progress.done -= len(again)
        progress.resumed -= len(again)
        progress.exact -= sum(step.exact for step in again)
        progress.verdicts.subtract(step.verdict for step in again)

    def records(self, kept: Mapping[int, DoneStep]) -> Iterable[Record]:
        return (self._records.at(step.offset) for step in kept.values())

    def recorded(self, ref: EpisodeRef) -> list[Any]:
        """The records that the rest of an episode depends on, in the journal's order: kept steps, and answered samples."""
        kept = self.kept(ref)
        others = (StepKey(*ref.key, index) for index in self._run.plan[ref.key] if index not in kept)
        offsets = [*(step.offset for step in kept.values()), *(self._partial[key] for key in others if key in self._partial)]
        return list(map(self._records.at, sorted(offsets)))

    def drop_samples(self, episode: EpisodeKey, kept: Mapping[int, DoneStep]) -> None:
        """Forget the samples of steps whose past was another one than it is now."""
        counted = self._run.plan[episode]
        end = max((step.offset for step in kept.values()), default=-1)
        for index in counted:
            key = StepKey(*episode, index)
            if self._partial.get(key, end) < end or index != counted[len(kept)]:
                self._partial.pop(key, None)

    def samples(self, step: StepKey) -> dict[int, Any]:
        """The answered samples of a step that lacks some, by number; they are given out once."""
        offset = self._partial.pop(step, None)
        if offset is None:
            return {}
        samples = self._records.at(offset).samples
        return {number: sample for number, sample in enumerate(samples) if sample.answered}


def _unbroken(done: Mapping[int, DoneStep], counted: Iterable[int]) -> dict[int, DoneStep]:
    """The counted steps from an episode's first on whose answer came after the one to the step before.

    After a gap, or after a step that ran a second time, the history was different: those steps run again.
    """
    kept: dict[int, DoneStep] = {}
    end = -1
    for index in counted:
        if index not in done or done[index].offset < end:
            break
        kept[index] = done[index]
        end = done[index].offset
    return kept
