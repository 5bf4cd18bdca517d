"""ATIF 1.7, Harbor's Agent Trajectory Interchange Format: a JSON file for each repetition of each task of an online run.

A task is the user's step, and every response of the model is a step of the agent. Its actions are tool calls, and the next
screenshot is their observation. The classes below are the part of the format that is written here. What it has no place for is
in ``extra``, so that :mod:`.atif_reading` makes the same run of the files.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from guieval.actions import Frozen
from guieval.data.names import path_inside
from guieval.errors import UsageError
from guieval.exchange.exported import Exported, slug, token_counts
from guieval.journal.earlier_tasks import earlier
from guieval.journal.setup import UNKNOWN
from guieval.reports.opened import OpenedOnlineRun
from guieval.reports.trajectories.reading import OnlineTrajectories, RecordedTrajectory, read_online
from guieval.steps import EpisodeKey, TaskRecord, total_usage

ENDING = ".trajectory.json"
RUN = "run"
MOST_SAMPLES = 100_000
"""Limit of a task's repetitions; a file with more is damaged."""
IMAGES = "images"
ELSEWHERE = {"key", "sample", "goal", "raw_response", "reasoning", "action", "batch"}
"""The fields of a recorded step that have a place in the format; the rest is in ``extra``.

``usage`` is in ``extra`` too if the step has more responses: its metrics are those of all. So it is if it names its model.
"""


class ImageSource(Frozen):
    """A picture next to the file."""

    media_type: Literal["image/png", "image/jpeg"]
    path: str


class ContentPart(Frozen):
    """A picture or a text of a message."""

    type: Literal["text", "image"]
    text: str | None = None
    source: ImageSource | None = None


class ToolCall(Frozen):
    """An action of the agent as the call of a function; the id connects it with its result."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]


class ObservationResult(Frozen):
    """What was seen after the call ``source_call_id``: words, or texts and pictures."""

    source_call_id: str | None = None
    content: str | tuple[ContentPart, ...]


class ActionResults(Frozen):
    """The results of all actions of a step, in their order."""

    results: tuple[ObservationResult, ...]


class StepMetrics(Frozen):
    """Tokens of all ``llm_call_count`` responses of a step."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Step(Frozen):
    """A message with what was done and seen."""

    step_id: int = Field(ge=1)
    source: Literal["user", "agent"]
    message: str | tuple[ContentPart, ...]
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    observation: ActionResults | None = None
    metrics: StepMetrics | None = None
    llm_call_count: int | None = None
    extra: dict[str, Any] | None = None


class Agent(Frozen):
    """Who acted: guieval, its version, and the model that it asked."""

    name: str = "guieval"
    version: str
    model_name: str
    extra: dict[str, Any] | None = None


class FinalMetrics(Frozen):
    """Sums over the steps."""

    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_steps: int


class Document(Frozen):
    """A trajectory file of the format: one episode with its agent, steps and totals."""

    schema_version: Literal["ATIF-v1.7"] = "ATIF-v1.7"
    session_id: str
    trajectory_id: str
    agent: Agent
    steps: tuple[Step, ...] = Field(min_length=1)
    final_metrics: FinalMetrics
    extra: dict[str, Any]


def _of_task(record: Any) -> Any:
    """The record of a task, also as earlier versions wrote it into a file."""
    return earlier(record) if isinstance(record, dict) else record


class RecordedRun(Frozen):
    """The run in a file's ``extra``: the task's place in the plan, the manifest, and the record of the outcome.

    ``record`` has the sample of this repetition alone; it is ``None`` for a trajectory that was not finished.
    """

    key: EpisodeKey
    repetition: int = Field(ge=0, le=MOST_SAMPLES)
    place: int = Field(ge=0)
    planned_tasks: int = Field(ge=1)
    manifest: dict[str, Any]
    record: Annotated[TaskRecord | None, BeforeValidator(_of_task)]


def write(run: Exported, folder: Path, *, images: bool = False) -> list[Path]:
    """Write a file for each trajectory that was begun, and with ``images`` its screenshots next to it.

    Raises :class:`UsageError` for a run that is not online.
    """
    if not isinstance(run.run, OpenedOnlineRun):
        raise UsageError(f"ATIF has trajectories of online runs, and {str(run.source)!r} is in mode {run.manifest.mode.name}")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for place, each, record in _with_records(read_online(run.run.directory)):
        if each.steps or record is not None:
            path = folder / f"{_file_name(each)}{ENDING}"
            document = _document(run, each, record, place, images)
            path.write_text(document.model_dump_json(exclude_none=True, indent=2) + "\n", encoding="utf-8")
            written.append(path)
            if images:
                written += _copied(run.source, folder, each)
    return written


