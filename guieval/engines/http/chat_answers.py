"""Reads the answers of the various kinds of chat-completion servers; unreadable answers may be requested again."""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from guieval.engines import mean_logprob
from guieval.engines.http.bounded_json import TooLarge, read_json
from guieval.engines.http.event_stream import BrokenOff, is_stream, streamed_completion
from guieval.engines.http.image_references import Refusal
from guieval.engines.http.stated import ServedModel
from guieval.engines.usage_reports import usage_in, usage_of
from guieval.errors import whole_text
from guieval.models import Response

if TYPE_CHECKING:
    from datetime import datetime

MAX_REPLY_BYTES = 8 * 1024 * 1024
"""Larger answers, in bytes, are treated as damaged."""
GATEWAY = frozenset({502, 503, 504})
"""Statuses with which a gateway reports that its server does not answer."""
_ID = re.compile(rb'"id"\s*:\s*"([!#-~]*~[0-9a-f]{8}\.[0-9]+)"')  # a request's name (guieval.engines.with_try), after a prefix
_LONGEST_NAME = 1000  # characters; of a model, which may be a path
_LONGEST_FINISH = 100  # characters; the protocol's own reasons to finish have at most 14
_OUT_OF_CREDIT = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "exceeded_current_quota_error")
"""Codes of OpenAI's errors, and Moonshot's."""
_COMPRESSIONS = ("gzip", "x-gzip", "deflate")


class TryAgain(Refusal):
    """A try failed; another may succeed."""

    def __init__(
        self,
        reason: str,
        *,
        retry_after: float | None = None,
        gone: bool = False,
        unsent: bool = False,
        busy: bool = False,
        slow: bool = False,
        last: bool = False,
    ) -> None:
        """``gone``: no answer; ``unsent``: no connection; ``busy``: the server asks to wait; ``slow``: the server is
        overloaded or did not answer in time; ``last``: an answer of a server that shuts down."""
        super().__init__(reason)
        self.retry_after = retry_after
        self.gone = gone
        self.unsent = unsent
        self.busy = busy
        self.slow = slow
        self._last = last

    @property
    def may_be_away(self) -> bool:
        """Whether the server may be away: no answer, a gateway's answer, or the last answer of a server that shuts down."""
        return self.gone or self.slow or self.may_be_last

    @property
    def may_be_last(self) -> bool:
        """Whether a gateway answered, or a server that may be shutting down."""
        return self._last or ((self.status or 0) >= 500 and not self.slow)


def response_in(data: bytes) -> Response:
    """Read the body of a chat completion, streamed or not.

    Raises :class:`TryAgain` if it has none, or one that the server broke off.
    """
    try:
        try:
            payload = streamed_completion(data) if is_stream(data) else _read_object(data)
        except BrokenOff as problem:
            raise TryAgain(str(problem)) from None
        choices = payload.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            error = server_message(data) if "error" in payload else ""
            raise TryAgain(f"the answer has no choices{f': {error}' if error else ''}")
        message, finish = choices[0].get("message"), choices[0].get("finish_reason")
        if not isinstance(message, dict):
            raise TryAgain("the answer's choice has no message")
        try:
            response = Response.of(message)
        except ValueError as error:
            raise TryAgain(f"the answer cannot be read: {error}") from None
        return whole_response(
            replace(
                response,
                usage=usage_of(payload.get("usage")),
                finish_reason=finish if isinstance(finish, str) and len(finish) <= _LONGEST_FINISH else None,
                logprob=_mean_logprob(choices[0].get("logprobs")),
                model=_name(payload.get("model")) or None,
                fingerprint=_name(payload.get("system_fingerprint")) or None,
            )
        )
    except TryAgain as failure:
        failure.usage = usage_in(data)
        raise


def whole_response(response: Response) -> Response:
    """A response that the model, and not the server, ended; else raises :class:`TryAgain`.

    vLLM ends the requests in flight with ``abort`` when it is stopped (vllm-project/vllm issue 57082), so it may be going away.
    """
    if response.broken_off:
        raise TryAgain(f"the server broke the response off (it ended with {response.finish_reason!r})", last=True)
    return response


def _mean_logprob(value: Any) -> float | None:
    """The mean of a choice's ``logprobs``; ``None`` if they were not requested or cannot be read."""
    tokens = value.get("content") if isinstance(value, dict) else None
    if not isinstance(tokens, list):
        return None
    return mean_logprob([token.get("logprob") if isinstance(token, dict) else None for token in tokens])


