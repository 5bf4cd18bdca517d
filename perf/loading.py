"""Measures what loading costs: a published file in place, and a prepared benchmark of 30,000 steps, lazily.

Run it as ``python perf/loading.py [FOLDER]``, where FOLDER holds UI-S1's 1,543-episode file (default: shared data beside the
repository). Every figure is of a fresh process, the best of several: other work on the machine only ever adds time.
"""

from __future__ import annotations

import json
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from guieval.actions import Action, Boxes, Click, Point, Press, Scroll, Stop, Type
from guieval.data.benchmark import ABCBenchmark, EpisodeRef, Release, ReleasedEpisode
from guieval.data.episodes.prepare import prepare
from guieval.registry import load_benchmark
from guieval.steps import Episode, StepTaskModel

STEPS, LENGTH = 30_000, 6
SIZE = (1080, 2400)
REPEATS = 5
UI_S1 = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "ui_s1"
GOALS = {"index + load": 0.5, "us per step": 60.0, "peak MB": 200.0}


def main() -> None:
    print(f"Python {platform.python_version()}, {platform.machine()}, best of {REPEATS} fresh processes")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else UI_S1
    if folder.is_dir():
        best = measured("androidcontrol", folder)
        print(f"UI-S1's file: {best['episodes']:,.0f} episodes, {best['steps']:,.0f} steps")
        show("index", best["index"], "s")
        show("index + load", best["index"] + best["load"], "s")
    else:
        print(f"UI-S1's file is not at {folder}: not measured")
    with tempfile.TemporaryDirectory() as temporary:
        for boxes in (8, 60):
            out, source = Path(temporary) / f"prepared-{boxes}", Path(temporary) / f"release-{boxes}"
            source.mkdir()
            started = time.perf_counter()
            prepare(made_up(boxes), source, out, screenshots=False)
            print(f"prepared benchmark: {STEPS:,} steps, {boxes} boxes each (made in {time.perf_counter() - started:.1f} s)")
            best = measured("episodes", out)
            show("index", best["index"], "s")
            show("us per step", 1e6 * best["load"] / best["steps"], "us")
            show("peak MB", best["peak"], "MB")


def show(name: str, value: float, unit: str) -> None:
    goal = f"   (goal: below {GOALS[name]:g})" if name in GOALS else ""
    print(f"  {name:14} {value:10.3f} {unit}{goal}")


def measured(name: str, folder: Path) -> dict[str, float]:
    """The best of every figure over several fresh processes that index and iterate the benchmark once."""
    runs = [
        json.loads(subprocess.run([sys.executable, __file__, "--one", name, folder], capture_output=True, check=True).stdout)
        for _ in range(REPEATS)
    ]
    return {figure: min(run[figure] for run in runs) for figure in runs[0]}


def one(name: str, folder: Path) -> None:
    load_benchmark(name, folder)  # imports are not what is measured
    started = time.perf_counter()
    benchmark = load_benchmark(name, folder)
    refs = benchmark.index()
    indexed = time.perf_counter()
    steps = sum(len(benchmark.load(ref)) for ref in refs)
    loaded = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = {"index": indexed - started, "load": loaded - indexed, "peak": peak, "steps": steps, "episodes": len(refs)}
    print(json.dumps(figures))


def made_up(boxes: int) -> type[ABCBenchmark]:
    """A benchmark whose release is drawn at random, with as many boxes a step."""

    class MadeUp(ABCBenchmark):
        name = "made-up"
        title = "Made up"
        source = "a random generator"
        dataset = "androidcontrol"
        protocol = "guievalkit"

        def index(self) -> list[EpisodeRef]:
            return []

        def load(self, ref: EpisodeRef) -> Episode:
            raise NotImplementedError

        @classmethod
        def release(cls, source: Path, /, **options: object) -> Release:
            return MadeUpRelease(boxes)

    return MadeUp


class MadeUpRelease(Release):
    def __init__(self, boxes: int) -> None:
        super().__init__()
        self._boxes = boxes

    def parts(self) -> list[str]:
        return ["all"]

    def episodes(self, part: str, done: object) -> Iterator[ReleasedEpisode]:
        rng = random.Random(0)
        for number in range(STEPS // LENGTH):
            steps = [self._step(rng, str(10_000 + number), index) for index in range(LENGTH)]
            yield ReleasedEpisode(Episode(steps=tuple(steps)), {})

    def _step(self, rng: random.Random, episode_id: str, index: int) -> StepTaskModel:
        boxes = []
        for _ in range(self._boxes):
            x, y = rng.randrange(SIZE[0] - 200), rng.randrange(SIZE[1] - 100)
            boxes.append([x, y, x + rng.randrange(20, 200), y + rng.randrange(20, 100)])
        return StepTaskModel(
            benchmark="made-up",
            dataset="androidcontrol",
            episode_id=episode_id,
            step_index=index,
            episode_length=LENGTH,
            instruction="Open the Zoho Meet app, view the scheduled meetings and share the link of the first one.",
            low_level_instruction="Click on the share icon beside the first meeting.",
            screenshot=f"screenshots/{episode_id}/{index}.png",
            screenshot_size=SIZE,
            action=action(rng, index),
            elements=Boxes(
                [
                    [x1 * 1000 / SIZE[0], y1 * 1000 / SIZE[1], x2 * 1000 / SIZE[0], y2 * 1000 / SIZE[1]]
                    for x1, y1, x2, y2 in boxes
                ]
            ),
            extras={"app": "Zoho Meet"},
        )


def action(rng: random.Random, index: int) -> Action:
    point = Point(rng.randrange(SIZE[0]) * 1000.0 / SIZE[0], rng.randrange(SIZE[1]) * 1000.0 / SIZE[1])
    if index == LENGTH - 1:
        return Stop()
    kind = rng.random()
    if kind < 0.7:
        return Click(point=point)
    if kind < 0.85:
        return Scroll(point=point, direction="up")
    return Type(text="meeting notes") if kind < 0.95 else Press(button="BACK")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
