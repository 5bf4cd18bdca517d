"""Calls of an environment that hang: their deadline passes at once, and is far away for every call that only takes long."""

from __future__ import annotations

import asyncio

import pytest

from guieval.online import ABCDevice, ABCEnvironment
from tests.waiting import PATIENCE

SECONDS = 300.0
"""The deadline of a call, which none reaches on the busiest machine."""


class Deadlines:
    """Those in the event loops in which devices of an environment are opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, environment: type[ABCEnvironment]) -> None:
        self._loops: list[asyncio.AbstractEventLoop] = []
        opened = environment.open

        async def noted(opening: ABCEnvironment) -> ABCDevice:
            self._loops.append(asyncio.get_running_loop())
            return await opened(opening)

        monkeypatch.setattr(environment, "open", noted)

    def pass_now(self) -> None:
        """Put the clock of the last loop forward by :data:`SECONDS`; from any thread."""
        loop = self._loops[-1]
        now = loop.time

        def put_forward() -> None:
            loop.time = lambda: now() + SECONDS  # type: ignore[method-assign]

        loop.call_soon_threadsafe(put_forward)

    async def hang(self) -> None:
        """Let the deadline of the call that awaits this pass."""
        self.pass_now()
        await asyncio.sleep(0)
        await asyncio.sleep(PATIENCE)
        raise AssertionError("nothing ends a call after its deadline")
