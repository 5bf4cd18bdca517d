from __future__ import annotations

import contextlib
import hashlib
import inspect
import time
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import (
    Action,
    Click,
    Direction,
    Hotkey,
    LongPress,
    Open,
    Point,
    Press,
    Scroll,
    Stop,
    Type,
    Unsupported,
    Wait,
)
from guieval.errors import DataError, ParseError, UsageError
from guieval.history import HistoryEntry, reference_entry
from guieval.models import ABCModel, ImageRef, Message, load_template
from guieval.registry import adapter_class, load_model

from .steps import adapter, past, step

CONTROL = load_model("gui-r1-7b")
ODYSSEY = adapter("gui_r1", prompt="guiodyssey")

# first 16 digits of the SHA-256 of each published text, so that an editor's "tidying" of a wire format is noticed
DIGESTS = {
    "gui_r1-androidcontrol": "9fdc5b1f888362d6",
    "gui_r1-guiodyssey": "320450d7e9812d46",
    "gui_r1-screenspot": "775c8249c0497e21",
}


@pytest.mark.parametrize(("name", "digest"), DIGESTS.items())
def test_published_prompts_are_byte_exact(name: str, digest: str) -> None:
    text = load_template(Path(inspect.getfile(adapter_class("gui_r1"))).parent / "prompts" / f"{name}.txt")
    assert hashlib.sha256(text.encode("utf-8")).hexdigest().startswith(digest)


# --- prompts ---------------------------------------------------------------------------------------------------------


def asked(model: ABCModel, history: tuple[HistoryEntry, ...] = (), **changes: Any) -> str:
    """The text of the one message, after the screenshot."""
    task = step(**changes)
    (message,) = model.prepare_input(task, history).messages
    image, text = message.parts
    assert message.role == "user"
    assert image == ImageRef(task)
    assert isinstance(text, str)
    return text


def test_the_first_step_on_androidcontrol() -> None:
    text = asked(CONTROL)
    assert text.startswith(
        "<image>\nYou are GUI-R1, a reasoning GUI Agent Assistant. In this UI screenshot <image>, I want you to continue "
        "executing the command 'Turn on Wi-Fi', with the action history being 'None'.\nPlease provide the action to perform "
        "(enumerate from ['wait', 'long_press', 'click', 'press_back', 'type', 'open_app', 'scroll']), the point where the "
        "cursor is moved to (integer) if a click is performed, and any input text required to complete the action.\n"
    )
    assert "Note:\n specific input text (no default) is necessary for actions enum['type', 'open_app', 'scroll'] \n" in text
    assert text.endswith(
        "[{'action': enum['scroll'], 'point': [-100, -100], 'input_text': enum['up', 'left', 'right', 'down']}]"
    )


def test_guiodyssey_has_actions_of_its_own() -> None:
    assert "(enumerate from ['press_back', 'press_recent', 'press_home', 'complete', 'long_press', 'scroll', " in asked(ODYSSEY)


def test_the_past_on_androidcontrol_is_step_instructions_and_own_answers() -> None:
    raw = "<think> The bar. </think> <answer>[{'action': 'click', 'point': [546,1806], 'input_text': 'no input text'}]</answer>"
    task = step()
    read = CONTROL.parse_response(task, raw)
    own = HistoryEntry(task, read.action, read.thought, read.conclusion, raw, "model")
    assert (
        "with the action history being 'Step 1: Open the settings\n"
        "Step 2: [{'action': 'type', 'point': [-100, -100], 'input_text': \"it's\"}]\n"
        "Step 3: [{'action': 'click', 'point': [546,1806], 'input_text': 'no input text'}]'.\n"
    ) in asked(CONTROL, (*past(2), own))


def test_a_past_step_without_an_instruction_names_its_place_in_the_models_frame() -> None:
    assert "history being 'Step 1: Click at (546, 1806).'." in asked(CONTROL, (reference_entry(step()),))


