"""Gemini's ``generateContent`` with its computer-use tool.

Source: PyPI google-genai 3.6.1, ``types.ComputerUse`` and ``types.Environment``; ``agent.py`` of
google-gemini/computer-use-preview (a safety decision in the arguments of a call is acknowledged in its answer).
"""

from __future__ import annotations

import warnings
from typing import Any

from guieval.data.screenshots import Screenshot
from guieval.engines.apis.native import NativeAPI, NativeRequest, TooDeep, Turn, Unanswered, shown, system_text, turns_of
from guieval.engines.usage_reports import usage_of
from guieval.models import Request, Response
from guieval.models.response import Call
from guieval.settings.sampling import NATIVE


class Gemini(NativeAPI):
    """``POST /v1beta/models/MODEL:generateContent``."""

    title = "Gemini API"
    package = "google.genai"
    extra = "gemini"
    key_env = "GEMINI_API_KEY"
    own_url = "https://generativelanguage.googleapis.com"
    sampling = NATIVE["gemini"]
    _http: Any = None

    def begin(self, request: Request, model: str) -> NativeRequest:
        extra = dict(request.input.extra)
        looks = extra.pop("looks", 0)
        turns = turns_of(request, lambda part, role: _part(part), key="parts", assistant="model")
        config = {"automatic_function_calling": {"disable": True}, **extra, **self.parameters(request)}
        if system := system_text(request):
            config["system_instruction"] = system
        return NativeRequest({"model": model, "config": config}, turns, request.images, looks)

    async def send(self, conversation: NativeRequest, name: str) -> Turn:
        from google import genai
        from google.genai import errors, types

        from guieval.engines.apis.transport import client

        if self._client is None:
            self._http = client(self.connection)
            self._client = genai.Client(
                api_key=self.connection.key,
                http_options=types.HttpOptions(
                    base_url=self.connection.url or self.own_url,
                    timeout=int(1000 * self.connection.timeout),
                    httpx_async_client=self._http,
                    retry_options=types.HttpRetryOptions(attempts=1),
                ),
            )
        # an unknown reason for the end of an answer is in its record, and no warning on the screen
        warnings.filterwarnings("ignore", ".* is not a valid ", UserWarning, r"google\.genai\.")
        config = {**conversation.fields["config"], "http_options": {"headers": {"X-Request-Id": name}}}
        try:
            answer = await self._client.aio.models.generate_content(
                model=conversation.fields["model"], contents=conversation.turns, config=config
            )
        except errors.APIError as error:
            response = error.response
            headers = {**_asked_wait(error.details), **(getattr(response, "headers", None) or {})}
            raise Unanswered(error.code, headers, (error.message or "").encode()) from None
        except RecursionError:
            raise TooDeep from None
        except (TypeError, AttributeError, LookupError) as error:  # the SDK reads what it expects unchecked
            raise ValueError(f"{type(error).__name__}: {error}") from error
        return _turn(answer)

    def answer_looks(self, conversation: NativeRequest, turn: Turn) -> None:
        parts: list[dict[str, Any]] = []
        for call in turn.response.calls:
            answer = shown(call, conversation.images[-1])
            answered: dict[str, Any] = {"output": answer} if isinstance(answer, str) else {}
            if "safety_decision" in call.named:
                answered["safety_acknowledgement"] = "true"
            response: dict[str, Any] = {"name": call.name, "response": answered}
            if call.id:
                response["id"] = call.id
            if isinstance(answer, Screenshot):
                response["parts"] = [{"inline_data": {"mime_type": answer.media_type, "data": answer.data}}]
            parts.append({"function_response": response})
        conversation.turns += [turn.content, {"role": "user", "parts": parts}]

    async def close(self) -> None:
        if self._client is not None:
            await self._http.aclose()
            self._client = self._http = None


def _asked_wait(refusal: Any) -> dict[str, str]:
    """The wait that a refusal's ``RetryInfo`` asks for (``"retryDelay": "19s"``), as a Retry-After header."""
    error = refusal.get("error") if isinstance(refusal, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    for detail in details if isinstance(details, list) else []:
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and delay.endswith("s"):
            return {"retry-after": delay[:-1]}
    return {}


def _part(part: str | Screenshot) -> dict[str, Any]:
    if isinstance(part, str):
        return {"text": part}
    return {"inline_data": {"mime_type": part.media_type, "data": part.data}}


def _turn(answer: Any) -> Turn:
    candidate = next(iter(answer.candidates or []), None)
    blocked = getattr(answer.prompt_feedback, "block_reason", None)
    if candidate is None and blocked is None:
        raise ValueError("it has no candidates")
    content = None if candidate is None else candidate.content
    parts = (content.parts or []) if content is not None else []
    texts = [part.text for part in parts if part.text and not part.thought]
    calls = [
        Call(part.function_call.name or "", part.function_call.args or {}, part.function_call.id or "")
        for part in parts
        if part.function_call is not None
    ]
    finish = blocked if candidate is None else candidate.finish_reason
    usage = answer.usage_metadata
    response = Response(
        f"<refusal>{blocked.value}</refusal>" if blocked is not None else "\n".join(texts),
        "\n".join(part.text for part in parts if part.text and part.thought) or None,
        None if usage is None else usage_of(usage.model_dump(by_alias=True)),
        None if finish is None else str(finish.value),
        model=answer.model_version,
        calls=tuple(calls),
    )
    return Turn(response, content)
