"""GUI-Plus: what each verb means, slips that are tolerated, garbage that is refused, and the past."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from guieval.actions import Action, Answer, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.errors import ParseError, UsageError
from guieval.history import HistoryEntry, reference_entry
from guieval.models import Message
from guieval.registry import load_model

from .steps import GROUNDING, adapter, outside, step
from .tables import means, reads, refuses

MODEL = load_model("gui-plus-2026-02-26")


def read(text: str, **changes: Any) -> Action:
    return MODEL.parse_response(step(**changes), text).action


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
    ({"action": "system_button", "button": "Enter"}, Press(button="ENTER")),
    ({"action": "open", "text": "携程"}, Open(app="携程")),
    ({"action": "wait", "time": 3}, Wait(duration=3000.0)),
    ({"action": "terminate", "status": "failure"}, Stop(status="impossible")),
    ({"action": "left_click", "coordinate": [250, 1000]}, Click(point=Point(250.0, 1000.0))),
    *(({"action": name, "text": "log in"}, Unsupported) for name in ("interact", "scroll", "hscroll", "triple_click")),
    ({"action": "answer", "text": "7"}, Answer(text="7")),
    wrap=lambda arguments: written(**arguments),
    thought=None,
    conclusion="Do it.",
)

test_slips_seen_in_replies_are_tolerated = means(
    MODEL,
    Click(point=Point(250.0, 400.0)),
    'Action: Tap.\n<tool_call>\n{"action": "left_click", "coordinate": [250, 400]}}\n</think>',
    'Action: Tap.\n<tool_call>\n{"action": "left_click", "coordinate": [250, 400]',
    '<tool_call>\n{"type": "function", "function": {"name": "computer_use", "parameters": '
    '{"action": "left_click", "coordinate": [250, 400]}}\n</think>',
    '<tool_call>\n{"name": "computer_use", "parameters": {"action": "left_click", "coordinate": [250, 400]}}\n</tool_call>',
    '<tool_call>\n{"type": "function", "call": "computer_use", "arguments": '
    '{"action": "left_click", "coordinate": [250, 400]}}\n<tool_call>',
)


def test_a_place_alone_is_an_answer_to_a_grounding_query_only() -> None:
    text = 'Action: Tap the icon.\n<tool_call>\n{"coordinate": [250, 400]}'
    assert read(text, setting="grounding") == Click(point=Point(250.0, 400.0))
    with pytest.raises(ParseError):
        read(text)


test_garbage_is_no_action = refuses(
    MODEL,
    "",
    "Action: Tap the icon.",
    "<tool_call>\n</tool_call>",
    written(action="fly"),
    written(action="click", coordinate=[2530, 314]),
    '<tool_call>\n{"function": "left_click", "coordinate": 250, 400]}',
    task=GROUNDING,
)


def words(message: Message) -> list[str]:
    return [part if isinstance(part, str) else f"<{part.task.step_index}>" for part in message.parts]


def test_the_last_four_steps_are_turns_and_older_ones_a_list() -> None:
    steps = [step(step_index=index, screenshot=f"{index}.png") for index in range(7)]
    past = [reference_entry(one) for one in steps[:-1]]
    past[0] = HistoryEntry(steps[0], past[0].action, None, "Opened\nthe settings.", "raw", "model")
    reply = "<think>why</think>\nAction: Tap.\n<tool_call>\n{}\n</tool_call>"
    past[5] = replace(past[5], raw_response=reply)
    _, first, *turns = MODEL.prepare_input(steps[-1], past).messages
    request, shown = words(first)
    assert request.endswith("Previous actions:\nStep 1: Opened\nthe settings.\nStep 2: Click at (500, 750).") and shown == "<2>"
    assert [message.role for message in turns] == ["assistant", "user"] * 4
    assert [words(message) for message in turns[1::2]] == [
        ["<3>"],
        ["<4>"],
        ["<5>"],
        ["<tool_response>\n", "<6>", "\n</tool_response>"],
    ]
    assert words(turns[-2]) == ["Action: Tap.\n<tool_call>\n{}\n</tool_call>"]


def test_one_screenshot_leaves_the_past_a_list() -> None:
    model = adapter("gui_plus", max_images=1)
    _, only = model.prepare_input(step(step_index=1, screenshot="1.png"), [reference_entry(step())]).messages
    assert words(only)[0].endswith("Step 1: Click at (500, 750).") and words(only)[1] == "<1>"


def test_the_service_cannot_be_given_a_thought() -> None:
    assert not MODEL.fixes_thought
    with pytest.raises(UsageError):
        MODEL.prepare_fixed_thought(step(), (), "why")
    assert load_model("gui-plus-2026-02-26", thinking=True).prepare_input(step(), ()).extra["enable_thinking"] is True


def test_an_answer_ends_the_task_online_and_counts_as_an_answer_alone_offline() -> None:
    parsed = MODEL.parse_response(step(), written(action="answer", text="7"))
    assert parsed.action == outside("answer", Answer(text="7"), text="7")
    assert parsed.batch == (parsed.action, Stop(status="finish"))
    assert MODEL.parse_response(step(), written(action="wait", time=1)).batch == ()
