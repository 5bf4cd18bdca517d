"""AndroidControl as GUIEvalKit's data/process_ac.py leaves it: a JSON list of steps for each episode, next to the screenshots.

After the keys and conversions of github.com/xiaomi-research/guievalkit, data/process_ac.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from guieval.actions import Action, Click, LongPress, Open, Scroll, Stop
from guieval.playground.phone.episodes import PhoneEpisode, PhoneStep
from guieval.playground.phone.state import Size

from .androidcontrol import bounds, pixel
from .played import NOWHERE, draw_all, labelled, write_json

RECORDED = "/home/researcher/guievalkit/data/android_control"
"""Where the preparation ran: image paths are recorded as they were there."""
SCROLLED = 0.3


def write_folder(folder: Path, episodes: Sequence[PhoneEpisode]) -> None:
    """Write each episode under its number as id."""
    for episode in episodes:
        name = str(episode.number)
        draw_all(episode.steps, folder / "screenshots" / name, f"screenshot_{name}_{{}}.png")
        entries = [entry(episode, index, step) for index, step in enumerate(episode.steps)]
        write_json(folder / "test" / "android_control" / name / f"{name}.json", entries)


def entry(episode: PhoneEpisode, index: int, step: PhoneStep) -> dict[str, Any]:
    """One step. Lists are written as their text; boxes are [y, x, height, width] fractions of the screen."""
    width, height = episode.size
    name = episode.number
    boxes = [
        [top / height, left / width, (bottom - top) / height, (right - left) / width]
        for left, top, right, bottom in bounds(step.phone.screen)
    ]
    return {
        "episode_id": name,
        "step_id": index,
        "episode_length": len(episode),
        "image_width": width,
        "image_height": height,
        "image_path": f"{RECORDED}/screenshots/{name}/screenshot_{name}_{index}.png",
        "instruction": episode.task.instruction,
        **labelled(step.action, *_gesture(step.action, episode.size)),
        "duration": None,
        "result_action_app_name": step.action.app if isinstance(step.action, Open) else "",
        "ui_positions": str(boxes),
        "low_instruction": "finish the task" if isinstance(step.action, Stop) else step.instruction,
        "subset": "android_control",
    }


def _gesture(label: Action, size: Size) -> tuple[list[float], list[float]]:
    """Where the finger touches and lifts, as [y, x] fractions."""
    match label:
        case Click() | LongPress():
            x, y = pixel(label.point, size)
            return [y / size[1], x / size[0]], [y / size[1], x / size[0]]
        case Scroll():
            along = SCROLLED if label.direction in ("down", "right") else -SCROLLED
            down, right = (along, 0.0) if label.direction in ("up", "down") else (0.0, along)
            return [0.5, 0.5], [0.5 + down, 0.5 + right]
        case _:
            return NOWHERE, NOWHERE
