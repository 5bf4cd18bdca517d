"""Protocols of toolkits that score several phone benchmarks by one set of rules."""

from __future__ import annotations

from guieval.actions import ActionType
from guieval.evaluation.protocol import EXACT_MATCH, SUCCESS_RATE, FailurePolicy, Figure, Protocol
from guieval.evaluation.rules import ClickRule, StepRules, TextRule

_OPEN: frozenset[ActionType] = frozenset({"OPEN"})
_GUIEVALKIT_COMMON = StepRules(
    click=ClickRule(enlarge=1.2, clip=True, boxes="containing-reference", fallback=0.14), tap_limit=200.0
)
_GUIEVALKIT_ANDROIDCONTROL = StepRules(
    click=ClickRule(enlarge=1.2, clip=True, boxes="nearest", nearest=5, fallback=0.04), tap_limit=200.0
)

PROTOCOLS = (
    Protocol(
        name="guievalkit",
        source="GUIEvalKit paper, section 3.3; xiaomi-research/guievalkit, guieval/eval/evaluator.py",
        summary="boxes x1.2 (AndroidControl: the 5 nearest, else 0.04; elsewhere: those around the target, else 0.14)",
        rules=_GUIEVALKIT_COMMON,
        variants={"androidcontrol": _GUIEVALKIT_ANDROIDCONTROL},
        sample_sets={"androidcontrol": "ac-valtest-finish-noopen-10161"},
        figures=(
            Figure("type match", "type", without=_OPEN),
            Figure("exact match", "exact", without=_OPEN),
            Figure("progress", "progress", without=_OPEN),
        ),
        failure=FailurePolicy("left-out", "left-out", "left-out", "left-out"),
    ),
    Protocol(
        name="onekey",
        source="ZTE GUI agent contest 2026, the organisers' test_runner.py (as in hzy1522/ZTE-code-for-student)",
        summary="strictly inside an accepted range; texts and app names letter for letter, or by the label's pattern",
        rules=StepRules(click=ClickRule(strict=True), text=TextRule("equal", form="as-given")),
        figures=(SUCCESS_RATE, EXACT_MATCH),
    ),
)
