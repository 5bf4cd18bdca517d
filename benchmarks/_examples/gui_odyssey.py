"""Writes GUI-Odyssey's release: ``annotations/``, ``screenshots/`` and ``splits/``, as its ``introduction.md`` describes them.

Both published forms: v2 (July 2025), and v1 (June 2024), which has no SAM2 boxes and no texts about a step. The format has no
word for opening an app, for ENTER and for waiting, so episodes of the simulated phone that need one are passed over.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from guieval.actions import Action, Box, Click, LongPress, Point, Press, Scroll, Stop, Type, scroll_path
from guieval.playground.phone import PhoneEpisode, PhoneStep

from .played import draw_all, varied, write_json

SETUPS = ("random", "app", "device", "task")
"""The names of the split files, without their ``_split.json``."""

_KEYS = {"HOME": "KEY_HOME", "BACK": "KEY_BACK", "RECENT": "KEY_APPSELECT"}


def write_gui_odyssey(
    folder: Path, *, episodes: int = 2, seed: int = 0, version: int = 2, parts: bool = False
) -> list[PhoneEpisode]:
    """Write ``episodes`` into ``folder`` and return what was written, in the order of ``random_split.json``'s lists.

    The last of several episodes is training data by the random split and the first one by the others. ``parts`` leaves the
    screenshots in ``screenshots/data_*/``, as v1 is downloaded before its authors' ``preprocessing.py`` moves them up.
    """
    written = varied(seed, lambda step: _has_word(step.action), episodes)
    names = [episode_id(played) for played in written]
    for place, (name, played) in enumerate(zip(names, written, strict=True)):
        shots = folder / "screenshots" / f"data_{place % 2}" if parts else folder / "screenshots"
        draw_all(played.steps, shots, f"{name}_{{}}.png")
        write_json(folder / "annotations" / f"{name}.json", _annotation(name, played, version))
    files = [f"{name}.json" for name in names]
    for setup in SETUPS:
        train = files[-1:] if setup == "random" else files[:1]
        if len(files) == 1:
            train = ["7999999999999999.json"]  # not downloaded
        write_json(
            folder / "splits" / f"{setup}_split.json", {"train": train, "test": [file for file in files if file not in train]}
        )
    return written


def episode_id(played: PhoneEpisode) -> str:
    return f"{7_000_000_000_000_000 + played.seed * 1_000_000 + played.number}"


def _has_word(action: Action) -> bool:
    if isinstance(action, Press):
        return action.button in _KEYS
    return isinstance(action, Click | LongPress | Scroll | Type | Stop)


def _annotation(name: str, played: PhoneEpisode, version: int) -> dict[str, Any]:
    width, height = played.size
    done = [step.instruction for step in played.steps]
    return {
        "episode_id": name,
        "device_info": {
            "product": "sdk_gphone64_x86_64",
            "release_version": "14",
            "sdk_version": "34",
            "h": height,
            "w": width,
            "device_name": "Small Phone",
        },
        "task_info": {
            "category": "General_Tool",
            "app": [played.task.app],
            "meta_task": f"{played.task.kind} in {{}}",
            "task": played.task.instruction,
            "instruction": played.task.instruction,
        },
        "step_length": len(played),
        "steps": [_step(f"{name}_{index}.png", index, step, version, done[:index]) for index, step in enumerate(played.steps)],
    }


def _step(screenshot: str, index: int, step: PhoneStep, version: int, done: list[str]) -> dict[str, Any]:
    row: dict[str, Any] = {"step": index, "screenshot": screenshot, **_labelled(step.action)}
    if version >= 2:
        row |= {
            "description": "A screen of the simulated phone.",
            "intention": f"The next thing to do is this: {step.instruction}",
            "context": " ".join(done),
            "low_level_instruction": step.instruction,
            "sam2_bbox": _segment(step),
        }
    return row


def _labelled(action: Action) -> dict[str, Any]:
    match action:
        case Click() | LongPress():
            return {"action": action.type, "info": [_whole(action.point)] * 2, "ps": ""}
        case Scroll():
            start, end = scroll_path(action)
            middle = Point((start.x + end.x) / 2, (start.y + end.y) / 2)
            return {
                "action": "SCROLL",
                "info": [_whole(start), _whole(end)],
                "ps": [_whole(start), _whole(middle), _whole(end)],
            }
        case Type():
            return {"action": "TEXT", "info": action.text, "ps": ""}
        case Press():
            return {"action": "CLICK", "info": _KEYS[action.button], "ps": ""}
        case Stop():
            return {"action": "COMPLETE" if action.status == "finish" else "INCOMPLETE", "info": "", "ps": ""}
        case _:
            raise ValueError(f"GUI-Odyssey has no word for {action!r}")


def _whole(point: Point) -> list[int]:
    return [round(point.x), round(point.y)]


def _segment(step: PhoneStep) -> list[int]:
    if step.target is None or not isinstance(step.action, Click | LongPress):
        return []
    box: Box = step.targets[0]
    return [math.floor(box.x1), math.floor(box.y1), math.ceil(box.x2), math.ceil(box.y2)]
