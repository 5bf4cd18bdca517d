"""Writes AiTZ's release as its repository's ``data-example`` and ``run_coat.py`` show it, or as GUIEvalKit prepares it.

The format has no word for opening an app, for a long press and for waiting, so episodes of the simulated phone that need one
are passed over; the steps of the others are kept as they are.
"""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

from guieval.actions import Box
from guieval.playground.phone import PhoneEpisode, PhoneStep

from .played import codes_fit, draw, expressible, gesture, labelled, write_json

SUBSETS = ("general", "install", "google_apps", "web_shopping")
"""The subsets of the test split; they take turns."""


def write_aitz(folder: Path, *, episodes: int = 2, seed: int = 0, prepared: bool = False) -> list[PhoneEpisode]:
    """Write ``episodes`` below ``folder/test`` and return what was written.

    ``prepared`` writes what GUIEvalKit's data/process_aitz.py makes of it: each step with the size of its image, and the
    boxes as fractions of it.
    """
    written = list(islice(expressible(seed, codes_fit), episodes))
    for place, played in enumerate(written):
        subset = SUBSETS[place % len(SUBSETS)]
        name = f"{subset.upper()}-{episode_id(played)}"
        home = folder / "test" / subset / name
        rows = []
        for index, step in enumerate(played.steps):
            draw(step, home / f"{name}_{index}.png")
            rows.append(_row(played, index, step, f"{subset}/{name}/{name}_{index}.png", prepared))
        write_json(home / f"{name}.json", rows)
    return written


def episode_id(played: PhoneEpisode) -> str:
    """AITW's ids are numbers of up to twenty digits."""
    return f"{523_000_000_000_000_000 + played.seed * 1_000_000 + played.number}"


def _row(played: PhoneEpisode, index: int, step: PhoneStep, image: str, prepared: bool) -> dict[str, Any]:
    width, height = played.size
    boxes = [_pixels(box, played.size) for box in step.targets + step.elements]
    row: dict[str, Any] = {
        "episode_id": episode_id(played),
        "episode_length": len(played),
        "step_id": index,
        "instruction": played.task.instruction,
        "ui_positions": json.dumps(boxes),
        "ui_text": json.dumps([""] * len(boxes)),
        "ui_types": json.dumps(["TEXT"] * len(boxes)),
        **labelled(step.action, *gesture(step.action, drift=0.001)),  # a finger is never quite still
        "image_path": image,
        "image_full_path": f"android-in-the-wild/aitw_with_gpt/test/{image}",
        "coat_screen_desc": f"This is a screen of the {played.task.app} task on the simulated phone.",
        "coat_action_think": f"The task is not done yet. The next thing to do is this: {step.instruction}",
        "coat_action_desc": step.instruction,
        "coat_action_result": "By doing so, the screen changes.",
    }
    if prepared:
        fractions = [[y / height, x / width, tall / height, wide / width] for y, x, tall, wide in boxes]
        row |= {"image_height": height, "image_width": width, "image_channels": 3, "ui_positions": json.dumps(fractions)}
    return row


def _pixels(box: Box, size: tuple[int, int]) -> list[int]:
    """[y, x, height, width] in whole pixels."""
    width, height = size
    left, top = round(box.x1 * width / 1000), round(box.y1 * height / 1000)
    return [top, left, round(box.y2 * height / 1000) - top, round(box.x2 * width / 1000) - left]
