"""Engines of native APIs: the makers' real SDKs against the mock server, which speaks their wire formats."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from guieval.data.screenshots import Screenshot
from guieval.engines.apis.hosted import HostedEngine
from guieval.engines.apis.native import zoomed
from guieval.errors import EngineError, FatalEngineError, UsageError
from guieval.models import END_TURN, Bill, Response
from guieval.models.response import Call
from guieval.playground.mock_server import MockServer
from guieval.running.engine_choice import native_api
from guieval.settings import Server
from guieval.steps import Usage
from tests.engines import asking
from tests.engines.asking import Sleeps, make_request
from tests.json_values import read_json
from tests.rows import every_row
from tests.waiting import PATIENCE

Ask = Callable[..., Response]
KINDS = ("openai-responses", "anthropic", "gemini")
TOOLS: dict[str, dict[str, Any]] = {
    "openai-responses": {"tools": [{"type": "computer"}]},
    "anthropic": {"tools": [{"type": "computer_toolset_20260801"}]},
    "gemini": {"tools": [{"computer_use": {"environment": "ENVIRONMENT_MOBILE"}}]},
}
CLICK: dict[str, tuple[str, dict[str, Any]]] = {
    "openai-responses": ("click", {"button": "left", "x": 108, "y": 480}),
    "anthropic": ("left_click", {"coordinate": [108, 480]}),
    "gemini": ("click", {"x": 100, "y": 200}),
}
LOOK = {"openai-responses": "screenshot", "anthropic": "screenshot", "gemini": "take_screenshot"}


def screenshot() -> Screenshot:
    from PIL import Image

    image = Image.new("RGB", (108, 240), "white")
    image.paste((255, 0, 0), (54, 120, 108, 240))
    file = io.BytesIO()
    image.save(file, "PNG")
    return Screenshot(file.getvalue(), "png", image.size)


def called(*calls: tuple[str, dict[str, Any]], words: str = "The button is there.") -> str:
    return Response(words, calls=tuple(Call(name, arguments) for name, arguments in calls)).written


def mock(kind: str, **changes: Any) -> AbstractContextManager[MockServer]:
    return asking.mock(**{"reply": called(CLICK[kind]), "served_models": ("m",), **changes})


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in KINDS:
        monkeypatch.delenv(native_api(name).key_env, raising=False)
    chosen: str = request.param
    return chosen


@pytest.fixture
def sleeps() -> Sleeps:
    return Sleeps()


@pytest.fixture
def bills() -> list[Bill]:
    """The bills of the requests so far."""
    return []


@pytest.fixture
def ask(kind: str, sleeps: Sleeps, bills: list[Bill]) -> Ask:
    """Ask one question of a server; the waits between tries are not waited for."""

    def ask(
        url: str, *, extra: dict[str, Any] | None = None, sampling: dict[str, Any] | None = None, **changes: Any
    ) -> Response:
        api = native_api(kind)
        fields: dict[str, Any] = {"base_urls": (url,), "served_model": "m", "timeout": PATIENCE, "api_key_env": api.key_env}
        engine = HostedEngine(api, Server(**{**fields, **changes}), sleep=sleeps)
        request = make_request(
            "Click on the button.", images=[screenshot()], extra={**TOOLS[kind], **(extra or {})}, sampling=sampling
        )
        bills.append(request.bill)
        return asking.ask(engine, request)

    return ask


def test_an_answer_is_read_with_its_calls_words_and_tokens(kind: str, ask: Ask) -> None:
    with mock(kind) as server:
        reply = ask(server.base_url)
        (request,) = server.requests
    assert reply.text == called(CLICK[kind])
    assert reply.usage == Usage(prompt_tokens=3000, completion_tokens=60) and reply.attempts == 1
    assert reply.model == ("mock" if kind == "gemini" else "m")
    assert "sub|e0|0" in request.headers["x-request-id"]
    body = request.body.decode()
    assert "You are an agent." in body and "Click on the button." in body and screenshot().base64.decode()[:60] in body


def test_the_mock_server_answers_in_the_sdks_own_types(kind: str) -> None:
    """The SDKs build their objects without a check, so the bodies are validated here, with nothing unknown or missing."""
    from anthropic.types import Message as AnthropicMessage
    from google.genai.types import GenerateContentResponse
    from openai.types.responses import Response

    from guieval.playground.mock_server.native import answer_body

    path = {"openai-responses": "responses", "anthropic": "messages", "gemini": "generateContent"}[kind]
    two = called(CLICK[kind], ("end_task", {"status": "done"}))
    body = read_json(answer_body(path, two, json.dumps({"model": "m", "tools": TOOLS[kind]["tools"]}).encode(), 0))  # type: ignore[arg-type]
    types: dict[str, Any] = {"openai-responses": Response, "anthropic": AnthropicMessage, "gemini": GenerateContentResponse}
    checked = types[kind].model_validate(body, strict=kind != "gemini")
    assert "click" in checked.model_dump_json() and "end_task" in checked.model_dump_json()


def test_a_turn_without_a_call_is_marked(kind: str, ask: Ask) -> None:
    with mock(kind, reply="All done.") as server:
        assert ask(server.base_url).text == f"All done.\n{END_TURN}"


def test_a_model_that_looks_is_shown_the_screen_and_asked_again(kind: str, ask: Ask, bills: list[Bill]) -> None:
    with mock(kind, looks=2) as server:
        reply = ask(server.base_url, extra={"looks": 3})
        requests = server.requests
    assert reply.text.count(f'"name": "{LOOK[kind]}"') == 2 and reply.text.endswith(called(CLICK[kind]))
    assert reply.usage == WHOLE and bills[-1].others == [WHOLE, WHOLE], "every answer is paid for"
    assert [request.body.count(screenshot().base64[:60]) for request in requests] == [1, 2, 3]
    assert reply.attempts == 1


def test_a_model_may_look_only_so_often(kind: str, ask: Ask) -> None:
    with mock(kind, looks=9) as server:
        reply = ask(server.base_url, extra={"looks": 2})
        assert len(server.requests) == 3
    assert reply.text.count(f'"name": "{LOOK[kind]}"') == 3 and "left_click" not in reply.text


def test_several_calls_keep_their_order(kind: str, ask: Ask) -> None:
    text = called(CLICK[kind], ("type", {"text": "a"}), ("end_task", {"status": "done"}))
    with mock(kind, reply=text) as server:
        assert ask(server.base_url).text == text


WHOLE = Usage(prompt_tokens=3000, completion_tokens=60)
CUT = {"openai-responses": "max_output_tokens", "anthropic": "max_tokens", "gemini": "MAX_TOKENS"}


@every_row(
    ("fault", "text", "usage"),
    [
        ("gzip", None, WHOLE),
        ("null-content", "", WHOLE),  # it is the model's, and ends nothing
        ("cut-text", "The button", WHOLE),
        ("absurd-numbers", None, Usage()),  # half an answer's tokens would understate its cost
    ],
)
def test_an_odd_answer_is_an_answer(kind: str, ask: Ask, fault: str, text: str | None, usage: Usage) -> None:
    with mock(kind, first_faults=(fault,)) as server:
        reply = ask(server.base_url)
        assert server.requests[0].headers["accept-encoding"] == "identity"
    assert (reply.text, reply.attempts) == (called(CLICK[kind]) if text is None else text, 1)
    assert reply.usage == usage and (fault != "cut-text" or reply.finish_reason == CUT[kind])


@every_row(
    ("broken", "changes", "fatal", "sentence"),
    [
        ({"first_faults": ("flood",)}, {"max_attempts": 1}, False, "sent more than 8 MiB"),
        ({"error_rate": 1.0}, {"max_attempts": 2}, False, "no usable answer after 2 tries"),
        ({"longest_body": 10}, {}, False, "refuses this request"),
        ({"error_rate": 1.0, "error_status": 302}, {}, True, "redirects elsewhere"),
        ({}, {"sampling": {"min_p": 0.1}}, True, "no request parameter 'min_p'"),
    ],
)
def test_a_failure_is_one_sentence_and_ends_its_step_or_the_run(
    kind: str, ask: Ask, broken: dict[str, Any], changes: dict[str, Any], fatal: bool, sentence: str
) -> None:
    with mock(kind, **broken) as server, pytest.raises(EngineError, match=sentence) as caught:
        ask(server.base_url, **changes)
    assert isinstance(caught.value, FatalEngineError) == fatal


def test_a_look_of_an_attempt_that_failed_is_paid_as_well(kind: str, ask: Ask, bills: list[Bill]) -> None:
    with mock(kind, looks=1, first_faults=("", "529")) as server:
        reply = ask(server.base_url, extra={"looks": 3})
    assert reply.attempts == 2 and reply.usage == WHOLE
    assert bills[-1].others == [WHOLE, WHOLE], "of the attempt that failed, and of the one that did not"


@pytest.mark.parametrize("kind", ["anthropic"], indirect=True)
@pytest.mark.parametrize("tool", ["computer_toolset_20260801", "computer_20251124"])
def test_the_answer_to_a_look_names_the_toolset(tool: str, kind: str, ask: Ask) -> None:
    """The service, and the mock server with it, refuses an answer to a toolset's member that does not."""
    offered: dict[str, Any] = {"type": tool}
    if tool == "computer_20251124":
        offered |= {"name": "computer", "display_width_px": 108, "display_height_px": 240}
    with mock(kind, looks=1) as server:
        ask(server.base_url, extra={"looks": 1, "tools": [offered], "betas": ["computer-use-2025-11-24"]})
        _, second = (read_json(request.body) for request in server.requests)
    (result,) = second["messages"][-1]["content"]
    named = "computer" if tool == "computer_toolset_20260801" else None
    assert result["type"] == "tool_result" and result.get("toolset_name") == named


