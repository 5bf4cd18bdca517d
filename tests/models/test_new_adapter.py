"""``guieval dev new-adapter``: what it writes works, from a file and from an installed package, and hides nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from guieval.conformance import check_adapter
from guieval.conformance.commands.new_adapter import adapter_source, source_of_test
from guieval.registry import load_model
from tests.command_line import CommandLine
from tests.rows import every_row


def program(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "guieval", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env={**os.environ, **environment})


def test_what_it_writes_passes_its_own_test(tmp_path: Path) -> None:
    """In a folder that is not there yet, whose name has to be quoted in the commands it recommends."""
    done = program("dev", "new-adapter", "wide_agent", "--out", "a folder", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "a folder"
    assert sorted(file.name for file in folder.iterdir()) == ["test_wide_agent.py", "wide_agent.py"]
    assert "next: python -m pytest 'a folder/test_wide_agent.py'" in done.stdout
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_wide_agent.py"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert tested.returncode == 0, tested.stdout
    assert "13 passed" in tested.stdout
    checked = program("dev", "check", "a folder/wide_agent.py", cwd=tmp_path)
    assert (checked.returncode, checked.stdout.splitlines()[-1]) == (0, "no problem found"), checked.stdout


def test_what_it_writes_is_found_in_an_installed_package(tmp_path: Path) -> None:
    """As pip leaves it: a module, and a distribution that names it as an entry point."""
    assert program("dev", "new-adapter", "wide_agent", cwd=tmp_path).returncode == 0
    about = tmp_path / "wide_agent-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: wide-agent\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[guieval.model_adapters]\nwide = wide_agent:WideAgent\n")
    checked = program("dev", "check", "wide", cwd=tmp_path.parent, PYTHONPATH=str(tmp_path))
    assert (checked.returncode, checked.stdout) == (0, "adapter wide: conforms\nno problem found\n"), checked.stderr


@pytest.mark.parametrize("there", ["wide_agent.py", "test_wide_agent.py"])
def test_nothing_is_overwritten(there: str, tmp_path: Path, guieval: CommandLine) -> None:
    (tmp_path / there).write_text("mine")
    assert "exists already, and is not overwritten" in guieval.sentence("dev", "new-adapter", "wide_agent", "--out", tmp_path)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [(there, "mine")]


@every_row(
    ("name", "message"),
    [
        (
            "My-Agent",
            "'My-Agent' is not a name for a Python module: use small letters, digits and underscores, e.g. 'my_agent'",
        ),
        ("3d", "'3d' is not a name for a Python module: use small letters, digits and underscores\n"),
        *(("../agent", "e.g. 'agent'"), ("class", "is not a name for a Python module"), ("_agent", "e.g. 'agent'")),
        ("test_agent", "is the name of a test; call the family 'agent'"),
        ("json", "a module called 'json' would hide another of that name; call it 'json_agent'"),
        *(("numpy", "call it 'numpy_agent'"), ("qwen3_vl", "there is a model family 'qwen3_vl' already")),
    ],
)
def test_a_name_that_cannot_be_is_one_sentence(name: str, message: str, tmp_path: Path, guieval: CommandLine) -> None:
    assert message in guieval.sentence("dev", "new-adapter", name, "--out", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_package_is_no_place_for_it(tmp_path: Path, guieval: CommandLine) -> None:
    (tmp_path / "__init__.py").touch()
    assert "is a Python package" in guieval.sentence("dev", "new-adapter", "wide_agent", "--out", tmp_path)


@every_row("name", ["click", "type", "parse_error", "action_space", "a", "x_2_y"])
def test_the_class_is_named_after_the_family_and_hides_nothing(name: str, tmp_path: Path) -> None:
    """Some families' names in capitals are names that the file imports."""
    file = tmp_path / f"{name}.py"
    file.write_text(adapter_source(name))
    assert check_adapter(load_model("my-model", adapter=str(file))) == []
    assert "my_agent" not in adapter_source(name) + source_of_test(name)
