"""The one reader of run directories: everything that looks at a run on the disk opens it here.

Opening a run reads its files and runs no code that they name. Its metrics are computed in :mod:`guieval.scoring`, and
:func:`guieval.open_run` shows them in Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from sys import intern
from typing import Any, Generic, TypeVar

from guieval.data.benchmark import DEFAULT_SPLIT, EpisodeRef
from guieval.data.doctor.counts import counted
from guieval.data.files import open_file, read_bytes
from guieval.data.text_files import sized_lines
from guieval.errors import UsageError
from guieval.history.modes import Kind
from guieval.journal import caveats
from guieval.journal.directory import EPISODES, MANIFEST, METRICS, ROLLOUT, is_held, journal_file
from guieval.journal.lines import read_line, read_name
from guieval.journal.run_files import Manifest, PlannedEpisodes, read_file
from guieval.steps import EpisodeKey, Plan, StepKey, StepRecord, TaskRecord

_Read = TypeVar("_Read")
_Record = TypeVar("_Record")
MOST_METRICS = 16 * 1024 * 1024
"""The largest ``metrics.json`` that is read, in bytes."""


@dataclass(frozen=True)
class Planned:
    """The plan of a run: the steps that count of each episode, and the episodes as listed by the benchmark.

    ``types`` are the reference types of all planned steps; earlier versions did not record them.
    """

    plan: dict[EpisodeKey, Sequence[int]]
    refs: list[EpisodeRef]
    types: dict[EpisodeKey, Mapping[int, str]]


_OTHER: Mapping[Kind, str] = {"steps": "an online run, whose steps have no reference actions", "tasks": "no online run"}
"""What a run is that is not of a kind."""


class RunFolder:
    """A run on the disk. Its files are read when they are asked for, and kept, so open it anew after they change.

    ``manifest`` and ``planned`` raise :class:`UsageError` if the folder has none that this version can read. A rollout is its
    first round with the ``further`` ones, whose samples are added to its own.
    """

    def __init__(self, directory: Path, further: Sequence[RunFolder] = ()) -> None:
        self.directory = directory
        self.further = further

    def check(self) -> RunFolder:
        """The same, after its manifest and its plan were read; raises as they do."""
        _ = self.manifest, self.planned
        return self

    @cached_property
    def manifest(self) -> Manifest:
        """The run's settings, and what it was over."""
        try:
            return read_file(self.directory / MANIFEST, Manifest)
        except FileNotFoundError:
            hint = ", but the runs of a rollout" if (self.directory / ROLLOUT).is_file() else ""
            raise UsageError(f"{str(self.directory)!r} is not a run directory: it has no {MANIFEST}{hint}") from None

    @cached_property
    def planned(self) -> Planned:
        """The steps that the run set out to do."""
        path = self.directory / EPISODES
        hint = f"`guieval run --resume {self.directory}` writes it again"
        planned = Planned({}, [], {})
        try:
            for row in read_file(path, PlannedEpisodes).root:
                key = EpisodeKey(row.benchmark, row.subset, row.episode)
                if key in planned.plan:
                    raise UsageError(f"{str(path)!r}: episode {key} is planned twice")
                steps = row.steps
                if row.types is not None:
                    planned.types[key] = dict(zip(steps, map(intern, row.types), strict=True))
                planned.plan[key] = steps
                planned.refs.append(EpisodeRef(key, row.length or steps[-1] + 1, split=row.split or DEFAULT_SPLIT))
        except FileNotFoundError:
            raise UsageError(f"{str(path)!r} is missing; {hint}") from None
        except UsageError as error:
            raise UsageError(f"{error}; {hint}") from None
        return planned

    @property
    def plan(self) -> Plan:
        """The steps that count of each episode."""
        return self.planned.plan

    @cached_property
    def planned_digest(self) -> str:
        """SHA-256 over the keys of all planned steps, one a line, in the order of the alphabet."""
        keys = sorted(str(StepKey(*key, index)) for key, steps in self.plan.items() for index in steps)
        return sha256("\n".join(keys).encode("utf-8", "surrogatepass")).hexdigest()

    @cached_property
    def records(self) -> Records[Any]:
        """The records of the journal, of steps or of tasks."""
        return Records(self.directory)

    @property
    def steps(self) -> Records[StepRecord]:
        """The records of a run over steps; :class:`UsageError` for an online run."""
        self.expect("steps")
        return self.records

    @property
    def tasks(self) -> Records[TaskRecord]:
        """The records of an online run; :class:`UsageError` for any other."""
        self.expect("tasks")
        return self.records

    def expect(self, kind: Kind, instead: str = "") -> None:
        """Raise :class:`UsageError`, ending with what to do ``instead``, unless it is a run of this kind."""
        if not self.manifest.mode.is_over(kind):
            raise UsageError(f"{str(self.directory)!r} is {_OTHER[kind]}" + f"; {instead}" * bool(instead))

    @cached_property
    def offsets(self) -> Mapping[EpisodeKey, Mapping[int, int]]:
        """Where the record is that counts of each planned step with one: the last finished one, else the last."""
        return {
            key: kept
            for key, steps in self._recorded.items()
            if (kept := {index: offset for index, offset in steps.items() if index in self.plan.get(key, ())})
        }

    @cached_property
    def _recorded(self) -> Mapping[EpisodeKey, Mapping[int, int]]:
        offsets: dict[EpisodeKey, dict[int, int]] = {}
        finished: set[StepKey] = set()
        for offset, (key, is_finished) in self.records.outline():
            if is_finished:
                finished.add(key)
            elif key in finished:
                continue  # a later failure does not replace an answer
            offsets.setdefault(EpisodeKey(*key[:3]), {})[key.step_index] = offset
        return offsets

    def task(self, key: EpisodeKey) -> TaskRecord | None:
        return None if (offset := self.offsets.get(key, {}).get(0)) is None else self.tasks.at(offset)

    def read(self, key: EpisodeKey, only: int | None = None) -> dict[int, StepRecord]:
        """The records of an episode by step, or that of one step; of a rollout with the samples of all rounds."""
        wanted = {index: offset for index, offset in self.offsets.get(key, {}).items() if only in (None, index)}
        records = {index: self.steps.at(offset) for index, offset in wanted.items()}
        for other in self.further:
            for index, record in other.read(key, only).items():
                first = records.get(index)
                whole = record if first is None else first.model_copy(update={"samples": (*first.samples, *record.samples)})
                records[index] = whole
        return dict(sorted(records.items()))

    @cached_property
    def notes(self) -> Sequence[str]:
        """What a reader of the steps has to know, in sentences."""
        outside = sum(map(len, self._recorded.values())) - sum(map(len, self.offsets.values()))
        notes = [f"Not shown: {counted(outside, 'recorded step')} outside the plan."] if outside else []
        notes += [f"{note[:1].upper()}{note[1:]}." for note in caveats.notes(self.manifest)]
        if self.records.damaged:
            notes.append(f"Skipped: {counted(len(self.records.damaged), 'line')} of the journal that cannot be read.")
        if self.further:
            notes.append(f"The samples of {len(self.further) + 1} rounds are shown together.")
        return notes

    @property
    def dataset(self) -> str:
        """The data set of the recorded steps; "" without any."""
        first = next((offset for steps in self.offsets.values() for offset in steps.values()), None)
        return "" if first is None else self.records.at(first).task.dataset

    @property
    def protocol(self) -> str:
        return self.manifest.protocol.name

    @property
    def label(self) -> str:
        """The checkpoint's name for tables and titles, with its mark."""
        return caveats.model_label(self.manifest)

    @property
    def held(self) -> bool:
        return is_held(self.directory)

    @cached_property
    def stored(self) -> Mapping[str, Any]:
        """What the run stored in ``metrics.json`` at its end; empty if there is no such file that can be read."""
        path = self.directory / METRICS
        try:
            values = json.loads(read_bytes(path)) if path.stat().st_size <= MOST_METRICS else None
        except (OSError, ValueError, RecursionError):
            return {}
        return values if isinstance(values, dict) else {}

    @property
    def ended_complete(self) -> bool:
        """Whether no step was missing when the run last ended; earlier versions stored it in the summary."""
        summary = self.stored.get("summary")
        return self.stored.get("state") == "finished" or (isinstance(summary, dict) and summary.get("complete") is True)

    @property
    def journal_bytes(self) -> int:
        """The size of the journal, 0 without one."""
        try:
            return journal_file(self.directory).stat().st_size
        except FileNotFoundError:
            return 0


