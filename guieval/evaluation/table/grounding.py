"""Protocols of grounding benchmarks: one target, one point."""

from __future__ import annotations

from guieval.evaluation.protocol import EXACT_MATCH, Protocol
from guieval.evaluation.rules import ClickRule, StepRules

_POINT_IN_BOX = StepRules(click=ClickRule())

PROTOCOLS = (
    Protocol(
        name="seeclick-official",
        source="SeeClick paper (ScreenSpot); njucckevin/SeeClick, pretrain/screenspot_test.py",
        summary="grounding: the point lies inside the target box, border included, without enlargement or slack",
        rules=_POINT_IN_BOX,
        figures=(EXACT_MATCH,),
    ),
    Protocol(
        name="sspro-official",
        source="ScreenSpot-Pro paper; likaixin2000/ScreenSpot-Pro-GUI-Grounding, eval_screenspot_pro.py",
        summary="grounding: the point lies inside the target box, border included; by group and element",
        rules=_POINT_IN_BOX,
        figures=(EXACT_MATCH,),
    ),
    Protocol(
        name="osworld-g",
        source="OSWorld-G (Jedi) paper; xlang-ai/OSWorld-G, evaluation/eval.py",
        # The released scorer reads a refusal from negative coordinates, and its ray casting takes in half of a border.
        summary="grounding: the point lies inside the target box or polygon; what has no target must be refused",
        rules=StepRules(click=ClickRule(polygon=True), stop="status"),
        figures=(EXACT_MATCH,),
    ),
    Protocol(
        name="mmbench-gui-l2",
        source="MMBench-GUI paper; open-compass/MMBench-GUI, benchmarks/l2_element_grounding.py",
        summary="grounding: the point lies inside the target box, border included; by platform and instruction kind",
        rules=_POINT_IN_BOX,
        figures=(EXACT_MATCH,),
    ),
    Protocol(
        name="ui-vision",
        source="UI-Vision paper; uivision/UI-Vision, eval/grounding/eval_uivision.py (element task)",
        summary="grounding: the point lies inside the target box, border included; by query kind",
        rules=_POINT_IN_BOX,
        figures=(EXACT_MATCH,),
    ),
)
