"""Requests to a model for inspection: written out with placeholders for images, and a fingerprint of an adapter's.

The golden files of the tests, ``guieval dev prompt`` and ``guieval models NAME`` all write requests out in this one form. The
fingerprint shows a resumed run that its prompts have changed; it does not cover what an adapter does with a response.
"""

from __future__ import annotations

import json
from typing import Any, get_args

from guieval.actions import Action, Click, Point, Scroll, Stop
from guieval.frames import Size
from guieval.history import HistoryEntry, reference_entry
from guieval.models import ABCModel, ImageRef, Message, ModelInput, Part
from guieval.steps import Episode, Setting, StepTaskModel

PHONE: Size = (1080, 2400)


def shown(prepared: ModelInput) -> str:
    """A request as text: each message under its role, each part followed by a line break that is not of the part itself."""
    lines: list[str] = []
    for index, message in enumerate(prepared.messages):
        unfinished = ", to be continued" if prepared.prefill and index == len(prepared.messages) - 1 else ""
        lines += [f"=== {message.role}{unfinished}", *map(shown_part, message.parts)]
    if prepared.extra:
        lines += ["=== request fields", _canonical(prepared.extra)]
    return "\n".join(lines) + "\n"


def shown_part(part: Part) -> str:
    """A text as it is; of an image its file, its size, and the size it is sent in if that is another."""
    if isinstance(part, str):
        return part
    resized = "" if part.resize is None else f", sent as {_size(part.resize)}"
    canvas = "" if part.canvas is None else f", on a white image of {_size(part.canvas)}"
    return f"[image {part.task.screenshot}: {_size(part.task.screenshot_size)}{resized}{canvas}]"


def example_episode(setting: Setting = "high", size: Size = PHONE) -> Episode:
    """The same made-up episode every time: a click, a swipe and the end, each with a step instruction."""
    steps: tuple[tuple[Action, str], ...] = (
        (Click(point=Point(500.0, 750.0)), "Tap the row 'Network & internet'"),
        (Scroll(point=Point(500.0, 700.0), direction="up"), "Swipe up to find the switch"),
        (Stop(status="finish"), "The task is done"),
    )
    return Episode(
        steps=tuple(
            StepTaskModel(
                benchmark="example",
                dataset="example",
                episode_id="episode",
                step_index=index,
                episode_length=len(steps),
                setting=setting,
                instruction='Turn on Wi-Fi and connect to "Home"',
                low_level_instruction=instruction,
                screenshot=f"{index}.png",
                screenshot_size=size,
                action=action,
            )
            for index, (action, instruction) in enumerate(steps)
        )
    )


def example_requests(model: ABCModel) -> list[list[str]]:
    """The requests of ``model`` for made-up steps, one row per setting: adapters with the same rows send the same text."""
    cases: tuple[tuple[Setting, Size, int], ...] = (("high", PHONE, 2), ("low", (330, 210), 1), ("grounding", (1920, 1080), 0))
    requests: list[list[str]] = []
    for setting, size, index in cases:
        steps = example_episode(setting, size).steps
        own = HistoryEntry(steps[1], steps[1].action, "The switch is below.", "I swiped up.", None, "model")
        past = (reference_entry(steps[0]), own)[:index]
        try:
            prepared = model.prepare_input(_told(model, steps[index]), past)
            messages = list(map(_plain_message, prepared.messages))
            requests.append([setting, _canonical([messages, prepared.prefill, prepared.extra])])
        except Exception as error:  # an adapter may be anyone's code, and refusing a setting is part of what it does
            requests.append([setting, type(error).__name__])
    return requests


def fixed_thought_form(model: ABCModel) -> list[str]:
    """How ``model`` is given a thought at made-up steps, by setting: what :func:`example_requests` is for plain requests."""
    forms: list[str] = []
    for setting in get_args(Setting):
        step = _told(model, example_episode(setting).steps[0])
        try:
            prepared = model.prepare_fixed_thought(step, (), "The switch is below.\nI look there.")
            forms.append(_canonical([_plain_message(prepared.messages[-1]), prepared.prefill, prepared.extra]))
        except Exception as error:  # as above: refusing a setting is part of what an adapter does
            forms.append(type(error).__name__)
    return forms


def _told(model: ABCModel, step: StepTaskModel) -> StepTaskModel:
    """The step with every text that the model's options name."""
    return step.model_copy(update={"extras": dict.fromkeys(model.options.screen_texts, "what is on the screen")})


def _plain_message(message: Message) -> list[Any]:
    return [message.role, *(_plain_part(part) if isinstance(part, ImageRef) else part for part in message.parts)]


def _plain_part(part: ImageRef) -> list[Any]:
    return [part.task.screenshot, part.resize, *([part.canvas] if part.canvas else [])]  # no null: digests are on record


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _size(size: Size) -> str:
    return f"{size[0]} x {size[1]}"
