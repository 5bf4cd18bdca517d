"""Writes Android in the Wild as SeeClick redistributes it: ``aitw_data_<split>.json`` and ``aitw_images/``.

What stands where is read from SeeClick's ``agent_tasks/aitw_process.py``, ``aitw_test.py`` and ``action_matching.py``: touch
and lift as [x, y] fractions, boxes flat as y, x, height, width, and a scroll's word for the way the view moves over the page,
against the finger. The format has no word for opening an app, for a long press and for waiting, so episodes of the simulated
phone that need one are passed over; the steps of the others are kept as they are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from guieval.actions import Action, Click, Direction, Press, Scroll, Stop, Type, scroll_path
from guieval.testing.phone import DEFAULT_SIZE, PhoneEpisode, PhoneStep, encode

from .aitz import codes_fit
from .played import expressible

SUBSETS = ("general", "single", "webshopping", "install", "googleapps")
"""The keys of the file; each has at least one episode."""

_VIEW: dict[Direction, str] = {"up": "down", "down": "up", "left": "right", "right": "left"}
_BUTTONS = {"BACK": (5, "press back"), "HOME": (6, "press home"), "ENTER": (7, "press enter")}
_STATUSES = {"finish": (10, "status task complete"), "impossible": (11, "status task impossible")}


def write_aitw(
    folder: Path, *, episodes: int = 2, seed: int = 0, size: tuple[int, int] = DEFAULT_SIZE, split: str = "test"
) -> dict[str, list[PhoneEpisode]]:
    """Write ``episodes``, or one for each subset where that is more, into ``folder``; returns them by subset."""
    written: dict[str, list[PhoneEpisode]] = {subset: [] for subset in SUBSETS}
    rows: dict[str, list[list[dict[str, Any]]]] = {subset: [] for subset in SUBSETS}
    found = expressible(seed, size, codes_fit)
    for place in range(max(episodes, len(SUBSETS))):
        subset, played = SUBSETS[place % len(SUBSETS)], next(found)
        images = folder / "aitw_images" / subset
        images.mkdir(parents=True, exist_ok=True)
        for index, step in enumerate(played.steps):
            (images / f"{episode_id(played)}_{index}.png").write_bytes(encode(step.phone.render()))
        rows[subset].append([_row(played, index, step, subset) for index, step in enumerate(played.steps)])
        written[subset].append(played)
    (folder / f"aitw_data_{split}.json").write_text(json.dumps(rows), encoding="utf-8")
    return written


def episode_id(played: PhoneEpisode) -> str:
    """AITW's ids are numbers of up to twenty digits."""
    return f"{168_000_000_000_000_000 + played.seed * 1_000_000 + played.number}"


def _row(played: PhoneEpisode, index: int, step: PhoneStep, subset: str) -> dict[str, Any]:
    flat = [number / 1000 for box in step.boxes for number in (box.y1, box.x1, box.y2 - box.y1, box.x2 - box.x1)]
    return {
        "ep_id": episode_id(played),
        "step": index,
        "goal": played.task.instruction,
        "img_filename": f"{subset}/{episode_id(played)}_{index}",
        **_labelled(step.action),
        "annot_position": flat,
    }


def _labelled(action: Action) -> dict[str, Any]:
    text = ""
    touch = lift = [-1.0, -1.0]
    match action:
        case Click():
            code, word = 4, "click"
            touch = lift = [action.point.x / 1000, action.point.y / 1000]
        case Scroll():
            code, word = 4, f"scroll {_VIEW[action.direction]}"
            start, end = scroll_path(action)
            touch, lift = [start.x / 1000, start.y / 1000], [end.x / 1000, end.y / 1000]
        case Type():
            code, word, text = 3, "type", action.text
        case Press():
            code, word = _BUTTONS[action.button]
        case Stop():
            code, word = _STATUSES[action.status]
        case _:
            raise ValueError(f"AITW's codes have no word for {action!r}")
    return {"action_type_id": code, "action_type_text": word, "touch": touch, "lift": lift, "type_text": text}
