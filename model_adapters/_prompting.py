"""What several families need to build a request: prompt files, step instructions, past steps, image sizes, prefilled turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from guieval.actions import Click, LongPress
from guieval.errors import DataError, ParseError, UsageError
from guieval.frames import Frame, ResizedPixels, Size, smart_resize
from guieval.history import HistoryEntry, describe
from guieval.models import Message, ModelInput, Part, load_template
from guieval.steps import StepTaskModel

CONTINUE: Mapping[str, Any] = {"continue_final_message": True, "add_generation_prompt": False}
"""What a vLLM server needs so that it continues the last message instead of opening a new turn."""

HELPFUL = "You are a helpful assistant."
"""The system prompt of families that send the usual one."""
Found = TypeVar("Found")
UNBOUND = 2**62
"""Larger than any image: for a limit that is not set."""


@cache
def template(name: str) -> str:
    """The text of ``prompts/NAME.txt``, without its first line (the origin)."""
    return load_template(Path(__file__).parent / "prompts" / f"{name}.txt")


def step_instruction(task: StepTaskModel) -> str:
    """What to do at this step; :class:`DataError` when the step's setting promises an instruction that is not there."""
    if task.low_level_instruction is None:
        raise DataError(f"step {task.key} has no step instruction, which this setting gives to the model")
    return task.low_level_instruction


def main_instruction(task: StepTaskModel) -> str:
    """The goal or query, or the step instruction in its place, as GUIEvalKit does it for families whose authors publish no
    form with both."""
    return step_instruction(task) if task.setting == "low" else task.instruction


def past_sentence(entry: HistoryEntry, frame: Frame) -> str:
    """What a past step did, in words: its conclusion, which is the step instruction where the benchmark has one.

    A plain description names its place in ``frame``, so that no prompt names a place in two frames.
    """
    if entry.conclusion and entry.conclusion != describe(entry.action):
        return entry.conclusion
    match entry.action:
        case Click() | LongPress():
            x, y = frame.quantise(entry.action.point, entry.task.screenshot_size)
            return f"{'Click' if entry.action.type == 'CLICK' else 'Long press'} at ({x:g}, {y:g})."
    return describe(entry.action)


def own_reply(entry: HistoryEntry, read: Callable[[str], Found | None]) -> Found | None:
    """What ``read`` finds in the reply that a past step's model gave; ``None`` without a reply, or where it cannot be read."""
    try:
        return None if entry.raw_response is None else read(entry.raw_response)
    except ParseError:
        return None


def sent_size(
    size: Size, factor: int, min_pixels: int | None, max_pixels: int | None, first: ResizedPixels | None = None
) -> Size | None:
    """The (width, height) a screenshot must be sent in, or ``None`` to send the file as it is.

    Rounding to multiples of ``factor`` is left to the server, which does it anyway; only where a limit binds is the image
    resized on this side, so that the answer's frame does not depend on how the server was started. ``first`` is a resize
    that goes before the limits.
    """
    before = size if first is None else first.resized(size)
    limited = smart_resize(before, factor, min_pixels or 1, max_pixels or UNBOUND)
    return None if limited == smart_resize(size, factor, 1, UNBOUND) else limited


def chat(*parts: Part, system: str | None = None, extra: Mapping[str, Any] | None = None) -> ModelInput:
    """A request of one user's turn, after a system prompt where there is one."""
    before = () if system is None else (Message("system", (system,)),)
    return ModelInput((*before, Message("user", parts)), extra=extra or {})


def given_thought(thought: str) -> str:
    """A thought as it is put into the model's mouth: without line breaks around it (GUIEvalKit paper, appendix E).

    Raises :class:`UsageError` for an empty one, which would be an answer without a thought under the name of one with it.
    """
    if not thought.strip():
        raise UsageError("the thought to be given is empty")
    return thought.strip("\n")


def begun(prepared: ModelInput, turn: str) -> ModelInput:
    """The same request with the assistant's answer already begun, in place of any other beginning.

    Chat templates of the Qwen2-VL and Qwen2.5-VL kind write an assistant's turn as it was sent, so a server continues any text;
    templates that take thoughts apart do not, and need one of ours (``configs/chat_templates``).
    """
    messages = prepared.messages[:-1] if prepared.prefill else prepared.messages
    return ModelInput((*messages, Message("assistant", (turn,))), prefill=True, extra={**prepared.extra, **CONTINUE})
