"""The runs that are shown: found below some folders, named by short ids that stay the same, and listed with their headline."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from guieval.errors import GuievalError, UsageError
from guieval.journal import MANIFEST, METRICS, RunFolder, is_held
from guieval.journal.directory import journal_file
from guieval.journal.repeats import FOLDER
from guieval.journal.run_folders import is_rollout, rounds_of
from guieval.reports.notes import NOTES, read_notes
from guieval.reports.past_runs import past_run, run_directories
from guieval.reports.tables.writers import plain
from guieval.running.kinds import KINDS

_KEPT = 8
"""How many results are kept for runs that were looked at last."""
_Value = TypeVar("_Value")


class Library:
    """The runs in ``folders``; ``data`` and ``adapter`` are the user's, for runs whose own cannot be opened.

    A folder may be a run, a rollout, or hold them at any depth. Runs that begin later are found too.
    """

    def __init__(self, folders: Sequence[Path], data: Path | None = None, adapter: str | None = None) -> None:
        self.data, self.adapter = data, adapter
        self._folders = tuple(folders)
        self._places: dict[str, tuple[str, Path]] = {}
        self._rows: dict[str, tuple[Hashable, dict[str, Any]]] = {}
        self._kept: dict[Hashable, tuple[Hashable, Any]] = {}
        self._locks: dict[Hashable, threading.Lock] = {}
        self._guard = threading.Lock()
        self._find()

    def __len__(self) -> int:
        return len(self._places)

    @property
    def names(self) -> list[str]:
        return list(self._places)

    def directory(self, name: str) -> Path:
        """The folder of a run by its id; :class:`UsageError` for any other text."""
        if name not in self._places:
            self._find()
        if name not in self._places:
            raise UsageError(f"there is no run {name[:40]!r} here; the list of runs names them all")
        return self._places[name][1]

    def title(self, name: str) -> str:
        """A run's name in the list."""
        self.directory(name)
        return self._places[name][0]

    def listed(self) -> list[dict[str, Any]]:
        """The rows of the list, the newest first."""
        self._find()
        return sorted((self._row(name) for name in list(self._places)), key=lambda row: row["created"] or "", reverse=True)

    def kept(self, what: str, name: str, make: Callable[[Path], _Value], others: Sequence[str] = ()) -> _Value:
        """What ``make`` returns for a run; it is made again when the journal of the run, or of ``others``, has changed."""
        directory = self.directory(name)
        key = (what, name, *others)
        state = tuple(_state(self.directory(each)) for each in (name, *others))
        with self._guard:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:  # a page asks for several parts at once
            found = self._kept.pop(key, None)
            if found is None or found[0] != state:
                found = (state, make(directory))
            self._kept[key] = found
            with self._guard:
                while len(self._kept) > _KEPT:
                    self._kept.pop(next(iter(self._kept)), None)
        value: _Value = found[1]
        return value

    def _find(self) -> None:
        single = len(self._folders) == 1
        found: dict[str, tuple[str, Path]] = {}
        for folder in self._folders:
            for directory in run_directories(folder, rollouts=True):
                below = directory.relative_to(folder).as_posix()
                name = directory.name or str(directory.resolve())
                if FOLDER.fullmatch(name):
                    name = f"{directory.resolve().parent.name}/{name}"
                if below != "." and not (single and FOLDER.fullmatch(below)):
                    name = below if single else f"{folder.name}/{below}"
                found[hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:10]] = (name, directory)
        self._places = found

    def _row(self, name: str) -> dict[str, Any]:
        title, directory = self._places[name]
        held = is_held(directory)
        parts = (MANIFEST, METRICS, NOTES) if held else (MANIFEST, METRICS, NOTES, journal_file(directory).name)
        state = (
            *(_stamp(directory / part) for part in parts),
            held,
        )  # a journal that is being written would be read again and again
        kept = self._rows.get(name)
        if kept is None or kept[0] != state:
            kept = self._rows[name] = (state, {"id": name, "name": title, **_described(directory, title)})
        return kept[1]


def _described(directory: Path, title: str) -> dict[str, Any]:
    notes = read_notes(directory)
    row: dict[str, Any] = {"called": notes.name, "tags": notes.tags, "note": notes.text, "noted": len(notes.steps)}
    row |= {"problem": "", "created": ""}
    try:
        first = RunFolder(rounds_of(directory)[0])
        row |= {"created": first.manifest.created, "model": first.label}
    except GuievalError as error:
        return {**row, "state": "broken", "problem": str(error)}
    found = past_run(first.directory, title)
    row |= {"benchmark": found.benchmark, "protocol": found.protocol, "mode": found.mode, "problem": found.problem or ""}
    if is_rollout(directory):  # its rounds have metrics, and it has other ones
        return {**row, "state": "rollout, running" if is_held(directory) else "rollout", "headline": None}
    headline = plain(found.exact_match or found.success_rate)
    return {**row, "state": found.state, "headline": headline, "measure": first.manifest.mode.of_kind(KINDS).measure}


def _state(directory: Path) -> Hashable:
    """Changes with the journal of a run, or of the rounds of a rollout."""
    parts = [directory, *rounds_of(directory)]
    return tuple(_stamp(file) for part in parts for file in (journal_file(part), part / MANIFEST))


def _stamp(path: Path) -> Hashable:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
