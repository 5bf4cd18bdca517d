"""Protocols of GUI-Odyssey."""

from __future__ import annotations

from dataclasses import replace

from guieval.evaluation.click_rule import ClickRule
from guieval.evaluation.protocol import FailurePolicy, Metric, Protocol
from guieval.evaluation.rules import StepRules
from guieval.evaluation.text_rule import TextRule

_TEXT = TextRule("containment-or-similarity", threshold=0.5, form="stripped")
_FIGURES = (
    Metric("AMS", "exact", average="cells", keys=("category",)),
    Metric("SR", "success", average="cells", keys=("category",)),
    Metric("AMS (app, device and task splits)", "exact"),
    Metric("SR (app, device and task splits)", "success"),
    Metric("action_type", "type"),
)
_NOTES = (
    "On the random split AMS and SR are means over the six categories of tasks, on the other splits plain shares.",
    "Batches whose generation fails are passed over, and SR leaves out the episodes that lack a step so. It also leaves out "
    "those whose recorded step_length is not their number of steps; here these count by their steps.",
    "Every button, COMPLETE and IMPOSSIBLE are action types of their own, and the case of a typed text counts.",
    "The scorer cuts response and label at colons and compares a text only up to its first one, and a place that it cannot "
    "read counts as the right action type; neither is done here.",
)

_V1 = Protocol(
    name="odyssey-v1",
    source="GUI-Odyssey paper; OpenGVLab/GUI-Odyssey (f53b3f4), src/eval_mm/GUIOdyssey_action_matching.py",
    summary="0.14 of the screen; text by containment or half of it right; complete and impossible must agree",
    rules=StepRules(click=ClickRule(inside="nothing", fallback=0.14), text=_TEXT, button_types=True, status_types=True),
    datasets=frozenset({"gui-odyssey"}),
    sample_sets={"gui-odyssey": "gui-odyssey-random-29426"},
    metrics=_FIGURES,
    failure=FailurePolicy(missing="episode-left-out"),
    notes=_NOTES,
    version=3,  # 2: another button or status is another action type; 3: SR leaves out what lacks a step
)

PROTOCOLS = (
    _V1,
    replace(
        _V1,
        name="odyssey-v2",
        source=(
            "GUI-Odyssey paper, 2025 data; OpenGVLab/GUI-Odyssey (e12788f), src/eval_mm/GUIOdyssey_action_matching.py and "
            "evaluate_GUIOdyssey.py"
        ),
        summary="inside the target's box, else 0.14; text by containment or half of it right; ends must agree",
        rules=replace(_V1.rules, click=ClickRule(inside="targets", fallback=0.14)),
        sample_sets={"gui-odyssey": "gui-odyssey-v2-random-25807"},
    ),
)
