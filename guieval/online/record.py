"""Makes an offline benchmark of the trajectories of online runs, in guieval's own episode format."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from guieval.data.episodes.format import EPISODES
from guieval.data.episodes.write import episode_line
from guieval.data.names import path_inside
from guieval.errors import DataError, UsageError
from guieval.online.trajectory import TrajectoryStep, last_attempts
from guieval.steps import Episode, EpisodeKey, Repetition, StepTaskModel, TaskRecord

EPISODES_BENCHMARK = "episodes"
"""The benchmark that reads what is recorded."""


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


class TaskEpisode(NamedTuple):
    """A repetition of a task as an episode: the steps that have one action, and whether the task was done."""

    key: EpisodeKey
    steps: list[TrajectoryStep]
    groups: Mapping[str, str]
    success: bool

    @property
    def tasks(self) -> tuple[StepTaskModel, ...]:
        """Its steps as those of the benchmark ``episodes``, whose references are the model's own actions."""
        return episode_steps(self.key, self.groups, map(_fields, self.steps))


def every_trajectory(run: Path, records: Iterable[TaskRecord]) -> Iterator[TaskEpisode]:
    """Every repetition of the tasks of a run, whatever it came to; of several, the number of each is part of its name."""
    attempts = last_attempts(run)
    for each in records:
        key = each.task.episode_key
        for number, sample in enumerate(each.samples):
            steps = [step for step in attempts.get((key, number), ()) if step.action is not None and not step.batch]
            name = f"{key.episode_id}-{number}" if len(each.samples) > 1 else key.episode_id
            yield TaskEpisode(key._replace(episode_id=name), steps, each.task.groups, _succeeded(sample))


def record_every(run: Path, records: Iterable[TaskRecord], out: Path) -> Recorded:
    """Write every repetition of the tasks of a run that has steps, whatever it came to, as an episode of the folder ``out``.

    The references are the model's own actions, so the set says nothing about success: it is for questions about the model's
    thoughts (UI-S1, appendix G.2). Steps without an action, or with several, are left out. Raises as :func:`record`.
    """
    every = list(every_trajectory(run, records))
    found: _Found = {each.key: (run, each.steps, each.groups) for each in every if each.steps}
    _write(out, found, f"no task of {str(run)!r} has a step with an action")
    return Recorded(len(found), sum(len(each.steps) for each in every), sum(not each.success for each in every))


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
    return episode_line(Episode(steps=episode_steps(key, groups, steps))) + b"\n"


def episode_steps(key: EpisodeKey, groups: Mapping[str, str], steps: Iterable[Mapping[str, Any]]) -> tuple[StepTaskModel, ...]:
    """The steps of such an episode."""
    own = list(steps)
    place = {"benchmark": EPISODES_BENCHMARK, "dataset": key.benchmark, "subset": key.subset, "episode_id": key.episode_id}
    return tuple(
        StepTaskModel(**{**place, "step_index": index, "episode_length": len(own), "groups": groups, **one})
        for index, one in enumerate(own)
    )
