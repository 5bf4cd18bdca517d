"""``guieval dev new-adapter``: what it writes works, from a file and from an installed package, and hides nothing."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
from difflib import ndiff
from pathlib import Path

import pytest

from guieval.conformance import check_adapter
from guieval.conformance.checkpoint_folder import CheckpointFolder
from guieval.conformance.commands.new_adapter import adapter_source, source_of_test
from guieval.conformance.published import published_groups
from guieval.models.written_prompts import example_episode
from guieval.registry import adapter_class, load_model
from tests.command_line import CommandLine
from tests.model_adapters.test_golden_prompts import cases
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


ADAPTERS = Path(inspect.getfile(adapter_class("holo2"))).parent
PROCESSOR = {"patch_size": 16, "merge_size": 2, "size": {"shortest_edge": 65_536, "longest_edge": 16_777_216}}
BY_HAND = Path(__file__).parent / "by_hand"
"""What the command wrote for three shipped families from their files alone, with what was missing added by hand."""


def checkpoint_files(folder: Path, family: str, config: str, template: str) -> Path:
    for file in (ADAPTERS / "prompts").glob(f"{family}-*.txt"):
        shutil.copy(file, folder)
    (folder / "config.json").write_text(json.dumps({"model_type": config}))
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    (folder / "chat_template.jinja").write_text(template)
    return folder


@every_row(
    ("family", "checkpoint", "config", "template", "gaps", "most"),
    [
        ("holo2", "holo2-4b", "qwen3_vl", "{% if thinking %}", 3, 7),
        ("openmobile_2", "openmobile-2-27b", "qwen3_5", "{% if enable_thinking %}", 5, 10),
        ("fara1_5", "fara1.5-9b", "qwen3_5", "{% if enable_thinking %}", 14, 27),
    ],
)
def test_a_family_is_written_from_its_files_and_finished_by_hand(
    tmp_path: Path, guieval: CommandLine, family: str, checkpoint: str, config: str, template: str, gaps: int, most: int
) -> None:
    """What is written conforms, and with a few lines by hand it requests and reads as the shipped adapter does."""
    written = tmp_path / f"other_{family}.py"
    files = checkpoint_files(tmp_path, family, config, template)
    done = guieval("dev", "new-adapter", written.stem, "--from", files, "--out", tmp_path)
    assert done.code == 0 and f"{gaps} things are not in the files" in done.out, done.out + done.err
    first = example_episode().steps[0]
    assert first.instruction in load_model("my-model", adapter=str(written)).prepare_input(first, ()).text
    assert check_adapter(load_model("my-model", adapter=str(written))) == []
    begun, finished = written.read_text(), (BY_HAND / f"{written.stem}.txt").read_text()
    assert sum(line.startswith("+ ") and line != "+ " for line in ndiff(begun.splitlines(), finished.splitlines())) == most
    written.write_text(finished)
    (tmp_path / "responses").mkdir()
    shutil.copy(
        Path(inspect.getfile(adapter_class(family))).parent / f"responses/{family}.yaml",
        tmp_path / f"responses/other_{family}.yaml",
    )
    mine = load_model(checkpoint, adapter=str(written))
    assert dict(cases(mine)) == dict(cases(load_model(checkpoint)))
    assert published_groups(mine) and check_adapter(mine) == []


def test_every_shipped_prompt_gives_an_adapter_that_conforms(tmp_path: Path) -> None:
    """Whatever its form of calls, its placeholders and its frame."""
    wrong = []
    for file in sorted((ADAPTERS / "prompts").glob("*.txt")):
        folder = tmp_path / file.stem
        (folder / "prompts").mkdir(parents=True)
        for place in (folder, folder / "prompts"):
            shutil.copy(file, place)
        written = folder / "agent.py"
        written.write_text(adapter_source("agent", CheckpointFolder.read(folder)))
        wrong += [f"{file.stem}: {each}" for each in check_adapter(load_model("my-model", adapter=str(written)))]
    assert not wrong


@every_row(
    ("files", "message"),
    [
        ({}, "has no prompt: put the makers' system and user prompts in it"),
        ({"a.txt": "a", "b.txt": "b"}, "has several prompts for one turn: a.txt, b.txt"),
        ({"a.txt": "a", "config.json": "{"}, "config.json' is not JSON"),
    ],
)
def test_files_that_do_not_do_are_one_sentence(
    files: dict[str, str], message: str, tmp_path: Path, guieval: CommandLine
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert message in guieval.sentence("dev", "new-adapter", "wide_agent", "--from", tmp_path, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
