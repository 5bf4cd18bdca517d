"""A run goes on only with the prompts it began with."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from guieval.errors import DataError, UsageError
from guieval.history import HistoryEntry
from guieval.journal import MANIFEST
from guieval.models import ABCModel, Message, ModelConfig, ModelInput
from guieval.models.written_prompts import example_requests
from guieval.registry import build_model, list_models, load_model
from guieval.running.config import RunConfig
from guieval.running.resume.identity import digest
from guieval.running.runner import Runner
from guieval.steps import StepTaskModel
from tests.checkpoints import of_each_kind
from tests.scripted import ACTIONS, ListBenchmark, ScriptedEngine, ScriptedModel, make_episode, reply_with, runner_of

EPISODES = [make_episode("1", ACTIONS[:3])]


class Reworded(ScriptedModel):
    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        messages = super().prepare_input(task, history).messages
        return ModelInput((Message("system", ("Be quick.",)), *messages))


class Refusing(ScriptedModel):
    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if task.setting == "grounding":
            raise DataError("no grounding here")
        return super().prepare_input(task, history)


def scripted(kind: type[ABCModel], directory: Path, config: ModelConfig | None = None) -> Runner:
    model = kind(config or ModelConfig(name="scripted", adapter="scripted"))
    settings = RunConfig(model="scripted", bench="scripted")
    engine = ScriptedEngine(lambda request: reply_with(request.task.action))
    return runner_of(settings, directory, ListBenchmark(EPISODES), model, engine, 4)


def test_a_reworded_prompt_is_noticed_on_resume(tmp_path: Path) -> None:
    scripted(ScriptedModel, tmp_path).execute(resume=False)
    scripted(ScriptedModel, tmp_path).execute(resume=True)
    with pytest.raises(UsageError, match=r"differs in prompts fingerprint \(was '[0-9a-f]{16}', now '[0-9a-f]{16}'\)"):
        scripted(Reworded, tmp_path).execute(resume=True)


def test_a_run_from_before_the_fingerprint_goes_on(tmp_path: Path) -> None:
    scripted(ScriptedModel, tmp_path).execute(resume=False)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    del manifest["prompts"]
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    scripted(Reworded, tmp_path).execute(resume=True)


def test_documentation_in_a_checkpoints_file_may_change(tmp_path: Path) -> None:
    scripted(ScriptedModel, tmp_path).execute(resume=False)
    result = ModelConfig(
        name="scripted",
        adapter="scripted",
        frame="0-1000",
        context_length=32768,
        vllm={"limit-mm-per-prompt": {"image": 5}},
        licence="MIT",
        notes="x",
    )
    scripted(ScriptedModel, tmp_path, result).execute(resume=True)


def test_a_setting_that_an_adapter_refuses_is_part_of_what_it_does(tmp_path: Path) -> None:
    scripted(Refusing, tmp_path).execute(resume=False)
    scripted(Refusing, tmp_path).execute(resume=True)
    with pytest.raises(UsageError, match="prompts fingerprint"):
        scripted(ScriptedModel, tmp_path).execute(resume=True)


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
