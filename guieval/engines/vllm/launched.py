"""Sends requests to a server that is started for the run: an :class:`OpenAIEngine` whose URL is known once the server runs."""

from __future__ import annotations

from collections.abc import Sequence

from guieval.engines import EndpointStats
from guieval.engines.concurrency import AdaptiveConcurrency
from guieval.engines.http.chat_completions import OpenAIEngine, OpenAISettings, image_form
from guieval.engines.vllm.server import VLLMServer
from guieval.errors import EngineError, FatalEngineError
from guieval.journal.served_model import Served
from guieval.models import ImageForm, Reply, Request

_ENDING_SECONDS = 0.1
"""A killed process closes its connections a moment before it is gone."""


class LaunchedEngine:
    """Sends requests to ``server``, which the caller starts and stops. The server's URL replaces ``base_urls`` of the settings.

    As soon as a try fails because the server is gone, every request raises
    :class:`guieval.engines.vllm.server.ServerFailure`, so that a run ends at once with what it has.
    """

    def __init__(self, server: VLLMServer, settings: OpenAISettings, *, pace: AdaptiveConcurrency | None = None) -> None:
        self.server = server
        self._pace = pace
        self.settings = settings
        self.images: ImageForm = image_form(settings)
        self._client: OpenAIEngine | None = None

    async def discover(self, candidates: Sequence[str] = ()) -> str:
        """Find out the served model's name (:meth:`OpenAIEngine.discover`)."""
        return await self._connected().discover(candidates)

    async def generate(self, request: Request) -> Reply:
        """Answer one request (:meth:`OpenAIEngine.generate`)."""
        try:
            return await self._connected().generate(request)
        except FatalEngineError:
            raise
        except EngineError:  # the last try, after which there is no pause
            await self.server.pause(_ENDING_SECONDS)
            raise

    def served(self) -> Served | None:
        """The requested model (:meth:`OpenAIEngine.served`)."""
        return None if self._client is None else self._client.served()

    def stats(self) -> Sequence[EndpointStats]:
        """The server's statistics; empty before the first request."""
        return () if self._client is None else self._client.stats()

    def waiting(self) -> str | None:
        """The current wait for the server (:meth:`OpenAIEngine.waiting`)."""
        return None if self._client is None else self._client.waiting()

    async def close(self) -> None:
        """Close connections; the server stays."""
        if self._client is not None:
            await self._client.close()

    def _connected(self) -> OpenAIEngine:
        if self._client is None:
            settings = self.settings.model_copy(update={"base_urls": (self.server.base_url,)})
            self._client = OpenAIEngine(settings, sleep=self.server.pause, pace=self._pace)
        return self._client
