"""The mock server's answers in the wire formats of native computer-use APIs, from the text that a chat completion would hold.

A request's path says which API it is for: ``/responses`` (OpenAI), ``/messages`` (Anthropic), ``:generateContent`` (Gemini).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from guieval.models.response import calls_in

API: TypeAlias = Literal["responses", "messages", "generateContent"]
KEY_HEADERS = (b"authorization", b"x-api-key", b"x-goog-api-key")
"""Where the APIs expect the key; Anthropic's older SDKs send the second one, and its newer ones the first."""
_ACTIONS = frozenset({"click", "double_click", "drag", "keypress", "move", "screenshot", "scroll", "type", "wait"})
"""Types of OpenAI's computer actions; other calls are of functions."""
_LOOK: Mapping[API, tuple[str, dict[str, Any]]] = {
    "responses": ("screenshot", {}),
    "messages": ("screenshot", {}),
    "generateContent": ("take_screenshot", {}),
}
_RESULTS = {
    "responses": ('"computer_call_output"', '"function_call_output"'),
    "messages": ('"tool_result"',),
    "generateContent": ('"functionResponse"',),
}
"""The part of a request for each answer to a call."""
TOKENS_IN, TOKENS_OUT = 3000, 60


def api_of(path: str) -> API | None:
    """The API of a request's path; ``None`` for chat completions."""
    if path.endswith(":generateContent"):
        return "generateContent"
    by_end: dict[str, API] = {"responses": "responses", "messages": "messages"}
    return by_end.get(path.rpartition("/")[2])


def model_of(api: API | None, path: str, body: bytes) -> Any:
    """The model that a request names."""
    if api == "generateContent":
        return path.rpartition("/models/")[2].removesuffix(":generateContent")
    return json.loads(body).get("model")


def answer_body(api: API, text: str, request: bytes, looks: int) -> bytes:
    """The body of an answer with the words and calls of ``text``; while a request has fewer than ``looks`` results of calls,
    a call for a screenshot instead."""
    fields = json.loads(request)
    written = json.dumps(fields)
    words, calls = calls_in(text)
    named = [(call.name, call.arguments) for call in calls]
    if sum(written.count(result) for result in _RESULTS[api]) < looks:
        dated = any(tool.get("name") == "computer" for tool in fields.get("tools") or [])
        words, named = "I look first.", [("computer", {"action": "screenshot"}) if dated else _LOOK[api]]
    write = {"responses": _response, "messages": _message, "generateContent": _content}[api]
    return json.dumps(write(words, named, fields)).encode()


