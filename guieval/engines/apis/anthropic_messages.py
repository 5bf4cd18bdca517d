"""Anthropic's Messages API with its computer tools.

Sources: PyPI anthropic 2.14.0, ``types/computer_toolset_20260801_param.py`` and ``types/computer_*_input.py`` (members as tool
uses, several a turn) and ``types/beta/beta_tool_computer_use_*_param.py`` (one tool ``computer`` with an ``action``, which
needs a beta header); platform.claude.com, "Computer use tool", as of 22 August 2026 (an answer to a member names its toolset).
A request whose fields hold ``betas`` goes to the beta endpoint.
"""

from __future__ import annotations

from typing import Any

from guieval.data.screenshots import Screenshot
from guieval.engines.apis.native import NativeAPI, NativeRequest, Turn, shown, system_text, turns_of
from guieval.engines.apis.sdk_calls import entries, mapping, raw_answer, sdk_client, text_of
from guieval.engines.usage_reports import usage_of
from guieval.models import Request, Response
from guieval.models.response import Call
from guieval.settings.sampling import NATIVE


class AnthropicMessages(NativeAPI):
    """``POST /v1/messages``."""

    title = "Anthropic Messages API"
    package = "anthropic"
    extra = "anthropic"
    key_env = "ANTHROPIC_API_KEY"
    own_url = "https://api.anthropic.com"
    most_tokens = 4096
    sampling = NATIVE["anthropic"]

    def begin(self, request: Request, model: str) -> NativeRequest:
        extra = dict(request.input.extra)
        looks, cached = extra.pop("looks", 0), extra.pop("prompt_cache", False)
        fields: dict[str, Any] = {"model": model, "max_tokens": self.most_tokens, **extra, **self.parameters(request)}
        if system := system_text(request):
            # a breakpoint after tools and system prompt, which all steps share
            breakpoint_ = {"cache_control": {"type": "ephemeral"}} if cached else {}
            fields["system"] = [{"type": "text", "text": system, **breakpoint_}]
        return NativeRequest(fields, turns_of(request, lambda part, role: _part(part)), request.images, looks)

    async def send(self, conversation: NativeRequest, name: str) -> Turn:
        import anthropic

        self._client = self._client or sdk_client(
            anthropic.AsyncAnthropic, self.connection, self.connection.url or self.own_url
        )
        fields = {**conversation.fields, "messages": conversation.turns}
        messages = self._client.beta.messages if "betas" in fields else self._client.messages
        return _turn(await raw_answer(anthropic, messages, fields, name))

    def answer_looks(self, conversation: NativeRequest, turn: Turn) -> None:
        # the result of a toolset's member has to name the toolset, else the service refuses it
        toolsets = {text_of(block, "id"): text_of(block, "toolset_name") for block in turn.content}
        answers = []
        for call in turn.response.calls:
            answer: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.id}
            if toolset := toolsets.get(call.id):
                answer["toolset_name"] = toolset
            answers.append({**answer, "content": [_part(shown(call, conversation.images[-1]))]})
        conversation.turns += [{"role": "assistant", "content": turn.content}, {"role": "user", "content": answers}]


def _part(part: str | Screenshot) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": part.base64.decode()}}


def _turn(answer: dict[str, Any]) -> Turn:
    blocks = entries(answer, "content")
    texts = [text_of(block, "text") for block in blocks if block.get("type") == "text"]
    if answer.get("stop_reason") == "refusal":
        texts = [f"<refusal>{' '.join(texts)}</refusal>"]
    calls = [
        Call(text_of(block, "name"), mapping(block.get("input") or {}), text_of(block, "id"))
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    response = Response(
        "\n".join(text for text in texts if text),
        "\n".join(text_of(block, "thinking") for block in blocks if block.get("type") == "thinking") or None,
        usage_of(answer.get("usage")),
        text_of(answer, "stop_reason") or None,
        model=text_of(answer, "model") or None,
        calls=tuple(calls),
    )
    return Turn(response, blocks)
