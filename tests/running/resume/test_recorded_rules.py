"""A run's manifest states the options in effect and the rules for replies, and a run goes on only with the same ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from guieval.errors import UsageError
from guieval.journal import MANIFEST
from guieval.models import ModelConfig
from guieval.running.config import RunConfig
from guieval.running.runner import Runner
from guieval.testing.mock_server import MockServer, MockSettings
from tests.command_line import CommandLine
from tests.scripted import ACTIONS, ListBenchmark, ScriptedEngine, ScriptedModel, make_episode, reply_with, runner_of

EPISODES = [make_episode("1", ACTIONS[:3])]
CLAUDE = "claude-opus-5-5-computer"


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


def scripted(kind: type[ScriptedModel], directory: Path) -> Runner:
    model = kind(ModelConfig(name="scripted", adapter="scripted"))
    settings = RunConfig(model="scripted", bench="scripted")
    engine = ScriptedEngine(lambda request: reply_with(request.task.action))
    return runner_of(settings, directory, ListBenchmark(EPISODES), model, engine, 4)


def test_a_changed_default_or_rule_is_named_on_resume(tmp_path: Path) -> None:
    scripted(Looking, tmp_path).execute(resume=False)
    scripted(Looking, tmp_path).execute(resume=True)
    with pytest.raises(UsageError, match=r"it differs in the option 'looks' \(was 3, now 5\)"):
        scripted(LookingLonger, tmp_path).execute(resume=True)
    rule = r"it differs in the rule 'several actions' \(was 'the first is scored', now 'the last is scored'\)"
    with pytest.raises(UsageError, match=rule):
        scripted(ScoringTheLast, tmp_path).execute(resume=True)


def test_a_run_from_before_they_were_recorded_goes_on(tmp_path: Path) -> None:
    scripted(Looking, tmp_path).execute(resume=False)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    del manifest["options"], manifest["rules"]
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    scripted(LookingLonger, tmp_path).execute(resume=True)


def test_the_manifest_of_a_hosted_run_names_both_rules_and_its_own_key(
    tmp_path: Path, guieval: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef")
    words: list[str | Path] = ["--model", CLAUDE, "--bench", "demo", "--data", tmp_path / "demo", "--limit", "1", "--out"]
    words.append(tmp_path / "run")
    settings = MockSettings(
        policy="fixed", reply="Done.", api_key="sk-ant-0123456789abcdef", served_models=("claude-opus-5-5",)
    )
    with MockServer(settings) as server:
        guieval("run", *words, "--base-url", server.base_url, "--quiet")
        manifest = json.loads((tmp_path / "run" / MANIFEST).read_text())
        assert manifest["options"]["looks"] == 3 and manifest["options"]["tool"] == "computer_toolset_20260801"
        assert manifest["rules"] == {
            "several actions": "the first is scored",
            "looks before the first action": "answered, up to option looks",
        }
        assert manifest["config"]["api_key_env"] == "ANTHROPIC_API_KEY"
        resumed: list[str | Path] = ["run", "--resume", tmp_path / "run", "--base-url", server.base_url]
        refused = guieval.sentence(*resumed, "--set", "options.looks=5")
        assert "options.looks (was None, now 5)" in refused and "the option 'looks'" not in refused, "each change once"
        guieval(*resumed, "--quiet")
        other: list[str | Path] = [*words[:-1], tmp_path / "other", "--base-url", server.base_url]
        held = guieval.sentence("run", *other, "--set", "sampling.user=sk-ant-0123456789abcdef")
    assert "holds the key that the environment variable ANTHROPIC_API_KEY holds" in held
