"""Protocols of desktop and web trajectories."""

from __future__ import annotations

from dataclasses import replace

from guieval.evaluation.click_rule import ClickRule
from guieval.evaluation.leniencies import DeviceActions
from guieval.evaluation.protocol import Metric, Protocol
from guieval.evaluation.rules import ScrollRule, StepRules
from guieval.evaluation.text_rule import TextRule

_AGENTNETBENCH = StepRules(
    click=ClickRule(inside="targets", fallback=0.01 * 2**0.5),
    text=TextRule("similarity", threshold=0.8),
    scroll=ScrollRule("type-only"),
    stop="status",
    leniencies=(DeviceActions(),),
)
_AGENTNETBENCH_NOTES = (
    "An action that the scorer gives full marks is right here. Partial marks are not a verdict: there, a place that misses is "
    "worth exp(-120 (d - 0.0141)) at a distance of d screens, a text below 0.8 its similarity / 0.8.",
    "It has no marks for a wait and for a horizontal scroll, so a right one is worth nothing there; here it is right.",
    "Of several actions in one step each is marked by its place, and one kind of action weighs as much as another.",
    "A drag has the mean of the marks of its two places there; here it is right if both have full marks.",
)

PROTOCOLS = (
    Protocol(
        name="agentnetbench",
        source="OpenCUA paper; xlang-ai/OpenCUA, evaluation/agentnetbench/eval.py as of August 2025",
        summary="a target box, else 0.0141 (full marks only); text 0.8 similar; any scroll; the end's status",
        rules=_AGENTNETBENCH,
        datasets=frozenset({"agentnetbench"}),
        metrics=(Metric("full marks", "exact"),),
        notes=_AGENTNETBENCH_NOTES,
    ),
    Protocol(
        name="agentnetbench-v2",
        source="OpenCUA paper; xlang-ai/OpenCUA, evaluation/agentnetbench/eval.py (60da8b9)",
        summary="a target box, else 0.0141 (full marks only); text 0.8 similar; the scroll's direction; the end's status",
        rules=replace(_AGENTNETBENCH, scroll=ScrollRule("direction")),
        datasets=frozenset({"agentnetbench"}),
        metrics=(Metric("full marks", "exact"),),
        notes=(
            *_AGENTNETBENCH_NOTES,
            "A scroll's marks are the smaller amount over the larger one; a unified scroll has a direction alone.",
            "More actions than the label has cost marks in proportion.",
        ),
    ),
    Protocol(
        name="mind2web-element",
        source="Mind2Web paper; OSU-NLP-Group/UGround, offline_evaluation/Multimodal-Mind2Web/eval.py",
        summary="the point is inside any of the target's boxes; typed values have the same words, in whichever place",
        rules=StepRules(click=ClickRule(inside="targets"), text=TextRule("same-words")),
        datasets=frozenset({"mind2web"}),
        metrics=(Metric("step_acc", "exact"), Metric("macro_step_acc", "exact", average="episodes")),
        notes=(
            "The scorer asks for operation F1 = 1 over the words of operation and value, which is the same set of words.",
            "It requires the place of a typed value too, which a unified action does not have: such steps are judged more "
            "kindly here, and element_acc is known for clicks alone.",
            "Steps that the lists leave out of a task count as wrong there; here they are left out.",
        ),
    ),
)
