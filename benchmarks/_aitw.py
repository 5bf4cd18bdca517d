"""Action codes and places of Android in the Wild, which the data sets made from it or after it share.

AiTZ, CAGUI and the folders that GUIEvalKit's and AgentCPM-GUI's preparations write all label a step with AITW's numbers for
action types and with touch and lift as (y, x) fractions of the screen; boxes are [y, x, height, width] fractions. AiTZ and
CAGUI also lay their files out alike: a folder for every episode, with its annotation and its screenshots.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from guieval.actions import Action, Boxes, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait, path_direction
from guieval.errors import DataError
from guieval.frames import RELATIVE

from ._images import IMAGE_SUFFIXES
from ._rows import Row, read_list

TAP_DISTANCE = 0.04
"""Longest way, as a fraction of the screen, between touch and lift that is still a tap (GUIEvalKit, AgentCPM-GUI)."""

CODES_ALONE: dict[int, Action] = {
    1: Wait(),
    5: Press(button="BACK"),
    6: Press(button="HOME"),
    7: Press(button="ENTER"),
    10: Stop(status="finish"),
    11: Stop(status="impossible"),
}
"""The codes that say everything by themselves."""
DUAL_POINT = 4
"""The code of taps and swipes."""
CODES = frozenset({0, 1, 3, DUAL_POINT, 5, 6, 7, 10, 11, 12})
"""Every code in use: AITW's own and those that the preparations of other data sets gave to its unused numbers (0, 1, 12)."""


def coded_action(row: Row, codes: frozenset[int]) -> Action:
    """The action of a row whose ``result_action_type`` is not 4 (a tap or swipe, see :func:`dual_point`).

    ``codes`` are those that the data set has a meaning for.
    """
    code = row.whole("result_action_type")
    if code not in codes:
        known = ", ".join(map(str, sorted(codes)))
        raise row.error("result_action_type", f"expected one of {known}, got {code}")
    match code:
        case 0:
            given = {} if row.values.get("duration") is None else {"duration": row.number("duration")}
            return row.build("duration", lambda: LongPress(point=fraction_point(row, "result_touch_yx"), **given))
        case 3:
            return Type(text=row.text("result_action_text"))
        case 12:
            return Open(app=row.text("result_action_app_name"))
        case _ if code in CODES_ALONE:
            return CODES_ALONE[code]
        case _:
            raise row.error("result_action_type", f"{code} says nothing without touch and lift")


def dual_point(row: Row, extras: dict[str, Any]) -> Action:
    """A tap or, where touch and lift are apart, a swipe; a swipe's ends, [x, y] in [0, 1000], go into ``extras["path"]``."""
    touch_y, touch_x = row.numbers("result_touch_yx", 2)
    lift_y, lift_x = row.numbers("result_lift_yx", 2)
    point = fraction_point(row, "result_touch_yx")
    moved = math.hypot(lift_x - touch_x, lift_y - touch_y)
    if moved <= TAP_DISTANCE:
        return Click(point=point)
    direction = path_direction((touch_x, touch_y), (lift_x, lift_y)) if math.isfinite(moved) else None
    if direction is None:
        raise row.error("result_lift_yx", f"expected finite numbers, got {row.value('result_lift_yx')!r:.80}")
    extras["path"] = [list(point), [lift_x * 1000.0, lift_y * 1000.0]]
    return Scroll(point=point, direction=direction)


def fraction_point(row: Row, field: str) -> Point:
    """A place given as (y, x) fractions."""
    y, x = row.numbers(field, 2)
    return row.build(field, lambda: RELATIVE.decode(x, y, (1, 1)))


def boxes_from_fractions(boxes: list[list[float]]) -> Boxes:
    """[y, x, height, width] fractions to unified corners. Trees reach outside the screen, so nothing is clipped."""
    if not boxes:
        return Boxes()
    y, x, height, width = np.array(boxes, dtype=np.float64).T
    return Boxes(np.stack([x, y, x + width, y + height], axis=1) * 1000.0)


def labelled_action(row: Row, codes: frozenset[int], extras: dict[str, Any]) -> Action:
    """The row's action, whichever of ``codes`` it has."""
    return dual_point(row, extras) if row.whole("result_action_type") == DUAL_POINT else coded_action(row, codes)


# --- a folder for every episode ---------------------------------------------------------------------------------------


def holds_episodes(folder: Path) -> bool:
    """Whether ``folder`` holds any ``<episode>/<episode>.json``."""
    return folder.is_dir() and any((entry / f"{entry.name}.json").is_file() for entry in folder.iterdir())


def episode_folders(folder: Path) -> Iterator[Path]:
    """The folders in ``folder``, in the order of their names."""
    return iter(sorted(entry for entry in folder.iterdir() if entry.is_dir()))


def annotation_in(folder: Path) -> Path:
    """The episode's annotation: the JSON file named like its folder, or the only one there is, as GUIEvalKit takes it."""
    named = folder / f"{folder.name}.json"
    if named.is_file():
        return named
    found = sorted(folder.glob("*.json"))
    if len(found) != 1:
        raise DataError(f"{folder}: expected {named.name!r}, found {len(found)} other JSON files")
    return found[0]


def step_rows(file: Path) -> list[Row]:
    """The steps of an annotation file, all of the same episode and at least one."""
    rows = [Row.of(value, f"{file}, step {index}") for index, value in enumerate(read_list(file))]
    if not rows:
        raise DataError(f"{file}: holds no step")
    for row in rows:
        if (told := row.value("episode_id")) != (first := rows[0].value("episode_id")):
            raise row.error("episode_id", f"is {told!r:.80}, but step 0 says {first!r:.80}")
    return rows


def screenshot_beside(root: Path, file: Path, row: Row) -> str:
    """The path below ``root`` of the image that ``image_path`` names; it lies beside the annotation."""
    name = row.text("image_path").replace("\\", "/").rsplit("/", 1)[-1]
    if not name.lower().endswith(IMAGE_SUFFIXES):
        raise row.error("image_path", f"expected the path of a PNG or JPEG image, got {row.value('image_path')!r:.80}")
    return (file.parent.relative_to(root) / name).as_posix()


def remembered(row: Row, index: int, length: int) -> dict[str, Any]:
    """What the row says about its place in the episode, where it is not the one it has."""
    own = {"step_id": index, "episode_length": length}
    return {field: told for field in own if (told := row.whole(field)) != own[field]}


def ui_boxes(row: Row, field: str = "ui_positions") -> list[list[float]]:
    """The row's boxes as they stand there; none when the row has none."""
    return row.boxes(field) if row.values.get(field) not in (None, "") else []


def text_or_none(row: Row, field: str) -> str | None:
    """A text that may be missing."""
    return None if row.values.get(field) is None else row.text(field)
