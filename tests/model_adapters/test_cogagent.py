"""CogAgent: what each call means, the parts of a reply, garbage that is refused, and the past."""

from __future__ import annotations

from dataclasses import replace

import pytest

from guieval.actions import Action, Click, LongPress, Open, Point, Press, Scroll, Stop, Type
from guieval.errors import ParseError
from guieval.history import reference_entry
from guieval.registry import load_model
from tests.rows import every_row

from .steps import step
from .tables import refuses

MODEL = load_model("cogagent-9b-20241220")
PLACE = Point(250.0, 400.0)
BOX = "[[200,300,300,500]]"


def read(text: str, setting: str = "high") -> Action:
    return MODEL.parse_response(step(setting=setting), text).action


@every_row(
    ("call", "action"),
    [
        (f"CLICK(box={BOX}, element_type='可点击文本', element_info='全部标为已读')", Click(point=PLACE)),
        (f"TYPE(box={BOX}, text='it\\'s', element_info='Search')", Type(text="it's")),
        (f"SCROLL_DOWN(box={BOX}, step_count=5, element_info='[None]')", Scroll(point=PLACE, direction="down")),
        (f"SCROLL_LEFT(box={BOX}, step_count=5)", Scroll(point=PLACE, direction="left")),
        *(("KEY_PRESS(key='Return')", Press(button="ENTER")), ("LAUNCH(app='饿了么', url='None')", Open(app="饿了么"))),
        *(("END()", Stop()), ("END", Stop())),
    ],
)
def test_calls(call: str, action: Action) -> None:
    thought = "Status: 当前处于邮箱界面[[0, 2, 998, 905]]。\nPlan: 1. 打开；\n2. 结束。"
    parsed = MODEL.parse_response(step(), f"{thought}\nAction: 点击按钮。\nGrounded Operation: {call}\n<<一般操作>>")
    assert (parsed.action, parsed.conclusion) == (action, "点击按钮。")
    assert parsed.thought == thought
    assert read(f"Grounded Operation: {call}") == action


test_garbage_is_no_action = refuses(
    MODEL,
    *("", "Action: 点击按钮。", "Grounded Operation: ", "Grounded Operation: FLY()"),
    ("Grounded Operation: CLICK(element_info='here')", "", "CLICK"),
    ("Grounded Operation: CLICK(box=[[200,300,300,3000]])", "", "CLICK"),
    "Grounded Operation: CLICK(box=[[200,300",
    ("Grounded Operation: LAUNCH(app='None', url='None')", "names no app", "OPEN"),
    "I would use CLICK on [[200,300,300,500]].",
)


def test_a_box_alone_answers_a_grounding_query_only() -> None:
    assert read("Grounded Operation: [[200,300,300,500]]", "grounding") == Click(point=PLACE)
    with pytest.raises(ParseError):
        read("Grounded Operation: [[200,300,300,500]]")
    assert "(Answer in Action-Operation format.)\n" in MODEL.prepare_input(step(setting="grounding"), ()).text


def test_the_past_is_calls_and_sentences() -> None:
    steps = [step(step_index=index, screenshot=f"{index}.png") for index in range(4)]
    past = [reference_entry(one) for one in steps[:3]]
    past[1] = replace(
        past[1], raw_response="Action: Type it.\nGrounded Operation: TYPE(box=[[1,2,3,4]], text='tea')\n<<一般操作>>"
    )
    past[2] = reference_entry(step(LongPress(point=PLACE), step_index=2))
    assert MODEL.prepare_input(steps[3], past).text.splitlines()[1:5] == [
        "History steps: ",
        "0. CLICK(box=[[500,750,500,750]])\tClick at (500, 750).",
        "1. TYPE(box=[[1,2,3,4]], text='tea')\tType it.",
        "2. \tLong press at (250, 400).",
    ]