class Records(Generic[_Record]):
    """A journal's records, read lazily; ``damaged`` collects the numbers of damaged lines."""

    def __init__(self, directory: Path) -> None:
        self.path = journal_file(directory)
        self.damaged: list[int] = []

    def __iter__(self) -> Iterator[_Record]:
        return (record for _, record in self.with_offsets())

    def with_offsets(self) -> Iterator[tuple[int, _Record]]:
        """Yield the records with the byte offsets of their lines. A torn last line is left out silently."""
        return self._read(read_line)

    def outline(self) -> Iterator[tuple[int, tuple[StepKey, bool]]]:
        """As :meth:`with_offsets`, but only a record's step and whether it is finished; compact lines are not unpacked."""
        return self._read(read_name)

    def at(self, offset: int) -> _Record:
        """The record at a byte offset from :meth:`with_offsets`."""
        with open_file(self.path) as stream:
            stream.seek(offset)
            record: _Record = read_line(stream.readline())
            return record

    def _read(self, parse: Callable[[bytes], _Read]) -> Iterator[tuple[int, _Read]]:
        if not self.path.exists():
            return
        offset = 0
        self.damaged.clear()
        with open_file(self.path) as stream:
            for number, (line, size) in enumerate(sized_lines(stream), 1):
                if size > len(line):
                    self.damaged.append(number)  # longer than any record
                elif line.endswith(b"\n") and line.strip():
                    try:
                        parsed = parse(line)
                    except ValueError:  # includes pydantic's
                        self.damaged.append(number)
                    else:
                        yield offset, parsed
                offset += size
