"""The benchmark that the pinned runs are over: seven drawn episodes in guieval's own format, committed with their screens.

They come from the simulated phone, which another version of guieval or of Pillow may draw differently, so the folder is not
made again with the runs: ``python -m tests.pinned.write benchmark`` makes it, and then every run has to be made anew. The same
holds for ``expert``, what the expert of MiniWoB++ does on the pages of ``pages.txt``, which the agents know.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from guieval.playground.phone import generate_episode
from guieval.registry import load_benchmark

EPISODES = {
    "delete": ("people", 1),
    "refresh": ("people", 2),
    "settings": ("tools", 3),
    "alarm": ("tools", 6),
    "message": ("people", 10),
    "pin": ("tools", 11),
    "weather": ("tools", 13),
}
"""Each episode's subset and its number among the phone's: 35 steps of all eight types of actions, one stopped as impossible."""
SIZE = (90, 200)
"""The screens are drawn at 360 x 800 and kept this small, in sixteen colours: the agents do not look at them."""


def make_benchmark(folder: Path) -> None:
    """Write ``episodes.jsonl`` and the screens."""
    lines = []
    for name, (subset, number) in EPISODES.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        played = generate_episode(0, number)
        steps: list[dict[str, Any]] = []
        for index, step in enumerate(played.steps):
            screenshot = f"{name}/{index}.png"
            step.phone.render().resize(SIZE).quantize(16).save(folder / screenshot, optimize=True)
            steps.append(
                {
                    "screenshot": screenshot,
                    "screenshot_size": SIZE,
                    "low_level_instruction": step.instruction,
                    "action": step.action.model_dump(mode="json"),
                    "alternatives": [action.model_dump(mode="json") for action in step.alternatives],
                    "elements": (step.targets + step.elements).array.tolist()[:3],
                    "groups": {"app": played.task.app},
                }
            )
        # as AndroidControl's, since every protocol has rules for that data set
        about = {"episode_id": name, "subset": subset, "split": "test", "dataset": "androidcontrol", "frame": "unified"}
        lines.append(json.dumps({**about, "instruction": played.task.instruction, "steps": steps}) + "\n")
    (folder / "episodes.jsonl").write_text("".join(lines), encoding="utf-8")


def write_expert(recorded: Path, file: Path) -> None:
    """Write the actions of a folder that ``guieval data record`` made, by the episode's id."""
    actions = {
        episode.key.episode_id: [step.action.model_dump(mode="json") for step in episode.steps]
        for episode in load_benchmark("episodes", recorded)
    }
    file.write_text(json.dumps(actions, indent=1) + "\n", encoding="utf-8")
