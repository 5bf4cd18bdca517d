"""A run at one moment, ready to be shown: counts, rates and the time left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from guieval.engines import EndpointStats
from guieval.running.progress import Progress
from guieval.steps import VERDICTS
from guieval.telemetry.costs import Tokens
from guieval.telemetry.rates import STALLED, Rate, spoken


@dataclass(frozen=True)
class View:
    """A run at one moment, ready to be shown. Times are in seconds, rates per second; ``None`` is what is not known."""

    title: str
    done: int
    total: int
    elapsed: float
    recent: float | None
    mean: float | None
    left: float | None
    still: float
    shrinks: bool
    in_flight: int
    ready: int
    waiting: int
    endpoints: Sequence[EndpointStats]
    wait: str | None
    verdicts: Mapping[str, int]
    measure: str
    exact: int
    answers: int
    reported: int
    tokens_in: int
    tokens_out: int
    tokens_rate: float | None
    cost: str | None
    halted: str | None
    last_failure: tuple[str, str] | None

    @property
    def time_left(self) -> str:
        """How long it will still take, in words."""
        if self.done >= self.total:
            return "done"
        if self.wait is not None:
            return self.wait
        if self.halted is not None:
            return "ending"
        if self.still >= STALLED:
            return f"no answer for {spoken(self.still)}"
        if self.left is None:
            return "time left not known yet"
        return f"{'at most' if self.shrinks else 'about'} {spoken(self.left)} left"

    @property
    def exact_match(self) -> str:
        """The share of exact matches, or of successes, so far, with its n."""
        return f"{self.measure} {100 * self.exact / self.done:.1f} % of {self.done:,}" if self.done else f"{self.measure} -"

    @property
    def tokens(self) -> str | None:
        """Tokens so far, in words; ``None`` before the first answer."""
        if not self.answers:
            return None
        if not self.reported:
            return "the server reports no token counts"
        counts = f"{self.tokens_in:,} in, {self.tokens_out:,} out"
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
        load = progress.load()
        return View(
            title=self._title,
            done=progress.done,
            total=progress.total,
            elapsed=self._steps.elapsed,
            recent=self._steps.recent,
            mean=self._steps.mean,
            left=self._steps.seconds_left(progress.total - progress.done, progress.in_flight),
            still=self._steps.quiet,
            shrinks=progress.shrinks,
            in_flight=progress.in_flight,
            ready=load.ready,
            waiting=load.waiting,
            endpoints=load.endpoints,
            wait=load.wait,
            verdicts={name: progress.verdicts[name] for name in VERDICTS},
            measure=progress.measure,
            exact=progress.exact,
            answers=tokens.answers,
            reported=tokens.reported,
            tokens_in=tokens.prompt,
            tokens_out=tokens.completion,
            tokens_rate=self._tokens.recent,
            cost=self._cost(tokens),
            halted=progress.halted,
            last_failure=progress.last_failure,
        )
