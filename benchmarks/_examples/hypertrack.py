"""Writes HyperTrack's release as far as its description goes (the paper's section 2 and appendix A.1, the preview's data card).

What is described: one folder per episode in ``test_filtered/``, named by 33 characters; a high-level instruction; screenshots
with a textual observation each; actions of five types with a description, click coordinates and bounding boxes; device model,
operating system and resolution; ``episode_categorization.json`` with the splits. How the keys are spelled is not described, so
they are chosen here: :func:`write_hypertrack` can spell them in another way (``renamed``), write bare lists of steps
(``flat``) and turn the categorisation around (``by_episode``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from guieval.actions import Action, Click, Open, Scroll, Stop, Type
from guieval.playground.phone import PhoneEpisode, PhoneStep

from .played import draw_all, varied, write_json

CATEGORIES = ("idd", "unseen_app", "unseen_device", "unseen_app_device")


def write_hypertrack(
    folder: Path,
    *,
    episodes: int = 2,
    seed: int = 0,
    renamed: Mapping[str, str] | None = None,
    flat: bool = False,
    by_episode: bool = False,
) -> list[PhoneEpisode]:
    """Write ``episodes`` into ``folder``, one after the other in another test split, and return them in that order.

    Episodes of the simulated phone that need more than the five types of action (a system button, a long press, waiting) are
    passed over. ``renamed`` maps keys as they are chosen here to other spellings, wherever they occur.
    """
    written = varied(seed, lambda step: isinstance(step.action, Open | Click | Scroll | Type | Stop), episodes)
    listed: dict[str, list[str]] = {category: [] for category in CATEGORIES}
    for place, played in enumerate(written):
        name = episode_id(played)
        listed[CATEGORIES[place % len(CATEGORIES)]].append(name)
        home = folder / "test_filtered" / name
        draw_all(played.steps, home, f"{name}_{{}}.png")
        write_json(home / f"{name}.json", _respelled(_annotation(name, played, flat), renamed or {}), 2)
    turned = {name: category for category, names in listed.items() for name in names}
    write_json(folder / "episode_categorization.json", turned if by_episode else listed, 2)
    return written


def episode_id(played: PhoneEpisode) -> str:
    return "h" + hashlib.md5(f"{played.seed}/{played.number}".encode(), usedforsecurity=False).hexdigest()


def _annotation(name: str, played: PhoneEpisode, flat: bool) -> Any:
    width, height = played.size
    about = {"episode_id": name, "instruction": played.task.instruction, "app_name": played.task.app, "app_category": "工具"}
    device = {"device_model": "Phone 1", "os": "Android 14", "resolution": f"{width}x{height}"}
    steps = [_step(f"{name}_{index}.png", index, played, step) for index, step in enumerate(played.steps)]
    if flat:
        return [{**about, **device, **step} for step in steps]
    return {**about, "device_info": device, "steps": steps}


def _step(screenshot: str, index: int, played: PhoneEpisode, step: PhoneStep) -> dict[str, Any]:
    action = {"action_type": step.action.type, "action_description": step.instruction, **_arguments(step, played.size)}
    about = {"observation": "模拟手机的屏幕", "ui_tree": {"class": "FrameLayout", "children": []}}
    return {"step_id": index, "screenshot": screenshot, **about, "action": action}


def _arguments(step: PhoneStep, size: tuple[int, int]) -> dict[str, Any]:
    action: Action = step.action
    match action:
        case Click():
            x, y = _pixels(action.point.x, action.point.y, size)
            box = step.targets[0]
            corners = [*_pixels(box.x1, box.y1, size), *_pixels(box.x2, box.y2, size)]
            return {"coordinate": [x, y], "bbox": corners}
        case Scroll():
            return {"coordinate": list(_pixels(action.point.x, action.point.y, size)), "direction": action.direction}
        case Type():
            return {"text": action.text}
        case Open():
            return {"app": action.app}
        case Stop():
            return {"status": action.status}
        case _:
            raise ValueError(f"HyperTrack has no word for {action!r}")


def _pixels(x: float, y: float, size: tuple[int, int]) -> tuple[float, float]:
    return round(x * size[0] / 1000, 3), round(y * size[1] / 1000, 3)


def _respelled(value: Any, renamed: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {renamed.get(key, key): _respelled(item, renamed) for key, item in value.items()}
    return [_respelled(item, renamed) for item in value] if isinstance(value, list) else value
