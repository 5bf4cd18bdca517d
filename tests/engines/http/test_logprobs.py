"""What is kept of a reply's log-probabilities."""

from __future__ import annotations

import math

import pytest

from guieval.engines import mean_logprob
from tests.rows import every_row


@every_row(
    ("tokens", "mean"),
    [
        ([math.log(0.5), math.log(0.125)], math.log(0.25)),  # the geometric mean's logarithm: sqrt(1/2 * 1/8) = 1/4
        ([0], 0.0),
        ([], None),
        ([-1.0, None], None),  # a mean of some of them would not be any reply's
        ([-1.0, -math.inf], None),
        ([-1.0, math.nan], None),
        ([1e308, 1e308], None),  # their sum is beyond a float
        ([-1.0, 10**400], None),
        ([2.0], None),
    ],
)
def test_the_mean_is_of_all_tokens_or_there_is_none(tokens: list[float | None], mean: float | None) -> None:
    assert mean_logprob(tokens) == (None if mean is None else pytest.approx(mean))
