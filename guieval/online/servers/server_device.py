"""A device that occupies a server of its own until it is closed, as emulators with an HTTP interface do."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from contextlib import suppress

from guieval.errors import EnvironmentFailure
from guieval.online.contract import ABCDevice
from guieval.online.servers.service import Servers, Service

TEAR_DOWN_SECONDS = 10.0


class ServerDevice(ABCDevice):
    """Takes a free one of ``servers``; ``name`` is what messages call it.

    Raises :class:`EnvironmentFailure` where all are in use.
    """

    def __init__(self, name: str, servers: Servers) -> None:
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

    @abstractmethod
    async def start(self) -> None:
        """See that the server is ready."""

    @abstractmethod
    async def tear_down(self) -> None:
        """End the task that has begun, if any."""
