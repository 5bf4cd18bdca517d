"""Brings the records of shards into a run's journal: none lost, none twice, and every answer with the past it was given.

What may be merged twice, half, or not at all is settled by one rule. A shard holds an episode from its first step on (what was
known before stands at its head, see :meth:`Merger.known_lines`). Of a record that the run has already, nothing is added. Of an
answer to a step that the run has another answer to, nothing is added either, nor anything that follows it in a sequential
mode, because it was given another past. So merging a shard again, or one that a worker thought lost went on writing, is
harmless.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias

from guieval.data.files import open_file
from guieval.journal import EPISODES, LOCK, MANIFEST, STEPS, Journal, RunFolder
from guieval.journal.lines import read_line
from guieval.running.progress.counts import Progress
from guieval.running.resolved import ResolvedRun
from guieval.running.resume.changes import check_directory, open_ledger
from guieval.running.resume.identity import manifest_of
from guieval.steps import EpisodeKey, StepRecord, Verdict

SHARDS = "shards"
"""Folder of a run directory that holds a folder for every worker, until its records are merged."""


@dataclass(frozen=True)
class _Answer:
    """An answer that counts: which it is, where its line starts in the run's journal, and how it was judged."""

    digest: bytes
    offset: int
    exact: bool
    verdict: Verdict


@dataclass
class _Episode:
    """An episode that is not over: its answers by position among the steps that count.

    ``failed`` holds the stage of each failure of this session that no answer has followed, ``failures`` every one recorded.
    ``partial`` is where the record of a step lies that has some of its samples, given under the past that ``answers`` are.
    """

    counted: Sequence[int]
    answers: dict[int, _Answer] = field(default_factory=dict)
    failed: dict[int, str | None] = field(default_factory=dict)
    failures: set[bytes] = field(default_factory=set)
    partial: dict[int, int] = field(default_factory=dict)


Shard: TypeAlias = dict[EpisodeKey, int]
"""How far one shard agrees with the run: for each episode, up to which of its steps."""


class Merger:
    """Adds shards to the journal of ``run``, which the caller holds open; what the journal holds already is read first.

    ``ledger`` and ``progress`` are always those of the journal as it is. Raises :class:`guieval.errors.JournalError` when the
    journal cannot be written. Memory is a few hundred bytes for each step of the episodes that are begun and not over.
    """

    def __init__(self, run: ResolvedRun, journal: Journal) -> None:
        self._journal = journal
        self._path = journal.directory / STEPS
        self._plan = run.plan
        self._mode = run.mode
        self._open: dict[EpisodeKey, _Episode] = {}
        self._over: set[EpisodeKey] = set()
        self.ledger = open_ledger(run, journal.directory)
        self.progress = Progress(sum(map(len, self._plan.values())), shrinks=run.mode.stop == "first-mismatch")
        records = RunFolder(journal.directory).steps
        for offset, record in records.with_offsets():
            self.ledger.take(record)
            self.progress.tokens.add(record)
            if record.task.step_index in self._plan.get(record.task.episode_key, ()):
                self._note(record, _digest(record), offset)
        for key, episode in list(self._open.items()):  # only now: a later line may hold a second answer to an early step
            answers = episode.answers.values()
            self.progress.done += len(answers)
            self.progress.exact += sum(answer.exact for answer in answers)
            self.progress.verdicts.update(answer.verdict for answer in answers)
            self._end_if_over(key)
        self.damaged = records.damaged
        self.progress.resumed = self.progress.done
        self._end = self._path.stat().st_size

    def add(self, data: bytes, shard: Shard) -> list[StepRecord]:
        """Merge whole lines of a shard, in its order; the records that were added."""
        added: list[StepRecord] = []
        for line in data.splitlines():
            try:
                record = read_line(line)
            except ValueError:  # a damaged line holds no answer, so its step runs again
                continue
            if self._add(record, shard):
                added.append(record)
        return added

    def add_folder(self, folder: Path, *, start: int = 0, shard: Shard | None = None) -> Iterator[StepRecord]:
        """Merge the shard in ``folder`` from byte ``start`` on, as far as the result is read; a torn last line is left out."""
        shard = {} if shard is None else shard
        with contextlib.suppress(OSError), open_file(folder / STEPS) as stream:
            stream.seek(start)
            for line in stream:
                if line.endswith(b"\n"):
                    yield from self.add(line, shard)

    def unfinished(self, keys: Iterable[EpisodeKey]) -> list[EpisodeKey]:
        """Those of the episodes that are not over."""
        return [key for key in keys if key not in self._over]

    def begun(self, key: EpisodeKey) -> bool:
        """Whether an episode has answers, if only some samples of one step, and is not over."""
        episode = self._open.get(key)
        return episode is not None and bool(episode.answers or episode.partial)

    def known_lines(self, key: EpisodeKey) -> bytes:
        """The lines that the worker that continues an episode needs: its answers so far, in the journal's order."""
        episode = self._open.get(key)
        if episode is None:
            return b""
        with open_file(self._path) as stream:
            lines = []
            for offset in sorted([*(answer.offset for answer in episode.answers.values()), *episode.partial.values()]):
                stream.seek(offset)
                lines.append(stream.readline())
        return b"".join(lines)

    def _add(self, record: StepRecord, shard: Shard) -> bool:
        key, index = record.task.episode_key, record.task.step_index
        counted = self._plan.get(key, ())
        if key in self._over or index not in counted:
            return False
        position = counted.index(index)
        episode = self._open.setdefault(key, _Episode(counted))
        digest = _digest(record)
        known = episode.answers.get(position)
        if self._mode.sequential:
            if shard.get(key, 0) != position:
                return False
            if known is not None:
                if known.digest == digest:
                    shard[key] = position + 1
                return False
        elif known is not None:
            return False
        if digest in episode.failures:
            return False
        offset = self._end
        self._journal.append(record)
        self._end = self._path.stat().st_size
        self.ledger.take(record)
        if position in episode.failed:
            self._forget_failure(episode, position)
        self.progress.count(record)
        self.progress.tokens.add(record)
        self._note(record, digest, offset)
        if record.finished:
            shard[key] = position + 1
            self._end_if_over(key)
        else:
            error = record.sample.error
            episode.failed[position] = None if error is None else error.stage
        return True

    def _note(self, record: StepRecord, digest: bytes, offset: int) -> None:
        key = record.task.episode_key
        counted = self._plan[key]
        position = counted.index(record.task.step_index)
        episode = self._open.setdefault(key, _Episode(counted))
        if not record.finished:
            episode.failures.add(digest)
            next_one = not self._mode.sequential or position == len(episode.answers)
            if next_one and any(sample.answered for sample in record.samples):
                episode.partial[position] = offset
            return
        episode.partial = {each: at for each, at in episode.partial.items() if each != position and not self._mode.sequential}
        if self._mode.sequential:  # a second answer changes the history of the steps after it; so does a gap
            for stale in [each for each in episode.answers if each >= position]:
                del episode.answers[stale]
            if position != len(episode.answers):
                return
        outcome = record.sample.outcome
        episode.answers[position] = _Answer(digest, offset, outcome.exact_match, outcome.verdict)

    def _end_if_over(self, key: EpisodeKey) -> None:
        episode = self._open[key]
        missing = len(episode.counted) - len(episode.answers)
        stopped = sum(not each.exact for each in episode.answers.values()) > self._mode.mismatches
        if stopped or not missing:
            self.progress.total -= missing
            self._over.add(key)
            del self._open[key]

    def _forget_failure(self, episode: _Episode, position: int) -> None:
        stage = episode.failed.pop(position)
        self.progress.done -= 1
        self.progress.failures -= 1
        self.progress.verdicts["infrastructure_failure"] -= 1
        if stage is not None:
            failures = self.progress.by_stage[stage]
            failures.count -= 1
            if not failures.count:
                del self.progress.by_stage[stage]