def _with_records(trajectories: OnlineTrajectories) -> Iterator[tuple[int, RecordedTrajectory, TaskRecord | None]]:
    """The number of each task with each of its repetitions and the record with its sample alone, if it has one."""
    for place, key in enumerate(trajectories.run.planned.plan):
        record = trajectories.run.task(key)
        samples = () if record is None else record.samples
        for each in trajectories.of(key):
            sample = samples[each.repetition : each.repetition + 1]
            yield place, each, record.model_copy(update={"samples": sample}) if record is not None and sample else None


def _file_name(each: RecordedTrajectory) -> str:
    task = "-".join(filter(None, each.key[1:]))
    digest = "" if slug(task) == task else f"-{sha256(task.encode('utf-8', 'replace')).hexdigest()[:8]}"
    return f"{slug(task)}{digest}-{each.repetition}"


def _document(run: Exported, each: RecordedTrajectory, record: TaskRecord | None, place: int, images: bool) -> Document:
    screen = each.steps[0].screenshot if images and each.steps else None
    steps = [
        Step(step_id=1, source="user", message=_with_screen(each.goal, screen)),
        *(_step(each, number, images) for number in range(len(each.steps))),
    ]
    outcome = each.outcome
    judged: dict[str, Any] = {} if outcome is None else outcome.score.model_dump(mode="json")
    again = RecordedRun(
        key=each.key,
        repetition=each.repetition,
        place=place,
        planned_tasks=len(run.run),
        manifest=run.manifest.to_json(),
        record=record,
    )
    return Document(
        session_id=run.uuid,
        trajectory_id=f"{each.key}/{each.repetition}",
        agent=Agent(
            version=run.manifest.guieval or UNKNOWN,
            model_name=run.model,
            extra={"adapter": run.manifest.model.adapter, "setup": run.setup},
        ),
        steps=tuple(steps),
        final_metrics=_totals(each, len(steps)),
        extra={
            "benchmark": run.manifest.benchmark.name,
            "task": each.key.episode_id,
            "repetition": each.repetition,
            "ended": each.ended,
            **judged,
            **run.details,
            RUN: again.model_dump(mode="json"),
        },
    )


def _with_screen(text: str, screenshot: str | None) -> str | tuple[ContentPart, ...]:
    return text if screenshot is None else (ContentPart(type="text", text=text), _image(screenshot))


def _image(screenshot: str) -> ContentPart:
    kind: Literal["image/png", "image/jpeg"] = "image/png" if screenshot.endswith(".png") else "image/jpeg"
    return ContentPart(type="image", source=ImageSource(media_type=kind, path=f"{IMAGES}/{Path(screenshot).name}"))


def _step(each: RecordedTrajectory, place: int, images: bool) -> Step:
    step = each.steps[place]
    calls = tuple(
        ToolCall(
            tool_call_id=f"{step.index}.{number}",
            function_name=action.type,
            arguments=action.model_dump(mode="json", exclude={"type"}),
        )
        for number, action in enumerate(step.actions)
    )
    return Step(
        step_id=place + 2,
        source="agent",
        message=step.raw_response,
        reasoning_content=step.reasoning,
        tool_calls=calls or None,
        observation=_observation(each, place, calls, images),
        metrics=None if (paid := total_usage(step.responses)) is None else StepMetrics(**paid.model_dump()),
        llm_call_count=len(step.responses),
        extra=step.model_dump(
            mode="json", exclude=ELSEWHERE if step.responses != (paid,) else {*ELSEWHERE, "usage"}, exclude_none=True
        ),
    )


def _observation(each: RecordedTrajectory, place: int, calls: tuple[ToolCall, ...], images: bool) -> ActionResults:
    """The result of the last action: the screenshot that the next step saw, or the last one."""
    following = None if each.outcome is None else each.outcome.screenshot
    if place + 1 < len(each.steps):
        following = each.steps[place + 1].screenshot
    words = "carried out" if each.steps[place].executed else "not carried out"
    content = _with_screen(words, following if images else None)
    return ActionResults(
        results=(ObservationResult(source_call_id=calls[-1].tool_call_id if calls else None, content=content),)
    )


def _totals(each: RecordedTrajectory, steps: int) -> FinalMetrics:
    counts = token_counts([usage for step in each.steps for usage in step.responses]) or {}
    return FinalMetrics(
        total_prompt_tokens=counts.get("input_tokens"), total_completion_tokens=counts.get("output_tokens"), total_steps=steps
    )


def _screens(each: RecordedTrajectory) -> Iterator[str]:
    yield from (step.screenshot for step in each.steps)
    if each.outcome is not None and each.outcome.screenshot is not None:
        yield each.outcome.screenshot


def _copied(directory: Path, folder: Path, each: RecordedTrajectory) -> Iterator[Path]:
    (folder / IMAGES).mkdir(exist_ok=True)
    for name in dict.fromkeys(_screens(each)):
        try:
            source = path_inside(directory, name)
        except ValueError as error:
            raise UsageError(f"the screenshot {name[:200]!r} of the run {str(directory)!r} {error}") from None
        target = folder / IMAGES / Path(name).name
        if source.is_file() and not target.exists():
            shutil.copyfile(source, target)
            yield target