@pytest.mark.parametrize(
    ("action", "result"),
    [
        (Click(point=Point(683.0, 321.0)), "CLICK <point>[[683,321]]</point>"),
        (LongPress(point=Point(1.0, 2.0)), "LONG_PRESS <point>[[1,2]]</point>"),
        (Type(text="I am happy"), "TYPE [I am happy]"),
        (Scroll(point=Point(500.0, 500.0), direction="down"), "SCROLL [DOWN]"),
        (Open(app="Maps"), "OPEN_APP [Maps]"),
        (Press(button="RECENT"), "PRESS_RECENT"),
        (Wait(), "WAIT"),
        (Stop(), "COMPLETE"),
        (Stop(status="impossible"), "IMPOSSIBLE"),
        (Unsupported(name="zoom"), "ZOOM"),
    ],
)
def test_the_past_on_guiodyssey_is_in_os_atlas_notation(action: Action, result: str) -> None:
    """As in the data set's rows that issue #12 quotes."""
    text = asked(ODYSSEY, (reference_entry(step(action)), reference_entry(step(step_index=1))))
    assert f"history being 'Step 1: {result}\nStep 2: CLICK <point>[[500,750]]</point>'.\n" in text


def test_a_step_instruction_is_the_command() -> None:
    text = asked(CONTROL, setting="low", low_level_instruction="Tap {history}")
    assert "executing the command 'Tap {history}', with" in text
    with pytest.raises(DataError, match="b/e#0"):
        CONTROL.prepare_input(step(setting="low"), ())


def test_grounding_prompt() -> None:
    text = asked(CONTROL, setting="grounding", instruction="the bar")
    assert text.startswith(
        "<image>\nYou are RUN1-R1, a reasoning GUI Agent Assistant. In this UI screenshot <image>, I want you to continue "
        "executing the command 'the bar', with the action history being 'None'.\nPlease provide the action to perform "
        "(enumerate from ['click']), "
    )
    assert text.endswith("[{'action': enum['click'], 'point': [123, 300], 'input_text': 'no input text'}]\n")


def test_a_thought_can_be_given() -> None:
    given = CONTROL.prepare_fixed_thought(step(), past(2), "First this.\nThen that.\n")
    assert given.messages[:-1] == CONTROL.prepare_input(step(), past(2)).messages
    assert given.messages[-1] == Message("assistant", ("<think> First this.\nThen that. </think> <answer>",))
    assert given.prefill


def test_there_is_no_thinking_switch() -> None:
    with pytest.raises(UsageError, match="no thinking switch"):
        load_model("gui-r1-3b", thinking=False)


def test_frame() -> None:
    """The worked anchor: 1080 x 2400, target (540, 1800), i.e. (500, 750)."""
    action = Click(point=Point(500.0, 750.0))
    text = "<answer>[{'action': 'click', 'point': [546, 1806], 'input_text': 'no input text'}]</answer>"
    assert CONTROL.render(step(), action) == text
    assert CONTROL.parse_response(step(), text).action == action
    limited = adapter("gui_r1", min_pixels=262144, max_pixels=1280 * 28 * 28)
    assert limited.prepare_input(step(), ()).images[0].resize == (672, 1484)
    assert limited.render(step(), action) == text.replace("[546, 1806]", "[336, 1113]")


# --- replies ---------------------------------------------------------------------------------------------------------

MIDDLE = Point(500.0, 500.0)  # (546, 1204) of 1092 x 2408
CLICK = "[{'action': 'click', 'point': [546, 1204], 'input_text': 'no input text'}]"


def answer(action: str, text: str = "'no input text'", point: str = "[-100, -100]") -> str:
    return f"<think> The bar. </think> <answer>[{{'action': '{action}', 'point': {point}, 'input_text': {text}}}]</answer>"


