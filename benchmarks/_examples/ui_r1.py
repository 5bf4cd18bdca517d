"""Writes UI-R1's ``dataset/ac_test.json``, with the screenshots that its rows name in ``images/``.

The format has no word for waiting, for ending a task, and for the buttons HOME and ENTER. As in the real file, the steps that
do one of these are left out and the others keep their numbers, so episodes have gaps.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from guieval.testing.phone import DEFAULT_SIZE, PhoneStep, encode, generate_episode

_AGAINST = {"up": "down", "down": "up", "left": "right", "right": "left"}


def write_ui_r1(folder: Path, *, episodes: int = 2, seed: int = 0, size: tuple[int, int] = DEFAULT_SIZE) -> None:
    """Write ``episodes`` into ``folder``; episode ``<id>`` is the phone's of that number."""
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(episodes):
        for index, step in enumerate(generate_episode(seed, number, size).steps):
            label = _label(step, size)
            if label is None:
                continue
            name = f"episode_{number}-screenshot_{index}.png"
            (images / name).write_bytes(encode(step.phone.render()))
            rows.append({"image": name, "gt": label, "task": step.instruction})
    (folder / "ac_test.json").write_text(json.dumps(rows, indent=2), encoding="utf-8")


def _label(step: PhoneStep, size: tuple[int, int]) -> dict[str, Any] | None:
    action = step.action
    match action.type:
        case "CLICK" | "LONG_PRESS":
            x, y = round(action.point.x * size[0] / 1000), round(action.point.y * size[1] / 1000)
            return {"action_type": action.type.lower(), "x": x, "y": y}
        case "SCROLL":  # named by what comes into sight, not by the finger
            return {"action_type": "scroll", "direction": _AGAINST[action.direction]}
        case "TYPE":
            return {"action_type": "input_text", "text": action.text}
        case "OPEN":
            return {"action_type": "open_app", "app_name": action.app}
        case "PRESS" if action.button == "BACK":
            return {"action_type": "navigate_back"}
        case _:
            return None
