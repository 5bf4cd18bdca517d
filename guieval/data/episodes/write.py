"""Writes an episode as a line of our own format."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic_core import PydanticSerializationError, to_json

from guieval.actions import Boxes
from guieval.data.episodes.read import PLACES
from guieval.errors import DataError
from guieval.frames import PIXELS, Size
from guieval.steps import Episode, StepTaskModel


def episode_line(episode: Episode) -> bytes:
    """An episode as one line of the format, without its end; reading it gives equal records.

    Coordinates are written in pixels if every one of them comes back bit for bit from a whole or half pixel, which is
    short and can be read by eye, else as unified floats. Raises :class:`DataError` for an episode that no line can hold.
    """
    first = episode.steps[0]
    for number, step in enumerate(episode.steps):
        for name in ("dataset", "split", "setting"):
            if getattr(step, name) != getattr(first, name):
                raise DataError(f"episode {first.episode_key}, step {number}, field {name}: differs from that of step 0")
    in_pixels = _steps(episode, pixels=True)
    values: dict[str, Any] = {"episode_id": first.episode_id}
    if first.subset:
        values["subset"] = first.subset
    values |= {"split": first.split, "dataset": first.dataset, "setting": first.setting, "instruction": first.instruction}
    values["frame"] = "unified" if in_pixels is None else "pixels"
    values["steps"] = _steps(episode, pixels=False) if in_pixels is None else in_pixels
    try:
        return to_json(values)
    except PydanticSerializationError as error:  # half a surrogate pair in a text, or extras that are not JSON
        raise DataError(f"episode {first.episode_key}: cannot be written as JSON ({error})") from None


def _steps(episode: Episode, *, pixels: bool) -> list[dict[str, Any]] | None:
    """The steps with unified places or, if they can be written so, in pixels; ``None`` if they cannot."""
    steps = []
    for step in episode.steps:
        actions: list[dict[str, Any] | None] = [action.model_dump() for action in (step.action, *step.alternatives)]
        boxes: dict[str, list[list[float]] | None] = {
            "targets": step.targets.array.tolist(),
            "elements": step.elements.array.tolist(),
        }
        if pixels:
            actions = [_in_pixels(action, step.screenshot_size) for action in actions if action]
            boxes = {name: _boxes_in_pixels(getattr(step, name), step.screenshot_size) for name in boxes}
        if None in boxes.values() or not all(actions):
            return None
        steps.append(_step_values(step, episode.steps[0].instruction, actions, boxes))
    return steps


def _in_pixels(values: dict[str, Any], size: Size) -> dict[str, Any] | None:
    for name in PLACES:
        if (point := values.get(name)) is None:
            continue
        x, y = (_half_pixel(value, side) for value, side in zip(point, size, strict=True))
        try:
            back = PIXELS.decode(x, y, size)
        except ValueError:
            return None
        if struct.pack("2d", *back) != struct.pack("2d", *point):
            return None
        values[name] = [x, y]
    if "device" in values:
        values["device"] = _in_pixels(values["device"], size)
        return None if values["device"] is None else values
    return values


def _half_pixel(value: float, side: int) -> float:
    twice = round(value * side / 500.0)
    return twice // 2 if twice % 2 == 0 else twice / 2


def _boxes_in_pixels(boxes: Boxes, size: Size) -> list[list[float]] | None:
    sides = np.array([*size, *size], dtype=np.float64)
    with np.errstate(over="ignore"):  # a box may be as far off the screen as it likes
        pixels = np.round(boxes.array * sides / 500.0) / 2.0
        if (pixels * 1000.0 / sides).tobytes() != boxes.array.tobytes():
            return None
    return [[int(edge) if edge.is_integer() else edge for edge in box] for box in pixels.tolist()]


def _step_values(
    step: StepTaskModel,
    instruction: str,
    actions: Sequence[dict[str, Any] | None],
    boxes: Mapping[str, list[list[float]] | None],
) -> dict[str, Any]:
    """The written fields of a step; empty ones are left out."""
    values: dict[str, Any] = {"screenshot": step.screenshot, "screenshot_size": step.screenshot_size, "action": actions[0]}
    optional = {
        "instruction": None if step.instruction == instruction else step.instruction,
        "low_level_instruction": step.low_level_instruction,
        "alternatives": list(actions[1:]) or None,
        **{name: listed or None for name, listed in boxes.items()},
        "groups": step.groups or None,
        "extras": step.extras or None,
    }
    return values | {name: value for name, value in optional.items() if value is not None}
