from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Action, Answer, Click, Hotkey, LongPress, Open, Point, Press, Stop, Type, Wait
from guieval.frames import Size, smart_resize
from guieval.history import HistoryEntry, reference_entry
from guieval.models import ABCModel, ImageRef, Message
from guieval.registry import load_model
from tests.rows import every_row

from .steps import GROUNDING, adapter, outside, own, scroll, step
from .tables import means, reads, refuses, thinks, writes

NAVI_7B = load_model("ui-venus-navi-7b")
NAVI_72B = load_model("ui-venus-navi-72b")
GROUND_72B = load_model("ui-venus-ground-72b")


def asked(model: ABCModel, history: tuple[HistoryEntry, ...] = (), **changes: Any) -> str:
    """The user's text, whose layout is the published one: system message, then text, then screenshot."""
    task = step(**changes)
    system, user = model.prepare_input(task, history).messages
    assert system == Message("system", ("You are a helpful assistant.",))
    text, image = user.parts
    assert user.role == "user"
    assert isinstance(text, str)
    assert isinstance(image, ImageRef)
    assert image.task == task
    return text


def test_an_own_action_is_repeated_as_it_was_written() -> None:
    raw = "<think>\nThe bar.\n</think>\n<action>\nClick(box=(322,1071))\n</action>\n<conclusion>\nTapped.\n</conclusion>"
    text = asked(NAVI_7B, (own(NAVI_7B, raw),))
    assert "Step 0: <think>The bar.</think><action>Click(box=(322,1071))</action>\n" in text and "Tapped." not in text
    untagged = own(NAVI_7B, "Click(box=(322,1071))\nDone.")
    assert "Step 0: <think></think><action>Click(box=(322,1071))</action>\n" in asked(NAVI_7B, (untagged,))


@every_row(
    ("action", "result"),
    [
        (Stop(status="impossible"), "Finished(content='Report that the task is impossible.')"),
        *((Stop(), "Finished(content='')"), (Press(button="RECENT"), "PressRecent()")),
        *((outside("CallUser", content="7"), "CallUser(content='7')"), (outside("zoom", factor=2), "zoom(factor='2')")),
    ],
)
def test_every_past_action_is_written(action: Action, result: str) -> None:
    assert f"<action>{result}</action>" in asked(NAVI_7B, (reference_entry(step(action)),))


test_a_click = writes(
    NAVI_7B, (Click(point=Point(500.0, 750.0)), "Click(box=(322, 1071))"), wrap=lambda call: f"<action>\n{call}\n</action>"
)


@every_row(
    ("size", "resized"),
    [
        ((5120, 2880), (4760, 2688)),  # qwen-vl-utils' own limit comes first
        *(((6016, 3384), (4760, 2688)), ((3840, 2160), (3836, 2156)), ((1920, 1080), (2352, 1344))),
        ((1366, 768), (2380, 1316)),  # enlarged from 1372 x 756, not from the screenshot
        ((1170, 2532), (1232, 2604)),
    ],
)
def test_ground_72b_resizes_twice_as_its_script_does(size: Size, resized: Size) -> None:
    task = step(setting="grounding", screenshot_size=size)
    assert GROUND_72B.frame(task).extent(size) == resized
    sent = GROUND_72B.prepare_input(task, ()).images[0].resize
    assert smart_resize(sent or size, 28, 3_110_400, 12_845_056) == resized
    width, height = resized
    action = GROUND_72B.parse_response(task, f"[{width},{height},{width},{height}]").action
    assert action == Click(point=Point(1000.0, 1000.0))


def test_the_frame_without_the_first_resize_can_be_chosen_and_is_audited() -> None:
    other = adapter("ui_venus_navi", min_pixels=3_110_400, max_pixels=48_000_000)
    assert other.frame(step(setting="grounding", screenshot_size=(5120, 2880))).extent((5120, 2880)) == (5124, 2884)
    assert [frame.extent((5120, 2880)) for frame in other.disputed_frames] == [(4760, 2688)]
    assert [frame.extent((5120, 2880)) for frame in GROUND_72B.disputed_frames] == [(5124, 2884)]
    assert not load_model("ui-venus-navi-72b").disputed_frames


