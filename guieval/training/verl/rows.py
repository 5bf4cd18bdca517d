"""The files that verl reads: tasks, one per line with the place of its episode, and episodes, one JSON text per line.

verl copies a row to every step of every rollout, so a row is small. Screenshots stay in the data folder. All nodes must see
both folders under the same path. A row of an environment names its task there and needs no episode.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from guieval.data.benchmark import EpisodeRef
from guieval.errors import UsageError
from guieval.online.find import load_environment
from guieval.online.tasks import EnvironmentTasks
from guieval.steps import Episode, EpisodeKey, OnlineTask, StepKey
from guieval.training.data.curriculum import factors, read_measured
from guieval.training.data.examples import TrainingData
from guieval.training.data.mixture import drawn
from guieval.training.settings import Curriculum
from guieval.training.verl.settings import GROUP, TASKS

EPISODES, ROWS = "episodes.jsonl", "rows.jsonl"


class RowTask(NamedTuple):
    """The task that a row's ``extra_info`` names.

    ``counted`` are the indices of the steps that count. ``step`` is the step to answer with reference history, ``None`` for a
    rollout of the whole episode. ``validation`` is for a rollout without patches, as in an evaluation. ``protocol`` is the
    benchmark's own.
    """

    episode: Episode
    root: Path
    counted: tuple[int, ...]
    step: int | None
    validation: bool
    protocol: str


class OnlinePlace(NamedTuple):
    """The task in an environment that a row's ``extra_info`` names; ``validation`` is for one begun from seed 0."""

    tasks: EnvironmentTasks
    task: OnlineTask
    validation: bool


def write_rows(
    data: TrainingData,
    folder: Path,
    *,
    steps: bool = False,
    validation: bool = False,
    weight: float = 1.0,
    curriculum: Curriculum | None = None,
    seed: int = 0,
) -> int:
    """Write ``episodes.jsonl`` and ``rows.jsonl`` into ``folder``; returns the number of rows.

    A row is an episode, or with ``steps`` one of its counted steps, whose record is then the ground truth for a reward
    function. Each is written ``weight`` times on average (:func:`guieval.training.data.mixture.drawn`), times its weight in the
    ``curriculum``. Raises :class:`UsageError` for a folder that already has rows, and if no row is left.
    """
    folder = _new(folder)
    tasks: list[tuple[int, int | None]] = list(data.steps) if steps else [(number, None) for number in range(len(data.refs))]
    weights = [weight] * len(tasks)
    if curriculum is not None:
        keys = [
            [StepKey(*data.refs[number].key, index) for index in (data.counted(number) if step is None else [step])]
            for number, step in tasks
        ]
        weights = [weight * factor for factor in factors(keys, curriculum, read_measured(curriculum.runs))]
    chosen = _drawn(weights, seed, weight)
    offset, written = 0, -1
    with (folder / EPISODES).open("wb") as episodes, (folder / ROWS).open("w", encoding="utf-8") as rows:
        for count, (number, step) in enumerate(tasks[each] for each in chosen):
            episode = data.episode(number)
            if number != written:
                offset, written = episodes.tell(), number
                episodes.write(episode.model_dump_json().encode() + b"\n")
            place = {
                "index": count,
                "episodes": str(folder / EPISODES),
                "offset": offset,
                "root": str(data.benchmark.root.resolve()),
                "counted": list(data.counted(number)),
                "step": -1 if step is None else step,
                "validation": validation,
                "protocol": data.benchmark.protocol,
            }
            truth = "" if step is None else episode.steps[step].model_dump_json()
            rows.write(
                json.dumps(_row(data.benchmark.name, episode.steps[0].instruction, place, truth), ensure_ascii=False) + "\n"
            )
    return len(chosen)


