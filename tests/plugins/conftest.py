"""What the tests of plug-ins share: a run of the demo with recorded responses of every kind, and its verdicts."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import guieval
from guieval.playground.mock_server import MockServer, MockSettings, wrong_action
from guieval.plugins.harness_steps import HarnessSteps
from guieval.reports.opened import OpenedOnlineRun
from guieval.steps import StepRecord

NEED = ("evalscope", "inspect_ai", "lmms_eval", "verifiers")
collect_ignore = [f"test_{each.removesuffix('_ai')}.py" for each in NEED if not importlib.util.find_spec(each)]
"""Without the harness there is nothing to test: `make test-plugins` has all of them."""

MODEL = "ui-tars-7b-sft"
EPISODES = 10
PROTOCOLS = ("guievalkit", "odyssey-v1")
"""The demo's own protocol, and one under which some responses have another verdict."""


@dataclass(frozen=True)
class RecordedRun:
    """A run, the settings with which a harness has the same steps, and the responses by step."""

    directory: Path
    settings: Mapping[str, Any]
    replies: Mapping[str, str]

    def verdicts(self, protocol: str | None = None) -> dict[str, tuple[str, bool]]:
        """The verdict of each step that was run, and whether the type is right, as ``guieval score`` has them."""
        run = guieval.open_run(self.directory)
        assert not isinstance(run, OpenedOnlineRun)
        scored = [step for step in run.walk(protocol) if step.record is not None]
        return {str(step.task.key): (step.outcomes[0].verdict, step.outcomes[0].type_match) for step in scored}

    def metrics(self, protocol: str | None = None) -> dict[str, float | None]:
        run = guieval.open_run(self.directory)
        assert not isinstance(run, OpenedOnlineRun)
        return {name: each.value for name, each in run.metrics(protocol).summary.all_metrics.items()}

    def records(self) -> list[StepRecord]:
        run = guieval.open_run(self.directory)
        assert not isinstance(run, OpenedOnlineRun)
        return [step.record for step in run.walk() if step.record is not None]


RecordRun = Callable[[str], RecordedRun]


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> RecordRun:
    """A run in a mode, on the screens of one folder."""
    folder = tmp_path_factory.mktemp("recorded")
    options: dict[str, Any] = {"bench": "demo", "bench_options": {"episodes": EPISODES}, "data": str(folder / "screens")}
    (folder / "screens").mkdir()

    @cache
    def replies() -> dict[str, str]:
        steps = HarnessSteps({**options, "model": MODEL})
        return {key: _reply(steps, key, number) for number, key in enumerate(steps.keys)}

    @cache
    def record(mode: str) -> RecordedRun:
        script = folder / "script.jsonl"
        script.write_text("".join(json.dumps({"key": key, "reply": text}) + "\n" for key, text in replies().items()))
        with MockServer(MockSettings(policy="script", script=script)) as server:
            settings: dict[str, Any] = {**options, "mode": mode}
            guieval.run(**settings, model=MODEL, base_url=server.base_url, out=folder / mode, progress=False)
        return RecordedRun(folder / mode, settings, replies())

    return record


def _reply(steps: HarnessSteps, key: str, number: int) -> str:
    """A response in the model's format: of every ten one has another action, one no action and one no known action."""
    task, model = steps.task(key), steps.run.model
    if number % 10 == 4:
        return "Thought: I do not know.\nAction: dance()"
    if number % 10 == 5:
        return "Action: hotkey(key='ctrl c')"
    right = next((each for each in (task.action, *task.alternatives) if each in model.action_space), None)
    wrong = wrong_action(task, model.action_space, 0.5)
    return model.render(task, wrong if right is None or number % 10 == 6 else right, "I act.")
