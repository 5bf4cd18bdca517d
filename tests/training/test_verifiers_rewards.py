"""The adapter for verifiers v1 in a task of its own, scored by the library itself."""

from __future__ import annotations

import asyncio

import pytest

from guieval.actions import Click, Point
from guieval.rewards import open_scorer
from guieval.rewards.adapters.verifiers import task_method
from tests.model_adapters.steps import step

vf = pytest.importorskip("verifiers.v1")
traces = pytest.importorskip("verifiers.v1.trace")
TASK = step(Click(point=Point(500.0, 500.0)))
SCORER = open_scorer("ui-s1-7b", "ui-s1")


class GuiData(vf.TaskData):  # type: ignore[misc, name-defined]
    task: str


class GuiTask(vf.Task[GuiData]):  # type: ignore[misc, name-defined]
    guieval = vf.reward(task_method(SCORER), weight=2.0)


@pytest.mark.parametrize(("x", "expected"), [(500.0, 1.0), (10.0, 0.5)])
def test_a_task_records_the_reward_of_the_last_reply(x: float, expected: float) -> None:
    task = GuiTask(GuiData(prompt="tap it", task=TASK.model_dump_json()))
    message = SCORER.model.render(TASK, Click(point=Point(x, 500.0)), "I tap it")
    result = traces.TraceTask.model_construct(type="GuiTask", data=task.data)
    trace = traces.Trace(task=result, agent=traces.AgentInfo.model_construct(), root_reply=message)
    asyncio.run(task.score(trace))
    recorded = trace.rewards["ui-s1"]
    assert recorded is not None
    assert (recorded.score, recorded.weight) == (pytest.approx(expected), 2.0)
    assert trace.reward == pytest.approx(2.0 * expected)
