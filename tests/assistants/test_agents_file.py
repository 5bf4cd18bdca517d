"""``AGENTS.md``: what it names exists, it is short, and ``CLAUDE.md`` is no second copy."""

from __future__ import annotations

import re

from tests.conftest import REPOSITORY
from tests.rows import every_row

AGENTS = REPOSITORY / "AGENTS.md"
TEXT = AGENTS.read_text(encoding="utf-8") if AGENTS.is_file() else ""
PATHS = sorted(set(re.findall(r"`((?:[\w.-]+/)+[\w.-]*|[A-Z]+\.md)`", TEXT)))
TARGETS = sorted(set(re.findall(r"^    make ([a-z-]+)", TEXT, re.MULTILINE)))


@every_row("path", PATHS)
def test_every_path_that_it_names_exists(path: str) -> None:
    assert (REPOSITORY / path).exists()


@every_row("target", TARGETS)
def test_every_target_that_it_names_is_in_the_makefile(target: str) -> None:
    assert re.search(rf"^{target}:", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def test_every_other_program_that_it_names_is_one_of_the_development_tools() -> None:
    dev = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8").partition("\ndev = [")[2].partition("]\ndev-all")[0]
    programs = set(re.findall(r"\.venv/bin/(?:python -m )?([a-z]+)", TEXT))
    assert programs == {"pytest", "ruff", "mypy"} and all(f'"{name}>=' in dev for name in programs)


def test_it_is_short_and_there_is_no_second_copy() -> None:
    assert len(PATHS) > 15 and len(TEXT.splitlines()) <= 60
    assert (REPOSITORY / "CLAUDE.md").read_text(encoding="utf-8") == "@AGENTS.md\n"
