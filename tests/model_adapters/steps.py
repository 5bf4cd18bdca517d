"""Made-up steps and past steps for the adapters' tests."""

from __future__ import annotations

from typing import Any

from guieval.actions import Action, Click, DeviceAction, Open, Point, Type, Unsupported
from guieval.history import HistoryEntry, reference_entry
from guieval.models import ABCModel, ModelConfig
from guieval.registry import adapter_class
from guieval.steps import StepTaskModel

PHONE = (1080, 2400)
CLICK = Click(point=Point(500.0, 750.0))


def outside(name: str, device: DeviceAction | None = None, **arguments: Any) -> Unsupported:
    """A call that the unified actions have no word for."""
    return Unsupported(name=name, arguments=arguments, device=device)


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


def adapter(name: str, *, thinking: bool | None = None, **options: Any) -> ABCModel:
    return adapter_class(name)(ModelConfig(name=name, adapter=name, options=options), thinking=thinking)
