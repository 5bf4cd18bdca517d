"""Protocols of GUI-Odyssey."""

from __future__ import annotations

from guieval.evaluation.protocol import EXACT_MATCH, SUCCESS_RATE, Protocol
from guieval.evaluation.rules import ClickRule, StepRules, TextRule

_ODYSSEY_TEXT = TextRule("containment-or-similarity", threshold=0.5, form="stripped")

PROTOCOLS = (
    Protocol(
        name="odyssey-v1",
        source="GUI-Odyssey paper; OpenGVLab/GUI-Odyssey (f53b3f4), src/eval_mm/GUIOdyssey_action_matching.py",
        summary="0.14 of the screen; text by containment or half of it right; complete and impossible must agree",
        rules=StepRules(click=ClickRule(boxes="none", fallback=0.14), text=_ODYSSEY_TEXT, stop="status"),
        figures=(EXACT_MATCH, SUCCESS_RATE),
    ),
    Protocol(
        name="odyssey-v2",
        source="GUI-Odyssey paper, 2025 data; OpenGVLab/GUI-Odyssey, src/eval_mm/GUIOdyssey_action_matching.py",
        summary="inside the target's box, else 0.14; text by containment or half of it right; ends must agree",
        rules=StepRules(click=ClickRule(fallback=0.14), text=_ODYSSEY_TEXT, stop="status"),
        figures=(EXACT_MATCH, SUCCESS_RATE),
    ),
)
