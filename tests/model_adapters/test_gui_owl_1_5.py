"""GUI-Owl-1.5: what each verb means, what is refused, and the conversation with the last five screenshots."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from guieval.actions import Answer, Click, Drag, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.errors import UsageError
from guieval.history import reference_entry
from guieval.models import Message
from guieval.registry import load_model

from .steps import adapter, outside, step
from .tables import reads, refuses

MODEL = load_model("gui-owl-1.5-8b-instruct")
THINKING = load_model("gui-owl-1.5-8b-thinking")


def written(**arguments: Any) -> str:
    call = json.dumps({"name": "mobile_use", "arguments": arguments})
    return f"Action: Do it.\n<tool_call>\n{call}\n</tool_call>"


test_calls = reads(
    MODEL,
    ({"action": "click", "coordinate": [250, 1000]}, Click(point=Point(250.0, 1000.0))),
    ({"action": "long_press", "coordinate": [0, 0], "time": 2}, LongPress(point=Point(0.0, 0.0), duration=2000.0)),
    (
        {"action": "swipe", "coordinate": [500, 700], "coordinate2": [500, 300]},
        Scroll(point=Point(500.0, 700.0), direction="up", distance=400),
    ),
    ({"action": "type", "text": "a"}, Type(text="a")),
    ({"action": "system_button", "button": "Back"}, Press(button="BACK")),
    ({"action": "key", "text": "enter"}, Press(button="ENTER")),
    ({"action": "open", "text": "Clock"}, Open(app="Clock")),
    ({"action": "wait", "time": 3}, Wait(duration=3000.0)),
    ({"action": "terminate", "status": "success"}, Stop(status="finish")),
    ({"action": "terminate", "status": "failure"}, Stop(status="impossible")),
    ({"action": "left_click", "coordinate": [250, 1000]}, Click(point=Point(250.0, 1000.0))),
    ({"action": "answer", "text": "7"}, Answer(text="7")),
    ({"action": "left_click_drag", "coordinate": [1, 2]}, Drag(end=Point(1.0, 2.0))),
    ({"action": "scroll", "pixels": -5}, Unsupported),
    ({"action": "key", "text": "volume_up"}, Unsupported),
    wrap=lambda arguments: written(**arguments),
    thought=None,
    conclusion="Do it.",
)


def test_a_thinking_checkpoint_begins_with_its_reasoning() -> None:
    parsed = THINKING.parse_response(step(), f"<think>\nwhy\n</think>\n\n{written(action='wait', time=1)}")
    assert (parsed.action, parsed.thought, parsed.conclusion) == (Wait(duration=1000.0), "why", "Do it.")
    begun = THINKING.prepare_fixed_thought(step(), (), "why").messages[-1]
    assert begun.role == "assistant" and begun.parts == ("<think>\nwhy\n</think>\n\n",)
    assert not MODEL.fixes_thought
    with pytest.raises(UsageError):
        MODEL.prepare_fixed_thought(step(), (), "why")


test_garbage_is_no_action = refuses(
    MODEL,
    "",
    "Action: Tap it.",
    "<tool_call>\n</tool_call>",
    written(action="fly"),
    written(action="click", coordinate=[2530, 314]),
)


def words(message: Message) -> list[str]:
    return [part if isinstance(part, str) else f"<{part.task.step_index}>" for part in message.parts]


def test_the_last_four_steps_are_turns_and_older_ones_a_list() -> None:
    steps = [step(step_index=index, screenshot=f"{index}.png") for index in range(7)]
    past = [reference_entry(one) for one in steps[:-1]]
    past[5] = replace(past[5], raw_response=f"<think>why</think>\n{written(action='wait', time=1)}")
    _, first, *turns = MODEL.prepare_input(steps[-1], past).messages
    request, shown = words(first)
    assert request.endswith("Previous actions:\nStep1: Click at (500, 750).\nStep2: Click at (500, 750).") and shown == "<2>"
    assert [message.role for message in turns] == ["assistant", "user"] * 4
    assert [words(message) for message in turns[1::2]] == [["<3>"], ["<4>"], ["<5>"], ["<6>"]]
    assert words(turns[-2]) == [written(action="wait", time=1)], "without the thought"


def test_one_screenshot_leaves_the_past_a_list() -> None:
    model = adapter("gui_owl_1_5", max_images=1)
    _, only = model.prepare_input(step(step_index=1, screenshot="1.png"), [reference_entry(step())]).messages
    assert words(only)[0].endswith("Step1: Click at (500, 750).") and words(only)[1] == "<1>"


def test_an_answer_ends_the_task_online_and_counts_as_an_answer_alone_offline() -> None:
    parsed = MODEL.parse_response(step(), written(action="answer", text="7"))
    assert parsed.action == outside("answer", Answer(text="7"), text="7")
    assert parsed.batch == (parsed.action, Stop(status="finish"))
    assert MODEL.parse_response(step(), written(action="wait", time=1)).batch == ()
