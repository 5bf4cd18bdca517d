"""Calls in capital letters: ``CLICK <point>[[x,y]]</point>``, ``TYPE [text]``, ``SCROLL [UP]``, ``PRESS_BACK``.

Source of the words: OS-Copilot/OS-Atlas ``eval/data/*.jsonl``. GUI-R1 writes GUI-Odyssey's past in them, and files of
predictions and labels hold them. A scroll names no place. Cutting an argument out of the text is up to each reader.
"""

from __future__ import annotations

from guieval.actions import Action, Unsupported, Wait
from guieval.frames import Frame, Size
from guieval.models.parsing import call_tables as calls
from guieval.models.parsing.call_tables import ScrollWords

PLACED, WRITTEN = ("CLICK", "LONG_PRESS"), ("TYPE", "OPEN_APP")
"""The calls whose argument is a ``place``, and those whose argument is a ``text``; that of ``SCROLL`` is a ``direction``."""
CALLS = calls.CallTable(
    {
        "CLICK": calls.tap("place"),
        "LONG_PRESS": calls.hold("place"),
        "TYPE": calls.typed("text"),
        "OPEN_APP": calls.opened("text"),
        "SCROLL": calls.scrolled("direction"),
        "PRESS_BACK": calls.BACK,
        "PRESS_HOME": calls.HOME,
        "PRESS_RECENT": calls.RECENT,
        "ENTER": calls.ENTER,
        "PRESS_ENTER": calls.ENTER,
        "WAIT": Wait(),
        "COMPLETE": calls.FINISH,
        "IMPOSSIBLE": calls.IMPOSSIBLE,
        # custom actions of the desktop prompt (OmniACT)
        **calls.outside("DOUBLECLICK", "RIGHTCLICK", "MOVETO", "HOTKEY"),
        **calls.outside(*(f"PRESS_{key}" for key in ("SPACE", "TAB", "ESC", "PGDN", "PGUP", "UP", "DOWN", "LEFT", "RIGHT"))),
    }
)
ALONE = frozenset(name for name, meaning in CALLS.items() if not isinstance(meaning, calls.Form))
"""The calls without arguments."""


def capital_call(action: Action, frame: Frame, size: Size, scroll_words: ScrollWords) -> str:
    """The call for an action, with its place in ``frame`` on a screenshot of ``size``."""
    if isinstance(action, Unsupported):
        return f"{action.name} {action.arguments.get('text', '')}".strip()
    name, arguments = CALLS.write(
        action, lambda point: "<point>[[{:g},{:g}]]</point>".format(*frame.quantise(point, size)), scroll_words
    )
    for key, value in arguments.items():
        return f"{name} {value}" if key == "place" else f"{name} [{value.upper() if key == 'direction' else value}]"
    return name
