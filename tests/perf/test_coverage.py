"""The simulation behind docs/statistics.md: every table has its place, and a change or a broken promise is noticed."""

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


def test_a_number_that_changed_is_noticed() -> None:
    heads, _, *rows = rows_of("ranks")
    same = coverage.Table("ranks", tuple(heads), tuple(map(tuple, rows)), ())
    assert list(coverage.unlike(PAGE, same)) == [] and coverage.place(PAGE, same) == PAGE
    other = coverage.Table("ranks", tuple(heads), ((rows[0][0], "0.300"), *map(tuple, rows[1:])), ())
    assert [line.split(", ", 1)[0] for line in coverage.unlike(PAGE, other)] == ["ranks"]


def test_a_broken_promise_is_noticed() -> None:
    assert list(coverage.judged("x", 0.92, 9)) == [] and list(coverage.judged("x", 0.93, 10)) == []
    assert list(coverage.judged("x", 0.92, 10)) == ["x: covers 0.920, promised 0.93"]
