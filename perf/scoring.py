"""Measures what judging a step costs: one call at a time, and on arrays. Run it as ``python perf/scoring.py``.

Every single call is a first judgement (nothing is remembered between calls); the best of several repeats is printed, for
other work on the machine only ever adds time.
"""

from __future__ import annotations

import platform
import random
import time
import timeit
from functools import partial

import numpy as np

from guieval.actions import Action, Boxes, Click, Open, Point, Press, Scroll, Stop, Type
from guieval.evaluation import ActionEvaluator, PredictionTable, compile_targets, get_protocol, list_protocols, score
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
        boxes=boxes,
    )


def print_single() -> None:
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


def print_batch(label: str, protocol: str, dataset: str, boxes: int, steps: int = 10_000, repeats: int = 10) -> None:
    rng = random.Random(1)
    screens = [random_boxes(rng, boxes) for _ in range(50)]
    tasks, actions = [], []
    for i in range(steps):
        screen = screens[i % len(screens)]
        target = screen[rng.randrange(boxes)].centre
        tasks.append(step(Click(point=target), screen, dataset))
        jitter = (min(max(value + rng.gauss(0, 60), 0), 1000) for value in target)
        actions.append(Click(point=Point(*jitter)))
    began = time.perf_counter()
    targets = compile_targets(tasks, protocol)
    compiled = time.perf_counter() - began
    began = time.perf_counter()
    predictions = PredictionTable.from_actions(actions)
    converted = time.perf_counter() - began
    best = min(timeit.repeat(lambda: score(targets, predictions), repeat=repeats, number=1))
    right = score(targets, predictions).exact_match.mean()
    print(
        f"  {label:46} {steps / best:12,.0f} steps/s {right:5.0%} exact   "
        f"(targets compiled at {steps / compiled:,.0f}/s, actions turned into arrays at {steps / converted:,.0f}/s)"
    )


def print_mixed(steps: int = 10_000) -> None:
    rng = random.Random(2)
    screens = [random_boxes(rng, 100) for _ in range(50)]
    pool: list[Action] = [Stop(), Press(button="BACK"), Open(app="Clock"), *(Type(text=f"word {i}") for i in range(20))]
    pool += [Scroll(point=Point(500, 500), direction="up"), *(Click(point=boxes[0].centre) for boxes in screens)]
    tasks = [step(rng.choice(pool), rng.choice(screens)) for _ in range(steps)]
    targets = compile_targets(tasks, "guievalkit")
    predictions = PredictionTable.from_actions(task.action for task in tasks)
    best = min(timeit.repeat(lambda: score(targets, predictions), repeat=10, number=1))
    print(f"  {'guievalkit, all types, 100 boxes':46} {steps / best:12,.0f} steps/s")


if __name__ == "__main__":
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}")
    print("one call of ActionEvaluator.evaluate:")
    print_single()
    print("score() on arrays, 10,000 click steps:")
    print_batch("guievalkit androidcontrol (nearest 5), 100 boxes", "guievalkit", "androidcontrol", 100)
    print_batch("guievalkit common (around target), 100 boxes", "guievalkit", "aitz", 100)
    print_batch("ui-s1-sop (any box), 100 boxes", "ui-s1-sop", "androidcontrol", 100)
    print_batch("guievalkit androidcontrol, 3 boxes", "guievalkit", "androidcontrol", 3)
    print_batch("ui-s1-sop, 3 boxes", "ui-s1-sop", "androidcontrol", 3)
    print_batch("clawgui (judged one by one), 3 boxes", "clawgui", "androidcontrol", 3)
    print_batch("ui-s1-sop, 3 boxes, 300,000 steps", "ui-s1-sop", "androidcontrol", 3, steps=300_000, repeats=3)
    print_mixed()
