"""The simulation behind docs/statistics.md: every table has its place and keeps its promise."""

from __future__ import annotations

import re

import numpy as np
import pytest

from perf import coverage

PAGE = coverage.PAGE.read_text(encoding="utf-8")


def rows_of(name: str) -> list[list[str]]:
    begin, end = (re.escape(mark.format(name)) for mark in coverage.MARKS)
    (table,) = re.findall(f"{begin}(.*?){end}", PAGE, flags=re.DOTALL)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")]


def test_the_page_keeps_its_promise_for_intervals() -> None:
    """In every table, from 10 episodes on."""
    assert {name: len(rows_of(name)) > 4 for name in coverage.TABLES} == dict.fromkeys(coverage.TABLES, True)
    for row in rows_of("steps")[2:]:
        assert int(row[0]) < coverage.FEW or min(map(float, row[2:])) >= coverage.LEAST
    for name, first in (("sop", 2), ("samples", 2)):
        for row in rows_of(name)[2:]:
            assert int(row[1]) < coverage.FEW or min(map(float, row[first : first + 3])) >= coverage.LEAST
    for row in rows_of("pairs")[2:]:
        assert float(row[3]) <= coverage.MOST_ALARMS and min(map(float, filter(None, row[5:7]))) >= coverage.LEAST


def test_what_is_computed_for_all_experiments_at_once_is_what_is_printed() -> None:
    """Each table compares some of its experiments with the functions that print, and ends where they differ."""
    assert len(coverage.sop_table(6).rows) == 18
    with pytest.raises(SystemExit, match="not what is printed"):
        coverage.covered(coverage.sets(*coverage.alike(np.random.default_rng(0), 2, 4, 0.5, 0.0)).shares(), 0.5, [None])
