"""The protocol of online runs. It is not a rule for recorded steps, so it is not among the published protocols."""

from __future__ import annotations

from guieval.evaluation.click_rule import ClickRule
from guieval.evaluation.protocol import SUCCESS_RATE, FailurePolicy, Protocol
from guieval.evaluation.rules import StepRules

ENVIRONMENT = Protocol(
    name="environment",
    source="guieval, docs/online.md",
    summary="online: the environment judges the end state of a task",
    rules=StepRules(click=ClickRule(inside="targets")),  # never used: tasks have no reference actions
    datasets=frozenset({"online"}),
    metrics=(SUCCESS_RATE,),
    failure=FailurePolicy(missing="left-out"),
    notes=(
        "A task has no reference actions: its repetitions are a success or not, as the environment says.",
        "A repetition is unparseable if it ended because three responses in a row had no action.",
        "Tasks whose environment or server failed are left out, counted and repeated by a resume.",
    ),
)
