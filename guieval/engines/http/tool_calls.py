"""Function calls of a chat completion as text, so that a journal stores one text per reply and adapters parse only text.

The format is the one that models without a function-call interface write (Hermes, Qwen): each call is a JSON object between
``<tool_call>`` and ``</tool_call>``, after the message's text.
"""

from __future__ import annotations

import json
import re
from typing import Any

_OPENED = re.compile(r"\n?<tool_call>\n")


def calls_as_text(content: str, calls: object) -> str:
    """``content`` followed by the function calls of a message; only ``content`` if ``calls`` holds none.

    Arguments that are not a complete JSON object (usually cut off) are kept as text, so that a reader sees where they end.
    Missing arguments, which servers send for functions without parameters, become an empty object.
    """
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    written = [
        f'{{"name": {_json(function["name"])}, "arguments": {_arguments(function.get("arguments"))}}}'
        for function in functions
        if isinstance(function, dict) and isinstance(function.get("name"), str)
    ]
    return "\n".join(([content] if content else []) + [f"<tool_call>\n{call}\n</tool_call>" for call in written])


def _arguments(value: Any) -> str:
    if value is None or value == "":
        return "{}"
    if not isinstance(value, str):
        return _json(value)
    try:
        # serialised again, since a line break in the original would look like the end of the call
        return _json(parsed) if isinstance(parsed := json.loads(value), dict) else _json(value)
    except (ValueError, RecursionError):
        return _json(value)


def text_as_calls(text: str) -> tuple[str, list[dict[str, Any]]]:
    """The content and the ``tool_calls`` of the message that :func:`calls_as_text` writes as ``text``.

    Any other text (without calls, with other content between the tags, or with text after them) is returned as content.
    """
    calls = []
    words, *written_calls = _OPENED.split(text)
    for number, written_call in enumerate(written_calls):
        try:
            call = json.loads(written_call.removesuffix("\n</tool_call>"))
            name, arguments = call["name"], call.get("arguments", {})
        except (ValueError, RecursionError, TypeError, KeyError):
            return text, []
        written = arguments if isinstance(arguments, str) else _json(arguments)
        calls.append({"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": written}})
    return (words, calls) if calls_as_text(words, calls) == text else (text, [])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
