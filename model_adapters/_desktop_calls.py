"""What the ``computer_use`` calls of models made from Qwen-VL share: keys, waiting, and scrolls that are vertical."""

from __future__ import annotations

from dataclasses import dataclass

from guieval.actions import Action, ActionSpace, ActionType, Scroll, Wait
from guieval.models.parsing import call_tables as calls

from . import _qwen_tools as tools
from ._hosted import keys_pressed


@dataclass(frozen=True)
class UpAndDown(ActionSpace):
    """An action space whose scrolls are vertical."""

    def __contains__(self, action: Action) -> bool:
        return super().__contains__(action) and not (isinstance(action, Scroll) and action.direction in ("left", "right"))


_KINDS = frozenset[ActionType]({"CLICK", "SCROLL", "TYPE", "PRESS", "WAIT", "STOP"})
SPACE, VERTICAL = ActionSpace(_KINDS, frozenset({"ENTER"})), UpAndDown(_KINDS, frozenset({"ENTER"}))
"""What most of these models can do on a desktop."""


def keys(enter: str) -> calls.Form:
    """Keys pressed together; ``enter`` is what the family calls the enter key."""

    def read(call: calls.Arguments) -> Action:
        return keys_pressed(call.keys("keys", "text").keys, call)

    return calls.enter(read, keys=[enter])


def waited(*seconds: str, default: Wait) -> calls.Form:
    """A pause, of ``default`` if no argument states its time."""

    def read(call: calls.Arguments) -> Action:
        key = next((key for key in seconds if key in call.values), None)
        return default if key is None else Wait(duration=call.milliseconds(key))

    return calls.Form(Wait, read, calls.waited(seconds[0]).write)


def and_the_past(table: calls.CallTable) -> calls.CallTable:
    """A family's table, and the base model's words for what only the past may hold: what is written there is read as well."""
    return calls.CallTable({**table, **{name: entry for name, entry in tools.CALLS.items() if name not in table}})
