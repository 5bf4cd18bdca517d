"""Run directories as they are written: the manifest and the append-only journal of steps, which both survive a kill.

A run directory has ``manifest.json`` (the configuration), ``episodes.json`` (the planned episodes and steps),
``steps.jsonl`` (one :class:`guieval.steps.StepRecord` per line, in the order of completion), ``metrics.json`` and ``lock``. An
online run has ``tasks.jsonl`` instead (one :class:`guieval.steps.TaskRecord` per line). A line is written by one system call
and a torn last line is cut off before anything is added, so it never hides a good one. If a step is in the journal more than
once, the last finished record counts.

A compact journal is ``steps.packed`` or ``tasks.packed`` instead, with one packed line (:mod:`guieval.journal.lines`) a record.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISREG
from typing import Any

from guieval.data.benchmark import DEFAULT_SPLIT, EpisodeRef
from guieval.data.files import becoming, open_descriptor, open_file, sync_folder
from guieval.errors import JournalError, UsageError
from guieval.history.modes import MODES, Kind, Mode
from guieval.journal.lines import write_line
from guieval.journal.run_files import Manifest
from guieval.steps import Plan, Record, ReferenceTypes

SHARDS = "shards"
"""Folder of a cluster run's parts, until they are merged into its journal."""
SCHEMA = 3
"""Version of the run directories that this version writes; 2 adds checksums to plain journals, 3 groups of settings and records
of tasks. From 3 on, later versions only gain fields (:mod:`guieval.journal.schemas`)."""
MANIFEST, EPISODES, STEPS, METRICS, LOCK = "manifest.json", "episodes.json", "steps.jsonl", "metrics.json", "lock"
PACKED_STEPS, TASKS, PACKED_TASKS = "steps.packed", "tasks.jsonl", "tasks.packed"
JOURNALS: Mapping[Kind, tuple[str, str]] = {"steps": (STEPS, PACKED_STEPS), "tasks": (TASKS, PACKED_TASKS)}
"""The plain and the compact journal of each kind of run; online runs of earlier versions have a journal of steps."""
ROLLOUT, SWEEP = "rollout.json", "mix.json"
"""The files that mark a folder as a rollout or as a sweep of mixed histories, both with runs in subfolders."""
_GROUPS = {ROLLOUT: "the rollout", SWEEP: "the sweep"}
FLUSH_SECONDS, FLUSH_RECORDS = 1.0, 100
"""The most seconds and records that may not be on the disk yet, and that a loss of power can lose."""


def write_atomically(path: Path, text: str) -> None:
    """Replace a file atomically: readers see the old or the new content, also after a kill."""
    try:
        with becoming(path) as partial, partial.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        sync_folder(path.parent)
    except OSError as error:
        raise JournalError(f"cannot write {str(path)!r}: {error.strerror}") from None


def is_run(directory: Path) -> bool:
    """Whether a folder has a run; :class:`UsageError` for a path that cannot be read."""
    try:
        return S_ISREG((directory / MANIFEST).stat().st_mode)  # is_file() hides errors of reading from Python 3.14 on
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        raise UsageError(f"the directory {str(directory)!r} cannot be read: {error.strerror}") from None


def new_directory(*words: str) -> Path:
    """Where a run goes that was given no directory: below ``runs/``, by what it is of and the time."""
    return Path("runs") / re.sub(r"[^\w.+=@-]", "_", "-".join((*words, time.strftime("%Y%m%d-%H%M%S"))))[-200:]


def refuse_nested(directory: Path) -> None:
    """Raise :class:`UsageError` if a new run's directory would be inside or above another run's.

    The outer one would hide the inner one from every command that takes a folder of runs. Directories side by side in one
    folder, as for the modes of one run, are fine.
    """
    where = directory.resolve()
    for above in where.parents:
        if (what := _what_is_at(above)) is not None:
            raise UsageError(f"{str(directory)!r} is inside {what} {str(above)!r}; give an --out outside of it")
    for below, _, _ in () if is_run(where) else os.walk(where):  # an existing run in this folder is another error
        if (what := _what_is_at(Path(below))) is not None:
            raise UsageError(f"{str(directory)!r} holds {what} {below!r}; give an --out that is not above other runs")


def _what_is_at(directory: Path) -> str | None:
    """The kind of a folder in words. Other programs write a manifest.json too, so a run also needs episodes.json."""
    try:
        if (directory / MANIFEST).is_file() and (directory / EPISODES).is_file():
            return "the run"
        return next((what for name, what in _GROUPS.items() if (directory / name).is_file()), None)
    except OSError:
        return None  # a folder that this user may not read


def is_held(directory: Path) -> bool:
    """Whether a process is writing the run, rollout or sweep in a folder."""
    try:
        with open_file(directory / LOCK) as lock:
            if not lock.read(1):  # its writer emptied it at the end; locking it could disturb another process
                return False
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no readable lock file
        return False
    return False  # its writer was killed


