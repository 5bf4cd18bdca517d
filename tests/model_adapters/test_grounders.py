"""SE-GUI, GTA1, Holo1.5, UI-Ins, GUI-G2, InfiGUI-G1 and UGround: how a place is written, in which frame, and asked for."""

from __future__ import annotations

from typing import Any

import pytest

from guieval.actions import Click, Point, Unsupported
from guieval.errors import ParseError, UsageError
from guieval.models import ImageRef, ParsedResponse
from guieval.steps import Setting
from tests.rows import every_row

from .steps import adapter, past, step

SIZE = (1960, 1120)  # both sides are multiples of 28, so the resize changes nothing
MIDDLE = Point(500.0, 500.0)
GROUNDERS = ("se_gui", "gta1", "holo1_5", "ui_ins", "gui_g2", "infigui_g1", "uground")


def read(name: str, text: str, setting: Setting = "grounding", **changes: Any) -> ParsedResponse:
    return adapter(name, **changes).parse_response(step(screenshot_size=SIZE, setting=setting), text)


SE_GUI = '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [980, 560]}}\n</tool_call>'
UI_INS = (
    "<think>\nThe button [1, 2] is meant.\n</think>\n"
    '<tool_call>\n{"name": "grounding", "arguments": {"action": "click", "coordinate": [980, 560]}}\n</tool_call>'
)
REPLIES = [
    *(("se_gui", SE_GUI), ("se_gui", "[980, 560]"), ("gta1", "(980,560)"), ("gta1", "The point is (980, 560).")),
    *(("gta1", "(980,560) or (1,1)"), ("holo1_5", '{"action": "click_absolute", "x": 980, "y": 560}')),
    *(("holo1_5", '```json\n{"x": 980, "y": 560}\n```'), ("ui_ins", UI_INS), ("ui_ins", UI_INS.partition("</think>\n")[2])),
    *(("gui_g2", "[960,550,1000,570]"), ("gui_g2", "[980, 560]")),
    ("infigui_g1", '<think>Top left? [0, 0]</think>\n[{"point_2d": [980, 560]}, {"point_2d": [1, 1]}]'),
    *(("infigui_g1", '[{"point_2d": [980, 560]}]'), ("uground", "(500, 500)")),
]


@every_row(("name", "text"), REPLIES)
@every_row("setting", ["grounding", "high", "low"])
def test_the_first_place_of_a_reply_is_a_click(name: str, text: str, setting: Setting) -> None:
    assert read(name, text, setting).action == Click(point=MIDDLE)


@every_row(
    ("name", "text"),
    [
        *((name, text) for name in GROUNDERS for text in ("", "I cannot find it.", "[]", "(980)")),
        *(("holo1_5", '{"action": "scroll", "x": 1, "y": 1}'), ("holo1_5", '{"action": "click_absolute", "x": 980}')),
        *(("holo1_5", '{"x": [1, 2], "y": 3}'), ("ui_ins", "<think>\nThe button at [980, 560].")),
        ("infigui_g1", "<think>Top left? [0, 0]"),
    ],
)
def test_replies_without_a_place_are_refused(name: str, text: str) -> None:
    with pytest.raises(ParseError):
        read(name, text)


@every_row(("name", "text"), [*((name, "(99999, 1)") for name in ("gta1", "gui_g2", "uground")), ("uground", "(1001, 500)")])
def test_a_place_off_the_screen_is_a_click_without_a_known_place(name: str, text: str) -> None:
    action = read(name, text).action
    assert isinstance(action, Unsupported) and action.known == "CLICK" and "outside" in (action.problem or "")


@every_row("name", GROUNDERS)
def test_a_step_is_a_query_without_a_past(name: str) -> None:
    model = adapter(name)
    for setting, asked in (("grounding", "Turn on Wi-Fi"), ("low", "Tap the switch")):
        task = step(step_index=2, setting=setting, low_level_instruction="Tap the switch")
        prepared = model.prepare_input(task, past(2))
        assert prepared.images == (ImageRef(task, prepared.images[0].resize),) and asked in prepared.text
        assert "settings" not in prepared.text.partition(asked)[2]


@every_row(
    ("name", "screen", "stated"),
    [
        *(("se_gui", (3840, 2160), "resolution is 3528x1988."), ("gta1", (3840, 2160), "height 2156 and width 3836.")),
        *(("infigui_g1", (3840, 2160), "resolution is 2800x1568."), ("infigui_g1", (1080, 2400), "resolution is 1092x2408.")),
    ],
)
def test_the_prompt_states_the_size_that_the_model_sees(name: str, screen: tuple[int, int], stated: str) -> None:
    assert stated in adapter(name).prepare_input(step(screenshot_size=screen, setting="grounding"), ()).text


def test_gta1_trained_from_opencua_answers_in_code() -> None:
    model = adapter("gta1", form="pyautogui")
    task = step(screenshot_size=SIZE, setting="grounding")
    assert model.prepare_input(task, ()).text.endswith("pyautogui actions to complete the task.\nTurn on Wi-Fi")
    assert model.parse_response(task, "```python\npyautogui.click(x=980, y=560)\n```").action == Click(point=MIDDLE)
    assert model.render(task, Click(point=MIDDLE)) == "```python\npyautogui.click(x=980, y=560)\n```"
    with pytest.raises(ParseError):
        model.parse_response(task, "(980,560)")


def test_ui_ins_without_thinking_goes_on_with_a_call_that_was_begun() -> None:
    model = adapter("ui_ins", thinking=False)
    task = step(screenshot_size=SIZE, setting="grounding")
    assert model.prepare_input(task, ()).text.endswith('"coordinate": [') and model.prepare_input(task, ()).prefill
    assert model.parse_response(task, "980, 560]}}\n</tool_call>").action == Click(point=MIDDLE)


def test_thoughts_are_kept_and_can_be_given_where_they_are_asked_for() -> None:
    assert read("ui_ins", UI_INS).thought == "The button [1, 2] is meant."
    assert read("infigui_g1", '<think>Hm.</think>[{"point_2d": [980, 560]}]').thought == "Hm."
    assert adapter("ui_ins").fixes_thought and adapter("infigui_g1").fixes_thought
    for name in ("se_gui", "gta1", "holo1_5", "gui_g2", "uground"):
        with pytest.raises(UsageError):
            adapter(name).prepare_fixed_thought(step(), (), "It is there.")
