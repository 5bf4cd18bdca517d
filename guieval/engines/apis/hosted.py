"""Answers requests by a hosted model's native API: the OpenAI-compatible client's retries, waits and numbers over an SDK."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from guieval.engines.apis.native import Connection, NativeAPI, NativeRequest, TooDeep, Turn, Unanswered
from guieval.engines.http.chat_answers import TryAgain, whole_response
from guieval.engines.http.chat_completions import OpenAIEngine
from guieval.engines.http.image_references import Refusal
from guieval.engines.http.routing import RoutedServer
from guieval.engines.usage_reports import usage_in
from guieval.errors import EngineError, FatalEngineError, UsageError
from guieval.journal.setup import EngineFacts
from guieval.models import ImageForm, Request, Response
from guieval.settings import Server as ServerSettings
from guieval.steps import Usage

_TOOL_REFUSED = re.compile(r"(?i)not support[^.]*\bcomputer|\bcomputer\w*\b[^.]*not (support|enabled)")
"""A refusal of the computer tool, as in "'claude-sonnet-4-6' does not support tool types: computer_20250124"
(anthropics/anthropic-sdk-typescript issue 914) and "Tool 'computer_use_preview' is not supported with gpt-5.4."
(openai/openai-agents-python issue 2624)."""


class HostedEngine(OpenAIEngine):
    """Answers requests by ``api``. ``settings`` name one base URL, the model and the key's variable.

    Raises :class:`UsageError` when the SDK is not installed, several base URLs are given, or the key is missing and the
    address is the maker's own.
    """

    images: ImageForm = "base64"

    def __init__(self, api: type[NativeAPI], settings: ServerSettings, **more: Any) -> None:
        if find_spec(api.package) is None:
            raise UsageError(f"this model's API needs its maker's SDK: pip install 'guieval[{api.extra}]'")
        if len(settings.base_urls) > 1:
            raise UsageError(
                f"this model's API is queried at a single address, and {len(settings.base_urls)} base URLs are given"
            )
        super().__init__(settings, **more)
        if self._router.servers[0].connections.query:
            raise UsageError("the base URL of a model's native API must not hold a query; one of a chat-completions server may")
        (url,) = settings.base_urls
        if url == api.own_url and not self._key:
            raise UsageError(
                f"model {settings.served_model!r} is answered by {url}, which needs a key: set the environment variable "
                f"{settings.api_key_env}, or give --base-url of a server that needs none"
            )
        self._bodies: dict[str, bytes] = {}
        self._api = api(
            Connection(
                None if url == api.own_url else url.removesuffix("/v1"),
                self._key or "none",
                settings.timeout,
                self._router.servers[0].connections,
                self._bodies,
            )
        )

    async def discover(self, candidates: Sequence[str] = ()) -> str:
        """The model's name, which for a hosted model is always given."""
        self.model = self.model or next(iter(candidates))
        return self.model

    async def close(self) -> None:
        await self._api.close()
        await super().close()

    def _engines(self, model: str) -> Iterator[EngineFacts]:
        """The API alone: these are not asked for the models they serve; responses report theirs, with its version."""
        yield EngineFacts(url=self._router.servers[0].url, name=self._api.title)

    def _bytes(self, request: Request, model: str) -> bytes:
        """The request in the API's words; its SDK may write the same in another order."""
        conversation = self._api.begin(request, model)
        return json.dumps([conversation.fields, conversation.turns], default=repr, sort_keys=True).encode()

    def _body(self, request: Request, model: str) -> NativeRequest:
        return self._api.begin(request, model)

    async def _ask(self, server: RoutedServer, body: Any, request: Request, name: str) -> Response:
        """Ask until the model acts, or has looked as often as it may; the response has the calls of all its responses.

        The looks are on the request's bill, for another attempt begins again.
        """
        turns: list[Turn] = []
        conversation = replace(body, turns=list(body.turns))  # a try that fails begins again
        while True:
            turns.append(await self._turn(server, conversation, name))
            if not turns[-1].only_looks or len(turns) > conversation.looks or not turns[-1].can_be_sent:
                break
            looked = turns[-1].response.usage or Usage()
            request.bill.add(looked)
            self._router.paid(server, looked)
            request.bill.check()
            self._api.answer_looks(conversation, turns[-1])
        responses = [turn.response for turn in turns]
        return replace(
            responses[-1],
            text="\n".join(turn.written for turn in turns),
            calls=(),
            reasoning="\n".join(each.reasoning for each in responses if each.reasoning) or None,
        )

    async def _turn(self, server: RoutedServer, conversation: NativeRequest, name: str) -> Turn:
        try:
            return await self._received(server, conversation, name)
        except Refusal as failure:
            failure.usage = failure.usage or usage_in(self._bodies.get(name, b""))
            raise
        finally:
            self._bodies.pop(name, None)

    async def _received(self, server: RoutedServer, conversation: NativeRequest, name: str) -> Turn:
        try:
            async with asyncio.timeout(self.settings.timeout):
                turn = await self._api.send(conversation, name)
        except TimeoutError:
            raise TryAgain(f"{server.url} did not answer within {self.settings.timeout:g} s", slow=True) from None
        except Unanswered as problem:
            self._patience.answered(server, by_gateway=problem.status in (502, 503, 504))
            raise self._refusal(server.url, problem.status, problem.headers, problem.data) from None
        except TooDeep:
            body = self._bodies.get(name, b"")
            turn = Turn(Response(body.decode("utf-8", "replace"), usage=usage_in(body)), None)
        except ValueError as problem:
            raise TryAgain(f"{server.url} sent an answer that cannot be read: {problem}") from None
        self._patience.answered(server, by_gateway=False)
        whole_response(turn.response)
        return turn

    def _error(self, url: str, status: int, headers: Mapping[str, str], message: str) -> TryAgain | EngineError:
        if status == 404:
            suffix = f": {message}" if message else ""
            return FatalEngineError(
                f"{url} has no model {self.model!r} (status 404); --served-model sets its name there{suffix}"
            )
        if status == 400 and _TOOL_REFUSED.search(message):  # every request offers the same tool
            return FatalEngineError(
                f"{url} does not offer model {self.model!r} this computer tool (status 400): {message}; choose another "
                "model, or another tool with --set options.tool=NAME if the model's family has several"
            )
        return super()._error(url, status, headers, message)
