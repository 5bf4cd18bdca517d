from __future__ import annotations

from typing import Any

from guieval.actions import Action, Click, Hotkey, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait
from guieval.history import HistoryEntry, reference_entry
from guieval.models import ABCModel, ImageRef
from guieval.registry import load_model
from tests.rows import every_row

from .steps import GROUNDING, adapter, outside, scroll, step
from .tables import means, reads, refuses, thinks, writes

CONTROL = load_model("gui-r1-7b")
ODYSSEY = adapter("gui_r1", prompt="guiodyssey")


def asked(model: ABCModel, history: tuple[HistoryEntry, ...] = (), **changes: Any) -> str:
    """The text of the one message, after the screenshot."""
    task = step(**changes)
    (message,) = model.prepare_input(task, history).messages
    image, text = message.parts
    assert message.role == "user"
    assert image == ImageRef(task)
    assert isinstance(text, str)
    return text


def test_guiodyssey_has_actions_of_its_own() -> None:
    assert "(enumerate from ['press_back', 'press_recent', 'press_home', 'complete', 'long_press', 'scroll', " in asked(ODYSSEY)


@every_row(
    ("action", "result"),
    [
        (Click(point=Point(683.0, 321.0)), "CLICK <point>[[683,321]]</point>"),
        (LongPress(point=Point(1.0, 2.0)), "LONG_PRESS <point>[[1,2]]</point>"),
        (Type(text="I am happy"), "TYPE [I am happy]"),
        *((scroll("down"), "SCROLL [DOWN]"), (Open(app="Maps"), "OPEN_APP [Maps]")),
        *((Press(button="RECENT"), "PRESS_RECENT"), (Wait(), "WAIT"), (Stop(), "COMPLETE")),
        *((Stop(status="impossible"), "IMPOSSIBLE"), (outside("zoom"), "ZOOM")),
    ],
)
def test_the_past_on_guiodyssey_is_in_os_atlas_notation(action: Action, result: str) -> None:
    """As in the data set's rows that issue #12 quotes."""
    text = asked(ODYSSEY, (reference_entry(step(action)), reference_entry(step(step_index=1))))
    assert f"history being 'Step 1: {result}\nStep 2: CLICK <point>[[500,750]]</point>'.\n" in text


MIDDLE = Point(500.0, 500.0)  # (546, 1204) of 1092 x 2408
CLICK = "[{'action': 'click', 'point': [546, 1204], 'input_text': 'no input text'}]"

test_a_click = writes(
    CONTROL,
    (Click(point=Point(500.0, 750.0)), "[{'action': 'click', 'point': [546, 1806], 'input_text': 'no input text'}]"),
    wrap=lambda call: f"<answer>{call}</answer>",
)


def answer(action: str, text: str = "'no input text'", point: str = "[-100, -100]") -> str:
    return f"<think> The bar. </think> <answer>[{{'action': '{action}', 'point': {point}, 'input_text': {text}}}]</answer>"


