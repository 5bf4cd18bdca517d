"""A small graph in ColorBench's published format, with a place for each of its faults, and walks in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from guieval.actions import ExecutableAction, Press, Stop, executable
from guieval.graphs.environment import GraphEnvironment
from guieval.graphs.environments.colorbench import ROOT, ColorBenchIntended, ColorBenchOfficial
from guieval.online import EnvironmentTask
from guieval.steps import Score

KINDS = {"official": ColorBenchOfficial, "intended": ColorBenchIntended}
BOX = [100, 100, 300, 300]
LONG = "长" * 90


def click(*box: int) -> dict[str, Any]:
    return {"action_type": "click", "x": box[0], "y": box[1], "bbox": list(box)}


GRAPH: dict[str, dict[str, list[dict[str, Any]]]] = {
    ROOT: {
        name: [{"action_type": "open", "app": app}] for name, app in (("chat", "微信"), ("one", "小红书"), ("two", "小红书"))
    },
    "chat": {
        "note": [click(*BOX)],
        "other": [click(500, 500, 700, 700)],
        "twin": [click(500, 500, 700, 700)],
        "typed": [{"action_type": "type", "text": "AI Agent，美团"}],
        "held": [{"action_type": "long_press", "bbox": [800, 800, 900, 900]}],
        "swiped": [{"action_type": "swipe", "direction": "up"}],
        "never": [],
    },
    "one": {"after": [{"action_type": "wait"}], "note": [click(*BOX)]},
    "note": {"chat": [click(*BOX)]},
}


def task(number: int, *milestones: Any, query: str = "find it", steps: int = 3) -> dict[str, Any]:
    """A task; a milestone is a screen, or a list of answers."""
    listed = [{"ability": "find", **({"page_node": [m]} if isinstance(m, str) else {"answer": m})} for m in milestones]
    return {"task_id": number, "query": query, "optimal_steps": steps, "app_num": 1, "milestone": listed}


TASKS = [
    task(1, "chat", "note"),
    task(2, "chat", ["177.79"]),
    task(3, "absent"),
    task(4, "chat", query=LONG),
    task(5, "note", steps=68),
]


def write(folder: Path) -> Path:
    """The files as published, without the comma that they lack."""
    (folder / "graph.json").write_text(json.dumps(GRAPH, ensure_ascii=False), encoding="utf-8")
    text = json.dumps(TASKS, ensure_ascii=False, indent=2).replace('"optimal_steps": 68,', '"optimal_steps": 68', 1)
    (folder / "tasks.json").write_text(text, encoding="utf-8")
    return folder


def small(folder: Path, rules: str, **options: Any) -> GraphEnvironment:
    if rules == "official":
        options = {"draws": "task", **options}
    environment = KINDS[rules](data=str(folder), screens="drawn", **options)
    assert isinstance(environment, GraphEnvironment)
    return environment


class Walked(NamedTuple):
    """Where a walk ended, whether it is over, and its score."""

    screen: str
    over: bool
    score: Score


def walked(environment: GraphEnvironment, actions: Sequence[ExecutableAction], name: str = "1", seed: int = 0) -> Walked:
    async def walk() -> Walked:
        device = await environment.open()
        observation = await device.reset(named(environment, name), seed)
        for action in actions:
            observation = await device.step([action])
        score = await device.score()
        stack = vars(device)["_walk"].stack
        await device.close()
        return Walked("root" if stack[-1] == ROOT else stack[-1], observation.over, score)

    return asyncio.run(walk())


def named(environment: GraphEnvironment, name: str) -> EnvironmentTask:
    return next(task for task in environment.tasks() if task.id == name)


async def led(environment: GraphEnvironment, task: EnvironmentTask) -> Score:
    """The score of the environment's own expert."""
    device = await environment.open()
    observation = await device.reset(task, 0)
    for _ in range(task.max_steps):
        step = await device.expert()
        action = None if step is None or observation.over else executable(step.action)
        if action is None:
            break
        observation = await device.step([action])
    return await device.score()


HOME, BACK, FINISH = Press(button="HOME"), Press(button="BACK"), Stop()
