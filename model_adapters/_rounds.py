"""Where a reply's first round ends: some models, having answered, play the next step as well, or go on in another turn."""

from __future__ import annotations

import re

_TAG = re.compile(r"<(/?)think\w*>|<\|im_end\|>(?=\s*(?:\Z|<\|im_start\|>))", re.IGNORECASE)


def first_round(text: str) -> str:
    """``text`` up to the thought that follows a first answer, or up to the end of the turn.

    A new thought begins a line, or follows a tag, a bracket or a fence, and follows something with a bracket in it, as
    every answer is: a thought that goes on after it was closed is no new round, and neither is a tag in a typed text.
    """
    thinking, answer = False, 0
    for tag in _TAG.finditer(text):
        start = tag.start()
        if tag[1] is None:
            return text[:start]
        if tag[1]:
            thinking, answer = False, tag.end()
        elif not thinking and _begins(text, start):
            if any(text.find(bracket, answer, start) >= 0 for bracket in "{["):
                return text[:start]
            thinking = True
    return text


def _begins(text: str, start: int) -> bool:
    before = text[max(0, start - 9) : start]
    last = before.rstrip()[-1:]
    return "\n" in before[len(before.rstrip()) :] or last in (">", "}", "]", ")", "`") or not before
