"""``kiosk-strict``: a click is right inside the target's box, and nowhere else."""

from guieval import Protocol
from guieval.evaluation import ClickRule, StepRules, TextRule

KIOSK_STRICT = Protocol(
    name="kiosk-strict",
    source="the README of guieval-kiosk",
    summary="a click inside the target's box",
    rules=StepRules(click=ClickRule(inside="targets", fallback=None), text=TextRule("equal")),
    datasets=frozenset({"kiosk"}),
)
