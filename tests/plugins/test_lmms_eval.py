"""lmms-eval itself evaluates a scripted model on recorded responses: every verdict and metric is that of `guieval score`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from lmms_eval.api.model import lmms
from lmms_eval.evaluator import simple_evaluate
from lmms_eval.protocol import ChatMessages
from lmms_eval.tasks import TaskManager

import guieval.plugins.lmms_tasks as tasks
from tests.plugins.conftest import MODEL, PROTOCOLS, RecordRun
from tests.rows import every_row

FOLDER = Path(tasks.__path__[0])


class Scripted(lmms):
    """Answers each document with the response to its step; keeps what it was shown."""

    is_simple = False

    def __init__(self, replies: Mapping[str, str]) -> None:
        super().__init__()
        self.replies = replies
        self.shown: dict[str, list[dict[str, Any]]] = {}

    def generate_until(self, requests: Any) -> list[str]:
        found = []
        for request in requests:
            _, to_messages, _, number, task, split = request.args
            doc = self.task_dict[task][split][number]
            self.shown[doc["key"]] = ChatMessages(messages=to_messages(doc)).to_openai_messages()
            found.append(self.replies[doc["key"]])
        return found

    def loglikelihood(self, requests: Any) -> Any:
        raise NotImplementedError

    def generate_until_multi_round(self, requests: Any) -> Any:
        raise NotImplementedError


def evaluated(folder: Path, model: Scripted, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The results of a task of the user's own, which includes the shared file and names these settings."""
    folder.mkdir()
    (folder / "own.json").write_text(json.dumps({"model": MODEL, **settings}))
    own = f"include: {FOLDER / '_guieval.yaml'}\ntask: own\ndataset_kwargs: {{data_files: {{test: own.json}}}}\n"
    (folder / "own.yaml").write_text(own)
    manager = TaskManager("ERROR", include_path=str(folder), include_defaults=False, model_name="scripted")
    results: dict[str, Any] = simple_evaluate(model, tasks=["own"], task_manager=manager, bootstrap_iters=0)
    return results


@every_row("protocol", PROTOCOLS)
def test_steps_have_the_verdicts_of_a_run(recorded: RecordRun, tmp_path: Path, protocol: str) -> None:
    run = recorded("offline")
    model = Scripted(run.replies)
    results = evaluated(tmp_path / "tasks", model, {**run.settings, "protocol": protocol})
    stored = [json.loads(sample["exact_match"]["record"]) for sample in results["samples"]["own"]]
    outcomes = {sample["exact_match"]["key"]: sample["exact_match"] for sample in results["samples"]["own"]}
    verdicts = {
        key: (each["verdict"], json.loads(each["record"])["samples"][0]["outcome"]["type_match"])
        for key, each in outcomes.items()
    }
    assert verdicts == run.verdicts(protocol) and len(stored) == len(verdicts)
    metrics = run.metrics(protocol)
    found = results["results"]["own"]
    assert found["exact_match,none"] == metrics["exact match"] and found["type_match,none"] == metrics["type match"]
    images = [part for message in model.shown["demo/s0-0000#2"] for part in message["content"] if part["type"] == "image_url"]
    assert len(images) == 3


def test_the_shipped_tasks_are_found_in_the_folder() -> None:
    manager = TaskManager("ERROR", include_path=str(FOLDER), include_defaults=False)
    names = {"guieval_screenspot_v2", "guieval_screenspot_pro", "guieval_androidcontrol"}
    assert set(manager.all_tasks) == names


def test_a_mistake_ends_with_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else lmms-eval tries again and hides the sentence in the traceback of its retries."""
    with pytest.raises(SystemExit, match="2"):
        evaluated(tmp_path / "tasks", Scripted({}), {"model": "qwen2.5-vl-7c", "bench": "demo"})
    assert "unknown model 'qwen2.5-vl-7c' (did you mean" in capsys.readouterr().err


def test_models_without_chat_messages_get_prompts_of_one_turn_only(recorded: RecordRun) -> None:
    """Else the past of a prompt in turns would be shown as part of the question."""
    from guieval.errors import UsageError
    from guieval.plugins.lmms_tasks import functions

    settings = json.dumps({**recorded("offline").settings, "model": MODEL})
    doc = {"key": "demo/s0-0000#2", "settings": settings}
    with pytest.raises(UsageError, match="several turns"):
        functions.visual(doc)
    one = {"key": "demo/s0-0000#2", "settings": json.dumps({**json.loads(settings), "model": "qwen2.5-vl-7b"})}
    (image,) = functions.visual(one)
    assert image.size[0] > 300 and "<image>" not in functions.text(one)
