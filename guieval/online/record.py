"""Makes an offline benchmark of the trajectories of online runs, in guieval's own episode format."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from guieval.data.episodes.format import EPISODES
from guieval.data.episodes.write import episode_line
from guieval.data.names import path_inside
from guieval.errors import DataError, UsageError
from guieval.online.trajectory import TrajectoryStep, last_attempts
from guieval.steps import Episode, EpisodeKey, Repetition, StepTaskModel, TaskRecord

RESPONSES = "responses.jsonl"


class Recorded(NamedTuple):
    """Counts of a recording: episodes, steps, and the tasks (with :func:`record_every` repetitions) without a success."""

    episodes: int
    steps: int
    failed: int


_Found: TypeAlias = dict[EpisodeKey, tuple[Path, list[TrajectoryStep], Mapping[str, str]]]
"""The episodes to write: their run, their steps and their labels."""


def record(runs: Mapping[Path, Sequence[TaskRecord]], out: Path) -> Recorded:
    """Write the shortest successful trajectory of every task of some runs, given with their records, to the folder ``out``.

    A step's reference is the action that was carried out; steps whose response was not carried out are left out, since they
    changed nothing. Trajectories with several actions in a step are left out, since there is no screenshot between these. The
    conclusion of the response, if any, is the step's low-level instruction. Raises :class:`UsageError` if ``out`` exists, or no
    task was a success; :class:`DataError` for a screenshot that cannot be copied.
    """
    best: _Found = {}
    tasks: set[EpisodeKey] = set()
    for run, records in runs.items():
        attempts = last_attempts(run)
        for each in records:
            key = each.task.episode_key
            tasks.add(key)
            for number, sample in enumerate(each.samples):
                steps = [step for step in attempts.get((key, number), ()) if step.executed] if _succeeded(sample) else []
                single = not any(step.batch for step in steps)
                if single and steps and (key not in best or len(steps) < len(best[key][1])):
                    best[key] = run, steps, each.task.groups
    _write(out, best, f"none of the {len(tasks):,} tasks was a success")
    return Recorded(len(best), sum(len(steps) for _, steps, _ in best.values()), len(tasks) - len(best))


def record_every(run: Path, records: Iterable[TaskRecord], out: Path) -> Recorded:
    """Write every repetition of the tasks of a run that has steps, whatever it came to, as an episode of the folder ``out``.

    The references are the model's own actions, so the set says nothing about success: it is for questions about the model's
    thoughts (UI-S1, appendix G.2). Its responses are in :data:`RESPONSES`, which ``guieval data import`` makes a run of. Steps
    without an action, or with several, are left out. Raises as :func:`record`.
    """
    attempts = last_attempts(run)
    found: _Found = {}
    failed = 0
    for each in records:
        key = each.task.episode_key
        for number, sample in enumerate(each.samples):
            steps = [step for step in attempts.get((key, number), ()) if step.action is not None and not step.batch]
            failed += not _succeeded(sample)
            if steps:
                name = f"{key.episode_id}-{number}" if len(each.samples) > 1 else key.episode_id
                found[key._replace(episode_id=name)] = run, steps, each.task.groups
    _write(out, found, f"no task of {str(run)!r} has a step with an action")
    lines = (
        {"subset": key.subset, "episode_id": key.episode_id, "step_index": index, "response": step.raw_response}
        for key, (_, steps, _) in sorted(found.items())
        for index, step in enumerate(steps)
    )
    (out / RESPONSES).write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return Recorded(len(found), sum(len(steps) for _, steps, _ in found.values()), failed)


def _succeeded(sample: Repetition) -> bool:
    return sample.outcome is not None and sample.outcome.score.success


def _write(out: Path, found: _Found, nothing: str) -> None:
    if out.exists():
        raise UsageError(f"{str(out)!r} exists; name a new folder")
    if not found:
        raise UsageError(f"{nothing}, so there is nothing to record")
    out.mkdir(parents=True)
    with (out / EPISODES).open("wb") as stream:
        for key, (run, steps, groups) in sorted(found.items()):
            for step in steps:
                try:
                    source, target = (path_inside(folder, step.screenshot) for folder in (run, out))
                    target.parent.mkdir(parents=True, exist_ok=True)
                    if not target.exists():
                        shutil.copyfile(source, target)
                except (ValueError, OSError) as error:
                    why = error if isinstance(error, ValueError) else f"cannot be copied: {error.strerror or error}"
                    raise DataError(f"the screenshot {step.screenshot[:200]!r} of the run {str(run)!r} {why}") from None
            stream.write(line_of(key, groups, map(_fields, steps)))


def _fields(step: TrajectoryStep) -> dict[str, Any]:
    shown = {"screenshot": step.screenshot, "screenshot_size": step.size}
    return {"instruction": step.goal, "low_level_instruction": step.conclusion, "action": step.action, **shown}


def line_of(key: EpisodeKey, groups: Mapping[str, str], steps: Iterable[Mapping[str, Any]]) -> bytes:
    """The line of an episode in guieval's own format; ``steps`` are the fields of each step that do not place it there."""
    own = list(steps)
    place = {"benchmark": "episodes", "dataset": key.benchmark, "subset": key.subset, "episode_id": key.episode_id}
    fields = [
        {**place, "step_index": index, "episode_length": len(own), "groups": groups, **one} for index, one in enumerate(own)
    ]
    return episode_line(Episode(steps=tuple(StepTaskModel(**each) for each in fields))) + b"\n"