def _digest(record: StepRecord) -> bytes:
    """The identity of an answer, from the record and not from its line, which a worker may have written otherwise."""
    return blake2b(record.model_dump_json().encode(), digest_size=12).digest()


def shard_folders(directory: Path) -> list[Path]:
    """The shards that lie in a run directory: of workers that are at work, or of a run that was killed."""
    folder = directory / SHARDS
    return sorted(each for each in folder.iterdir() if (each / STEPS).is_file()) if folder.is_dir() else []


def empty_shards(directory: Path) -> list[Path]:
    """The shards without a record: of workers that were begun too late, or whose driver was killed before."""
    folder = directory / SHARDS
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return [each for each in found if not has_records(each)]


def has_records(shard: Path) -> bool:
    """Whether anything was written into a shard."""
    return (shard / STEPS).is_file() and (shard / STEPS).stat().st_size > 0


def has_shards(directory: Path) -> bool:
    """Whether a run directory holds shards that may have records its journal has not."""
    return bool(shard_folders(directory))


def absorb_shards(run: ResolvedRun, directory: Path) -> int:
    """Merge the shards that a killed cluster run left into its journal, and remove them; how many records were added.

    Raises :class:`guieval.errors.UsageError` when ``run`` is not the one in ``directory``, and
    :class:`guieval.errors.JournalError` when that is being written by another process, or cannot be written.
    """
    check_directory(run, directory, manifest_of(run), resume=True)
    folders = shard_folders(directory)
    with Journal(directory) as journal:
        merger = Merger(run, journal)
        added = sum(1 for folder in folders for _ in merger.add_folder(folder))
    for folder in folders:  # the journal is on the disk by now
        discard_shard(folder)
    return added


def discard_shard(folder: Path) -> None:
    """Remove a merged shard. What is not part of one, e.g. a server's log, stays, and so do folders that hold it."""
    with contextlib.suppress(OSError):
        for name in (STEPS, EPISODES, LOCK, MANIFEST):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()
        folder.parent.rmdir()
