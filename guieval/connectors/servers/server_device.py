"""A device that occupies a server of its own until it is closed, as emulators with an HTTP interface do."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from guieval.connectors.servers.foreign_screenshots import read_screenshot
from guieval.connectors.servers.service import DeviceServers, Service
from guieval.errors import EnvironmentFailure
from guieval.online.contract import UNKNOWN, ABCDevice, ABCEnvironment, Observation

TEAR_DOWN_SECONDS = 10.0


class ServedEnvironment(ABCEnvironment):
    """Tasks of ``servers`` that take one device each."""

    servers: DeviceServers
    outward = frozenset({"url"})
    tried = False

    def identity(self) -> Mapping[str, str]:
        return {"server version": UNKNOWN}  # neither server states one

    @property
    def most_devices(self) -> int:
        return len(self.servers.addresses)


class ServerDevice(ABCDevice):
    """Takes a free one of ``servers``; ``name`` is what messages call it.

    Raises :class:`EnvironmentFailure` if all are in use.
    """

    def __init__(self, name: str, servers: DeviceServers) -> None:
        self.seen: Observation | None = None
        """The last observation, once a task has begun."""
        self._servers = servers
        self._address = servers.take()
        self._open = True
        self.service = Service(name, self._address)

    async def started(self) -> ABCDevice:
        """The device, once its server answers; closed if it does not."""
        try:
            await self.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        if not self._open:
            return
        self._open = False
        try:
            with suppress(EnvironmentFailure, TimeoutError):
                await asyncio.wait_for(self.tear_down(), TEAR_DOWN_SECONDS)
        finally:
            await self.service.close()
            self._servers.give_back(self._address)

    async def observed(self, goal: str, value: Any, *, over: bool = False) -> Observation:
        """The observation with the screenshot that a server sent (:func:`read_screenshot`)."""
        screenshot, size = await asyncio.to_thread(read_screenshot, value)
        self.seen = Observation(goal, screenshot, size, over=over)
        return self.seen

    def score_in(self, path: str, content: Any, *, right: bool = True) -> float:
        """The score in a server's answer; :class:`EnvironmentFailure` for one that is not in [0, 1]."""
        value = content.get("score") if right and isinstance(content, dict) else None
        if not isinstance(value, int | float) or not 0 <= value <= 1:
            raise self.service.wrong(path, content, "a score in [0, 1]")
        return value

    @abstractmethod
    async def start(self) -> None:
        """See that the server is ready."""

    @abstractmethod
    async def tear_down(self) -> None:
        """End the task that has begun, if any."""
