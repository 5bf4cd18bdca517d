"""The tasks of ``--bench desktop`` done by their experts, so many at once: successes, start times, memory, episodes a minute.

Run it as ``python -m perf.desktop --at-once 8``; ``--tasks calc- writer`` takes the tasks whose names begin so, and
``--pictures FOLDER`` keeps each task's last screen.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from pathlib import Path
from typing import NamedTuple

from guieval.actions import executable
from guieval.connectors.desktop.environment import TASKS, Desktop, DesktopDevice
from guieval.connectors.desktop.sandbox import MEGABYTE
from guieval.online.contract import EnvironmentTask


class Episode(NamedTuple):
    """Seconds to the first screen, the most memory in MB, and the end after nothing was done and after the expert."""

    application: str
    start: float
    memory: int
    idle: bool
    done: bool


async def episode(environment: Desktop, task: EnvironmentTask, seed: int, pictures: Path | None) -> Episode:
    device = await environment.open()
    assert isinstance(device, DesktopDevice)
    begun = time.monotonic()
    seen = await device.reset(task, seed)
    start, memory = time.monotonic() - begun, await device.memory()
    idle = (await device.score()).success
    while (step := await device.expert()) is not None:
        action = executable(step.action)
        assert action is not None
        seen = await device.step([action])
        memory = max(memory, await device.memory())
    score = await device.score()
    if pictures is not None:
        (pictures / f"{task.id}.png").write_bytes(seen.screenshot)
    if not score.success:
        print(f"{task.id}: {score.reason}", flush=True)
    await device.close()
    return Episode(TASKS[task.id].application, start, memory // MEGABYTE, idle, score.success)


async def measured(at_once: int, begin: tuple[str, ...], seed: int, pictures: Path | None) -> list[Episode]:
    environment, free = Desktop(), asyncio.Semaphore(at_once)

    async def one(task: EnvironmentTask) -> Episode:
        async with free:
            return await episode(environment, task, seed, pictures)

    return await asyncio.gather(*(one(task) for task in environment.tasks() if task.id.startswith(begin)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--tasks", nargs="*", default=[""])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pictures", type=Path)
    given = parser.parse_args()
    if given.pictures is not None:
        given.pictures.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    episodes = asyncio.run(measured(given.at_once, tuple(given.tasks), given.seed, given.pictures))
    seconds = time.monotonic() - begun
    for application in dict.fromkeys(each.application for each in episodes):
        of_it = [each for each in episodes if each.application == application]
        starts, memory = sorted(each.start for each in of_it), max(each.memory for each in of_it)
        print(f"{application}: {len(of_it)} tasks, fresh start {starts[0]:.1f} to {starts[-1]:.1f} s, at most {memory} MB")
    done, idle = sum(each.done for each in episodes), sum(each.idle for each in episodes)
    print(
        f"the expert does {done} of {len(episodes)}, doing nothing {idle}; {60 * len(episodes) / seconds:.1f} a minute, "
        f"{given.at_once} at once, load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"
    )


if __name__ == "__main__":
    main()
