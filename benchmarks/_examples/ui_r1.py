"""Writes UI-R1's ``dataset/ac_test.json``, with the screenshots that its rows name in ``images/``.

The format has no word for waiting, for ending a task, and for the buttons HOME and ENTER. As in the real file, the steps that
do one of these are left out and the others keep their numbers, so episodes have gaps.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from guieval.actions import Press
from guieval.playground.phone import DEFAULT_SIZE, PhoneStep, generate_episode

from .androidcontrol import action
from .played import draw, write_json


def write_ui_r1(folder: Path, *, episodes: int = 2, seed: int = 0) -> None:
    """Write ``episodes`` into ``folder``; episode ``<id>`` is the phone's of that number."""
    rows = []
    for number in range(episodes):
        for index, step in enumerate(generate_episode(seed, number).steps):
            label = _label(step)
            if label is None:
                continue
            name = f"episode_{number}-screenshot_{index}.png"
            draw(step, folder / "images" / name)
            rows.append({"image": name, "gt": label, "task": step.instruction})
    write_json(folder / "ac_test.json", rows)


def _label(step: PhoneStep) -> dict[str, Any] | None:
    if step.action in (Press(button="HOME"), Press(button="ENTER")) or step.action.type in ("WAIT", "STOP"):
        return None
    return action(step.action, DEFAULT_SIZE)
