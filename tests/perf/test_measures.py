"""What the measuring programs of perf/ compute on known input, and what their kept tables and pages state."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from perf import coverage
from perf.leniency import Cell, measure, read_targets
from perf.makers import READERS, lines, method, run
from perf.rows_over_ranks import Group, group, new_rule, old_rule
from perf.throughput import idle_share
from perf.words import GOALS, all_prose, prose, rates
from tests.model_adapters.makers import FAMILIES, Family, table_of
from tests.rows import every_row

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


@pytest.mark.parametrize(("ranks", "before", "now"), [(8, 0.63, 0.997), (32, 0.38, 0.987)])
def test_the_figures_of_the_documentation(ranks: int, before: float, now: float) -> None:
    def shares(rule: Callable[[Callable[[], Group], int], tuple[float, float]]) -> list[float]:
        dice = random.Random(1)  # another seed than the documentation's
        return [fmean(each) for each in zip(*(rule(partial(group, dice), ranks) for _ in range(30)), strict=True)]

    assert shares(new_rule) == pytest.approx([now, 0.94], abs=0.02)
    assert shares(old_rule) == pytest.approx([before, 0.54], abs=0.05)


def written(file: Path, *requests: tuple[str, float, float]) -> Path:
    file.write_text("".join(json.dumps({"tag": tag, "arrival": start, "end": end}) + "\n" for tag, start, end in requests))
    return file


def test_a_step_is_ready_when_the_one_before_has_ended(tmp_path: Path) -> None:
    """One episode of two steps, the second asked 0.5 s after the first ended: 0.5 of 2 slots x 4.5 s. The other slot is never
    counted, for no step was ready for it."""
    log = written(tmp_path / "log", ("a", 0.0, 2.0), ("a", 2.5, 4.5))
    assert idle_share(log, 2, sequential=True) == pytest.approx(0.5 / 9)
    assert idle_share(log, 2, sequential=False) == pytest.approx((2.0 + 0.5) / 9)


def test_no_word_is_above_its_goal() -> None:
    found = rates(all_prose())
    assert {word: round(found[word], 2) for word, goal in GOALS.items() if found[word] > goal} == {}


def test_docstrings_comments_and_messages_are_prose_and_code_is_not() -> None:
    source = '"""Beside it."""\nwhere = "holds"  # lies here\nraise ValueError(f"the folder {where} stands beside it")\n'
    assert [each.text for each in prose(source, Path("x.py"))] == ["lies here", "the folder 0 stands beside it"]
    assert rates(prose(source, Path("x.py")))["beside"] == 1000 / 7


FILE = """
import heavy_framework
LIMIT = 3
def cut(text): return text[:LIMIT]
class Agent(heavy_framework.Agent):
    def read(self, text: heavy_framework.Text): return cut(text)
    def step(self, text):
        try:
            answer = text.split("<a>")[1]
            action = answer.strip()
        except IndexError:
            action = None
"""


def test_only_what_is_named_is_run() -> None:
    code = run(FILE, ["LIMIT", "cut", "Agent"])
    assert code["Agent"]().read("abcdef") == "abc"
    assert method(FILE, "Agent", "step")(None, "<a> x") is None
    assert len(lines(FILE, "answer =", "action =")) == 2
    with pytest.raises(LookupError, match="lacks gone"):
        run(FILE, ["cut", "gone"])
    with pytest.raises(LookupError, match="no statement 'gone ='"):
        lines(FILE, "gone =")


@every_row("family", FAMILIES, ids=lambda family: family.title)
def test_a_table_names_the_reader_that_made_it(family: Family) -> None:
    header, reader = table_of(family)[0], READERS[family.title]
    assert tuple(header) == reader[:4]
