"""Writes AndroidControl-Curated's point files, with the screenshots that their rows name.

The format has no word for HOME and ENTER and for ending a task. Steps that press HOME or ENTER end their episode here, since a
row's history names every step before it. As in the real files, rows are in no order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

from guieval.actions import OPPOSITE, Click, LongPress, Open, Press, Scroll, Type
from guieval.playground.phone import DEFAULT_SIZE, PhoneStep, generate_episode

from .androidcontrol import pixel
from .played import draw, write_json


def write_high(folder: Path, *, episodes: int = 2, seed: int = 0) -> None:
    """``episodes`` with their goals and histories, the rows from the last to the first."""
    rows: list[dict[str, Any]] = []
    for number in range(episodes):
        past: list[str] = []
        goal = generate_episode(seed, number).task.instruction
        for step in _expressible(seed, number):
            lines = "".join(f"Step {index}: {words}\n" for index, words in enumerate(past, 1)) or "None"
            rows.append(_row(folder, "high", len(rows) + 1, step, {"history": f" \n{lines}\n", "instruction": goal}))
            past.append(step.instruction)
    write_json(folder / "android_control_high_point.json", rows[::-1])


def write_low(folder: Path, *, episodes: int = 2, seed: int = 0) -> None:
    """The first steps of one phone episode after another, each with its own instruction."""
    steps = (step for number in range(episodes) for step in _expressible(seed, number))
    rows = [_row(folder, "low", number, step, {"instruction": step.instruction}) for number, step in enumerate(steps, 1)]
    write_json(folder / "android_control_low_point.json", rows)


def _expressible(seed: int, number: int) -> Iterator[PhoneStep]:
    outside = (Press(button="HOME"), Press(button="ENTER"))
    return takewhile(
        lambda step: step.action not in outside and step.action.type != "STOP", generate_episode(seed, number).steps
    )


def _row(folder: Path, part: str, number: int, step: PhoneStep, words: dict[str, Any]) -> dict[str, Any]:
    image = f"android_control_{part}/image_{number}.jpg"
    draw(step, folder / image)
    name, place, text = _label(step)
    label = {"gt_action": name, "gt_bbox": place, "gt_input_text": text}
    return {"image": image, **words, **label, "group": "android", "ui_type": name}


def _label(step: PhoneStep) -> tuple[str, list[int], str]:
    nowhere, nothing = [-100, -100], "no input text"
    match action := step.action:
        case Click() | LongPress():
            return "click" if isinstance(action, Click) else "long_press", list(pixel(action.point, DEFAULT_SIZE)), nothing
        case Scroll():
            return "scroll", nowhere, OPPOSITE[action.direction].upper()
        case Type():
            return "type", nowhere, action.text
        case Open():
            return "open_app", nowhere, action.app
        case Press():
            return "press_back", nowhere, nothing
        case _:
            return "wait", nowhere, nothing
