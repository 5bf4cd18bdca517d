"""EvoCUA: what each verb means, what is refused, and the conversation with the last five screenshots."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from guieval.actions import Answer, Click, Drag, Hotkey, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.history import reference_entry
from guieval.models import Message
from guieval.registry import load_model

from .steps import step
from .tables import reads, refuses

MODEL = load_model("evocua-8b")
CORNER = Point(1000.0, 0.0)


def written(**arguments: Any) -> str:
    call = json.dumps({"name": "computer_use", "arguments": arguments})
    return f"Action: Do it.\n<tool_call>\n{call}\n</tool_call>"


test_calls = reads(
    MODEL,
    ({"action": "left_click", "coordinate": [999, 0]}, Click(point=CORNER)),
    ({"action": "click", "coordinate": [999, 0]}, Click(point=CORNER)),
    ({"action": "scroll", "pixels": 5}, Scroll(point=Point(500.0, 500.0), direction="down")),
    ({"action": "scroll", "pixels": -5}, Scroll(point=Point(500.0, 500.0), direction="up")),
    ({"action": "type", "text": "a\n"}, Type(text="a\n")),
    ({"action": "key", "keys": ["enter"]}, Press(button="ENTER")),
    ({"action": "wait", "time": 3}, Wait(duration=3000.0)),
    ({"action": "wait"}, Wait()),
    ({"action": "terminate", "status": "success"}, Stop(status="finish")),
    ({"action": "terminate", "status": "failure"}, Stop(status="impossible")),
    ({"action": "terminate"}, Stop(status="finish")),
    ({"action": "key", "keys": ["ctrl", "c"]}, Hotkey(keys=("ctrl", "c"))),
    ({"action": "left_click_drag", "coordinate": [999, 0]}, Drag(end=CORNER)),
    ({"action": "answer", "text": "7"}, Answer(text="7")),
    *[({"action": name}, Unsupported) for name in ("hscroll", "middle_click", "triple_click", "key_down", "key_up")],
    *[({"action": name, "coordinate": [1, 2]}, Unsupported) for name in ("right_click", "double_click", "mouse_move")],
    wrap=lambda arguments: written(**arguments),
    thought=None,
    conclusion="Do it.",
)

test_garbage_is_no_action = refuses(
    MODEL,
    "",
    "Action: Click it.",
    "<tool_call>\n</tool_call>",
    written(action="fly"),
    written(action="scroll"),
    written(action="scroll", pixels=0),
    written(action="key", keys=[]),
    written(action="left_click", coordinate=[2530, 314]),
)


def words(message: Message) -> list[str]:
    return [part if isinstance(part, str) else f"<{part.task.step_index}>" for part in message.parts]


def test_the_last_four_steps_are_turns_and_older_ones_a_list() -> None:
    steps = [step(step_index=index, screenshot=f"{index}.png") for index in range(7)]
    past = [reference_entry(one) for one in steps[:-1]]
    past[5] = replace(past[5], raw_response=written(action="wait", time=1))
    _, first, *turns = MODEL.prepare_input(steps[-1], past).messages
    shown, request = words(first)
    assert shown == "<2>" and [line[:7] for line in request.splitlines()[-2:]] == ["Step 1:", "Step 2:"]
    assert [message.role for message in turns] == ["assistant", "user"] * 4
    assert [words(message) for message in turns[1::2]] == [["<3>"], ["<4>"], ["<5>"], ["<6>"]]
    assert words(turns[-2]) == [written(action="wait", time=1)]
