"""Records of the steps of tasks done in an environment, while they happen, for resume and for the viewer.

The outcomes are in the run's journal (:class:`guieval.steps.TaskRecord`), the steps in a file next to it.
"""

from __future__ import annotations

import os
import threading
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeAlias

from pydantic import Field, ValidationError

from guieval.actions import Action, Frozen
from guieval.data.files import open_descriptor, open_file, read_bytes, sync_folder
from guieval.data.text_files import sized_lines
from guieval.errors import JournalError
from guieval.steps import EpisodeKey, KeyRemoved, OtherUsage, Sample, StepError, Usage, total_usage, usage_by_model

TRAJECTORIES = "trajectories.jsonl"
SCREENS = "screens"
"""Folder of the screenshots in a run directory; a file is named by the SHA-256 of its content."""


class TrajectoryStep(Frozen):
    """One step of a trajectory: what the model saw, and its response. ``sample`` and ``attempt`` number repetitions of the
    task.

    ``attempt`` grows when a task is begun again because its environment failed. ``action`` is ``None`` for a response that
    could not be read, and ``executed`` says whether the environment was given it. Of a response with several actions ``batch``
    has all, which are carried out one after the other.
    """

    key: EpisodeKey
    sample: int = Field(ge=0)
    attempt: int = Field(ge=0)
    index: int = Field(ge=0)
    goal: str
    screenshot: str = Field(description="path, relative to the run directory")
    size: tuple[int, int] = Field(description="(width, height) in pixels")
    text: str | None = None
    raw_response: str
    reasoning: str | None = None
    thought: str | None = None
    conclusion: str | None = None
    action: Action | None = None
    batch: Annotated[tuple[Action, ...], Field(exclude_if=lambda batch: not batch)] = ()
    executed: bool
    stage: Annotated[str, Field(exclude_if=lambda name: not name)] = ""
    error: StepError | None = None
    usage: Usage | None = None
    other_usage: OtherUsage = ()
    key_removed: KeyRemoved = False
    finish_reason: str | None = None
    seconds: float | None = None

    @property
    def responses(self) -> tuple[Usage | None, ...]:
        """The usage of every response that was received and paid for it, whether its server stated that or not."""
        return (self.usage, *self.other_usage)

    @property
    def actions(self) -> tuple[Action, ...]:
        """The actions of the response in order; empty if it has none."""
        return self.batch or (() if self.action is None else (self.action,))


_OF_THE_REPLY = TrajectoryStep.model_fields.keys() & Sample.model_fields.keys()


def reply_of(sample: Sample) -> dict[str, Any]:
    """The fields of a step that are those of its sample; an empty text if there was no response."""
    return {name: getattr(sample, name) for name in _OF_THE_REPLY} | {"raw_response": sample.raw_response or ""}


_Place: TypeAlias = tuple[EpisodeKey, int]
"""A and time of the responses of all attempts at a repetition, and the number of its repetition."""


