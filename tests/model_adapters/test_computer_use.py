"""Native computer-use families: what each verb of each API means, several calls in one reply, looks and refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guieval import actions as act
from guieval.conformance.examples import example_step
from guieval.errors import ParseError
from guieval.models import END_TURN, ABCModel
from guieval.registry import load_model
from guieval.steps import StepTaskModel
from tests.rows import every_row

from .steps import scroll

OPENAI, PREVIEW = "gpt-5.4-computer", "computer-use-preview"
CLAUDE, OLDER, TOOLSET = "claude-opus-4-7-computer", "claude-haiku-4-5-computer", "claude-computer-toolset"
GEMINI, LEGACY = "gemini-3.5-flash-computer", "gemini-2.5-computer-use"
PHONE, DESKTOP = (1000, 2000), (2000, 1000)


def step(size: tuple[int, int] = PHONE, **changes: Any) -> StepTaskModel:
    return example_step(act.Click(point=act.Point(500.0, 500.0)), size=size, **changes)


def reply(*calls: tuple[str, dict[str, Any]], words: str = "") -> str:
    written = [f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>" for name, arguments in calls]
    return "\n".join([words, *written] if words else written)


def read(model: str, name: str, arguments: dict[str, Any], size: tuple[int, int] = PHONE) -> act.Action:
    return load_model(model).parse_response(step(size), reply((name, arguments))).action


def device(action: act.Action) -> object:
    assert isinstance(action, act.Unsupported)
    return action.device


MIDDLE, CORNER = act.Point(500.0, 500.0), act.Point(0.0, 0.0)
HERE, FAR = {"x": 500, "y": 500}, {"x": 1000, "y": 500}
PULLED = act.Drag(start=MIDDLE, end=CORNER)

SUPPORTED: list[tuple[str, str, dict[str, Any], act.Action]] = [
    (OPENAI, "click", {"button": "left", "x": 500, "y": 1000}, act.Click(point=MIDDLE)),
    (OPENAI, "click", {"button": "back", "x": 0, "y": 0}, act.Press(button="BACK")),
    (OPENAI, "scroll", {"x": 500, "y": 1000, "scroll_x": 0, "scroll_y": 400}, scroll("up", 200.0)),
    (OPENAI, "scroll", {"x": 500, "y": 1000, "scroll_x": -250, "scroll_y": 0}, scroll("right", 250.0)),
    (OPENAI, "drag", {"path": [{"x": 500, "y": 1000}, {"x": 490, "y": 400}]}, scroll("up", 300.0)),
    (OPENAI, "type", {"text": "a\nb"}, act.Type(text="a\nb")),
    (OPENAI, "keypress", {"keys": ["ENTER"]}, act.Press(button="ENTER")),
    (OPENAI, "wait", {}, act.Wait()),
    (OPENAI, "open_app", {"name": "Maps"}, act.Open(app="Maps")),
    (OPENAI, "press_button", {"button": "recent"}, act.Press(button="RECENT")),
    (OPENAI, "long_press", {"x": 500, "y": 1000, "seconds": 2}, act.LongPress(point=MIDDLE, duration=2000.0)),
    (OPENAI, "end_task", {"status": "impossible"}, act.Stop(status="impossible")),
    (TOOLSET, "left_click", {"coordinate": [500, 1000]}, act.Click(point=MIDDLE)),
    (TOOLSET, "scroll", {"scroll_direction": "down", "scroll_amount": 3, "coordinate": [500, 1000]}, scroll("up", 150.0)),
    (TOOLSET, "scroll", {"scroll_direction": "left", "coordinate": [500, 1000]}, scroll("right")),
    (TOOLSET, "left_click_drag", {"start_coordinate": [500, 1000], "coordinate": [900, 1000]}, scroll("right", 400.0)),
    (TOOLSET, "key", {"text": "Return"}, act.Press(button="ENTER")),
    (TOOLSET, "wait", {"duration": 3}, act.Wait(duration=3000.0)),
    (CLAUDE, "computer", {"action": "type", "text": "x"}, act.Type(text="x")),
    (OLDER, "computer", {"action": "left_click", "coordinate": [392, 784]}, act.Click(point=MIDDLE)),
    (GEMINI, "click", {**HERE, "intent": "Open it"}, act.Click(point=MIDDLE)),
    (GEMINI, "drag_and_drop", {"start_x": 500, "start_y": 500, "end_x": 500, "end_y": 100}, scroll("up", 400.0)),
    (GEMINI, "scroll", {**HERE, "direction": "down", "magnitude_in_pixels": 500}, scroll("up", 250.0)),
    (GEMINI, "press_key", {"key": "app_switch"}, act.Press(button="RECENT")),
    (GEMINI, "go_back", {}, act.Press(button="BACK")),
    (GEMINI, "open_app", {"package": "com.maps"}, act.Open(app="com.maps")),
    (GEMINI, "long_press", HERE, act.LongPress(point=MIDDLE)),
    (LEGACY, "click_at", {**HERE, "safety_decision": {"decision": "require_confirmation"}}, act.Click(point=MIDDLE)),
    (LEGACY, "scroll_document", {"direction": "left"}, scroll("right")),
    (LEGACY, "scroll_at", {**HERE, "direction": "up", "magnitude": 800}, scroll("down", 800.0)),
    (LEGACY, "wait_5_seconds", {}, act.Wait(duration=5000.0)),
    (LEGACY, "key_combination", {"keys": "enter"}, act.Press(button="ENTER")),
]  # fmt: skip


@every_row(("model", "name", "arguments", "action"), SUPPORTED)
def test_a_call_means_its_action(model: str, name: str, arguments: dict[str, Any], action: act.Action) -> None:
    assert read(model, name, arguments) == action


@every_row(
    ("model", "name", "arguments", "action"),
    [
        (OPENAI, "click", {"button": "right", **FAR}, act.RightClick(point=MIDDLE)),
        (OPENAI, "double_click", FAR, act.DoubleClick(point=MIDDLE)),
        (OPENAI, "move", FAR, act.Hover(point=MIDDLE)),
        (OPENAI, "drag", {"path": [FAR, {"x": 5, "y": 5}, {"x": 0, "y": 0}]}, PULLED),
        (OPENAI, "keypress", {"keys": ["CTRL", "c"]}, act.Hotkey(keys=("ctrl", "c"))),
        (OPENAI, "keypress", {"keys": ["ArrowDown"]}, act.Hotkey(keys=("down",))),
        (TOOLSET, "key", {"text": "ctrl+Page_Down"}, act.Hotkey(keys=("ctrl", "pagedown"))),
        (TOOLSET, "key", {"text": "+"}, act.Hotkey(keys=("+",))),
        (TOOLSET, "left_click_drag", {"start_coordinate": [1000, 500], "coordinate": [0, 0]}, PULLED),
        (GEMINI, "hotkey", {"keys": ["control", "a"]}, act.Hotkey(keys=("ctrl", "a"))),
        (GEMINI, "right_click", HERE, act.RightClick(point=MIDDLE)),
        (LEGACY, "hover_at", HERE, act.Hover(point=MIDDLE)),
        (LEGACY, "drag_and_drop", {**HERE, "destination_x": 0, "destination_y": 0}, PULLED),
        (LEGACY, "navigate", {"url": "https://example.org"}, None),
        (TOOLSET, "triple_click", {"coordinate": [1000, 500]}, None),
        *((TOOLSET, "left_click", {"coordinate": [1000, 500], "text": "shift"}, None), (TOOLSET, "left_click", {}, None)),
        (OPENAI, "click", {"button": "left", **FAR, "keys": ["SHIFT"]}, None),
    ],
)
def test_what_the_unified_space_lacks_keeps_its_words_and_acts_on_devices(
    model: str, name: str, arguments: dict[str, Any], action: object
) -> None:
    read_action = read(model, name, arguments, DESKTOP)
    assert device(read_action) == action
    assert isinstance(read_action, act.Unsupported) and read_action.name == name


@every_row(
    ("model", "call"),
    [
        (OPENAI, ("scroll", {"x": 1, "y": 1, "scroll_x": 0, "scroll_y": 0})),
        *((OPENAI, ("scroll", {"x": 1, "y": 1, "scroll_x": 0, "scroll_y": "far"})), (OPENAI, ("drag", {"path": []}))),
        *((OPENAI, ("drag", {"path": [1, 2]})), (OPENAI, ("keypress", {"keys": []})), (OPENAI, ("jump", {}))),
        *((CLAUDE, ("computer", {})), (TOOLSET, ("scroll", {"scroll_direction": "in"}))),
    ],
)
def test_a_call_that_cannot_be_read_is_no_action(model: str, call: tuple[str, dict[str, Any]]) -> None:
    with pytest.raises(ParseError):
        load_model(model).parse_response(step(), reply(call))


@every_row(("model", "arguments"), [(OPENAI, {"button": "left", "x": 1}), (GEMINI, {"x": None, "y": 3})])
def test_of_a_click_without_a_side_of_its_place_the_type_is_known(model: str, arguments: dict[str, Any]) -> None:
    assert act.type_of(load_model(model).parse_response(step(), reply(("click", arguments))).action) == "CLICK"


def test_the_first_acting_call_is_scored_and_all_are_carried_out() -> None:
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("screenshot", {}),
        ("click", {"button": "left", "x": 500, "y": 1000}),
        ("type", {"text": "hi"}),
        ("keypress", {"keys": ["ENTER"]}),
    )
    parsed = load_model(OPENAI).parse_response(step(), reply(*calls, words="I type into the field."))
    assert parsed.action == act.Click(point=MIDDLE) and parsed.thought == "I type into the field."
    assert parsed.batch == (act.Click(point=MIDDLE), act.Type(text="hi"), act.Press(button="ENTER"))


def test_the_toolsets_repeated_key_is_pressed_as_often() -> None:
    parsed = load_model(TOOLSET).parse_response(step(), reply(("key", {"text": "Return", "repeat": 3})))
    assert parsed.action == act.Press(button="ENTER") and parsed.batch == (act.Press(button="ENTER"),) * 3
    assert len(load_model(TOOLSET).parse_response(step(), reply(("key", {"text": "Return", "repeat": 10**9}))).batch) == 100
    assert load_model(TOOLSET).parse_response(step(), reply(("key", {"text": "Return", "repeat": True}))).batch == ()


def test_a_batch_ends_before_a_call_that_cannot_be_read() -> None:
    calls: tuple[tuple[str, dict[str, Any]], ...] = (("type", {"text": "a"}), ("jump", {}), ("type", {"text": "b"}))
    parsed = load_model(OPENAI).parse_response(step(), reply(*calls))
    assert parsed.action == act.Type(text="a") and parsed.batch == ()


def test_geminis_type_text_at_is_scored_as_typing_and_clicks_first() -> None:
    arguments = {**HERE, "text": "cats", "press_enter": True}
    parsed = load_model(LEGACY).parse_response(step(), reply(("type_text_at", arguments)))
    assert parsed.action == act.Type(text="cats")
    click, clear, *typed = parsed.batch
    assert click == act.Click(point=MIDDLE) and device(clear) == act.Hotkey(keys=("ctrl", "a"))
    assert typed == [act.Type(text="cats"), act.Press(button="ENTER")]
    kept = load_model(LEGACY).parse_response(step(), reply(("type_text_at", {**arguments, "clear_before_typing": False})))
    assert len(kept.batch) == 3


def test_geminis_intent_is_the_thought_where_there_are_no_words() -> None:
    text = reply(("click", {"x": 1, "y": 2, "intent": "Open the menu"}))
    assert load_model(GEMINI).parse_response(step(), text).thought == "Open the menu"


@pytest.mark.parametrize("model", [OPENAI, CLAUDE, GEMINI])
def test_a_turn_that_ends_without_a_call_ends_the_task(model: str) -> None:
    adapter = load_model(model)
    parsed = adapter.parse_response(step(), f"Done: Wi-Fi is on.\n{END_TURN}")
    assert parsed.action == act.Stop() and parsed.thought == "Done: Wi-Fi is on."
    refused = adapter.parse_response(step(), f"<refusal>I cannot help with that.</refusal>\n{END_TURN}")
    assert refused.action == act.Stop(status="impossible") and refused.thought is None
    with pytest.raises(ParseError, match="makes no call"):
        adapter.parse_response(step(setting="grounding"), f"It is at the top.\n{END_TURN}")
    with pytest.raises(ParseError, match="makes no call"):
        adapter.parse_response(step(), "I think the button is")  # cut off
    with pytest.raises(ParseError, match="only looks"):
        adapter.parse_response(step(), reply(("screenshot", {}), ("screenshot", {})))


def tools(model: ABCModel, size: tuple[int, int], **changes: Any) -> list[dict[str, Any]]:
    offered: list[dict[str, Any]] = model.prepare_input(step(size, **changes), ()).extra["tools"]
    return offered


def test_each_model_is_offered_its_own_tool() -> None:
    assert [tool["type"] for tool in tools(load_model(OPENAI), DESKTOP)] == ["computer", "function"]
    assert [tool.get("name") for tool in tools(load_model(OPENAI), PHONE)][1:] == [
        "end_task",
        "open_app",
        "press_button",
        "long_press",
    ]
    preview = tools(load_model(PREVIEW), DESKTOP)[0]
    assert preview == {"type": "computer_use_preview", "display_width": 2000, "display_height": 1000, "environment": "linux"}
    older = tools(load_model(OLDER), DESKTOP)[0]
    assert older == {"type": "computer_20250124", "name": "computer", "display_width_px": 1568, "display_height_px": 784}
    assert load_model(OLDER).prepare_input(step(), ()).extra["betas"] == ["computer-use-2025-01-24"]
    assert "betas" not in load_model(TOOLSET).prepare_input(step(), ()).extra
    assert tools(load_model(GEMINI), PHONE)[0] == {"computer_use": {"environment": "ENVIRONMENT_MOBILE"}}
    assert tools(load_model(GEMINI), DESKTOP)[0] == {"computer_use": {"environment": "ENVIRONMENT_DESKTOP"}}
    assert tools(load_model(LEGACY), PHONE)[0] == {"computer_use": {"environment": "ENVIRONMENT_BROWSER"}}
    assert len(tools(load_model(CLAUDE), PHONE, setting="grounding")) == 1, "a grounding query needs nothing but a click"
