"""Reads the tags that models put around parts of a reply: their reasoning, and any other."""

from __future__ import annotations

import re

_REASONING_START = re.compile(r"\s*<(?:think\w*|thought)>", re.IGNORECASE)
_REASONING_END = re.compile(r"</(?:think\w*|thought)>", re.IGNORECASE)


def split_reasoning(text: str, answer: str) -> tuple[str | None, str]:
    """The reasoning block in front of the answer, and the rest.

    Reads ``<think>..</think>``, ``<thinking>``, ``<think_xyz>`` and ``<Thought>`` alike, and ``..</think>`` alone, which
    is what a thinking checkpoint writes when its chat template has already opened the block. ``answer`` is the text an
    answer begins with (``<tool_call>``): where it occurs, the block ends at the last end tag in front of its last
    occurrence, so that neither a tag inside an argument nor an answer rehearsed in the reasoning misleads. An unclosed
    block reaches to ``answer``, or takes the whole reply. The reasoning is ``None`` without a block.
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
    """What stands in the first ``<name>..</name>``, to the end of the text when it is never closed; ``None`` without it."""
    start = text.find(f"<{name}>")
    if start < 0:
        return None
    start += len(name) + 2
    end = text.find(f"</{name}>", start)
    return text[start : end if end >= 0 else len(text)].strip()
