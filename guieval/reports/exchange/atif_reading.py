"""Makes a run of the trajectories that :mod:`.atif` wrote, with the same figures, steps and screenshots."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from guieval.actions import action_from_json
from guieval.errors import DataError, UsageError, first_problem
from guieval.journal import Journal
from guieval.journal.run_files import Manifest
from guieval.online.trajectory import SCREENS, TRAJECTORIES, TrajectoryStep, read_outcome
from guieval.reports.exchange.atif import ELSEWHERE, ENDING, IMAGES, Document, Step
from guieval.steps import EpisodeKey, StepRecord


class ReadTrajectories(NamedTuple):
    """How many tasks and trajectories a run was made of, how many tasks it planned, and how many screenshots there were."""

    tasks: int
    trajectories: int
    planned: int
    screenshots: int


class _Read(NamedTuple):
    place: int
    key: EpisodeKey
    planned: int
    run: str
    manifest: Manifest
    record: StepRecord | None
    steps: tuple[TrajectoryStep, ...]


def make_run(source: Path, out: Path) -> ReadTrajectories:
    """Write the run directory ``out`` from the trajectories in a folder.

    Tasks of which there is no trajectory are not part of the run. Raises :class:`UsageError` for trajectories of another tool
    or of several runs, and if ``out`` exists; :class:`DataError` naming file and field for a damaged file.
    """
    files = sorted(source.glob(f"*{ENDING}")) if source.is_dir() else [source]
    if not files:
        raise UsageError(f"the folder {str(source)!r} holds no trajectories: expected files *{ENDING}")
    if out.exists():
        raise UsageError(f"the directory {str(out)!r} exists; give another --out")
    read = sorted((_read(path) for path in files), key=lambda each: each.place)
    if len(runs := sorted({each.run for each in read})) > 1:
        raise UsageError(f"{str(source)!r} holds trajectories of several runs ({', '.join(runs)}): put each run into a folder")
    records = _records(read)
    plan = {each.key: range(1) for each in read}
    with Journal(out) as journal:
        types = {key: {0: record.task.action.type} for key, record in records.items()}
        journal.start(read[0].manifest.to_json(), plan, types=types if types.keys() == plan.keys() else None)
        for record in records.values():
            journal.append(record)
    steps = [step for each in read for step in each.steps]
    with (out / TRAJECTORIES).open("wb") as stream:
        for step in steps:
            stream.write(step.model_dump_json(exclude_none=True).encode() + b"\n")
    return ReadTrajectories(len(plan), len(read), read[0].planned, _copy_screens(source, out, steps, records))


def _records(read: Sequence[_Read]) -> dict[EpisodeKey, StepRecord]:
    """The record of each task, with the samples of its repetitions in order."""
    records: dict[EpisodeKey, StepRecord] = {}
    for each in read:
        if each.record is not None:
            first = records.get(each.key)
            samples = (*(() if first is None else first.samples), *each.record.samples)
            records[each.key] = each.record.model_copy(update={"samples": samples})
    return records


def _read(path: Path) -> _Read:
    try:
        document = Document.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        problem = first_problem(error)
        raise DataError(f"{path}, field {problem.field}: {problem.sentence}") from None
    again = document.extra.get("run")
    if not isinstance(again, dict):
        raise UsageError(f"{str(path)!r} is not of guieval: its trajectory has no outcome that could be scored")
    try:
        key = EpisodeKey(*again["key"])
        record = None if again["record"] is None else StepRecord.model_validate(again["record"])
        manifest = Manifest.of(again["manifest"])
        repetition, goal = int(document.extra["repetition"]), _text(document.steps[0])
        steps = tuple(_step(step, key, repetition, goal) for step in document.steps[1:])
        if record is not None and (record.task.episode_key != key or len(record.samples) != 1):
            raise ValueError("the record is not of the trajectory's task")
        return _Read(int(again["place"]), key, int(again["planned_tasks"]), document.session_id, manifest, record, steps)
    except ValidationError as error:
        raise DataError(f"{path}, field extra: {first_problem(error).sentence}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path}, field extra: {error}") from None


def _text(step: Step) -> str:
    return step.message if isinstance(step.message, str) else "".join(part.text or "" for part in step.message)


def _step(step: Step, key: EpisodeKey, repetition: int, goal: str) -> TrajectoryStep:
    actions = [action_from_json({"type": call.function_name, **call.arguments}) for call in step.tool_calls or ()]
    extra = {name: value for name, value in (step.extra or {}).items() if name not in ELSEWHERE}
    return TrajectoryStep.model_validate(
        {
            **extra,
            "screenshot": f"{SCREENS}/{Path(extra['screenshot']).name}",
            "key": key,
            "sample": repetition,
            "goal": goal,
            "raw_response": _text(step),
            "reasoning": step.reasoning_content,
            "action": actions[0] if actions else None,
            "batch": tuple(actions) if len(actions) > 1 else (),
            "usage": None if step.metrics is None else step.metrics.model_dump(),
        }
    )


def _copy_screens(source: Path, out: Path, steps: Sequence[TrajectoryStep], records: dict[EpisodeKey, StepRecord]) -> int:
    folder = (source if source.is_dir() else source.parent) / IMAGES
    if not folder.is_dir():
        return 0
    (out / SCREENS).mkdir()
    last = [
        outcome.screenshot
        for record in records.values()
        for sample in record.samples
        if (outcome := read_outcome(sample.raw_response)) is not None and outcome.screenshot is not None
    ]
    names = {Path(name).name for name in (*(step.screenshot for step in steps), *last)}
    found = [folder / name for name in sorted(names) if (folder / name).is_file() and not (folder / name).is_symlink()]
    for path in found:
        shutil.copyfile(path, out / SCREENS / path.name)
    return len(found)
