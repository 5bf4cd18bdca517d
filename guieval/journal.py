"""Run directories: the manifest, the append-only journal of steps, and what makes both survive a kill.

A run directory holds ``manifest.json`` (what was run), ``episodes.json`` (which episodes, and which of their steps),
``steps.jsonl`` (one :class:`guieval.steps.StepRecord` a line, in the order they finished), ``metrics.json`` and ``lock``. A
line is written by one system call and the file is cut back to its last whole line before anything is added, so a torn line
never hides a good one. When a step stands in the journal more than once, the last finished record counts.

A compact journal is ``steps.packed`` instead, one packed line (:mod:`guieval.packing`) a record; everything else is the same.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic_core import PydanticSerializationError

from guieval.benchmark import EpisodeRef
from guieval.errors import JournalError, UsageError
from guieval.packing import is_packed, named, pack, unpack
from guieval.steps import EpisodeKey, Plan, StepKey, StepRecord

SCHEMA = 1
MANIFEST_KEYS = frozenset({"config", "model", "benchmark", "protocol", "mode", "action_spaces"})
DEFAULT_SPLIT = "test"
MANIFEST, EPISODES, STEPS, METRICS, LOCK = "manifest.json", "episodes.json", "steps.jsonl", "metrics.json", "lock"
PACKED_STEPS = "steps.packed"


def write_atomically(path: Path, text: str) -> None:
    """Replace a file so that a reader, or a kill, sees the old one or the new one, never half of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise JournalError(f"cannot write {str(path)!r}: {error.strerror}") from None


def is_run(directory: Path) -> bool:
    """Whether a folder holds a run; :class:`UsageError` for a path that cannot be looked at."""
    try:
        return (directory / MANIFEST).is_file()
    except OSError as error:
        raise UsageError(f"the directory {str(directory)!r} cannot be read: {error.strerror}") from None


def journal_file(directory: Path) -> Path:
    """Where a run's records stand; a run has one journal, compact or not."""
    packed = directory / PACKED_STEPS
    return packed if packed.exists() else directory / STEPS


def has_records(directory: Path) -> bool:
    """Whether a folder holds a journal that is not empty."""
    path = journal_file(directory)
    return path.is_file() and path.stat().st_size > 0


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of a run; :class:`UsageError` when the folder holds none that this version can read."""
    path = directory / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{str(directory)!r} is no run directory: it has no {MANIFEST}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise UsageError(f"{str(path)!r} is not a manifest of schema {SCHEMA}, which this version reads")
    if missing := sorted(MANIFEST_KEYS - manifest.keys()):
        raise UsageError(f"{str(path)!r} lacks {', '.join(missing)}; it was not written by guieval, or was changed since")
    for key in sorted(MANIFEST_KEYS):
        if not isinstance(manifest[key], dict):
            raise UsageError(f"{str(path)!r}, field {key}: expected a group of values, got {manifest[key]!r:.80}")
    return manifest


@dataclass(frozen=True)
class Planned:
    """What a run set out to do: the steps that count of each episode, and the episodes as the benchmark listed them."""

    plan: dict[EpisodeKey, Sequence[int]]
    refs: list[EpisodeRef]


def read_planned(directory: Path) -> Planned:
    """What the run set out to do; :class:`UsageError` when the file is damaged."""
    path = directory / EPISODES
    planned = Planned({}, [])
    try:
        for row in json.loads(path.read_text(encoding="utf-8")):
            benchmark, subset, episode, count, *more = row
            key = EpisodeKey(benchmark, subset, episode)
            picked, split, length = [*more, None, None, None][:3]
            steps: Sequence[int] = range(int(count)) if picked is None else tuple(map(int, picked))
            if not steps:
                raise ValueError(f"episode {key} is planned without steps")
            planned.plan[key] = steps
            planned.refs.append(EpisodeRef(key, int(length or steps[-1] + 1), split=str(split or DEFAULT_SPLIT)))
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{str(path)!r} cannot be read ({error}); `guieval run --resume {directory}` writes it anew") from None
    return planned


def plan_rows(plan: Plan, refs: Iterable[EpisodeRef] = ()) -> list[list[Any]]:
    """A plan as JSON: benchmark, subset, episode, how many steps count; then which ones, unless the first; and, as ``refs``
    list the episode, its split, unless test, and its length, unless the last step that counts is its last.

    Columns at the end that say the usual are left out, so that a run over whole episodes reads as it always did.
    """
    listed = {ref.key: ref for ref in refs}
    rows: list[list[Any]] = []
    for key, steps in plan.items():
        ref = listed.get(key)
        more: list[Any] = [
            None if list(steps) == list(range(len(steps))) else list(steps),
            None if ref is None or ref.split == DEFAULT_SPLIT else ref.split,
            None if ref is None or ref.length == steps[-1] + 1 else ref.length,
        ]
        while more and more[-1] is None:
            more.pop()
        rows.append([*key, len(steps), *more])
    return rows


_Read = TypeVar("_Read")


class Records:
    """A journal's records, read lazily; ``damaged`` collects the numbers of lines that hold none."""

    def __init__(self, directory: Path) -> None:
        self.path = journal_file(directory)
        self.damaged: list[int] = []

    def __iter__(self) -> Iterator[StepRecord]:
        return (record for _, record in self.with_offsets())

    def with_offsets(self) -> Iterator[tuple[int, StepRecord]]:
        """Each record with the byte position its line starts at. A torn last line is left out silently."""
        return self._read(_record)

    def outline(self) -> Iterator[tuple[int, tuple[StepKey, bool]]]:
        """As :meth:`with_offsets`, of each record only its step and whether it is finished; compact ones are not unpacked."""
        return self._read(_named)

    def at(self, offset: int) -> StepRecord:
        """The record whose line starts at a byte position that :meth:`with_offsets` gave."""
        with self.path.open("rb") as stream:
            stream.seek(offset)
            return _record(stream.readline())

    def _read(self, parse: Callable[[bytes], _Read]) -> Iterator[tuple[int, _Read]]:
        if not self.path.exists():
            return
        offset = 0
        self.damaged.clear()
        with self.path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.endswith(b"\n") and line.strip():
                    try:
                        parsed = parse(line)
                    except ValueError:  # pydantic's own is one
                        self.damaged.append(number)
                    else:
                        yield offset, parsed
                offset += len(line)


