"""The mock server's policies, which write responses in any model family's own format."""

from __future__ import annotations

import math
import random
from base64 import b64decode
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel, ConfigDict

from guieval import actions as act
from guieval.errors import UsageError
from guieval.frames import Size
from guieval.models.composition import on_the_part, zoomed_part
from guieval.steps import EpisodeKey, StepKey, StepTaskModel

if TYPE_CHECKING:
    from guieval.data.benchmark import ABCBenchmark
    from guieval.models import ABCModel

from guieval.playground.mock_server.answers import PolicyResponse
from guieval.playground.mock_server.app import Answers, Tag, uniform
from guieval.playground.mock_server.distributions import UNNAMED, distribution_answers, read_lines
from guieval.playground.mock_server.settings import MockSettings
from guieval.playground.mock_server.sight import answer_seen

DEFAULT_SIZE: Size = (1080, 2400)
"""(width, height) in pixels of a screen that cannot be read from the request."""
THOUGHT = "The element that the next part of the task needs is on this screen, so I act on it."
_PNG_URL = b"data:image/png;base64,"


def policy_answers(settings: MockSettings, *, model: ABCModel | None = None, benchmark: ABCBenchmark | None = None) -> Answers:
    """The policy in ``settings``.

    ``model`` and ``benchmark`` take the place of those to load by name. Raises :class:`UsageError` when one that the policy
    needs is neither given nor named, or when the script cannot be read.
    """
    if settings.sees != "nothing" and settings.policy != "reference":
        raise UsageError(f"--sees is for the policy 'reference', whose places are known; the policy is {settings.policy!r}")
    if settings.policy == "fixed":
        fixed = PolicyResponse(settings.reply)
        return lambda tag, body: fixed
    if settings.policy == "script":
        return _scripted(settings)
    if model is None:
        from guieval.registry import load_model

        if settings.model is None:
            raise UsageError(f"the mock server's policy {settings.policy!r} needs a model, whose format it answers in")
        model = load_model(settings.model, adapter=settings.adapter)
    if settings.policy == "distribution":
        return _drawn(settings, model, benchmark or _load_benchmark(settings))
    if settings.policy == "reference":
        return _from_reference(settings, model, benchmark or _load_benchmark(settings))
    lookup = benchmark if benchmark is not None or settings.benchmark is None else _load_benchmark(settings)
    return _without_reference(settings, model, lookup)


def _load_benchmark(settings: MockSettings) -> ABCBenchmark:
    from guieval.registry import load_benchmark

    if settings.benchmark is None:
        raise UsageError(f"the mock server's policy {settings.policy!r} needs a benchmark, whose steps it answers")
    return load_benchmark(settings.benchmark, settings.data)


def _step_finder(benchmark: ABCBenchmark) -> Callable[[StepKey], StepTaskModel]:
    refs = {ref.key: ref for ref in benchmark.index()}

    @lru_cache(maxsize=512)
    def episode(key: EpisodeKey) -> tuple[StepTaskModel, ...]:
        return benchmark.load(refs[key]).steps

    def find(key: StepKey) -> StepTaskModel:
        episode_key = EpisodeKey(*key[:3])
        if episode_key not in refs or key.step_index >= refs[episode_key].length:
            raise LookupError(f"step {key} is not in benchmark {benchmark.name!r}")
        return episode(episode_key)[key.step_index]

    return find


def _from_reference(settings: MockSettings, model: ABCModel, benchmark: ABCBenchmark) -> Answers:
    find = _step_finder(benchmark)

    def answer(tag: Tag, body: bytes) -> PolicyResponse:
        if tag.key is None:
            raise LookupError(f"the request {tag.name!r} {UNNAMED}, so it has no reference")
        task = find(tag.key)
        accepted = [task.action, *task.alternatives]
        if tag.name.endswith(("|grounder", "|zoom")):  # a grounder has a click for the place of a long press too
            accepted += [act.Click(point=each.point) for each in accepted if isinstance(each, act.LongPress)]
        right = next((action for action in accepted if action in model.action_space), None)
        accuracy = settings.accuracy + settings.history_gain * _own_share(task, body)
        if right is None or uniform(settings.seed, tag.name, "accuracy") >= accuracy:
            right = wrong_action(task, model.action_space, uniform(settings.seed, tag.name, "wrong"))
        if settings.zoom is not None and tag.name.endswith("|zoom") and isinstance(right, act.Click | act.LongPress):
            right = _zoomed(model, task, right, settings.zoom)
        return answer_seen(settings, model, task, right, THOUGHT, body)

    return answer