@pytest.mark.parametrize("kind", ["openai-responses"], indirect=True)
def test_the_detail_of_images_holds_for_answers_to_looks_too(kind: str, ask: Ask) -> None:
    with mock(kind, looks=1) as server:
        ask(server.base_url, extra={"looks": 1, "image_detail": "original"})
        _, second = (read_json(request.body) for request in server.requests)
    (image,) = (part for part in second["input"][0]["content"] if part["type"] == "input_image")
    assert image["detail"] == "original"
    assert second["input"][-1]["output"]["detail"] == "original"


def test_a_refusal_in_words_ends_the_task() -> None:
    from guieval.engines.apis.anthropic_messages import _turn

    refused = {"content": [{"type": "text", "text": "I cannot do this."}], "stop_reason": "refusal"}
    assert _turn(refused).written == f"<refusal>I cannot do this.</refusal>\n{END_TURN}"


def test_nobody_at_the_address_is_one_sentence(kind: str, ask: Ask) -> None:
    with pytest.raises(FatalEngineError, match="could not be reached"):
        ask("http://127.0.0.1:9/v1", max_attempts=2)


def test_the_makers_own_address_needs_a_key_and_two_are_refused(kind: str) -> None:
    api = native_api(kind)
    with pytest.raises(UsageError, match=f"needs a key: set the environment variable {api.key_env}"):
        HostedEngine(api, Server(base_urls=(api.own_url,), served_model="m", api_key_env=api.key_env))
    with pytest.raises(UsageError, match="2 base URLs"):
        HostedEngine(api, Server(base_urls=("http://a/v1", "http://b/v1"), served_model="m"))