@pytest.mark.parametrize(
    ("case", "text", "action"),
    [
        ("published form", answer("click", point="[546, 1204]"), Click(point=MIDDLE)),
        ("line breaks", f"<think>\na\n</think>\n<answer>\n{CLICK}\n</answer>", Click(point=MIDDLE)),
        ("no thought", f"<answer>{CLICK}</answer>", Click(point=MIDDLE)),
        (
            "JSON",
            '<answer>[{"action": "click", "point": [546, 1204], "input_text": "no input text"}]</answer>',
            Click(point=MIDDLE),
        ),
        ("no list", f"<answer>{CLICK[1:-1]}</answer>", Click(point=MIDDLE)),
        ("no input text", "<answer>[{'action': 'click', 'point': [546, 1204]}]</answer>", Click(point=MIDDLE)),
        ("numbers as text", answer("click", point="['546', '1204']"), Click(point=MIDDLE)),
        ("point as text", answer("click", point="'(546, 1204)'"), Click(point=MIDDLE)),
        ("a box", answer("click", point="[545, 1200, 547, 1208]"), Click(point=MIDDLE)),
        ("full-width", answer("click", point="'（546，1204）'"), Click(point=MIDDLE)),
        ("fenced", f"<answer>```json\n{CLICK}\n```</answer>", Click(point=MIDDLE)),
        ("words around the answer", f"<answer>I do this: {CLICK} now.</answer>", Click(point=MIDDLE)),
        ("answer not closed", f"<think>a</think><answer>{CLICK}", Click(point=MIDDLE)),
        ("brackets missing at the end", f"<answer>{CLICK[:-2]}", Click(point=MIDDLE)),
        ("thought not closed", f"<think>The bar. <answer>{CLICK}</answer>", Click(point=MIDDLE)),
        ("thought not opened", f"The bar. </think> <answer>{CLICK}</answer>", Click(point=MIDDLE)),
        ("rehearsed", f"<think>not <answer>x</answer></think><answer>{CLICK}</answer>", Click(point=MIDDLE)),
        ("continued turn", f"{CLICK}</answer>", Click(point=MIDDLE)),
        ("no answer tags", f"<think> a </think> {CLICK}", Click(point=MIDDLE)),
        ("no tags, on a line of its own", f"I tap it.\n{CLICK}", Click(point=MIDDLE)),
        ("special token at the end", f"<answer>{CLICK}</answer><|im_end|>", Click(point=MIDDLE)),
        ("two answers", f"<answer>{CLICK}</answer><answer>[{{'action': 'wait'}}]</answer>", Click(point=MIDDLE)),
        ("two actions", f"<answer>{CLICK[:-1]}, {{'action': 'wait'}}]</answer>", Click(point=MIDDLE)),
        ("upper case", answer("CLICK", point="[546, 1204]"), Click(point=MIDDLE)),
        (
            "the prompt's enum",
            f"<answer>{CLICK.replace(chr(39) + 'click' + chr(39), 'enum[' + chr(39) + 'click' + chr(39) + ']')}",
            Click(point=MIDDLE),
        ),
        ("the prompt's enum for a direction", answer("scroll", "enum['down']"), Scroll(point=MIDDLE, direction="up")),
        ("long press", answer("long_press", point="[546, 1204]"), LongPress(point=MIDDLE)),
        ("type", answer("type", "'shanghai shopping mall'"), Type(text="shanghai shopping mall")),
        ("apostrophe not escaped", answer("type", "'it's (a) 'test', yes'"), Type(text="it's (a) 'test', yes")),
        ("apostrophe escaped", answer("type", r"'it\'s'"), Type(text="it's")),
        ("the tag in a text", answer("type", "'</answer>'"), Type(text="</answer>")),
        ("enum in a text", answer("type", "'enum[\"a\"]'"), Type(text='enum["a"]')),
        ("number for a text", answer("type", "42"), Type(text="42")),
        ("open", answer("open_app", "'Maps'"), Open(app="Maps")),
        ("scroll names the content", answer("scroll", "'down'"), Scroll(point=MIDDLE, direction="up")),
        (
            "scroll from a place",
            answer("scroll", "'Left'", "[546, 1806]"),
            Scroll(point=Point(500.0, 750.0), direction="right"),
        ),
        (
            "scroll without a place",
            "<answer>{'action': 'scroll', 'input_text': 'up'}</answer>",
            Scroll(point=MIDDLE, direction="down"),
        ),
        ("scroll with an empty place", answer("scroll", "'up'", "[]"), Scroll(point=MIDDLE, direction="down")),
        ("back", answer("press_back"), Press(button="BACK")),
        ("wait", answer("wait"), Wait()),
        ("home", answer("press_home"), Press(button="HOME")),
        ("recent", answer("press_recent"), Press(button="RECENT")),
        ("enter, of the web prompt", answer("enter"), Press(button="ENTER")),
        ("complete", answer("complete"), Stop()),
        ("impossible", answer("impossible"), Stop(status="impossible")),
        (
            "hotkey, of the desktop prompt",
            answer("hotkey", "'ctrl c'"),
            Unsupported(
                name="hotkey", arguments={"point": [-100, -100], "input_text": "ctrl c"}, device=Hotkey(keys=("ctrl", "c"))
            ),
        ),
    ],
)
def test_replies(case: str, text: str, action: Action) -> None:
    assert CONTROL.parse_response(step(), text).action == action, case


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (answer("click"), r"\(-100, -100\) lies outside the 1092 x 2408 frame"),
        (answer("click", point="[1093, 0]"), "outside"),
        (answer("click", point="[546]"), "holds 1 numbers"),
        (answer("click", point="[x, y]"), "no readable JSON"),
        (answer("click", point="None"), "lacks 'point'"),
        (answer("type"), "type lacks 'input_text'"),
        (answer("type", "None"), "type lacks 'input_text'"),
        (answer("open_app", "' '"), "open_app names no app"),
        (answer("scroll"), "scroll lacks 'input_text'"),
        (answer("scroll", "'up'", "[500, -3]"), "outside"),
        (answer("scroll", "'further'"), "'further' is none of up"),
        (answer("scroll", "enum['up', 'left', 'right', 'down']"), "no readable JSON"),
        (answer("fly"), "'fly' is not an action"),
        ("<answer>[{'point': [546, 1204]}]</answer>", "is not an action"),
        ("<answer>[{'action': 7}]</answer>", "is not an action"),
        ("<answer>[546, 1204]</answer>", "is not an action"),
        ("<answer>[]</answer>", r"is not an action: \[\]"),
        ("<answer></answer>", "no readable JSON"),
        ("<answer>[{'action': 'type', 'point': [-100, -100], 'input_text': 'ab", "no readable JSON"),
        (f"<think>{CLICK}</think>", "no <answer>"),
        (f"<think>I could <answer>{CLICK}</answer></think>", "no <answer>"),
        (f"I would say {CLICK} here.", "no <answer>"),
        ("I tap the bar.", "no <answer>"),
    ],
)
def test_refuses(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        CONTROL.parse_response(step(), text)


def test_thought() -> None:
    assert CONTROL.parse_response(step(), answer("wait")).thought == "The bar."
    rehearsed = f"<think> not <answer>x</answer> but </think><answer>{CLICK}</answer>"
    assert CONTROL.parse_response(step(), rehearsed).thought == "not <answer>x</answer> but"
    assert CONTROL.parse_response(step(), f"<answer>{CLICK}</answer>").thought is None
    written = CONTROL.render(step(), Press(button="BACK"), "I leave.")
    filler = "'point': [-100, -100], 'input_text': 'no input text'"
    assert written == f"<think> I leave. </think> <answer>[{{'action': 'press_back', {filler}}}]</answer>"


@pytest.mark.parametrize(
    ("options", "down"),
    [
        ({"prompt": "androidcontrol"}, "up"),
        ({"prompt": "guiodyssey"}, "down"),
        ({"prompt": "androidcontrol", "scroll_words": "finger"}, "down"),
        ({"prompt": "guiodyssey", "scroll_words": "content"}, "up"),
    ],
)
def test_scroll_words_go_by_the_prompt_and_can_be_set(options: dict[str, Any], down: Direction) -> None:
    model = adapter("gui_r1", **options)
    action = model.parse_response(step(), answer("scroll", "'down'")).action
    assert action == Scroll(point=MIDDLE, direction=down)
    assert "'input_text': 'down'}" in model.render(step(), action)


@pytest.mark.parametrize(
    "text",
    [
        answer("click", point="[546, 1204]"),
        "<answer>[{'point': [546, 1204]}]</answer>",
        "<think>a</think>{'point': [546, 1204], 'input_text': 'no input text'}",
    ],
)
def test_grounding_answers(text: str) -> None:
    assert CONTROL.parse_response(step(setting="grounding"), text).action == Click(point=MIDDLE)


@pytest.mark.parametrize("text", ["<answer>[546, 1204]</answer>", "<answer>[{'input_text': 'a'}]</answer>", "(546, 1204)", ""])
def test_no_grounding_answers(text: str) -> None:
    with pytest.raises(ParseError):
        CONTROL.parse_response(step(setting="grounding"), text)


@pytest.mark.parametrize(
    "text",
    [
        "<answer>",
        "</think>",
        "[{'action': 'type', 'point': [1, 2], 'input_text': 'a",
        "enum['",
        "\n{'action': ",
        "{'action': 'type', 'point': [1, 2], 'input_text': 'it's', ",
    ],
)
def test_a_model_stuck_in_a_loop_costs_little(text: str) -> None:
    for before in ("", "<think>a</think><answer>[{'action': 'type', 'point': [1, 2], 'input_text': 'a"):
        began = time.process_time()
        with contextlib.suppress(ParseError):
            CONTROL.parse_response(step(), before + text * (40_000 // len(text)))
        assert time.process_time() - began < 5.0
