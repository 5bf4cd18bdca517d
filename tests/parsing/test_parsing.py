from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.errors import ParseError
from guieval.frames import PER_1000
from guieval.models.parsing import MAX_DEPTH, decoded, first_call, json_value, numbers, place, quoted, split_reasoning, tagged
from tests.json_values import read_json
from tests.rows import every_row

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcé"), inner, max_size=3),
    max_leaves=8,
)


def nested(depth: int) -> Any:
    return {"a": nested(depth - 1)} if depth else 1


@given(JSON.filter(lambda value: isinstance(value, dict | list)), st.sampled_from(["", "Sure: ", "```json\n"]), st.booleans())
def test_whatever_json_writes_is_read_back_inside_prose(value: Any, before: str, surplus: bool) -> None:
    text = before + json.dumps(value, ensure_ascii=surplus) + ("}]" if surplus else "\n``` I hope that helps :]")
    assert json_value(text) == value


@every_row(
    ("case", "text", "value"),
    [
        ("closing brackets missing", '{"a": {"b": [1, 2]', {"a": {"b": [1, 2]}}),
        ("surplus closing bracket", '{"a": [1, 2]}}', {"a": [1, 2]}),
        ("single quotes", "{'a': 'it is', 'b': (1, 2)}", {"a": "it is", "b": [1, 2]}),
        ("an apostrophe in double quotes", '{"a": "it\'s"}', {"a": "it's"}),
        ("Python constants", '{"a": True, "b": None}', {"a": True, "b": None}),
        *(("trailing comma", '[\n{"a": 1},\n]', [{"a": 1}]), ("raw newline in text", '{"a": "x\ny"}', {"a": "x\ny"})),
        *(("unknown escape", "{'a': 'C:\\d'}", {"a": "C:\\d"}), ("brackets in text", '{"a": "}{]["}', {"a": "}{]["})),
        ("bracketed prose before", 'I press [the button]. {"a": 1}', {"a": 1}),
        ("half a surrogate pair", '{"a": "\\ud83d"}', {"a": "\ufffd"}),
        ("an inch mark in prose before", '[a 5" screen] {"a": 1}', {"a": 1}),
        ("many brackets side by side", '{"a": ' + str([[1]] * 50) + "}", {"a": [[1]] * 50}),
        ("brackets nested as deep as is read", '{"a": ' * MAX_DEPTH + "1" + "}" * MAX_DEPTH, nested(MAX_DEPTH)),
    ],
)
def test_json_tolerances(case: str, text: str, value: Any) -> None:
    assert json_value(text) == value, case


@every_row(
    "written",
    [
        *("+1", "- 1", ".5", "1.", "1_0", "00", "0x1f", "0o17", "0b11", "True", "False", "None", "()", "(1,)", "(1)", "[1,]"),
        *("'b'", "r'd'", 'u"b"', '"b" "c"', "\"b\"'c'", '"b"r"c"', '"""b"""', r'"\x41"', r'"\'"', r'"\N{EM DASH}"'),
        *("{'b': 1}", "{'b': 1,}", '{"b": 1,}', '{"b"  "c": 1}', "1 # c\n", "# c\n 1", "1 \\\n", "\f1", "1\f", "1 # 'c\n"),
    ],
)
@every_row("around", ['{{"a": {}}}', '{{"a": 1, "b": [{}, 2]}}', '[{{"a": {}, "b": "c"}}]', "[1, {}]"])
def test_python_literals_are_read_after_json(written: str, around: str) -> None:
    text = around.format(written)
    with pytest.raises(ValueError):
        read_json(text)
    assert json_value(f"So: {text} or so") == as_json(ast.literal_eval(text))


def as_json(value: Any) -> Any:
    """``value`` with lists for tuples."""
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    return [as_json(item) for item in value] if isinstance(value, list | tuple) else value


PLAIN = st.sampled_from(["1", "-2.5", "1e3", '"a"', '"it\'s"', '"]"', '"\\n"'])
PYTHON = st.sampled_from(["True", "None", "0x1f", ".5", "+1", "'b'", "'\"'", "'{'", "'x' \"y\"", "()"])


