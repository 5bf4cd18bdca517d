"""Which step runs next: no barrier between episodes, and a bounded number of episodes in memory.

Offline, every step of an episode may run at once and episodes are taken in order. In a sequential mode the next step of the
unfinished episode with the most steps left runs first: starting long chains early is what keeps the server busy until the end
(list scheduling; first come first served costs half as much again on chains of 3 to 20 steps).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from guieval.data.benchmark import EpisodeRef


@dataclass
class ActiveEpisode:
    """An episode whose annotations are loaded, or a task; ``pending`` are the steps not yet handed out."""

    ref: EpisodeRef
    loaded: Any
    pending: list[int] = field(default_factory=list)
    in_flight: int = 0


class Scheduler:
    """Hands out steps. Not thread-safe: it belongs to one event loop.

    ``activate`` loads an episode and says which of its steps are still to be done, in order (none: it is done already).
    ``window`` bounds how many episodes are loaded at once. ``count`` tells how many of an episode's steps are to be run, if
    that is not its length.
    """

    def __init__(
        self,
        refs: Iterable[EpisodeRef],
        activate: Callable[[EpisodeRef], ActiveEpisode | None],
        *,
        sequential: bool,
        window: int,
        count: Callable[[EpisodeRef], int] = lambda ref: ref.length,
    ) -> None:
        self._activate = activate
        self._sequential = sequential
        self._window = max(1, window)
        self._count = count
        waiting = list(refs)
        if sequential:
            waiting.sort(key=lambda ref: -count(ref))
        self._waiting = waiting
        self._next_waiting = 0
        self._ready: list[tuple[int, int, ActiveEpisode]] = []
        self._serial = 0
        self._loaded = 0

    def take(self) -> tuple[ActiveEpisode, int] | None:
        """The next step to run, or ``None`` when nothing can start until a running step is finished (or at the end)."""
        self._admit()
        if not self._ready:
            return None
        active = self._ready[0][2]
        step = active.pending.pop(0)
        active.in_flight += 1
        if self._sequential or not active.pending:
            heapq.heappop(self._ready)
        return active, step

    def finished(self, active: ActiveEpisode, *, go_on: bool = True) -> bool:
        """Report a step as done. With ``go_on`` false the rest of its episode is given up.

        Returns whether the episode is over, so that what is kept of it can be freed.
        """
        active.in_flight -= 1
        if not go_on:
            active.pending.clear()
        if active.pending:
            if self._sequential:
                self._push(active)
            return False
        if active.in_flight == 0:
            self._loaded -= 1
            return True
        return False

    @property
    def exhausted(self) -> bool:
        return not self._ready and self._next_waiting == len(self._waiting) and self._loaded == 0

    @property
    def ready(self) -> int:
        """How many loaded episodes have a step that could start now."""
        return len(self._ready)

    @property
    def waiting(self) -> int:
        """How many episodes have not been loaded yet."""
        return len(self._waiting) - self._next_waiting

    def _push(self, active: ActiveEpisode) -> None:
        self._serial += 1
        priority = -len(active.pending) if self._sequential else self._serial
        heapq.heappush(self._ready, (priority, self._serial, active))

    def _admit(self) -> None:
        while self._next_waiting < len(self._waiting) and self._loaded < self._window:
            ref = self._waiting[self._next_waiting]
            if self._ready and (not self._sequential or -self._ready[0][0] >= self._count(ref)):
                return
            self._next_waiting += 1
            active = self._activate(ref)
            if active is not None and active.pending:
                self._loaded += 1
                self._push(active)
