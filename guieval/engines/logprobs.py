"""What is kept of a reply's log-probabilities, the same whichever engine gave them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

LOWEST = -9999.0
"""vLLM's server writes a lower one as this, since JSON has no infinity; the engines in this process do as well."""


def mean_logprob(tokens: Sequence[Any]) -> float | None:
    """The mean over a reply's tokens of their natural log-probability.

    ``None`` where there are no tokens, or one of them has none that is a finite number.
    """
    found = [float(each) for each in tokens if isinstance(each, int | float) and math.isfinite(each)]
    return math.fsum(found) / len(found) if found and len(found) == len(tokens) else None
