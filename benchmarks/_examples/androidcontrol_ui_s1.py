"""AndroidControl as UI-S1 evaluates it: one episode on a line, places in pixels, candidate boxes, no finish step.

After android_control_evaluation_std.jsonl of github.com/X-PLUG/MobileAgent, UI-S1/evaluation/dataset.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from guieval.actions import OPPOSITE, Action, Click, Direction, LongPress, Open, Press, Scroll, Type, Wait
from guieval.playground.phone.episodes import PhoneEpisode, PhoneStep
from guieval.playground.phone.state import Size

from .androidcontrol import pixel
from .played import draw_all, write_lines

TEST_FILE = "android_control_evaluation_std.jsonl"
RECORDED = "/datasets/AndroidControl/images"


def write_test_file(folder: Path, episodes: Sequence[PhoneEpisode]) -> None:
    """Write the file and ``images/<episode>_<step>.png`` next to it; episodes have their numbers as ids."""
    rows = []
    for episode in episodes:
        acted = episode.steps[:-1]
        draw_all(acted, folder / "images", f"{episode.number}_{{}}.png")
        steps = [shot(step, f"{RECORDED}/{episode.number}_{index}.png") for index, step in enumerate(acted)]
        about = {"goal": episode.task.instruction, "is_successful": True}
        rows.append({**about, "steps": steps, "episode_id": episode.number})
    write_lines(folder / TEST_FILE, rows)


def shot(step: PhoneStep, screenshot: str) -> dict[str, Any]:
    """One step. What an answer is checked against repeats the action, with boxes for a point and a word for a swipe."""
    content = _content(step.action, step.phone.screen.size)
    checks = {key: value for key, value in content.items() if content["action"] != "long_press" or key != "time"}
    if isinstance(step.action, Click | LongPress):
        checks["candidate_bbox"] = candidates(step)
    if isinstance(step.action, Scroll):
        checks = {"action": "swipe", "direction": OPPOSITE[step.action.direction]}
    return {
        "action_content": content,
        "screenshot": screenshot,
        "step_instruction": step.instruction,
        "check_options": checks,
    }


def candidates(step: PhoneStep) -> list[list[int]]:
    """The boxes that hold the point, smallest first: the target's, and the list's it is in."""
    screen = step.phone.screen
    areas = [step.target.box] if step.target else []
    areas += [screen.scroll_area] if screen.scroll_area else []
    x, y = screen.pixel(step.action.point) if isinstance(step.action, Click | LongPress) else (-1, -1)
    return [list(area) for area in sorted(areas, key=lambda area: area.area) if area.holds(x, y)]


def _content(label: Action, size: Size) -> dict[str, Any]:
    match label:
        case Click():
            return {"action": "click", "coordinate": list(pixel(label.point, size))}
        case LongPress():
            return {"action": "long_press", "coordinate": list(pixel(label.point, size)), "time": 2}
        case Scroll():
            start, end = _swipe(label.direction, size)
            return {"action": "swipe", "coordinate": start, "coordinate2": end}
        case Type():
            return {"action": "type", "text": label.text}
        case Open():
            return {"action": "open", "text": label.app}
        case Press(button="BACK" | "HOME" as button):
            return {"action": "system_button", "button": button.title()}
        case Wait():
            return {"action": "wait", "time": 2}
        case _:
            raise ValueError(f"the format has no word for {label!r}")


def _swipe(finger: Direction, size: Size) -> tuple[list[float], list[float]]:
    """A swipe's ends on a middle line of the screen. Upright it follows the finger, sideways the content (as in the file)."""
    width, height = size
    low, high = [width / 2, height * 0.75], [width / 2, height * 0.25]
    left, right = [width * 0.25, height / 2], [width * 0.75, height / 2]
    return {"up": (low, high), "down": (high, low), "left": (left, right), "right": (right, left)}[finger]
