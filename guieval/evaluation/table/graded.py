"""Protocols that give a click a credit by its distance in place of a verdict."""

from __future__ import annotations

import math

from guieval.evaluation.click_rule import ClickRule
from guieval.evaluation.leniencies import LongPressIsClick, NeverNamed
from guieval.evaluation.protocol import FailurePolicy, Metric, Protocol
from guieval.evaluation.rules import StepRules
from guieval.evaluation.text_rule import TextRule

PROTOCOLS = (
    Protocol(
        name="screensuite",
        source="huggingface/screensuite, benchmarks/singlestep/androidcontrol/benchmark.py and benchmarks/utils.py (8e85edb)",
        summary="a click's credit falls with its distance: 1 at the label, 0 from 0.71 of the screen; texts equal in any case",
        rules=StepRules(
            click=ClickRule(inside="nothing", fallback=math.sqrt(0.5), fallback_strict=True),
            text=TextRule("equal"),
            leniencies=(LongPressIsClick("both"), NeverNamed()),
        ),
        datasets=frozenset({"androidcontrol"}),
        failure=FailurePolicy(missing="left-out"),
        metrics=(Metric("action_acc", "graded", without=frozenset({"STOP"})),),
        notes=(
            "A click's credit is a number, where a verdict is right or wrong: here it is right where it earns any credit, so "
            "exact match counts nearly every click. The metric is the source's.",
            "The code was read in a copy of the repository with its history (NathanTrance/screensuite).",
            "Its data hold no ends of tasks, so those steps are left out.",
            "A reply must begin with its call: what stands before the first bracket is taken for the call's name.",
            "Samples without an answer are left out of the mean and reported as proportion_missing.",
        ),
    ),
)
