"""The README and the pages on Python and on security say what is true."""

from __future__ import annotations

import ast
import re
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.core import TyperCommand, TyperGroup

import guieval
from guieval.cli import COMMANDS, GROUPS, load
from guieval.conformance.commands.new_adapter import adapter_source
from guieval.reports.opened import OpenedRun
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY
from tests.fuzz.targets import TARGETS

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


def declared() -> dict[str, str]:
    """The names that the package imports for type checkers, each with its module."""
    block, _ = [node for node in ast.parse(Path(guieval.__file__).read_text("utf-8")).body if isinstance(node, ast.If)]
    return {alias.name: node.module or "" for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}


def test_the_public_names_are_those_declared_for_type_checkers() -> None:
    assert declared().keys() == set(guieval.__all__) == set(dir(guieval))


def test_each_name_is_that_of_its_module() -> None:
    for name, module in declared().items():
        assert getattr(guieval, name) is getattr(import_module(module), name), name


PAGE = (REPOSITORY / "docs" / "python.md").read_text(encoding="utf-8")


def test_the_code_of_the_page_runs(guieval: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    agent = ["--adapter", str(REPOSITORY / "tests" / "scripted_agents.py"), "--set", "engine=local"]
    done = guieval("run", "--model", "scripted-hash", *agent, "--bench", "demo", "--limit", "2", "--out", "runs/first")
    assert done.code == 0
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 7 and isinstance(names["run"], OpenedRun) and len(names["wrong"]) > 0
    assert Image.open("step.png").size == names["step"].task.screenshot_size
    columns = {name for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert columns | {"sample"} == set(names["steps"].columns)


SECURITY = (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")


def test_every_test_that_the_pages_name_exists() -> None:
    text = SECURITY + (REPOSITORY / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/\S+\.py)::(test_\w+)`", text))
    assert len(named) > 60
    for file, test in named:
        tree = ast.parse((REPOSITORY / file).read_text(encoding="utf-8"))
        assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{file} has no {test}"


def test_every_promise_about_what_comes_from_outside_names_its_test() -> None:
    rows = [line for line in SECURITY.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 8 and all("::test_" in row for row in rows)


def test_the_page_names_every_model_whose_code_is_run() -> None:
    sentence = SECURITY[SECURITY.index("`trust_remote_code` runs") : SECURITY.index("and off for all others")]
    files = {path.stem for path in (REPOSITORY / "configs" / "models").glob("*.yaml") if trusts(path)}
    assert {name for name in re.findall(r"`(\w+)`", sentence) if name != "trust_remote_code"} == files


def trusts(path: Path) -> bool:
    lines = path.read_text(encoding="utf-8").splitlines()
    return any(re.search(r"trust.remote.code", line.partition("#")[0]) for line in lines)


def test_the_page_lists_every_target_of_the_fuzzer() -> None:
    listed = SECURITY[SECURITY.index("one target per boundary: ") :].partition(".")[0].partition(": ")[2]
    names = re.split(r",\s+|\s+and\s+", listed)
    assert sorted(" ".join(name.split()) for name in names) == sorted(name.replace("-", " ") for name in TARGETS)
    assert "FUZZ ?= --cases 2000\n" in (REPOSITORY / "Makefile").read_text(encoding="utf-8")
