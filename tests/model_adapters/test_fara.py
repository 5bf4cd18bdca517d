"""Fara: what its calls mean and do, and the conversation."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from guieval.actions import Click, Hotkey, Hover, LongPress, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.history import reference_entry

from .steps import adapter, past, step
from .tables import reads, refuses

FARA = adapter("fara")
SCREEN = step(screenshot_size=(1428, 896))  # both sides are multiples of 28, so the resize changes nothing
MIDDLE = Point(500.0, 500.0)


def reply(**arguments: Any) -> str:
    return f"I do it.\n<tool_call>\n{json.dumps({'name': 'computer_use', 'arguments': arguments})}\n</tool_call>"


test_faras_calls = reads(
    FARA,
    ({"action": "left_click", "coordinate": [714, 448]}, Click(point=MIDDLE)),
    ({"action": "type", "text": "zucchini", "press_enter": False}, Type(text="zucchini")),
    ({"action": "key", "keys": ["Enter"]}, Press(button="ENTER")),
    ({"action": "scroll", "pixels": -800}, Scroll(point=MIDDLE, direction="up")),
    ({"action": "scroll", "pixels": 300, "coordinate": [0, 0]}, Scroll(point=Point(0.0, 0.0), direction="down")),
    ({"action": "history_back"}, Press(button="BACK")),
    ({"action": "wait", "time": 2}, Wait(duration=2000.0)),
    ({"action": "wait"}, Wait(duration=3000.0)),
    ({"action": "terminate", "status": "success"}, Stop()),
    ({"action": "terminate", "status": "failure"}, Stop(status="impossible")),
    ({"action": "key", "keys": ["Control", "ArrowUp"]}, Hotkey(keys=("ctrl", "up"))),
    ({"action": "key", "keys": ["Escape"]}, Hotkey(keys=("esc",))),
    ({"action": "mouse_move", "coordinate": [714, 448]}, Hover(point=MIDDLE)),
    ({"action": "visit_url", "url": "https://example.org"}, None),
    ({"action": "web_search", "query": "lasagna"}, None),
    ({"action": "pause_and_memorize_fact", "fact": "It is blue."}, None),
    wrap=lambda arguments: reply(**arguments),
    task=SCREEN,
    thought="I do it.",
    batch=(),
)


def test_faras_typing_is_scored_and_all_that_it_does_is_carried_out() -> None:
    whole = FARA.parse_response(SCREEN, reply(action="type", text="a", coordinate=[714, 448], delete_existing_text=True))
    assert whole.action == Type(text="a")
    click, emptied, typed, entered = whole.batch
    assert (click, typed, entered) == (Click(point=MIDDLE), Type(text="a"), Press(button="ENTER"))
    assert isinstance(emptied, Unsupported) and emptied.device == Hotkey(keys=("ctrl", "a"))


test_what_fara_cannot_mean_is_refused = refuses(
    FARA,
    "",
    "I would click.",
    reply(action="fly"),
    reply(action="left_click"),
    reply(action="left_click", coordinate=[1429, 1]),
    reply(action="scroll", pixels=0),
    reply(action="scroll", pixels="far"),
    reply(action="scroll"),
    reply(action="type", text="a", coordinate=[5000, 1]),
    task=SCREEN,
)


def test_faras_conversation_keeps_all_replies_and_the_last_two_screenshots() -> None:
    now = step(step_index=4)
    own = replace(past(2)[1], raw_response=reply(action="left_click", coordinate=[1, 1]))
    held = reference_entry(step(LongPress(point=MIDDLE), step_index=2))
    messages = FARA.prepare_input(now, (past(1)[0], own, held, past(4)[3])).messages
    words = ["".join(part if isinstance(part, str) else "<image>" for part in message.parts) for message in messages[1:]]
    following = "<image>Here is the next screenshot. Think about what to do next."
    assert [message.role for message in messages] == ["system", "user", *["assistant"] * 2, *["user", "assistant"] * 2, "user"]
    assert words[0] == "Turn on Wi-Fi" and words[3] == words[5] == words[7] == following
    assert words[1].startswith('Open the settings\n<tool_call>\n{"name": "computer_use", "arguments": {"action": "open"')
    assert words[2] == f"Thought 1\n{own.raw_response}"
    assert '"action": "long_press"' in words[4]


def test_faras_space_has_no_scrolls_to_the_sides() -> None:
    space = FARA.action_space
    assert Scroll(point=MIDDLE, direction="up") in space and Scroll(point=MIDDLE, direction="left") not in space
