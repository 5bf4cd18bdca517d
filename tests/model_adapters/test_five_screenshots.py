"""GUI-Owl-1.5, GUI-Plus, EvoCUA and UI-TARS-2, which are shown the last five screenshots: calls, garbage, conversations."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from guieval import actions as act
from guieval.errors import UsageError
from guieval.history import HistoryEntry
from guieval.models import ABCModel
from guieval.models.parsing import function_text
from guieval.registry import load_model
from tests.rows import every_row

from .steps import GROUNDING, adapter, after, outside, scroll, step, words
from .tables import means, reads, refuses

OWL, THINKING = load_model("gui-owl-1.5-8b-instruct"), load_model("gui-owl-1.5-8b-thinking")
PLUS, EVO, TARS = load_model("gui-plus-2026-02-26"), load_model("evocua-8b"), load_model("ui-tars-2")
CORNER, MIDDLE = act.Point(1000.0, 0.0), act.Point(500.0, 500.0)


def written(tool: str = "mobile_use", **arguments: Any) -> str:
    return f"Action: Do it.\n<tool_call>\n{json.dumps({'name': tool, 'arguments': arguments})}\n</tool_call>"


# --- GUI-Owl-1.5 and GUI-Plus -----------------------------------------------------------------------------------------

test_gui_owls_calls = reads(
    OWL,
    ({"action": "key", "text": "enter"}, act.Press(button="ENTER")),
    ({"action": "scroll", "pixels": -5}, scroll("up", 500_000 / 2400)),
    ({"action": "key", "text": "volume_up"}, act.Unsupported),
    wrap=lambda arguments: written(**arguments),
    thought=None,
    conclusion="Do it.",
)
test_gui_plus_calls = reads(
    PLUS,
    ({"action": "system_button", "button": "Enter"}, act.Press(button="ENTER")),
    ({"action": "open", "text": "携程"}, act.Open(app="携程")),
    *(({"action": name, "text": "log in"}, act.Unsupported) for name in ("interact", "scroll", "hscroll", "triple_click")),
    wrap=lambda arguments: written(**arguments),
    thought=None,
    conclusion="Do it.",
)
test_slips_seen_in_gui_plus_replies_are_tolerated = means(
    PLUS,
    act.Click(point=act.Point(250.0, 400.0)),
    'Action: Tap.\n<tool_call>\n{"action": "left_click", "coordinate": [250, 400]}}\n</think>',
    'Action: Tap.\n<tool_call>\n{"action": "left_click", "coordinate": [250, 400]',
    '<tool_call>\n{"type": "function", "function": {"name": "computer_use", "parameters": '
    '{"action": "left_click", "coordinate": [250, 400]}}\n</think>',
    '<tool_call>\n{"name": "computer_use", "parameters": {"action": "left_click", "coordinate": [250, 400]}}\n</tool_call>',
    '<tool_call>\n{"type": "function", "call": "computer_use", "arguments": '
    '{"action": "left_click", "coordinate": [250, 400]}}\n<tool_call>',
)
PLACE = 'Action: Tap the icon.\n<tool_call>\n{"coordinate": [250, 400]}'
test_a_place_alone_is_an_answer_to_a_grounding_query = means(
    PLUS, act.Click(point=act.Point(250.0, 400.0)), PLACE, task=GROUNDING
)
test_a_place_alone_is_no_step = refuses(PLUS, PLACE)


def test_a_thinking_checkpoint_begins_with_its_reasoning() -> None:
    parsed = THINKING.parse_response(step(), f"<think>\nwhy\n</think>\n\n{written(action='wait', time=1)}")
    assert (parsed.action, parsed.thought, parsed.conclusion) == (act.Wait(duration=1000.0), "why", "Do it.")
    begun = THINKING.prepare_fixed_thought(step(), (), "why").messages[-1]
    assert begun.role == "assistant" and begun.parts == ("<think>\nwhy\n</think>\n\n",)
    for model in (OWL, PLUS):
        assert not model.fixes_thought
        with pytest.raises(UsageError):
            model.prepare_fixed_thought(step(), (), "why")
    assert load_model("gui-plus-2026-02-26", thinking=True).prepare_input(step(), ()).extra["enable_thinking"] is True


@every_row(("name", "line"), [("gui_owl_1_5", "Step1: Click at (500, 750)."), ("gui_plus", "Step 1: Click at (500, 750).")])
def test_one_screenshot_leaves_the_past_a_list(name: str, line: str) -> None:
    now, past = after(1)
    _, only = adapter(name, max_images=1).prepare_input(now, past).messages
    assert words(only)[0].endswith(line) and words(only)[1] == "<1>"


@every_row("model", [OWL, PLUS])
def test_an_answer_ends_the_task_online_and_counts_as_an_answer_alone_offline(model: ABCModel) -> None:
    parsed = model.parse_response(step(), written(action="answer", text="7"))
    assert parsed.action == outside("answer", act.Answer(text="7"), text="7")
    assert parsed.batch == (parsed.action, act.Stop(status="finish"))
    assert model.parse_response(step(), written(action="wait", time=1)).batch == ()


# --- EvoCUA -----------------------------------------------------------------------------------------------------------

test_evocuas_calls = reads(
    EVO,
    ({"action": "click", "coordinate": [999, 0]}, act.Click(point=CORNER)),
    ({"action": "scroll", "pixels": 5}, scroll("down", 500_000 / 2400)),
    ({"action": "scroll", "pixels": -5}, scroll("up", 500_000 / 2400)),
    *(({"action": "type", "text": "a\n"}, act.Type(text="a\n")), ({"action": "wait"}, act.Wait())),
    *(
        ({"action": "terminate"}, act.Stop(status="finish")),
        ({"action": "key", "keys": ["ctrl", "c"]}, act.Hotkey(keys=("ctrl", "c"))),
    ),
    *[({"action": name}, act.Unsupported) for name in ("hscroll", "middle_click", "triple_click", "key_down", "key_up")],
    *[({"action": name, "coordinate": [1, 2]}, act.Unsupported) for name in ("right_click", "double_click", "mouse_move")],
    wrap=lambda arguments: written("computer_use", **arguments),
    thought=None,
    conclusion="Do it.",
)


@every_row(
    ("model", "done", "last"),
    [
        (OWL, "Previous actions:\nStep1: Opened\nthe settings.\nStep2: Click at (500, 750).", ["<6>"]),
        (
            PLUS,
            "Previous actions:\nStep 1: Opened\nthe settings.\nStep 2: Click at (500, 750).",
            ["<tool_response>\n", "<6>", "\n</tool_response>"],
        ),
        (EVO, "Previous actions:\nStep 1: Opened\nthe settings.\nStep 2: Click at (500, 749).", ["<6>"]),
    ],
)
def test_the_last_four_steps_are_turns_and_older_ones_a_list(model: ABCModel, done: str, last: list[str]) -> None:
    now, past = after(6)
    past[0] = HistoryEntry(past[0].task, past[0].action, None, "Opened\nthe settings.", "raw", "model")
    thought = "" if model is EVO else "<think>why</think>\n"
    past[5] = replace(past[5], raw_response=thought + written(action="wait", time=1))
    _, first, *turns = model.prepare_input(now, past).messages
    shown, request = words(first) if model is EVO else reversed(words(first))
    assert request.endswith(done) and shown == "<2>", request
    assert [message.role for message in turns] == ["assistant", "user"] * 4
    assert [words(message) for message in turns[1::2]] == [["<3>"], ["<4>"], ["<5>"], last]
    assert words(turns[-2]) == [written(action="wait", time=1)], "without the thought"


# --- UI-TARS-2 --------------------------------------------------------------------------------------------------------

REASONED = "<think_never_used_51bce0c785ca2f68081bfa7d91973934>So.</think_never_used_51bce0c785ca2f68081bfa7d91973934>"
AT_CORNER = "<point>1000 0</point>"


def called(*functions: str) -> str:
    return f"{REASONED}\n<gui_think> I see it. </gui_think>\n<seed:tool_call>{''.join(functions)}</seed:tool_call>"


test_ui_tars_2s_functions = reads(
    TARS,
    (("click", {"point": "1000 0"}), act.Click(point=CORNER)),
    *((("scroll", {"direction": "left"}), scroll("right")), (("wait", {}), act.Wait(duration=5000.0))),
    *((("finished", {"content": "Done."}), act.Stop(status="finish")), (("navigate_back", {}), act.Press(button="BACK"))),
    (("left_double", {"point": AT_CORNER}), act.DoubleClick(point=CORNER)),
    (("right_single", {"point": AT_CORNER}), act.RightClick(point=CORNER)),
    (("move_to", {"point": AT_CORNER}), act.Hover(point=CORNER)),
    (("drag", {"start_point": AT_CORNER, "end_point": AT_CORNER}), act.Drag(start=CORNER, end=CORNER)),
    *((("hotkey", {"key": "ctrl c"}), act.Hotkey(keys=("ctrl", "c"))), (("mouse_down", {}), None)),
    (("navigate", {"content": "example.org"}), None),
    wrap=lambda call: [called(function_text(*call, lines=lines)) for lines in (True, False)],
    thought="I see it.",
    batch=(),
)
test_ui_tars_2s_garbage_is_no_action = refuses(
    TARS,
    *("", "I will click on <point>5 5</point>."),
    *(called(), called(function_text("take_screenshot", {})), called(function_text("fly", {}))),
    (called(function_text("click", {})), "", "CLICK"),
    (called(function_text("click", {"point": "<point>1001 0</point>"})), "", "CLICK"),
    called(function_text("scroll", {"direction": "away"})),
    "<seed:tool_call><function=type><parameter=content>cut",
)


def test_a_text_that_ends_with_a_new_line_is_submitted() -> None:
    parsed = TARS.parse_response(step(), called("<function=type><parameter=content>a\n</parameter></function>"))
    assert (parsed.action, parsed.batch) == (act.Type(text="a"), (act.Type(text="a"), act.Press(button="ENTER")))


def test_the_first_function_that_acts_is_scored() -> None:
    click, wait = function_text("click", {"point": AT_CORNER}), function_text("wait", {"time": "1"})
    text = called(function_text("take_screenshot", {}), click, wait, function_text("fly", {}), click)
    parsed = TARS.parse_response(step(), text)
    assert (parsed.action, parsed.batch) == (act.Click(point=CORNER), (act.Click(point=CORNER), act.Wait()))


def test_the_last_five_screenshots_are_shown_and_replies_lose_their_reasoning() -> None:
    now, past = after(6)
    past[5] = replace(past[5], raw_response=called(function_text("wait", {})))
    prepared = TARS.prepare_input(now, past)
    assert [image.task.step_index for image in prepared.images] == [2, 3, 4, 5, 6]
    assert prepared.messages[-2].parts == (called(function_text("wait", {})).removeprefix(f"{REASONED}\n"),)
