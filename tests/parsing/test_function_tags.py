"""Calls in tags: what is read, what is part of a value, and what is cut off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.errors import ParseError
from guieval.models.parsing import function_calls, function_text
from tests.rows import every_row

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
