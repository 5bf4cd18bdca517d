from __future__ import annotations

import re

import pytest

from guieval.actions import Click, DoubleClick, Hotkey, LongPress, Open, Point, Press, Stop, Type, Unsupported, Wait
from guieval.history import reference_entry
from guieval.models import ImageRef, Message
from tests.rows import every_row

from .steps import GROUNDING, LOW, adapter, outside, own, past, scroll, step
from .tables import means, reads, refuses, thinks, writes

V1 = adapter("ui_tars")
V15 = adapter("ui_tars_1_5")
MIDDLE = Point(500.0, 500.0)


def shape(messages: tuple[Message, ...]) -> str:
    """The conversation as letters: system, user text, screenshot, assistant."""
    letters = {"system": "s", "user": "u", "assistant": "a"}
    return "".join("i" if isinstance(message.parts[0], ImageRef) else letters[message.role] for message in messages)


@every_row(
    ("raw", "result"),
    [
        (
            "Thought: Up.\nAction: drag(start_box='(546,1806)', end_box='(546,300)')",
            "drag(start_box='<|box_start|>(546,1806)<|box_end|>', end_box='<|box_start|>(546,300)<|box_end|>')",
        ),
        ("Thought: Up.\nAction: type(content='weather\\n')", "type(content='weather\\n')"),
        ("Thought: Up.\nAction: finished(content='All is done.')", "finished(content='All is done.')"),
        ("Thought: Up.\nAction: press_back()\n\nwait()", "press_back()"),
        ("Thought: Up.\nAction: open_app(app_name='X'", "open_app(app_name='X')"),
    ],
)
def test_own_past_calls_are_written_as_they_were_made(raw: str, result: str) -> None:
    entry = own(V15, raw, low_level_instruction="the reference's words")
    answer = next(message for message in V15.prepare_input(step(), [entry]).messages if message.role == "assistant")
    assert answer.parts == (f"Thought: Up.\nAction: {result}",)


@every_row(("steps", "expected"), [(0, "sui"), (2, "suiaiai"), (4, "suiaiaiaiai"), (6, "suaaiaiaiaiai")])
def test_only_the_last_four_past_steps_keep_their_screenshot(steps: int, expected: str) -> None:
    for model in (V1, V15):
        assert shape(model.prepare_input(step(), past(steps)).messages) == expected
    assert len(adapter("ui_tars", max_images=1).prepare_input(step(), past(steps)).images) == 1


@every_row("prompt", ["androidcontrol", "androidworld", "guiodyssey", "mobile", "computer"])
def test_every_published_prompt_can_be_chosen(prompt: str) -> None:
    model = adapter("ui_tars", prompt=prompt)
    text = model.prepare_input(step(), ()).text
    assert "Turn on Wi-Fi" in text
    written = model.render(step(), scroll("up"))
    # a path that is written has a length
    assert model.parse_response(step(), written).action.model_copy(update={"distance": None}) == scroll("up")
    # the words of the reply are those of the prompt's own action space
    keys = re.findall(r"(\w+)=", written)
    assert re.search(r"scroll\(" + r"='[^']*'(?: *, *)".join(map(re.escape, keys)) + "='", text)


def test_language_of_the_thought() -> None:
    assert "- Use Chinese in `Thought` part." in adapter("ui_tars_1_5", language="Chinese").prepare_input(step(), ()).text


test_replies = reads(
    V1,
    ("published example", "Action: click(start_box='<|box_start|>(500,500)<|box_end|>')", Click(point=MIDDLE)),
    ("tokens stripped by the server", "Thought: x\nAction: click(start_box='(500,500)')", Click(point=MIDDLE)),
    ("box", "Action: click(start_box='[480, 490, 520, 510]')", Click(point=MIDDLE)),
    ("point", "Action: click(point='<point>500 500</point>')", Click(point=MIDDLE)),
    ("no marker", 'click(start_box="(500,500)")', Click(point=MIDDLE)),
    ("marker within a line", "Thought: I tap. Action: click(start_box='(500,500)')", Click(point=MIDDLE)),
    ("escaped as in a log", "Action: click(start_box=\\'(500,500)\\')", Click(point=MIDDLE)),
    ("closing tag after", "Action: click(start_box='(500,500)')\n</Output>", Click(point=MIDDLE)),
    ("no marker after the thought", "Thought: I tap.\nclick(start_box='(500,500)')", Click(point=MIDDLE)),
    ("two calls on a line", "Action: type(content='x'), click(start_box='(1,1)')", Type(text="x")),
    ("several parts on a line", "Action: type(content='x') Thought: y Action: wait()", Type(text="x")),
    ("marker on a line of the content", "Action: type(content='a\nAction: wait()')", Type(text="a\nAction: wait()")),
    ("marker in the content of a continued turn", " type(content='Action: wait()')", Type(text="Action: wait()")),
    ("escaped characters", "Action: type(content='\\u4f60\\u597d')", Type(text="你好")),
    ("nothing but submitted", "Action: type(content='\\n')", Press(button="ENTER")),
    ("several markers", "Action: click(start_box='(1,1)')\n\nAction: type(content='x')", Type(text="x")),
    ("marker in the content", "Action: type(content='Action: wait()')", Type(text="Action: wait()")),
    ("quotes in the content", "Action: type(content='it's \"so\"')", Type(text='it\'s "so"')),
    ("submitted content", "Action: type(content='weather\\n')", Type(text="weather")),
    ("text for content", "Action: type(text='hello world', delay=100)", Type(text="hello world")),
    ("long press", "Action: long_press(start_box='(500,500)', time='')", LongPress(point=MIDDLE)),
    ("path", "Action: scroll(start_box='(500,500)', end_box='(609,465)')", scroll("right", 109)),
    ("drag", "Action: drag(start_box='(500,500)', end_box='(490,142)')", scroll("up", 358)),
    ("open", "Action: open_app(app_name='Recorder')", Open(app="Recorder")),
    *(("home", "Action: press_home()", Press(button="HOME")), ("recents", "Action: press_appselect()", Press(button="RECENT"))),
    *(("finished", "Action: finished(content='done')", Stop()), ("give up", "Action: call_user()", Stop(status="impossible"))),
    ("hotkey", "Action: hotkey(key='ctrl v')", outside("hotkey", Hotkey(keys=("ctrl", "v")), key="ctrl v")),
    ("Action: left_double(start_box='(1,2)')", outside("left_double", DoubleClick(point=Point(1.0, 2.0)), start_box="(1,2)")),
)

