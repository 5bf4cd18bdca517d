"""Reads the tags that models put around parts of a response: their reasoning, and any other.

Some models, having answered, play the next step as well, or go on in another turn (:func:`first_round`). What is tried out
within a thought is not an answer: :func:`closed_thought` and :func:`first_thought` end a thought at an end tag only,
:func:`split_reasoning` is for families whose authors do not require one.
"""

from __future__ import annotations

import re

from guieval.errors import ParseError

_REASONING_START = re.compile(r"\s*<(?:think\w*|thought)>", re.IGNORECASE)
_REASONING_END = re.compile(r"</(?:think\w*|thought)>", re.IGNORECASE)
_THINK_START = re.compile(r"\s*<think\w*>", re.IGNORECASE)
_THINK_END = re.compile(r"</think\w*>", re.IGNORECASE)
_TAG = re.compile(r"<(/?)think\w*>|<\|im_end\|>(?=\s*(?:\Z|<\|im_start\|>))", re.IGNORECASE)

_BRACKET = re.compile(r"[{\[]")


def split_reasoning(text: str, answer: str) -> tuple[str | None, str]:
    """The reasoning block in front of the answer, and the rest.

    Reads ``<think>..</think>``, ``<thinking>``, ``<think_xyz>`` and ``<Thought>`` alike, and ``..</think>`` alone, which
    is what a thinking checkpoint writes when its chat template has already opened the block. ``answer`` is the text an
    answer begins with (``<tool_call>``): if it occurs, the block ends at the last end tag in front of its last
    occurrence, so that neither a tag inside an argument nor an answer rehearsed in the reasoning misleads. An unclosed
    block reaches to ``answer``, or takes the whole response. The reasoning is ``None`` without a block.
    """
    ends = list(_REASONING_END.finditer(text))
    last = text.rfind(answer)
    if last >= 0:
        ends = [end for end in ends if end.end() <= last]
    start = _REASONING_START.match(text)
    opened = start.end() if start else 0
    ends = [end for end in ends if end.start() >= opened]
    if ends:
        return text[opened : ends[-1].start()].strip(), text[ends[-1].end() :]
    if start is None:
        return None, text
    cut = last if last >= opened else len(text)
    return text[opened:cut].strip(), text[cut:]


def tagged(text: str, name: str) -> str | None:
    """The content of the first ``<name>..</name>``, to the end of the text when it is never closed; ``None`` without it."""
    start = text.find(f"<{name}>")
    if start < 0:
        return None
    start += len(name) + 2
    end = text.find(f"</{name}>", start)
    return text[start : end if end >= 0 else len(text)].strip()


def first_round(text: str) -> str:
    """``text`` up to the thought that follows a first answer, or up to the end of the turn.

    A new thought begins a line, or follows a tag, a bracket or a fence, and follows something with a bracket in it, as
    every answer is: a thought that goes on after it was closed is not a new round, and neither is a tag in a typed text.
    """
    thinking, answer = False, 0
    for tag in _TAG.finditer(text):
        start = tag.start()
        if tag[1] is None:
            return text[:start]
        if tag[1]:
            thinking, answer = False, tag.end()
        elif not thinking and _begins(text, start):
            if _BRACKET.search(text, answer, start):
                return text[:start]
            thinking = True
    return text


def _begins(text: str, start: int) -> bool:
    if start == 0 or text[start - 1] in ">}])`\n":  # almost always
        return True
    before = text[max(0, start - 9) : start]
    words = before.rstrip()
    return "\n" in before[len(words) :] or words.endswith((">", "}", "]", ")", "`"))


def closed_thought(text: str, answer: str) -> tuple[str | None, str]:
    """The thought in front of the answer (``None`` without one), and the rest.

    As :func:`split_reasoning` with the same ``answer``, but a thought ends at an end tag only: if ``answer``
    occurs within the thought alone, all up to the last end tag is thought. Raises :class:`ParseError` without an end tag, since
    a response that was cut off while the model still thought has no answer.
    """
    for begins in (answer, ""):
        thought, rest = split_reasoning(text, begins)
        end = len(text) - len(rest)
        if thought is None or _REASONING_END.fullmatch(text, max(0, text.rfind("</", 0, end)), end):
            return thought, rest
    raise ParseError(f"the thought is never closed, so the response has no answer: it ends {text.strip()[-60:]!r}")


def first_thought(text: str, answer: str) -> tuple[str | None, int]:
    """The thought up to the first end tag and where it ends; ``None`` and 0 if it never ends.

    Without a start tag there is a thought only if no ``answer`` (``<answer>``) is before the end tag.
    """
    end = _THINK_END.search(text)
    opened = _THINK_START.match(text)
    if end is None or (opened is None and 0 <= text.find(answer) < end.start()):
        return None, 0
    return text[opened.end() if opened is not None else 0 : end.start()].strip(), end.end()
