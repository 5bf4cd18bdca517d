"""Replies of models that, having answered, play the next step as well: the first round counts, whatever notation it is in."""

from __future__ import annotations

import pytest

from guieval.actions import Action, Click, Point, Press, Type, Wait
from guieval.errors import ParseError
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Message
from guieval.steps import Setting
from tests.rows import every_row

from .steps import adapter, step
from .tables import reads

MIDDLE = Click(point=Point(500.0, 750.0))


def called(arguments: str) -> str:
    return f'<tool_call>\n{{"name": "mobile_use", "arguments": {arguments}}}\n</tool_call>'


def glm(call: str) -> str:
    return f"Memory: None\nReason: x\nAction: <|begin_of_box|>{call}<|end_of_box|>"


CLICK, BACK = '{"action": "click", "coordinate": [546, 1806]}', '{"action": "system_button", "button": "Back"}'
QWEN = (called(CLICK), called(BACK))
GLM = (glm('{"action_type": "wait"}'), glm('{"action_type": "navigate_back"}'))
MIMO = ('```json\n[{"action": "wait"}]\n```', '```json\n[{"action": "press", "keys": ["back"]}]\n```')
GUIR1 = ("<answer>[{'action': 'wait'}]</answer>", "<answer>[{'action': 'press_back'}]</answer>")
VENUS = ("<action>Wait()</action>", "<action>PressBack()</action>")
POINTS = ('```json\n[{"point_2d": [546, 1806]}]\n```', '```json\n[{"point_2d": [1, 1]}]\n```')
FAMILIES: list[tuple[str, Setting, tuple[str, str], Action]] = [
    *(("qwen2_5_vl", "high", QWEN, MIDDLE), ("gui_owl", "high", QWEN, MIDDLE), ("infigui_r1", "high", QWEN, MIDDLE)),
    ("infigui_r1", "grounding", POINTS, MIDDLE),
    ("ui_s1", "high", (f"<action>\n{CLICK}\n</action>", f"<action>\n{BACK}\n</action>"), MIDDLE),
    *(("glm_4_1v", "high", GLM, Wait()), ("glm_4_5v", "high", GLM, Wait()), ("mimo_vl", "high", MIMO, Wait())),
    *(("gui_r1", "high", GUIR1, Wait()), ("ui_venus_navi", "high", VENUS, Wait())),
]


@every_row("between", ["\n", "", "\n\nuser\n", "<|im_end|>\n<|im_start|>assistant\n"])
@every_row(("name", "setting", "answers", "action"), FAMILIES)
def test_the_first_of_two_rounds_counts(
    name: str, setting: Setting, answers: tuple[str, str], action: Action, between: str
) -> None:
    text = f"<think>First.</think>\n{answers[0]}{between}<think>Then.</think>\n{answers[1]}"
    read = adapter(name).parse_response(step(setting=setting), text)
    assert read.action == action
    assert read.thought == "First."


@pytest.mark.parametrize(
    ("model", "answers"),
    [
        (adapter("gui_owl", history="turns"), QWEN),
        (adapter("ui_s1"), (f"<action>\n{CLICK}\n</action>", f"<action>\n{BACK}\n</action>")),
    ],
)
def test_only_the_first_round_is_history(model: ABCModel, answers: tuple[str, str]) -> None:
    raw = f"<think>First.</think>\n{answers[0]}<|im_end|>\n<|im_start|>assistant\n<think>Then.</think>\n{answers[1]}"
    result = model.prepare_input(step(step_index=1), (HistoryEntry(step(), MIDDLE, "First.", None, raw, "model"),))
    assert result.messages[2] == Message("assistant", (f"<think>First.</think>\n{answers[0]}",))


@pytest.mark.parametrize("name", ["gui_owl", "infigui_r1", "qwen2_5_vl"])
def test_a_round_without_its_thought_is_one(name: str) -> None:
    """The thought was given to the model, or the server split it off."""
    assert adapter(name).parse_response(step(), f"{QWEN[0]}\n<thinking>\nThen.\n</thinking>\n{QWEN[1]}").action == MIDDLE


test_what_is_no_second_round = reads(
    adapter("gui_owl"),
    ("a thought that goes on", f"<think>a</think>\n<think>b</think>\n{QWEN[1]}", Press(button="BACK")),
    ("a rehearsed call", f"<think>Perhaps {QWEN[0]}\n<think> no.</think>\n{QWEN[1]}", Press(button="BACK")),
    ("a tag in a typed text", called('{"action": "type", "text": "a <think> b"}'), Type(text="a <think> b")),
    ("a typed tag", called('{"action": "type", "text": "<think>"}'), Type(text="<think>")),
    ("a turn's end that is typed", called('{"action": "type", "text": "<|im_end|>"}'), Type(text="<|im_end|>")),
)


def test_an_unreadable_first_call_is_not_replaced_by_a_later_one() -> None:
    with pytest.raises(ParseError, match="first call cannot be read"):
        adapter("gui_owl").parse_response(step(), f"<tool_call>\nclick(3, 4)\n</tool_call>\n{QWEN[1]}")
    mentioned = f"I write between <tool_call> and </tool_call>.\n{QWEN[0]}"
    assert adapter("gui_owl").parse_response(step(), mentioned).action == MIDDLE
