"""GUI-G2 (Qwen2.5-VL based): a box in pixels of the resized screenshot, whose middle is the click.

Source: ZJU-REAL/GUI-G2@5c5c365 ``README.md`` (prompt, layout, how a box is read). The prompt is the one of UI-Venus-Ground, by
some of the same authors.
"""

from __future__ import annotations

from guieval.models import Family

from ._grounder import Grounder


class GUIG2(Grounder):
    """Adapter of GUI-G2. Options: ``min_pixels`` and ``max_pixels``, which must equal the server's (defaults: its own)."""

    user = "gui_g2"
    family = Family(2025, ("grounding",), reader="makers")
    source = frame_source = "github.com/ZJU-REAL/GUI-G2@5c5c365 README.md"

    def _answer(self, x: str, y: str) -> str:
        return f"[{x},{y},{x},{y}]"
