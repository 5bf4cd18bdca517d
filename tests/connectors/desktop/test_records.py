"""What the desktop's expert records is a benchmark with targets, on which agents have numbers in every mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import guieval
from guieval.actions import Click, DoubleClick, action_to_json, executable
from guieval.conformance import check_benchmark
from guieval.connectors.desktop.environment import TASKS, Desktop
from guieval.connectors.desktop.task import seeded
from guieval.errors import EnvironmentFailure, UsageError
from guieval.online.demonstrate import demonstrate
from guieval.registry import load_benchmark
from tests.online.devices import played
from tests.online.test_runs import write_agent

pytestmark = pytest.mark.full
CHOSEN = ["editor-display-settings", "files-move"]
"""Tasks with clicks: of the first's application there is an accessibility tree, and the other states its targets."""


def test_the_expert_s_record_has_targets_and_agents_are_scored_in_every_mode(tmp_path: Path) -> None:
    try:
        demonstrate(Desktop(), tmp_path / "made", tasks=CHOSEN)
    except (UsageError, EnvironmentFailure) as error:
        pytest.skip(str(error))
    made = load_benchmark("episodes", tmp_path / "made")
    clicks = [
        (step, done.point)
        for episode in made
        for step in episode.steps
        if isinstance(done := executable(step.action), Click | DoubleClick)
    ]
    assert len(clicks) == 5 and [step.targets.containing(point).tolist() for step, point in clicks] == [[True]] * 5
    areas = [(box.x2 - box.x1) * (box.y2 - box.y1) for step, _ in clicks for box in step.targets]
    assert max(areas) < 1e4 and min(len(step.elements) for step, _ in clicks[:4]) > 5
    assert check_benchmark(type(made), tmp_path, data=tmp_path / "made") == []
    actions = {name: [*seeded(TASKS[name], 0, "en").actions] for name in CHOSEN}
    del actions["files-move"][-2]  # the file is cut and not pasted
    agent = write_agent(tmp_path, {name: [action_to_json(each) for each in taken] for name, taken in actions.items()})
    given: dict[str, Any] = {
        "model": "scripted",
        "engine": "local",
        "adapter": str(agent),
        "bench": "episodes",
        "data": str(tmp_path / "made"),
    }
    for mode, matches in (("offline", 11 / 12), ("soeval", 11 / 12), ("sop", 10 / 11)):
        guieval.run(**given, mode=mode, out=tmp_path / mode, progress=False)
        found = guieval.evaluate_run(tmp_path / mode).summary.all_metrics
        assert [found["success rate"].value, found["exact match"].value] == pytest.approx([0.5, matches]), mode
    online = Desktop()
    ends = []
    for task in online.tasks():
        if task.id in CHOSEN:
            taken = [[done] for each in actions[task.id] if (done := executable(each)) is not None]
            ends.append(played(online, task, *taken)[1].success)
    assert ends == [True, False]
