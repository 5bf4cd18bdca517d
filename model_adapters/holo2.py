"""Holo2 (Qwen3-VL based): a point in JSON, in thousandths of the screen, thinking turned off.

Source: hcompai/hai-cookbook@2ba8961, ``holo2/holo_2_localization_huggingface.ipynb`` and ``.._hosted_api.ipynb`` (prompt,
layout, image limits, the switch, forms of a response). The second also constrains a response to the schema on the server, which
is not done here. How the model is asked for other actions than a click is not published.
"""

from __future__ import annotations

import re

from guieval.errors import ParseError
from guieval.frames import PER_1000
from guieval.models import Family
from guieval.models.parsing import json_value, split_reasoning

from ._grounder import Grounder

_SHOWN = re.compile(r"\s*ClickCoordinates\(x=(\d+), y=(\d+)\)")
"""A response as a notebook prints it."""


class Holo2(Grounder):
    """Adapter of Holo2. Options: ``min_pixels`` and ``max_pixels``, which default to the notebooks'."""

    user = "holo2-grounding"
    patch = 32
    pixels = 64 * 32**2, 16384 * 32**2
    fixed_frame = PER_1000
    thinking_argument = "thinking"
    family = Family(2025, ("grounding",), reader="makers", recorded=2)
    source = "github.com/hcompai/hai-cookbook@2ba8961 holo2/holo_2_localization_huggingface.ipynb"
    frame_source = "github.com/hcompai/hai-cookbook@2ba8961 holo2/holo_2_localization_huggingface.ipynb (0 to 1000)"

    def _place(self, text: str) -> object:
        answer = split_reasoning(text, "{")[1]
        if shown := _SHOWN.match(answer):
            return [int(shown[1]), int(shown[2])]
        value = json_value(answer)
        if not isinstance(value, dict) or any(isinstance(value.get(side), list | None) for side in "xy"):
            raise ParseError(f"the response's JSON is not a point: {value!r:.80}")
        return [value["x"], value["y"]]

    def _answer(self, x: str, y: str) -> str:
        return f'{{"x": {x}, "y": {y}}}'
