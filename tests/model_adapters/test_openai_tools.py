"""Models behind an API: the prompt and functions that they get in each frame, and how their calls are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.actions import Click, LongPress, Open, Press, Scroll, Stop, Type, Wait
from guieval.errors import ParseError
from guieval.models import ABCModel
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark, load_model
from guieval.scoring.score import evaluate_run
from tests.command_line import CommandLine
from tests.json_values import read_json
from tests.rows import every_row

from .replies import rows
from .steps import CLICK, GROUNDING, adapter, step
from .tables import means, reads, refuses, thinks

MODEL = adapter("openai_tools")
CLAUDE = load_model("claude-sonnet-4-6")


def test_without_the_interface_the_functions_are_described() -> None:
    model = adapter("openai_tools", tools=False)
    request = model.prepare_input(step(), ())
    assert not request.extra
    (text,) = request.messages[0].parts
    described = str(text).partition("The functions, as JSON:\n")[2].split("\n")
    offered = [each["function"]["name"] for each in MODEL.prepare_input(step(), ()).extra["tools"]]
    assert [read_json(line)["name"] for line in described[:8]] == offered
    assert described[-1] == 'Write the call as one JSON object and nothing else: {"name": FUNCTION, "arguments": {...}}'
    assert model.render(step(), CLICK) == '{"name": "click", "arguments": {"x": 500, "y": 750}}'


@every_row(
    ("size", "sent"),
    [
        # 1568 / 2400 = 0.6533: 705.6 x 1568, which are 1.105 megapixels
        ((1080, 2400), (705, 1568)),
        # the longest side would give 1568 x 882, 1.383 megapixels: sqrt(1,150,000 / 2,073,600) = 0.74471 binds
        ((1920, 1080), (1429, 804)),
        # 1072.38...: a square is bound by its pixels as well
        *(((4000, 4000), (1072, 1072)), ((330, 210), (330, 210))),
    ],
)
def test_a_screenshot_is_shrunk_to_both_limits(size: tuple[int, int], sent: tuple[int, int]) -> None:
    (image,) = CLAUDE.prepare_input(step(screenshot_size=size), ()).images
    assert (image.resize or size) == sent
    assert CLAUDE.frame(step()).extent(size) == sent


@given(st.integers(1, 9000), st.integers(1, 9000), st.integers(1, 3000), st.integers(1, 3_000_000))
def test_a_shrunk_image_is_within_its_limits_and_not_shrunk_again(width: int, height: int, side: int, pixels: int) -> None:
    frame = adapter("openai_tools", frame="pixels", max_side=side, max_pixels=pixels).frame(step())
    sent_width, sent_height = (int(each) for each in frame.extent((width, height)))
    assert max(sent_width, sent_height) <= side
    assert sent_width * sent_height <= pixels or 1 in (sent_width, sent_height)
    assert sent_width <= width
    assert sent_height <= height
    if 1 not in (sent_width, sent_height):
        assert frame.extent((sent_width, sent_height)) == (sent_width, sent_height)


@every_row(
    ("model", "arguments", "point"),
    [
        *((MODEL, {"x": 250, "y": 500}, (250, 500)), (load_model("gpt-4o"), {"x": 0.25, "y": 0.5}, (250, 500))),
        # 705 x 1568 pixels are sent: 141 / 705 = 0.2, 784 / 1568 = 0.5
        (CLAUDE, {"x": 141, "y": 784}, (200, 500)),
        (adapter("openai_tools", frame="pixels"), {"x": 270, "y": 1200}, (250, 500)),
    ],
)
def test_coordinates_are_scaled_back(model: ABCModel, arguments: dict[str, float], point: tuple[float, float]) -> None:
    action = model.parse_response(step(), json.dumps({"name": "click", "arguments": arguments})).action
    assert isinstance(action, Click)
    assert action.point == pytest.approx(point)


TAGGED = '<tool_call>\n{"name": "click", "arguments": {"x": 500, "y": 750}}\n</tool_call>'

test_each_function_is_read = reads(
    MODEL,
    ({"name": "click", "arguments": {"x": 500, "y": 750}}, CLICK),
    ({"name": "long_press", "arguments": {"x": 500, "y": 750}}, LongPress(point=CLICK.point)),
    ({"name": "long_press", "arguments": {"x": 500, "y": 750, "seconds": 2.5}}, LongPress(point=CLICK.point, duration=2500)),
    ({"name": "swipe", "arguments": {"x": 500, "y": 750, "direction": "up"}}, Scroll(point=CLICK.point, direction="up")),
    ({"name": "type_text", "arguments": {"text": "it's"}}, Type(text="it's")),
    ({"name": "type_text", "arguments": {"text": 42}}, Type(text="42")),
    ({"name": "open_app", "arguments": {"name": "Settings"}}, Open(app="Settings")),
    ({"name": "press_button", "arguments": {"button": "recent"}}, Press(button="RECENT")),
    *(({"name": "wait", "arguments": {}}, Wait()), ({"name": "wait", "arguments": {"seconds": "3"}}, Wait(duration=3000))),
    ({"name": "stop", "arguments": {"status": "done"}}, Stop()),
    ({"name": "stop", "arguments": {"status": "Impossible"}}, Stop(status="impossible")),
    wrap=lambda call: f"<tool_call>\n{json.dumps(call)}\n</tool_call>",
)

test_a_call_is_read_in_every_notation = means(
    MODEL,
    CLICK,
    *(("as the engine writes it", TAGGED), ("words before the call", f"I see a switch.\n{TAGGED}")),
    ("the first of two calls", f'{TAGGED}\n<tool_call>\n{{"name": "wait", "arguments": {{}}}}\n</tool_call>'),
    ("arguments as text", '<tool_call>\n{"name": "click", "arguments": "{\\"x\\": 500, \\"y\\": 750}"}\n</tool_call>'),
    ("numbers as text, unclosed tag", '<tool_call>{"name": "click", "arguments": {"x": "500", "y": "750"}}'),
    ("JSON alone", '{"name": "click", "arguments": {"x": 500, "y": 750}}'),
    ("fence and parameters", '```json\n{"name": "click", "parameters": {"x": 500, "y": 750}}\n```\nDone.'),
    ("single quotes", "{'name': 'click', 'arguments': {'x': 500, 'y': 750}}"),
    ("a list of calls", '[{"name": "click", "arguments": {"x": 500, "y": 750}}, {"name": "wait"}]'),
    ("under function", '{"type": "function", "function": {"name": "click", "arguments": {"x": 500, "y": 750}}}'),
    ("values beside the name", '{"function": "click", "x": 500, "y": 750}'),
    ("prefixed name, a pair", '{"name": "functions.click", "arguments": {"coordinate": [500, 750]}}'),
    (
        "GPT's parallel calls",
        '<tool_call>\n{"name": "multi_tool_use.parallel", "arguments": {"tool_uses": [{"recipient_name": '
        '"functions.click", '
        '"parameters": {"x": 500, "y": 750}}]}}\n</tool_call>',
    ),
    ("a call expression", "click(x=500, y=750)"),
    ("a labelled call expression", "I tap the switch.\nAction: functions.click(x=500, y=750)"),
    ("reasoning", '<think>Or {"name": "wait"}?</think>\n{"name": "click", "arguments": {"x": 500, "y": 750}}'),
)

PLACES = ("(500, 750)", "[500,750]", "500, 750", "（500，750）", '{"x": 500, "y": 750}', "```json\n{'x': 500, 'y': 750}\n```")
test_a_grounding_query_may_be_answered_by_the_place_alone = means(MODEL, CLICK, *PLACES, task=GROUNDING)
test_a_step_may_not_be_answered_by_a_place_alone = refuses(MODEL, *PLACES)

test_the_thought_is_the_argument_or_what_stands_before_the_call = thinks(
    MODEL,
    ('<tool_call>\n{"name": "wait", "arguments": {"thought": " It loads. "}}\n</tool_call>', "It loads."),
    ('Words.\n<tool_call>\n{"name": "wait", "arguments": {"thought": "It loads."}}\n</tool_call>', "It loads."),
    ('Words.\n<tool_call>\n{"name": "wait", "arguments": {}}\n</tool_call>', "Words."),
    ('<think>Hm.</think>Words.\n<tool_call>\n{"name": "wait", "arguments": {}}\n</tool_call>', "Hm."),
    *(("It loads.\nwait(seconds=1)", "It loads."), ('{"name": "wait", "arguments": {"thought": ""}}', None)),
)


def test_a_typed_text_may_look_like_a_call() -> None:
    for words in ('{"name": "wait"}', "note: {'a': 1}", "</tool_call>", "click(x=1, y=2)", "<think>"):
        action = Type(text=words)
        assert MODEL.parse_response(step(), MODEL.render(step(), action)).action == action
    assert MODEL.parse_response(step(), """type_text(text="a:\n{'name': 'wait'}")""").action == Type(
        text="a:\n{'name': 'wait'}"
    )


test_everything_else_is_an_error_that_gives_the_reason = refuses(
    MODEL,
    *(("", "the response is empty"), ("I'm sorry, I can't assist with that.", "makes no function call: \"I'm sorry")),
    ('<tool_call>\n{"name": "click", "arguments": "{\\"x\\": 500, \\"y\\": 75"}\n</tool_call>', "no readable JSON"),
    ('<tool_call>\n{"name": "double_click", "arguments": {"x": 1, "y": 2}}\n</tool_call>', "'double_click' is not an action"),
    ('{"name": "click", "arguments": {"x": 500}}', "lacks 'y'", "CLICK"),
    ('{"name": "click", "arguments": {"x": 500, "y": 1001}}', r"\(500, 1001\) lies outside the 1000 x 1000 frame", "CLICK"),
    ('{"name": "click", "arguments": {"x": -1, "y": 5}}', "lies outside", "CLICK"),
    ('{"name": "click", "arguments": {"x": [1, 2, 3], "y": 4}}', "is not a point"),
    ('{"name": "click", "arguments": {"coordinate": [1, 2, 3, 4]}}', "is not a point"),
    ('{"name": "click", "arguments": {"x": "left", "y": 4}}', "is not a point"),
    ('{"name": "click", "arguments": {"x": true, "y": 4}}', "is not a point"),
    ('{"name": "open_app", "arguments": {"name": " "}}', "names no app", "OPEN"),
    ('{"name": "swipe", "arguments": {"x": 1, "y": 2}}', "lacks 'direction'", "SCROLL"),
    ('{"name": "swipe", "arguments": {"x": 1, "y": 2, "direction": "north"}}', "'north' is none of up, down, left, right"),
    ('{"name": "press_button", "arguments": {"button": "menu"}}', "'menu' is none of back, home, enter, recent"),
    ('{"name": "stop", "arguments": {}}', "lacks 'status'", "STOP"),
    ('{"name": "stop", "arguments": {"status": "maybe"}}', "'maybe' is none of done, impossible"),
    ('{"name": "type_text", "arguments": {"text": null}}', "lacks 'text'", "TYPE"),
    ('{"name": "type_text", "arguments": {"text": ["a"]}}', "'a'\\] as 'text'"),
    ('{"name": "wait", "arguments": {"seconds": -1}}', "not a number of seconds"),
    ('{"name": "wait", "arguments": {"seconds": 1e999}}', "has the number inf"),
    *(('{"name": 3, "arguments": {}}', "not a function call"), ('{"action": "click", "x": 1, "y": 2}', "names no action")),
    ('{"name": "multi_tool_use.parallel", "arguments": {}}', "not a function call"),
    ('I would use {"name": "click", "arguments": {"x": 1, "y": 2}} here.', "talks about a call"),
    *(("click(500, 750)", "cannot be read"), ("tap(x=1, y=2)\nclick(x=3, y=4)", "'tap', which is not an action")),
    ("I could click(x=1, y=2) or wait", "makes no function call"),
)


def test_replies_to_other_prompts_are_never_taken_for_an_action(shared_data: Path) -> None:
    """GPT's recorded replies name elements by number or by description, which is not a place on the screen."""
    for file in ("gpt_android_world", "gpt4o_omniact_pyautogui", "webvoyager"):
        texts = [row.text for row in rows(shared_data, file)]
        assert len(texts) > 50
        for text in texts:
            with pytest.raises(ParseError):
                MODEL.parse_response(step(), text)


@pytest.mark.ci
def test_a_run_over_function_calls(guieval: CommandLine, tmp_path: Path) -> None:
    """What the server gets is functions, and images with the detail that the checkpoint asks for."""
    small = ("--set", "bench_options.episodes=2", "--mode", "soeval", "--out", tmp_path / "run")
    settings = MockSettings(model="gpt-4o", policy="reference", served_models=("gpt-4o",), keep=1000)
    with MockServer(settings, benchmark=load_benchmark("demo", tmp_path / "demo", episodes=2)) as server:
        demo = ("--bench", "demo", "--data", tmp_path / "demo", "--base-url", server.base_url)
        assert guieval("run", "--model", "gpt-4o", *demo, *small).code == 0
        bodies = [read_json(seen.body) for seen in server.requests if b'"messages"' in seen.body]
    assert bodies
    for body in bodies:
        assert body["tool_choice"] == "required" and "detail" in body["messages"][1]["content"][1]["image_url"]
    summary = evaluate_run(tmp_path / "run").summary
    assert summary.metrics["exact match"].count == summary.metrics["exact match"].n > 0
