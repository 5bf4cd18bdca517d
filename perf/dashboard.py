"""What the dashboard costs a step: python -m perf.dashboard [STEPS PER SECOND].

A run of scripted steps is shown on a terminal that nobody looks at, at a steady pace. The figure is the process's CPU time with
the dashboard less that without, per step; the goal is below 50 us at 500 steps/s, where it counts: pictures are drawn 4 times
a second however slow the steps are. Beside it: one call of update, and one picture drawn.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from unittest.mock import patch

from rich.console import Console

from guieval.actions import Click, Point
from guieval.engines import EndpointStats
from guieval.running.progress.counts import Load, RunProgress
from guieval.running.progress.dashboard import Dashboard, picture
from guieval.running.progress.view import ProgressWatch
from guieval.steps import Sample, StepOutcome, StepRecord, StepTaskModel, Usage

ENDPOINTS = tuple(EndpointStats(f"http://127.0.0.1:{8000 + n}/v1", 8, 1000, 3, 900.0) for n in range(8))
SECONDS = 4.0


class Terminal(io.StringIO):
    """Looks like a terminal, keeps nothing."""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return len(text)


def record() -> StepRecord:
    click = Click(point=Point(500.0, 500.0))
    task = StepTaskModel(
        benchmark="demo",
        dataset="demo",
        episode_id="1",
        step_index=0,
        episode_length=1,
        instruction="",
        screenshot="a.png",
        screenshot_size=(1080, 2400),
        action=click,
    )
    outcome = StepOutcome(verdict="right", type_match=True, exact_match=True)
    usage = Usage(prompt_tokens=3000, completion_tokens=60)
    return StepRecord(task=task, samples=(Sample(raw_response="", action=click, outcome=outcome, usage=usage),))


def paced(pace: float, update: Callable[[RunProgress], None]) -> float:
    """CPU seconds of a run at ``pace`` steps a second for SECONDS."""
    progress = RunProgress(total=10**9, load=lambda: Load(4, 100, ENDPOINTS))
    one = record()
    began, start = time.process_time(), time.perf_counter()
    for step in range(int(pace * SECONDS)):
        progress.count(one)
        update(progress)
        time.sleep(max(0.0, start + (step + 1) / pace - time.perf_counter()))
    return time.process_time() - began


def main() -> None:
    pace = float(sys.argv[1]) if len(sys.argv) > 1 else 500.0
    without = paced(pace, lambda progress: None)
    with patch.object(sys, "stderr", Terminal()), Dashboard("a model on demo, offline", quiet=False) as board:
        shown = paced(pace, board.update)
    print(f"at {pace:g} steps/s with 8 servers: {(shown - without) / (pace * SECONDS) * 1e6:.1f} us a step")

    progress = RunProgress(total=10**9, load=lambda: Load(4, 100, ENDPOINTS))
    progress.count(record())
    board = Dashboard("a model on demo, offline", quiet=True)
    start = time.perf_counter()
    for _ in range(100_000):
        board.update(progress)
    print(f"one update: {(time.perf_counter() - start) * 10:.2f} us")

    watch, console = ProgressWatch("a model on demo, offline"), Console(file=Terminal(), width=120, force_terminal=True)
    start = time.process_time()
    for step in range(100):
        console.print(picture(watch.look(progress, float(step))))
    print(f"one picture: {(time.process_time() - start) / 100 * 1e3:.2f} ms, at most 4 a second")


if __name__ == "__main__":
    main()
