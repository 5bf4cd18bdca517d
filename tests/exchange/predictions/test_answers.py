"""What an answer means: AgentCPM-GUI's action objects and OS-Atlas's calls."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from guieval.actions import Action, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.errors import ParseError
from guieval.exchange.predictions.compact import KEYS, KIT_KEYS, compact_action
from guieval.exchange.predictions.os_atlas import call_action
from tests.rows import every_row

AT = Point(500.0, 200.0)


@every_row(
    ("message", "meant"),
    [
        *[({"POINT": [500, 200]}, Click(point=AT)), ({"POINT": [0, 1000]}, Click(point=Point(0.0, 1000.0)))],
        ({"POINT": [500, 200], "duration": 200}, Click(point=AT)),
        ({"POINT": [500, 200], "duration": 201}, LongPress(point=AT, duration=201.0)),
        ({"POINT": [500, 200], "to": "down"}, Scroll(point=AT, direction="down")),
        ({"POINT": [500, 200], "to": [500, 100]}, Scroll(point=AT, direction="up")),
        ({"POINT": [500, 200], "to": [400, 250]}, Scroll(point=AT, direction="left")),
        ({"POINT": [500, 200], "to": "up", "duration": 500}, Scroll(point=AT, direction="up")),
        ({"POINT": [500, 200], "duration": 10**400}, LongPress(point=AT, duration=sys.float_info.max)),
        *[({"PRESS": "HOME"}, Press(button="HOME")), ({"PRESS": "APPSELECT"}, Press(button="RECENT"))],
        *[({"TYPE": "hello"}, Type(text="hello")), ({"duration": 3000}, Wait(duration=3000.0))],
        *[({"STATUS": "finish"}, Stop(status="finish")), ({"STATUS": "satisfied", "POINT": [1, 2]}, Stop(status="finish"))],
        *[({"STATUS": "impossible"}, Stop(status="impossible")), ({"STATUS": "need_feedback"}, Stop(status="impossible"))],
        ({"STATUS": "continue", "thought": "...", "POINT": [500, 200]}, Click(point=AT)),
        ({"CLEAR": None}, Unsupported(name="CLEAR")),
    ],
)
def test_an_object_means_one_unified_action(message: dict[str, Any], meant: Action) -> None:
    assert compact_action(message) == meant


@every_row(
    ("message", "reason"),
    [
        *[(None, "no answer"), ('{"POINT":[1,2]', "not a JSON object"), ({}, "names no action")],
        *[({"Press": "BACK"}, "no key 'Press'"), ({"POINT": [1001, 2]}, "0 to 1000"), ({"POINT": [500.5, 2]}, "0 to 1000")],
        *[({"POINT": [True, 2]}, "0 to 1000"), ({"POINT": [1, 2, 3]}, "0 to 1000")],
        *[({"POINT": [1, 2], "TYPE": "x"}, "POINT and TYPE at once"), ({"to": "up"}, "without a POINT")],
        *[({"POINT": [1, 2], "to": "UP"}, "direction 'UP'"), ({"POINT": [1, 2], "to": [1, 2]}, "no length")],
        *[({"POINT": [1, 2], "duration": -1}, "duration -1"), ({"PRESS": "back"}, "PRESS 'back'"), ({"TYPE": 5}, "TYPE 5")],
        *[({"STATUS": "done"}, "STATUS 'done'"), ({"STATUS": "continue"}, "names no action")],
        ({"OPEN_APP": "Maps"}, "no key 'OPEN_APP'"),
        *(({"INPUT": joint}, "INPUT") for joint in ("hello", {"text": "hello"}, {"point": [1], "text": ""})),
        ({"INPUT": {"point": [1, 2], "text": "x", "more": 1}}, "INPUT"),
    ],
)
def test_what_the_schema_refuses_is_no_action(message: Any, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        compact_action(message, KIT_KEYS if reason == "INPUT" else KEYS)


def test_guievalkit_may_also_open_an_app() -> None:
    assert compact_action({"OPEN_APP": "Maps"}, KIT_KEYS) == Open(app="Maps")


@every_row(
    ("label", "meant"),
    [
        (Click(point=Point(1.0, 1.0)), Click(point=AT)),
        (Type(text="bye"), Type(text="hello")),
        (Press(button="BACK"), Type(text="hello")),
        (None, Type(text="hello")),
    ],
)
def test_a_joint_click_and_type_counts_as_what_the_label_is(label: Action | None, meant: Action) -> None:
    assert compact_action({"INPUT": {"point": [500, 200], "text": "hello"}}, KIT_KEYS, label=label) == meant


# --- OS-Atlas's calls ------------------------------------------------------------------------------------------------

MIDDLE = Point(500.0, 500.0)


@every_row(
    ("call", "meant"),
    [
        ("CLICK <point>[[101, 872]]</point>", Click(point=Point(101.0, 872.0))),
        ("CLICK <point>[[374.5,417.1]]</point>", Click(point=Point(374.5, 417.1))),
        ("LONG_PRESS <point>[[108,272]]</point>\n", LongPress(point=Point(108.0, 272.0))),
        *[("TYPE [Shanghai [old] mall]", Type(text="Shanghai [old] mall")), ("TYPE[HO1257]", Type(text="HO1257"))],
        *[("OPEN_APP [PocketBook]", Open(app="PocketBook")), ("PRESS_RECENT", Press(button="RECENT"))],
        *[("ENTER", Press(button="ENTER")), ("WAIT", Wait()), ("COMPLETE", Stop(status="finish"))],
        ("IMPOSSIBLE", Stop(status="impossible")),
        ("HOTKEY [CTRL_A]", Unsupported(name="HOTKEY", arguments={"text": "[CTRL_A]"})),
    ],
)
def test_a_call_means_one_unified_action(call: str, meant: Action) -> None:
    assert call_action(call, scroll_words="content") == meant


def test_a_scroll_names_the_content_or_the_finger_and_of_a_click_off_the_screen_the_type_is_known() -> None:
    assert call_action("SCROLL [UP]", scroll_words="content") == Scroll(point=MIDDLE, direction="down")
    assert call_action("SCROLL [UP]", scroll_words="finger") == Scroll(point=MIDDLE, direction="up")
    assert call_action("SCROLL [LEFT]", scroll_words="content") == Scroll(point=MIDDLE, direction="right")
    action = call_action("CLICK <point>[[1001,5]]</point>", scroll_words="content")
    assert isinstance(action, Unsupported) and action.known == "CLICK" and "outside" in (action.problem or "")


@every_row(
    ("call", "reason"),
    [
        *[("", "no answer"), ("click here", "not a call"), ("CLICK <point>[[101]]</point>", "no place")],
        *[("CLICK [[1,2]] and so on", "no place"), ("SCROLL [SIDEWAYS]", "none of up"), ("TYPE hello", "brackets")],
        *[("WAIT for the page", "other words"), ("JUMP [1]", "not an action of this family")],
    ],
)
def test_anything_else_is_no_action(call: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        call_action(call, scroll_words="content")
