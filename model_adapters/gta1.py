"""GTA1 (trained from UI-TARS-1.5, later from OpenCUA): a point ``(x,y)`` in pixels of the resized screenshot.

Source: Yan98/GTA1@81f0c4c, ``src/grpo_grounding.py`` (prompt) and ``README.md`` (layout, resize rule, how a reply is read:
the first pair in brackets). The prompt is the training's; the README gives one script for all checkpoints.
"""

from __future__ import annotations

from ._grounder import Grounder


class GTA1(Grounder):
    """Adapter of GTA1. Options: ``min_pixels`` and ``max_pixels``."""

    system = "gta1-system"
    pixels = 3136, 4096 * 2160
    source = "github.com/Yan98/GTA1@81f0c4c src/grpo_grounding.py"
    frame_source = "github.com/Yan98/GTA1@81f0c4c README.md"

    def _answer(self, x: str, y: str) -> str:
        return f"({x},{y})"
