"""AndroidControl as GUIEvalKit's data/process_ac.py leaves it: a JSON list of steps for each episode, beside the screenshots.

After the keys and conversions of github.com/xiaomi-research/guievalkit, data/process_ac.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from guieval.actions import Action, Click, LongPress, Open, Press, Scroll, Stop, Type, Wait
from guieval.testing.phone.drawing import encode
from guieval.testing.phone.episodes import PhoneEpisode, PhoneStep
from guieval.testing.phone.state import Size

from .androidcontrol import bounds, pixel

RECORDED = "/home/researcher/guievalkit/data/android_control"
"""Where the preparation ran: image paths are recorded as they were there."""
NOWHERE = [-1.0, -1.0]
SCROLLED = 0.3


def write_folder(folder: Path, episodes: Sequence[PhoneEpisode]) -> None:
    """Write each episode under its number as id."""
    for episode in episodes:
        name = str(episode.number)
        images = folder / "screenshots" / name
        images.mkdir(parents=True)
        for index, step in enumerate(episode.steps):
            (images / f"screenshot_{name}_{index}.png").write_bytes(encode(step.phone.render()))
        labels = folder / "test" / "android_control" / name
        labels.mkdir(parents=True)
        entries = [entry(episode, index, step) for index, step in enumerate(episode.steps)]
        (labels / f"{name}.json").write_text(json.dumps(entries, ensure_ascii=False), encoding="utf-8")


def entry(episode: PhoneEpisode, index: int, step: PhoneStep) -> dict[str, Any]:
    """One step. Lists are written as their text; boxes are [y, x, height, width] fractions of the screen."""
    width, height = episode.size
    name = episode.number
    boxes = [
        [top / height, left / width, (bottom - top) / height, (right - left) / width]
        for left, top, right, bottom in bounds(step.phone.screen)
    ]
    code, touch, lift = _coded(step.action, episode.size)
    return {
        "episode_id": name,
        "step_id": index,
        "episode_length": len(episode),
        "image_width": width,
        "image_height": height,
        "image_path": f"{RECORDED}/screenshots/{name}/screenshot_{name}_{index}.png",
        "instruction": episode.task.instruction,
        "result_action_type": code,
        "result_touch_yx": str(touch),
        "result_lift_yx": str(lift),
        "duration": None,
        "result_action_text": step.action.text if isinstance(step.action, Type) else "",
        "result_action_app_name": step.action.app if isinstance(step.action, Open) else "",
        "ui_positions": str(boxes),
        "low_instruction": "finish the task" if isinstance(step.action, Stop) else step.instruction,
        "subset": "android_control",
    }


def _coded(label: Action, size: Size) -> tuple[int, list[float], list[float]]:
    """The action's number, and where the finger touches and lifts, [y, x]."""
    match label:
        case Click() | LongPress():
            x, y = pixel(label.point, size)
            touch = [y / size[1], x / size[0]]
            return (4 if isinstance(label, Click) else 0), touch, touch
        case Scroll():
            along = SCROLLED if label.direction in ("down", "right") else -SCROLLED
            down, right = (along, 0.0) if label.direction in ("up", "down") else (0.0, along)
            return 4, [0.5, 0.5], [0.5 + down, 0.5 + right]
        case Wait():
            return 1, NOWHERE, NOWHERE
        case Type():
            return 3, NOWHERE, NOWHERE
        case Press(button="BACK"):
            return 5, NOWHERE, NOWHERE
        case Press(button="HOME"):
            return 6, NOWHERE, NOWHERE
        case Stop(status="finish"):
            return 10, NOWHERE, NOWHERE
        case Open():
            return 12, NOWHERE, NOWHERE
        case _:
            raise ValueError(f"the format has no word for {label!r}")
