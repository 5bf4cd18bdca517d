"""AgentNetBench's trajectories: a JSON file per task, and ``images/``.

After the README of github.com/xlang-ai/OpenCUA, evaluation/agentnetbench: places and boxes (``rel_bbox``, [x, y, width,
height]) are fractions of the screenshot, ``abs_bbox`` is the same in pixels. A wheel turned up (a positive amount) brings down
what is on the screen, as a finger does that moves down.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from guieval.actions import Action, Click, LongPress, Point, Press, Scroll, Stop, Type
from guieval.playground.phone import PhoneStep

from .played import draw, expressible, write_json

SIZE = (360, 800)


def write_agentnetbench(folder: Path, *, episodes: int, seed: int) -> None:
    """The first ``episodes`` of ``seed`` that the format has words for: those that launch no app by its name, never wait, and
    never go to the home screen."""
    for played in islice(expressible(seed, lambda step: _known(step.action), SIZE), episodes):
        name = f"s_{played.seed:08x}{played.number:08x}"
        steps = []
        for number, step in enumerate(played.steps):
            image = f"{name}_{2 * number}.png"  # recorded steps are left out of a trajectory, so its numbers have gaps
            draw(step, folder / "images" / image)
            steps.append({"step_num": 2 * number, "image": image, **_labels(step)})
        trajectory = {
            "task_id": name,
            "user_task_description": played.task.instruction,
            "high_level_task_description": played.task.instruction,
            "steps": steps,
            "meta_info": {
                "system": "Ubuntu",
                "domain": played.task.app,
                "screen_resolution": dict(zip(("width", "height"), SIZE, strict=True)),
            },
        }
        write_json(folder / f"{name}.json", trajectory)


def _known(action: Action) -> bool:
    return isinstance(action, Click | LongPress | Type | Scroll | Stop) or action in (
        Press(button="ENTER"),
        Press(button="BACK"),
    )


def _labels(step: PhoneStep) -> dict[str, Any]:
    return {
        "action": step.action.type.lower(),
        "milestone": isinstance(step.action, Stop),
        "inner_monologue": {"observation": "", "thought": step.instruction, "low_level_instruction": step.instruction},
        "ground_truth_actions": _actions(step.action, step),
        "alternative_options": [_actions(other, step) for other in step.alternatives if _known(other)],
    }


def _actions(action: Action, step: PhoneStep) -> list[dict[str, Any]]:
    match action:
        case Click():
            return [_at("click", action.point, step)]
        case LongPress():
            return [_at("rightClick", action.point, step)]
        case Scroll():
            amount = 5 if action.direction in ("down", "left") else -5
            kind = "scroll" if action.direction in ("up", "down") else "hscroll"
            turned = {
                "type": kind,
                "params": {"position": _fractions(action.point), "amount": amount},
                "metadata": {"bboxes": []},
            }
            return [_at("moveTo", action.point, step), turned]
        case Type():
            return [{"type": "write", "params": {"text": action.text}, "metadata": {}}]
        case Press(button="ENTER"):
            return [{"type": "press", "params": {"keys": ["enter"]}, "metadata": {}}]
        case Press():
            return [{"type": "hotkey", "params": {"keys": ["alt", "left"]}, "metadata": {}}]
        case Stop():
            status = "success" if action.status == "finish" else "failure"
            return [{"type": "terminate", "params": {"status": status}, "metadata": {}}]
        case _:
            raise ValueError(f"AgentNetBench has no word for {action!r}")


def _at(kind: str, point: Point, step: PhoneStep) -> dict[str, Any]:
    return {"type": kind, "params": {"position": _fractions(point)}, "metadata": {"bboxes": _boxes(step, point)}}


def _fractions(point: Point) -> dict[str, float]:
    return {"x": round(point.x / 1000, 4), "y": round(point.y / 1000, 4)}


def _boxes(step: PhoneStep, point: Point) -> list[dict[str, Any]]:
    """The box of the target if the point is in it; an alternative with another target has no box."""
    width, height = SIZE
    if step.target is None or not step.target.box.holds(point.x * width / 1000, point.y * height / 1000):
        return []
    x1, y1, x2, y2 = step.target.box
    pixels = [x1, y1, x2 - x1, y2 - y1]
    fractions = [pixels[0] / width, pixels[1] / height, pixels[2] / width, pixels[3] / height]
    return [{"category_id": 1, "rel_bbox": fractions, "abs_bbox": pixels, "area": float(pixels[2] * pixels[3])}]
