from __future__ import annotations

import contextlib
import hashlib
import inspect
import time
from pathlib import Path

import pytest

from guieval.actions import Action, Click, Hotkey, Open, Point, Press, Scroll, Stop, Type, Unsupported
from guieval.errors import DataError, ParseError, UsageError
from guieval.history import HistoryEntry
from guieval.models import ImageRef, Message, load_template
from guieval.registry import adapter_class, load_model

from .steps import adapter, past, step

INFIGUI = load_model("infigui-r1-3b")
SILENT = load_model("infigui-r1-3b", thinking=False)

THINK = (
    "You FIRST think about the reasoning process as an internal monologue and then provide the final answer.\n"
    "The reasoning process MUST BE enclosed within <think> </think> tags."
)

# first 16 digits of the SHA-256 of each published text, so that an editor's "tidying" of a wire format is noticed
DIGESTS = {
    "infigui_r1-androidcontrol-system": "dd16a8f6c29487d0",
    "infigui_r1-androidcontrol-user-high": "7d148b1600d62dc5",
    "infigui_r1-androidcontrol-user-low": "481a5961422ad429",
    "infigui_r1-grounding-system": "f33a74b550c662ae",
    "infigui_r1-grounding-user": "3a6265b46f7ad8e0",
}


@pytest.mark.parametrize(("name", "digest"), DIGESTS.items())
def test_published_prompts_are_byte_exact(name: str, digest: str) -> None:
    text = load_template(Path(inspect.getfile(adapter_class("infigui_r1"))).parent / "prompts" / f"{name}.txt")
    assert hashlib.sha256(text.encode("utf-8")).hexdigest().startswith(digest)


# --- prompts ---------------------------------------------------------------------------------------------------------


