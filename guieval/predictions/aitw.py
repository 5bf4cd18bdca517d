"""The label inside a row of AgentCPM-GUI's or GUIEvalKit's files: Android in the Wild's action codes and (y, x) fractions.

Both write the annotation they were given next to each answer, so that a step can be rebuilt from the row alone. Source:
OpenBMB/AgentCPM-GUI ``eval/utils/evaluator.py``; xiaomi-research/guievalkit ``guieval/main/step_task.py`` and ``data/*.py``.

Code 4 touches and lifts: a tap when the two are within 0.04 of the screen of each other, else a swipe in the finger's
direction. 0 presses long, 1 waits, 3 types, 5, 6 and 7 press BACK, HOME and ENTER, 10 and 11 end the task as done and as
impossible, 12 opens an app. Boxes are [y, x, height, width] fractions. Episodes and steps are named as our loaders name them:
GUI-Odyssey's step is the one in the image's name, for both cut episodes anew and one counts anew.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from guieval.actions import Action, Boxes, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait, path_direction
from guieval.errors import nearest
from guieval.frames import RELATIVE
from guieval.predictions.rows import Row
from guieval.steps import StepTaskModel

TAP_DISTANCE = 0.04

AITZ = ("general", "google_apps", "install", "single", "web_shopping")
_IMAGE = re.compile(r"(?:.*[/\\])?([^/\\]+?)_(\d+)\.\w+")


class Home(NamedTuple):
    """Whose step a row is: our loader, the data set that protocols know, and the loader's subset."""

    benchmark: str
    dataset: str
    subset: str


HOMES = {
    **{name: Home("aitz", "aitz", name) for name in AITZ},
    "domestic": Home("cagui", "cagui", "domestic"),
    "android_control": Home("androidcontrol", "androidcontrol", ""),
    "odyssey": Home("gui-odyssey", "gui-odyssey", ""),
    "gui_odyssey": Home("gui-odyssey", "gui-odyssey", ""),
}
"""By the name of the folder of episodes, which AgentCPM-GUI calls category and GUIEvalKit subset."""


def home(row: Row, field: str) -> Home:
    """Whose step a row is, by the folder that ``field`` names."""
    name = row.text(field)
    if name not in HOMES:
        raise row.error(field, f"{name!r:.80} is none of {', '.join(HOMES)}{nearest(name, HOMES)}")
    return HOMES[name]


def place_in_episode(row: Row, of: Home) -> int:
    """The step's index, from 0."""
    if of.benchmark == "gui-odyssey" and isinstance(row.values.get("image_path"), str):
        image = _IMAGE.fullmatch(row.text("image_path"))
        if image is not None:
            return int(image[2])
    return row.whole("step_id")


def labelled_step(row: Row, of: Home) -> StepTaskModel:
    """The step that a row's annotation describes; :class:`guieval.errors.DataError` where it does not say all of it."""
    extras: dict[str, Any] = {}
    action = label(row, extras)
    index = place_in_episode(row, of)
    told = row.whole("episode_length", 1)
    if told <= index:  # pieces of GUI-Odyssey's episodes keep the whole one's step numbers
        extras["episode_length"] = told
    low = row.values.get("low_instruction")
    return row.task(
        benchmark=of.benchmark,
        dataset=of.dataset,
        subset=of.subset,
        episode_id=row.identity("episode_id"),
        step_index=index,
        episode_length=max(told, index + 1),
        instruction=row.text("instruction"),
        low_level_instruction=low if isinstance(low, str) and low else None,
        screenshot=_screenshot(row),
        screenshot_size=(row.whole("image_width", 1), row.whole("image_height", 1)),
        action=action,
        boxes=_boxes(row),
        extras=extras,
    )


def label(row: Row, extras: dict[str, Any]) -> Action:
    """The reference action; a swipe's ends, [x, y] in [0, 1000], go into ``extras["path"]``."""
    match row.whole("result_action_type"):
        case 0:
            return LongPress(point=_point(row, "result_touch_yx"))
        case 1:
            return Wait()
        case 3:
            return Type(text=row.text("result_action_text"))
        case 4:
            return _dual_point(row, extras)
        case 5:
            return Press(button="BACK")
        case 6:
            return Press(button="HOME")
        case 7:
            return Press(button="ENTER")
        case 10:
            return Stop(status="finish")
        case 11:
            return Stop(status="impossible")
        case 12:
            return Open(app=row.text("result_action_app_name"))
        case code:
            raise row.error("result_action_type", f"expected one of 0, 1, 3, 4, 5, 6, 7, 10, 11, 12, got {code!r:.80}")


def _dual_point(row: Row, extras: dict[str, Any]) -> Action:
    point = _point(row, "result_touch_yx")
    touch_y, touch_x = row.numbers("result_touch_yx", 2)
    lift_y, lift_x = row.numbers("result_lift_yx", 2)
    moved = math.hypot(lift_x - touch_x, lift_y - touch_y)
    if moved <= TAP_DISTANCE:
        return Click(point=point)
    direction = path_direction((touch_x, touch_y), (lift_x, lift_y)) if math.isfinite(moved) else None
    if direction is None:
        raise row.error("result_lift_yx", f"expected finite numbers, got {row.value('result_lift_yx')!r:.80}")
    extras["path"] = [list(point), [lift_x * 1000.0, lift_y * 1000.0]]
    return Scroll(point=point, direction=direction)


def _point(row: Row, field: str) -> Point:
    y, x = row.numbers(field, 2)
    return row.build(field, lambda: RELATIVE.decode(x, y, (1, 1)))


def _boxes(row: Row) -> Boxes:
    field = next((name for name in ("ui_positions", "bbox") if row.values.get(name)), None)
    if field is None:
        return Boxes()
    corners = [[x, y, x + width, y + height] for y, x, height, width in row.boxes(field)]
    return row.build(field, lambda: Boxes([[1000.0 * edge for edge in box] for box in corners]))


def _screenshot(row: Row) -> str:
    path = row.values.get("image_path")
    if isinstance(path, list) and path:  # GUIEvalKit allows several images
        path = path[-1]
    return path if isinstance(path, str) else ""
