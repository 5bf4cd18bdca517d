"""docs/security.md promises only what a test shows: every test that it names exists."""

from __future__ import annotations

import ast
import re

from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")


def test_every_test_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`(tests/\S+\.py)::(test_\w+)`", PAGE))
    assert len(named) > 15
    for file, test in named:
        tree = ast.parse((REPOSITORY / file).read_text(encoding="utf-8"))
        assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{file} has no {test}"


def test_every_promise_about_what_comes_from_outside_names_its_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 8 and all("::test_" in row for row in rows)
