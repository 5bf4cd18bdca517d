"""JSON over HTTP from an environment's server: what goes wrong is one sentence that names the server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from guieval.errors import EnvironmentFailure, UsageError, one_line

if TYPE_CHECKING:
    import aiohttp

LISTING_SECONDS = 60.0
"""The most time for a list of tasks."""
MOST_BYTES = 256 * 1024 * 1024
"""The most bytes of an answer: a screenshot as numbers in JSON has about 4 bytes for each of 3 colours of a pixel."""

_Result = TypeVar("_Result")


def checked_address(url: str, name: str, example: str) -> str:
    """The address of a server as ``http://`` or ``https://``, without a final slash.

    Raises :class:`UsageError`, naming environment ``name`` and an ``example``, for an address that is missing or not one.
    """
    if not url:
        raise UsageError(f"environment {name!r} needs the address of its server: --set bench_options.url={example}")
    plain = url.replace("ws", "http", 1) if url.startswith(("ws://", "wss://")) else url
    try:
        parts = urlsplit(plain)
        right = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        right = False
    if not right:
        raise UsageError(f"option url is {url!r}; expected an address such as {example}")
    return plain.rstrip("/")


class Servers:
    """Servers that take one device each; ``urls`` are separated by commas.

    Raises :class:`UsageError`, naming environment ``name`` and an ``example``, for an address that is missing or not one.
    """

    def __init__(self, urls: str, name: str, example: str) -> None:
        self.addresses = tuple(checked_address(url.strip(), name, example) for url in urls.split(","))
        repeated = next((each for each in self.addresses if self.addresses.count(each) > 1), None)
        if repeated is not None:
            raise UsageError(f"option url names {repeated!r} twice")
        self._free = list(self.addresses)

    def take(self) -> str:
        """The address of a server that no device uses; :class:`EnvironmentFailure` if there is none."""
        if not self._free:
            raise EnvironmentFailure(f"all {len(self.addresses)} servers are in use")
        return self._free.pop(0)

    def give_back(self, address: str) -> None:
        """The server at ``address`` is free again; the others are taken first."""
        self._free.append(address)


class Service:
    """A server at ``address``; ``name`` is what messages call it. Every method raises :class:`EnvironmentFailure`."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self._session: aiohttp.ClientSession | None = None

    def session(self) -> aiohttp.ClientSession:
        """The session of the running loop; limits of time are the caller's."""
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, sock_connect=30))
        return self._session

    async def ask(
        self, method: str, path: str, *, params: Mapping[str, str | int] | None = None, body: Any = None
    ) -> tuple[int, Any]:
        """Status and JSON of an answer; the JSON is ``None`` where there is none."""
        import aiohttp

        content = bytearray()
        try:
            async with self.session().request(method, self.address + path, params=params, json=body) as answer:
                async for part in answer.content.iter_any():
                    content += part
                    if len(content) > MOST_BYTES:
                        raise EnvironmentFailure(f"{self.name} answers {path} with more than {MOST_BYTES:,} bytes")
        except (aiohttp.ClientError, OSError) as error:
            raise EnvironmentFailure(f"{self.name} does not answer at {self.address}: {why(error)}") from None
        try:  # in a thread: a screenshot in numbers takes a second
            return answer.status, await asyncio.to_thread(json.loads, content)
        except (ValueError, RecursionError):
            return answer.status, None

    async def get(self, path: str, **params: str | int) -> Any:
        """The JSON at a path."""
        return self._right(path, *await self.ask("GET", path, params=params))

    async def post(self, path: str, *, body: Any = None, **params: str | int) -> Any:
        """The JSON that a path answers."""
        return self._right(path, *await self.ask("POST", path, params=params, body=body))

    def _right(self, path: str, status: int, content: Any) -> Any:
        if status >= 400:
            detail = content.get("detail", content) if isinstance(content, dict) else content
            reason = "" if detail is None else f": {one_line(str(detail))}"
            raise EnvironmentFailure(f"{self.name} answers {path} with the error {status}{reason}")
        return content

    def wrong(self, path: str, content: Any, expected: str) -> EnvironmentFailure:
        """The failure of an answer that is not what its interface states."""
        return EnvironmentFailure(f"{self.name} answers {path} with {content!r:.80}; expected {expected}")

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def why(error: BaseException) -> str:
    """The reason of a failed connection in a few words."""
    return one_line(getattr(error, "strerror", None) or str(error)) or type(error).__name__


def look_up(name: str, address: str, question: Callable[[Service], Awaitable[_Result]], start: str) -> _Result:
    """The server's answer to ``question``, asked from code that is not asynchronous, in an event loop or outside of one.

    Raises :class:`UsageError`, ending with how to ``start`` the server, if it fails.
    """

    async def asked() -> _Result:
        service = Service(name, address)
        try:
            return await asyncio.wait_for(question(service), LISTING_SECONDS)
        finally:
            await service.close()

    try:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, asked()).result()
    except EnvironmentFailure as failure:
        raise UsageError(f"{failure}; {start}") from None
    except TimeoutError:
        raise UsageError(f"{name} does not answer at {address} within {LISTING_SECONDS:g} s; {start}") from None
