"""Protocols of desktop and web trajectories."""

from __future__ import annotations

from guieval.evaluation.protocol import EXACT_MATCH, Protocol
from guieval.evaluation.rules import ClickRule, ScrollRule, StepRules, TextRule

PROTOCOLS = (
    Protocol(
        name="agentnetbench",
        source="OpenCUA paper; xlang-ai/OpenCUA, evaluation/agentnetbench/eval.py as of August 2025",
        # What the scorer gives full marks. Its partial marks (an exponential of the distance, a share of the similarity)
        # are no verdict; later versions of it also compare a scroll's direction and amount, and count superfluous actions.
        summary="a target box, else 0.0141 (full marks only); text 0.8 similar; any scroll; the end's status",
        rules=StepRules(
            click=ClickRule(fallback=0.01 * 2**0.5),
            text=TextRule("similarity", threshold=0.8),
            scroll=ScrollRule("type-only"),
            stop="status",
        ),
        figures=(EXACT_MATCH,),
    ),
    Protocol(
        name="mind2web-element",
        source="Mind2Web paper; OSU-NLP-Group/UGround, offline_evaluation/Multimodal-Mind2Web/eval.py",
        # The scorer asks for operation F1 = 1 over the words of "operation value", which is the same set of words. It asks
        # for the place of a typed value too, which a unified action does not tell: such steps are judged more kindly here.
        summary="the point lies inside any of the target's boxes; typed values have the same words, in whichever place",
        rules=StepRules(click=ClickRule(), text=TextRule("same-words")),
        figures=(EXACT_MATCH,),
    ),
)
