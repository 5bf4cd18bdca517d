"""Calls in the notations of devices and of function tags."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.actions import Answer, DeviceAction, DoubleClick, Drag, Hotkey, Hover, Point, RightClick, Unsupported
from guieval.errors import ParseError
from guieval.frames import PER_1000
from guieval.models.parsing import call_tables as calls
from guieval.models.parsing import function_calls, function_text
from tests.rows import every_row

TABLE = calls.CallTable(
    {
        "double": calls.double_clicked("at"),
        "right": calls.right_clicked("at"),
        "move": calls.hovered(*calls.XY),
        "drag": calls.dragged(("from",), ("to",)),
        "drag_to": calls.dragged((), ("to",)),
        "keys": calls.pressed_together("keys"),
        "answer": calls.answered("text"),
        "zoom": calls.OUTSIDE,
    }
)


@every_row(
    ("name", "arguments", "device"),
    [
        *(("double", {"at": [1, 2]}, DoubleClick(point=Point(1, 2))), ("right", {"at": [1, 2]}, RightClick(point=Point(1, 2)))),
        ("move", {"x": 1, "y": 2}, Hover(point=Point(1, 2))),
        ("drag", {"from": [1, 2], "to": [3, 4]}, Drag(start=Point(1, 2), end=Point(3, 4))),
        *(("drag_to", {"to": [3, 4]}, Drag(end=Point(3, 4))), ("keys", {"keys": ["Ctrl", "C"]}, Hotkey(keys=("ctrl", "C")))),
        ("keys", {"keys": "ctrl+shift t"}, Hotkey(keys=("ctrl", "shift", "t"))),
        *(("keys", {"keys": "['ctrl', 'c']"}, Hotkey(keys=("ctrl", "c"))), ("keys", {"keys": "+"}, Hotkey(keys=("+",)))),
        *(("answer", {"text": 7}, Answer(text="7")), ("zoom", {"factor": 2}, None)),
    ],
)
def test_a_call_keeps_its_own_words_and_states_what_it_does(
    name: str, arguments: dict[str, Any], device: DeviceAction | None
) -> None:
    action = TABLE.read(name, arguments, PER_1000, (100, 200))
    assert action == Unsupported(name=name, arguments=arguments, device=device)
    assert TABLE.write(action, list) == (name, arguments)


@every_row(
    ("name", "arguments"),
    [("double", {}), ("drag", {"from": [1, 2]}), ("keys", {"keys": []}), ("keys", {"keys": [1]}), ("right", {"at": "here"})],
)
def test_arguments_that_do_not_say_where_leave_the_call_without_a_meaning(name: str, arguments: dict[str, Any]) -> None:
    assert TABLE.read(name, arguments, PER_1000, (100, 200)) == Unsupported(name=name, arguments=arguments)


def test_the_calls_outside_the_unified_space() -> None:
    assert TABLE.outside("zoom") and TABLE.outside("drag") and not TABLE.outside("click")
    assert not calls.CallTable(click=calls.tap("at")).outside("click")


BLOCK = "<function=computer>\n<parameter=action>\ntype\n</parameter>\n<parameter=text>\na\n\nb\n</parameter>\n</function>"


def read(text: str) -> list[tuple[str, dict[str, str]]]:
    return [(call.name, dict(call.arguments)) for call in function_calls(text)]


@every_row(
    ("text", "calls"),
    [
        *((BLOCK, [("computer", {"action": "type", "text": "a\n\nb"})]), ("<function=wait></function>", [("wait", {})])),
        ("I wait. <function=wait>", [("wait", {})]),
        ("<function=type><parameter=content>a\n</parameter></function>", [("type", {"content": "a\n"})]),
        ("<function=type><parameter=content>\na\n\n</parameter></function>", [("type", {"content": "a\n"})]),
        ("<function=type><parameter=content>\na</parameter></function>", [("type", {"content": "a"})]),
        ("<function=a><parameter=x>1</parameter></function>\n<function=b></function>", [("a", {"x": "1"}), ("b", {})]),
        *(("<function=a> and <parameter=x>1</parameter>", [("a", {})]), ("no call", [])),
    ],
)
def test_calls(text: str, calls: list[tuple[str, dict[str, str]]]) -> None:
    assert read(text) == calls


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<function=a><parameter=text>cut", "ends inside the parameter 'text'"),
        ("<function=a><parameter=x>1</parameter><parameter=x>2</parameter>", "gives 'x' twice"),
        ("<function=a>" + "".join(f"<parameter=p{n}>1</parameter>" for n in range(41)), "more than 40 arguments"),
    ],
)
def test_unreadable(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        read(text)


@given(st.dictionaries(st.sampled_from("abc"), st.text().filter(lambda text: "</parameter>" not in text)), st.booleans())
def test_what_is_written_is_read(arguments: dict[str, str], lines: bool) -> None:
    assert read(function_text("f", arguments, lines=lines)) == [("f", arguments)]
