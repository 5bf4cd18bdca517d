"""What perf/mutants.py draws, where it finds a fault again, and which test files it tries first."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from perf.mutants import Candidate, Mutant, Place, covering, draw, located, planned, planted, read, read_coverage, table

SOURCE = '''"""A module."""

LIMIT = 3


class Rule:
    def holds(self, x: int) -> bool:
        if x < 0:
            return False
        return x < LIMIT

    def fails(self, x: int) -> bool:
        if x < 0:
            return False
        return not self.holds(x)
'''
FILE = "guieval/metrics/rule.py"


def fault(before: str, after: str, function: str, source: str = SOURCE) -> Mutant:
    found = planned(Candidate(FILE, (1, 0), "core/x", 0, function), source, source.replace(before, after))
    assert found
    return found


def written(checkout: Path, source: str, file: str = FILE) -> Path:
    (checkout / file).parent.mkdir(parents=True, exist_ok=True)
    (checkout / file).write_text(source, encoding="utf-8")
    return checkout


def candidates() -> list[Candidate]:
    """Thirty functions of two operators with three places each, and one function of many."""
    found = [
        Candidate(f"guieval/metrics/{number}.py", (line, 0), f"core/{operator}", 0, f"f{number}")
        for number in range(30)
        for operator in ("NumberReplacer", "AddNot")
        for line in range(3)
    ]
    return found + [Candidate("guieval/frames.py", (line, 0), "core/AddNot", line, "only") for line in range(40)]


def plan(candidate: Candidate) -> Mutant:
    at = candidate.start[0]
    return Mutant("", candidate.stratum, candidate.file, candidate.function, at, candidate.operator, 0, "a", "b", 0, 1, "")


def test_a_seed_draws_the_same_whatever_the_order() -> None:
    first = draw(candidates(), 28, plan)
    assert draw(reversed(candidates()), 28, plan) == first
    assert draw(candidates(), 29, plan) != first
    assert Counter(each.stratum for each in first) == {"metrics": 20, "frames": 20}
    own = [each for each in first if each.stratum == "metrics"]
    assert max(Counter(each.function for each in own).values()) <= 2
    assert Counter(each.operator for each in own) == {"core/NumberReplacer": 10, "core/AddNot": 10}
    assert len({each.id for each in first}) == 40


def test_what_is_no_python_or_says_the_same_is_no_fault() -> None:
    one = Candidate(FILE, (1, 0), "core/x", 0, "Rule.holds")
    assert planned(one, SOURCE, SOURCE.replace("return x < LIMIT", "return x < ")) is None
    assert planned(one, SOURCE, SOURCE.replace("return x < LIMIT", "return (x < LIMIT)")) is None


def test_a_moved_line_is_found_again(tmp_path: Path) -> None:
    mutant = fault("x < LIMIT", "x <= LIMIT", "Rule.holds")
    moved = SOURCE.replace("LIMIT = 3", "LIMIT = 3\nOTHER = 4\n").replace("class Rule:", "class Rule:\n    '''Of limits.'''\n")
    place = located(mutant, written(tmp_path, moved))
    assert place and planted(mutant, moved, place.at) == moved.replace("x < LIMIT", "x <= LIMIT")


def test_equal_lines_are_told_apart_by_their_function(tmp_path: Path) -> None:
    """The second ``return False`` is still the second after the functions changed places."""
    late = SOURCE.rindex("return False")
    mutant = replace(fault(SOURCE[late:], SOURCE[late:].replace("False", "True", 1), "Rule.fails"))
    assert (mutant.nth, mutant.of, mutant.removed, mutant.added) == (0, 1, "return False", "return True")
    head, holds, fails = SOURCE.partition("    def holds")[0], *SOURCE.split("class Rule:\n")[1].split("\n\n")
    swapped = f"{head}{fails}\n{holds}\n"
    place = located(mutant, written(tmp_path, swapped))
    assert place and place.at == swapped[: swapped.index("return False")].count("\n")


def test_a_function_that_moved_to_another_file_is_found_and_a_line_that_is_gone_is_not(tmp_path: Path) -> None:
    mutant = fault("x < LIMIT", "x <= LIMIT", "Rule.holds")
    written(tmp_path, "LIMIT = 3\n")
    assert located(mutant, written(tmp_path, SOURCE, "guieval/metrics/other.py")) == Place("guieval/metrics/other.py", 9)
    written(tmp_path, SOURCE, "guieval/metrics/third.py")
    assert located(mutant, tmp_path) is None  # either may be meant
    gone = written(tmp_path / "gone", SOURCE.replace("x < LIMIT", "LIMIT > x"))
    assert located(mutant, gone) is None


def coverage(path: Path, lines: dict[str, list[int]]) -> Path:
    """A data file of coverage.py of one source file: the lines that each context ran."""
    with sqlite3.connect(path) as data:
        data.executescript("create table file (id, path); create table context (id, context);")
        data.execute("create table line_bits (file_id, context_id, numbits blob)")
        data.execute("insert into file values (1, ?)", (f"/anywhere/{FILE}",))
        for number, (name, ran) in enumerate(lines.items()):
            bits = sum(1 << line for line in ran)
            data.execute("insert into context values (?, ?)", (number, name))
            data.execute("insert into line_bits values (1, ?, ?)", (number, bits.to_bytes(8, "little")))
    return path


def test_the_tests_that_can_notice(tmp_path: Path) -> None:
    """Line 10 is in a function; line 3 runs at import, so that every user of the module counts."""
    written(tmp_path, SOURCE)
    for name in ("tests/metrics/test_rule.py", "tests/cli/test_all.py"):
        written(tmp_path, "", name)
    ran = {"import": [3, 6, 7, 12], "import|tests/metrics/test_rule.py": [8, 10, 13, 15]}
    ran |= {"tests/cli/test_all.py": [3, 6, 13, 14]}
    found = read_coverage(coverage(tmp_path / "data", ran | {"tests/test_removed.py": [10]}))
    assert covering(found, tmp_path, Place(FILE, 9)) == {"tests/metrics/test_rule.py"}
    assert covering(found, tmp_path, Place(FILE, 2)) == {"tests/metrics/test_rule.py", "tests/cli/test_all.py"}
    assert covering(found, tmp_path, Place(FILE, 13)) == {"tests/cli/test_all.py"}
    assert covering(found, tmp_path, Place(FILE, 8)) == {"tests/metrics/test_rule.py", "tests/cli/test_all.py"}  # none is known


def test_the_table_counts_what_the_old_suite_killed() -> None:
    mutants = [replace(plan(each), id=str(place)) for place, each in enumerate(candidates()[:4])]
    old = {"0": {"result": "killed", "by": "tests/a.py::t"}, "1": {"result": "timeout"}, "2": {"result": "survived"}}
    new = {"0": {"result": "survived"}, "1": {"result": "killed"}, "2": {"result": "killed"}, "3": {"result": "uncovered"}}
    text = table(mutants, [old, new])
    assert "| metrics | 4 | 2 | 2 |" in text
    assert "kills 1 of the 2 that the old suite kills (50.0%)" in text
    assert "- 0, guieval/metrics/0.py:0 `a` -> `b`: tests/a.py::t" in text and "- uncovered: 3," in text


@pytest.mark.parametrize("mutant", read()[::20], ids=lambda mutant: mutant.id)
def test_the_kept_list_reads(mutant: Mutant) -> None:
    assert mutant.removed != mutant.added and mutant.nth < mutant.of
