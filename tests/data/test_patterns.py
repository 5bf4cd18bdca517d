"""Patterns that come with data cost linear time, and mean what Python's do wherever both can read them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from guieval.data.patterns import matches_whole, pattern_problem
from tests.rows import every_row


@every_row("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){20}", "(a*)*b", r"(\w+\s?)*!"])
def test_no_pattern_can_hold_a_run_up(pattern: str) -> None:
    """Python's ``re`` takes longer than the universe for these; a test that hangs here has failed."""
    assert pattern_problem(pattern) is None
    assert matches_whole(pattern, "a" * 20_000 + "!") in (True, False)
    assert not matches_whole(pattern, "a" * 20_000 + "?")


@every_row("pattern", ["(?=x)y", r"(a)\1", "(?<!x)y", "[", "a{1000}{1000}", "a{99999999999999}", "\ud800"])
def test_what_cannot_be_matched_in_linear_time_is_refused(pattern: str) -> None:
    problem = pattern_problem(pattern)
    assert problem is not None and "is not a regular expression of RE2" in problem and len(problem) < 250
    assert not matches_whole(pattern, pattern)


def test_half_a_surrogate_pair_is_a_character_like_others() -> None:
    assert matches_whole("a.", "a\ud800") and not matches_whole("ab", "a\ud800")


@every_row("pattern", ["tea( shop)?", ".*周杰伦.*", "(?i)Über.*", r"\d{3}-\d+", "", "a|b", "[^x]*"])
@every_row("text", ["tea", "tea shop", "放周杰伦的歌", "übermorgen", "555-1", "", "a", "b\n", "x"])
def test_ordinary_patterns_mean_what_python_means(pattern: str, text: str) -> None:
    assert matches_whole(pattern, text) is (re.fullmatch(pattern, text) is not None)


def test_every_published_pattern_is_read(shared_data: Path) -> None:
    """OneKey's annotations are the public ones that hold patterns."""
    from guieval.registry import load_benchmark

    patterns = {
        pattern
        for episode in load_benchmark("onekey", shared_data / "zte_onekey")
        for task in episode.steps
        for pattern in json.loads(json.dumps(task.extras.get("text_patterns", [])))
    }
    assert patterns
    assert [pattern for pattern in patterns if pattern_problem(pattern)] == []
