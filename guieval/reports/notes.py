"""Notes that people write on a run and its steps, and tags.

A run begins with those of its settings. Later ones are lines of ``notes.jsonl`` in the run's folder, appended one by one; the
last line about a thing counts, and an empty text removes it. Other people exchange run folders, so a line that does not fit is
skipped.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from guieval.data.files import open_descriptor, read_bytes
from guieval.errors import GuievalError, UsageError
from guieval.journal import RunFolder
from guieval.journal.run_folders import rounds_of
from guieval.settings.fields import MOST_TAGS, Tag
from guieval.steps import StepKey

NOTES = "notes.jsonl"
LONGEST_NOTE = 10_000
_MOST_BYTES = 32 * 1024 * 1024


class NoteLine(BaseModel):
    """A line of the file: the note on a step, on the run (without ``step``), or the run's tags."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    at: str = ""
    step: StepKey | None = None
    text: str | None = Field(default=None, max_length=LONGEST_NOTE)
    tags: list[Tag] | None = Field(default=None, max_length=MOST_TAGS)


@dataclass
class Notes:
    """The notes of a run that count: ``steps`` by step, ``text`` on the run, its ``tags`` and the ``name`` it was given."""

    steps: dict[StepKey, str] = field(default_factory=dict)
    text: str = ""
    tags: list[str] = field(default_factory=list)
    name: str = ""

    def _take(self, line: NoteLine) -> None:
        if line.tags is not None:
            self.tags = list(dict.fromkeys(line.tags))
        if line.text is None:
            return
        if line.step is None:
            self.text = line.text
        elif line.text:
            self.steps[line.step] = line.text
        else:
            self.steps.pop(line.step, None)


def read_notes(directory: Path) -> Notes:
    """The notes on a run or rollout: those it began with, and those of its file, unless that is absurdly large or no file."""
    notes = Notes()
    with suppress(GuievalError):  # a broken run may have notes
        begun = RunFolder(rounds_of(directory)[0]).manifest.config.tracking
        notes = Notes(text=begun.note or "", tags=list(begun.tags), name=begun.name or "")
    path = directory / NOTES
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return notes
        lines = read_bytes(path).split(b"\n")
    except OSError:
        return notes
    for line in lines:
        try:
            notes._take(NoteLine.model_validate_json(line))
        except ValidationError:
            continue
    return notes


def write_note(directory: Path, text: str, step: StepKey | None = None) -> None:
    """Set the note on a step, or without one on the run; an empty text removes it. :class:`UsageError` if it is too long."""
    if len(text) > LONGEST_NOTE:
        raise UsageError(f"the note has {len(text):,} characters; at most {LONGEST_NOTE:,}")
    _append(directory, NoteLine(at=_now(), step=step, text=text))


def write_tags(directory: Path, tags: Sequence[str]) -> None:
    """Replace the tags of a run; :class:`UsageError` for a tag that is too long or has a space or comma in it."""
    try:
        line = NoteLine(at=_now(), tags=list(dict.fromkeys(tags)))
    except ValidationError:
        raise UsageError(
            f"the tags are {', '.join(tags)[:100]!r}; expected at most {MOST_TAGS}, each of up to 40 characters without spaces"
        ) from None
    _append(directory, line)


def _append(directory: Path, line: NoteLine) -> None:
    """Append a line in one write, so that two programs may write at once; a torn last line is ended first."""
    data = line.model_dump_json(exclude_none=True).encode("utf-8", "replace") + b"\n"
    try:
        file = open_descriptor(directory / NOTES, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o644)
        try:
            size = os.fstat(file).st_size
            torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
            os.write(file, b"\n" + data if torn else data)
        finally:
            os.close(file)
    except OSError as error:
        raise UsageError(f"the note cannot be written to {str(directory / NOTES)!r}: {error.strerror}") from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
