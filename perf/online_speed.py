"""Measures what environments cost: 100 tasks on the simulated phone by an agent that answers at once, and a step of MiniWoB++.

Run it as ``python -m perf.online_speed``. The agent follows the reference trajectories, so that every task is done to its end;
its run is a whole one, with journal, screenshots and judgement, in a process of its own. A page of MiniWoB++ is begun and
clicked on three times; its browser's start is measured apart. Times are of the wall clock, and the load of the machine at the
start is printed with them.
"""

from __future__ import annotations

import asyncio
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import median

from guieval.actions import Action, ActionSpace, Click, Point, action_from_json
from guieval.errors import ParseError
from guieval.frames import PER_1000
from guieval.history import HistoryEntry
from guieval.models import ABCModel, ImageRef, Message, ModelInput, ParsedResponse, Request
from guieval.online.find import load_environment
from guieval.playground.phone import generate_episode
from guieval.steps import StepTaskModel

TASKS = 100
CLICKS = 3


class Follower(ABCModel):
    """Takes the steps of the reference, whatever it sees."""

    action_space = ActionSpace()
    fixed_frame = PER_1000

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        """The screenshot alone."""
        return ModelInput((Message("user", (ImageRef(task),)),))

    def respond(self, request: Request) -> str:
        """The reference's action."""
        return _reference(request.task.episode_id)[request.task.step_index]

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        """The action as JSON."""
        try:
            return ParsedResponse(action_from_json(text))
        except ValueError as error:
            raise ParseError(str(error)) from error

    def render(self, task: StepTaskModel, action: Action, thought: str | None = None, conclusion: str | None = None) -> str:
        """The action as JSON."""
        return action.model_dump_json()


@cache
def _reference(task: str) -> list[str]:
    seed, _, number = task.removeprefix("s").partition("-")
    return [step.action.model_dump_json() for step in generate_episode(int(seed), int(number)).steps]


def phone(folder: Path) -> None:
    """Time a run of 100 tasks."""
    command = [sys.executable, "-m", "guieval", "run", "--model", "follower", "--adapter", __file__, "--engine", "local"]
    command += ["--bench", "demo", "--mode", "online", "--set", f"bench_options.episodes={TASKS}", "--out", str(folder / "run")]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - started
    success = next(line for line in done.stdout.splitlines() if line.strip().startswith("success"))
    steps = sum(len(_reference(f"s0-{number:04d}")) for number in range(TASKS))
    print(f"the simulated phone, {TASKS} tasks, {steps} steps: {seconds:.1f} s, {1000 * seconds / steps:.0f} ms a step")
    print(f"  {' '.join(success.split())}")


async def pages() -> None:
    """Time every page of MiniWoB++."""
    environment = load_environment("miniwob")
    started = time.perf_counter()
    device = await environment.open()
    opened = time.perf_counter() - started
    resets, steps = [], []
    try:
        for task in environment.tasks():
            started = time.perf_counter()
            seen = await device.reset(task, 0)
            resets.append(time.perf_counter() - started)
            for _ in range(CLICKS):
                if seen.over:
                    break
                started = time.perf_counter()
                seen = await device.step([Click(point=Point(500.0, 600.0))])
                steps.append(time.perf_counter() - started)
    finally:
        await device.close()
    print(f"MiniWoB++, {len(resets)} pages; the browser starts in {opened:.1f} s")
    for what, times in (("reset", resets), ("step", steps)):
        times.sort()
        middle, high = median(times), times[int(0.95 * len(times))]
        print(f"  {what} ({len(times)}): median {middle:.3f} s, 95 % within {high:.3f} s, longest {times[-1]:.3f} s")


if __name__ == "__main__":
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} processors, load {load}")
    with tempfile.TemporaryDirectory() as temporary:
        phone(Path(temporary))
    asyncio.run(pages())
