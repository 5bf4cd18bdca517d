"""The base of nearly every adapter: options, prompts, the past in words, the size of screenshots, given thoughts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, get_type_hints

from pydantic import BaseModel, Field, ValidationError

from guieval.actions import Action, Click, LongPress
from guieval.errors import DataError, ParseError, UsageError, first_problem, nearest
from guieval.frames import PER_999, PER_1000, Frame, ResizedPixels, smart_resize
from guieval.history import HistoryEntry, describe
from guieval.models import ABCModel, ImageRef, Message, ModelConfig, ModelInput, Part, load_template
from guieval.steps import StepTaskModel

PATCH = 28
"""Side of the square of pixels that one image token covers in models of the Qwen2-VL and Qwen2.5-VL kind."""
UNBOUND = 2**62
"""Larger than any image: for a limit that is not set."""
QWEN_PIXELS = 4 * PATCH**2, 16384 * PATCH**2
"""The limits of Qwen2.5-VL's own image processor."""


class Options(BaseModel, frozen=True, extra="forbid"):
    """Base class of every family's options, and the options of a family that has none."""


class ImageLimits(Options):
    """Options of families that resize screenshots: limits in pixels of the image the model sees."""

    min_pixels: int | None = Field(None, ge=1, description="smaller screenshots are enlarged to this many pixels")
    max_pixels: int | None = Field(None, ge=1, description="larger screenshots are shrunk to this many pixels")


SCALES: dict[int, Frame] = {999: PER_999, 1000: PER_1000}


class DisputedScale(Options):
    """The option of families of which public sources state both 0 to 999 and 0 to 1000; a family sets its own default."""

    scale: Literal[999, 1000] = Field(1000, description="extent of the screen in the model's answers, 999 or 1000")


class FamilyModel(ABCModel):
    """An adapter whose options are declared. By default its places are in pixels of the resized screenshot.

    A family whose models can be given a thought defines :meth:`_opening`.
    """

    _options: Options
    """Subclasses with options annotate it with their own class, which the options of a checkpoint are then read as."""
    fixed_frame: ClassVar[Frame | None] = None
    """The frame of a family that answers in the same one on every step and with all options."""
    patch: ClassVar[int] = PATCH
    pixels: ClassVar[tuple[int, int]] = (1, UNBOUND)
    """Least and most pixels of an image where the options set no limit."""
    grounding_pixels: ClassVar[tuple[int, int] | None] = None
    """The same on steps of grounding, where they differ."""
    grounds_silently: ClassVar[bool] = False
    """Whether its grounding prompt asks for no thought."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.fixes_thought = cls._opening is not FamilyModel._opening

    def __init__(self, config: ModelConfig, *, thinking: bool | None = None) -> None:
        super().__init__(config, thinking=thinking)
        kind: type[Options] = get_type_hints(type(self))["_options"]
        try:
            self._options = kind.model_validate(config.options)
        except ValidationError as error:
            problem, known = first_problem(error), kind.model_fields
            message = f"cannot use {problem.value!r} as option {problem.field!r}: {problem.message}"
            if problem.kind == "extra_forbidden":
                message = f"has no option {problem.field!r}{nearest(problem.field, known)}; known: {', '.join(known) or 'none'}"
            raise UsageError(f"model {config.name!r} {message}") from None

    @property
    def resolved_options(self) -> Mapping[str, Any]:
        return self._options.model_dump(mode="json")

    def frame(self, task: StepTaskModel) -> Frame:
        if isinstance(self._options, DisputedScale):
            return SCALES[self._options.scale]
        return self._resize(task) if self.fixed_frame is None else self.fixed_frame

    def processor(self, task: StepTaskModel) -> ResizedPixels | None:
        resize = self._resize(task)
        return None if resize.max_pixels == UNBOUND else resize

    @property
    def disputed_frames(self) -> Sequence[Frame]:
        return tuple(SCALES.values()) if isinstance(self._options, DisputedScale) else ()

    @property
    def _first_resize(self) -> ResizedPixels | None:
        """A resize that goes before the limits."""
        return None

    def prepare_fixed_thought(self, task: StepTaskModel, history: Sequence[HistoryEntry], thought: str) -> ModelInput:
        if not self.fixes_thought:
            return super().prepare_fixed_thought(task, history, thought)
        if reason := self._why_silent(task):
            raise UsageError(f"model {self.config.name!r} cannot be given a thought: {reason}")
        if not thought.strip():
            # the answer would count as one with a thought
            raise UsageError("the thought to be given is empty")
        # without line breaks around it (GUIEvalKit paper, appendix E)
        return begun(self.prepare_input(task, history), self._opening(task, thought.strip("\n")))

    def _why_silent(self, task: StepTaskModel) -> str | None:
        """Why the model writes no thought on this step; ``None`` where it may write one."""
        if self.grounds_silently and task.setting == "grounding":
            return "the grounding prompt asks for no thought"
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

    def _resize(self, task: StepTaskModel) -> ResizedPixels:
        """The processing of the step's screenshot before the model sees it."""
        least, most = (self.grounding_pixels if task.setting == "grounding" else None) or self.pixels
        if isinstance(self._options, ImageLimits):
            least, most = self._options.min_pixels or least, self._options.max_pixels or most
        return ResizedPixels(self.patch, least, most, self._first_resize)

    def _image(self, task: StepTaskModel) -> ImageRef:
        """The step's screenshot in the size in which it is sent.

        Rounding to multiples of ``patch`` is left to the server, which does it anyway; only where a limit binds is the image
        resized on this side, so that the answer's frame does not depend on how the server was started.
        """
        resized = self._resize(task).resized(task.screenshot_size)
        rounded = smart_resize(task.screenshot_size, self.patch, 1, UNBOUND)
        return ImageRef(task, None if resized == rounded else resized)

    def _conversation(
        self, task: StepTaskModel, history: Sequence[HistoryEntry], turns: Sequence[tuple[Part, ...]], max_images: int
    ) -> Iterator[Message]:
        """Each step as a user's turn and the reply to it; only the last ``max_images`` steps show their screenshot."""
        first_with_image = len(history) + 1 - max_images
        for index, step in enumerate((*(entry.task for entry in history), task)):
            if parts := (*turns[index], self._image(step)) if index >= first_with_image else turns[index]:
                yield Message("user", parts)
            if index < len(history):
                yield Message("assistant", (self._past_reply(history[index]),))

    def _past_reply(self, entry: HistoryEntry) -> str:
        """A past step as the assistant's turn, for families that show their past in turns."""
        raise NotImplementedError

    def _screen(self, task: StepTaskModel) -> dict[str, str]:
        """The width and height of the screen in the frame's coordinates, for a prompt that states them."""
        width, height = self.frame(task).extent(task.screenshot_size)
        return {"width": f"{width:.0f}", "height": f"{height:.0f}"}