def test_the_authors_grounding_example(shared_data: Path) -> None:
    """Their published result states the reply and the point read from it, on a 1920 x 1080 screen of OSWorld-G."""
    folder = shared_data / "ui_venus_trace"
    example = json.loads((folder / "grounding_result_format.json").read_text(encoding="utf-8"))["details"][0]
    task = step(setting="grounding", screenshot_size=(1920, 1080))
    action = GROUND_72B.parse_response(task, example["raw_response"][0]).action
    assert isinstance(action, Click)
    assert (action.point.x * 1.92, action.point.y * 1.08) == pytest.approx(tuple(example["pred"]), abs=1e-9)


MIDDLE = Point(500.0, 500.0)  # (322, 714) of 644 x 1428


def tagged(call: str) -> str:
    return f"<think>\nThe bar.\n</think>\n<action>\n{call}\n</action>\n<conclusion>\nTapped it.\n</conclusion>"


test_replies = reads(
    NAVI_7B,
    ("published form", tagged("Click(box=(322, 714))"), Click(point=MIDDLE)),
    ("square brackets", tagged("Click(box=[322, 714])"), Click(point=MIDDLE)),
    ("cut off after the call", "<think>a</think>\n<action>\nClick(box=(322, 714))", Click(point=MIDDLE)),
    ("bracket missing at the end of a text", "<action>Type(content='a'</action>", Type(text="a")),
    ("rehearsed", "<think>not <action>Wait()</action></think>" + tagged("PressBack()")[25:], Press(button="BACK")),
    ("continued turn", "<action>\nClick(box=(322, 714))\n</action>\n<conclusion>\nx\n</conclusion>", Click(point=MIDDLE)),
    ("continued within the tag", "Click(box=(322, 714))</action>", Click(point=MIDDLE)),
    ("no action tag, on a line of its own", "I tap the bar.\n\n- Click(box=(322, 714))", Click(point=MIDDLE)),
    ("two turns", tagged("PressHome()") + "\n" + tagged("Wait()"), Press(button="HOME")),
    ("no brackets", tagged("PressEnter"), Press(button="ENTER")),
    ("long press", tagged("LongPress(box=(322, 714))"), LongPress(point=MIDDLE)),
    ("recorded scroll's form", tagged("Scroll(start=(322, 714), end=(322, 900), direction='down')"), scroll("down", 130.252)),
    ("the path decides", tagged("Scroll(start=(322, 714), end=(322, 100), direction='down')"), scroll("up", 429.972)),
    ("scroll without a word", tagged("Scroll(start=(322, 714), end=(600, 714))"), scroll("right", 431.677)),
    ("scroll by word alone", tagged("Scroll(direction='Up')"), scroll("up")),
    ("drag", tagged("Drag(start=(322, 714), end=(10, 714))"), scroll("left", 484.472)),
    ("type", tagged("Type(content='壁纸_3.jpg')"), Type(text="壁纸_3.jpg")),
    ("quotes not escaped", tagged("Type(content='it's (a) 'test', yes')"), Type(text="it's (a) 'test', yes")),
    ("line break in the text", tagged("Type(content='a\nb')"), Type(text="a\nb")),
    ("the tag in a text", tagged("Type(content='</action>')"), Type(text="</action>")),
    ("the other tag in a text", "<action>Type(content='</think>')</action>", Type(text="</think>")),
    ("no text", tagged("Type(content='')"), Type(text="")),
    ("launch", tagged("Launch(app='Visual Studio Code')"), Open(app="Visual Studio Code")),
    ("launch with an empty address", tagged("Launch(app='Maps', url='')"), Open(app="Maps")),
    ("address", tagged("Launch(app='', url='a.b')"), outside("Launch", app="", url="a.b")),
    *(("wait", tagged("Wait()"), Wait()), ("recent", tagged("PressRecent()"), Press(button="RECENT"))),
    ("finished", tagged("Finished(content='')"), Stop()),
    ("finished with words", tagged("Finished(content='The size is 3 MB.')"), Stop()),
    ("finished without", tagged("Finished()"), Stop()),
    ("answer", tagged("CallUser(content='7 (of 9)')"), outside("CallUser", Answer(text="7 (of 9)"), content="7 (of 9)")),
    ("web page", tagged("Hotkey(keys=['ctrl', 'c'])"), outside("Hotkey", Hotkey(keys=("ctrl", "c")), keys="['ctrl', 'c']")),
)

