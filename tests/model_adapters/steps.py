"""Made-up steps and past steps for the adapters' tests."""

from __future__ import annotations

from typing import Any

from guieval.actions import Action, Click, DeviceAction, Direction, Open, Point, Scroll, Type, Unsupported
from guieval.history import HistoryEntry, reference_entry
from guieval.models import ABCModel, Message, ModelConfig
from guieval.registry import adapter_class
from guieval.steps import StepTaskModel

PHONE = (1080, 2400)
CLICK = Click(point=Point(500.0, 750.0))


def outside(name: str, device: DeviceAction | None = None, **arguments: Any) -> Unsupported:
    """A call that the unified actions have no word for."""
    return Unsupported(name=name, arguments=arguments, device=device)


def scroll(direction: Direction, distance: float | None = None) -> Scroll:
    """From the middle of the screen."""
    return Scroll(point=Point(500.0, 500.0), direction=direction, distance=distance)


def step(action: Action = CLICK, **changes: Any) -> StepTaskModel:
    fields: dict[str, Any] = {
        "benchmark": "b",
        "dataset": "d",
        "episode_id": "e",
        "step_index": 0,
        "episode_length": 10,
        "instruction": "Turn on Wi-Fi",
        "screenshot": "0.png",
        "screenshot_size": PHONE,
        "action": action,
    }
    return StepTaskModel(**{**fields, **changes})


HIGH = step()
LOW = step(setting="low", low_level_instruction="Tap the switch")
GROUNDING = step(setting="grounding")


def past(count: int = 2) -> tuple[HistoryEntry, ...]:
    """A reference entry with a step instruction, then entries of the model with a thought and a conclusion."""
    first = reference_entry(step(Open(app="Settings"), low_level_instruction="Open the settings"))
    own = [
        HistoryEntry(
            step(step_index=index, screenshot=f"{index}.png"),
            Type(text="it's") if index % 2 else CLICK,
            f"Thought {index}",
            f'I "did"\n step {index}',
            "raw",
            "model",
        )
        for index in range(1, count)
    ]
    return (first, *own)[:count]


def own(model: ABCModel, raw: str, index: int = 0, **changes: Any) -> HistoryEntry:
    """A past step as the model's own history tells it, read from the raw reply."""
    task = step(step_index=index, screenshot=f"{index}.png", **changes)
    parsed = model.parse_response(task, raw)
    return HistoryEntry(task, parsed.action, parsed.thought, parsed.conclusion, raw, "model")


def after(count: int) -> tuple[StepTaskModel, list[HistoryEntry]]:
    """A step with a screenshot of its own, and the reference entries of so many before it."""
    *done, now = (step(step_index=index, screenshot=f"{index}.png") for index in range(count + 1))
    return now, [reference_entry(each) for each in done]


def words(message: Message) -> list[str]:
    """The parts of a message, with the index of its step for each screenshot."""
    return [part if isinstance(part, str) else f"<{part.task.step_index}>" for part in message.parts]


def adapter(name: str, *, thinking: bool | None = None, **options: Any) -> ABCModel:
    return adapter_class(name)(ModelConfig(name=name, adapter=name, options=options), thinking=thinking)
