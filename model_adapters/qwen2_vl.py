"""Qwen2-VL: a box in tokens of its own, ``<|box_start|>(x1,y1),(x2,y2)<|box_end|>``, in thousandths of the screen.

Sources: likaixin2000/ScreenSpot-Pro-GUI-Grounding ``models/qwen2vl.py`` (prompt, layout, greedy decoding, the box divided by
1000), the image processor's configuration of Qwen/Qwen2-VL-7B-Instruct (image limits).

Its makers publish no prompt for a task on a screen, so the model only grounds: on any step it is asked for a box, whose middle
is the click; there is no past. The authors of the benchmark take the last box of a reply; here the first one counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from guieval.actions import Action, ActionSpace, Click
from guieval.errors import ParseError
from guieval.frames import PER_1000
from guieval.history import HistoryEntry
from guieval.models import ModelConfig, ModelInput, ParsedResponse, fill
from guieval.parsing import clicked, stated_place
from guieval.steps import StepTaskModel, whole_text

from ._family import QWEN_PIXELS, FamilyModel, ImageLimits, chat, main_instruction, template


class Qwen2VL(FamilyModel):
    """Adapter of Qwen2-VL. Options: ``min_pixels`` and ``max_pixels`` (defaults: the processor's own)."""

    _options: ImageLimits
    fixed_frame = PER_1000
    pixels = QWEN_PIXELS
    action_space = ActionSpace(types=frozenset({"CLICK"}))
    source = frame_source = "github.com/likaixin2000/ScreenSpot-Pro-GUI-Grounding models/qwen2vl.py"

    def __init__(self, config: ModelConfig, *, thinking: bool | None = None) -> None:
        super().__init__(config, thinking=thinking)
        self.thinking = False

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        text = fill(template("qwen2_vl-grounding"), instruction=main_instruction(task))
        # a server leaves special tokens out unless it is asked for them
        return chat(self._image(task), text, extra={"skip_special_tokens": False})

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        place = stated_place(whole_text(text))
        if place is None:
            raise ParseError(f"the reply holds no box: {text.strip()[:80]!r}")
        return ParsedResponse(clicked(place, PER_1000, task.screenshot_size))

    def _written(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        assert isinstance(action, Click)
        x, y = PER_1000.quantise(action.point, task.screenshot_size)
        return f"<|box_start|>({x:g},{y:g}),({x:g},{y:g})<|box_end|>"
