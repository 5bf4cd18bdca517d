"""Records demonstrations by an environment's own expert as an offline benchmark, in guieval's own episode format."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from guieval.actions import Stop, executable
from guieval.data.episodes.format import EPISODES
from guieval.errors import EnvironmentFailure, UsageError
from guieval.online.attempt import screen_name
from guieval.online.contract import ABCDevice, ABCEnvironment, EnvironmentTask, ExpertStep, Observation
from guieval.online.record import line_of
from guieval.online.trajectory import SCREENS
from guieval.steps import EpisodeKey


class Demonstrations(NamedTuple):
    """Counts of a recording: episodes and steps; the tasks with a success; those that failed at every seed, and the others,
    for which the environment has no expert."""

    episodes: int
    steps: int
    succeeded: tuple[str, ...]
    failed: tuple[str, ...]
    unknown: tuple[str, ...]


_Seen = list[tuple[Observation, ExpertStep]]


def demonstrate(
    environment: ABCEnvironment,
    out: Path,
    seeds: Sequence[int] = (0,),
    tasks: Sequence[str] | None = None,
) -> Demonstrations:
    """Let the environment's expert do ``tasks`` (ids; all by default) with every seed; write the successes to the folder.

    The environment judges. An episode has the id of its task, and with several seeds ``-SEED`` after it. The same seeds give
    the same files in a deterministic environment. Raises :class:`UsageError` if
    ``out`` exists, a task is unknown, or nothing was a success; :class:`EnvironmentFailure` if no device opens.
    """
    if out.exists():
        raise UsageError(f"{str(out)!r} exists; name a new folder")
    known = {task.id: task for task in environment.tasks()}
    if absent := [task for task in tasks or () if task not in known]:
        raise UsageError(f"{environment.title} has no task {absent[0]!r}")
    chosen = [known[task] for task in (known if tasks is None else tasks)]
    return asyncio.run(_demonstrate(environment.with_expert(), out, seeds, chosen))


async def _demonstrate(
    environment: ABCEnvironment, out: Path, seeds: Sequence[int], tasks: Sequence[EnvironmentTask]
) -> Demonstrations:
    lines: list[bytes] = []
    steps = 0
    ended: dict[str, bool | None] = {}  # None: no expert
    device = await environment.open()
    try:
        for task in tasks:
            for seed in seeds:
                try:
                    seen, success = await _attempt(device, task, seed)
                except EnvironmentFailure:  # the device is unusable; what the expert did before does not count as a success
                    await device.close()
                    device, seen, success = await environment.open(), [], False
                    ended.setdefault(task.id, False)
                ended[task.id] = ended.get(task.id) or (success if seen else ended.get(task.id))
                if success:
                    name = f"{task.id}-{seed}" if len(seeds) > 1 else task.id
                    fields = [_fields(observation, step, out) for observation, step in seen]
                    key = EpisodeKey(environment.name, task.subset, name)
                    lines.append(line_of(key, dict(task.groups) or {"task": task.id}, fields))
                    steps += len(seen)
    finally:
        await device.close()
    if not lines:
        raise UsageError(f"the expert of {environment.title} did none of the {len(tasks):,} tasks; there is nothing to record")
    (out / EPISODES).write_bytes(b"".join(lines))
    groups = {value: tuple(task for task, end in ended.items() if end is value) for value in (True, False, None)}
    return Demonstrations(len(lines), steps, groups[True], groups[False], groups[None])


async def _attempt(device: ABCDevice, task: EnvironmentTask, seed: int) -> tuple[_Seen, bool]:
    """The expert's screens and actions, and whether the environment judges them as a success."""
    observation = await device.reset(task, seed)
    seen: _Seen = []
    while len(seen) < task.max_steps and not observation.over:
        step = await device.expert()
        action = None if step is None else executable(step.action)
        if step is None or action is None:
            break
        seen.append((observation, step))
        observation = await device.step([action])
        if isinstance(action, Stop):
            break
    return seen, bool(seen) and (await device.score()).success


def _fields(observation: Observation, step: ExpertStep, out: Path) -> dict[str, Any]:
    seen = {"instruction": observation.goal, "screenshot": _stored(observation, out), "screenshot_size": observation.size}
    return {**seen, **step._asdict()}


def _stored(observation: Observation, out: Path) -> str:
    path = f"{SCREENS}/{screen_name(observation.screenshot)}"
    (out / SCREENS).mkdir(parents=True, exist_ok=True)
    if not (out / path).exists():
        (out / path).write_bytes(observation.screenshot)
    return path