def journal_file(directory: Path, mode: Mode = MODES["offline"], *, compact: bool = False) -> Path:
    """The file of a run's records: the one that is there, else the one that a run in this mode would begin."""
    names = (PACKED_STEPS, PACKED_TASKS, TASKS, STEPS)
    existing = (directory / name for name in names if (directory / name).exists())
    return next(existing, directory / mode.of_kind(JOURNALS)[compact])


def has_records(directory: Path) -> bool:
    """Whether a folder has a journal that is not empty."""
    path = journal_file(directory)
    return path.is_file() and path.stat().st_size > 0


def plan_rows(plan: Plan, refs: Iterable[EpisodeRef] = (), types: ReferenceTypes | None = None) -> list[list[Any]]:
    """A plan as JSON rows: benchmark, subset, episode, number of steps that count, then four optional columns.

    These are the steps that count (unless they are the first ones), the split in ``refs`` (unless test), the length in
    ``refs`` (unless the last step that counts is the last of the episode), and the reference ``types``, if known. Trailing
    default values are left out, so that a run over whole episodes has the format of earlier versions.
    """
    listed = {ref.key: ref for ref in refs}
    rows: list[list[Any]] = []
    for key, steps in plan.items():
        ref = listed.get(key)
        more: list[Any] = [
            None if list(steps) == list(range(len(steps))) else list(steps),
            None if ref is None or ref.split == DEFAULT_SPLIT else ref.split,
            None if ref is None or ref.length == steps[-1] + 1 else ref.length,
            None if types is None or key not in types else [types[key][index] for index in steps],
        ]
        while more and more[-1] is None:
            more.pop()
        rows.append([*key, len(steps), *more])
    return rows


