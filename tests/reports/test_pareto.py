"""The picture of accuracy against tokens or cost, with its front."""

from __future__ import annotations

from pathlib import Path

import pytest

from guieval.metrics.intervals import Interval
from guieval.reports.plots.paper import write
from guieval.reports.plots.pareto import Spent, on_front, pareto

RUNS = [
    Spent("dear and good", 900, 0.8, Interval(0.75, 0.85, 0.95, "wilson")),
    Spent("beaten", 500, 0.5, None),
    Spent("cheap", 100, 0.4, None),
    Spent("better for less", 400, 0.6, None),
    Spent("as dear and worse", 900, 0.7, None),
]


def test_the_picture_names_every_run(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert [run.name for run in on_front(RUNS)] == ["cheap", "better for less", "dear and good"]
    for name in ("a.svg", "b.svg"):
        write(pareto(RUNS, "exact match", "tokens per step", "column"), tmp_path / name)
    text = (tmp_path / "a.svg").read_text()
    assert (tmp_path / "b.svg").read_text() == text
    assert all(run.name in text for run in RUNS) and "tokens per step" in text
