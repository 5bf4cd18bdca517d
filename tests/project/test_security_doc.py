"""docs/security.md and docs/reliability.md promise only what a test shows: every test that they name exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.fuzz.targets import TARGETS

PAGE = (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")


def test_every_test_that_the_pages_name_exists() -> None:
    text = PAGE + (REPOSITORY / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/\S+\.py)::(test_\w+)`", text))
    assert len(named) > 60
    for file, test in named:
        tree = ast.parse((REPOSITORY / file).read_text(encoding="utf-8"))
        assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{file} has no {test}"


def test_every_promise_about_what_comes_from_outside_names_its_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 8 and all("::test_" in row for row in rows)


def test_the_page_names_every_model_whose_code_is_run() -> None:
    sentence = PAGE[PAGE.index("`trust_remote_code` runs") : PAGE.index("and off for all others")]
    files = {path.stem for path in (REPOSITORY / "configs" / "models").glob("*.yaml") if trusts(path)}
    assert {name for name in re.findall(r"`(\w+)`", sentence) if name != "trust_remote_code"} == files


def trusts(path: Path) -> bool:
    lines = path.read_text(encoding="utf-8").splitlines()
    return any(re.search(r"trust.remote.code", line.partition("#")[0]) for line in lines)


def test_the_page_lists_every_target_of_the_fuzzer() -> None:
    listed = PAGE[PAGE.index("one target per boundary: ") :].partition(".")[0].partition(": ")[2]
    names = re.split(r",\s+|\s+and\s+", listed)
    assert sorted(" ".join(name.split()) for name in names) == sorted(name.replace("-", " ") for name in TARGETS)
    assert "FUZZ ?= --cases 2000\n" in (REPOSITORY / "Makefile").read_text(encoding="utf-8")