test_refuses = refuses(
    NAVI_7B,
    (tagged("Click(box=(645, 0))"), r"\(645, 0\) lies outside the 644 x 1428 frame", "CLICK"),
    *((tagged("Click(box=(-1, 0))"), "outside", "CLICK"), (tagged("Click(box=(322))"), "holds 1 numbers")),
    *((tagged("Click(box=(a, b))"), "is not a point"), (tagged("Click()"), "Click lacks 'box'", "CLICK")),
    *((tagged("Click((322, 714))"), "cannot be read"), (tagged("Click on the bar."), "has no action")),
    (tagged("DoubleTap(box=(1, 2))"), "'DoubleTap', which is not an action"),
    (tagged("Scroll(start=(1, 2), end=(1, 2))"), "no length", "SCROLL"),
    (tagged("Scroll(start=(1, 2), direction='up')"), "neither start and end", "SCROLL"),
    *((tagged("Scroll(direction='down/up/right/left')"), "none of up"), (tagged("Scroll()"), "neither", "SCROLL")),
    *((tagged("Type()"), "Type lacks 'content'", "TYPE"), (tagged("Launch(app='')"), "names no app", "OPEN")),
    *((tagged(""), "no <action>"), ("<action>Type(content='abc", "ends inside a quoted value")),
    *(("<action>Click(box=(322, 71", "ends inside a value"), ("<think>I could <action>Wait()</action></think>", "no <action>")),
    *(("<think>Click(box=(322, 714))", "no <action>"), ("I would call Click(box=(322, 714)) here.", "no <action>")),
    *(("<action>Click on it.</action>\n<action>Wait()</action>", "has no action"), ("[322, 714, 322, 714]", "no <action>")),
    ("", "no <action>"),
)

test_thought_and_conclusion = thinks(
    NAVI_7B,
    (tagged("Wait()"), "The bar.", "Tapped it."),
    ("<think>not <action>a</action> but\n</think><action>Wait()</action>", "not <action>a</action> but", None),
    *(("<action>Wait()</action>", None, None), ("<action>Wait()</action>" + tagged("PressBack()"), None, None)),
)

test_grounding_answers = means(
    NAVI_7B,
    Click(point=MIDDLE),
    *("[322, 714]", "(322, 714)", "(320,710),(324,718)", "The box is [320, 710, 324, 718]."),
    *("```json\n[320, 710, 324, 718]\n```", '```json\n[{"bbox_2d": [320, 710, 324, 718], "label": "bar"}]\n```'),
    tagged("Click(box=(322, 714))"),
    "<think>Not [1,2,3,4].</think>\n[320,710,324,718]",
    task=GROUNDING,
)

test_no_grounding_answers = refuses(
    NAVI_7B,
    *("[320,710,324,7", "[320, 710, 324]"),
    ("[-1,-1,-1,-1]", "outside", "CLICK"),
    *("[]", "(322, 71", "322 714", "none", "", "<think>At [1,2,3,4]", "<think>[1,2,3,4]</think>"),
    task=GROUNDING,
)
