"""A run at one moment, ready to be shown: counts, rates and the time left.

An early estimate of the time left misleads, since the first responses are those to the quickest requests. So there is none
until every slot has had two responses, and none while no responses arrive.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from guieval.metrics.rounding import percentage
from guieval.running.costs import Tokens
from guieval.running.progress.counts import Load, RunProgress

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


@dataclass(frozen=True)
class ProgressView:
    """A run at one moment, ready to be shown. Times are in seconds, rates per second; ``None`` is what is not known."""

    title: str
    progress: RunProgress
    """A copy of the run's counts."""
    load: Load
    elapsed: float
    recent: float | None
    mean: float | None
    left: float | None
    still: float
    tokens_rate: float | None
    cost: str | None

    @property
    def time_left(self) -> str:
        """How long it will still take, in words."""
        if self.progress.done >= self.progress.total:
            return "done"
        if self.load.wait is not None:
            return self.load.wait
        if self.progress.halted is not None:
            return "ending"
        if self.still >= STALLED:
            return f"no answer for {spoken(self.still)}"
        if self.left is None:
            return "time left not known yet"
        return f"{'at most' if self.progress.shrinks else 'about'} {spoken(self.left)} left"

    @property
    def exact_match(self) -> str:
        """The share of exact matches, or of successes, so far, with its n."""
        run = self.progress
        if not run.judged:
            return f"{run.measure} -"
        return f"{run.measure} {percentage(run.exact / run.judged, '.1f')} % of {run.judged:,}"

    @property
    def tokens(self) -> str | None:
        """Token counts so far, in words; ``None`` before the first answer."""
        tokens = self.progress.tokens
        if not tokens.answers:
            return None
        if not tokens.reported:
            return "not reported"
        counts = f"{tokens.prompt:,} in, {tokens.completion:,} out"
        return counts if self.tokens_rate is None else f"{counts} ({self.tokens_rate:,.0f}/s out)"


class ProgressWatch:
    """Turns a run's :class:`guieval.running.progress.counts.RunProgress` into views, with rates from the first look on."""

    def __init__(self, title: str, cost: Callable[[Tokens], str | None] = lambda tokens: None) -> None:
        self._title = title
        self._cost = cost
        self._steps: Rate | None = None
        self._tokens: Rate | None = None
        self._tokens_before = 0

    def look(self, progress: RunProgress, now: float) -> ProgressView:
        """The run as of time ``now``, in seconds of any clock."""
        tokens = progress.tokens
        if self._steps is None or self._tokens is None:
            self._steps, self._tokens = Rate(now), Rate(now)
            self._tokens_before = tokens.completion
        self._steps.sample(now, progress.done - progress.resumed)
        self._tokens.sample(now, tokens.completion - self._tokens_before)
        return ProgressView(
            title=self._title,
            progress=replace(progress, verdicts=Counter(progress.verdicts), tokens=replace(tokens)),
            load=progress.load(),
            elapsed=self._steps.elapsed,
            recent=self._steps.recent,
            mean=self._steps.mean,
            left=self._steps.seconds_left(progress.total - progress.done, progress.in_flight),
            still=self._steps.quiet,
            tokens_rate=self._tokens.recent,
            cost=self._cost(tokens),
        )
