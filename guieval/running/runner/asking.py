"""What a session asks: the steps of an episode, or a task; one implementation for each kind of run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from guieval.data.benchmark import EpisodeRef
from guieval.steps import EpisodeKey, Record

_Loaded = TypeVar("_Loaded")
_Kept = TypeVar("_Kept", bound=Record)


class Asking(Generic[_Loaded, _Kept]):
    """Answers the steps or the tasks of a run. ``load`` loads an episode or a task, which the other methods take."""

    def load(self, ref: EpisodeRef) -> _Loaded:
        """What a reference names. Raises :class:`guieval.errors.DataError`."""
        raise NotImplementedError

    async def answer(self, loaded: _Loaded, index: int, earlier: Mapping[int, Any]) -> _Kept:
        """The record of one unit; ``earlier`` are samples that an earlier session has answered, by number."""
        raise NotImplementedError

    def resume(self, loaded: _Loaded, kept: Iterable[_Kept]) -> None:
        """Take in the records that earlier sessions kept of it."""

    def goes_on(self, loaded: _Loaded, record: _Kept) -> bool:
        """Take in a record; whether the next unit of the same episode may run."""
        return True

    def forget(self, key: EpisodeKey) -> None:
        """Free what is kept of an episode that is over."""

    def close(self) -> None:
        """Close the files that answering has opened."""
