"""One answer as a predictions file holds it, in unified terms: the record that every format module yields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from guieval.actions import Action
from guieval.errors import ParseError
from guieval.scoring.predictions.rows import Row
from guieval.steps import StepTaskModel


@dataclass(frozen=True)
class Predicted:
    """What a file says of one step, by the step's name as our loaders give it.

    ``action`` is unified, [0, 1000] per axis, or ``None`` where the file's answer holds none, for the ``reason`` given.
    ``response`` is a raw reply instead, which only a model's adapter can read. ``benchmark`` names the loader whose step it
    is ("" where the file does not say). ``task`` is the step itself where the file tells everything that scoring needs.
    ``differs`` quotes what the row states of the target where the benchmark's own label, which decides, is another.
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

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What must be unique in a file."""
        return self.benchmark, self.subset, self.episode_id, self.step_index


Rows = Callable[[], Iterator[Row]]
"""Reads the file's rows from the first one on, as often as it is called; damaged rows are left out."""


class Format(Protocol):
    """What a module of this package has to define to be a format."""

    NAME: str
    """What ``--format`` calls it."""
    SUMMARY: str
    """Who writes such files, in a few words."""
    ASSUMED: tuple[str, ...]
    """What the labels in such files leave open, and how it is taken: one line for each."""

    def recognises(self, values: Mapping[str, Any]) -> bool:
        """Whether a file with this first row is of the format; no other format should say so too."""

    def reader(self, rows: Rows, steps: Iterable[StepTaskModel]) -> Callable[[Row], Predicted | None]:
        """What reads one row: ``None`` where it holds no answer; :class:`guieval.errors.DataError` where it is damaged.

        ``steps`` are the benchmark's own where the user has named its data folder; most formats need none. Raises
        :class:`guieval.errors.UsageError` when the file cannot be read without them, or never.
        """


def attempted(read: Callable[[], Action]) -> tuple[Action | None, str]:
    """The action that ``read`` returns and no reason, or no action and the reason of its :class:`ParseError`."""
    try:
        return read(), ""
    except ParseError as error:
        return None, str(error)
