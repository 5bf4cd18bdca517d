"""The contract of a benchmark loader: what a module in ``benchmarks/`` has to provide.

A loader knows one published data format. It lists its episodes cheaply (:meth:`ABCBenchmark.index`) and loads them one at
a time (:meth:`ABCBenchmark.load`), so that memory does not grow with the benchmark. Screenshots stay on disk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from guieval.actions import ActionSpace
from guieval.steps import Episode, EpisodeKey


@dataclass(frozen=True)
class EpisodeRef:
    """An episode that can be loaded: its name, how many steps it has, and what its loader needs to find it again."""

    key: EpisodeKey
    length: int
    locator: Any = field(default=None, compare=False, repr=False)


class ABCBenchmark(ABC):
    """A benchmark over one data folder.

    Subclasses set the class attributes and implement :meth:`index` and :meth:`load`; the constructor must not read data
    beyond checking that ``root`` looks right, and raises :class:`guieval.errors.UsageError` naming the folder, what was
    expected in it and how to get it when it does not.
    """

    name: ClassVar[str]
    """Registered name, as users type it."""
    title: ClassVar[str]
    """Name as papers print it."""
    source: ClassVar[str]
    """Where the data comes from, its paper and licence, in one line."""
    protocol: ClassVar[str]
    """The protocol a run is scored under when none is given."""
    action_space: ClassVar[ActionSpace] = ActionSpace()
    """Which unified actions its labels can hold."""
    needs_data: ClassVar[bool] = True
    """Whether ``--data DIR`` must be given (a generated benchmark makes its own)."""

    def __init__(self, root: Path, **options: Any) -> None:
        if options:
            from inspect import Parameter, signature

            from guieval.errors import UsageError, nearest

            parameters = signature(type(self).__init__).parameters.values()
            known = [each.name for each in parameters if each.kind is Parameter.KEYWORD_ONLY]
            name = next(iter(options))
            raise UsageError(f"benchmark {self.name!r} has no option {name!r}{nearest(name, known)}")
        self.root = root

    @abstractmethod
    def index(self) -> Sequence[EpisodeRef]:
        """Every episode in the benchmark's own, deterministic order, without loading annotations into memory."""

    @abstractmethod
    def load(self, ref: EpisodeRef) -> Episode:
        """The episode behind ``ref``. Raises :class:`guieval.errors.DataError` naming file, line and field."""

    def __iter__(self) -> Iterator[Episode]:
        return (self.load(ref) for ref in self.index())
