"""The ``computer_use`` calls that models made from Qwen-VL share: the wheel, keys and waiting, and how a call is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from guieval.actions import Action, ActionSpace, Direction, Press, Scroll, Wait
from guieval.errors import ParseError
from guieval.frames import Frame
from guieval.parsing import call_tables as calls
from guieval.steps import StepTaskModel

from . import _qwen_tools as tools
from ._hosted import keys_pressed


@dataclass(frozen=True)
class UpAndDown(ActionSpace):
    """An action space whose scrolls are vertical."""

    def __contains__(self, action: Action) -> bool:
        return super().__contains__(action) and not (isinstance(action, Scroll) and action.direction in ("left", "right"))


def wheel(positive: Direction, negative: Direction, step: int, *place: str) -> calls.Form:
    """A turn of the wheel by ``pixels``: the finger's direction for a positive and a negative number, and the number that is
    written. ``place`` names the argument with the place, where the family has one."""

    def read(call: calls.Arguments) -> Action:
        try:
            pixels = float(call.needed("pixels"))
        except (TypeError, ValueError, OverflowError):
            pixels = 0.0
        if not abs(pixels) > 0:
            raise ParseError(f"{call.name} has {call.values['pixels']!r:.80} as 'pixels'")
        point = call.point(*place) if place and call.found(*place) is not None else calls.MIDDLE
        return Scroll(point=point, direction=positive if pixels > 0 else negative)

    def write(action: Scroll, writing: calls.Writing) -> dict[str, Any] | None:
        sign = {positive: 1, negative: -1}.get(action.direction)
        return None if sign is None else {"pixels": sign * step}

    return calls.Form(Scroll, read, write)


def keys(enter: str) -> calls.Form:
    """Keys pressed together; ``enter`` is what the family calls the enter key."""

    def read(call: calls.Arguments) -> Action:
        return keys_pressed(call.keys("keys", "text").keys, call)

    return calls.Form(Press, read, lambda action, _: {"keys": [enter]} if action == calls.ENTER else None)


def waited(*seconds: str, default: Wait) -> calls.Form:
    """A pause, of ``default`` where no argument states its time."""

    def read(call: calls.Arguments) -> Action:
        key = next((key for key in seconds if key in call.values), None)
        return default if key is None else Wait(duration=call.milliseconds(key))

    return calls.Form(Wait, read, calls.waited(seconds[0]).write)


def call_of(
    action: Action, table: calls.CallTable, task: StepTaskModel, frame: Frame, space: ActionSpace, tool: str = "computer_use"
) -> dict[str, Any]:
    """The call for an action: of the family's table, and of the base model for what only the past may hold."""
    size = task.screenshot_size
    try:
        name, arguments = table.write(action, lambda point: list(frame.quantise(point, size)))
    except ValueError:
        if action in space:
            raise
        return {**tools.call_of(action, frame, size), "name": tool}
    return {"name": tool, "arguments": {"action": name, **arguments}}
