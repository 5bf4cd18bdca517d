"""Protocols of Android in the Wild and of what was made from it (AiTZ)."""

from __future__ import annotations

from dataclasses import replace

from guieval.actions import ActionType
from guieval.evaluation.click_rule import ClickRule
from guieval.evaluation.protocol import FailurePolicy, Metric, Protocol
from guieval.evaluation.rules import ScrollRule, StepRules
from guieval.evaluation.text_rule import TextRule

_TYPES: tuple[ActionType, ...] = ("CLICK", "TYPE", "SCROLL", "PRESS", "STOP")
_COAT_FIGURES = (
    Metric("type_acc", "type"),
    Metric("exact_acc", "exact"),
    *(Metric(f"{name} exact_acc", "exact", over=frozenset({name})) for name in _TYPES),
    Metric("success_rate", "success"),
    Metric("goal_progress", "progress", average="episodes"),
)
_COAT = StepRules(
    click=ClickRule(inside="elements", enlarge=1.2, by_node=True),
    text=TextRule("containment-or-similarity", threshold=0.8, above=True, similarity="indel", form="as-given"),
)
_COAT_NOTES = (
    "The scorer takes a predicted box, or the number of a node, for a click; a unified action has a point, which means "
    "the smallest box it is in, or itself.",
    "A step whose response has no text is given the empty text, which every text contains, so it is right there.",
    "It reads action types, scroll directions and buttons of the labels from the first words of coat_action_desc.",
)

_COAT_INTENDED = Protocol(
    name="coat-intended",
    source="AiTZ paper; IMNearth/CoAT, coat/evaluate.py (9ab1a9f) with the place of clicks filled in",
    summary="the predicted node contains the label's point or overlaps by more than half with one that does; elements x1.2",
    rules=_COAT,
    datasets=frozenset({"aitz"}),
    sample_sets={"aitz": "aitz-test-4724"},
    metrics=_COAT_FIGURES,
    notes=_COAT_NOTES,
    mends="coat-official",
)

PROTOCOLS = (
    Protocol(
        name="aitw-original",
        source=(
            "Android in the Wild paper; google-research/android_in_the_wild and njucckevin/SeeClick, "
            "agent_tasks/action_matching.py and aitw_test.py"
        ),
        summary="both points in one element x2.4 (+140 %), else 0.14; scrolls by their axis; any typed text; ends by status",
        rules=StepRules(
            click=ClickRule(inside="elements", which="around-reference", enlarge=2.4, clip=True, fallback=0.14),
            text=TextRule("type-only"),
            scroll=ScrollRule("axis"),
            button_types=True,  # every button has an action type of its own, and so have complete and impossible
            status_types=True,
        ),
        datasets=frozenset({"aitw", "aitz"}),
        sample_sets={"aitz": "aitz-test-4724"},
        metrics=(
            Metric("Action Acc", "exact"),
            Metric("Action Acc, mean of the subsets", "exact", average="cells", keys=("subset",)),
            Metric("partial match", "exact", average="episodes"),
        ),
        failure=FailurePolicy(missing="left-out"),
        notes=(
            "The box is grown by 1.4 times its size, not to it, and the 0.14 is counted in screen fractions.",
            "What is typed does not matter, and a scroll the other way along the same axis is right.",
            "SeeClick reports Action Acc for each of the five subsets, the metric over the steps of one, and the mean of the "
            "five, and passes over steps whose screenshot is missing or whose generation fails.",
            "A step without any annotated box raises in SeeClick's test and counts as wrong; here it is judged.",
            "Google reports the mean over episodes, called partial match.",
            "Its Type Acc counts a click and a scroll as one type, so it is none of these metrics.",
        ),
        version=2,  # another button or status is another action type
    ),
    replace(
        _COAT_INTENDED,
        name="coat-official",
        source="AiTZ paper; IMNearth/CoAT, coat/evaluate.py (9ab1a9f)",
        summary="a click is compared with the corner (0, 0); elements x1.2; text contained or over 0.8 similar, case counts",
        rules=replace(_COAT, click=replace(_COAT.click, reference="origin")),
        notes=(
            "The place of a label is filled in for scrolls alone, so that of every click is (0, 0): a click is right only if "
            "its own box, or one that overlaps by more than half, reaches the upper left corner of the screen.",
            *_COAT_NOTES,
        ),
        mends=None,
    ),
    _COAT_INTENDED,
)
