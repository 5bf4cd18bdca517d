"""Qwen3.5: both forms of a call, both prompts, the thinking switch, and the conversation on computers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guieval.actions import Answer, Click, Drag, Hotkey, LongPress, Point, Press, Scroll, Stop, Type, Wait
from guieval.history import reference_entry
from guieval.models import ABCModel
from guieval.parsing import function_text
from guieval.registry import adapter_class, load_model, model_config
from guieval.testing.conformance import check_adapter

from .steps import step
from .tables import reads, refuses

MOBILE = load_model("qwen3.5-9b")
CORNER = Point(1000.0, 0.0)


def computer(*, thinking: bool | None = None) -> ABCModel:
    config = model_config("qwen3.5-9b").model_copy(update={"options": {"prompt": "computer"}})
    return adapter_class("qwen3_5")(config, thinking=thinking)


COMPUTER = computer()


def both(name: str, arguments: dict[str, Any]) -> list[str]:
    """A call in JSON and in tags."""
    written = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
    call = json.dumps({"name": name, "arguments": arguments})
    return [f"<tool_call>\n{text}\n</tool_call>" for text in (call, function_text(name, written))]


test_calls_on_computers = reads(
    COMPUTER,
    ({"action": "left_click", "coordinate": [1000, 0]}, Click(point=CORNER)),
    ({"action": "left_click", "coordinate": [1000, 0], "text": ""}, Click(point=CORNER)),
    ({"action": "scroll", "pixels": 5, "coordinate": [1000, 0]}, Scroll(point=CORNER, direction="down")),
    ({"action": "scroll", "pixels": -5}, Scroll(point=Point(500.0, 500.0), direction="up")),
    ({"action": "hscroll", "pixels": 5}, Scroll(point=Point(500.0, 500.0), direction="left")),
    ({"action": "type", "text": "007"}, Type(text="007")),
    ({"action": "key", "keys": ["enter"]}, Press(button="ENTER")),
    ({"action": "wait", "time": 2}, Wait(duration=2000.0)),
    ({"action": "terminate", "status": "failure"}, Stop(status="impossible")),
    ({"action": "left_click", "coordinate": [5, 5], "text": "ctrl"}, None),
    ({"action": "key", "keys": ["ctrl", "c"]}, Hotkey(keys=("ctrl", "c"))),
    ({"action": "left_click_drag", "coordinate": [1000, 0]}, Drag(end=CORNER)),
    ({"action": "answer", "text": "7"}, Answer(text="7")),
    ({"action": "triple_click", "coordinate": [5, 5]}, None),
    wrap=lambda given: [f"I see it.\n</think>\n\n{text}" for text in both("computer", given)],
    thought="I see it.",
)

test_calls_on_phones = reads(
    MOBILE,
    ({"action": "click", "coordinate": [999, 0]}, Click(point=CORNER)),
    ({"action": "long_press", "coordinate": [999, 0], "time": 2}, LongPress(point=CORNER, duration=2000.0)),
    ({"action": "system_button", "button": "Back"}, Press(button="BACK")),
    (
        {"action": "swipe", "coordinate": [999, 0], "coordinate2": [0, 0]},
        Scroll(point=CORNER, direction="left", distance=1000.0),
    ),
    wrap=lambda given: [f'Thought: I see it.\nAction: "Do it."\n{text}' for text in both("mobile_use", given)],
    thought="I see it.",
    conclusion="Do it.",
)


def test_the_actions_name_may_be_given_as_type() -> None:
    text = function_text("computer", {"type": "left_click", "coordinate": "[1000, 0]"})
    assert COMPUTER.parse_response(step(), f"<tool_call>\n{text}\n</tool_call>").action == Click(point=CORNER)


def test_a_text_may_hold_tags_of_a_call_in_json() -> None:
    text = both("computer", {"action": "type", "text": "<function=wait>"})[0]
    assert COMPUTER.parse_response(step(), text).action == Type(text="<function=wait>")


def test_a_call_that_is_rehearsed_in_the_thought_does_not_count() -> None:
    rehearsed, made = (both("computer", {"action": "wait", "time": time})[1] for time in (1, 2))
    assert COMPUTER.parse_response(step(), f"{rehearsed}\n</think>\n{made}").action == Wait(duration=2000.0)


test_garbage_is_no_action = refuses(
    COMPUTER,
    "",
    "<tool_call>\n</tool_call>",
    "<function=>",
    "<tool_call><function=computer><parameter=action>left_click",
    "<function=computer></function>",
    *both("computer", {"action": "left_click", "coordinate": [2000, 10]}),
    *both("computer", {"action": "scroll", "pixels": "far"}),
    *both("computer", {"action": "fly"}),
)


@pytest.mark.parametrize("thinking", [True, False])
def test_the_computer_prompt_conforms(thinking: bool) -> None:
    assert [str(finding) for finding in check_adapter(computer(thinking=thinking), "computer")] == []


@pytest.mark.parametrize("thinking", [True, False])
def test_the_switch_is_the_chat_templates(thinking: bool) -> None:
    for model in (computer(thinking=thinking), load_model("qwen3.5-9b", thinking=thinking)):
        assert model.prepare_input(step(), ()).extra == {"chat_template_kwargs": {"enable_thinking": thinking}}


def test_the_conversation_shows_the_last_three_screenshots() -> None:
    steps = [step(step_index=index, screenshot=f"{index}.png") for index in range(5)]
    prepared = COMPUTER.prepare_input(steps[-1], [reference_entry(one) for one in steps[:-1]])
    roles = [message.role for message in prepared.messages]
    assert roles == ["system", "user", "assistant", "assistant", "user", "assistant", "user", "assistant", "user"]
    assert [image.task.step_index for image in prepared.images] == [2, 3, 4]
