"""Evaluation of single steps: named protocols, and the evaluator that applies one."""

from guieval.evaluation.click_rule import ClickRule
from guieval.evaluation.evaluator import ActionEvaluator, infrastructure_failure
from guieval.evaluation.judgement import Judgement
from guieval.evaluation.protocol import FailurePolicy, Metric, Protocol
from guieval.evaluation.protocols import get_protocol, list_protocols
from guieval.evaluation.rules import Leniency, OpenRule, ScrollRule, StepRules
from guieval.evaluation.text_rule import TextRule

__all__ = [
    "ActionEvaluator",
    "ClickRule",
    "FailurePolicy",
    "Judgement",
    "Leniency",
    "Metric",
    "OpenRule",
    "Protocol",
    "ScrollRule",
    "StepRules",
    "TextRule",
    "get_protocol",
    "infrastructure_failure",
    "list_protocols",
]
