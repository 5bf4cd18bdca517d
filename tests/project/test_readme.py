"""The README as a user reads it: its adapter is complete, short and works as written, and its commands exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from guieval.cli import GROUPS
from guieval.cli.models.new_adapter import adapter_source
from guieval.conformance import check_adapter
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark, load_model
from guieval.scoring.score import evaluate_run
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    found = re.search(r"<!-- file my_agent.py -->\n```python\n(.*?)```", README, re.DOTALL)
    assert found is not None
    source = found.group(1)
    assert source.count("\n") < 40, "the example has to stay under 40 lines"
    path = tmp_path / "my_agent.py"
    path.write_text(source)
    return path


def test_the_adapter_is_the_file_that_new_adapter_writes(adapter: Path) -> None:
    assert adapter.read_text() == adapter_source("my_agent")


def test_the_adapter_passes_the_conformance_suite(adapter: Path) -> None:
    assert check_adapter(load_model("my-model", adapter=str(adapter))) == []


def test_the_adapter_runs_from_its_file(adapter: Path, tmp_path: Path, guieval: CommandLine) -> None:
    """Right wherever it can say the reference: the exact matches of the run are the steps inside its action space."""
    demo = load_benchmark("demo", tmp_path / "demo", episodes=4, seed=2)
    model = load_model("my-model", adapter=str(adapter))
    sayable = sum(
        any(action in model.action_space for action in (task.action, *task.alternatives))
        for episode in demo
        for task in episode.steps
    )
    settings = MockSettings(model="my-model", adapter=str(adapter), policy="reference", served_models=("my-model",))
    with MockServer(settings, benchmark=demo) as server:
        command = f"run --model my-model --adapter {adapter} --bench demo --data {tmp_path / 'demo'} --out {tmp_path / 'run'}"
        command += f" --set bench_options.episodes=4 --set bench_options.seed=2 --base-url {server.base_url}"
        done = guieval(*command.split())
    assert done.code == 0, done.err
    assert evaluate_run(tmp_path / "run").summary.exact_match.count == sayable > 0


def test_the_reward_needs_no_trainer(capsys: pytest.CaptureFixture[str]) -> None:
    """The reference gets the whole reward, because it is inside the target."""
    page = (REPOSITORY / "docs" / "rewards.md").read_text(encoding="utf-8")
    [lines] = re.findall(r"```python\n(from guieval import load_benchmark\n.*?scored.*?)```", page, re.DOTALL)[:1]
    names: dict[str, Any] = {}
    exec(lines, names)
    assert capsys.readouterr().out.startswith("2.0 {'format': 1.0, 'type': 1.0, 'params': 1.0} inside a target")
    assert names["scorer"].score(names["task"], "I do not know").reward.total == 0.0


def test_the_readme_is_short_and_its_commands_and_options_exist(guieval: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the lines of code and between backquotes; ``tests/docs`` runs the lines."""
    assert len(README.split()) <= 900 and README.count("![") == 1
    code = [*re.findall(r"^    (guieval .*)$", README, re.MULTILINE), *re.findall(r"`(guieval [^`]*)`", README)]
    named = [found for line in code if (found := re.match(rf"guieval ((?:(?:{'|'.join(GROUPS)}) )?[a-z-]+)(.*)", line))]
    assert len({found[1] for found in named}) > 15
    monkeypatch.setenv("COLUMNS", "200")
    for name in sorted({found[1] for found in named}):
        shown = guieval(*name.split(), "--help").out
        for found in named:
            if found[1] == name:
                missing = [option for option in re.findall(r"(?<!\S)--[a-z][a-z-]+", found[2]) if option not in shown]
                assert not missing, f"guieval {name} has no {missing}"