def written_lists(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Lists, tuples and objects as Python may write them, trailing comma and all."""
    items = st.lists(inner, min_size=1, max_size=3)
    pairs = st.lists(
        st.tuples(st.sampled_from(['"k": ', "'k': ", '"l":', '""\t: ']), inner).map("".join), min_size=1, max_size=3
    )
    bracketed = st.tuples(items, st.sampled_from(["[{}]", "[{},]", "({},)"])) | st.tuples(
        pairs, st.sampled_from(["{{{}}}", "{{{},}}"])
    )
    return bracketed.map(lambda written: written[1].format(", ".join(written[0])))


@given(
    st.recursive(PLAIN | PYTHON, written_lists, max_leaves=6).filter(lambda text: text[0] in "{["),
    st.sampled_from(["", " ]", "}"]),
)
def test_whatever_python_writes_is_read(text: str, surplus: str) -> None:
    assert json_value(text + surplus) == as_json(ast.literal_eval(text))


@every_row(
    "text",
    [
        *("", "no JSON", '{"a": "cut off in the mid', '{"a": [1, 23', '{"a": 1, ', '{"a": {"b": 1}, "c":'),
        *('{"a": [1, 2], "b": "cut off', '{"a": [1, 2], "b": [3, 4)}', '{"a": broken} {"b": 1}'),
        *("[0x" + "f" * 15_000 + "]", "{0x" + "f" * 15_000 + ": 1}"),
        *('{"a": NaN}', '{"a": 1e999}', "{1: 2}", "{'a': {1, 2}}"),
        *("[" * 5000, '{"a": ' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1)),
        *('{"a": "say "hello" now"} {"b": 1}', '{"a": {{"b": 1}}}', '[1, {"a", "b"}] {"c": 1}', "{a: __import__('os')}"),
        '{"outer": broken, "inner": {"a": 1}}',
    ],
)
def test_unreadable_json_is_a_parse_error(text: str) -> None:
    with pytest.raises(ParseError):
        json_value(text)


@pytest.mark.filterwarnings("error")
@every_row("text", ["{'a': 1true}", "[1a]", "{'a': 12if}", "[1.5or 2]"])
def test_letters_in_a_number_are_refused_without_a_warning(text: str) -> None:
    with pytest.raises(ParseError):
        json_value(text)


def test_numbers_in_other_notations_are_read_as_python_has_them() -> None:
    assert json_value("{'a': [1e3, 0x1f, 2.5E-1, '3rd']}") == {"a": [1000.0, 31, 0.25, "3rd"]}


@given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["", "I will do it: ", "Action: "]))
def test_quoted_text_is_read_back(text: str, before: str) -> None:
    written = f"type(content={quoted(text)}, start_box='(1,2)')"
    call = first_call(f"{before}{written}\n\nclick(start_box='(3,4)')", ["type", "click"])
    assert (call.name, call.arguments) == ("type", {"content": text, "start_box": "(1,2)"})
    assert (call.text, call.end) == (written, len(before + written))


@every_row(
    ("case", "text", "arguments"),
    [
        ("unescaped quotes", "type(content='it's a \"test\", isn't it')", {"content": "it's a \"test\", isn't it"}),
        ("unescaped quote and another argument", "type(content='it's', app='x')", {"content": "it's", "app": "x"}),
        ("quotes before an escaped one", r"type(content='a 'b', \') c', app='x')", {"content": "a 'b', ') c", "app": "x"}),
        ("brackets in text", "type(content='f(x), g(y)')", {"content": "f(x), g(y)"}),
        ("double quotes", 'type(content="hello")', {"content": "hello"}),
        ("logged quotes", r"type(content=\'hello\')", {"content": "hello"}),
        ("no closing bracket", "type(content='hello'", {"content": "hello"}),
        ("words after", "type(content='(1,2)') and then I type(content='x')", {"content": "(1,2)"}),
        ("no quotes", "type(content=[1, 2], delay=100)", {"content": "[1, 2]", "delay": "100"}),
        ("escapes", r"type(content='a\nb\\c\'d\q')", {"content": "a\nb\\c'd\\q"}),
        ("escaped characters", r"type(content='\u4f60\u597d \ud83d\ude00 \users')", {"content": "你好 😀 \\users"}),
        ("upper case", "TYPE(content='a')", {"content": "a"}),
        ("another call after", "type(content='a'), click(start_box='(1,2)')", {"content": "a"}),
        ("another call after a blank", "type(content='a') press_back()", {"content": "a"}),
        ("another part after", "type(content='a') Thought: it's done", {"content": "a"}),
        ("a call in text", "type(content='f('x') g')", {"content": "f('x') g"}),
        *(("spaces", "type( content = 'a' , app = 'b' )", {"content": "a", "app": "b"}), ("no arguments", "type()", {})),
    ],
)
def test_call_tolerances(case: str, text: str, arguments: dict[str, str]) -> None:
    assert first_call(text, ["type"]).arguments == arguments, case


@every_row(
    "text",
    [
        *("", "type", "other(a='b')", "other(a='b')\ntype(content='second')", "type(content='cut o", "type(content=(50"),
        *("type('positional')", r"type(content=\'cut", "type(content='a', content='b')"),
    ],
)
def test_unreadable_calls_are_parse_errors(text: str) -> None:
    with pytest.raises(ParseError):
        first_call(text, ["type"])


@every_row(
    ("text", "found"),
    [
        *(("(1,2)", (1, 2)), ("[1, 2]", (1, 2)), ("<|box_start|>(1,2)<|box_end|>", (1, 2)), ("<point>1 2</point>", (1, 2))),
        *(("<bbox>1 2 3 4</bbox>", (1, 2, 3, 4)), ("(1,2),(3,4)", (1, 2, 3, 4)), ("1.5 -2", (1.5, -2)), ("（1，2）", (1, 2))),
        ("(1,2)<|im_end|>", (1, 2)),
    ],
)
def test_numbers(text: str, found: tuple[float, ...]) -> None:
    assert numbers(text) == found


@every_row("text", ["", "[]", "=", "x,y", "1e3 2", "1,2px", "<point>x1 y1</point>"])
def test_what_is_no_place_is_a_parse_error(text: str) -> None:
    with pytest.raises(ParseError):
        numbers(text)


@every_row(
    ("value", "found"),
    [
        *(([10, 20], (10, 20)), ([[10, 20]], (10, 20)), ([10, 20, 30, 40], (20, 30)), ([[10, 20], [30, 40]], (20, 30))),
        *(("10 20", (10, 20)), (["10", "20.5"], (10, 20.5))),
    ],
)
def test_place(value: object, found: tuple[float, float]) -> None:
    assert place(value) == found


@every_row("value", [[1], [1, 2, 3], [True, 1], [1, "x"], None, {"x": 1}, [], [10**400, 1]])
def test_no_place(value: object) -> None:
    with pytest.raises(ParseError):
        place(value)


def test_a_place_outside_the_screen_is_not_moved_inside() -> None:
    with pytest.raises(ParseError, match=r"\(1001, 5\) lies outside"):
        decoded([1001, 5], PER_1000, (100, 100))


@every_row(
    ("text", "thought", "rest"),
    [
        *(("<think>a</think><tool_call>", "a", "<tool_call>"), ("a\n</think>\n\n<tool_call>", "a", "\n\n<tool_call>")),
        ("<think>I could say <tool_call></think><tool_call>", "I could say <tool_call>", "<tool_call>"),
        ('<tool_call>{"text": "</think>"}', None, '<tool_call>{"text": "</think>"}'),
        ("<thinking>never closed <tool_call>", "never closed", "<tool_call>"),
        *(("<think>never closed, no answer", "never closed, no answer", ""), ("<think_7f>a</think_7f> b", "a", " b")),
        ("no tags", None, "no tags"),
    ],
)
def test_split_reasoning(text: str, thought: str | None, rest: str) -> None:
    assert split_reasoning(text, "<tool_call>") == (thought, rest)


def test_tagged() -> None:
    assert tagged("x <a> 1 </a> <a>2</a>", "a") == "1"
    assert tagged("<a>cut", "a") == "cut"
    assert tagged("a", "a") is None


@given(st.text())
def test_readers_raise_nothing_but_parse_errors(text: str) -> None:
    for read in (json_value, numbers, lambda value: first_call(value, ["type"])):
        try:
            read("type(" + text)
            read("{" + text)
        except ParseError:
            continue


@every_row("piece", ["a", "[", "{}", "'", "\\", " ", "\n", "type(", "</think>", "{'a':"])
def test_a_model_stuck_in_a_loop_is_read_in_linear_time(piece: str) -> None:
    text = "type(" + piece * (300_000 // len(piece))
    split_reasoning(text, "Action")
    for read in (json_value, numbers, lambda value: first_call(value, ["type"])):
        try:
            read(text)
        except ParseError:
            continue
