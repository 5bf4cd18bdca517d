"""What nearly every adapter has in common: options, prompts, the past in words, the size of screenshots, given thoughts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from guieval.actions import Action, Click, LongPress
from guieval.errors import DataError, ParseError, UsageError, first_problem, nearest
from guieval.frames import Frame, ResizedPixels, Size, smart_resize
from guieval.history import HistoryEntry, describe
from guieval.models import ABCModel, ImageRef, Message, ModelConfig, ModelInput, Part, load_template
from guieval.steps import StepTaskModel

PATCH = 28
"""Side of the square of pixels that one image token covers in models of the Qwen2-VL and Qwen2.5-VL kind."""
QWEN_PIXELS = 4 * PATCH**2, 16384 * PATCH**2
"""The limits of Qwen2.5-VL's own image processor."""


class Options(BaseModel):
    """Base class of every family's options, and the options of a family that has none."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ImageLimits(Options):
    """Options of families that resize screenshots: limits in pixels of the image the model sees."""

    min_pixels: int | None = Field(None, ge=1, description="smaller screenshots are enlarged to this many pixels")
    max_pixels: int | None = Field(None, ge=1, description="larger screenshots are shrunk to this many pixels")


Kind = TypeVar("Kind", bound=Options)


def read_options(kind: type[Kind], config: ModelConfig) -> Kind:
    """``config.options`` as ``kind``; :class:`UsageError` naming the option, its value and what was expected."""
    try:
        return kind.model_validate(config.options)
    except ValidationError as error:
        problem = first_problem(error)
    if problem.kind == "extra_forbidden":
        known = kind.model_fields
        message = f"has no option {problem.field!r}{nearest(problem.field, known)}; known: {', '.join(known) or 'none'}"
    else:
        message = f"cannot use {problem.value!r} as option {problem.field!r}: {problem.message}"
    raise UsageError(f"model {config.name!r} {message}")


class FamilyModel(ABCModel):
    """An adapter whose options are declared. By default its places are in pixels of the resized screenshot.

    A family whose models can be given a thought defines :meth:`_opening`.
    """

    _options: Options
    """Subclasses with options annotate it with their own class, which the options of a checkpoint are then read as."""
    fixed_frame: ClassVar[Frame | None] = None
    """The frame of a family that answers in the same one on every step and with all options."""
    patch: ClassVar[int] = PATCH
    pixels: ClassVar[tuple[int | None, int | None]] = (None, None)
    """Least and most pixels of an image where the options set no limit."""
    grounding_pixels: ClassVar[tuple[int, int] | None] = None
    """The same on steps of grounding, where they differ."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.fixes_thought = cls._opening is not FamilyModel._opening

    def __init__(self, config: ModelConfig, *, thinking: bool | None = None) -> None:
        super().__init__(config, thinking=thinking)
        self._options = read_options(get_type_hints(type(self))["_options"], config)

    def frame(self, task: StepTaskModel) -> Frame:
        if self.fixed_frame is not None:
            return self.fixed_frame
        least, most = self._limits(task)
        return ResizedPixels(self.patch, least or 1, most or UNBOUND)

    def prepare_fixed_thought(self, task: StepTaskModel, history: Sequence[HistoryEntry], thought: str) -> ModelInput:
        if not self.fixes_thought:
            return super().prepare_fixed_thought(task, history, thought)
        if reason := self._why_silent(task):
            raise UsageError(f"model {self.config.name!r} cannot be given a thought: {reason}")
        return begun(self.prepare_input(task, history), self._opening(task, given_thought(thought)))

    def _why_silent(self, task: StepTaskModel) -> str | None:
        """Why the model writes no thought on this step; ``None`` where it may write one."""
        return "thinking is turned off" if self.thinking is False else None

    def _opening(self, task: StepTaskModel, thought: str) -> str:
        """The beginning of a reply with this thought, up to where its action begins."""
        raise NotImplementedError

    def render(self, task: StepTaskModel, action: Action, thought: str | None = None, conclusion: str | None = None) -> str:
        if action not in self.action_space:
            raise ValueError(f"model {self.config.name!r} has no word for {action!r}")
        return self._written(task, action, thought, conclusion)

    @abstractmethod
    def _written(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        """:meth:`render` for an action of the family's space."""

    def _limits(self, task: StepTaskModel) -> tuple[int | None, int | None]:
        own = self._options
        least, most = (self.grounding_pixels if task.setting == "grounding" else None) or self.pixels
        return (own.min_pixels or least, own.max_pixels or most) if isinstance(own, ImageLimits) else (least, most)

    def _image(self, task: StepTaskModel) -> ImageRef:
        """The step's screenshot in the size in which it is sent."""
        return ImageRef(task, sent_size(task.screenshot_size, self.patch, *self._limits(task)))

    def _screen(self, task: StepTaskModel) -> dict[str, str]:
        """The width and height of the screen in the frame's coordinates, for a prompt that states them."""
        width, height = self.frame(task).extent(task.screenshot_size)
        return {"width": f"{width:.0f}", "height": f"{height:.0f}"}


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
