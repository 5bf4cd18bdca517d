"""ScaleCUA: the functions of phones and computers, places as pixels and as fractions, and the prompts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from guieval.actions import (
    Answer,
    Click,
    DoubleClick,
    Drag,
    Hotkey,
    LongPress,
    Open,
    Point,
    Press,
    RightClick,
    Scroll,
    Stop,
    Type,
    Wait,
)
from guieval.history import reference_entry
from guieval.models import ABCModel
from guieval.registry import adapter_class, load_model, model_config
from guieval.testing.conformance import check_adapter

from .steps import step
from .tables import reads, refuses

PHONE = load_model("scalecua-7b")


def computer(*, thinking: bool | None = None) -> ABCModel:
    config = model_config("scalecua-7b").model_copy(update={"options": {"prompt": "computer"}})
    return adapter_class("scalecua")(config, thinking=thinking)


COMPUTER = computer()
WIDTH, HEIGHT = map(int, PHONE.frame(step()).extent(step().screenshot_size))
CORNER, MIDDLE = Point(1000.0, 0.0), Point(500.0, 500.0)


def written(*calls: str) -> str:
    lines = "\n".join(calls)
    return f"<think>\nI see it.\n</think>\n<operation>\nDo it.\n</operation>\n<action>\n{lines}\n</action>"


test_functions_of_phones = reads(
    PHONE,
    (f"click(x={WIDTH}, y=0)", Click(point=CORNER)),
    (f"click({WIDTH}, 0)", Click(point=CORNER)),
    ("click(x=1.0, y=0.0)", Click(point=CORNER)),
    ("click(x=0.5, y=0.5)", Click(point=MIDDLE)),
    ("click(x=1, y=1)", Click(point=Point(1000 / WIDTH, 1000 / HEIGHT))),
    (f"long_press(x={WIDTH}, y=0, duration=2)", LongPress(point=CORNER, duration=2000.0)),
    ("swipe(from_coord=[0.5, 0.5], to_coord=[0.5, 0.1])", Scroll(point=MIDDLE, direction="up", distance=400.0)),
    (f"swipe(from_coord=[{WIDTH}, 0], to_coord=[0, 0])", Scroll(point=CORNER, direction="left", distance=1000.0)),
    ("swipe(direction='down', amount=0.5)", Scroll(point=MIDDLE, direction="down")),
    ("swipe(from_coord=[0.5, 0.5], direction='left')", Scroll(point=MIDDLE, direction="left")),
    ("swipe()", Scroll(point=MIDDLE, direction="up")),
    ("write(message='a \"b\"')", Type(text='a "b"')),
    ("write(message='it's')", Type(text="it's")),
    ("open_app(app_name='Clock')", Open(app="Clock")),
    ("navigate_back()", Press(button="BACK")),
    ("navigate_home()", Press(button="HOME")),
    ("wait()", Wait(duration=3000.0)),
    ("wait(seconds=1)", Wait()),
    ("terminate(status='failure', info='none')", Stop(status="impossible")),
    ("terminate()", Stop(status="finish")),
    wrap=written,
    thought="I see it.",
    conclusion="Do it.",
    batch=(),
)

test_functions_of_computers = reads(
    COMPUTER,
    ("scroll(clicks=-5)", Scroll(point=MIDDLE, direction="up", distance=500_000 / 2400)),
    ("scroll(5)", Scroll(point=MIDDLE, direction="down", distance=500_000 / 2400)),
    ("press(keys='enter')", Press(button="ENTER")),
    ("press('enter')", Press(button="ENTER")),
    wrap=written,
)

test_functions_beyond_the_unified_space = reads(
    COMPUTER,
    (f"doubleClick(x={WIDTH}, y=0)", DoubleClick(point=CORNER)),
    (f"click(x={WIDTH}, y=0, button='right')", RightClick(point=CORNER)),
    ("hotkey('ctrl', 'c')", Hotkey(keys=("ctrl", "c"))),
    ("dragTo(x=1.0, y=0.0)", Drag(end=CORNER)),
    ("response(answer='7')", Answer(text="7")),
    ("call_user()", None),
    ("keyDown(key='a')", None),
    wrap=written,
)


def test_all_calls_of_a_reply_are_carried_out() -> None:
    parsed = COMPUTER.parse_response(step(), written("click(x=0.5, y=0.5)", "  write(message='a')", "fly()", "wait()"))
    assert (parsed.action, parsed.batch) == (Click(point=MIDDLE), (Click(point=MIDDLE), Type(text="a")))


test_garbage_is_no_action = refuses(
    (PHONE, COMPUTER),
    "",
    "I click at (5, 5).",
    "<action>\n</action>",
    written("fly()"),
    written("click()"),
    written("click(x=9999, y=9999)"),
    written("click(x=5, y="),
    written("__import__('os').system('true')"),
    written("scroll(clicks=0)"),
)


@pytest.mark.parametrize("thinking", [True, False])
def test_the_computer_prompt_conforms(thinking: bool) -> None:
    assert [str(finding) for finding in check_adapter(computer(thinking=thinking), "computer")] == []


@pytest.mark.parametrize("model", [PHONE, COMPUTER])
def test_the_past_is_the_operations(model: ABCModel) -> None:
    past = [replace(reference_entry(step(step_index=index)), conclusion=f"Do {index}.") for index in range(2)]
    _, request = model.prepare_input(step(step_index=2), past).messages
    assert "Previous operations:\nStep 1: Do 0.\nStep 2: Do 1.\n" in "".join(map(str, request.parts))
    _, first = model.prepare_input(step(), ()).messages
    assert str(first.parts[-1]).strip().endswith("Previous operations:" if model is PHONE else "Previous operations:\nNone")
