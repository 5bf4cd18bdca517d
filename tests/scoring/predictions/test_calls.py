"""OS-Atlas's calls."""

from __future__ import annotations

import pytest

from guieval.actions import Action, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.errors import ParseError
from guieval.scoring.predictions.os_atlas import call_action

MIDDLE = Point(500.0, 500.0)


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        ("CLICK <point>[[101, 872]]</point>", Click(point=Point(101.0, 872.0))),
        ("CLICK <point>[[374.5,417.1]]</point>", Click(point=Point(374.5, 417.1))),
        ("LONG_PRESS <point>[[108,272]]</point>\n", LongPress(point=Point(108.0, 272.0))),
        ("TYPE [Shanghai [old] mall]", Type(text="Shanghai [old] mall")),
        ("TYPE[HO1257]", Type(text="HO1257")),
        ("OPEN_APP [PocketBook]", Open(app="PocketBook")),
        ("PRESS_RECENT", Press(button="RECENT")),
        ("ENTER", Press(button="ENTER")),
        ("WAIT", Wait()),
        ("COMPLETE", Stop(status="finish")),
        ("IMPOSSIBLE", Stop(status="impossible")),
        ("HOTKEY [CTRL_A]", Unsupported(name="HOTKEY", arguments={"text": "[CTRL_A]"})),
    ],
)
def test_a_call_means_one_unified_action(call: str, meant: Action) -> None:
    assert call_action(call, scroll_words="content") == meant


def test_a_scroll_names_the_content_or_the_finger() -> None:
    assert call_action("SCROLL [UP]", scroll_words="content") == Scroll(point=MIDDLE, direction="down")
    assert call_action("SCROLL [UP]", scroll_words="finger") == Scroll(point=MIDDLE, direction="up")
    assert call_action("SCROLL [LEFT]", scroll_words="content") == Scroll(point=MIDDLE, direction="right")


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("", "no answer"),
        ("click here", "not a call"),
        ("CLICK <point>[[101]]</point>", "no place"),
        ("CLICK <point>[[1001,5]]</point>", "outside"),
        ("CLICK [[1,2]] and so on", "no place"),
        ("SCROLL [SIDEWAYS]", "none of up"),
        ("TYPE hello", "brackets"),
        ("WAIT for the page", "other words"),
        ("JUMP [1]", "not an action of this family"),
    ],
)
def test_anything_else_is_no_action(call: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        call_action(call, scroll_words="content")