def _record(line: bytes) -> StepRecord:
    return StepRecord.model_validate(unpack(line)) if is_packed(line) else StepRecord.model_validate_json(line)


def _named(line: bytes) -> tuple[StepKey, bool]:
    if is_packed(line):
        step, finished = named(line)
        return StepKey(*step), finished
    record = _record(line)
    return record.task.key, record.finished


def _line(record: StepRecord) -> bytes:
    try:
        return record.model_dump_json().encode() + b"\n"
    except PydanticSerializationError:  # half a surrogate pair, e.g. an emoji cut in two: no file can hold it
        try:
            return json.dumps(record.model_dump(), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace") + b"\n"
        except (TypeError, ValueError, RecursionError) as error:  # a loader's extras may hold anything
            raise JournalError(f"the record of step {record.task.key} is not JSON: {error}") from None


class Journal:
    """The one writer of a run directory. Use as a context manager; a second writer is refused, saying who holds it.

    ``compact`` decides how a new journal is written; one that has begun stays as it is.
    """

    def __init__(self, directory: Path, *, compact: bool = False) -> None:
        self.directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise JournalError(f"cannot write to the run directory {str(directory)!r}: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._lock, 4096, 0).decode(errors="replace").strip() or "another process"
            os.close(self._lock)
            raise JournalError(f"the run directory {str(directory)!r} is being written by {holder}") from None
        except OSError as error:
            os.close(self._lock)
            raise JournalError(f"the run directory {str(directory)!r} cannot be locked: {error.strerror}") from None
        try:
            os.ftruncate(self._lock, 0)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            os.pwrite(self._lock, f"process {os.getpid()} on {socket.gethostname()} since {now}\n".encode(), 0)
            compact = compact and not (directory / STEPS).exists()
            self._path = directory / PACKED_STEPS if compact else journal_file(directory)
            self._compact = self._path.name == PACKED_STEPS
            self._steps = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            self._end = self._cut_torn_tail()
        except OSError as error:
            os.close(self._lock)
            raise JournalError(f"cannot write to the run directory {str(directory)!r}: {error.strerror}") from None
        self.appended = 0

    def _cut_torn_tail(self) -> int:
        size = os.fstat(self._steps).st_size
        end = size
        while end > 0:
            start = max(0, end - 65536)
            newline = os.pread(self._steps, end - start, start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end != size:
            os.ftruncate(self._steps, end)
        return end

    def start(self, manifest: Mapping[str, Any] | None, plan: Plan, refs: Iterable[EpisodeRef] = ()) -> None:
        """Write what the run is about to do; without ``manifest``, for a resume, the one that is there stays."""
        write_atomically(self.directory / EPISODES, json.dumps(plan_rows(plan, refs)))
        if manifest is not None:
            write_atomically(self.directory / MANIFEST, json.dumps(manifest, indent=2) + "\n")

    def append(self, record: StepRecord) -> None:
        """Add one record; it is with the operating system when this returns.

        Raises :class:`JournalError` when it cannot be written whole; the journal then ends with the record before.
        """
        line = _line(record)
        if self._compact:
            with suppress(RecursionError):  # arguments nested deeper than packing goes: the line stays plain among packed ones
                line = pack(line)
        written = 0
        try:
            while written < len(line):
                written += os.pwrite(self._steps, line[written:], self._end + written)
        except OSError as error:
            os.ftruncate(self._steps, self._end)
            full = " (the disk is full)" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else ""
            raise JournalError(
                f"cannot add to {str(self._path)!r}: {error.strerror}{full}; "
                "every record before is kept, and `guieval run --resume` goes on from there"
            ) from None
        self._end += len(line)
        self.appended += 1

    def close(self) -> None:
        """Bring everything to the disk and let go of the directory; :class:`JournalError` when the disk fails."""
        try:
            os.fsync(self._steps)
        except OSError as error:
            raise JournalError(f"cannot bring {str(self._path)!r} to the disk: {error.strerror}") from None
        finally:
            os.close(self._steps)
            os.ftruncate(self._lock, 0)
            os.close(self._lock)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
