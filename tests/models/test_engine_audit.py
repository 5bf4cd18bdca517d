"""Clicks on known targets show a scale, an offset and swapped axes; clicks anywhere, or too few, show nothing."""

from __future__ import annotations

import random
from collections.abc import Callable

from guieval.actions import Boxes, Click, Point
from guieval.evaluation import ActionEvaluator
from guieval.models.engine_audit.clicks import ClickAudit
from guieval.models.engine_audit.screen import SentScreen
from guieval.models.scored_response import read_response
from guieval.registry import load_model
from tests.model_adapters.steps import step
from tests.rows import every_row

DICE = random.Random(0)


@every_row(
    ("clicked", "number", "verdict", "words"),
    [
        (lambda x, y: (x, y), 50, "fine", "hit the target on 50 of 50 screens"),
        (lambda x, y: (0.8 * x + 50, y), 50, "fault", "x is 0.800 times its place +50, y is 1.000 times its place +0"),
        (lambda x, y: (x, 0.5 * y), 50, "fault", "x is 1.000 times its place +0, y is 0.500 times its place +0"),
        (lambda x, y: (y, x), 50, "fault", "x and y swapped hits 50 of 50"),
        (lambda x, y: (0.8 * x + 50, y), 20, "unknown", "hit the target on"),
        (lambda x, y: (DICE.uniform(0, 1000), DICE.uniform(0, 1000)), 50, "unknown", "so they show no fault"),
    ],
)
def test_clicks(clicked: Callable[[float, float], tuple[float, float]], number: int, verdict: str, words: str) -> None:
    model, judge, dice = load_model("ui-tars-7b"), ActionEvaluator("ac-curated-bbox"), random.Random(1)
    screens = []
    for _ in range(number):
        x, y = dice.uniform(100, 900), dice.uniform(100, 900)
        task = step(Click(point=Point(x, y)), setting="grounding", targets=Boxes([[x - 9, y - 9, x + 9, y + 9]]))
        sample = read_response(model, judge, task, model.render(task, Click(point=Point(*clicked(x, y)))))
        screens.append(SentScreen(task, (1, 1), (1, 1), "", sample, sample))
    [found] = ClickAudit(model, screens).findings
    assert found.verdict == verdict and words in found.sentence, found
