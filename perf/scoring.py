"""Measures what judging one step costs. Run it as ``python perf/scoring.py``.

Every call is a first judgement, because the evaluator has no cache. The best of several repeats is printed, because other work
on the machine can only add time.
"""

from __future__ import annotations

import platform
import random
import timeit
from functools import partial

import numpy as np

from guieval.actions import Action, Boxes, Click, Open, Point, Press, Scroll, Stop, Type
from guieval.evaluation import ActionEvaluator, get_protocol, list_protocols
from guieval.steps import StepTaskModel

PEER_MICROSECONDS = 17_300
"""GUIEvalKit (main d5e954e), one step: 57 steps/s, 99 % of it spent on checking a JSON schema; measured elsewhere."""


def random_boxes(rng: random.Random, count: int) -> Boxes:
    boxes = []
    for _ in range(count):
        x, y, width, height = rng.uniform(0, 800), rng.uniform(0, 900), rng.uniform(20, 200), rng.uniform(20, 100)
        boxes.append([x, y, x + width, y + height])
    return Boxes(boxes)


def step(action: Action, boxes: Boxes, dataset: str = "androidcontrol") -> StepTaskModel:
    return StepTaskModel(
        benchmark="perf",
        dataset=dataset,
        episode_id="e",
        step_index=0,
        episode_length=1,
        instruction="",
        screenshot="s.png",
        screenshot_size=(1080, 2400),
        action=action,
        elements=boxes,
    )


def print_cost() -> None:
    boxes = random_boxes(random.Random(0), 100)
    target = boxes[0].centre
    click = step(Click(point=target), boxes)
    corner = Point(min(boxes[0].x2 - 1, 1000), boxes[0].y2 - 1)
    at = Point(500, 500)
    cases: list[tuple[str, StepTaskModel, Action | None]] = [
        ("click, 100 boxes, hit by distance", click, Click(point=target)),
        ("click, 100 boxes, hit in a box", click, Click(point=corner)),
        ("click, 100 boxes, miss", click, Click(point=Point(999, 999))),
        ("scroll", step(Scroll(point=at, direction="up"), boxes), Scroll(point=at, direction="up")),
        ("type", step(Type(text="Coffee near the station"), boxes), Type(text="coffee")),
        ("open", step(Open(app="Google Maps"), boxes), Open(app="maps")),
        ("press", step(Press(button="BACK"), boxes), Press(button="BACK")),
        ("stop", step(Stop(), boxes), Stop()),
        ("wrong type", click, Stop()),
        ("unparseable", click, None),
    ]
    # One protocol of each way of judging clicks; the others cost the same.
    alike = {get_protocol(name).rules_for("androidcontrol").click: name for name in reversed(list_protocols())}
    for protocol in reversed([*alike.values()]):
        evaluate = ActionEvaluator(protocol).evaluate
        for name, task, action in cases if protocol == "guievalkit" else cases[:3]:
            timer = timeit.Timer(partial(evaluate, task, action))
            best = min(timer.repeat(repeat=70, number=200)) / 200 * 1e6
            verdict = evaluate(task, action).verdict
            print(f"  {protocol:18} {name:34} {best:7.2f} us   ({verdict})")
    print(f"  for comparison, GUIEvalKit, any step   {PEER_MICROSECONDS:20,} us")


if __name__ == "__main__":
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}")
    print("one call of ActionEvaluator.evaluate:")
    print_cost()
