"""Phi-Ground (Phi-3.5-vision based): a place in thousandths of a white canvas that has the screenshot in its upper left corner.

Source: microsoft/Phi-Ground@3956408 ``benchmark/CUActSpot/cuactspot``: ``components/prompting.py`` and ``models/builtins.py``
(prompts, whole texts with their role tokens), ``components/transforms.py`` (the canvas, and thousandths of it, for
Phi-Ground-Any ten-thousandths), and how a response is read there. A server adds nothing to the text if it is started with
``configs/chat_templates/phi_ground.jinja``. A smaller screenshot is taken to be enlarged as well; in which way pixels are
resampled, and how many crops the checkpoint's processor makes, was not read. Of several points the first is the click.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from guieval.frames import Canvas
from guieval.history import HistoryEntry
from guieval.models import Family, ImageRef, ModelInput, Options, chat, main_instruction
from guieval.steps import StepTaskModel

from ._grounder import Grounder

_SIDES = re.compile(r"<x>\s*(\d+)\s*</x>\s*<y>\s*(\d+)\s*</y>")
SMALL = Canvas((1008, 672))
FRAMES = {"box": SMALL, "points": SMALL, "any": Canvas((1680, 1008), 10_000)}
FORMS = {"box": "<bbox>{0}, {1}, {0}, {1}</bbox>", "points": "<point>{}, {}</point>", "any": "<x>{}</x><y>{}</y>"}
PROMPTS = {"box": "phi_ground-grounding", "points": "phi_ground-points", "any": "phi_ground_any-grounding"}


class PhiGroundOptions(Options):
    """Options of Phi-Ground."""

    prompt: Literal["box", "points", "any"] = Field("box", description="what is asked for: a box, points, or Any's prompt")


class PhiGround(Grounder):
    """Adapter of Phi-Ground. Options: :class:`PhiGroundOptions`."""

    options: PhiGroundOptions  # type: ignore[assignment]  # no limits: the size is fixed
    pixels = None
    family = Family(2026, ("grounding",))
    source = "github.com/microsoft/Phi-Ground@3956408 benchmark/CUActSpot/cuactspot/components/prompting.py, models/builtins.py"
    frame_source = "github.com/microsoft/Phi-Ground@3956408 benchmark/CUActSpot/cuactspot/components/transforms.py"

    def frame(self, task: StepTaskModel) -> Canvas:
        return FRAMES[self.options.prompt]

    def image(self, task: StepTaskModel) -> ImageRef:
        frame = self.frame(task)
        return ImageRef(task, frame.shown(task.screenshot_size), canvas=frame.sides)

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        text = self.prompt(PROMPTS[self.options.prompt], instruction=main_instruction(task))
        before, _, after = text.rpartition("<|image_1|>")
        return chat(before, self.image(task), after)

    def _place(self, text: str) -> object:
        sides = _SIDES.search(text)
        return super()._place(text) if sides is None else [int(sides[1]), int(sides[2])]

    def _answer(self, x: str, y: str) -> str:
        return FORMS[self.options.prompt].format(x, y)
