"""What the status of a server's refusal means: another try, a request that is refused, or the end of the run."""

from __future__ import annotations

import re
from collections.abc import Mapping

from guieval.engines.http.chat_answers import TryAgain, asked_wait
from guieval.engines.http.image_references import Refusal
from guieval.errors import EngineError, FatalEngineError
from guieval.settings import Server as ServerSettings

RETRIED = frozenset({408, 409, 429})
"""Statuses below 500 after which a request is retried."""
_STREAMS_ONLY = re.compile(r"only supports? stream|enable the stream|stream(ing)? is required|must be streamed", re.IGNORECASE)
"""A refusal of a request without a stream, as in "This model only supports stream mode" (DashScope)."""


class RefusedRequest(EngineError, Refusal):
    """The server refuses this request."""


def error_of(
    url: str,
    status: int,
    headers: Mapping[str, str],
    message: str,
    settings: ServerSettings,
    *,
    model: str | None,
    has_key: bool,
) -> TryAgain | EngineError:
    """What a refusal with this status and ``message`` means for a request of ``model`` under these settings."""
    suffix = f": {message}" if message else ""
    if status in RETRIED or status >= 500:
        wait = asked_wait(headers)
        busy = status in (408, 429)
        return TryAgain(f"{url} answered with status {status}{suffix}", retry_after=wait, busy=busy, slow=status == 503)
    if status in (401, 403):
        state = "has a key it does not accept" if has_key else "is not set"
        return FatalEngineError(
            f"{url} refuses access (status {status}); the environment variable {settings.api_key_env} {state}{suffix}"
        )
    if status in (404, 405):
        return FatalEngineError(
            f"{url} has no model {model!r}, or the base URL is wrong (vLLM's ends in /v1) (status {status}){suffix}"
            if model is not None
            else f"{url} is not found (status {status}); is the base URL complete (vLLM's ends in /v1)?{suffix}"
        )
    if status == 402:
        return FatalEngineError(f"{url} demands payment (status 402){suffix}")
    if 300 <= status < 400:
        return FatalEngineError(f"{url} redirects elsewhere (status {status}); give the base URL it redirects to")
    hint = "; --set stream=true requests streams" * bool(_STREAMS_ONLY.search(message) and not settings.stream)
    return RefusedRequest(f"{url} refuses this request (status {status}){suffix}{hint}")
