"""Reads calls in tags: ``<function=NAME><parameter=KEY>value</parameter></function>``, as Qwen3.5 and UI-TARS-2 write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from guieval.errors import ParseError
from guieval.models.parsing.calls import MAX_ARGUMENTS, MAX_CALLS, CallExpression

_WORD = r"\s{0,9}([A-Za-z_]\w{0,40})\s{0,9}>"
_FUNCTION = re.compile(rf"<function={_WORD}(?!\s{{0,9}}<function=)")
_PARAMETER = re.compile(rf"\s*(?:</parameter>\s*)?<parameter={_WORD}")
_CUT = re.compile(r"\s*<(?!/)[^<>]{0,60}\Z")
_END = re.compile(rf"</parameter>|(?=<parameter={_WORD}|</function>)")


def function_calls(text: str) -> Iterator[CallExpression]:
    """The calls of a text in order, at most 1,000.

    A new line after a parameter's tag, and then one in front of its end, are not part of the value. Tolerated: words around
    the calls, a missing ``</function>``, a tag written twice, and a value that the next parameter's tag or ``</function>``
    ends, all as in vLLM's reader of this form (``qwen3coder_tool_parser.py``). A value that nothing ends is cut off, and a
    :class:`ParseError`, as is a parameter given twice.
    """
    position = 0
    for _ in range(MAX_CALLS):
        opened = _FUNCTION.search(text, position)
        if opened is None:
            return
        arguments: dict[str, str] = {}
        position = opened.end()
        while (named := _PARAMETER.match(text, position)) is not None:
            key, start = named[1], named.end()
            end = _END.search(text, start)
            if end is None:
                raise ParseError(f"the response ends inside the parameter {key!r}")
            if arguments.get(key):
                raise ParseError(f"the response's call gives {key!r} twice")
            if len(arguments) == MAX_ARGUMENTS:
                raise ParseError(f"the response's call has more than {MAX_ARGUMENTS} arguments")
            value = text[start : end.start()]
            arguments[key] = value[1:].removesuffix("\n") if value.startswith("\n") else value
            position = end.end()
        if _CUT.match(text, position):
            raise ParseError("the response ends inside the tag of a parameter")
        yield CallExpression(opened[1], arguments, text[opened.start() : position], position)


def function_text(name: str, arguments: Mapping[str, object], *, lines: bool = True) -> str:
    """A call as :func:`function_calls` reads it back: each tag and value on a line, or all in one.

    A value that begins with a new line is put on lines of its own in any case.
    """
    between = "\n" if lines else ""
    parts = [f"<function={name}>{between}"]
    for key, value in arguments.items():
        words = str(value)
        around = between or ("\n" if words.startswith("\n") else "")
        parts.append(f"<parameter={key}>{around}{words}{around}</parameter>{between}")
    return "".join([*parts, "</function>"])
