"""Inspect itself evaluates a scripted model on recorded responses: every verdict and metric is that of `guieval score`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval as evaluate
from inspect_ai import score as score_again
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput, ModelUsage, get_model
from inspect_ai.tool import ToolChoice, ToolInfo

from guieval.plugins import inspect_tasks
from guieval.plugins.inspect_tasks import protocol_metrics, protocol_verdict
from tests.plugins.conftest import MODEL, PROTOCOLS, RecordedRun, RecordRun


class Scripted:
    """Inspect's mock model with responses in order; keeps what it was sent."""

    def __init__(self, replies: Iterable[str], stop_reason: Any = "stop") -> None:
        self._replies, self._stop_reason = iter(replies), stop_reason
        self.asked: list[list[ChatMessage]] = []
        self.configs: list[GenerateConfig] = []

    def __call__(
        self, messages: list[ChatMessage], tools: list[ToolInfo], choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        self.asked.append(messages)
        self.configs.append(config)
        output = ModelOutput.from_content("mockllm/model", next(self._replies), stop_reason=self._stop_reason)
        return output.model_copy(update={"usage": ModelUsage(input_tokens=1, output_tokens=1)})

    def evaluate(self, folder: Path, **settings: Any) -> EvalLog:
        """One sample at a time, so that the responses come to the steps that they belong to."""
        model = get_model("mockllm/model", custom_outputs=self, memoize=False)
        more: dict[str, Any] = {"display": "none", "max_samples": 1, "fail_on_error": False}
        (log,) = evaluate(inspect_tasks.steps(checkpoint=MODEL, **settings), model=model, log_dir=str(folder), **more)
        assert log.status == "success", log.error and log.error.message
        return log


def verdicts(log: EvalLog) -> dict[str, tuple[str, bool]]:
    """By step: the verdict and whether the type is right, of the records in the scores."""
    found = {}
    for sample in log.samples or ():
        score = (sample.scores or {})["protocol_verdict"]
        assert score.metadata is not None
        for record in score.metadata["records"]:
            outcome = record["samples"][0]["outcome"]
            key = str(sample.id).rpartition("#")[0] or str(sample.id)
            found[f"{key}#{record['step']}"] = (outcome["verdict"], outcome["type_match"])
    return found


def metrics(log: EvalLog) -> dict[str, float]:
    assert log.results is not None
    return {name: float(metric.value) for score in log.results.scores for name, metric in score.metrics.items()}


def same(log: EvalLog, run: RecordedRun, protocol: str | None = None) -> None:
    assert verdicts(log) == run.verdicts(protocol)
    found, expected = metrics(log), run.metrics(protocol)
    shared = found.keys() & expected.keys()
    assert {"exact match", "progress"} <= shared and {name: found[name] for name in shared} == {
        name: expected[name] for name in shared
    }


def test_steps_have_the_verdicts_of_a_run_also_under_another_protocol(recorded: RecordRun, tmp_path: Path) -> None:
    run, model = recorded("offline"), Scripted(recorded("offline").replies.values())
    log = model.evaluate(tmp_path, **run.settings)
    same(log, run)
    found = metrics(log)
    assert found["accuracy"] == found["exact match"] and found["stderr"] > 0
    wrong = next(sample for sample in log.samples or () if (sample.scores or {})["protocol_verdict"].value == "I")
    assert (wrong.scores or {})["protocol_verdict"].explanation
    other = {**run.settings, "checkpoint": MODEL, "protocol": PROTOCOLS[1]}
    again = score_again(log, protocol_verdict(**other), metrics=[protocol_metrics(**other)], action="overwrite")
    same(again, run, PROTOCOLS[1])


def test_the_model_sees_the_screenshots_and_the_sampling_of_a_run(recorded: RecordRun, tmp_path: Path) -> None:
    run, model = recorded("offline"), Scripted(recorded("offline").replies.values())
    model.evaluate(tmp_path, **run.settings, limit=1)
    images = [
        part.image
        for message in model.asked[2]
        if not isinstance(message.content, str)
        for part in message.content
        if part.type == "image"
    ]
    assert len(images) == 3 and all(image.startswith("data:image/png;base64,") for image in images)
    assert (model.configs[0].temperature, model.configs[0].max_tokens) == (0.0, 400)


@pytest.mark.parametrize("mode", ["sop", "soeval"])
def test_episodes_are_walked_as_in_a_run(recorded: RecordRun, tmp_path: Path, mode: str) -> None:
    run = recorded(mode)
    model = Scripted(record.sample.raw_response or "" for record in run.records())
    log = model.evaluate(tmp_path, **run.settings)
    same(log, run)
    assert len(model.asked) == len(run.records())
    assert metrics(log)["accuracy"] == metrics(log)["success rate"]


def test_a_model_that_fails_is_an_error_and_no_wrong_step(recorded: RecordRun, tmp_path: Path) -> None:
    run = recorded("offline")
    replies = list(run.replies.values())
    log = Scripted(replies[:5]).evaluate(tmp_path, **run.settings)
    failed = [sample for sample in log.samples or () if sample.error]
    assert len(failed) == len(replies) - 5 and log.results is not None and log.results.completed_samples == 5
    assert metrics(log)["exact match"] == 4 / 5


def test_named_tasks_choose_the_benchmark() -> None:
    names = [inspect_tasks.screenspot_v2, inspect_tasks.screenspot_pro, inspect_tasks.androidcontrol, inspect_tasks.gui_odyssey]
    for each in names:
        with pytest.raises(PrerequisiteError) as raised:
            each(checkpoint=MODEL, data="/no/such/folder")
        assert each.__name__.replace("_", "-") in str(raised.value).replace("_", "-")


def test_a_mistake_is_a_sentence_and_no_traceback(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("inspect")), "eval", "guieval/steps", "--model", "mockllm/model"]
    command += ["-T", "bench=demo", "-T", "checkpoint=qwen2.5-vl-7c"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    printed = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 1 and "Traceback" not in printed
    assert "unknown model 'qwen2.5-vl-7c' (did you mean" in printed and "-T checkpoint=NAME" in printed


def test_inspect_finds_the_tasks_by_the_name_of_the_package(tmp_path: Path) -> None:
    """In a folder of its own: the build files of a checkout hide from Inspect that the package is installed."""
    code = "from inspect_ai._util.entrypoints import ensure_entry_points as load; load('guieval')\n"
    code += "from inspect_ai._util.registry import registry_lookup; print(registry_lookup('task', 'guieval/steps') is not None)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "True", done.stderr
