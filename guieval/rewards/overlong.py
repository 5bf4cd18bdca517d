"""DAPO's soft overlong punishment: the reward falls linearly as a response approaches the maximum length.

Source: DAPO paper (arXiv 2503.14476), section 3.4, equation 13, with its names L_max (``longest``) and L_cache (``cache``).
"""

from __future__ import annotations

from dataclasses import dataclass

from guieval.errors import UsageError


@dataclass(frozen=True)
class Overlong:
    """The term that a response's length adds to its reward: 0 up to ``longest - cache`` tokens, ``-penalty`` from ``longest``
    on.

    Between the two the punishment grows linearly. Raises :class:`UsageError` unless 0 < cache <= longest and penalty > 0.
    """

    longest: int
    cache: int
    penalty: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.cache <= self.longest:
            raise UsageError(
                f"reward.overlong.cache is {self.cache}; expected 1 to {self.longest}, the tokens of the longest response"
            )
        if not 0 < self.penalty < float("inf"):
            raise UsageError(f"reward.overlong.penalty is {self.penalty!r}; expected a number above 0")

    def of(self, tokens: int) -> float:
        """The term for a response of ``tokens`` tokens, in [-penalty, 0]."""
        excess = min(max(tokens - (self.longest - self.cache), 0), self.cache)
        return -self.penalty * excess / self.cache if excess else 0.0
