"""OS-Atlas's action calls: ``CLICK <point>[[x,y]]</point>``, ``TYPE [text]``, ``SCROLL [UP]``, ``PRESS_BACK``, ...

The table of calls is :mod:`guieval.parsing.capital_calls`; places are in thousandths of the screen. What SCROLL names differs:
AndroidControl's labels name where the content comes from, GUI-Odyssey's where the finger goes. Only whole calls in the format's
own words are read here, as files of results and labels hold them; prose around a call is the model adapter's to read.
"""

from __future__ import annotations

import re
from typing import Any

from guieval.actions import Action, Open
from guieval.errors import ParseError
from guieval.frames import PER_1000
from guieval.parsing import CallTable, ScrollWords
from guieval.parsing.call_tables import Form
from guieval.parsing.capital_calls import ALONE, CALLS, PLACED, WRITTEN
from guieval.steps import whole_text

_CALLS = CallTable(CALLS, OPEN_APP=Form(Open, lambda call: Open(app=call.text("text"))))
"""As in the scripts, an app without a name is an answer."""
_NAME = re.compile(r"\s*([A-Z_]+)(?![A-Za-z])\s*")
_PLACE = re.compile(r"(?:<point>)?\[\[?\s*(-?\d+(?:\.\d+)?)\s*,\s*(-?\d+(?:\.\d+)?)\s*\]?\](?:</point>)?")
_BRACKETED = re.compile(r"\[(.*)\]", re.DOTALL)


def call_action(call: str, *, scroll_words: ScrollWords) -> Action:
    """The action of one call; raises :class:`ParseError` for anything else."""
    named = _NAME.match(call)
    if named is None:
        raise ParseError("there is no answer" if not call.strip() else f"{call.strip()[:60]!r} is not a call")
    name = named[1]
    return _CALLS.read(name, _arguments(name, call[named.end() :].strip()), PER_1000, (1, 1), scroll_words)


def _arguments(name: str, rest: str) -> dict[str, Any]:
    if name in PLACED:
        place = _PLACE.fullmatch(rest)
        if place is None:
            raise ParseError(f"{name} gives no place: {rest[:60]!r}")
        return {"place": [float(place[1]), float(place[2])]}
    if name in WRITTEN or name == "SCROLL":
        text = _BRACKETED.fullmatch(rest)
        if text is None:
            raise ParseError(f"{name} gives no text in brackets: {rest[:60]!r}")
        return {"direction" if name == "SCROLL" else "text": whole_text(text[1])}
    if rest and name in ALONE:
        raise ParseError(f"{name} stands with other words: {rest[:60]!r}")
    return {"text": whole_text(rest)} if rest else {}
