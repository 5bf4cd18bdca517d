"""OpenAI's Responses API with its computer tool.

Source: PyPI openai 3.57.0, ``types/responses`` (``computer_action.py``, ``response_computer_tool_call.py``,
``response_input_param.py``). A computer call has a batch of ``actions``; the older ``computer_use_preview`` has one
``action``. Each action becomes a call of its own, named by its type. Safety checks are acknowledged when the conversation goes
on, and written before the calls, between ``<safety_check>`` tags.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from guieval.data.screenshots import Screenshot
from guieval.engines.apis.native import NativeAPI, NativeRequest, Turn, shown, system_text, turns_of
from guieval.engines.apis.sdk_calls import entries, listed, mapping, raw_answer, sdk_client, text_of
from guieval.engines.usage_reports import usage_of
from guieval.models import Request, Response
from guieval.models.response import Call
from guieval.settings.sampling import NATIVE


class OpenAIResponses(NativeAPI):
    """``POST /responses``."""

    title = "OpenAI Responses API"
    package = "openai"
    extra = "openai"
    key_env = "OPENAI_API_KEY"
    own_url = "https://api.openai.com/v1"
    sampling = NATIVE["openai-responses"]

    def begin(self, request: Request, model: str) -> NativeRequest:
        extra = dict(request.input.extra)
        looks, detail = extra.pop("looks", 0), extra.pop("image_detail", None)

        def part_of(part: str | Screenshot, role: str) -> dict[str, Any]:
            text = {"type": "output_text" if role == "assistant" else "input_text", "text": part}
            return text if isinstance(part, str) else _image(part, detail)

        # reasoning has to be sent back when the conversation goes on, and is kept by nobody else
        kept = {"store": False, "include": ["reasoning.encrypted_content"]}
        fields = {"model": model, "instructions": system_text(request), **kept, **extra, **self.parameters(request)}
        more = {} if detail is None else {"detail": detail}
        return NativeRequest(fields, turns_of(request, part_of), request.images, looks, more)

    async def send(self, conversation: NativeRequest, name: str) -> Turn:
        import openai

        url = f"{self.connection.url}/v1" if self.connection.url else self.own_url
        self._client = self._client or sdk_client(openai.AsyncOpenAI, self.connection, url)
        fields = {**conversation.fields, "input": conversation.turns}
        return _turn(await raw_answer(openai, self._client.responses, fields, name))

    def answer_looks(self, conversation: NativeRequest, turn: Turn) -> None:
        conversation.turns += turn.content
        calls = {call.id: call for call in turn.response.calls}  # of a batch of screenshots one answer is enough
        for item in turn.content:
            call = calls.get(text_of(item, "call_id"))
            if call is None:
                continue
            answer = shown(call, conversation.images[-1])
            if item.get("type") == "function_call":
                words = answer if isinstance(answer, str) else "The screenshot above is current."
                conversation.turns.append({"type": "function_call_output", "call_id": call.id, "output": words})
                continue
            screen = answer if isinstance(answer, Screenshot) else conversation.images[-1]
            output: dict[str, Any] = {"type": "computer_call_output", "call_id": call.id}
            output["output"] = {"type": "computer_screenshot", "image_url": screen.data_url, **conversation.detail}
            if checks := item.get("pending_safety_checks"):
                output["acknowledged_safety_checks"] = checks
            conversation.turns.append(output)


def _image(screenshot: Screenshot, detail: str | None) -> dict[str, Any]:
    return {"type": "input_image", "image_url": screenshot.data_url, **({} if detail is None else {"detail": detail})}


def _turn(answer: dict[str, Any]) -> Turn:
    items = entries(answer, "output")
    texts, reasoning, calls = [], [], list[Call]()
    for item in items:
        match item.get("type"):
            case "message":
                texts += list(_texts(item))
            case "reasoning":
                reasoning += [text_of(part, "text") for part in listed(item, "summary")]
            case "computer_call":
                texts += [
                    f"<safety_check>{text_of(check, 'code')}: {text_of(check, 'message')}</safety_check>"
                    for check in listed(item, "pending_safety_checks")
                ]
                calls += list(_actions(item))
            case "function_call":
                calls.append(Call(text_of(item, "name"), mapping(item.get("arguments") or {}), text_of(item, "call_id")))
    incomplete = answer.get("incomplete_details")
    response = Response(
        "\n".join(text for text in texts if text),
        "\n".join(text for text in reasoning if text) or None,
        usage_of(answer.get("usage")),
        text_of(incomplete, "reason") or text_of(answer, "status") or None,
        model=text_of(answer, "model") or None,
        calls=tuple(calls),
    )
    return Turn(response, items)


def _texts(message: dict[str, Any]) -> Iterator[str]:
    for part in listed(message, "content"):
        if text_of(part, "type") == "refusal":
            yield f"<refusal>{text_of(part, 'refusal')}</refusal>"
        else:
            yield text_of(part, "text")


def _actions(item: dict[str, Any]) -> Iterator[Call]:
    batch = item.get("actions") or [item.get("action")]
    for action in batch if isinstance(batch, list) else []:
        if isinstance(action, dict):
            arguments = {key: value for key, value in action.items() if key != "type" and value is not None}
            yield Call(text_of(action, "type"), arguments, text_of(item, "call_id"))
