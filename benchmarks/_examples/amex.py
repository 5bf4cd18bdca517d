"""Writes AMEX as its archives unpack: ``instruction_anno/``, ``element_anno/`` and ``screenshot/``.

The layout is read from its authors' ``amex_to_qa.py`` and the project's data card: touch and lift as [x, y] pixels of
``device_dim``, and an element's ``bbox`` as its corners in the same. The format has no word for opening an app, for a long
press and for waiting, so episodes of the simulated phone that need one are passed over; the steps of the others are kept.
"""

from __future__ import annotations

from hashlib import md5
from itertools import islice
from pathlib import Path
from typing import Any

from guieval.actions import Action, Click, Point, Press, Scroll, Stop, Type, scroll_path
from guieval.playground.phone import DEFAULT_SIZE, PhoneEpisode, PhoneStep

from .played import codes_fit, draw, expressible, write_json

Size = tuple[int, int]


def write_amex(
    folder: Path, *, episodes: int = 2, seed: int = 0, size: Size = DEFAULT_SIZE, app: str | None = None
) -> list[PhoneEpisode]:
    """Write ``episodes`` into ``folder`` and return what was written.

    Instructions begin with the app to open: that of the task, or ``app``.
    """
    written = list(islice(expressible(seed, codes_fit, size), episodes))
    for played in written:
        name = episode_id(played)
        for index, step in enumerate(played.steps):
            draw(step, folder / "screenshot" / f"{name}-{index + 1}.png")
            write_json(folder / "element_anno" / f"{name}-{index + 1}.json", _elements(step, f"{name}-{index + 1}.png", size))
        annotation = {
            "episode_id": name,
            "instruction": f"Open {app or played.task.app}. {played.task.instruction}",
            "steps": [_row(step, index, name, size) for index, step in enumerate(played.steps)],
        }
        write_json(folder / "instruction_anno" / f"{name}.json", annotation)
    return written


def episode_id(played: PhoneEpisode) -> str:
    """AMEX's ids are the minute of the recording and 32 hexadecimal digits."""
    return f"2024_5_14_15_{played.number % 60}_{md5(f'{played.seed}/{played.number}'.encode()).hexdigest()}"


def _row(step: PhoneStep, index: int, name: str, size: Size) -> dict[str, Any]:
    return {
        "step_id": index + 1,
        "image_path": f"{name}-{index + 1}.png",
        "device_dim": list(size),
        "package_name": "com.example.phone",
        **_labelled(step.action, size),
    }


def _elements(step: PhoneStep, image: str, size: Size) -> dict[str, Any]:
    width, height = size
    area = step.phone.screen.scroll_area
    return {
        "image_path": image,
        "clickable_elements": [
            {
                "bbox": [round(edge * side / 1000) for edge, side in zip(box, (width, height, width, height), strict=True)],
                "xml_desc": [],
                "functionality": "",
            }
            for box in step.targets + step.elements
        ],
        "scrollable_elements": [{"bbox": [area.x1, area.y1, area.x2, area.y2]}] if area else [],
    }


def _labelled(action: Action, size: Size) -> dict[str, Any]:
    text = ""
    touch = lift = [-1, -1]
    match action:
        case Click():
            word = "TAP"
            touch = lift = _pixel(action.point, size)
        case Scroll():
            word = "SWIPE"
            touch, lift = (_pixel(point, size) for point in scroll_path(action))
        case Type():
            word, text = "TYPE", action.text
        case Press():
            word = f"PRESS_{action.button}"
        case Stop():
            word = "TASK_COMPLETE" if action.status == "finish" else "TASK_IMPOSSIBLE"
        case _:
            raise ValueError(f"AMEX has no word for {action!r}")
    return {"action": word, "touch_coord": touch, "lift_coord": lift, "type_text": text}


def _pixel(point: Point, size: Size) -> list[int]:
    return [round(point.x * size[0] / 1000), round(point.y * size[1] / 1000)]
