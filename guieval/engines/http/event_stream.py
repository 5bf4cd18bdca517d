"""Reads a chat completion that was streamed: its chunks become the message that the server would have sent at once.

Source: OpenAI's API reference, "Chat completions: streaming"; the format of events is the HTML standard's (server-sent events).
A server may stream although no stream was requested.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from guieval.engines.http.bounded_json import read_json

MAX_STREAM_BYTES = 64 * 1024 * 1024
"""Longer streams, in bytes, are treated as damaged; each token comes in an object of some hundred bytes."""
_MOST_EVENTS = 100_000
"""A response has an event a token; reading more would keep other requests waiting."""
_BEGIN = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry)?:")
_LINE = re.compile(r"\r\n|\r|\n")
_TEXTS = ("content", "refusal", "reasoning_content", "reasoning", "thinking")
_DONE = "[DONE]"


class BrokenOff(ValueError):
    """A stream that ended before its response did, or that has something else."""


def is_stream(data: bytes) -> bool:
    """Whether a body is a stream of events; JSON begins otherwise."""
    return _BEGIN.match(data) is not None


def streamed_completion(data: bytes) -> dict[str, Any]:
    """The body of a chat completion whose stream this is, from the chunks of its first choice.

    Raises :class:`BrokenOff` for one that ends without ``[DONE]`` and without a ``finish_reason``, and for an event that is an
    error or no JSON object.
    """
    if data.count(b"\n") + data.count(b"\r") > 4 * _MOST_EVENTS:  # an event has a line or two, and an empty one after it
        raise BrokenOff(f"the stream has more than {_MOST_EVENTS:,} events")
    made = _Completion()
    for event in _events(data):
        if event == _DONE:
            made.done = True
            break
        try:
            chunk = read_json(event.encode())
        except ValueError:
            raise BrokenOff(f"an event of the stream is not JSON: {event[:80]!r}") from None
        if not isinstance(chunk, dict):
            raise BrokenOff(f"an event of the stream is a JSON {type(chunk).__name__}, not an object")
        if chunk.get("error"):
            raise BrokenOff(f"the server broke the stream off: {json.dumps(chunk['error'])}")
        made.add(chunk)
    if not made.done and made.finish_reason is None:
        raise BrokenOff("the stream ended before the response did")
    return made.body()


def _events(data: bytes) -> Iterator[str]:
    """The data of each event; lines of one event are joined."""
    lines: list[str] = []
    for line in (*_LINE.split(data.decode("utf-8-sig", "replace")), ""):
        if line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))
        elif not line.strip() and lines:
            yield "\n".join(lines).strip()
            lines = []


@dataclass
class _Completion:
    message: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, list[str]] = field(default_factory=dict)
    calls: list[dict[str, Any]] = field(default_factory=list)
    places: dict[Any, int] = field(default_factory=dict)
    logprobs: list[Any] = field(default_factory=list)
    finish_reason: Any = None
    usage: Any = None
    model: Any = None
    fingerprint: Any = None
    begun: bool = False
    done: bool = False

    def add(self, chunk: dict[str, Any]) -> None:
        self.model = self.model or chunk.get("model")
        self.fingerprint = self.fingerprint or chunk.get("system_fingerprint")
        self.usage = chunk.get("usage") or self.usage  # the last one is of the whole response
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, dict) and not choice.get("index"):
                self._add_choice(choice)

    def _add_choice(self, choice: dict[str, Any]) -> None:
        self.begun = True
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        logprobs = choice.get("logprobs")
        if isinstance(logprobs, dict) and isinstance(logprobs.get("content"), list):
            self.logprobs += logprobs["content"]
        delta = choice.get("delta") or choice.get("message")
        if not isinstance(delta, dict):
            return
        for name in _TEXTS:
            value = delta.get(name)
            texts = value if isinstance(value, list) else [value]
            self.parts.setdefault(name, []).extend(text for text in map(_text, texts) if text)
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else []:
            if isinstance(call, dict):
                self._add_call(call)
        if isinstance(delta.get("function_call"), dict):  # older than tool_calls
            self._add_call({"index": "function_call", "function": delta["function_call"]})

    def _add_call(self, call: dict[str, Any]) -> None:
        """Add a piece of a call, which belongs to the call of its ``index``; servers without one begin a call with its id."""
        index, identity = call.get("index"), call.get("id")
        place = index if isinstance(index, int | str) else identity if isinstance(identity, str) and identity else None
        if place is None and self.calls:
            made = self.calls[-1]
        else:
            if place not in self.places:
                self.places[place] = len(self.calls)
                self.calls.append({"id": "", "function": {"name": "", "arguments": ""}})
            made = self.calls[self.places[place]]
        made["id"] = made["id"] or identity or ""
        function = call.get("function")
        if not isinstance(function, dict):
            return
        made["function"]["name"] = made["function"]["name"] or function.get("name") or ""
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            written = made["function"]["arguments"]
            made["function"]["arguments"] = written + arguments if isinstance(written, str) else arguments
        elif arguments is not None:
            made["function"]["arguments"] = arguments

    def body(self) -> dict[str, Any]:
        message: dict[str, Any] = {name: "".join(texts) or None for name, texts in self.parts.items()}
        if self.calls:
            message["tool_calls"] = self.calls
        logprobs = {"content": self.logprobs} if self.logprobs else None
        choice = {"message": message, "finish_reason": self.finish_reason, "logprobs": logprobs}
        said = {"usage": self.usage, "model": self.model, "system_fingerprint": self.fingerprint}
        return {"choices": [choice] if self.begun else [], **said}


def _text(part: Any) -> str | None:
    text = part.get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else None
