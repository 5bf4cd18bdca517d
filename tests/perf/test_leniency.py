"""What the click rules of the named protocols forgive on real labels is what was measured of their sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from perf.leniency import Cell, measure, read_targets


def test_the_published_table_comes_out_again(shared_data: Path) -> None:
    if not (shared_data / "ui_s1").is_dir():
        pytest.skip("no annotations of UI-S1")
    targets = read_targets(shared_data / "ui_s1")
    assert len(targets) == 5083
    assert sum(not len(target.elements) for target in targets) == 211
    found = measure(targets, draws=1, seed=0)
    assert {name for _, name, _ in found} >= {"ui-r1", "osatlas", "os-genesis", "ui-s1-sop", "infigui-r1", "uground-ac"}
    off = [(row.title, name, cell) for row, name, cells in found for cell in cells if not cell.agrees]
    assert not off


def test_a_share_outside_the_sampling_error_does_not_agree() -> None:
    # One click for each of 5,000 labels: the error of the difference is sqrt(2 * 0.25 / 5000) = 0.01.
    assert Cell(0.5 + 0.0404, 5000, 0.5, 5000).agrees
    assert not Cell(0.5 + 0.0406, 5000, 0.5, 5000).agrees
    assert not Cell(0.5 - 0.0406, 5000, 0.5, 5000).agrees
    # With ever more clicks only the published figure's own error is left: 0.00707.
    assert not Cell(0.5 + 0.0290, 10**9, 0.5, 5000).agrees
