from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from guieval.actions import Action, Click, Drag, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.errors import ParseError, UsageError
from guieval.history import HistoryEntry, reference_entry
from guieval.models import ImageRef

from .steps import adapter, past, step

MODEL = adapter("magicgui")
AT = Point(500.0, 750.0)


def test_the_english_prompt_holds_the_history() -> None:
    own = HistoryEntry(step(step_index=1), Type(text="wifi"), None, None, "text(512,80,wifi)", "model")
    plain = reference_entry(step(Press(button="RECENT"), step_index=2))
    task = step(step_index=3)
    (message,) = MODEL.prepare_input(task, (*past(1), own, plain)).messages
    image, text = message.parts
    assert (message.role, image) == ("user", ImageRef(task, (504, 1148)))
    assert isinstance(text, str)
    assert text.startswith(
        "You are a well-trained mobile intelligent agent capable of assisting users with step-by-step navigation tasks. "
        "Given the current smartphone screenshot <image> and the user instruction:\n"
        'Instruction: "Turn on Wi-Fi"\n'
        'Action History: "Open the settings \ntext(512,80,wifi) \nPress the recent button. \n"\n\n'
        "Please output the correct function call"
    )
    assert text.endswith("    8. finish() The user task is finished.\n    ")


def test_a_step_instruction_takes_the_goals_place() -> None:
    text = MODEL.prepare_input(step(setting="low", low_level_instruction="Tap Wi-Fi"), ()).text
    assert 'Instruction: "Tap Wi-Fi"\nAction History: ""\n\n' in text
    assert "Turn on Wi-Fi" not in text


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


def test_thinking_is_refused() -> None:
    with pytest.raises(UsageError, match="no thinking switch"):
        adapter("magicgui", thinking=True)
    with pytest.raises(UsageError, match="cannot be given a thought"):
        MODEL.prepare_fixed_thought(step(), (), "x")


WORDS: list[tuple[Action, str]] = [
    (Click(point=AT), "tap(500,750)"),
    (LongPress(point=AT), "long_press(500,750)"),
    (Scroll(point=AT, direction="up"), "scroll(500,750,up)"),
    (Type(text="good (very), really"), "text(0,0,good (very), really)"),
    (Open(app="Amazon"), "call_api(Amazon, open)"),
    (Press(button="BACK"), "navigate_back()"),
    (Press(button="HOME"), "navigate_home()"),
    (Press(button="ENTER"), "enter()"),
    (Wait(), "wait()"),
    (Stop(), "finish()"),
    (Stop(status="impossible"), "no_answer()"),
]


@pytest.mark.parametrize(("action", "text"), WORDS)
def test_calls(action: Action, text: str) -> None:
    assert MODEL.render(step(), action) == text
    assert MODEL.parse_response(step(), text).action == action


