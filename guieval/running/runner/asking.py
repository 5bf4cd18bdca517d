"""What a session asks: the steps of an episode, or a task; one implementation for each kind of run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from guieval.data.benchmark import EpisodeRef
from guieval.steps import EpisodeKey, Record


class Asking:
    """Answers the steps or the tasks of a run. ``load`` loads an episode or a task, which the other methods take."""

    def load(self, ref: EpisodeRef) -> Any:
        """What a reference names. Raises :class:`guieval.errors.DataError`."""
        raise NotImplementedError

    async def answer(self, loaded: Any, index: int, earlier: Mapping[int, Any]) -> Record:
        """The record of one unit; ``earlier`` are samples that an earlier session has answered, by number."""
        raise NotImplementedError

    def resume(self, loaded: Any, kept: Iterable[Record]) -> None:
        """Take in the records that earlier sessions kept of it."""

    def goes_on(self, loaded: Any, record: Record) -> bool:
        """Take in a record; whether the next unit of the same episode may run."""
        return True

    def forget(self, key: EpisodeKey) -> None:
        """Free what is kept of an episode that is over."""

    def close(self) -> None:
        """Close the files that answering has opened."""
