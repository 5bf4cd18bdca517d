from __future__ import annotations

import pytest

from guieval.actions import Click, Drag, Open, Point, Press, Scroll, Stop, Type, Wait

from .steps import GROUNDING, adapter, outside, past, step
from .tables import means, reads, refuses, writes

MODEL = adapter("magicgui")
AT = Point(500.0, 750.0)


def test_the_chinese_prompt_has_no_place_for_a_past() -> None:
    text = MODEL.prepare_input(step(step_index=2, instruction="打开蓝牙"), past(2)).text
    assert text.startswith('已知用户在界面<image>，提出了要求\n"打开蓝牙"\n你认为合理的单步操作是什么？')
    assert text.endswith("如果你发现当前指令已完成，你需要输出action_completed()。")
    assert "settings" not in text
    assert MODEL.render(step(instruction="打开蓝牙"), Stop()) == "action_completed()"


def test_the_prompt_can_be_chosen() -> None:
    readme = adapter("magicgui", prompt="readme")
    assert '和用户指令"Turn on Wi-Fi"请输出' in readme.prepare_input(step(), ()).text
    assert readme.render(step(), Stop()) == "action_completed"
    assert "Instruction: " in adapter("magicgui", prompt="androidcontrol").prepare_input(step(instruction="打开"), ()).text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("zh", "根据英语短语的指令要求，找到屏幕截图中能够完成指令要求的控件位置，返回对应的bbox框，格式如"),
        ("en", "<image>\nAccording to the following instruction or description, find the object in the figure"),
    ],
)
def test_grounding_asks_for_a_box(name: str, words: str) -> None:
    text = adapter("magicgui", grounding=name).prepare_input(step(setting="grounding", instruction="the {query}"), ()).text
    assert text.startswith(words)
    assert text.endswith("the {query}")


test_calls = writes(MODEL, (Press(button="HOME"), "navigate_home()"))

test_tolerances = reads(
    MODEL,
    ("braces and quotes, as in the README", '{"tap(500,750)"}', Click(point=AT)),
    ("label", "Action: tap(500,750)", Click(point=AT)),
    ("text before another call", "text(1,2,hello)\ntap(3,4)", Type(text="hello")),
    *(("no brackets", "action_completed", Stop()), ("case", "Finish()", Stop())),
    ("parameter names", 'scroll(x=500, y=750, direction="up")', Scroll(point=AT, direction="up")),
    ("point in brackets", "tap((500,750))", Click(point=AT)),
    ("box tokens", "tap(<|box_start|>(400,700),(600,800)<|box_end|>)", Click(point=AT)),
    ("quoted text", 'text(1,2,"hello")', Type(text="hello")),
    ("quotes of the text's own", 'text(1,2,"a" or "b")', Type(text='"a" or "b"')),
    ("text with full-width brackets", "text(1,2,你好（呀）)", Type(text="你好（呀）")),
    ("quoted app", "call_api('微信', 'open')", Open(app="微信")),
    *(("a label like a call", "Wait: tap(1,2)", Click(point=Point(1, 2))), ("a bare call first", "wait\ntap(1,2)", Wait())),
    ("kill", "call_api(Amazon, kill)", outside("call_api", api_name="Amazon", operation="kill")),
    ("take over", "take_over(请您接管当前界面)", outside("take_over", message="请您接管当前界面")),
    ("screen shot", "long_screen_shot()", outside("long_screen_shot")),
    ("drag(1,2,3,4)", outside("drag", Drag(start=Point(1.0, 2.0), end=Point(3.0, 4.0)), x1=1.0, y1=2.0, x2=3.0, y2=4.0)),
    ("drag off the screen", "drag(1,2,3,1004)", outside("drag", x1=1.0, y1=2.0, x2=3.0, y2=1004.0)),
)

test_a_box_answers_a_query = means(
    MODEL,
    Click(point=AT),
    *("<|box_start|>(400, 700),(600, 800)<|box_end|>", "(400, 700),(600, 800)"),
    *('{"<|box_start|>(400,700)(600,800)<|box_end|>"}', "[400, 700, 600, 800]", "<point>(500,750)</point>", "tap(500,750)"),
    task=GROUNDING,
)

test_refusals = refuses(
    MODEL,
    *(("tap(500,75", "no place"), ("tap(500)", "no place"), ("tap(500,1001)", "outside", "CLICK")),
    *(("tap(1,2,3)", "does not end"), ("scroll(1,2,upwards)", "direction"), ("scroll(1,2)", "direction")),
    *(("text(1,2,hello", "ends inside"), ("text(1,2)", "inside|no text"), ("text(hello)", "no place")),
    *(("call_api(Amazon)", "names no app"), ("swipe(1,2,3,4)\ntap(1,2)", "'swipe', which is not an action")),
    ("I would use tap(1,2) here", "makes no call"),
)
test_a_part_of_a_box_is_none = refuses(MODEL, "(400, 700),(600, 8", task=GROUNDING)
