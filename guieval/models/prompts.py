"""The words of prompts: files with a text's origin, placeholders, and which instruction a step is given."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from guieval.data.files import read_text
from guieval.errors import DataError, ParseError
from guieval.history import HistoryEntry
from guieval.steps import StepTaskModel

HELPFUL = "You are a helpful assistant."
"""The system prompt of families that send the usual one."""
Found = TypeVar("Found")


def load_template(path: Path) -> str:
    """A prompt file's text: everything after its first line, which is a comment with the text's origin."""
    head, _, body = read_text(path).partition("\n")
    if not head.startswith("#"):
        raise ValueError(f"{path} must begin with a comment line naming the prompt's origin")
    return body


def fill(template: str, **values: str) -> str:
    """Replace each ``{name}`` literally, all others stay: prompts are full of braces that are not placeholders.

    Every name given must occur, so a renamed placeholder is an error (``ValueError``) and not a silent omission; a value
    that happens to contain another placeholder is left as it is.
    """
    for name in values:
        if "{" + name + "}" not in template:
            raise ValueError(f"the template has no placeholder {{{name}}}")
    if not values:
        return template
    pattern = re.compile("|".join(re.escape("{" + name + "}") for name in values))
    return pattern.sub(lambda match: values[match.group()[1:-1]], template)


def step_instruction(task: StepTaskModel) -> str:
    """The instruction of this step; :class:`DataError` when the step's setting promises an instruction that is not there."""
    if task.low_level_instruction is None:
        raise DataError(f"step {task.key} has no step instruction, which this setting gives to the model")
    return task.low_level_instruction


def main_instruction(task: StepTaskModel) -> str:
    """The goal or query, or the step instruction in its place, as GUIEvalKit does it for families whose authors publish no
    form with both."""
    return step_instruction(task) if task.setting == "low" else task.instruction


def own_response(entry: HistoryEntry, read: Callable[[str], Found | None]) -> Found | None:
    """The result of ``read`` on the response of a past step's model; ``None`` without one, or if it cannot be read."""
    try:
        return None if entry.raw_response is None else read(entry.raw_response)
    except ParseError:
        return None