def damaged_body(api: API, kind: str, text: str, request: bytes) -> bytes | None:
    """The body of an answer with a fault of its content, in an API's own shape; ``None`` for faults of the transport."""
    whole = json.loads(answer_body(api, text, request, 0))
    empty = json.loads(answer_body(api, "", request, 0))
    if kind == "null-content":  # neither words nor a call, as after a turn of thinking alone
        return json.dumps(empty).encode()
    if kind == "empty-choices":
        return json.dumps({name: value for name, value in whole.items() if name not in _CONTENTS}).encode()
    if kind == "cut-text":  # what the limit of tokens leaves: half the words, and no call
        words = calls_in(text)[0]
        return json.dumps(_cut_off(api, json.loads(answer_body(api, words[: len(words) // 2], request, 0)))).encode()
    if kind == "absurd-numbers":
        first, second = _COUNTS[api]
        whole["usageMetadata" if api == "generateContent" else "usage"] |= {first: -(2**62), second: 2**64 - 1}
        return json.dumps(whole).encode()
    return None


_CONTENTS = ("output", "content", "candidates")
_COUNTS: Mapping[API, tuple[str, str]] = {
    "responses": ("input_tokens", "output_tokens"),
    "messages": ("input_tokens", "output_tokens"),
    "generateContent": ("promptTokenCount", "candidatesTokenCount"),
}


def _cut_off(api: API, answer: dict[str, Any]) -> dict[str, Any]:
    """An answer that ends at its limit of tokens."""
    if api == "responses":
        return answer | {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    if api == "messages":
        return answer | {"stop_reason": "max_tokens"}
    answer["candidates"][0]["finishReason"] = "MAX_TOKENS"
    return answer


def refusal(api: API, path: str, request: bytes, refused_tools: Sequence[str]) -> str | None:
    """Why a service would refuse a request: it offers one of ``refused_tools``, or answers a toolset's member without naming
    the toolset. Gemini's tools go by the name of their field."""
    fields = json.loads(request)
    model = model_of(api, path, request)
    for tool in fields.get("tools") or []:
        kind = next(iter(tool), "") if api == "generateContent" else tool.get("type")
        if kind in refused_tools:
            if api == "messages":
                return f"'{model}' does not support tool types: {kind}. Did you mean one of bash_20250124?"
            if api == "responses":
                return f"Tool '{kind}' is not supported with {model}."
            return f"{kind} is not supported by models/{model}."
    blocks = [block for turn in fields.get("messages") or [] for block in turn["content"] if isinstance(block, dict)]
    toolsets = {block["id"]: block.get("toolset_name") for block in blocks if block.get("type") == "tool_use"}
    for block in blocks:
        if block.get("type") == "tool_result" and block.get("toolset_name") != toolsets.get(block["tool_use_id"]):
            return f"tool_result {block['tool_use_id']!r} must name the toolset of its tool_use in toolset_name"
    return None


def error_body(api: API, status: int, message: str) -> bytes:
    """UTF-8 JSON with the message where clients of ``api`` look for it; ``status`` is the HTTP status."""
    if api == "messages":
        return json.dumps({"type": "error", "error": {"type": "mock_error", "message": message}}).encode()
    if api == "generateContent":
        return json.dumps({"error": {"code": status, "message": message, "status": "UNKNOWN"}}).encode()
    return json.dumps({"error": {"message": message, "type": "mock_error", "code": None, "param": None}}).encode()


def _response(words: str, calls: list[tuple[str, dict[str, Any]]], fields: dict[str, Any]) -> dict[str, Any]:
    content = {"type": "output_text", "text": words, "annotations": []}
    message = {"type": "message", "id": "msg_0", "role": "assistant", "status": "completed", "content": [content]}
    output = [message] if words else []
    tools = fields.get("tools") or []
    preview = any(tool.get("type") == "computer_use_preview" for tool in tools)
    for number, item in enumerate(_items(calls, preview)):
        output.append({**item, "id": f"item_{number}", "call_id": f"call_{number}", "status": "completed"})
    details = {"cached_tokens": 0, "cache_write_tokens": 0}
    usage = {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT, "total_tokens": TOKENS_IN + TOKENS_OUT}
    return {
        "id": "resp_mock",
        "object": "response",
        "created_at": 0,
        "model": fields.get("model"),
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": tools,
        "top_p": 1.0,
        "usage": {**usage, "input_tokens_details": details, "output_tokens_details": {"reasoning_tokens": 0}},
    }


def _items(calls: list[tuple[str, dict[str, Any]]], preview: bool) -> Iterator[dict[str, Any]]:
    """Computer calls, each a batch of the actions that follow each other, and function calls."""
    batch: list[dict[str, Any]] = []

    def computer_call() -> dict[str, Any]:
        actions: dict[str, Any] = {"action": batch[0]} if preview else {"actions": list(batch)}
        batch.clear()
        return {"type": "computer_call", "pending_safety_checks": [], **actions}

    for name, arguments in calls:
        if name in _ACTIONS:
            batch.append({"type": name, **arguments})
            continue
        if batch:
            yield computer_call()
        yield {"type": "function_call", "name": name, "arguments": json.dumps(arguments)}
    if batch:
        yield computer_call()


def _message(words: str, calls: list[tuple[str, dict[str, Any]]], fields: dict[str, Any]) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": words, "citations": None}] if words else []
    tools = fields.get("tools") or []
    added = {tool.get("name") for tool in tools}
    for number, (name, arguments) in enumerate(calls):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments, "caller": {"type": "direct"}}
        blocks.append(block if name in added else {**block, "toolset_name": "computer"})
    return {
        "id": "msg_mock",
        "type": "message",
        "role": "assistant",
        "model": fields.get("model"),
        "content": blocks,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT},
    }


def _content(words: str, calls: list[tuple[str, dict[str, Any]]], fields: dict[str, Any]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": words}] if words else []
    parts += [{"functionCall": {"name": name, "args": arguments}} for name, arguments in calls]
    usage = {"promptTokenCount": TOKENS_IN, "candidatesTokenCount": TOKENS_OUT, "totalTokenCount": TOKENS_IN + TOKENS_OUT}
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "mock"}
