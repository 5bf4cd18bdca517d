"""Writes Android in the Wild as SeeClick redistributes it: ``aitw_data_<split>.json`` and ``aitw_images/``.

The layout is read from SeeClick's ``agent_tasks/aitw_process.py``, ``aitw_test.py`` and ``action_matching.py``: touch
and lift as [x, y] fractions, boxes flat as y, x, height, width, and a scroll's word for the way the view moves over the page,
against the finger. The format has no word for opening an app, for a long press and for waiting, so episodes of the simulated
phone that need one are passed over; the steps of the others are kept as they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from guieval.actions import OPPOSITE, Action, Press, Scroll, Stop, Type
from guieval.playground.phone import PhoneEpisode, PhoneStep

from .played import code, codes_fit, draw_all, expressible, gesture, write_json

SUBSETS = ("general", "single", "webshopping", "install", "googleapps")
"""The keys of the file; each has at least one episode."""


def write_aitw(folder: Path, *, episodes: int = 2, seed: int = 0) -> dict[str, list[PhoneEpisode]]:
    """Write ``episodes``, or one for each subset if that is more, into ``folder``; returns them by subset."""
    written: dict[str, list[PhoneEpisode]] = {subset: [] for subset in SUBSETS}
    rows: dict[str, list[list[dict[str, Any]]]] = {subset: [] for subset in SUBSETS}
    playable = expressible(seed, codes_fit)
    for place in range(max(episodes, len(SUBSETS))):
        subset, played = SUBSETS[place % len(SUBSETS)], next(playable)
        draw_all(played.steps, folder / "aitw_images" / subset, f"{episode_id(played)}_{{}}.png")
        rows[subset].append([_row(played, index, step, subset) for index, step in enumerate(played.steps)])
        written[subset].append(played)
    write_json(folder / "aitw_data_test.json", rows, None)
    return written


def episode_id(played: PhoneEpisode) -> str:
    """AITW's ids are numbers of up to twenty digits."""
    return f"{168_000_000_000_000_000 + played.seed * 1_000_000 + played.number}"


def _row(played: PhoneEpisode, index: int, step: PhoneStep, subset: str) -> dict[str, Any]:
    flat = [
        number / 1000 for box in step.targets + step.elements for number in (box.y1, box.x1, box.y2 - box.y1, box.x2 - box.x1)
    ]
    return {
        "ep_id": episode_id(played),
        "step": index,
        "goal": played.task.instruction,
        "img_filename": f"{subset}/{episode_id(played)}_{index}",
        **_labelled(step.action),
        "annot_position": flat,
    }


def _labelled(action: Action) -> dict[str, Any]:
    match action:
        case Scroll():
            word = f"scroll {OPPOSITE[action.direction]}"
        case Press():
            word = f"press {action.button.lower()}"
        case Stop():
            word = f"status task {'complete' if action.status == 'finish' else 'impossible'}"
        case _:
            word = action.type.lower()
    touch, lift = gesture(action)
    return {
        "action_type_id": code(action),
        "action_type_text": word,
        "touch": touch[::-1],
        "lift": lift[::-1],
        "type_text": action.text if isinstance(action, Type) else "",
    }