def _zoomed(model: ABCModel, task: StepTaskModel, right: act.Click | act.LongPress, factor: float) -> act.Action:
    """A click as it is on the part of the screen that a zoom around the model's first response shows."""
    first = model.parse_response(task, model.render(task, right, THOUGHT)).action
    assert isinstance(first, act.Click | act.LongPress)
    crop = zoomed_part(task.screenshot_size, first.point, factor)
    return right.model_copy(update={"point": on_the_part(task.screenshot_size, crop, right.point)})


def _own_share(task: StepTaskModel, body: bytes) -> float:
    """The share, in [0, 1], of a request's history steps with the thought that all of the mock's answers have."""
    return min(1.0, body.count(THOUGHT.encode()) / task.step_index) if task.step_index else 0.0


def _drawn(settings: MockSettings, model: ABCModel, benchmark: ABCBenchmark) -> Answers:
    if settings.script is None:
        raise UsageError("the mock server's policy 'distribution' needs a script file")

    def wrong(task: StepTaskModel) -> act.Action:
        return wrong_action(task, model.action_space, 0.0)

    return distribution_answers(settings.script, model, _step_finder(benchmark), wrong, settings.seed)


def _without_reference(settings: MockSettings, model: ABCModel, benchmark: ABCBenchmark | None) -> Answers:
    find = _step_finder(benchmark) if benchmark is not None else None

    def task_of(tag: Tag, body: bytes) -> StepTaskModel:
        if find is not None and tag.key is not None:
            return find(tag.key)
        return _blank_task(_screen_size(body))

    @lru_cache(maxsize=256)
    def centre(size: Size) -> PolicyResponse:
        return PolicyResponse(model.render(_blank_task(size), act.Click(point=act.Point(500.0, 500.0)), THOUGHT))

    def answer(tag: Tag, body: bytes) -> PolicyResponse:
        task = task_of(tag, body)
        if settings.policy == "centre":
            return centre(task.screenshot_size)
        action = random_action(model.action_space, random.Random(repr((settings.seed, tag.name))))
        return PolicyResponse(model.render(task, action, THOUGHT))

    return answer


def _scripted(settings: MockSettings) -> Answers:
    if settings.script is None:
        raise UsageError("the mock server's policy 'script' needs a script file")
    lines = read_lines(settings.script, _ScriptLine)
    replies = {line.key: PolicyResponse(line.reply, line.reasoning) for line in lines}

    def answer(tag: Tag, body: bytes) -> PolicyResponse:
        names = [tag.name, tag.name.rpartition("|")[0], *([str(tag.key)] if tag.key else []), tag.text, "*"]
        for name in names:
            if name in replies:
                return replies[name]
        raise LookupError(f"the script has no response for {tag.name!r}")

    return answer


class _ScriptLine(BaseModel):
    """``key`` is a request id with or without the sample, a step key as messages print it, an episode tag, or ``*``."""

    model_config = ConfigDict(extra="forbid")

    key: str
    reply: str
    reasoning: str | None = None


def _screen_size(body: bytes) -> Size:
    """(width, height) of the last PNG in a request, from its header; :data:`DEFAULT_SIZE` when there is none."""
    place = body.rfind(_PNG_URL)
    if place < 0:
        return DEFAULT_SIZE
    start = place + len(_PNG_URL)
    try:
        head = b64decode(body[start : start + 32], validate=True)  # signature, length, IHDR, width, height
    except ValueError:
        return DEFAULT_SIZE
    width, height = int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    return (width, height) if width and height else DEFAULT_SIZE


def _blank_task(size: Size) -> StepTaskModel:
    return StepTaskModel(
        benchmark="mock",
        dataset="mock",
        episode_id="0",
        step_index=0,
        episode_length=1,
        instruction="",
        screenshot="",
        screenshot_size=size,
        action=act.Wait(),
    )


