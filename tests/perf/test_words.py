"""The prose of the code keeps to the goals of perf/words.py."""

from __future__ import annotations

from pathlib import Path

from perf.words import GOALS, all_prose, prose, rates


def test_no_word_is_above_its_goal() -> None:
    found = rates(all_prose())
    assert {word: round(found[word], 2) for word, goal in GOALS.items() if found[word] > goal} == {}


def test_docstrings_comments_and_messages_are_prose_and_code_is_not() -> None:
    source = '"""Beside it."""\nwhere = "holds"  # lies here\nraise ValueError(f"the folder {where} stands beside it")\n'
    assert [each.text for each in prose(source, Path("x.py"))] == ["lies here", "the folder 0 stands beside it"]
    assert rates(prose(source, Path("x.py")))["beside"] == 1000 / 7