class Trajectories:
    """The steps recorded in a run directory: earlier ones are read at the start, new ones are appended.

    Every step is on the disk, with the screenshot that it was shown, before the next one begins: a loss of power takes none. A
    torn last line is cut off. An attempt of which a step in the middle is damaged is not gone on with. ``earlier`` is called
    with each step that is there already.
    """

    def __init__(self, directory: Path, earlier: Callable[[TrajectoryStep], None] = lambda step: None) -> None:
        self.directory = directory
        self._path = directory / TRAJECTORIES
        self._attempts: dict[_Place, int] = {}
        self._offsets: dict[_Place, list[int]] = {}
        self._broken: set[_Place] = set()
        self._spent: dict[_Place, list[tuple[tuple[Usage | None, ...], float, bool]]] = {}
        """Of each response: the tokens, the seconds, and whether it held the API key."""
        self._kept: set[str] = set()
        try:
            (directory / SCREENS).mkdir(exist_ok=True)
            self._file = open_descriptor(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            sync_folder(directory)
        except OSError as error:
            raise JournalError(f"cannot write to {str(self._path)!r}: {error.strerror}") from None
        self._guard = threading.Lock()
        self._full = False
        self._end = 0
        for offset, size, step in _lines(self._path):
            self._end = offset + size
            if step is not None:
                self._note(step, offset)
                earlier(step)
        os.ftruncate(self._file, self._end)

    def _note(self, step: TrajectoryStep, offset: int) -> None:
        """Remember where a step of the last attempt at a repetition is, and what the responses of all attempts took."""
        place = step.key, step.sample
        self._spent.setdefault(place, []).append((step.responses, step.seconds or 0.0, step.key_removed))
        if step.attempt > self._attempts.get(place, 0):
            self._offsets.pop(place, None)
            self._broken.discard(place)
        self._attempts[place] = max(step.attempt, self._attempts.get(place, 0))
        if step.attempt == self._attempts[place]:
            offsets = self._offsets.setdefault(place, [])
            if step.index > len(offsets):
                self._broken.add(place)
            offsets.append(offset)

    def forget(self, key: EpisodeKey, sample: int) -> None:
        """Free what is kept of a repetition that is judged."""
        self._offsets.pop((key, sample), None)
        self._attempts.pop((key, sample), None)
        self._spent.pop((key, sample), None)

    def spent(self, key: EpisodeKey, sample: int) -> dict[str, Any]:
        """Tokens and seconds of the responses of all attempts at a repetition, as in :class:`guieval.steps.Repetition`."""
        if not (spent := self._spent.get((key, sample))):
            return {}
        usages, seconds, removed = zip(*spent, strict=True)
        paid = list(chain(*usages))
        sums = {"usage": total_usage(paid), "usage_by_model": tuple(usage_by_model(paid).values())}
        return {**sums, "seconds": round(sum(seconds), 4), "key_removed": any(removed)}

    def last_attempt(self, key: EpisodeKey, sample: int) -> int:
        """The number of the attempt at a repetition of a task to go on with: the last one, unless a step of it is damaged."""
        place = key, sample
        return self._attempts.get(place, 0) + (place in self._broken)

    def steps(self, key: EpisodeKey, sample: int) -> list[TrajectoryStep]:
        """The recorded steps of the attempt to go on with (:meth:`last_attempt`), from the first on."""
        place = key, sample
        if place in self._broken:
            return []
        with open_file(self._path) as stream:
            found = {step.index: step for step in (_step_at(stream, offset) for offset in self._offsets.get(place, ()))}
        return [found[index] for index in sorted(found)]

    def append(self, step: TrajectoryStep) -> None:
        """Add a step and bring it to the disk; may be called from several threads.

        Raises :class:`JournalError` if it cannot be written.
        """
        line = step.model_dump_json(exclude_none=True).encode() + b"\n"
        try:
            with self._guard:
                if self._full:  # the run is ending, and another line could be torn by its end
                    raise OSError(0, "the disk is full")
                written = os.write(self._file, line)
                if written < len(line):
                    self._full = True
                    os.ftruncate(self._file, self._end)
                    raise OSError(0, "the disk is full")
                self._note(step, self._end)
                self._end += written
            os.fsync(self._file)
        except OSError as error:
            raise self._failed(f"add to {str(self._path)!r}", error) from None

    def keep(self, screenshot: bytes, name: str) -> str:
        """Store a screenshot under a name and bring it to the disk, unless it is there; its path relative to the run directory.

        What a loss of power has left of it is replaced. Raises :class:`JournalError` if it cannot be written; no part of it is
        left.
        """
        path = f"{SCREENS}/{name}"
        where = self.directory / path
        if name in self._kept and where.exists():
            return path
        if not _holds(where, screenshot):
            temporary = where.with_suffix(f".{threading.get_ident()}.tmp")  # two devices may show the same screen at once
            try:
                with temporary.open("wb") as stream:
                    stream.write(screenshot)
                    stream.flush()
                    os.fsync(stream.fileno())  # or a loss of power could leave the name without the content
                temporary.replace(where)
                sync_folder(where.parent)
            except OSError as error:
                with suppress(OSError):
                    temporary.unlink()
                raise self._failed(f"write {str(where)!r}", error) from None
        self._kept.add(name)
        return path

    def _failed(self, what: str, error: OSError) -> JournalError:
        return JournalError(
            f"cannot {what}: {error.strerror}; every step before is kept, and `guieval run --resume {self.directory}` "
            "continues from there"
        )

    def close(self) -> None:
        os.close(self._file)


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.stat().st_size == len(content) and read_bytes(path) == content
    except OSError:
        return False


def read_trajectories(directory: Path) -> Iterator[TrajectoryStep]:
    """All readable steps of a run directory, in the order in which they were taken."""
    path = directory / TRAJECTORIES
    if path.exists():
        yield from (step for _, _, step in _lines(path) if step is not None)


class _LastAttempts(Mapping[_Place, list[TrajectoryStep]]):
    """The steps of each task and repetition, read when they are needed: memory has one number per step."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offsets: dict[_Place, array[int]] = {}
        attempts: dict[_Place, int] = {}
        for offset, _, step in _lines(path) if path.exists() else ():
            if step is None:
                continue
            repetition = (step.key, step.sample)
            if attempts.get(repetition) != step.attempt:
                self._offsets[repetition] = array("q")
            attempts[repetition] = step.attempt
            self._offsets[repetition].append(offset)

    def __getitem__(self, repetition: _Place) -> list[TrajectoryStep]:
        with open_file(self._path) as stream:
            return [_step_at(stream, offset) for offset in self._offsets[repetition]]

    def __iter__(self) -> Iterator[_Place]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)


def last_attempts(directory: Path) -> Mapping[_Place, list[TrajectoryStep]]:
    """The steps of the last attempt at every repetition of every task, in order; each is read from the file when accessed."""
    return _LastAttempts(directory / TRAJECTORIES)


def _step_at(stream: BinaryIO, offset: int) -> TrajectoryStep:
    stream.seek(offset)
    return TrajectoryStep.model_validate_json(stream.readline())


def _lines(path: Path) -> Iterator[tuple[int, int, TrajectoryStep | None]]:
    """Offset and size of every whole line, and its step; ``None`` for a damaged line."""
    offset = 0
    with open_file(path) as stream:
        for line, size in sized_lines(stream):
            if not line.endswith(b"\n"):
                return
            step: TrajectoryStep | None
            try:
                step = TrajectoryStep.model_validate_json(line)
            except (ValidationError, ValueError, RecursionError):
                step = None
            yield offset, size, step
            offset += size
