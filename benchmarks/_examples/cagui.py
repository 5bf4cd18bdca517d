"""Writes CAGUI as its data card lays it out: ``CAGUI_agent/domestic`` and ``CAGUI_grounding``.

The agent part has no word for opening an app, so episodes of the simulated phone that need one are passed over; the steps of
the others are kept as they are. The grounding part has one row and one image for the first named target of each episode.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from hashlib import md5
from itertools import count, islice
from pathlib import Path
from typing import Any

from guieval.actions import Box, Click, LongPress, Wait
from guieval.playground.phone import DEFAULT_SIZE, Phone, PhoneEpisode, PhoneStep, generate_episode

from .played import expressible, gesture, labelled, save, write_json, write_lines

_DURATIONS = {"CLICK": 200.0, "SCROLL": 400.0}


def write_cagui_agent(folder: Path, *, episodes: int = 2, seed: int = 0) -> list[PhoneEpisode]:
    """Write ``episodes`` into ``folder/CAGUI_agent/domestic`` and return what was written."""
    written = list(islice(expressible(seed, lambda step: step.action.type != "OPEN"), episodes))
    for played in written:
        name = episode_id(played)
        home = folder / "CAGUI_agent" / "domestic" / name
        for index, step in enumerate(played.steps):
            save(home / f"{name}_{index}.jpeg", _jpeg(step.phone))
        rows = [_row(played, name, index, step) for index, step in enumerate(played.steps)]
        write_json(home / f"{name}.json", rows)
    return written


def write_cagui_grounding(folder: Path, *, episodes: int = 2, seed: int = 0) -> list[PhoneStep]:
    """Write ``episodes`` rows of each of the two tasks into ``folder/CAGUI_grounding``; returns the steps they show."""
    home = folder / "CAGUI_grounding"
    shown = list(islice(_pointed_at(seed), episodes))
    for part, task, recorded in (("cap", "bbox2function", ""), ("ocr", "bbox2text", "ocr/")):
        rows = []
        for number, step in enumerate(shown):
            save(home / "images" / part / f"{number}.jpeg", _jpeg(step.phone))
            label = step.target.label if step.target else ""
            pixels, shares = _corners(step.targets[0])
            row = {
                "task": task,
                "image": f"grounding_eval/dataset/images/{recorded}{number}.jpeg",
                "id": number if part == "cap" else 600 + number,
                "abs_position": f"<{', '.join(map(str, pixels))}>",
                "rel_position": f"<{', '.join(map(str, shares))}>",
                "text": label if part == "ocr" else f"点击“{label}”可以执行它所说的操作。",
            }
            rows.append(row)
        write_lines(home / "code" / f"{part}.jsonl", rows)
    return shown


def episode_id(played: PhoneEpisode) -> str:
    """CAGUI's ids are 32 hexadecimal digits."""
    return md5(f"{played.seed}/{played.number}".encode()).hexdigest()


def _pointed_at(seed: int) -> Iterator[PhoneStep]:
    for number in count():
        steps = generate_episode(seed, number).steps
        yield from [step for step in steps if isinstance(step.action, Click) and step.target and step.target.label][:1]


def _jpeg(phone: Phone) -> bytes:
    buffer = io.BytesIO()
    phone.render().save(buffer, format="JPEG", quality=85)
    return buffer.getvalue()


def _row(played: PhoneEpisode, name: str, index: int, step: PhoneStep) -> dict[str, Any]:
    width, height = played.size
    return {
        "episode_id": name,
        "episode_length": len(played),
        "step_id": index,
        "instruction": played.task.instruction,
        "image_path": f"domestic/{name}/{name}_{index}.jpeg",
        "image_width": width,
        "image_height": height,
        "ui_positions": json.dumps([_share(box) for box in step.targets + step.elements]),
        **labelled(step.action, *gesture(step.action)),
        "duration": step.action.duration if isinstance(step.action, LongPress | Wait) else _DURATIONS.get(step.action.type),
    }


def _share(box: Box) -> list[float]:
    return [box.y1 / 1000, box.x1 / 1000, (box.y2 - box.y1) / 1000, (box.x2 - box.x1) / 1000]


def _corners(box: Box) -> tuple[list[int], list[float]]:
    sides = (*DEFAULT_SIZE, *DEFAULT_SIZE)
    pixels = [round(edge * side / 1000) for edge, side in zip(box, sides, strict=True)]
    return pixels, [edge / side for edge, side in zip(pixels, sides, strict=True)]