def test_request_parameters_have_the_apis_names(kind: str, ask: Ask) -> None:
    with mock(kind) as server:
        ask(server.base_url, sampling={"max_tokens": 77, "top_p": 0.5})
        body = read_json(server.requests[0].body)
    name = {"openai-responses": "max_output_tokens", "anthropic": "max_tokens", "gemini": "maxOutputTokens"}[kind]
    assert (body["generationConfig"] if kind == "gemini" else body)[name] == 77


def test_a_zoom_is_the_region_enlarged() -> None:
    from PIL import Image

    whole = screenshot()
    part = zoomed(whole, [54, 120, 108, 240])
    with Image.open(io.BytesIO(part.data)) as image:
        assert image.size == part.size == (108, 240) and image.getpixel((5, 5)) == (255, 0, 0)
    assert zoomed(whole, [200, 300, 400, 500]) is whole, "off the screen"
    assert zoomed(whole, [108, 240, 54, 120]).data == part.data, "corners in any order"


def test_safety_checks_are_acknowledged_and_written_down() -> None:
    from guieval.engines.apis.native import Connection, NativeRequest
    from guieval.engines.apis.openai_responses import OpenAIResponses, _turn
    from guieval.engines.http.connections import Connections

    check = {"id": "sc_1", "code": "malicious_instructions", "message": "The page asks for a password."}
    call = {"type": "computer_call", "call_id": "c", "pending_safety_checks": [check], "actions": [{"type": "screenshot"}]}
    turn = _turn({"output": [call], "status": "completed"})
    assert "<safety_check>malicious_instructions: The page asks for a password.</safety_check>" in turn.written
    conversation = NativeRequest({}, [], [screenshot()], 1)
    connections = Connections("https://127.0.0.1:9", trust_env=False, verify_tls=True)
    OpenAIResponses(Connection(None, "sk-key", 1.0, connections)).answer_looks(conversation, turn)
    assert conversation.turns[-1]["acknowledged_safety_checks"] == [check]


def test_anthropics_cached_tokens_are_part_of_the_prompt() -> None:
    from guieval.engines.apis.anthropic_messages import _turn

    usage = {"input_tokens": 10, "cache_read_input_tokens": 2000, "cache_creation_input_tokens": 300, "output_tokens": 5}
    assert _turn({"content": [], "usage": usage}).response.usage == Usage(prompt_tokens=2310, completion_tokens=5)
    assert _turn({"content": [], "usage": usage | {"cache_read_input_tokens": -(2**62)}}).response.usage == Usage(
        completion_tokens=5
    )


@every_row(
    ("refusal", "header"),
    [
        ({"error": {"details": [{"@type": "other"}, {"@type": "RetryInfo", "retryDelay": "19.5s"}]}}, {"retry-after": "19.5"}),
        ({"error": {"details": ["?", {"retryDelay": 19}]}}, {}),
        ({"error": "busy"}, {}),
        (None, {}),
    ],
)
def test_geminis_refusals_name_the_time_to_wait(refusal: Any, header: dict[str, str]) -> None:
    from guieval.engines.apis.gemini import _asked_wait

    assert _asked_wait(refusal) == header


@pytest.mark.parametrize("kind", ["anthropic"], indirect=True)
@pytest.mark.parametrize("cached", [True, False])
def test_anthropics_breakpoint_is_set_where_it_is_asked_for(cached: bool, kind: str, ask: Ask) -> None:
    with mock(kind) as server:
        ask(server.base_url, extra={"prompt_cache": cached})
        assert (b"cache_control" in server.requests[0].body) == cached
