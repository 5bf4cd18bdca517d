"""What odd characters in labels cost: the protocols under which the same text in plain characters is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from guieval.actions import Open, Type
from guieval.data.doctor.characters import label, plain
from guieval.evaluation.evaluator import ActionEvaluator
from guieval.evaluation.protocols import list_protocols
from guieval.steps import StepTaskModel

SHOWN = 5


def cost(steps: Iterable[StepTaskModel]) -> str:
    """A clause on the protocols under which a response in plain characters misses a label of these steps."""
    missed: Counter[str] = Counter()
    asked: dict[str, None] = {}
    for step in steps:
        if (text := label(step)) is None or plain(text) == text:
            continue
        given = Type(text=plain(text)) if isinstance(step.action, Type) else Open(app=plain(text))
        for name in list_protocols(step.dataset):
            asked[name] = None
            missed[name] += not ActionEvaluator(name).judge(step, given).exact_match
    names = [name for name in asked if missed[name]]
    if not names:
        return "no protocol of this data calls the same text in plain characters wrong"
    shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    return f"the same text in plain characters is wrong under {len(names)} of {len(asked)} protocols ({shown})"
