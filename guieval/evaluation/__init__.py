"""Evaluation of single steps: named protocols, the evaluator that applies one, and its form for arrays of steps."""

from guieval.evaluation.batch import PredictionTable, Scores, TargetTable, compile_targets, score
from guieval.evaluation.evaluator import ActionEvaluator, infrastructure_failure
from guieval.evaluation.protocol import FailurePolicy, Figure, Protocol
from guieval.evaluation.protocols import get_protocol, list_protocols
from guieval.evaluation.rules import ClickRule, Judgement, Leniency, OpenRule, ScrollRule, StepRules, TextRule

__all__ = [
    "ActionEvaluator",
    "ClickRule",
    "FailurePolicy",
    "Figure",
    "Judgement",
    "Leniency",
    "OpenRule",
    "PredictionTable",
    "Protocol",
    "Scores",
    "ScrollRule",
    "StepRules",
    "TargetTable",
    "TextRule",
    "compile_targets",
    "get_protocol",
    "infrastructure_failure",
    "list_protocols",
    "score",
]
