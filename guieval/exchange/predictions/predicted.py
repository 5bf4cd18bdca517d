"""One answer, or one outcome of a task, as a file of another evaluation has it, in unified terms: what formats yield."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, TypeVar

from guieval.actions import Action
from guieval.errors import DataError, ParseError
from guieval.exchange.predictions.rows import PredictionRow
from guieval.steps import OnlineTask, Repetition, StepTaskModel

Episode = TypeVar("Episode", bound=Hashable)


@dataclass(frozen=True)
class Predicted:
    """A file's answer to one step, which is named as our loaders name it.

    ``action`` is unified, [0, 1000] per axis, or ``None`` if the file's answer has none, for the ``reason`` given.
    ``response`` is a raw response instead, which only a model's adapter can read; ``raw`` is the response that a file keeps
    next to the action. ``benchmark`` names the loader whose step it is ("" if the file does not name it). ``task`` is the step
    itself if the file has everything that scoring needs. ``right_under`` names the protocol under which the source found the
    answer right, if it kept that alone. ``differs`` quotes what the row states of the target if the benchmark's own label,
    which decides, is another.
    """

    benchmark: str
    subset: str
    episode_id: str
    step_index: int
    action: Action | None = None
    reason: str = ""
    response: str | None = None
    task: StepTaskModel | None = None
    differs: str = ""
    raw: str | None = None
    right_under: str = ""

    @classmethod
    def of(cls, task: StepTaskModel, read: Callable[[], Action], differs: str = "", raw: str | None = None) -> Self:
        """The answer to a step that the file describes; a :class:`ParseError` of ``read`` becomes the ``reason``."""
        action, reason = attempted(read)
        return cls(*task.key, action, reason, task=task, differs=differs, raw=raw)

    @property
    def key(self) -> tuple[str, str, str, int]:
        """The key of a row, which must be unique in a file."""
        return self.benchmark, self.subset, self.episode_id, self.step_index


@dataclass(frozen=True)
class PredictedTask:
    """A repetition of a task in an environment, with its outcome; ``number`` counts the repetitions of the task from 0."""

    task: OnlineTask
    repetition: Repetition
    number: int = 0

    @property
    def key(self) -> tuple[str, str, str, int]:
        """The key of a row, which must be unique in a file."""
        return (*self.task.episode_key, self.number)


Rows: TypeAlias = Callable[[], Iterator[PredictionRow]]
"""Reads the file's rows from the first one on, as often as it is called, without damaged rows."""
ReadRow: TypeAlias = Callable[[PredictionRow], Predicted | PredictedTask | None]
"""Reads one row; ``None`` if it has no answer. Raises :class:`guieval.errors.DataError` if it is damaged."""


@dataclass(frozen=True)
class Format:
    """One way to write a predictions file.

    ``name`` is the value of ``--format``; ``summary`` names in a few words who writes such files. The first row has all of
    ``fields`` and, if there are any, at least one of ``one_of``; no other format has the same. ``assumed`` are sentences on
    what the labels in such files leave open and how that is read. The labels of a ``relabelled`` format are its authors' own
    and count also if the benchmark's are given.

    ``reader`` returns what reads one row. Its arguments are the file's rows, and the benchmark's steps if the user has
    named its data folder. It raises :class:`guieval.errors.UsageError` if the file cannot be read without them, or never.
    """

    name: str
    summary: str
    fields: frozenset[str]
    reader: Callable[[Rows, Iterable[StepTaskModel]], ReadRow]
    one_of: frozenset[str] = frozenset()
    assumed: tuple[str, ...] = ()
    relabelled: bool = False

    def recognises(self, values: Mapping[str, Any]) -> bool:
        return self.fields <= values.keys() and (not self.one_of or bool(self.one_of & values.keys()))


SCREEN = (1080, 2400)
"""Width and height of the screen if a file does not state them."""
ASSUMED_SCREEN = "screens are taken to be 1080 x 2400 pixels, because the file does not give their size"
NO_BOXES = "the file has neither targets nor elements, so a protocol that accepts clicks inside these alone accepts none"


def episode_lengths(rows: Rows, step_of: Callable[[PredictionRow], tuple[Episode, int]]) -> dict[Episode, int]:
    """The length of every episode in the file, which may lack its last steps; ``step_of`` gives a row's episode and step."""
    lengths: dict[Episode, int] = {}
    for row in rows():
        try:
            episode, index = step_of(row)
        except DataError:
            continue  # reported when the row itself is read
        lengths[episode] = max(lengths.get(episode, 0), index + 1)
    return lengths


def attempted(read: Callable[[], Action]) -> tuple[Action | None, str]:
    """The action that ``read`` returns and no reason, or no action and the reason of its :class:`ParseError`."""
    try:
        return read(), ""
    except ParseError as error:
        return None, str(error)
