"""Reads what a server answers to a chat completion, however its kind says it; what is unreadable may be asked for again."""

from __future__ import annotations

import json
import math
import zlib
from typing import TYPE_CHECKING, Any

from guieval.engines.image_references import Refusal
from guieval.engines.logprobs import mean_logprob
from guieval.engines.tool_calls import calls_as_text
from guieval.models import Reply
from guieval.steps import Usage, whole_text

if TYPE_CHECKING:
    from datetime import datetime

MAX_REPLY_BYTES = 8 * 1024 * 1024
"""An answer above this many bytes is treated as damaged."""
_COMPRESSIONS = ("gzip", "x-gzip", "deflate")


class TryAgain(Refusal):
    """A try failed in a way that another may not."""

    def __init__(
        self, reason: str, *, retry_after: float | None = None, gone: bool = False, busy: bool = False, slow: bool = False
    ) -> None:
        """``gone``: nobody answered; ``busy``: the server asks to be left alone; ``slow``: it has more work than it can do."""
        super().__init__(reason)
        self.retry_after = retry_after
        self.gone = gone
        self.busy = busy
        self.slow = slow


def read_reply(data: bytes) -> Reply:
    """Read the body of a chat completion.

    ``content: null``, which vLLM sends when its reasoning parser took the whole answer, is an empty text. Function calls become
    text (:mod:`guieval.engines.tool_calls`), and a refusal in words, which OpenAI keeps apart, is what the model said.
    """
    payload = _read_object(data)
    choices = payload.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        said = server_message(data) if "error" in payload else ""
        raise TryAgain(f"the answer has no choices{f': {said}' if said else ''}")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise TryAgain("the answer's choice has no message")
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    if content is not None and not isinstance(content, str):
        raise TryAgain(f"the answer's content is of type {type(content).__name__}")
    refusal = message.get("refusal")
    text = calls_as_text(content or "", message.get("tool_calls")) or (refusal if isinstance(refusal, str) else "")
    reasoning = next((message[name] for name in ("reasoning_content", "reasoning") if message.get(name)), None)
    finish = choices[0].get("finish_reason")
    return Reply(
        whole_text(text),
        whole_text(reasoning) if isinstance(reasoning, str) else None,
        _usage(payload.get("usage")),
        finish if isinstance(finish, str) else None,
        logprob=_mean_logprob(choices[0].get("logprobs")),
    )


def _mean_logprob(value: Any) -> float | None:
    """What is kept of a choice's ``logprobs``; ``None`` where they were not asked for or cannot be read."""
    tokens = value.get("content") if isinstance(value, dict) else None
    if not isinstance(tokens, list):
        return None
    return mean_logprob([token.get("logprob") if isinstance(token, dict) else None for token in tokens])


def _read_object(data: bytes) -> dict[str, Any]:
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError):
        kind = "but markup" if data.lstrip()[:1] == b"<" else "or was cut off"
        raise TryAgain(f"the answer of {len(data)} bytes is no JSON, {kind}") from None
    if not isinstance(payload, dict):
        raise TryAgain(f"the answer is a JSON {type(payload).__name__}, not an object")
    return payload


def read_models(data: bytes) -> list[str]:
    """The names of the models in a server's list."""
    entries = _read_object(data).get("data")
    if not isinstance(entries, list):
        raise TryAgain("the list of models has no data")
    return [entry["id"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    counts = {name: value.get(name) for name in ("prompt_tokens", "completion_tokens")}
    return Usage(**{name: count if type(count) is int else None for name, count in counts.items()})


def server_message(data: bytes) -> str:
    """What an error body says in words, whichever of the common shapes it has; else its text."""
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")
    for _ in range(3):
        if not isinstance(payload, dict):
            break
        payload = next((payload[name] for name in ("error", "message", "detail") if payload.get(name)), "")
    return payload if isinstance(payload, str) else json.dumps(payload)


def seconds_to_wait(retry_after: str | None, now: str | None = None) -> float | None:
    """A Retry-After header as seconds to wait; ``None`` when it is neither a number nor an HTTP date.

    A date is taken as so long after ``now``, the answer's Date header: the server's clock is the one that it was read from,
    and ours may be wrong or jump. Without a Date header ours must do.
    """
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        from datetime import UTC, datetime

        date = _http_date(retry_after)
        if date is None:
            return None
        seconds = (date - (_http_date(now) or datetime.now(UTC))).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _http_date(text: str | None) -> datetime | None:
    from datetime import UTC
    from email.utils import parsedate_to_datetime

    if text is None:
        return None
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return date.replace(tzinfo=date.tzinfo or UTC)


def unpacked(data: bytes, encoding: str) -> bytes:
    """The body of an answer that came compressed though we asked for none, up to just above :data:`MAX_REPLY_BYTES`.

    A few kilobytes can unpack to gigabytes, so no more is unpacked than is read. Raises ``ValueError`` saying what is wrong.
    """
    name = encoding.strip().lower()
    if name in ("", "identity") or not data:
        return data
    if name not in _COMPRESSIONS:
        raise ValueError(f"is compressed as {name[:40]!r}, though none was asked for")
    stream = zlib.decompressobj(wbits=47)  # gzip or zlib, as its header says
    try:
        whole = stream.decompress(data, MAX_REPLY_BYTES + 1)
    except zlib.error as error:
        raise ValueError(f"cannot be unpacked ({error})") from None
    if not stream.eof and len(whole) <= MAX_REPLY_BYTES:
        raise ValueError("was cut off")
    return whole
