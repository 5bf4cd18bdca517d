"""The published spread over seeds comes out of the published figures."""

from __future__ import annotations

import pytest

from guieval.metrics.sampling import spread

# GUIEvalKit paper, Table 19: episode progress under eight seeds, the mean, and the ends of its 95 % interval.
TABLE_19 = {
    "Qwen3-VL-8B-Thinking": ((0.1090, 0.1029, 0.1072, 0.1124, 0.1162, 0.1162, 0.1213, 0.1248), 0.1138, 0.1076, 0.1199),
    "GUI-Owl-7B": ((0.1892, 0.1932, 0.1858, 0.1916, 0.1868, 0.1968, 0.1898, 0.1883), 0.1902, 0.1872, 0.1932),
    "UI-TARS-1.5": ((0.1761, 0.1740, 0.1759, 0.1685, 0.1670, 0.1849, 0.1834, 0.1835), 0.1767, 0.1709, 0.1824),
}


@pytest.mark.parametrize("model", TABLE_19)
def test_means_and_intervals_of_table_19(model: str) -> None:
    seeds, mean, low, high = TABLE_19[model]
    found = spread(seeds)
    assert found.seeds == 8 and found.interval is not None and found.interval.method == "t"
    assert found.mean == pytest.approx(mean, abs=0.000051)
    assert found.interval.low == pytest.approx(low, abs=0.000051)
    assert found.interval.high == pytest.approx(high, abs=0.000051)
