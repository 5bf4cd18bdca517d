"""Evaluation of single steps: named protocols, and the evaluator that applies one."""

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
    "Protocol",
    "ScrollRule",
    "StepRules",
    "TextRule",
    "get_protocol",
    "infrastructure_failure",
    "list_protocols",
]
