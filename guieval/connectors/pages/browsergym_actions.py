"""Actions as calls of BrowserGym's high-level action set: its subsets ``coord``, ``chat`` and ``infeas``.

Source: ServiceNow/BrowserGym at 9e779f0, ``browsergym/core/src/browsergym/core/action/functions.py``. Coordinates are pixels of
the screenshot. Several calls stand on lines of their own.
"""

from __future__ import annotations

from guieval import actions as act
from guieval.connectors.pages.browser import SCROLL_SHARE
from guieval.connectors.pages.keys import key_name


def browsergym_call(action: act.ExecutableAction, size: tuple[int, int]) -> str | None:
    """The call that carries out an action on a page whose screenshot has ``size``; ``None`` for one that it does not have."""
    match action:
        case act.Click():
            return f"mouse_click({_place(action.point, size)})"
        case act.DoubleClick():
            return f"mouse_dblclick({_place(action.point, size)})"
        case act.RightClick():
            return f"mouse_click({_place(action.point, size)}, button='right')"
        case act.Hover():
            return f"mouse_move({_place(action.point, size)})"
        case act.Drag(start=act.Point() as start):
            return f"mouse_drag_and_drop({_place(start, size)}, {_place(action.end, size)})"
        case act.LongPress():
            place = _place(action.point, size)
            return f"mouse_down({place})\nnoop({action.duration:g})\nmouse_up({place})"
        case act.Scroll():
            share = SCROLL_SHARE if action.distance is None else action.distance / 1000
            across = {"left": 1, "right": -1}.get(action.direction, 0) * share * size[0]
            down = {"up": 1, "down": -1}.get(action.direction, 0) * share * size[1]
            return f"scroll_at({_place(action.point, size)}, {across:.0f}, {down:.0f})"
        case act.Type():
            return f"keyboard_type({action.text!r})"
        case act.Press(button="ENTER"):
            return "keyboard_press('Enter')"
        case act.Hotkey():
            names = [key_name(key) for key in action.keys]
            return None if None in names else f"keyboard_press({'+'.join(map(str, names))!r})"
        case act.Wait():
            return f"noop({action.duration:g})"
        case act.Answer():
            return f"send_msg_to_user({action.text!r})"
        case act.Stop(status="finish"):
            return "send_msg_to_user('done')"
        case act.Stop():
            return "report_infeasible('impossible')"
    return None


def _place(point: act.Point, size: tuple[int, int]) -> str:
    x, y = (min(part / 1000 * length, length - 1) for part, length in zip(point, size, strict=True))
    return f"{x:.0f}, {y:.0f}"
