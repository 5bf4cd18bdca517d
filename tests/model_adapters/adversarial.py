"""Replies that make parsers slow: notations that are repeated or never closed, up to the longest answer of a model.

Each shape is a head, a unit and a tail; :func:`grown` repeats the unit up to a length. The shapes were found by a search over
the notations of all families, by what every adapter took longest for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

LONGEST = 30_000
"""Characters of the longest answer that a model is asked for (8,192 tokens)."""


class Shape(NamedTuple):
    head: str
    unit: str
    tail: str = ""


_ALONE = (
    *("{", "[", "(", "}", "]", ")", "'", '"', "\\", "\n", " ", "\t", ",", "=", "`", "*", "a", "1", "1,", "1 ", "1."),
    *("999999999", "0x", "<function=a>", "<parameter=a>", "</parameter>"),
    *("<function=a><parameter=a>1</parameter></function>", "<seed:tool_call>", "<gui_think>", "<operation>", "</operation>"),
    *("<action>click(x=1, y=1)</action>", "wait()\n", "<think>", "</think>", "</thought>", "<tool_call>", "<answer>"),
    *("</answer>", "<action>", "<box>", "<|box_start|>", "Action:", "\nAction:", "\nAction: ", "\nThought: ", "\nReason:"),
    *("click(", ".a(", "') a('", "(1,2)", "(1,>2)", "[[1,2]]", "[COMPLETE]", "\t[COMPLETE]", "{}"),
    *("：", "｛", "，", "（1，2）"),
    *("[]", "()", "{{", "'a'", "a'a", "', ", "',a", "\\'", "\\\\", "\\u", "CLICK <point>[[1,2]]</point>"),
    *("(?:\\[\\s*)?\\{\\s*[\\\"']", '{"a":', '{"a": "', "{'a': '\\'", "1+", "''", "```json", "enum['", "<|begin_of_box|>"),
    *("Click(box=(", "Type(content='a", "<conclusion>", '\\"', '"POINT"：[1，2]，', "tap(", "text(1,2,"),
    *("<think></think>", "(1,2", '{"point_2d": [', "```json\n[", '{"name": "', '{"action": ', "[1, "),
    *("[{'action': 'type', 'point': [1, 2], 'input_text': 'a", "\n{'action': "),
    *("{'action': 'type', 'point': [1, 2], 'input_text': 'it's', ", "Action: ", "Memory: x\n", "\n- Wait("),
    *('{"thought":"a" ', "call_api(a, ", "{\n<think>x", "\n<|im_end|>"),
)
SHAPES: tuple[Shape, ...] = (
    *(Shape("", unit) for unit in _ALONE),
    *(Shape('{"a": 1.', "1.", "}"), Shape("{'a': 1.", "1.", "}"), Shape("{'a': [", "1,", "]}"), Shape("{'a': '", "\\d", "'}")),
    *(Shape("{'a': \"x\", 'b': '", "1.", "'}"), Shape('{"a": [', "[],", "]]"), Shape("[[[[[[[[[[", "1,", "x")),
    *(Shape('"}Action：{"thought":"', "\n"), Shape('{"thought":"', '",  '), Shape("Action: type(content='", "\\'")),
    *(Shape("Action: type(content='", "'"), Shape("Action: type(content='", "', ")),
    *(Shape("Action: type(content='x", "\\\\\\n", "')"), Shape("\nAction: type(content='x" * 19, "'y")),
    *(Shape("\nAction: type(content='x" * 19, "\\'"), Shape("<action>Type(content='", "'y")),
    *(Shape("<action>Click(box=(", "1,", "))</action>"), Shape("<action>", "wait()\n", "</action>")),
    *(Shape("<action>", "wait();", "</action>"), Shape("<action>wait(", "1+", "1)</action>")),
    *(Shape("<action>write(message='", "a, ", "')</action>"), Shape("pyautogui.click(", "1,", ")")),
    *(Shape("```python\n", "pyautogui.click()\n", "```"), Shape("<tool_call><function=a>", "<parameter=a>1</parameter>")),
    *(Shape("<seed:tool_call>", "<function=wait></function>"), Shape("pyautogui.write(message='", "'y")),
    Shape("[\\mobile.swipe(from_coord=", "[\\s]*\\{\\s*[\\\"']"),
)


def grown(shape: Shape, length: int) -> str:
    """The shape with its unit repeated up to ``length`` characters."""
    return shape.head + shape.unit * ((length - len(shape.head) - len(shape.tail)) // len(shape.unit)) + shape.tail


def many_keys(length: int) -> str:
    """Arguments that all have names of their own, and no commas in between."""
    return " ".join(f"k{index}='x'" for index in range(length // 10))


def replies(length: int) -> Iterator[tuple[str, str]]:
    """Every adversarial reply of ``length`` characters, by a name for it."""
    for shape in SHAPES:
        yield f"{shape.head[:30]!r} + {shape.unit[:30]!r}... + {shape.tail!r}", grown(shape, length)
    for begun in ("Action: click(", "<action>Click(", "pyautogui.click("):
        yield f"{begun} with thousands of arguments", begun + many_keys(length)
