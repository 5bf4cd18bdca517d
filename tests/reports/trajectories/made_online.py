"""An online run on the simulated phone: eight tasks that end in different ways, some with hostile texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import guieval
from guieval.journal.directory import TASKS
from guieval.online.trajectory import TRAJECTORIES
from tests.json_values import read_json
from tests.online.test_runs import SCRIPTS, settings, task_id, write_agent
from tests.reports.scripted_runs import edited

HOSTILE = "\"><img src=x onerror=alert(1)></script><script>alert('2')</script>"


def online_run(folder: Path, **more: object) -> Path:
    """A run in ``folder`` of the scripted agent of ``tests/online``."""
    folder.mkdir(parents=True, exist_ok=True)
    agent = write_agent(folder, SCRIPTS | {task_id(4): [HOSTILE]})
    guieval.run(**settings(agent, **more), out=folder / "run", progress=False)
    return folder / "run"


def made_hostile(run: Path) -> Path:
    """The run with hostile text in the name and goal of task 1, and in the reason and a side effect of its outcome."""

    def renamed(value: Any) -> Any:
        if isinstance(value, list):
            return [renamed(each) for each in value]
        return HOSTILE if value == task_id(1) else value

    plan = read_json((run / "episodes.json").read_text())
    (run / "episodes.json").write_text(json.dumps(renamed(plan)))
    for name in (TASKS, TRAJECTORIES):
        with edited(run / name) as lines:
            for line in lines:
                if "key" in line:
                    line["key"] = renamed(line["key"])
                    line["goal"] = HOSTILE if HOSTILE in line["key"] else line["goal"]
                elif line["task"]["episode_id"] == task_id(1):
                    line["task"]["episode_id"] = HOSTILE
                    line["samples"][0]["outcome"]["score"] |= {"reason": HOSTILE, "side_effects": [HOSTILE]}
    return run
