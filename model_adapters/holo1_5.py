"""Holo1.5 (Qwen2.5-VL based): a ``click_absolute`` object in JSON, in pixels of the resized screenshot.

Source: hcompai/hai-cookbook@2ba8961, ``holo1_5/openai_client/invoke_localization.ipynb`` (prompt, layout) and ``holo1_5/
holo_1_5_quickstart.ipynb`` (the checkpoint's own image limits, the form of a response). The notebook for the makers' service
shrinks screenshots to 1280 tokens (``max_pixels``: 1003520). It also constrains the response to the schema on the server, which
is not done here. How the model is asked for other actions than a click is not published.
"""

from __future__ import annotations

from guieval.errors import ParseError
from guieval.models import Family
from guieval.models.parsing import json_value

from ._grounder import Grounder


class Holo15(Grounder):
    """Adapter of Holo1.5. Options: ``min_pixels`` and ``max_pixels``, which must equal the server's (defaults: the base's)."""

    user = "holo1_5"
    family = Family(2025, ("grounding",), reader="makers")
    source = "github.com/hcompai/hai-cookbook@2ba8961 holo1_5/openai_client/invoke_localization.ipynb"
    frame_source = "github.com/hcompai/hai-cookbook@2ba8961 holo1_5/holo_1_5_quickstart.ipynb"

    def _place(self, text: str) -> object:
        value = json_value(text)
        if not isinstance(value, dict) or value.get("action", "click_absolute") != "click_absolute":
            raise ParseError(f"the response's JSON is not a click: {value!r:.80}")
        if any(isinstance(value.get(side), list | None) for side in "xy"):
            raise ParseError(f"the response's click lacks x or y: {value!r:.80}")
        return [value["x"], value["y"]]

    def _answer(self, x: str, y: str) -> str:
        return f'{{"action": "click_absolute", "x": {x}, "y": {y}}}'
