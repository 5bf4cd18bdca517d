"""How fast a run goes and how long it will still take, from the times at which so many steps were done.

An early guess misleads: the first answers are those of the quickest requests of a server that has just begun. So there is no
guess until every slot has been answered twice, and none while nothing is answered any more.
"""

from __future__ import annotations

from collections import deque

WINDOW = 60.0
"""Seconds that count as recent."""
ENOUGH = 10
"""Answers below which a rate is chance."""
STALLED = 30.0
"""Seconds without an answer after which it is worth saying."""


class Rate:
    """A count that only grows, per second. Times are any clock's seconds, in the order of the calls."""

    def __init__(self, start: float) -> None:
        self._samples: deque[tuple[float, int]] = deque([(start, 0)])
        self._start = start
        self._changed = start

    def sample(self, now: float, count: int) -> None:
        """Note that ``count`` are done at time ``now``."""
        if count > self._samples[-1][1]:
            self._changed = now
        self._samples.append((now, count))
        # one sample that is older than the window stays, so that the window is covered whole
        while len(self._samples) > 2 and self._samples[1][0] <= now - WINDOW:
            self._samples.popleft()

    @property
    def count(self) -> int:
        """How many were done at the last sample."""
        return self._samples[-1][1]

    @property
    def elapsed(self) -> float:
        """Seconds from the start to the last sample."""
        return self._samples[-1][0] - self._start

    @property
    def quiet(self) -> float:
        """Seconds since the count last grew."""
        return self._samples[-1][0] - self._changed

    @property
    def mean(self) -> float | None:
        """Per second from the start on; ``None`` before any time has passed."""
        return self.count / self.elapsed if self.elapsed > 0 else None

    @property
    def recent(self) -> float | None:
        """Per second over the last :data:`WINDOW` seconds, or over all of a shorter time."""
        (before, fewer), (now, count) = self._samples[0], self._samples[-1]
        return (count - fewer) / (now - before) if now > before else None

    def seconds_left(self, left: int, slots: int) -> float | None:
        """Seconds until ``left`` more are done, at the recent rate; ``None`` while that cannot be told.

        That is until each of ``slots`` requests in flight was answered twice (and :data:`ENOUGH` in all), and while nothing
        is answered. A rate from less than :data:`ENOUGH` recent answers gives way to the mean.
        """
        if left <= 0:
            return 0.0
        if self.count < max(ENOUGH, 2 * slots) or self.quiet >= WINDOW:
            return None
        rate = self.recent if self.count - self._samples[0][1] >= ENOUGH else self.mean
        return left / rate if rate else None


def spoken(seconds: float) -> str:
    """A time as one would say it, e.g. ``40 s``, ``7 min``, ``3 h 20 min``: no more exact than it is known."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s" if seconds < 10 else f"{round(seconds / 5) * 5} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(round(minutes / 10) * 10, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def clock(seconds: float) -> str:
    """A time that has passed, as ``m:ss`` or ``h:mm:ss``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
