"""The README as a user reads it: its adapter is complete, short and works as written, and its commands exist."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
from typer.core import TyperCommand, TyperGroup

from guieval.cli import COMMANDS, GROUPS, load
from guieval.conformance.commands.new_adapter import adapter_source
from tests.conftest import REPOSITORY

ELSEWHERE = ("tests/", "CHANGELOG.md")
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def test_the_adapter_is_the_file_that_new_adapter_writes_and_is_short() -> None:
    """tests/models tries that file with the conformance suite, tests/docs as this page runs it."""
    found = re.search(r"<!-- file my_agent.py -->\n```python\n(.*?)```", README, re.DOTALL)
    assert found is not None and found[1] == adapter_source("my_agent") and found[1].count("\n") < 40


def test_the_reward_needs_no_trainer(capsys: pytest.CaptureFixture[str]) -> None:
    """The reference gets the whole reward, because it is inside the target."""
    page = (REPOSITORY / "docs" / "rewards.md").read_text(encoding="utf-8")
    [lines] = re.findall(r"```python\n(from guieval import load_benchmark\n.*?scored.*?)```", page, re.DOTALL)[:1]
    names: dict[str, Any] = {}
    exec(lines, names)
    assert capsys.readouterr().out.startswith("2.0 {'format': 1.0, 'type': 1.0, 'params': 1.0} inside a target")
    assert names["scorer"].score(names["task"], "I do not know").reward.total == 0.0


def test_the_readme_is_short_and_has_one_picture() -> None:
    assert len(README.split()) <= 900 and README.count("![") == 1


def options_of(command: TyperCommand | TyperGroup) -> set[str]:
    inner = command.commands.values() if isinstance(command, TyperGroup) else ()
    return {name for each in (command, *inner) for option in each.params for name in (*option.opts, *option.secondary_opts)}


def test_every_command_and_option_that_is_named_anywhere_exists() -> None:
    """In pages, presets, notebooks and code: what is between backquotes, and the lines of commands."""
    files = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.split()
    named = re.compile(rf"(?:`|^(?:    |# +))guieval ((?:(?:{'|'.join(GROUPS)}) )?[a-z][a-z-]*)((?: [^`\n]*)?)", re.MULTILINE)
    known = {name: {"--help", *options_of(load(name))} for name in COMMANDS} | {group: {"--help"} for group in GROUPS}
    found = []
    for name in (each for each in files if each.endswith((".md", ".py", ".yaml", ".ipynb")) and not each.startswith(ELSEWHERE)):
        lines = re.sub(r"\\\n\s*(?:# +)?", " ", (REPOSITORY / name).read_text(encoding="utf-8"))
        found += [(name, command, more) for command, more in named.findall(lines)]
    assert len(found) > 500
    assert [each for each in found if each[1] not in known] == []
    given = [(*each, option) for each in found for option in re.findall(r" (--[a-z][a-z-]+)", each[2].partition(" | ")[0])]
    assert [each for each in given if each[3] not in known[each[1]]] == []
