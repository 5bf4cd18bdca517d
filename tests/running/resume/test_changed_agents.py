"""A run goes on only with the prompts, the options in effect and the rules for replies that its manifest states."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from guieval.errors import DataError, UsageError
from guieval.history import HistoryEntry
from guieval.journal import MANIFEST
from guieval.models import ABCModel, Message, ModelConfig, ModelInput
from guieval.models.written_prompts import example_requests
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import build_model, list_models, load_model
from guieval.running.resume.identity import digest
from guieval.running.runner.runner import Runner
from guieval.steps import StepTaskModel
from tests.checkpoints import of_each_kind
from tests.command_line import CommandLine
from tests.json_values import read_json
from tests.rows import every_row
from tests.running.scripted_runs import scripted_runner
from tests.scripted import ACTIONS, ScriptedEngine, ScriptedModel, make_episode, reply_with

EPISODES = [make_episode("1", ACTIONS[:3])]
KEY = "sk-ant-0123456789abcdef"
CLAUDE = "claude-opus-5-5-computer"


class Reworded(ScriptedModel):
    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        messages = super().prepare_input(task, history).messages
        return ModelInput((Message("system", ("Be quick.",)), *messages))


class Refusing(ScriptedModel):
    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if task.setting == "grounding":
            raise DataError("no grounding here")
        return super().prepare_input(task, history)


class Looking(ScriptedModel):
    looks, rule = 3, "the first is scored"

    @property
    def resolved_options(self) -> Mapping[str, Any]:
        return {"looks": self.looks}

    @property
    def reply_rules(self) -> Mapping[str, str]:
        return {"several actions": self.rule}


class LookingLonger(Looking):
    looks = 5


class ScoringTheLast(Looking):
    rule = "the last is scored"


def scripted(kind: type[ABCModel], directory: Path, config: ModelConfig | None = None) -> Runner:
    model = kind(config or ModelConfig(name="scripted", adapter="scripted"))
    return scripted_runner(directory, EPISODES, ScriptedEngine(lambda request: reply_with(request.task.action)), model=model)


@every_row(
    ("kind", "other", "message"),
    [
        (ScriptedModel, Reworded, r"differs in prompts fingerprint \(was '[0-9a-f]{16}', now '[0-9a-f]{16}'\)"),
        (Refusing, ScriptedModel, "prompts fingerprint"),  # what an adapter refuses is part of what it does
        (Looking, LookingLonger, r"it differs in the option 'looks' \(was 3, now 5\)"),
        (Looking, ScoringTheLast, r"the rule 'several actions' \(was 'the first is scored', now 'the last is scored'\)"),
    ],
)
def test_a_change_is_named_on_resume(kind: type[ABCModel], other: type[ABCModel], message: str, tmp_path: Path) -> None:
    scripted(kind, tmp_path).execute(resume=False)
    scripted(kind, tmp_path).execute(resume=True)
    with pytest.raises(UsageError, match=message):
        scripted(other, tmp_path).execute(resume=True)


@every_row(("kind", "other", "names"), [(ScriptedModel, Reworded, ["prompts"]), (Looking, LookingLonger, ["options", "rules"])])
def test_a_run_from_before_these_goes_on(kind: type[ABCModel], other: type[ABCModel], names: list[str], tmp_path: Path) -> None:
    scripted(kind, tmp_path).execute(resume=False)
    manifest = read_json((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({name: value for name, value in manifest.items() if name not in names}))
    scripted(other, tmp_path).execute(resume=True)


def test_documentation_in_a_checkpoints_file_may_change(tmp_path: Path) -> None:
    scripted(ScriptedModel, tmp_path).execute(resume=False)
    facts: dict[str, Any] = {"frame": "0-1000", "context_length": 32768, "licence": "MIT", "notes": "x"}
    changed = ModelConfig(name="scripted", adapter="scripted", vllm={"limit-mm-per-prompt": {"image": 5}}, **facts)
    scripted(ScriptedModel, tmp_path, changed).execute(resume=True)


@pytest.mark.parametrize("names", [of_each_kind, pytest.param(list_models, marks=pytest.mark.full)])
def test_the_same_adapter_asks_in_the_same_words(names: Callable[[], Sequence[str]]) -> None:
    for name in names():
        requests = example_requests(load_model(name))
        assert [setting for setting, *_ in requests] == ["high", "low", "grounding"], name
        assert digest(requests) == digest(example_requests(load_model(name))), name


@pytest.mark.parametrize("option", [{"prompt": "computer"}, {"max_pixels": 200_000}, {"max_images": 1}])
def test_whatever_reaches_the_model_is_in_it(option: dict[str, object]) -> None:
    config = ModelConfig(name="m", adapter="ui_tars_1_5")
    changed = config.model_copy(update={"options": option})
    assert digest(example_requests(build_model(config))) != digest(example_requests(build_model(changed)))


def test_a_hosted_run_names_its_rules_and_key(tmp_path: Path, guieval: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    words: list[str | Path] = ["--model", CLAUDE, "--bench", "demo", "--data", tmp_path / "demo", "--limit", "1", "--out"]
    words.append(tmp_path / "run")
    settings = MockSettings(policy="fixed", reply="Done.", api_key=KEY, served_models=("claude-opus-5-5",))
    with MockServer(settings) as server:
        guieval("run", *words, "--base-url", server.base_url, "--quiet")
        manifest = read_json((tmp_path / "run" / MANIFEST).read_text())
        assert manifest["options"]["looks"] == 3 and manifest["options"]["tool"] == "computer_toolset_20260801"
        rules = {"several actions": "the first is scored", "looks before the first action": "answered, up to option looks"}
        assert manifest["rules"] == rules
        assert manifest["config"]["server"]["api_key_env"] == "ANTHROPIC_API_KEY"
        resumed: list[str | Path] = ["run", "--resume", tmp_path / "run", "--base-url", server.base_url]
        refused = guieval.sentence(*resumed, "--set", "options.looks=5")
        assert "options.looks (was None, now 5)" in refused and "the option 'looks'" not in refused, "each change once"
        guieval(*resumed, "--quiet")
        other: list[str | Path] = [*words[:-1], tmp_path / "other", "--base-url", server.base_url]
        held = guieval.sentence("run", *other, "--set", f"sampling.user={KEY}")
    assert "holds the key that the environment variable ANTHROPIC_API_KEY holds" in held
