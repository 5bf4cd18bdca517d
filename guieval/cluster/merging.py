"""Divides a plan into shards, and brings their records into the run's journal, in the order of each episode.

An episode is in one shard at a time. A shard begins with the records of its episodes that the run has already, so the ordinary
resume (:mod:`guieval.running.resume.answered`) decides in the shard, as in the run, which steps are left.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from guieval.data.benchmark import EpisodeRef
from guieval.journal import EPISODES, LOCK, MANIFEST, STEPS, Journal, RunFolder
from guieval.journal.directory import SHARDS
from guieval.journal.lines import write_line
from guieval.running.resolved import ResolvedRun
from guieval.running.resume.answered import Answered
from guieval.running.resume.changes import check_directory
from guieval.running.resume.identity import manifest_of
from guieval.running.runner.episodes import continues
from guieval.steps import EpisodeKey, Plan, StepKey, StepRecord


def divided(refs: Iterable[EpisodeRef], plan: Plan, count: int) -> list[list[EpisodeRef]]:
    """The episodes in at most ``count`` shards of about as many steps: the longest first, dealt in turn."""
    ordered = sorted(refs, key=lambda ref: -len(plan[ref.key]))
    return [part for number in range(count) if (part := ordered[number::count])]


class Merger:
    """Adds the records of shards to the journal of ``run``, which the caller keeps open.

    ``answered`` and ``progress`` are always those of the journal as it is. Raises :class:`guieval.errors.JournalError` when
    the journal cannot be written.
    """

    def __init__(self, run: ResolvedRun, journal: Journal) -> None:
        self._journal = journal
        self._plan = run.plan
        self._mode = run.mode
        self._refs = {ref.key: ref for ref in run.selection.refs}
        self._failed: dict[StepKey, StepRecord] = {}
        """Steps that failed in this session."""
        self.answered = Answered(run, journal.directory)
        self.progress = self.answered.progress()
        for key, ref in self._refs.items():
            kept = self.answered.kept(ref)
            self.answered.take_back(ref, kept, self.progress)
            if self.answered.is_over(ref, kept):
                self.progress.total -= len(self._plan[key]) - len(kept)

    def add(self, record: StepRecord) -> None:
        """Append a record of a planned step."""
        self.answered.take(self._journal.append(record), record)
        self.progress.count(record)
        if not record.finished:
            self._failed[record.task.key] = record
        self.progress.total -= self._unreached(record)

    def left(self, refs: Iterable[EpisodeRef]) -> list[EpisodeRef]:
        """Those of the episodes that are not over."""
        return [ref for ref in refs if not self.answered.is_over(ref, self.answered.kept(ref))]

    def begin(self, refs: Iterable[EpisodeRef]) -> list[StepRecord]:
        """What a shard of these episodes begins with; their steps that failed run again, so they no longer count."""
        known: list[StepRecord] = []
        for ref in refs:
            known += self.answered.recorded(ref)
            for index in self._plan[ref.key]:
                if (failed := self._failed.pop(StepKey(*ref.key, index), None)) is not None:
                    self.progress.take_back(failed)
                    self.progress.total += self._unreached(failed)
        return known

    def absorb(self, shard: Path) -> int:
        """Add what the run lacks of a shard that a killed driver left; how many records that were.

        Of a step with another answer nothing is added, nor, in a sequential mode, of the steps after it: they had another past.
        """
        present = {write_line(record, compact=False) for record in RunFolder(self._journal.directory).records}
        strayed: set[EpisodeKey] = set()
        added = 0
        for record in RunFolder(shard).records:
            key, index = record.task.episode_key, record.task.step_index
            if index not in self._plan.get(key, ()) or key in strayed or write_line(record, compact=False) in present:
                continue
            if index not in self.answered.kept(self._refs[key]):
                self.add(record)
                added += 1
            elif self._mode.sequential:
                strayed.add(key)
        return added

    def _unreached(self, record: StepRecord) -> int:
        """How many planned steps of its episode are not run after this record."""
        counted: Sequence[int] = self._plan[record.task.episode_key]
        return 0 if continues(self._mode, record) else len(counted) - 1 - counted.index(record.task.step_index)


def shard_folders(directory: Path) -> list[Path]:
    """The shards in a run directory: of workers that are at work, or of a run whose driver was killed."""
    folder = directory / SHARDS
    return sorted(each for each in folder.iterdir() if each.is_dir()) if folder.is_dir() else []


def absorb_shards(run: ResolvedRun, directory: Path) -> int:
    """Merge the shards that a killed cluster run left into its journal, and remove them; how many records were added.

    Raises :class:`guieval.errors.UsageError` when ``run`` is not the one in ``directory``, and
    :class:`guieval.errors.JournalError` when that is being written by another process, or cannot be written.
    """
    folders = shard_folders(directory)
    if not folders:
        return 0
    check_directory(run, directory, manifest_of(run), resume=True)
    with Journal(directory) as journal:
        merger = Merger(run, journal)
        added = sum(map(merger.absorb, folders))
    for folder in folders:  # the journal is on the disk by now
        discard_shard(folder)
    return added


def discard_shard(folder: Path) -> None:
    """Remove a merged shard. Files of others, e.g. a server's log, stay, and so do the folders that they are in."""
    with contextlib.suppress(OSError):
        for name in (STEPS, EPISODES, LOCK, MANIFEST):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()
        folder.parent.rmdir()
