"""Estimates the rate of a run and the time left, from counts of finished steps over time.

An early estimate misleads, since the first answers are those to the quickest requests. So there is no estimate until every
slot has had two answers, and none while no answers arrive.
"""

from __future__ import annotations

from collections import deque

WINDOW = 60.0
"""Seconds that count as recent."""
ENOUGH = 10
"""Number of answers below which a rate is not reliable."""
STALLED = 30.0
"""Seconds without an answer after which progress reports it."""


class Rate:
    """The rate of a growing count per second. Times are seconds of any monotonic clock."""

    def __init__(self, start: float) -> None:
        self._samples: deque[tuple[float, int]] = deque([(start, 0)])
        self._start = start
        self._changed = start

    def sample(self, now: float, count: int) -> None:
        """Record that ``count`` are done at time ``now``."""
        if count > self._samples[-1][1]:
            self._changed = now
        self._samples.append((now, count))
        # keep one sample older than the window, so that the whole window is covered
        while len(self._samples) > 2 and self._samples[1][0] <= now - WINDOW:
            self._samples.popleft()

    @property
    def count(self) -> int:
        """The count at the last sample."""
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
        """Mean rate since the start; ``None`` before any time has passed."""
        return self.count / self.elapsed if self.elapsed > 0 else None

    @property
    def recent(self) -> float | None:
        """Rate over the last :data:`WINDOW` seconds, or since the start if that is shorter."""
        (before, fewer), (now, count) = self._samples[0], self._samples[-1]
        return (count - fewer) / (now - before) if now > before else None

    def seconds_left(self, left: int, slots: int) -> float | None:
        """Seconds until ``left`` more are done, at the recent rate; ``None`` while there is no estimate.

        There is none until the count reaches two per slot (and :data:`ENOUGH`), and while no answers arrive. With less than
        :data:`ENOUGH` recent answers, the mean rate is used.
        """
        if left <= 0:
            return 0.0
        if self.count < max(ENOUGH, 2 * slots) or self.quiet >= WINDOW:
            return None
        rate = self.recent if self.count - self._samples[0][1] >= ENOUGH else self.mean
        return left / rate if rate else None


def part_done(done: int, total: int) -> str:
    """How much of ``total`` is done in whole percent, rounded down: 100 % is reached at the end only."""
    return f"{min(100, 100 * done // total)} %"


def spoken(seconds: float) -> str:
    """A rounded duration, e.g. ``40 s``, ``7 min``, ``3 h 20 min``."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s" if seconds < 10 else f"{round(seconds / 5) * 5} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(round(minutes / 10) * 10, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def clock(seconds: float) -> str:
    """An elapsed time as ``m:ss`` or ``h:mm:ss``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
