"""The one shape of a number: its value, what it is over, how sure it is, in which unit, and which way is better.

Tables, leaderboards, the viewer, exports, plots and Python all take it, so that a number has the same value, n and interval
wherever it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from guieval.metrics.intervals import Floats, Interval, quoted, quoted_mean, wilson

SHARE = "share"
"""The unit of fractions in [0, 1], and of their differences, which readers see in per cent."""
THOUSANDTHS = "thousandths of the screen"
Better: TypeAlias = Literal["more", "less"]


@dataclass(frozen=True)
class Measured:
    """A number over ``n`` things, which are ``of``: steps, episodes, tasks ... (0 if nothing was counted, as of a difference).

    ``value``: a fraction in [0, 1] if ``unit`` is :data:`SHARE`; ``None`` without anything to divide by, or if it is not
    defined. ``count``: the sum that the value is an average of. ``missing``: of the planned steps in its scope, those without
    an answer, and rows of a predictions file that were skipped. ``upper``: the value if every missing step were right,
    ``dropped_as_wrong``: if every one that is dropped were wrong; ``None`` if that is the value itself.
    ``better``: whether more or less of it is better, ``None`` for neither. ``p_value``, two-sided, is of differences, and
    ``standard_error`` of what was estimated.
    """

    value: float | None
    n: int = 0
    of: str = "steps"
    count: int | float = 0
    missing: int = 0
    interval: Interval | None = None
    unit: str = SHARE
    better: Better | None = "more"
    upper: float | None = None
    dropped_as_wrong: float | None = None
    standard_error: float | None = None
    p_value: float | None = None

    @property
    def spread(self) -> float | None:
        """The standard deviation between repeats, of a mean over them (:class:`guieval.metrics.repeats.Repeated`)."""
        return None

    @property
    def low(self) -> float | None:
        return None if self.interval is None else self.interval.low

    @property
    def high(self) -> float | None:
        return None if self.interval is None else self.interval.high


def share_of(count: int, n: int, of: str = "steps", *, missing: int = 0, interval: bool = False) -> Measured:
    """``count`` of ``n`` as a share; the ``missing`` of the n are not in the count. ``interval``: Wilson's, of independent
    observations."""
    return Measured(
        value=count / n if n else None,
        n=n,
        of=of,
        count=count,
        missing=missing,
        interval=wilson(count, n) if interval else None,
        upper=(count + missing) / n if n and missing else None,
    )


def mean_over_episodes(above: Floats, below: Floats, *, share: bool) -> Measured:
    """A ratio of sums over e episodes, (e,) each, with its interval over episodes; with ``share`` it is in [0, 1]."""
    n = float(below.sum())
    if not n:
        return Measured(None, 0, count=0.0)
    interval = quoted(above, below) if share else quoted_mean(above, below)
    return Measured(float(above.sum()) / n, round(n), count=float(above.sum()), interval=interval)