class Journal:
    """The only writer of a run directory. Use as a context manager; a second writer gets an error that names the first.

    ``mode`` and ``compact`` are of a new journal; an existing one keeps its file. A record is passed to the operating system at
    once, and a separate thread brings it to the disk within :data:`FLUSH_SECONDS` or :data:`FLUSH_RECORDS` records. The thread
    also detects when another program deletes, replaces or cuts the journal.
    """

    def __init__(self, directory: Path, mode: Mode = MODES["offline"], *, compact: bool = False) -> None:
        self.directory = directory
        self._lock = self._steps = -1
        try:
            _make_folder(directory)
            self._lock = open_descriptor(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
            self._hold(self._lock)
            os.ftruncate(self._lock, 0)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            os.pwrite(self._lock, f"process {os.getpid()} on {socket.gethostname()} since {now}\n".encode(), 0)
            self._path = journal_file(directory, mode, compact=compact)
            self._compact = self._path.suffix == ".packed"
            self._steps = open_descriptor(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            self._hold(self._steps)  # also lock the journal, in case the lock file was deleted
            self._end = self._cut_torn_tail()
            self._restore_rescued()
            sync_folder(directory)
        except OSError as error:
            self._release()
            raise JournalError(f"cannot write to the run directory {str(directory)!r}: {error.strerror}") from None
        except JournalError:
            self._release()
            raise
        self.appended = 0
        self._unsynced: list[bytes] = []
        self._failure: str | None = None
        self._on_failure: Callable[[], object] = lambda: None
        self._wake = threading.Event()
        self._closing = False
        self._guard = threading.Lock()
        self._flusher = threading.Thread(target=self._keep_on_disk, name="journal", daemon=True)
        self._flusher.start()

    def _hold(self, file: int) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._lock, 4096, 0).decode(errors="replace").strip() or "another process"
            raise JournalError(f"the run directory {str(self.directory)!r} is being written by {holder}") from None
        except OSError as error:
            raise JournalError(f"the run directory {str(self.directory)!r} cannot be locked: {error.strerror}") from None

    def _release(self) -> None:
        for file in (self._steps, self._lock):
            if file >= 0:
                os.close(file)

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

    def _restore_rescued(self) -> None:
        """Add the lines that were rescued when another program destroyed the journal (:meth:`_rescue`)."""
        rescued = _rescue_file(self._path)
        if not rescued.exists():
            return
        with open_file(self._path) as stream:
            existing = {hash(line) for line in stream}
        with open_file(rescued) as stream:
            for line in stream:
                if line.endswith(b"\n") and hash(line) not in existing:
                    self._write(line)
        os.fsync(self._steps)
        rescued.unlink()

    def start(
        self,
        manifest: Mapping[str, Any] | None,
        plan: Plan,
        refs: Iterable[EpisodeRef] = (),
        types: ReferenceTypes | None = None,
    ) -> None:
        """Write the plan and the manifest; without ``manifest`` (a resume), the existing one is kept."""
        write_atomically(self.directory / EPISODES, json.dumps(plan_rows(plan, refs, types)))
        if manifest is not None:
            write_atomically(self.directory / MANIFEST, json.dumps(manifest, indent=2) + "\n")

    def amend(self, manifest: Manifest) -> None:
        """Replace the manifest with one that includes what became known during the run."""
        write_atomically(self.directory / MANIFEST, json.dumps(manifest.to_json(), indent=2) + "\n")

    def append(self, record: Record) -> int:
        """Add one record and pass it to the operating system; the byte offset of its line.

        Raises :class:`JournalError` if it cannot be written completely, could not be read again, or another program destroyed
        the journal; the journal then ends with the previous record.
        """
        line = write_line(record, compact=self._compact)
        with self._guard:
            self._check_file()
            offset = self._end
            try:
                self._write(line)
            except OSError as error:
                os.ftruncate(self._steps, self._end)
                full = " (the disk is full)" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else ""
                raise JournalError(
                    f"cannot add to {str(self._path)!r}: {error.strerror}{full}; "
                    "every record before is kept, and `guieval run --resume` continues from there"
                ) from None
            self._unsynced.append(line)
        self.appended += 1
        if len(self._unsynced) >= FLUSH_RECORDS:
            self._wake.set()
        return offset

    def _write(self, line: bytes) -> None:
        written = 0
        while written < len(line):
            written += os.pwrite(self._steps, line[written:], self._end + written)
        self._end += len(line)

    def on_failure(self, call: Callable[[], object]) -> None:
        """Register ``call``, which is called from another thread if the journal fails between two appends."""
        self._on_failure = call

    def check(self) -> None:
        """Raise :class:`JournalError` if the disk failed or another program destroyed the journal."""
        if self._failure is not None:
            raise JournalError(self._failure)

    def _keep_on_disk(self) -> None:
        while not self._closing and self._failure is None:
            self._wake.wait(FLUSH_SECONDS)
            self._wake.clear()
            try:
                self._sync()
            except JournalError as error:
                self._failure = str(error)
                self._on_failure()

    def _sync(self) -> None:
        """Bring the appended records to the disk, without delaying the next append."""
        with self._guard:
            count = len(self._unsynced)
        try:
            if count:
                os.fsync(self._steps)
        except OSError as error:
            raise JournalError(f"cannot bring {str(self._path)!r} to the disk: {error.strerror}") from None
        with self._guard:
            self._check_file(path_too=True)
            del self._unsynced[:count]

    def _check_file(self, *, path_too: bool = False) -> None:
        """Raise :class:`JournalError` if another program changed the journal; ``path_too``: also check what its path names."""
        self.check()
        held = os.fstat(self._steps)
        named: os.stat_result | None = held
        if path_too or not held.st_nlink:
            try:
                named = os.stat(self._path)
            except OSError:
                named = None
        if named is None or not os.path.samestat(named, held):
            what = "deleted" if named is None else "replaced"
        elif held.st_size != self._end:
            what = "cut short" if held.st_size < self._end else "added to"
        else:
            return
        self._failure = (
            f"another program has {what} the journal {str(self._path)!r}; {self._rescue(held)}, "
            f"and `guieval run --resume {self.directory}` continues from there"
        )
        raise JournalError(self._failure)

    def _rescue(self, held: os.stat_result) -> str:
        """Save the records that this process still has; returns what was saved, in words.

        A deleted file can be read while it is open. If the file was cut, the lines since the last check are in memory.
        """
        rescued = _rescue_file(self._path)
        whole = held.st_size == self._end
        try:
            with rescued.open("wb") as stream:
                if whole:
                    for start in range(0, self._end, 1 << 20):
                        stream.write(os.pread(self._steps, min(1 << 20, self._end - start), start))
                else:
                    stream.writelines(self._unsynced)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            return f"the records in memory could not be saved ({error.strerror})"
        return f"{'all its records are' if whole else 'the records of the last second are'} in {rescued.name!r}"

    def close(self) -> None:
        """Bring everything to the disk and release the directory; :class:`JournalError` if the disk fails."""
        self._closing = True
        self._wake.set()
        self._flusher.join()
        try:
            if self._failure is None:
                self._sync()
        finally:
            os.close(self._steps)
            os.ftruncate(self._lock, 0)
            os.close(self._lock)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _rescue_file(journal: Path) -> Path:
    """The file for records that another program removed from the journal."""
    return journal.with_name(f"{journal.stem}.rescued{journal.suffix}")


def _make_folder(directory: Path) -> None:
    """Create a folder and its parents, and bring their directory entries to the disk."""
    new = [folder for folder in (directory, *directory.parents) if not folder.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for folder in new:
        sync_folder(folder.parent)