def test_the_system_message_asks_for_a_thought_and_states_the_resized_size() -> None:
    (text,) = INFIGUI.prepare_input(step(), ()).messages[0].parts
    assert isinstance(text, str)
    assert text.startswith(
        THINK + "\nDuring the reasoning process, identify and state the sub-goal of the current step by enclosing it within "
        "<step> </step> tags.\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    )
    assert "* The screen's resolution is 1092x2408.\\n" in text
    assert "* `open`: Open an app on the device.\\n" in text
    assert text.endswith('<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>')


def test_without_thinking_the_plain_line_stands_in_its_place() -> None:
    (text,) = SILENT.prepare_input(step(), ()).messages[0].parts
    (asked,) = INFIGUI.prepare_input(step(), ()).messages[0].parts
    assert isinstance(text, str)
    assert isinstance(asked, str)
    assert text.startswith("You are a helpful assistant.\n\n# Tools\n\nYou may call")
    assert text.partition("# Tools")[2] == asked.partition("# Tools")[2]
    assert "think" not in text.partition("# Tools")[0]


def test_the_past_is_written_as_the_calls_arguments() -> None:
    message = INFIGUI.prepare_input(step(), past(3)).messages[-1]
    assert message == Message(
        "user",
        (
            "The user query:  Turn on Wi-Fi\n"
            "Task progress (You have done the following operation on the current device): "
            'Step 1: {"action": "open", "text": "Settings"}; '
            'Step 2: {"action": "type", "text": "it\'s"}; '
            'Step 3: {"action": "click", "coordinate": [546, 1806]}; ',
            ImageRef(step()),
        ),
    )


def test_an_own_call_is_repeated_as_it_was_written() -> None:
    raw = '<think>a</think>\n<tool_call>\n{"name": "mobile_use", "arguments": {"action": "wait", "time": 2.0}}\n</tool_call>'
    read = INFIGUI.parse_response(step(), raw)
    entry = HistoryEntry(step(), read.action, read.thought, read.conclusion, raw, "model")
    assert INFIGUI.prepare_input(step(), (entry,)).text.endswith('Step 1: {"action": "wait", "time": 2.0}; ')


def test_a_step_instruction_has_a_line_of_its_own() -> None:
    task = step(setting="low", low_level_instruction="Tap {history}")
    text = INFIGUI.prepare_input(task, ()).messages[-1].parts[0]
    assert text == (
        "The user query:  Turn on Wi-Fi\nCurrent step query: Tap {history}\n"
        "Task progress (You have done the following operation on the current device): "
    )
    with pytest.raises(DataError, match="b/e#0"):
        INFIGUI.prepare_input(step(setting="low"), ())


def test_grounding_prompt() -> None:
    task = step(setting="grounding", instruction="the {width} bar", screenshot_size=(1920, 1080))
    system, user = INFIGUI.prepare_input(task, ()).messages
    assert system == Message("system", (THINK,))
    assert user.parts == (
        ImageRef(task),
        "The screen's resolution is 1932x1092.\n"
        'Point to the UI element most relevant to "the {width} bar", output its coordinates using JSON format:\n'
        '```json\n[\n    {"point_2d": [x, y], "label": "object name/description"}\n]```',
    )
    assert SILENT.prepare_input(task, ()).messages[0] == Message("system", ("You are a helpful assistant.",))


def test_a_thought_can_be_given() -> None:
    given = INFIGUI.prepare_fixed_thought(step(), past(2), "First this.\n<step>Tap</step>\n")
    assert given.messages[:-1] == INFIGUI.prepare_input(step(), past(2)).messages
    assert given.messages[-1] == Message("assistant", ("<think>\nFirst this.\n<step>Tap</step>\n</think>\n",))
    assert given.prefill
    with pytest.raises(UsageError, match="thinking is turned off"):
        SILENT.prepare_fixed_thought(step(), (), "x")


# --- frame -----------------------------------------------------------------------------------------------------------


def test_frame() -> None:
    """The worked anchor: 1080 x 2400, target (540, 1800), i.e. (500, 750). Only screens above 6400 tokens are resized here."""
    assert INFIGUI.prepare_input(step(), ()).images[0].resize is None
    assert INFIGUI.parse_response(step(), call('{"action": "click", "coordinate": [546, 1806]}')).action == Click(
        point=Point(500.0, 750.0)
    )
    large = step(screenshot_size=(3840, 2160))  # 2986 x 1679 before rounding down to multiples of 28
    assert INFIGUI.prepare_input(large, ()).images[0].resize == (2968, 1652)
    # 5600 tokens: 2793 x 1571
    target = step(screenshot_size=(3840, 2160), setting="grounding")
    assert INFIGUI.prepare_input(target, ()).images[0].resize == (2772, 1568)
    assert INFIGUI.parse_response(target, '[{"point_2d": [1386, 784]}]').action == Click(point=Point(500.0, 500.0))
    limited = adapter("infigui_r1", max_pixels=1280 * 28 * 28)
    assert limited.frame(step()).extent((1080, 2400)) == (672, 1484)
    assert limited.frame(step(setting="grounding")).extent((1080, 2400)) == (672, 1484)


# --- replies ---------------------------------------------------------------------------------------------------------

MIDDLE = Point(500.0, 500.0)  # (546, 1204) of 1092 x 2408


def call(arguments: str) -> str:
    return f'<tool_call>\n{{"name": "mobile_use", "arguments": {arguments}}}\n</tool_call>'


CLICK = call('{"action": "click", "coordinate": [546, 1204]}')


@pytest.mark.parametrize(
    ("case", "text", "action"),
    [
        ("published form", "<think>The bar. <step>Tap the bar.</step></think>\n" + CLICK, Click(point=MIDDLE)),
        ("no thought", CLICK, Click(point=MIDDLE)),
        ("thought not closed", "<think>The bar.\n" + CLICK, Click(point=MIDDLE)),
        ("call not closed", "<think>a</think>" + CLICK.removesuffix("\n</tool_call>"), Click(point=MIDDLE)),
        (
            "no tags, as the authors' fallback reads",
            '<think>a</think>{"name": "mobile_use", "arguments": {"action": "open", "text": "Maps"}}',
            Open(app="Maps"),
        ),
        (
            "single quotes",
            "<think>a</think><tool_call>{'name': 'mobile_use', 'arguments': {'action': 'type', 'text': 'a'}}",
            Type(text="a"),
        ),
        ("rehearsed", "<think>not " + call('{"action": "wait"}') + "</think>" + CLICK, Click(point=MIDDLE)),
        ("two calls", CLICK + call('{"action": "wait"}'), Click(point=MIDDLE)),
        (
            "swipe",
            call('{"action": "swipe", "coordinate": [546, 1204], "coordinate2": [546, 400]}'),
            Scroll(point=MIDDLE, direction="up", distance=333.887),
        ),
        ("button", call('{"action": "system_button", "button": "Back"}'), Press(button="BACK")),
        ("failure", call('{"action": "terminate", "status": "failure"}'), Stop(status="impossible")),
        (
            "key",
            call('{"action": "key", "text": "volume_up"}'),
            Unsupported(name="key", arguments={"text": "volume_up"}, device=Hotkey(keys=("volume_up",))),
        ),
    ],
)
def test_replies(case: str, text: str, action: Action) -> None:
    assert INFIGUI.parse_response(step(), text).action == action, case


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (call('{"action": "click", "coordinate": [1093, 0]}'), r"\(1093, 0\) lies outside the 1092 x 2408 frame"),
        (call('{"action": "tap_twice"}'), "'tap_twice' is not an action"),
        ("<think>a</think>", "no readable JSON"),
        ("<think>The bar is at [546, 1204].</think>", "no readable JSON"),
        ('```json\n[{"point_2d": [546, 1204]}]\n```', "names no action"),
        ("[546, 1204]", "not a call"),
    ],
)
def test_refuses(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        INFIGUI.parse_response(step(), text)


def test_thought_and_sub_goal() -> None:
    read = INFIGUI.parse_response(step(), "<think>\nThe bar. <step>Tap the bar.</step>\n</think>\n" + CLICK)
    assert (read.thought, read.conclusion) == ("The bar. <step>Tap the bar.</step>", "Tap the bar.")
    written = INFIGUI.render(step(), Press(button="HOME"), "I leave.", "Go home.")
    assert written == (
        "<think>\nI leave.\n<step>Go home.</step>\n</think>\n" + call('{"action": "system_button", "button": "Home"}')
    )
    assert SILENT.render(step(), Press(button="HOME"), "I leave.", "Go home.").startswith("<tool_call>")
    assert INFIGUI.parse_response(step(), CLICK).conclusion is None


@pytest.mark.parametrize(
    "text",
    [
        '<think>The bar.</think>\n```json\n[\n    {"point_2d": [546, 1204], "label": "bar"}\n]\n```',
        '<think>The bar.</think>[{"point_2d": [546, 1204], "label": "bar"}]',
        '<think>```json\n[{"point_2d": [1, 2]}]``` no</think>[{"point_2d": [546, 1204]}]',
        '<think>The bar.\n```json\n[{"point_2d": [546, 1204]}]\n```',
        '[{"point_2d": [546, 1204]}, {"point_2d": [1, 2]}]',
        '{"bbox_2d": [545, 1200, 547, 1208]}',
        "<think>a</think>[546, 1204]",
        "<think>a</think>" + CLICK,
    ],
)
def test_grounding_answers(text: str) -> None:
    assert INFIGUI.parse_response(step(setting="grounding"), text).action == Click(point=MIDDLE)


@pytest.mark.parametrize(
    "text",
    ['<think>[{"point_2d": [546, 1204]}]</think>', '[{"point_2d": [546, 12', "<think>[546, 1204]", '[{"label": "bar"}]', ""],
)
def test_no_grounding_answers(text: str) -> None:
    with pytest.raises(ParseError):
        INFIGUI.parse_response(step(setting="grounding"), text)


@pytest.mark.parametrize("text", ["<tool_call>", "</think>", '{"point_2d": [', "```json\n[", '{"name": "'])
def test_a_model_stuck_in_a_loop_costs_little(text: str) -> None:
    for task in (step(), step(setting="grounding")):
        began = time.process_time()
        with contextlib.suppress(ParseError):
            INFIGUI.parse_response(task, text * (20_000 // len(text)))
        assert time.process_time() - began < 5.0
