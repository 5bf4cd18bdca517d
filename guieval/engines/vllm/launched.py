"""Sends requests to a server that is started for the run, whose URL is known once it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from guieval.engines.http.chat_completions import OpenAIEngine
from guieval.engines.vllm.server import VLLMServer
from guieval.errors import EngineError, FatalEngineError
from guieval.journal.setup import EngineFacts
from guieval.models import Request, Response
from guieval.settings import Server as ServerSettings

_ENDING_SECONDS = 0.1
"""A killed process closes its connections a moment before it is gone."""


class LaunchedEngine(OpenAIEngine):
    """Sends requests to ``server``, which the caller starts and stops.

    :meth:`discover` replaces the URL in ``settings.base_urls`` by the server's. As soon as a try fails because the server is
    gone, every request raises :class:`guieval.engines.vllm.server.ServerFailure`, so that a run ends at once with what it has.
    """

    def __init__(self, server: VLLMServer, settings: ServerSettings, **more: Any) -> None:
        super().__init__(settings, sleep=server.pause, **more)
        self._server = server

    async def discover(self, candidates: Sequence[str] = ()) -> str:
        """Find out the served model's name (:meth:`OpenAIEngine.discover`); needed before the first request."""
        self._router.servers[0].connections.url = self._server.base_url
        return await super().discover(candidates)

    def _engines(self, model: str) -> Iterator[EngineFacts]:
        """What the server said, its log and its command."""
        for said in super()._engines(model):
            yield said.completed(self._server.facts())

    async def generate(self, request: Request) -> Response:
        try:
            return await super().generate(request)
        except FatalEngineError:
            raise
        except EngineError:  # the last try, after which there is no pause
            await self._server.pause(_ENDING_SECONDS)
            raise
