"""The label inside a row of AgentCPM-GUI's or GUIEvalKit's files: Android in the Wild's action codes and (y, x) fractions.

Both write the annotation they were given next to each answer, so that a step can be rebuilt from the row alone. Source:
OpenBMB/AgentCPM-GUI ``eval/utils/evaluator.py``; xiaomi-research/guievalkit ``guieval/main/step_task.py`` and ``data/*.py``.

The codes are read in :mod:`guieval.data.aitw_labels`. Episodes and steps are named as our loaders name them: GUI-Odyssey's step
is the one in the image's name, because both projects split episodes again and one renumbers steps.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from guieval.actions import Action, Boxes, LongPress
from guieval.data.aitw_labels import CODES, boxes_from_fractions, fraction_point, labelled_action
from guieval.errors import nearest
from guieval.scoring.predictions.rows import Row
from guieval.steps import StepTaskModel

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
    """The step that a row's annotation describes; :class:`guieval.errors.DataError` where a part is missing."""
    extras: dict[str, Any] = {}
    action = label(row, extras)
    index = place_in_episode(row, of)
    length = row.whole("episode_length", 1)
    if length <= index:  # pieces of GUI-Odyssey's episodes keep the whole one's step numbers
        extras["episode_length"] = length
    low = row.values.get("low_instruction")
    return row.task(
        benchmark=of.benchmark,
        dataset=of.dataset,
        subset=of.subset,
        episode_id=row.identity("episode_id"),
        step_index=index,
        episode_length=max(length, index + 1),
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
    if row.whole("result_action_type") == 0:
        return LongPress(point=fraction_point(row, "result_touch_yx"))
    return labelled_action(row, CODES, extras)


def _boxes(row: Row) -> Boxes:
    field = next((name for name in ("ui_positions", "bbox") if row.values.get(name)), None)
    return Boxes() if field is None else row.build(field, lambda: boxes_from_fractions(row.boxes(field)))


def _screenshot(row: Row) -> str:
    path = row.values.get("image_path")
    if isinstance(path, list) and path:  # GUIEvalKit allows several images
        path = path[-1]
    return path if isinstance(path, str) else ""
