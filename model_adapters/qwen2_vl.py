"""Qwen2-VL: a box in tokens of its own, ``<|box_start|>(x1,y1),(x2,y2)<|box_end|>``, in thousandths of the screen.

Sources: likaixin2000/ScreenSpot-Pro-GUI-Grounding ``models/qwen2vl.py`` (prompt, layout, greedy decoding, the box divided by
1000), the image processor's configuration of Qwen/Qwen2-VL-7B-Instruct (image limits).

Its makers publish no prompt for a task on a screen, so the model only grounds: on any step it is asked for a box, whose middle
is the click; there is no past. The authors of the benchmark take the last box of a response; here the first one counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guieval.errors import ParseError
from guieval.frames import PER_1000
from guieval.models import Family, ModelConfig
from guieval.models.parsing import stated_place
from guieval.steps import StepTaskModel

from ._grounder import Grounder


class Qwen2VL(Grounder):
    """Adapter of Qwen2-VL. Options: ``min_pixels`` and ``max_pixels`` (defaults: the processor's own)."""

    fixed_frame = PER_1000
    user = "qwen2_vl-grounding"
    family = Family(2024, ("grounding",), reader="ScreenSpot-Pro", recorded=128)
    source = frame_source = "github.com/likaixin2000/ScreenSpot-Pro-GUI-Grounding models/qwen2vl.py"

    def __init__(self, config: ModelConfig, *, thinking: bool | None = None) -> None:
        super().__init__(config, thinking=thinking)
        self.thinking = False

    def fields(self, task: StepTaskModel) -> Mapping[str, Any]:
        return {"skip_special_tokens": False}  # a server leaves these tokens out unless it is asked for them

    def _place(self, text: str) -> object:
        place = stated_place(text)
        if place is None:
            raise ParseError(f"the response has no box: {text.strip()[:80]!r}")
        return place

    def _answer(self, x: str, y: str) -> str:
        return f"<|box_start|>({x},{y}),({x},{y})<|box_end|>"
