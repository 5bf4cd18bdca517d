"""The protocol of online runs. It is not a rule for recorded steps, so it is not among the published protocols."""

from __future__ import annotations

from guieval.evaluation.click_rule import ClickRule
from guieval.evaluation.protocol import SUCCESS_RATE, FailurePolicy, Protocol
from guieval.evaluation.rules import StepRules

ENVIRONMENT = Protocol(
    name="environment",
    source="guieval, docs/online.md",
    summary="online: the environment judges the end state of a task",
    rules=StepRules(click=ClickRule(inside="targets")),  # never used: labels and answers are outcomes
    datasets=frozenset({"online"}),
    metrics=(SUCCESS_RATE,),
    failure=FailurePolicy(missing="left-out"),
    notes=(
        "A task counts as one step, whose label is success and whose answer is the environment's judgement.",
        "A task is unparseable if it ended because three replies in a row held no action.",
        "Tasks whose environment or server failed are left out, counted and repeated by a resume.",
    ),
)
