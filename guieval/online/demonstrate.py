"""Records demonstrations by an environment's own expert as an offline benchmark, in guieval's own episode format."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from guieval.actions import Stop, executable
from guieval.data.episodes.format import EPISODES
from guieval.errors import EnvironmentFailure, UsageError
from guieval.online.contract import ABCDevice, ABCEnvironment, EnvironmentTask, ExpertStep, Observation
from guieval.online.record import line_of
from guieval.online.recording import Progress, Recording
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
_Attempt = tuple[tuple[str, bool | None], str | None]
"""A task and how the expert's attempt ended (``None``: no expert), and the episode's line if it was a success."""


def demonstrate(
    environment: ABCEnvironment,
    out: Path,
    seeds: Sequence[int] = (0,),
    tasks: Sequence[str] | None = None,
    on_progress: Progress = lambda done, total: None,
) -> Demonstrations:
    """Let the environment's expert do ``tasks`` (ids; all by default) with every seed; write the successes to the folder.

    The environment judges. An episode has the id of its task, and with several seeds ``-SEED`` after it. The same seeds give
    the same files in a deterministic environment. A recording that was stopped is continued. ``on_progress`` is called with the
    number of finished attempts and of all. Raises :class:`UsageError` if
    ``out`` has anything else, a task is unknown, or nothing was a success; :class:`EnvironmentFailure` if no device opens.
    """
    chosen = chosen_tasks(environment, tasks)
    recording = Recording(environment, out, seeds, chosen, on_progress=on_progress)
    done, episodes = demonstrated(environment, recording, seeds, chosen)
    recording.finish({EPISODES: episodes})
    return done


def chosen_tasks(environment: ABCEnvironment, tasks: Sequence[str] | None) -> list[EnvironmentTask]:
    """The environment's tasks with some ids, or all; :class:`UsageError` for an id that it does not have."""
    known = {task.id: task for task in environment.tasks()}
    if absent := [task for task in tasks or () if task not in known]:
        raise UsageError(f"{environment.title} has no task {absent[0]!r}")
    return [known[task] for task in (known if tasks is None else tasks)]


def demonstrated(
    environment: ABCEnvironment, recording: Recording, seeds: Sequence[int], tasks: Sequence[EnvironmentTask]
) -> tuple[Demonstrations, str]:
    """What :func:`demonstrate` returns, and the text of the episodes' file."""
    attempts = asyncio.run(_attempts(environment.with_expert(), recording, seeds, tasks))
    lines = [line for _, line in attempts if line is not None]
    if not lines:
        raise UsageError(f"the expert of {environment.title} did none of the {len(tasks):,} tasks; there is nothing to record")
    ended: dict[str, bool | None] = {}  # None: no expert
    for (task, success), _ in attempts:
        ended[task] = ended.get(task) or (ended.get(task) if success is None else success)
    groups = {value: tuple(task for task, end in ended.items() if end is value) for value in (True, False, None)}
    steps = sum(len(json.loads(line)["steps"]) for line in lines)
    return Demonstrations(len(lines), steps, groups[True], groups[False], groups[None]), "".join(lines)


async def _attempts(
    environment: ABCEnvironment, recording: Recording, seeds: Sequence[int], tasks: Sequence[EnvironmentTask]
) -> list[_Attempt]:
    found: list[_Attempt] = []
    device = await environment.open()
    try:
        for task, seed in itertools.product(tasks, seeds):
            part = f"expert {seed} {task.id}"
            if (kept := recording.finished(part)) is not None:
                success, line = kept
            else:
                try:
                    seen, success = await _attempt(device, task, seed)
                except EnvironmentFailure:  # the device is unusable; what the expert did before does not count as a success
                    await device.close()
                    device, seen, success = await environment.open(), [], False
                name = f"{task.id}-{seed}" if len(seeds) > 1 else task.id
                key = EpisodeKey(environment.name, task.subset, name)
                fields = [_fields(observation, step, recording) for observation, step in (seen if success else ())]
                line = line_of(key, dict(task.groups) or {"task": task.id}, fields).decode() if success else None
                recording.add(part, (success, line))
            found.append(((task.id, success), line))
    finally:
        await device.close()
    return found


async def _attempt(device: ABCDevice, task: EnvironmentTask, seed: int) -> tuple[_Seen, bool | None]:
    """The expert's screens and actions, and whether the environment judges them as a success; ``None`` without an expert."""
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
    return seen, (await device.score()).success if seen else None


def _fields(observation: Observation, step: ExpertStep, recording: Recording) -> dict[str, Any]:
    shown = recording.keep(observation.screenshot)
    seen = {"instruction": observation.goal, "screenshot": shown, "screenshot_size": observation.size}
    return {**seen, **step._asdict()}
