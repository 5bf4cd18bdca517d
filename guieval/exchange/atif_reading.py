"""Makes a run of the trajectories that :mod:`.atif` wrote, with the same metrics, steps and screenshots."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from guieval.actions import action_from_json
from guieval.data.files import becoming, read_bytes
from guieval.data.names import path_inside
from guieval.errors import DataError, JournalError, UsageError, first_problem
from guieval.exchange.atif import ELSEWHERE, ENDING, IMAGES, RUN, Document, RecordedRun, Step
from guieval.history.modes import MODES
from guieval.journal import Journal
from guieval.journal.run_files import Manifest
from guieval.online.trajectory import SCREENS, TRAJECTORIES, TrajectoryStep
from guieval.steps import EpisodeKey, TaskRecord


class ReadTrajectories(NamedTuple):
    """How many tasks and trajectories a run was made of, how many tasks it planned, and how many screenshots there were."""

    tasks: int
    trajectories: int
    planned: int
    screenshots: int


class _Read(NamedTuple):
    path: Path
    document: Document
    part: RecordedRun

    @property
    def order(self) -> tuple[int, bool, int]:
        """The order of the run; what was not finished comes last in its task."""
        return self.part.place, self.part.record is None, self.part.repetition


def make_run(source: Path, out: Path) -> ReadTrajectories:
    """Write the run directory ``out`` from the trajectories in a folder.

    It is there when it is whole, and not before. Tasks of which there is no trajectory are not part of the run, and the
    repetitions of a task are numbered anew without gaps. Raises :class:`UsageError` for trajectories of another tool, of
    several runs or given twice, and if ``out`` exists; :class:`DataError` naming file and field for a damaged file.
    """
    files = sorted(source.glob(f"*{ENDING}")) if source.is_dir() else [source]
    if not files:
        raise UsageError(f"the folder {str(source)!r} has no trajectories: expected files *{ENDING}")
    if out.exists():
        raise UsageError(f"the directory {str(out)!r} exists; give another --out")
    read = sorted(map(_read, files), key=lambda each: each.order)
    if len(runs := sorted({each.document.session_id for each in read})) > 1:
        raise UsageError(f"{str(source)!r} has trajectories of several runs ({', '.join(runs)}): put each run into a folder")
    for (one, _, first), (other, _, second) in pairwise(read):
        if (first.key, first.repetition) == (second.key, second.repetition):
            raise UsageError(f"{one.name!r} and {other.name!r} hold the same repetition of the task {first.key}")
    manifest = _manifest(read[0])
    records, steps = _records(read), _steps(read)
    plan = {each.part.key: range(1) for each in read}
    try:
        with becoming(out) as partial:
            with Journal(partial, MODES["online"]) as journal:
                journal.start(manifest.to_json(), plan)
                for record in records.values():
                    journal.append(record)
            with (partial / TRAJECTORIES).open("wb") as stream:
                for step in steps:
                    stream.write(step.model_dump_json(exclude_none=True).encode() + b"\n")
            screenshots = _copy_screens(source, partial, steps, records)
    except OSError as error:
        raise JournalError(f"cannot write to {str(error.filename or out)!r}: {error.strerror}") from None
    return ReadTrajectories(len(plan), len(read), read[0].part.planned_tasks, screenshots)


def _read(path: Path) -> _Read:
    try:
        document = Document.model_validate_json(read_bytes(path))
        if RUN not in document.extra:
            raise UsageError(f"{str(path)!r} is not of guieval: its trajectory has no outcome that could be scored")
        part = RecordedRun.model_validate(document.extra[RUN])
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise _damaged(path, error) from None
    if part.record is not None and (part.record.task.episode_key != part.key or len(part.record.samples) != 1):
        raise DataError(f"{path}, field extra.{RUN}.record: is not the record of one repetition of the task {part.key}")
    return _Read(path, document, part)


def _damaged(path: Path, error: ValidationError) -> DataError:
    problem = first_problem(error)
    return DataError(f"{path}, field {problem.field}: {problem.sentence}")


def _manifest(read: _Read) -> Manifest:
    try:
        manifest = Manifest.of(read.part.manifest)
    except ValidationError as error:
        raise _damaged(read.path, error) from None
    if not manifest.mode.is_over("tasks"):
        name = manifest.recorded_mode.name
        raise DataError(f"{read.path}, field extra.{RUN}.manifest.mode.name: expected 'online', got {name!r:.80}")
    return manifest


def _records(read: Sequence[_Read]) -> dict[EpisodeKey, TaskRecord]:
    records: dict[EpisodeKey, TaskRecord] = {}
    for part in (each.part for each in read):
        if part.record is not None:
            samples = records[part.key].samples if part.key in records else ()
            records[part.key] = part.record.model_copy(update={"samples": (*samples, *part.record.samples)})
    return records


def _steps(read: Sequence[_Read]) -> list[TrajectoryStep]:
    steps: list[TrajectoryStep] = []
    counted: Counter[EpisodeKey] = Counter()
    for path, document, part in read:
        goal = _text(document.steps[0])
        for step in document.steps[1:]:
            try:
                steps.append(_step(step, part.key, counted[part.key], goal))
            except ValidationError as error:
                raise _damaged(path, error) from None
        counted[part.key] += 1
    return steps


def _text(step: Step) -> str:
    return step.message if isinstance(step.message, str) else "".join(part.text or "" for part in step.message)


def _step(step: Step, key: EpisodeKey, repetition: int, goal: str) -> TrajectoryStep:
    actions = [action_from_json({"type": call.function_name, **call.arguments}) for call in step.tool_calls or ()]
    extra: dict[str, Any] = {name: value for name, value in (step.extra or {}).items() if name not in ELSEWHERE}
    if step.metrics is not None and not {"usage", "other_usage"} & extra.keys():
        extra["usage"] = step.metrics.model_dump()
    return TrajectoryStep.model_validate(
        {
            **extra,
            "screenshot": f"{SCREENS}/{Path(str(extra.get('screenshot'))).name}",
            "key": key,
            "sample": repetition,
            "goal": goal,
            "raw_response": _text(step),
            "reasoning": step.reasoning_content,
            "action": actions[0] if actions else None,
            "batch": tuple(actions) if len(actions) > 1 else (),
        }
    )


def _copy_screens(source: Path, out: Path, steps: Sequence[TrajectoryStep], records: dict[EpisodeKey, TaskRecord]) -> int:
    folder = (source if source.is_dir() else source.parent) / IMAGES
    if not folder.is_dir():
        return 0
    (out / SCREENS).mkdir()
    last = [
        outcome.screenshot
        for record in records.values()
        for sample in record.samples
        if (outcome := sample.outcome) is not None and outcome.screenshot is not None
    ]
    names = {Path(name).name for name in (*(step.screenshot for step in steps), *last)}
    found = 0
    for name in sorted(names):
        with suppress(ValueError):  # it is missing from the run
            if (path := path_inside(folder, name)).is_file():
                shutil.copyfile(path, out / SCREENS / name)
                found += 1
    return found
