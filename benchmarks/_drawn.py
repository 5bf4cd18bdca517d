"""Shared by the demos: generated episodes, whose missing screenshots are drawn below the given folder when they are loaded."""

from __future__ import annotations

import os
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.data.plugin_options import at_least
from guieval.errors import DataError, UsageError
from guieval.playground.phone import encode
from guieval.steps import Episode, StepTaskModel

from ._rows import placed

if TYPE_CHECKING:
    from PIL.Image import Image


class DrawnBenchmark(ABCBenchmark):
    """``episodes`` generated episodes, drawn from ``seed``. Raises :class:`UsageError` for an option out of range."""

    licence = "Apache-2.0"
    needs_data = False
    file: ClassVar[str]
    """A screenshot's path in :attr:`folder`, a format of the episode's number and the step's index."""

    def __init__(self, root: Path, *, episodes: int, seed: int, **options: Any) -> None:
        super().__init__(root, **options)
        at_least(1, episodes=episodes)
        self.episodes, self.seed = episodes, seed

    @property
    @abstractmethod
    def drawing(self) -> str:
        """What changes a pixel, besides the seed and Pillow."""

    @property
    def folder(self) -> str:
        """The folder of the screenshots relative to ``root``; its name contains everything that changes a pixel."""
        from PIL import __version__ as pillow

        return f"{self.drawing}-seed{self.seed}-pillow{pillow}"

    @abstractmethod
    def _generate(self, number: int) -> Any: ...

    @abstractmethod
    def _ref(self, generated: Any) -> EpisodeRef: ...

    @abstractmethod
    def _steps(self, generated: Any) -> Iterator[tuple[Callable[[], Image | bytes], dict[str, Any]]]:
        """For each step, the function that draws its screenshot or its file, and the fields of its record that are its own."""

    def index(self) -> Sequence[EpisodeRef]:
        return tuple(self._ref(self._generate(number)) for number in range(self.episodes))

    def load(self, ref: EpisodeRef) -> Episode:
        """The episode of ``ref``; draws its missing screenshots.

        Raises :class:`DataError` for a reference of another benchmark, :class:`UsageError` if a screenshot cannot be written.
        """
        if not isinstance(ref.locator, int) or not 0 <= ref.locator < self.episodes:
            raise DataError(f"{self.name} has no episode {ref.key}; it holds {self.episodes} of seed {self.seed}")
        generated = self._generate(ref.locator)
        if self._ref(generated) != ref:
            raise DataError(f"{self.name} has no episode {ref.key} of {ref.length} steps; it was listed with other options")
        steps = []
        for index, (render, fields) in enumerate(self._steps(generated)):
            screenshot = f"{self.folder}/{self.file.format(ref.locator, index)}"
            if not (self.root / screenshot).exists():
                drawn = render()
                _write(self.root / screenshot, drawn if isinstance(drawn, bytes) else encode(drawn))
            steps.append(StepTaskModel(**placed(self, ref, index, ref.length), screenshot=screenshot, **fields))
        return Episode(steps=tuple(steps))

    @classmethod
    def write_example(cls, folder: Path, *, episodes: int = 2, seed: int = 0) -> None:
        """Draw the screenshots of the first episodes; there is nothing else to write."""
        for _ in cls(folder, episodes=episodes, seed=seed):
            pass


def _write(path: Path, data: bytes) -> None:
    """Write a file that no reader can see half-written, also if several processes write it at once."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            os.replace(name, path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(f"the screenshot {str(path)!r} cannot be written: {error.strerror}") from None