def _read_object(data: bytes) -> dict[str, Any]:
    try:
        payload = read_json(data)
    except TooLarge as error:
        raise TryAgain(f"the answer {error}") from None
    except ValueError:
        kind = "but markup" if data.lstrip()[:1] == b"<" else "or was cut off"
        raise TryAgain(f"the answer of {len(data)} bytes is not JSON, {kind}") from None
    if not isinstance(payload, dict):
        raise TryAgain(f"the answer is a JSON {type(payload).__name__}, not an object")
    return payload


def read_models(data: bytes) -> list[ServedModel]:
    """The entries with an id in an answer to ``GET /models``. Raises :class:`TryAgain` without a list."""
    entries = _read_object(data).get("data")
    if not isinstance(entries, list):
        raise TryAgain("the list of models has no data")
    return [
        ServedModel(whole_text(entry["id"]), *(_name(entry.get(field)) for field in ("root", "owned_by")))
        for entry in entries
        if isinstance(entry, dict) and _name(entry.get("id")) is not None
    ]


def _name(value: Any) -> str | None:
    return whole_text(value) if isinstance(value, str) and len(value) <= _LONGEST_NAME else None


def answers_another_request(data: bytes, name: str) -> bool:
    """Whether an answer's id names another request of this client than ``name``; vLLM derives its id from the name."""
    match = _ID.search(data)
    if match is None:
        return False
    answered = match.group(1).decode()
    nonce = name.rpartition("~")[2].partition(".")[0]
    return answered.rpartition("~")[2].partition(".")[0] == nonce and not answered.endswith(name)


def server_message(data: bytes) -> str:
    """The message of an error body in one of the common shapes; else its text."""
    try:
        payload = read_json(data)
    except ValueError:
        return data.decode("utf-8", "replace")
    for _ in range(3):
        if not isinstance(payload, dict):
            break
        payload = next((payload[name] for name in ("error", "message", "detail") if payload.get(name)), "")
    return payload if isinstance(payload, str) else json.dumps(payload)


def out_of_credit(data: bytes) -> bool:
    """Whether an error body says that an account is used up, which no waiting mends (OpenAI sends it with status 429)."""
    try:
        payload = read_json(data)
    except ValueError:
        return False
    error = payload.get("error", payload) if isinstance(payload, dict) else None
    return isinstance(error, dict) and any(error.get(name) in _OUT_OF_CREDIT for name in ("code", "type"))


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """The seconds that an answer's headers ask a client to wait: by ``retry-after-ms``, which the SDKs of OpenAI and Anthropic
    read too, else by Retry-After."""
    milliseconds = seconds_to_wait(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    return seconds_to_wait(headers.get("retry-after"), headers.get("date"))


def seconds_to_wait(retry_after: str | None, now: str | None = None) -> float | None:
    """A Retry-After header as seconds to wait; ``None`` when it is neither a number nor an HTTP date.

    A date is compared with ``now``, the answer's Date header, since the server wrote both by its own clock and ours may be
    wrong. Without a Date header our clock is used.
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
    except (ValueError, OverflowError):  # OverflowError: a time zone beyond the machine's integers
        return None
    return date.replace(tzinfo=date.tzinfo or UTC)


def unpacked(data: bytes, encoding: str, most: int = MAX_REPLY_BYTES) -> bytes:
    """Decompress an answer that is compressed although no compression was requested, up to just above ``most`` bytes.

    A few kilobytes can unpack to gigabytes, hence the limit. Raises ``ValueError`` with the problem.
    """
    name = encoding.strip().lower()
    if name in ("", "identity") or not data:
        return data
    if name not in _COMPRESSIONS:
        raise ValueError(f"is compressed as {name[:40]!r}, though no compression was requested")
    stream = zlib.decompressobj(wbits=47)  # gzip or zlib, by its header
    try:
        whole = stream.decompress(data, most + 1)
    except zlib.error as error:
        raise ValueError(f"cannot be unpacked ({error})") from None
    if not stream.eof and len(whole) <= most:
        raise ValueError("was cut off")
    return whole


def whole_answer(url: str, status: int, headers: Mapping[str, str], data: bytes, most: int = MAX_REPLY_BYTES) -> bytes:
    """The unpacked body of an answer; empty if that of a refusal cannot be unpacked, since its status is enough.

    Raises :class:`TryAgain` for a 2xx answer that cannot be unpacked or is larger than ``most`` bytes.
    """
    refused = not 200 <= status < 300
    try:
        whole = unpacked(data, headers.get("content-encoding", "identity"), most)
    except ValueError as error:
        if refused:
            return b""
        raise TryAgain(f"{url} sent an answer that {error}") from None
    if len(whole) > most and not refused:
        raise TryAgain(f"{url} sent more than {most // 1024**2} MiB")
    return whole
