"""What came back from a model: one type for every source, so that a run, its rescoring and a reward read it alike.

The message of a server, the answer of a native API, the tokens of an engine in this process, a recorded response, a row of a
predictions file and the completion of a trainer each become a :class:`Response`. How one becomes a verdict is
:func:`guieval.models.scored_response.read_response`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from guieval.errors import whole_text
from guieval.steps import Sample, Usage

End: TypeAlias = Literal["stop", "length", "filter", "tool", "abort", "error", "unknown"]
_ENDS: Mapping[str, End] = {
    **dict.fromkeys(("stop", "eos", "stop_sequence", "end_turn", "completed"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii"), "filter"),
    **dict.fromkeys(("image_safety", "refusal"), "filter"),
    **dict.fromkeys(("tool_calls", "tool_use", "function_call"), "tool"),
    **dict.fromkeys(("abort", "aborted", "cancelled", "canceled"), "abort"),
    **dict.fromkeys(("error", "failed", "engine_error", "server_error"), "error"),
}
END_TOKENS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end|>", "<|user|>", "</s>", "<eos>")
"""Tokens with which responses of the known families end; other special tokens may be part of an answer (``<|box_end|>``)."""
REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
"""Fields of a message in which servers and trainers put the thought that they took out of the text."""
_OPENED = re.compile(r"\n?<tool_call>\n")


def how_ended(finish_reason: str | None) -> End:
    """How a response ended, by a server's word for it.

    ``stop``, ``length`` and ``tool`` are the model's own ends; ``filter`` is the server's decision on the content; ``abort``
    and ``error`` mean that the server broke the response off.
    """
    return _ENDS.get((finish_reason or "").lower(), "unknown")


@dataclass(frozen=True)
class Call:
    """A function call. ``arguments`` are a JSON object, or what is in its place: text that was cut off, usually.

    ``id`` is what an answer to the call has to name.
    """

    name: str
    arguments: object
    id: str = ""

    @property
    def named(self) -> dict[str, object]:
        """The arguments by name; none if the model wrote anything but an object."""
        return self.arguments if isinstance(self.arguments, dict) else {}

    @property
    def written(self) -> str:
        """The call as models without a function-call interface write it (Hermes, Qwen), one JSON object between tags."""
        return f'<tool_call>\n{{"name": {_json(self.name)}, "arguments": {_json(self.arguments)}}}\n</tool_call>'


@dataclass(frozen=True)
class Response:
    """What came back. ``text`` is the content as the model wrote it, ``reasoning`` what a server or trainer split off.

    ``usage`` is that of this response, ``other_usage`` that of each other one which was received and paid for on the way to it.
    ``finish_reason`` is the server's word for how it ended, :attr:`ended` its meaning. ``logprob`` is the mean natural
    log-probability of its tokens, if requested; ``model`` the server's name of the model that wrote it, ``fingerprint`` that of
    the server's set-up (``system_fingerprint``). ``key_removed``: it held the key, which ``[API key]`` replaces. ``seconds`` is
    how long it took without waiting for other requests, if the engine knows that.
    """

    text: str
    reasoning: str | None = None
    usage: Usage | None = None
    finish_reason: str | None = None
    attempts: int = 1
    logprob: float | None = None
    model: str | None = None
    fingerprint: str | None = None
    calls: tuple[Call, ...] = ()
    other_usage: tuple[Usage, ...] = ()
    key_removed: bool = False
    seconds: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name in ("text", "reasoning", "finish_reason", "model", "fingerprint"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, whole_text(value))

    @classmethod
    def of(cls, content: object) -> Response:
        """The response in what a server or a training framework gives: a text, a message, several messages, or ``None``.

        Messages are mappings or objects. Of several, those of the assistant count; their texts and calls follow each other.
        Raises ``ValueError`` for anything else, e.g. a content that is a number.
        """
        match content:
            case Response():
                return content
            case None:
                return cls("")
            case str():
                return cls(content)
            case list() | tuple():
                return _of_several(content)
        return _of_message(content)

    @property
    def ended(self) -> End:
        return how_ended(self.finish_reason)

    @property
    def broken_off(self) -> bool:
        """Whether the server broke it off, so that it says nothing about the model."""
        return self.ended in ("abort", "error")

    @property
    def written(self) -> str:
        """The text and the calls as one text, which a journal keeps and adapters read."""
        return "\n".join([*([self.text] if self.text else []), *(whole_text(call.written) for call in self.calls)])

    @property
    def readable(self) -> str:
        """What an adapter reads: :attr:`written` without the tokens that end it.

        If that is empty although the model came to an end of its own, the reasoning: a reasoning parser that finds no closing
        tag takes the whole response (vllm-project/vllm issues 17609, 29408).
        """
        written = without_end_tokens(self.written)
        return (self.reasoning or "") if self.in_reasoning else written

    @property
    def in_reasoning(self) -> bool:
        """Whether the reasoning has all that the model wrote."""
        whole = self.ended in ("stop", "tool", "unknown")
        return whole and not without_end_tokens(self.written).strip() and bool((self.reasoning or "").strip())

    @property
    def in_full(self) -> str:
        """What the model wrote before its reasoning was split off: a text whose format can be checked."""
        if self.reasoning is None or self.in_reasoning or "</think>" in self.readable:
            return self.readable
        return f"<think>{self.reasoning}</think>{self.readable}"


def recorded_response(sample: Sample) -> Response:
    """The response in a journal; its calls are part of the text."""
    return Response(
        sample.raw_response or "",
        sample.reasoning,
        sample.usage,
        sample.finish_reason,
        sample.attempts,
        sample.logprob,
        other_usage=sample.other_usage,
        key_removed=sample.key_removed,
    )


def without_end_tokens(text: str) -> str:
    """A text without the :data:`END_TOKENS` that it ends with, and without the space between and after them."""
    while ended := next((token for token in END_TOKENS if text.rstrip().endswith(token)), None):
        text = text.rstrip().removesuffix(ended)
    return text


def calls_in(text: str) -> tuple[str, tuple[Call, ...]]:
    """The text and the calls of the response that was :attr:`~Response.written` as ``text``.

    Any other text (without calls, with other content between the tags, or with text after them) is returned without calls.
    """
    calls = []
    words, *written_calls = _OPENED.split(text)
    for written_call in written_calls:
        try:
            call = json.loads(written_call.removesuffix("\n</tool_call>"))
            calls.append(Call(call["name"], call["arguments"]))
        except (ValueError, RecursionError, TypeError, KeyError):
            return text, ()
    if not all(isinstance(call.name, str) for call in calls):
        return text, ()
    return (words, tuple(calls)) if Response(words, calls=tuple(calls)).written == text else (text, ())


def _of_several(parts: Sequence[object]) -> Response:
    messages = [part for part in parts if not isinstance(part, str) and _field(part, "role") is not None]
    if not messages:
        return _of_message({"content": parts})
    spoken = [_of_message(message) for message in messages if _field(message, "role") == "assistant"]
    if len(spoken) == 1:
        return spoken[0]
    reasoning = "\n".join(each.reasoning for each in spoken if each.reasoning)
    return Response("\n".join(filter(None, (each.written for each in spoken))), reasoning or None)


def _of_message(message: object) -> Response:
    content = _field(message, "content")
    if content is None:
        content = _field(message, "text")
    names = ("tool_calls", "function_call", "refusal", *REASONING_FIELDS)
    if content is None and not isinstance(message, Mapping) and not any(hasattr(message, name) for name in ("content", *names)):
        raise ValueError(f"a response is a text, a message or a list of messages, not {message!r:.80}")
    if not isinstance(content, str | list | tuple | None):
        raise ValueError(f"the content of a message is a text or a list, not of type {type(content).__name__}")
    parts: list[object] = list(content) if isinstance(content, list | tuple) else [content] if content else []
    texts, reasoning, calls = list[str](), list[str](), list[Call]()
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif _field(part, "type") in ("thinking", "reasoning"):
            reasoning += _texts(part, ("thinking", "reasoning", "text"))
        elif _field(part, "type") in ("tool_call", "tool_use", "function_call"):
            calls += _calls([part])
        else:
            texts += _texts(part, ("text",))
    calls += _calls(_field(message, "tool_calls")) or _calls([_field(message, "function_call")])
    split_off = next(iter(_texts(message, REASONING_FIELDS)), None) or "".join(reasoning)
    refusal = _field(message, "refusal")
    text = "".join(texts)
    if not text and not calls and isinstance(refusal, str):
        text = refusal
    return Response(text, split_off or None, calls=tuple(calls))


def _texts(value: object, names: Sequence[str]) -> list[str]:
    """The first of the named fields that is a text and not empty, if any."""
    return [text for name in names if isinstance(text := _field(value, name), str) and text][:1]


def _calls(entries: object) -> list[Call]:
    return list(_each_call(entries)) if isinstance(entries, list | tuple) else []


def _each_call(entries: Sequence[object]) -> Iterator[Call]:
    for entry in entries:
        function = _field(entry, "function") or entry
        name = _field(function, "name")
        if isinstance(name, str):
            given = next((value for key in ("arguments", "input") if (value := _field(function, key)) is not None), None)
            identity = _field(entry, "id")
            yield Call(name, arguments_of(given), identity if isinstance(identity, str) else "")


def arguments_of(value: object) -> object:
    """The arguments of a call, from an object or its JSON text; what is neither stays as it is.

    Missing arguments, which servers send for functions without parameters, are an empty object.
    """
    if value is None or value == "":
        return {}
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return parsed if isinstance(parsed, dict) else value


def _field(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:  # a model wrote it, so it is no failure of a server
        return '"(nested too deeply)"'
