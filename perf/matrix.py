"""Measures scoring one run under every protocol, the journal's reading included. Run it as ``python -m perf.matrix``.

The run is made up: 10,000 steps of AndroidControl's mix of actions, 8 boxes on most screens and 100 on every tenth, answers
that are right or near or elsewhere, replies of 400 characters. The best of several repeats is printed, for other work on the
machine only ever adds time.
"""

from __future__ import annotations

import json
import platform
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from guieval.actions import Action, ActionSpace, Boxes, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait
from guieval.evaluation import get_protocol, list_protocols
from guieval.journal import MANIFEST, SCHEMA, STEPS, Journal, RunFolder
from guieval.metrics import summarise
from guieval.scoring.matrix import ALL, judge_run
from guieval.steps import EpisodeKey, Sample, StepOutcome, StepRecord, StepTaskModel

STEPS_MADE, LENGTH, REPEATS = 10_000, 5, 5
GOAL = 2.0
MIX = {"CLICK": 5074, "SCROLL": 1211, "TYPE": 632, "OPEN": 608, "WAIT": 567, "PRESS": 343, "STOP": 1543, "LONG_PRESS": 9}


def main() -> None:
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}, best of {REPEATS}")
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "run"
        write_run(directory, random.Random(0))
        size = (directory / STEPS).stat().st_size / 1e6
        protocols = len(judge_run(directory, [ALL]).protocols)
        print(f"{STEPS_MADE:,} steps ({size:.0f} MB), {protocols} protocols that apply to AndroidControl")
        read = best(lambda: sum(1 for _ in RunFolder(directory).records))
        whole = best(lambda: judge_run(directory, [ALL]).columns())
        columns = judge_run(directory, [ALL]).columns()
        figures = best(lambda: [summarise(columns, get_protocol(name), intervals=False) for name in columns.judged])
        print(f"  reading the journal        {read:6.2f} s")
        print(f"  judging, into columns      {whole - read:6.2f} s")
        print(f"  both                       {whole:6.2f} s   (goal: below {GOAL:g})")
        print(f"  their figures              {figures:6.2f} s")
        names = list_protocols()
        whole = best(lambda: judge_run(directory, names).columns())
        print(f"  both, all {len(names)} protocols     {whole:6.2f} s   (also those of other data)")


def best(measured: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        measured()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def write_run(directory: Path, rng: random.Random) -> None:
    types = rng.choices(list(MIX), weights=list(MIX.values()), k=STEPS_MADE)
    space = ActionSpace().to_json()
    manifest = {
        "schema": SCHEMA,
        "config": {"model": "made-up", "thinking": None},
        "model": {"name": "made-up"},
        "benchmark": {"name": "androidcontrol"},
        "protocol": {"name": "guievalkit"},
        "mode": {"name": "offline", "history": "reference", "stop": "never"},
        "action_spaces": {"model": space, "benchmark": space},
    }
    plan = {EpisodeKey("androidcontrol", "", str(number)): range(LENGTH) for number in range(STEPS_MADE // LENGTH)}
    with Journal(directory) as journal:
        journal.start(manifest, plan)
    assert json.loads((directory / MANIFEST).read_text())
    with (directory / STEPS).open("w", encoding="utf-8") as stream:  # not by the journal, which asks the disk for each line
        for number, name in enumerate(types):
            stream.write(record(rng, number, name).model_dump_json() + "\n")


def record(rng: random.Random, number: int, name: str) -> StepRecord:
    boxes = random_boxes(rng, 100 if number % 10 == 0 else rng.randint(1, 15))
    reference = action(rng, name, boxes[0].centre)
    task = StepTaskModel(
        benchmark="androidcontrol",
        dataset="androidcontrol",
        episode_id=str(number // LENGTH),
        step_index=number % LENGTH,
        episode_length=LENGTH,
        instruction="Open the mail app and find the receipt of last week's train ticket, then forward it",
        low_level_instruction="Tap the search bar",
        screenshot=f"{number // LENGTH}/{number % LENGTH}.png",
        screenshot_size=(1080, 2400),
        action=reference,
        elements=boxes,
    )
    answer = (
        reference
        if rng.random() < 0.5
        else action(rng, name if rng.random() < 0.7 else rng.choice(list(MIX)), near(rng, boxes))
    )
    reply = "Thought: " + "the button is below. " * 18 + str(number)
    return StepRecord(task=task, samples=(Sample(raw_response=reply, action=answer, outcome=StepOutcome(verdict="wrong")),))


def random_boxes(rng: random.Random, count: int) -> Boxes:
    corners = []
    for _ in range(count):
        x, y = rng.uniform(0, 800), rng.uniform(0, 900)
        corners.append([x, y, x + rng.uniform(20, 200), y + rng.uniform(20, 100)])
    return Boxes(corners)


def near(rng: random.Random, boxes: Boxes) -> Point:
    x, y = boxes[0].centre
    spread = rng.choice((20, 100, 400))
    return Point(*(min(1000.0, max(0.0, rng.gauss(each, spread))) for each in (x, y)))


def action(rng: random.Random, name: str, point: Point) -> Action:
    at = Point(min(point.x, 1000.0), min(point.y, 1000.0))
    match name:
        case "CLICK":
            return Click(point=at)
        case "LONG_PRESS":
            return LongPress(point=at)
        case "SCROLL":
            return Scroll(point=at, direction=rng.choice(("up", "down")))
        case "TYPE":
            return Type(text=rng.choice(("coffee near the station", "Coffee", "train ticket to Paris", "42")))
        case "OPEN":
            return Open(app=rng.choice(("Google Maps", "maps", "Mail", "Clock")))
        case "PRESS":
            return Press(button=rng.choice(("BACK", "HOME")))
        case "WAIT":
            return Wait()
    return Stop()


if __name__ == "__main__":
    main()
