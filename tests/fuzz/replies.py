"""Replies of a model, to every adapter: an action or a reason, soon, and a record that can be read again."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from random import Random
from typing import ClassVar

from guieval.actions import Action
from guieval.conformance import example_actions
from guieval.errors import GuievalError, ParseError
from guieval.evaluation import ActionEvaluator
from guieval.history import HistoryEntry
from guieval.models import ABCModel, ModelConfig
from guieval.models.scored_response import read_response
from guieval.registry import adapter_class, list_adapters
from guieval.steps import StepTaskModel
from tests.model_adapters.adversarial import LONGEST, replies

from . import mutations
from .engine import TASKS, Target, Wrong, carried_out, sentence, stored

MILLISECONDS = 5.0
"""CPU time in which a reply as long as any that is asked for has to be read, and a longer one in proportion. The least of
several readings counts, since other work makes single ones slow."""


class Replies(Target):
    name: ClassVar[str] = "replies"

    def __init__(self, folder: Path, real: Path | None) -> None:
        self._models: list[ABCModel] = [adapter_class(name)(ModelConfig(name=name, adapter=name)) for name in list_adapters()]
        self._own = [[_rendered(model, action) for action in example_actions(model.action_space)] for model in self._models]
        self._any = [text for own in self._own for text in own] + [text for _, text in replies(2000)]
        if real is not None:
            for file in sorted((real / "model_outputs").glob("*.jsonl")):
                rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
                self._any += [row["raw_response"] for row in rows if row["raw_response"]]
        self._judge = ActionEvaluator("guievalkit")

    def check(self, dice: Random) -> None:
        number = dice.randrange(len(self._models))
        model, task = self._models[number], dice.choice(TASKS)
        material = dice.choice(self._own[number]) if dice.random() < 0.5 else dice.choice(self._any)
        text = mutations.text(dice, material, dice.choice(self._any))
        allowed = MILLISECONDS * max(1.0, len(text) / LONGEST)
        took = _milliseconds(model, task, text, allowed)
        if took > allowed:
            raise Wrong(f"{model.config.name} takes {took:.1f} ms for a reply of {len(text)} characters")
        sample = read_response(model, self._judge, task, text)
        if not sample.answered:
            raise Wrong(f"{model.config.name} on a reply of {len(text)} characters: {sample.error}")
        if sample.error is not None and (not sample.error.message.strip() or len(sample.error.message) >= 300):
            raise Wrong(f"{model.config.name}: the reason is not one short sentence: {sample.error.message[:400]!r}")
        stored(task, sample, compact=dice.random() < 0.5)
        carried_out(sample)
        if sample.action is not None:  # the next step's prompt tells this one
            past = HistoryEntry(task, sample.action, sample.thought, sample.conclusion, sample.raw_response, "model")
            try:
                model.prepare_input(task, [past])
            except GuievalError as error:
                sentence(error)


def _rendered(model: ABCModel, action: Action) -> str:
    return model.render(TASKS[0], action, "I see the switch.", "Tap the switch.")


def _milliseconds(model: ABCModel, task: StepTaskModel, text: str, enough: float) -> float:
    best = float("inf")
    for _ in range(10):
        began = time.process_time()
        with contextlib.suppress(ParseError):
            model.parse_response(task, text)
        best = min(best, (time.process_time() - began) * 1000)
        if best <= enough:
            break
    return best