test_replies = reads(
    CONTROL,
    ("no list", f"<answer>{CLICK[1:-1]}</answer>", Click(point=MIDDLE)),
    ("point as text", answer("click", point="'(546, 1204)'"), Click(point=MIDDLE)),
    ("full-width", answer("click", point="'（546，1204）'"), Click(point=MIDDLE)),
    ("rehearsed", f"<think>not <answer>x</answer></think><answer>{CLICK}</answer>", Click(point=MIDDLE)),
    ("continued turn", f"{CLICK}</answer>", Click(point=MIDDLE)),
    ("no tags, on a line of its own", f"I tap it.\n{CLICK}", Click(point=MIDDLE)),
    ("two actions", f"<answer>{CLICK[:-1]}, {{'action': 'wait'}}]</answer>", Click(point=MIDDLE)),
    ("upper case", answer("CLICK", point="[546, 1204]"), Click(point=MIDDLE)),
    ("the prompt's enum", "<answer>" + CLICK.replace("'click'", "enum['click']"), Click(point=MIDDLE)),
    ("the prompt's enum for a direction", answer("scroll", "enum['down']"), scroll("up")),
    ("apostrophe not escaped", answer("type", "'it's (a) 'test', yes'"), Type(text="it's (a) 'test', yes")),
    ("apostrophe escaped", answer("type", r"'it\'s'"), Type(text="it's")),
    ("the tag in a text", answer("type", "'</answer>'"), Type(text="</answer>")),
    ("enum in a text", answer("type", "'enum[\"a\"]'"), Type(text='enum["a"]')),
    ("number for a text", answer("type", "42"), Type(text="42")),
    ("scroll from a place", answer("scroll", "'Left'", "[546, 1806]"), Scroll(point=Point(500.0, 750.0), direction="right")),
    ("scroll without a place", "<answer>{'action': 'scroll', 'input_text': 'up'}</answer>", scroll("down")),
    ("scroll with an empty place", answer("scroll", "'up'", "[]"), scroll("down")),
    *(("home", answer("press_home"), Press(button="HOME")), ("recent", answer("press_recent"), Press(button="RECENT"))),
    ("enter, of the web prompt", answer("enter"), Press(button="ENTER")),
    (
        "hotkey, of the desktop prompt",
        answer("hotkey", "'ctrl c'"),
        outside("hotkey", Hotkey(keys=("ctrl", "c")), point=[-100, -100], input_text="ctrl c"),
    ),
)

test_refuses = refuses(
    CONTROL,
    (answer("click"), r"\(-100, -100\) lies outside the 1092 x 2408 frame", "CLICK"),
    *((answer("click", point="[1093, 0]"), "outside", "CLICK"), (answer("click", point="[546]"), "holds 1 numbers")),
    *((answer("click", point="[x, y]"), "no readable JSON"), (answer("click", point="None"), "lacks 'point'", "CLICK")),
    *((answer("type"), "type lacks 'input_text'", "TYPE"), (answer("type", "None"), "type lacks 'input_text'", "TYPE")),
    *((answer("open_app", "' '"), "open_app names no app", "OPEN"), (answer("scroll"), "scroll lacks 'input_text'", "SCROLL")),
    *((answer("scroll", "'up'", "[500, -3]"), "outside", "SCROLL"), (answer("scroll", "'further'"), "'further' is none of up")),
    *((answer("scroll", "enum['up', 'left', 'right', 'down']"), "no readable JSON"), (answer("fly"), "'fly' is not an action")),
    ("<answer>[{'point': [546, 1204]}]</answer>", "is not an action"),
    *(("<answer>[{'action': 7}]</answer>", "is not an action"), ("<answer>[546, 1204]</answer>", "is not an action")),
    *(("<answer>[]</answer>", r"is not an action: \[\]"), ("<answer></answer>", "no readable JSON")),
    ("<answer>[{'action': 'type', 'point': [-100, -100], 'input_text': 'ab", "no readable JSON"),
    *((f"<think>{CLICK}</think>", "no <answer>"), (f"<think>I could <answer>{CLICK}</answer></think>", "no <answer>")),
    *((f"I would say {CLICK} here.", "no <answer>"), ("I tap the bar.", "no <answer>")),
)

test_thoughts = thinks(
    CONTROL,
    (answer("wait"), "The bar."),
    (f"<think> not <answer>x</answer> but </think><answer>{CLICK}</answer>", "not <answer>x</answer> but"),
    (f"<answer>{CLICK}</answer>", None),
)


def test_a_thought_is_written_before_the_answer() -> None:
    written = CONTROL.render(step(), Press(button="BACK"), "I leave.")
    filler = "'point': [-100, -100], 'input_text': 'no input text'"
    assert written == f"<think> I leave. </think> <answer>[{{'action': 'press_back', {filler}}}]</answer>"


test_grounding_answers = means(
    CONTROL,
    Click(point=MIDDLE),
    answer("click", point="[546, 1204]"),
    *("<answer>[{'point': [546, 1204]}]</answer>", "<think>a</think>{'point': [546, 1204], 'input_text': 'no input text'}"),
    task=GROUNDING,
)

test_no_grounding_answers = refuses(
    CONTROL, "<answer>[546, 1204]</answer>", "<answer>[{'input_text': 'a'}]</answer>", "(546, 1204)", "", task=GROUNDING
)
