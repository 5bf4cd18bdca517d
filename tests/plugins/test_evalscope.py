"""evalscope itself evaluates a scripted model on recorded responses: every verdict and metric is that of `guieval score`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from evalscope import TaskConfig, run_task
from evalscope.api.model import GenerateConfig, ModelAPI, ModelOutput
from evalscope.config import Model

from guieval.errors import UsageError
from guieval.plugins import evalscope_tasks
from tests.plugins.conftest import MODEL, PROTOCOLS, RecordedRun, RecordRun
from tests.rows import every_row


class Scripted(ModelAPI):
    """Answers in the order of the steps; keeps what it was sent."""

    def __init__(self, run: RecordedRun) -> None:
        super().__init__("scripted", config=GenerateConfig())
        self._replies = iter(run.replies.values())
        self.asked: list[Any] = []

    def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        self.asked.append(input)
        return ModelOutput.from_content("scripted", next(self._replies))


def evaluated(folder: Path, run: RecordedRun, **more: Any) -> tuple[Scripted, dict[str, float], list[dict[str, Any]]]:
    """The model, evalscope's metrics and its reviews of the samples."""
    model = Scripted(run)
    given = {"extra_params": {"settings": {**run.settings, "model": MODEL, **more.pop("settings", {})}}}
    config = TaskConfig(
        model=Model(model, GenerateConfig()),
        datasets=["guieval_steps"],
        dataset_args={"guieval_steps": given},
        work_dir=str(folder),
        no_timestamp=True,
        eval_batch_size=1,
        **more,
    )
    report = run_task(config)["guieval_steps"]
    found = {metric.identity.name: metric.score for metric in report.metrics}
    (reviews,) = folder.glob("reviews/*/guieval_steps_default.jsonl")
    return model, found, [json.loads(line)["sample_score"]["score"] for line in reviews.read_text().splitlines()]


@every_row("protocol", PROTOCOLS)
def test_steps_have_the_verdicts_of_a_run(recorded: RecordRun, tmp_path: Path, protocol: str) -> None:
    run = recorded("offline")
    model, found, scores = evaluated(tmp_path, run, settings={"protocol": protocol})
    verdicts = {each["metadata"]["key"]: (each["metadata"]["verdict"], bool(each["value"]["type_match"])) for each in scores}
    assert verdicts == run.verdicts(protocol)
    assert all(each["value"]["exact_match"] == float(each["metadata"]["verdict"] == "right") for each in scores)
    metrics = run.metrics(protocol)
    assert found == pytest.approx({"exact_match": metrics["exact match"], "type_match": metrics["type match"]}, abs=1e-4)
    images = [part for message in model.asked[2] if not isinstance(message.content, str) for part in message.content]
    assert sum(part.type == "image" for part in images) == 3


def test_a_limit_takes_the_first_steps_and_repeats_are_refused(recorded: RecordRun, tmp_path: Path) -> None:
    assert evalscope_tasks.StepsAdapter.__name__ == "StepsAdapter"
    run = recorded("offline")
    _, _, scores = evaluated(tmp_path / "limit", run, limit=3)
    assert [each["metadata"]["key"] for each in scores] == list(run.replies)[:3]
    with pytest.raises(UsageError, match="one response of each step"):
        evaluated(tmp_path / "repeats", run, repeats=2)
