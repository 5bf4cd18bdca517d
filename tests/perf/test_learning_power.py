"""The power of a comparison between seeds, against Cohen's table (1988, table 2.4.1: d = 1 needs 17 per group, d = 0.5 64)."""

from __future__ import annotations

import pytest

from perf.learning import chance_to_see


@pytest.mark.parametrize(("deviation", "seeds"), [(1.0, 17), (2.0, 64)])
def test_power_is_cohens(deviation: float, seeds: int) -> None:
    assert chance_to_see(1.0, 2 * deviation**2, seeds - 1) < 0.8 <= chance_to_see(1.0, 2 * deviation**2, seeds)
    assert chance_to_see(0.0, 2 * deviation**2, seeds) == pytest.approx(0.05)
