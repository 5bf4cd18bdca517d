"""The front of accuracy against tokens, by hand, and its picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from guieval.metrics.intervals import Interval
from guieval.reports.plots.paper import write
from guieval.reports.plots.pareto import Spent, front, pareto

RUNS = [
    Spent("dear and good", 900, 0.8, Interval(0.75, 0.85, 0.95, "wilson")),
    Spent("beaten", 500, 0.5, None),
    Spent("cheap", 100, 0.4, None),
    Spent("better for less", 400, 0.6, None),
    Spent("as dear and worse", 900, 0.7, None),
]


def test_the_front_holds_what_no_other_run_beats() -> None:
    assert [run.name for run in front(RUNS)] == ["cheap", "better for less", "dear and good"]
    twins = [Spent("a", 1, 0.5, None), Spent("b", 1, 0.5, None)]
    assert front(twins) == twins and front([]) == []


def test_the_picture_names_every_run(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write(pareto(RUNS, "exact match", "column"), tmp_path / "a.svg")
    write(pareto(RUNS, "exact match", "column"), tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert all(run.name in (tmp_path / "a.svg").read_text() for run in RUNS)
