"""What nearly every adapter has in common: options, the size in which screenshots are sent, given thoughts, and refusals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from guieval.actions import Action
from guieval.errors import UsageError, first_problem, nearest
from guieval.frames import Frame, ResizedPixels
from guieval.history import HistoryEntry
from guieval.models import ABCModel, ImageRef, ModelConfig, ModelInput
from guieval.steps import StepTaskModel

from ._prompting import UNBOUND, begun, given_thought, sent_size

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
    """An adapter whose options are declared. By default its places are in pixels of the resized screenshot."""

    options_type: ClassVar[type[Options]] = ImageLimits
    fixed_frame: ClassVar[Frame | None] = None
    """The frame of a family that answers in the same one on every step and with all options."""
    patch: ClassVar[int] = PATCH
    pixels: ClassVar[tuple[int | None, int | None]] = (None, None)
    """Least and most pixels of an image where the options set no limit."""
    grounding_pixels: ClassVar[tuple[int, int] | None] = None
    """The same on steps of grounding, where they differ."""
    _options: Options

    def __init__(self, config: ModelConfig, *, thinking: bool | None = None) -> None:
        super().__init__(config, thinking=thinking)
        self._options = read_options(self.options_type, config)

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
