"""An aiohttp application on a free port of this machine, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType

from aiohttp import web

from tests.waiting import PATIENCE


class InThread:
    """Serves ``app`` while the context lasts; ``address`` is ``http://127.0.0.1:PORT``."""

    def __init__(self, app: web.Application) -> None:
        self._app = app
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._runner: web.AppRunner | None = None
        self.address = ""

    def __enter__(self) -> InThread:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(PATIENCE)
        return self

    async def _start(self) -> None:
        self._runner = web.AppRunner(self._app, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.address = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    def stop(self) -> None:
        """Close every connection and stop listening."""
        if self._runner is not None:
            asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(PATIENCE)
            self._runner = None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
        asyncio.run_coroutine_threadsafe(_cancel_rest(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_rest() -> None:
    """Cancel handlers that still wait, as those of clients that are gone."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
