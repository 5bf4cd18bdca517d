"""Protocols of Android in the Wild and of what was made from it (AiTZ)."""

from __future__ import annotations

from guieval.evaluation.protocol import EXACT_MATCH, Protocol
from guieval.evaluation.rules import ClickRule, ScrollRule, StepRules, TextRule

PROTOCOLS = (
    Protocol(
        name="aitw-original",
        source="Android in the Wild paper; google-research/android_in_the_wild and njucckevin/SeeClick, action_matching.py",
        summary="both points in one box x2.4 (+140 %), else 0.14; scrolls by their axis; any typed text; ends by status",
        rules=StepRules(
            click=ClickRule(enlarge=2.4, clip=True, boxes="containing-reference", fallback=0.14),
            text=TextRule("type-only"),
            scroll=ScrollRule("axis"),
            stop="status",  # complete and impossible are two action types there
        ),
        figures=(EXACT_MATCH,),
    ),
)
