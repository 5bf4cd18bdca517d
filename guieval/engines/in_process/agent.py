"""A model that answers in this process: an agent written in Python, called through :meth:`ABCModel.respond`.

The agent may block, so it runs in a bounded thread pool and the event loop stays free. Its exceptions become an
:class:`EngineError` of the step, and the run continues.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from guieval.engines import sent
from guieval.engines.in_process.chat_prompts import request_bytes
from guieval.errors import EngineError, FatalEngineError, UsageError
from guieval.journal.setup import AGENT, EngineFacts, Setup
from guieval.models import ABCModel, ImageForm, Request, Response


class LocalEngine:
    """Asks ``model.respond`` in up to ``workers`` threads at once."""

    images: ImageForm = "bytes"

    def __init__(self, model: ABCModel, *, workers: int = 4) -> None:
        if workers < 1:
            raise UsageError(f"a local engine needs at least 1 worker, not {workers}")
        self._model = model
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="guieval-agent")
        self._setup = Setup(engines=(EngineFacts(name=AGENT),))

    async def generate(self, request: Request) -> Response:
        """The agent's answer. Raises :class:`EngineError` with the type and text of an exception of the agent."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._answer, request)

    def setup(self) -> Setup:
        """The agent's request; its code is recorded by its digest (:class:`guieval.engines.ReportsSetup`)."""
        return self._setup

    def note(self, request: Request) -> None:
        self._setup = self._setup.joined(sent(request, request_bytes(request), "memory"))

    async def close(self) -> None:
        """Start no further request; does not wait for an agent that is still busy."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _answer(self, request: Request) -> Response:
        try:
            text = self._model.respond(request)
        except EngineError:
            raise
        except UsageError as error:
            raise FatalEngineError(str(error)) from error
        except Exception as error:  # foreign code may raise anything; this boundary turns it into the step's error
            raise EngineError(f"the agent failed with {type(error).__name__}: {error}") from error
        if not isinstance(text, str):
            raise EngineError(f"the agent answered with {type(text).__name__}, not with text")
        return Response(text)