HELPFUL = "You are a helpful assistant."
"""The system prompt of families that send the usual one."""
Found = TypeVar("Found")


@cache
def template(name: str) -> str:
    """The text of ``prompts/NAME.txt``, without its first line (the origin)."""
    return load_template(Path(__file__).parent / "prompts" / f"{name}.txt")


def step_instruction(task: StepTaskModel) -> str:
    """The instruction of this step; :class:`DataError` when the step's setting promises an instruction that is not there."""
    if task.low_level_instruction is None:
        raise DataError(f"step {task.key} has no step instruction, which this setting gives to the model")
    return task.low_level_instruction


def main_instruction(task: StepTaskModel) -> str:
    """The goal or query, or the step instruction in its place, as GUIEvalKit does it for families whose authors publish no
    form with both."""
    return step_instruction(task) if task.setting == "low" else task.instruction


def past_sentence(entry: HistoryEntry, frame: Frame) -> str:
    """A past step in words: its conclusion, which is the step instruction where the benchmark has one.

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
    """The result of ``read`` on the reply of a past step's model; ``None`` without a reply, or where it cannot be read."""
    try:
        return None if entry.raw_response is None else read(entry.raw_response)
    except ParseError:
        return None


def chat(*parts: Part, system: str | None = None, extra: Mapping[str, Any] | None = None) -> ModelInput:
    """A request of one user's turn, after a system prompt where there is one."""
    before = () if system is None else (Message("system", (system,)),)
    return ModelInput((*before, Message("user", parts)), extra=extra or {})


def begun(prepared: ModelInput, turn: str) -> ModelInput:
    """The same request with the assistant's answer already begun, in place of any other beginning.

    Chat templates of the Qwen2-VL and Qwen2.5-VL kind write an assistant's turn as it was sent, so a server continues any text;
    templates that take thoughts apart do not, and need one of ours (``configs/chat_templates``).
    """
    messages = prepared.messages[:-1] if prepared.prefill else prepared.messages
    # what a vLLM server needs so that it continues the last message instead of opening a new turn
    extra = {**prepared.extra, "continue_final_message": True, "add_generation_prompt": False}
    return ModelInput((*messages, Message("assistant", (turn,))), prefill=True, extra=extra)