def write_tasks(
    data: TrainingData,
    folder: Path,
    *,
    options: Mapping[str, Any],
    max_steps: int | None = None,
    validation: bool = False,
    weight: float = 1.0,
    seed: int = 0,
) -> int:
    """Write ``rows.jsonl`` of tasks in an environment, made with ``options``; returns the number of rows.

    Each task is written ``weight`` times on average. Raises :class:`UsageError` like :func:`write_rows`.
    """
    tasks = data.benchmark
    folder = _new(folder)
    chosen = _drawn([weight] * len(data.refs), seed, weight)
    with (folder / ROWS).open("w", encoding="utf-8") as rows:
        for count, number in enumerate(chosen):
            task = tasks.load(data.refs[number])
            place = {
                "index": count,
                "environment": tasks.name,
                "options": json.dumps(options, sort_keys=True),
                "key": list(task.episode_key),
                "max_steps": max_steps or 0,
                "validation": validation,
            }
            row = _row(tasks.name, task.instruction, place, "", loop=TASKS)
            rows.write(json.dumps(row, ensure_ascii=False) + "\n")
    return len(chosen)


def _new(folder: Path) -> Path:
    if (folder / ROWS).exists():
        raise UsageError(f"{str(folder)!r} already has {ROWS}: give another folder")
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _drawn(weights: Sequence[float], seed: int, weight: float) -> list[int]:
    chosen = drawn(weights, seed)
    if not chosen:
        raise UsageError(f"weight {weight:g} leaves no row of {len(weights):,}: give a higher one")
    return chosen


def _row(bench: str, instruction: str, place: dict[str, Any], truth: str, loop: str = GROUP) -> dict[str, Any]:
    return {
        "data_source": f"{GROUP}/{bench}",
        "agent_name": loop,
        "prompt": [{"role": "user", "content": instruction}],  # for verl's logs; the loop writes the prompt
        "reward_model": {"style": "rule", "ground_truth": truth},
        "extra_info": place,
    }


def read_place(extra_info: Any) -> RowTask:
    """The task that a row names; :class:`UsageError` if it names none, or its episode does not exist."""
    try:
        file, offset, step = str(extra_info["episodes"]), int(extra_info["offset"]), int(extra_info["step"])
        counted = tuple(int(index) for index in extra_info["counted"])
        root, validation = Path(extra_info["root"]), bool(extra_info["validation"])
        protocol = str(extra_info["protocol"])
    except (KeyError, TypeError, ValueError):
        raise UsageError(
            "a row of the training data does not name its episode: write the rows with `python -m guieval.training.verl rows`"
        ) from None
    return RowTask(_episode(file, offset), root, counted, None if step < 0 else step, validation, protocol)


def read_online_place(extra_info: Any) -> OnlinePlace:
    """The task that a row names; :class:`UsageError` if it names none, or its environment does not have it."""
    try:
        key = EpisodeKey(*map(str, extra_info["key"]))
        name, options = str(extra_info["environment"]), str(extra_info["options"])
        most, validation = int(extra_info["max_steps"]) or None, bool(extra_info["validation"])
    except (KeyError, TypeError, ValueError):
        raise UsageError(
            "a row of the training data does not name a task of an environment: write the rows with "
            "`python -m guieval.training.verl rows --online`"
        ) from None
    tasks, refs = _environment(name, options, most)
    if key not in refs:
        raise UsageError(f"environment {name!r} has no task {'/'.join(key)!r}: write the rows again")
    return OnlinePlace(tasks, tasks.load(refs[key]), validation)


@lru_cache(maxsize=16)
def _environment(name: str, options: str, most: int | None) -> tuple[EnvironmentTasks, dict[EpisodeKey, EpisodeRef]]:
    tasks = EnvironmentTasks(Path(), load_environment(name, **json.loads(options)), most)
    return tasks, {ref.key: ref for ref in tasks.index()}


@lru_cache(maxsize=256)
def _episode(file: str, offset: int) -> Episode:
    try:
        with open(file, "rb") as stream:
            stream.seek(offset)
            return Episode.model_validate_json(stream.readline())
    except (OSError, ValueError) as error:
        raise UsageError(
            f"the episode at byte {offset} of {file!r} cannot be read ({' '.join(str(error).split())[:200]}): "
            "the file must be seen under this path from every node"
        ) from None
