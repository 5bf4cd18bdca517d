"""Texts of a screen in prompts: what a data set publishes with a screenshot, such as an observation or a tree of elements.

The option ``screen_texts`` names fields of a step's ``extras``; they follow the last user's turn of any family's prompt. A text
is given as it is. A tree is a list of nodes, objects with any of ``class``, ``text``, ``description``, ``hint``, ``states`` (a
list of words), ``depth`` and ``box`` (thousandths of the screen), which is written in the model's own frame.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from guieval.actions import Point
from guieval.errors import DataError, nearest
from guieval.frames import Frame, Size
from guieval.models.messages import Message, ModelInput
from guieval.steps import StepTaskModel

USUAL = frozenset({"enabled", "focusable", "visible"})
"""States that nearly every node has, which are left out."""


def with_screen_texts(prepared: ModelInput, task: StepTaskModel, names: Sequence[str], frame: Frame) -> ModelInput:
    """The request with the step's texts after its last user's turn; :class:`DataError` if the step lacks one."""
    texts = tuple(f"{name.replace('_', ' ').capitalize()}:\n{_text(task, name, frame)}" for name in names)
    last = max((index for index, message in enumerate(prepared.messages) if message.role in ("user", "tool")), default=None)
    if last is None or prepared.messages[last].parts[-len(texts) :] == texts:  # a family that calls its base's prepare_input
        return prepared
    message = prepared.messages[last]
    told = Message(message.role, (*message.parts, *texts))
    return replace(prepared, messages=(*prepared.messages[:last], told, *prepared.messages[last + 1 :]))


def _text(task: StepTaskModel, name: str, frame: Frame) -> str:
    value = task.extras.get(name)
    if value is None:
        raise DataError(
            f"step {task.key} has no {name!r}{nearest(name, task.extras)}, which the option screen_texts gives to the model; "
            f"its further data: {', '.join(task.extras) or 'none'}"
        )
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(node, dict) for node in value):
        return "\n".join(filter(None, (_node(node, frame, task.screenshot_size) for node in value)))
    return json.dumps(value, ensure_ascii=False)


def _node(node: dict[str, Any], frame: Frame, size: Size) -> str:
    """A line for a node that says anything; containers without words and states are left out."""
    words = [f'"{node[name]}"' for name in ("text", "description", "hint") if node.get(name)]
    states = [str(state) for state in node.get("states") or () if state not in USUAL]
    if not words and not states:
        return ""
    parts = ["-", str(node.get("class") or "node").rpartition(".")[2], *words, *states]
    if box := node.get("box"):
        edges = [min(max(float(edge), 0.0), 1000.0) for edge in box]  # trees have elements that reach beyond the screen
        corners = (frame.quantise(Point(*edges[at : at + 2]), size) for at in (0, 2))
        parts.append(str([f"{side:g}" for corner in corners for side in corner]).replace("'", ""))
    return "  " * int(node.get("depth") or 0) + " ".join(parts)
