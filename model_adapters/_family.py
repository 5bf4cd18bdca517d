"""What nearly every adapter does alike: its options, the size in which screenshots are sent, and what it refuses to write."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from guieval.actions import Action
from guieval.frames import Frame, ResizedPixels
from guieval.models import ABCModel, ImageRef, ModelConfig
from guieval.steps import StepTaskModel

from ._options import ImageLimits, Options, read_options
from ._prompting import UNBOUND, sent_size

PATCH = 28
"""Side of the square of pixels that one image token covers in models of the Qwen2-VL and Qwen2.5-VL kind."""
QWEN_PIXELS = 4 * PATCH**2, 16384 * PATCH**2
"""The limits of Qwen2.5-VL's own image processor."""


class FamilyModel(ABCModel):
    """An adapter whose options are declared. By default its places are in pixels of the resized screenshot."""

    title: ClassVar[str]
    """The family's name, for messages."""
    options_type: ClassVar[type[Options]] = ImageLimits
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
        least, most = self._limits(task)
        return ResizedPixels(self.patch, least or 1, most or UNBOUND)

    def render(self, task: StepTaskModel, action: Action, thought: str | None = None, conclusion: str | None = None) -> str:
        if action not in self.action_space:
            raise ValueError(f"{self.title} cannot say {action!r}")
        return self._written(task, action, thought, conclusion)

    @abstractmethod
    def _written(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        """:meth:`render` for an action of the family's space."""

    def _limits(self, task: StepTaskModel) -> tuple[int | None, int | None]:
        """Least and most pixels of the image."""
        own = self._options
        least, most = (self.grounding_pixels if task.setting == "grounding" else None) or self.pixels
        return (own.min_pixels or least, own.max_pixels or most) if isinstance(own, ImageLimits) else (least, most)

    def _image(self, task: StepTaskModel) -> ImageRef:
        """The step's screenshot in the size in which it is sent."""
        return ImageRef(task, sent_size(task.screenshot_size, self.patch, *self._limits(task)))
