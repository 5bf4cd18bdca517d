"""UI-R1's three rule-based rewards on raw completions, as its released code gives them; UI-R1 trains on their plain sum.

Source: lll6gg/UI-R1, ``src/ui_r1/src/open_r1/grpo_json_action_coord.py`` (arXiv 2503.21620, section 3.2). They use no
parser and no protocol, because their leniency is part of what was trained: they search the first ``<answer>`` of a
text with patterns and read nothing else. A completion is ``<think>...</think><answer>[{'action': 'click', 'coordinate': [x,
y]}]</answer>``; a solution is written alike, with the target's box [x1, y1, x2, y2] in pixels of the original screenshot in
place of the point, and zeros if there is none. Typed texts, app names and scroll directions are not looked at.
"""

from __future__ import annotations

import re

_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_ACTIONS = (re.compile(r"'action':\s*'(\w+)'"), re.compile(r"'action':\s*(\w+)"))
"""An action's name between quotes anywhere in the answer goes before one without."""
_POINT = re.compile(r"\[(\d+),\s*(\d+)]")
_BOX = re.compile(r"\[(\d+),\s*(\d+),\s*(\d+),\s*(\d+)]")
_FORMAT = re.compile(r"<think>.*?</think>\s*<answer>.*?</answer>", re.DOTALL)


def action_reward(completion: str, solution: str) -> float:
    """1 if both answers name the same action, letter for letter, else 0; an answer that names none never agrees."""
    named = _action(completion)
    return float(named is not None and named == _action(solution))


def coordinate_reward(completion: str, solution: str, scale: tuple[float, float] = (1.0, 1.0)) -> float:
    """1 if the action is right and a click is in the solution's box, borders included, else 0.

    ``scale`` (x, y) takes a predicted point, in pixels of the image that the model saw, to the original screenshot; the result
    is cut to whole pixels. Every other action gets 1 as soon as its name is right. An answer without a point counts as a click
    at (0, 0), and a solution without a box as the box [0, 0, 0, 0], as in the released code: both together are a hit.
    """
    if not action_reward(completion, solution):
        return 0.0
    if _action(completion) != "click":
        return 1.0
    try:
        x, y = (int(side * factor) for side, factor in zip(_numbers(_POINT, completion, 2), scale, strict=True))
        x1, y1, x2, y2 = _numbers(_BOX, solution, 4)
    except (ValueError, OverflowError):  # a number too long to be one; the released code gives 0 for every exception here
        return 0.0
    return float(x1 <= x <= x2 and y1 <= y <= y2)


def format_reward(completion: str) -> float:
    """1 if the whole completion is a ``<think>`` part and an ``<answer>`` part, with nothing but space between, else 0.

    The content of the parts does not matter, and neither part has to end at its first closing tag.
    """
    return float(_FORMAT.fullmatch(completion) is not None)


def _answer(text: str) -> str:
    found = _ANSWER.search(text)
    return found[1].strip() if found else ""


def _action(text: str) -> str | None:
    answer = _answer(text)
    found = next((match for pattern in _ACTIONS if (match := pattern.search(answer))), None)
    return found[1] if found else None


def _numbers(pattern: re.Pattern[str], text: str, count: int) -> list[int]:
    found = pattern.search(_answer(text))
    return [int(each) for each in found.groups()] if found else [0] * count
