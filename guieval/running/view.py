"""A run at one moment, ready to be shown: counts, rates and the time left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from guieval.metrics.rounding import percentage
from guieval.running.progress import Load, Progress
from guieval.telemetry.costs import Tokens
from guieval.telemetry.rates import STALLED, Rate, spoken


@dataclass(frozen=True)
class View:
    """A run at one moment, ready to be shown. Times are in seconds, rates per second; ``None`` is what is not known."""

    title: str
    progress: Progress
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


class Watch:
    """Turns a run's :class:`guieval.running.progress.Progress` into views, with rates from the first look on."""

    def __init__(self, title: str, cost: Callable[[Tokens], str | None] = lambda tokens: None) -> None:
        self._title = title
        self._cost = cost
        self._steps: Rate | None = None
        self._tokens: Rate | None = None
        self._tokens_before = 0

    def look(self, progress: Progress, now: float) -> View:
        """The run as of time ``now``, in seconds of any clock."""
        tokens = progress.tokens
        if self._steps is None or self._tokens is None:
            self._steps, self._tokens = Rate(now), Rate(now)
            self._tokens_before = tokens.completion
        self._steps.sample(now, progress.done - progress.resumed)
        self._tokens.sample(now, tokens.completion - self._tokens_before)
        return View(
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
