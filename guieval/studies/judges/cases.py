"""What is judged: a trajectory as a judge sees it, of a run's repetition of a task or of a data set with human labels."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from guieval.actions import Action, Answer, Unsupported, executable
from guieval.data.screenshots import Screenshot, picture, png, probe, read_screenshot
from guieval.errors import ScreenshotError
from guieval.history import describe
from guieval.online.trajectory import TrajectoryStep, last_attempts
from guieval.steps import Outcome, TaskRecord


class CaseStep(NamedTuple):
    """A step of a trajectory: the action and the thought as text, the address of the page, the place of the action in [0, 1000]
    per axis, and the content of the screenshot's file before the action, or ``None`` if there is none."""

    action: str
    thought: str = ""
    url: str = ""
    point: tuple[float, float] | None = None
    screenshot: Callable[[], bytes] | None = None


class Case(NamedTuple):
    """A trajectory to judge. ``id`` is its own in the run or data set, ``task`` that of what the agent was to do.

    ``label`` is whether it is a success: of a data set in people's opinion, of a run as the environment says. ``own`` is what
    the benchmark's rule says, ``second`` what a second person says, ``claimed`` whether the agent ended it as done; ``None`` if
    that is not known. A task that its environment does not judge has no ``own``, and its ``label`` means nothing.
    """

    id: str
    task: str
    goal: str
    steps: Sequence[CaseStep]
    label: bool
    own: bool | None = None
    second: bool | None = None
    claimed: bool | None = None
    answer: str | None = None
    platform: str = ""
    agent: str = ""


def of_run(run: Path, records: Iterable[TaskRecord]) -> list[Case]:
    """The repetitions of a run's tasks that have an outcome and at least one step."""
    attempts = last_attempts(run)
    return [
        _of_repetition(run, f"{each.task.episode_key}/{number}", str(each.task.episode_key), steps, sample.outcome)
        for each in records
        for number, sample in enumerate(each.samples)
        if sample.outcome is not None and (steps := attempts.get((each.task.episode_key, number), []))
    ]


def _of_repetition(run: Path, id: str, task: str, steps: Sequence[TrajectoryStep], outcome: Outcome) -> Case:
    answers = [each.text for step in steps for each in map(executable, step.actions) if isinstance(each, Answer)]
    done = outcome.score.success
    return Case(
        id,
        task,
        steps[0].goal,
        [_seen(run, step) for step in steps],
        label=done,
        own=None if outcome.score.unjudged else done,
        claimed=outcome.stopped == "finish",
        answer=answers[-1] if answers else None,
        platform=steps[0].key.benchmark,
    )


def _seen(run: Path, step: TrajectoryStep) -> CaseStep:
    points = (getattr(executable(action), "point", None) for action in step.actions)
    return CaseStep(
        " ".join(map(_words, step.actions)),
        step.thought or "",
        point=next((point for point in points if point is not None), None),
        screenshot=lambda: read_screenshot(run, step.screenshot, step.size).data,
    )


def _words(action: Action) -> str:
    if not isinstance(action, Unsupported):
        return describe(action)
    return f"{action.name}({', '.join(f'{name}={value!r}' for name, value in action.arguments.items())})"


def shown(step: CaseStep, *, ring: bool = False, jpeg: int | None = None) -> Screenshot:
    """A step's screenshot as it is sent: the file as it is if that is possible, with a red ring around the action's place, or
    encoded as JPEG. Raises :class:`ScreenshotError` for what cannot be decoded."""
    assert step.screenshot is not None  # steps without one are not shown
    data = step.screenshot()
    try:
        header = probe(data)
        marked = ring and step.point is not None
        if header.ready and not marked and jpeg is None:
            return Screenshot(data, header.format, header.size)
        image = picture(data)
    except ValueError as error:
        raise ScreenshotError(f"the screenshot {error}") from None
    if marked and step.point is not None:
        from PIL.ImageDraw import Draw

        short = min(image.size)  # the ring of OSReward's eval_pipeline/run_judge.py
        x, y = (place / 1000.0 * side for place, side in zip(step.point, image.size, strict=True))
        radius, width = max(10, int(short * 0.05)), max(4, int(short * 0.008))
        Draw(image).ellipse([(x - radius, y - radius), (x + radius, y + radius)], outline="red", width=width)
    if jpeg is None:
        return Screenshot(png(image), "png", image.size)
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=jpeg)
    return Screenshot(stream.getvalue(), "jpeg", image.size)
