"""The calls of UI-Venus-2 on phones, computers and web pages, and where these differ.

Source: the prompts of inclusionAI/UI-Venus@81945ac ``models/{mobile/mobile_example,computer/computer_example,browser/
venus_browser}.py``. Each table has its own calls first, then those for phones, which the past may hold.
"""

from __future__ import annotations

import re
from typing import Any

from guieval import actions as act
from guieval.errors import ParseError
from guieval.models import Surface
from guieval.models.parsing import CallExpression, first_call
from guieval.models.parsing import call_tables as calls

from . import _desktop_calls as desktop
from . import _ui_tars as tars
from ._hosted import keys_pressed

_AXES = {
    "vertical": calls.wheel("down", "up", "amount", unit=None),
    "horizontal": calls.wheel("left", "right", "amount", unit=None),
}


def _turned(action: act.Scroll, writing: calls.Writing) -> dict[str, Any]:
    return next({**amount, "axis": axis} for axis, form in _AXES.items() if (amount := form.write(action, writing)))


def _keys(call: calls.Arguments) -> act.Action:
    given = call.values.get("keys")
    names = call._replace(values={"keys": given.strip("() ")}) if isinstance(given, str) else call
    return keys_pressed(names.keys("keys").keys, call)


def _held(call: calls.Arguments) -> act.Action:
    seconds = calls.amount(call.values.get("duration", 20), "the duration", "seconds")
    return act.LongPress(point=call.point("point"), duration=seconds * 1000)


def _dragged(call: calls.Arguments) -> act.Drag:
    return act.Drag(start=call.point("start") if "start" in call.values else None, end=call.point("end"))


PHONE = calls.CallTable(
    {
        "Click": calls.tap("point", "box"),
        "LongPress": calls.hold("point", "box"),
        "Swipe": calls.swiped("start", "end"),
        "Type": calls.typed("content"),
        "LaunchApp": calls.opened("app"),
        "Wait": act.Wait(),
        **{"PressBack": calls.BACK, "PressHome": calls.HOME, "PressEnter": calls.ENTER, "PressRecent": calls.RECENT},
        "Finished": calls.ended(calls.FINISH, "content", other=True),
        "DoubleClick": calls.double_clicked("point", "box"),
        "Drag": calls.on_device(_dragged),
        **dict.fromkeys(("Answer", "CallUser"), calls.answered("content")),
        **calls.outside("GetScreenshot"),
    }
)
_COMPUTER = {
    "Click": calls.tap("box"),
    "Type": tars.CALLS["type"],
    "Swipe": calls.Form(act.Scroll, lambda call: call.one_of(_AXES, "axis").read(call), _turned),
    "Hotkey": calls.enter(_keys, keys=["enter"]),
    "CallUser": calls.ended(calls.IMPOSSIBLE, "content"),
    "RightClick": calls.right_clicked("box"),
    "Hover": calls.hovered("box"),
    **calls.outside("TripleClick", "MiddleClick", "KeyDown", "KeyUp", "MouseDown", "MouseUp"),
}
_BROWSER = {
    "LongPress": calls.Form(act.LongPress, _held, calls.hold("point", seconds="duration").write),
    "Scroll": calls.scrolled("direction", "point"),
    "Hover": calls.hovered("point"),
    "Hotkey": calls.Form(act.Press, _keys),
    **calls.outside("Launch", "GetUrl", "TakeNote", "SelectOption"),
    "PressHome": calls.on_device(lambda call: act.Hotkey(keys=("home",))),
    "system_button": calls.pressed("button", {"home": "HOME"}),  # of the base model: the past may hold the button of a phone
}


COMPUTER, BROWSER = (calls.CallTable({**own, **PHONE, **own}) for own in (_COMPUTER, _BROWSER))
_FINISHED = frozenset[act.StopStatus]({"finish"})
SURFACES = {
    "mobile": Surface(PHONE, act.ActionSpace(buttons=frozenset(act.BUTTONS), statuses=_FINISHED)),
    "computer": Surface(COMPUTER, desktop.SPACE),
    "browser": Surface(BROWSER, act.ActionSpace(desktop.SPACE.types | {"LONG_PRESS"}, frozenset({"BACK", "ENTER"}), _FINISHED)),
}
MOST = 32
"""Most calls of a ``Sequence``, and most times that keys are pressed."""
_SEQUENCE = re.compile(r"Sequence\(\s*actions\s*=\s*\[")


def calls_in(body: str, table: calls.CallTable, *, sequences: bool) -> list[CallExpression]:
    """The call of a response, or those of its ``Sequence``, which on computers may hold 2 to 32."""
    opened = _SEQUENCE.match(body) if sequences else None
    if opened is None:
        return [first_call(body, table)]
    found, rest = list[CallExpression](), body[opened.end() :].lstrip()
    while len(found) <= MOST and not rest.startswith("]"):
        found.append(first_call(rest, table))
        rest = rest[found[-1].end :].lstrip(" ,\n")
    if not 2 <= len(found) <= MOST:
        raise ParseError(f"a Sequence has 2 to {MOST} calls, not {len(found)}")
    return found
