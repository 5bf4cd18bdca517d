"""The mean log-probability of a reply, for every engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from guieval.steps import known_logprob


def mean_logprob(tokens: Sequence[Any]) -> float | None:
    """The mean natural log-probability of a reply's tokens; ``None`` without tokens, or if one has no valid value."""
    values = [value for value in map(known_logprob, tokens) if value is not None]
    return math.fsum(values) / len(values) if values and len(values) == len(tokens) else None
