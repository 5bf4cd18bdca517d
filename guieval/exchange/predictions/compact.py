"""The JSON action objects of AgentCPM-GUI, in which its own and GUIEvalKit's predictions files keep every model's answer.

Sources: OpenBMB/AgentCPM-GUI ``eval/utils/schema/schema_for_extraction.json`` and ``eval/utils/evaluator.py``;
xiaomi-research/guievalkit ``guieval/utils/schema/schema_for_extraction.json`` and ``guieval/eval/evaluator.py``. Both scorers
check an object against the schema first and take it for unparseable when it fails, so what fails here is what fails there:
keys or words the schema does not have, places that are not two whole numbers in [0, 1000], two actions at once. Of what
passes, a status that ends the task goes first, then INPUT, TYPE and OPEN_APP, the touches, PRESS and a pause, as in the
scorers. GUIEvalKit's schema adds OPEN_APP and INPUT, which touches a field and types into it.

A POINT is a tap unless ``duration`` (milliseconds, 200 if it is not given) is longer, which makes it a long press. ``to``
makes it a swipe, towards a place or in a direction, the finger's. Two shapes are read by what the schema means, not by what
the scorers make of them: a swipe that gives a longer duration (to them a long press) and a touch shorter than 200 (a pause).
CLEAR and DEEP_LINK are unsupported (to the scorers a pause).
"""

from __future__ import annotations

import sys
from typing import Any

from guieval import actions as act
from guieval.errors import ParseError, whole_text

TAP = 200
"""The schema's default duration in milliseconds."""

KEYS = frozenset({"thought", "POINT", "to", "duration", "PRESS", "TYPE", "DEEP_LINK", "CLEAR", "STATUS"})
KIT_KEYS = KEYS | {"OPEN_APP", "INPUT"}

_ALONE = ("POINT", "PRESS", "TYPE", "DEEP_LINK", "CLEAR", "INPUT")
_STOPS: dict[str, act.StopStatus] = {
    "finish": "finish",
    "satisfied": "finish",
    "impossible": "impossible",
    "interrupt": "impossible",
    "need_feedback": "impossible",
}
_BUTTONS: dict[str, act.Button] = {"HOME": "HOME", "BACK": "BACK", "ENTER": "ENTER", "APPSELECT": "RECENT"}


def compact_action(value: Any, keys: frozenset[str] = KEYS, *, label: act.Action | None = None) -> act.Action:
    """The action of an object that may have ``keys``; points are in thousandths of the screen.

    ``label`` decides what an INPUT counts as, a click if a click is right and typing otherwise, as in GUIEvalKit's scorer.
    Raises :class:`ParseError` if the schema refuses the object.
    """
    if not isinstance(value, dict):
        raise ParseError("there is no answer" if value is None else "the answer is not a JSON object that passes the schema")
    unknown = [key for key in value if key not in keys]
    if unknown:
        raise ParseError(f"the schema has no key {unknown[0]!r:.40}")
    given = [key for key in _ALONE if key in value]
    if len(given) > 1:
        raise ParseError(f"the answer gives {' and '.join(given)} at once")
    if "thought" in value:
        _text(value, "thought")
    duration = _duration(value)
    point = _place(value["POINT"], "POINT") if "POINT" in value else None
    if "to" in value and point is None:
        raise ParseError("the answer gives 'to' without a POINT")
    typed = {key: _text(value, key) for key in ("TYPE", "OPEN_APP") if key in value}
    button = _button(value["PRESS"]) if "PRESS" in value else None
    joint = _joint(value["INPUT"]) if "INPUT" in value else None
    status = value.get("STATUS", "continue")
    if isinstance(status, str) and status in _STOPS:
        return act.Stop(status=_STOPS[status])
    if status not in ("continue", "start"):
        raise ParseError(f"the STATUS {status!r:.40} is none of the schema's")
    if joint is not None:
        return act.Click(point=joint[0]) if isinstance(label, act.Click) else act.Type(text=joint[1])
    if "TYPE" in typed:
        return act.Type(text=typed["TYPE"])
    if "OPEN_APP" in typed:
        return act.Open(app=typed["OPEN_APP"])
    if point is not None:
        if "to" in value:
            return _swipe(point, value["to"])
        return act.LongPress(point=point, duration=duration) if duration > TAP else act.Click(point=point)
    if button is not None:
        return act.Press(button=button)
    if given:
        return act.Unsupported(name=given[0])
    if "duration" in value:
        return act.Wait(duration=duration)
    raise ParseError("the answer names no action")


def _duration(value: dict[str, Any]) -> float:
    number = value.get("duration", TAP)
    if not _is_whole(number) or number < 0:
        raise ParseError(f"the duration {number!r:.40} is not a whole number of milliseconds")
    return float(min(number, sys.float_info.max))  # the schema sets no limit, a number of ours has one


def _place(value: Any, key: str) -> act.Point:
    if not isinstance(value, list) or len(value) != 2 or not all(_is_whole(axis) and 0 <= axis <= 1000 for axis in value):
        raise ParseError(f"the {key} {value!r:.40} is not two whole numbers from 0 to 1000")
    return act.Point(float(value[0]), float(value[1]))


def _swipe(point: act.Point, to: Any) -> act.Scroll:
    if isinstance(to, str):
        for direction in act.DIRECTIONS:
            if to == direction:
                return act.Scroll(point=point, direction=direction)
        raise ParseError(f"the direction {to!r:.40} is none of up, down, left, right")
    towards = act.path_direction(point, _place(to, "to"))
    if towards is None:
        raise ParseError("the swipe has no length, so it has no direction")
    return act.Scroll(point=point, direction=towards)


def _text(value: dict[str, Any], key: str) -> str:
    text = value[key]
    if not isinstance(text, str):
        raise ParseError(f"the {key} {text!r:.40} is not text")
    return whole_text(text)


def _button(value: Any) -> act.Button:
    if not isinstance(value, str) or value not in _BUTTONS:
        raise ParseError(f"the PRESS {value!r:.40} is none of {', '.join(_BUTTONS)}")
    return _BUTTONS[value]


def _joint(value: Any) -> tuple[act.Point, str]:
    if not isinstance(value, dict) or value.keys() != {"point", "text"}:
        raise ParseError("the INPUT is not a point and a text")
    return _place(value["point"], "point of INPUT"), _text(value, "text")


def _is_whole(value: Any) -> bool:
    """Whether JSON schema calls it an integer: 3 and 3.0, but not a truth value."""
    return not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
