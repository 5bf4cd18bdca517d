"""verifiers itself loads the taskset and scores traces of recorded responses: rewards are verdicts of `guieval score`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import verifiers.v1 as vf
from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import AgentInfo, TraceTask
from verifiers.v1.types import AssistantMessage, ToolCall
from verifiers.v1.utils.loaders import taskset_class

from tests.plugins.conftest import MODEL, PROTOCOLS, RecordRun

OWN = 'from guieval.plugins.verifiers_tasks import StepTaskset\n\n__all__ = ["StepTaskset"]\n'


@pytest.fixture
def taskset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The taskset as verifiers finds it, by the name of a module of the user."""
    (tmp_path / "guieval_steps.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    return taskset_class("guieval_steps")


def trace_of(task: Any, message: AssistantMessage) -> Any:
    node = MessageNode(message=message, sampled=True)
    return vf.Trace(task=TraceTask(type="StepTask", data=task.data), agent=AgentInfo(config=vf.AgentConfig()), nodes=[node])


def scored(task: Any, message: AssistantMessage) -> Any:
    trace = trace_of(task, message)
    asyncio.run(task.score(trace))
    return trace


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_rewards_are_the_verdicts_of_a_run(recorded: RecordRun, taskset: Any, protocol: str) -> None:
    run = recorded("offline")
    loaded = taskset(_config(taskset, {**run.settings, "model": MODEL, "protocol": protocol}))
    found, rewards = {}, {}
    for task in loaded:
        trace = scored(task, AssistantMessage(content=run.replies[task.key]))
        (verdict,) = (kind for kind in ("right", "wrong", "unparseable", "unsupported") if trace.metrics[kind])
        found[task.key] = (verdict, bool(trace.metrics["type_match"]))
        rewards[task.key] = trace.reward
    assert found == run.verdicts(protocol)
    assert rewards == {key: float(verdict == "right") for key, (verdict, _) in found.items()}


def test_prompts_have_the_screenshots_and_calls_are_read(recorded: RecordRun, taskset: Any) -> None:
    run = recorded("offline")
    loaded = taskset(_config(taskset, {**run.settings, "model": "qwen2.5-vl-7b"}))
    third = list(loaded)[2]
    parts = [part for message in third.data.prompt if not isinstance(message.content, str) for part in message.content]
    assert [part.image_url.url[:22] for part in parts if part.type == "image_url"] == ["data:image/png;base64,"]
    call = ToolCall(id="1", name="mobile_use", arguments='{"action": "terminate", "status": "success"}')
    trace = scored(third, AssistantMessage(tool_calls=[call]))
    assert trace.metrics["wrong"] == 1.0


def _config(taskset: Any, settings: dict[str, Any]) -> Any:
    from guieval.plugins.verifiers_tasks import StepsConfig

    return StepsConfig(id="guieval_steps", settings=settings)