MEANT = Click(point=MIDDLE)
test_grounding = means(
    V1, MEANT, "(500,500)", "<|box_start|>(500,500)<|box_end|>", "(500，500).", " click(start_box='(500,500)')", task=GROUNDING
)
test_a_part_of_a_place_is_none = refuses(V1, "(500,50", task=GROUNDING)
test_a_continued_turn = means(V1, MEANT, " click(start_box='(500,500)')", task=LOW)
test_without_thinking = writes(
    adapter("ui_tars_1_5", thinking=False), (Open(app="X"), "Action: open_app(app_name='X')"), conclusion="Hm."
)
test_a_small_screenshot_of_1_5_is_enlarged_to_the_authors_limit = means(
    V15, MEANT, "Action: click(start_box='(182,112)')", task=step(screenshot_size=(330, 210))
)
test_a_mouse_drag_is_no_swipe = means(
    [adapter(name, prompt="computer") for name in ("ui_tars", "ui_tars_1_5")],
    Unsupported,
    "Action: drag(start_box='(500,500)', end_box='(490,142)')",
)

test_refusals = refuses(
    V1,
    ("Action: click(start_box='(1001,5)')", "outside the 1000 x 1000 frame", "CLICK"),
    *(("Action: click(start_box='=')", "not a point"), ("Action: click(start_box='[]')", "not a point")),
    ("Action: click()", "lacks 'start_box'", "CLICK"),
    ("Action: scroll(start_box='(5,5)', end_box='(5,5)')", "no length", "SCROLL"),
    ("Action: scroll(direction='sideways')", "sideways"),
    *(("Action: scroll(start_box='(5,5)')", "lacks 'direction'", "SCROLL"), ("Action: open_app()", "lacks 'app_name'", "OPEN")),
    *(("Action: open_app(app_name='')", "names no app", "OPEN"), ("Action: fly(to='Rome')", "'fly', which is not an action")),
    ("Action: tap(start_box='(1,2)')\n\nwait()", "'tap', which is not an action"),
    ("Thought: I could click(start_box='(5,5)') and", "no action"),
    ("Action: drag(start_box='(5,5)', direction='down')", "lacks its start or its end"),
    *(("Action: click(start_box='(5,5)', start_box='(6,6)')", "twice"), ("Action: click(start_box=(500,50", "ends inside")),
    *(("Action: type(content='cut of", "ends inside"), ("Thought: Empty action\nAction:", "no action")),
    *(('{"name": "wait", "arguments": ""}', "no action"), ("(500,500)", "no action")),
)

test_thoughts = thinks(
    V1,
    *(("Thought: I tap\nthe switch.\nAction: wait()", "I tap\nthe switch."), (" Reason: I tap.\nAction: wait()", "I tap.")),
    ("Reflection: wrong.\nAction_Summary: again\nAction: wait()", "wrong.\nAction_Summary: again"),
    *(("<think_x>I tap.</think_x>\n<computer_env>\nAction: wait()\n</computer_env>", "I tap."), ("Action: wait()", None)),
    *(("```\nAction: wait()\n```", None), ("```\nThought: I tap.\nAction: wait()\n```", "I tap.")),
    *(("**Thought:** I tap.\n**Action:** wait()", "I tap."), ("<think>Action plan</think>\nwait()", "Action plan")),
)


def test_what_no_prompt_lists_is_still_written_into_the_history() -> None:
    for action, call in (
        (Press(button="ENTER"), "type(content='\\n')"),
        (Wait(), "wait()"),
        (Stop(status="impossible"), "call_user()"),
    ):
        entry = reference_entry(step(action, low_level_instruction="Go on"))
        assert f"Thought: Go on\nAction: {call}" in V15.prepare_input(step(), [entry]).text
        with pytest.raises(ValueError, match="has no word for"):
            V15.render(step(), action)
