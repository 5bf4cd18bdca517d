"""Labels in the action codes of Android in the Wild, which the data sets made from it or after it share.

AiTZ, CAGUI and what GUIEvalKit's and AgentCPM-GUI's preparations write label a step with AITW's numbers for action types and
with touch and lift as (y, x) fractions of the screen; boxes are [y, x, height, width] fractions. Their annotations and the
predictions files that repeat these are read here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from guieval.actions import Action, Boxes, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait, path_direction
from guieval.data.typed_rows import Row
from guieval.frames import RELATIVE

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
"""The codes of actions without parameters."""
DUAL_POINT = 4
"""The code of taps and swipes."""
CODES = frozenset({0, 1, 3, DUAL_POINT, 5, 6, 7, 10, 11, 12})
"""Every code in use: AITW's own and those that the preparations of other data sets gave to its unused numbers (0, 1, 12)."""


def labelled_action(row: Row, codes: frozenset[int], extras: dict[str, Any]) -> Action:
    """The row's action, whose ``result_action_type`` is a tap or swipe or one of ``codes``, those of the data set.

    The ends of a swipe, [x, y] in [0, 1000], go into ``extras["path"]``.
    """
    code = row.whole("result_action_type")
    if code == DUAL_POINT:
        return _dual_point(row, extras)
    if code not in codes:
        known = ", ".join(map(str, sorted(codes)))
        raise row.error("result_action_type", f"expected one of {known}, got {code}")
    match code:
        case 0:
            duration = {} if row.values.get("duration") is None else {"duration": row.number("duration")}
            return row.build("duration", lambda: LongPress(point=fraction_point(row, "result_touch_yx"), **duration))
        case 3:
            return Type(text=row.text("result_action_text"))
        case 12:
            return Open(app=row.text("result_action_app_name"))
        case _ if code in CODES_ALONE:
            return CODES_ALONE[code]
        case _:
            raise row.error("result_action_type", f"{code} has no meaning without touch and lift")


def _dual_point(row: Row, extras: dict[str, Any]) -> Action:
    """A tap or, if touch and lift are apart, a swipe."""
    touch_y, touch_x = row.numbers("result_touch_yx", 2)
    lift_y, lift_x = row.numbers("result_lift_yx", 2)
    point = fraction_point(row, "result_touch_yx")
    moved = math.hypot(lift_x - touch_x, lift_y - touch_y)
    if moved <= TAP_DISTANCE:
        return Click(point=point)
    path = swipe_path(row, "result_lift_yx", point, lift_x, lift_y)
    direction = path_direction((touch_x, touch_y), (lift_x, lift_y))
    if direction is None:
        raise row.error("result_lift_yx", f"expected finite numbers, got {row.value('result_lift_yx')!r:.80}")
    extras["path"] = path
    return Scroll(point=point, direction=direction)


def swipe_path(row: Row, field: str, point: Point, x: float, y: float) -> list[list[float]]:
    """From ``point`` to where the finger lifts, (x, y) as fractions of the screen; both ends are [x, y] in [0, 1000]."""
    lifted = [x * 1000.0, y * 1000.0]
    if not all(map(math.isfinite, lifted)):
        raise row.error(field, f"expected fractions of the screen, got {row.value(field)!r:.80}")
    return [list(point), lifted]


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