TOLERATED: dict[str, tuple[str, Action]] = {
    "braces and quotes, as in the README": ('{"tap(500,750)"}', Click(point=AT)),
    "fence": ("```\ntap(500,750)\n```", Click(point=AT)),
    "label": ("Action: tap(500,750)", Click(point=AT)),
    "trailing prose": ("tap(500,750) opens the menu.", Click(point=AT)),
    "several calls": ("tap(500,750)\nfinish()", Click(point=AT)),
    "text before another call": ("text(1,2,hello)\ntap(3,4)", Type(text="hello")),
    "missing bracket after a word": ("scroll(500,750,up", Scroll(point=AT, direction="up")),
    "special token": ("navigate_back()<|im_end|>", Press(button="BACK")),
    "no brackets": ("action_completed", Stop()),
    "case": ("Finish()", Stop()),
    "full-width": ("scroll（500，750，up）", Scroll(point=AT, direction="up")),
    "numbers in quotes": ('tap("500", "750")', Click(point=AT)),
    "parameter names": ('scroll(x=500, y=750, direction="up")', Scroll(point=AT, direction="up")),
    "floats": ("tap(500.0, 750.0)", Click(point=AT)),
    "point in brackets": ("tap((500,750))", Click(point=AT)),
    "box tokens": ("tap(<|box_start|>(400,700),(600,800)<|box_end|>)", Click(point=AT)),
    "quoted text": ('text(1,2,"hello")', Type(text="hello")),
    "quotes of the text's own": ('text(1,2,"a" or "b")', Type(text='"a" or "b"')),
    "text with full-width brackets": ("text(1,2,你好（呀）)", Type(text="你好（呀）")),
    "quoted app": ("call_api('微信', 'open')", Open(app="微信")),
    "a label like a call": ("Wait: tap(1,2)", Click(point=Point(1, 2))),
    "a bare call first": ("wait\ntap(1,2)", Wait()),
    "kill": ("call_api(Amazon, kill)", Unsupported(name="call_api", arguments={"api_name": "Amazon", "operation": "kill"})),
    "take over": ("take_over(请您接管当前界面)", Unsupported(name="take_over", arguments={"message": "请您接管当前界面"})),
    "drag": (
        "drag(1,2,3,4)",
        Unsupported(
            name="drag",
            arguments={"x1": 1.0, "y1": 2.0, "x2": 3.0, "y2": 4.0},
            device=Drag(start=Point(1.0, 2.0), end=Point(3.0, 4.0)),
        ),
    ),
    "drag off the screen": (
        "drag(1,2,3,1004)",
        Unsupported(name="drag", arguments={"x1": 1.0, "y1": 2.0, "x2": 3.0, "y2": 1004.0}),
    ),
    "screen shot": ("long_screen_shot()", Unsupported(name="long_screen_shot")),
}


@pytest.mark.parametrize("name", TOLERATED)
def test_tolerances(name: str) -> None:
    text, action = TOLERATED[name]
    assert MODEL.parse_response(step(), text).action == action


@pytest.mark.parametrize(
    "text",
    [
        "<|box_start|>(400, 700),(600, 800)<|box_end|>",
        "(400, 700),(600, 800)",
        '{"<|box_start|>(400,700)(600,800)<|box_end|>"}',
        "[400, 700, 600, 800]",
        "<point>(500,750)</point>",
        "tap(500,750)",
    ],
)
def test_a_box_answers_a_query(text: str) -> None:
    assert MODEL.parse_response(step(setting="grounding"), text).action == Click(point=AT)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tap(500,75", "no place"),
        ("tap(500)", "no place"),
        ("tap(500,1001)", "outside"),
        ("tap(1,2,3)", "does not end"),
        ("scroll(1,2,upwards)", "direction"),
        ("scroll(1,2)", "direction"),
        ("text(1,2,hello", "ends inside"),
        ("text(1,2)", "inside|no text"),
        ("text(hello)", "no place"),
        ("call_api(Amazon)", "names no app"),
        ("swipe(1,2,3,4)\ntap(1,2)", "'swipe', which is not an action"),
        ("I would use tap(1,2) here", "makes no call"),
    ],
)
def test_refusals(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        MODEL.parse_response(step(), text)
    with pytest.raises(ParseError):
        MODEL.parse_response(step(setting="grounding"), "(400, 700),(600, 8")


def test_a_looping_reply_is_read_in_linear_time() -> None:
    for unit in ("tap(", "tap(" + "\n" * 9, "text(1,2,", "(1,2", "\n", "call_api(a, "):
        with pytest.raises(ParseError):
            MODEL.parse_response(step(), unit * (60_000 // len(unit)))


def test_published_examples(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ten rows of the README's action table. Those whose places are letters hold no action; the source states no reading."""
    counts: Counter[str] = Counter()
    for line in (shared_data / "model_outputs" / "magicgui.jsonl").read_text(encoding="utf-8").splitlines():
        text = json.loads(line)["raw_response"]
        try:
            counts[MODEL.parse_response(step(), text).action.type] += 1
        except ParseError as error:
            assert "no place" in str(error) or "names no app" in str(error), text
            counts["placeholders"] += 1
    with capsys.disabled():
        print("\nmagicgui: " + "; ".join(f"{count} {what}" for what, count in counts.most_common()))
    assert counts == {"placeholders": 5, "UNSUPPORTED": 2, "WAIT": 1, "PRESS": 1, "STOP": 1}