def random_action(space: act.ActionSpace, source: random.Random) -> act.Action:
    """An action of ``space``, each type equally likely."""
    point = act.Point(round(source.uniform(0.0, 1000.0), 1), round(source.uniform(0.0, 1000.0), 1))
    match source.choice(sorted(space.types)):
        case "CLICK":
            return act.Click(point=point)
        case "LONG_PRESS":
            return act.LongPress(point=point)
        case "SCROLL":
            return act.Scroll(point=point, direction=source.choice(act.DIRECTIONS))
        case "TYPE":
            return act.Type(text=source.choice(("hello", "weather tomorrow", "coffee near me")))
        case "OPEN":
            return act.Open(app=source.choice(("Settings", "Chrome", "Clock")))
        case "PRESS":
            return act.Press(button=source.choice([button for button in act.BUTTONS if button in space.buttons]))
        case "WAIT":
            return act.Wait()
        case _:
            return act.Stop(status=source.choice(sorted(space.statuses)))


def wrong_action(task: StepTaskModel, space: act.ActionSpace, draw: float) -> act.Action:
    """An action of ``space`` that no rule should count as right for ``task``; ``draw`` in [0, 1) chooses which.

    Below a half it is one of another type, else one of the right type with another target if that is possible. Types that
    some protocols accept for each other (a click for a long press or for opening an app) do not count as other types.
    """
    right = (task.action, *task.alternatives)
    types = {action.type for action in right}
    if types & {"CLICK", "LONG_PRESS", "OPEN"}:
        types |= {"CLICK", "LONG_PRESS", "OPEN"}
    others: list[act.Action] = [
        act.Press(button="BACK"),
        act.Scroll(point=act.Point(500.0, 500.0), direction="up"),
        act.Wait(),
        act.Type(text=_NO_TEXT),
    ]
    others += [act.Click(point=_far_point(task)), act.Stop()]
    other_type = [action for action in others if action.type not in types and action in space]
    other_target = [action for action in _other_targets(task, right) if action in space]
    first, second = (other_type, other_target) if draw < 0.5 else (other_target, other_type)
    # a format that only clicks has no other type if a click may count; far from the target it does not
    options = first or second or [action for action in others if isinstance(action, act.Click) and action in space]
    if not options:
        raise LookupError(f"the model's format has no wrong action for step {task.key}")
    return options[int(draw * 2.0 % 1.0 * len(options))]


_NO_TEXT = "zqxj vwkq"


def _other_targets(task: StepTaskModel, right: tuple[act.Action, ...]) -> list[act.Action]:
    match task.action:
        case act.Click():
            return [act.Click(point=_far_point(task))]
        case act.LongPress():
            return [act.LongPress(point=_far_point(task))]
        case act.Scroll(point=point):
            good = {action.direction for action in right if isinstance(action, act.Scroll)}
            return [act.Scroll(point=point, direction=direction) for direction in act.DIRECTIONS if direction not in good]
        case act.Type(text=text) if text.strip():
            return [act.Type(text=_NO_TEXT)]
        case act.Open():
            return [act.Open(app=_NO_TEXT)]
        case act.Press():
            pressed = {action.button for action in right if isinstance(action, act.Press)}
            return [act.Press(button=button) for button in act.BUTTONS if button not in pressed]
        case _:
            return []


def _far_point(task: StepTaskModel) -> act.Point:
    """The point of a coarse grid that shares the fewest boxes with the right points, and of those the farthest from them."""
    right = [
        action.point
        for action in (task.action, *task.alternatives)
        if isinstance(action, act.Click | act.LongPress | act.Scroll)
    ]
    boxes = task.boxes_of_screen
    held = np.zeros(len(boxes), dtype=np.bool_)
    for point in right:
        held |= boxes.containing(point)
    targets = act.Boxes(boxes.array[held])

    def merit(point: act.Point) -> tuple[int, float]:
        return -int(targets.containing(point).sum()), min((math.dist(point, p) for p in right), default=0.0)

    return max(
        (act.Point(x, y) for x in (20.0, 260.0, 500.0, 740.0, 980.0) for y in (20.0, 260.0, 500.0, 740.0, 980.0)), key=merit
    )
