"""JSON over HTTP from an environment's server: what goes wrong is one sentence that names the server.

The connections are those of the model servers' client, with its rules (:mod:`guieval.engines.http.connections`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from guieval.engines.http.bounded_json import TooLarge, read_json, read_with_pictures
from guieval.engines.http.chat_answers import MAX_REPLY_BYTES, TryAgain
from guieval.engines.http.connections import Connections
from guieval.errors import EnvironmentFailure, FatalEngineError, NoServer, UsageError, one_line

if TYPE_CHECKING:
    import aiohttp

LISTING_SECONDS = 60.0
"""The most time for a list of tasks."""
MOST_BYTES = 256 * 1024 * 1024
"""The most bytes of an answer with a screenshot, which has about 4 bytes for each of 3 colours of a pixel as JSON."""

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


class DeviceServers:
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
        self._connections = Connections(address, trust_env=False, verify_tls=True)

    async def ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int] | None = None,
        body: Any = None,
        screenshot: bool = False,
    ) -> tuple[int, Any]:
        """Status and JSON of an answer; the JSON is ``None`` if there is none.

        An answer with a ``screenshot``, whose pixels are an array, may have :data:`MOST_BYTES`; others
        :data:`guieval.engines.http.chat_answers.MAX_REPLY_BYTES`.
        """
        from yarl import URL

        most = MOST_BYTES if screenshot else MAX_REPLY_BYTES
        url = str(URL(self.address + path).update_query(params or {}))
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        with self._reached():
            answer = await self._connections.exchange(method, url, headers, data, most)
        packed = answer.headers.get("Content-Encoding", "identity").strip().lower()
        if packed not in ("", "identity"):
            raise EnvironmentFailure(f"{self.name} answers {path} compressed as {packed[:40]!r}, though that was not requested")
        if 300 <= answer.status < 400:
            raise EnvironmentFailure(f"{self.name} redirects {path} elsewhere (status {answer.status}); give the final address")
        if len(answer.data) > most:
            raise EnvironmentFailure(f"{self.name} answers {path} with more than {most:,} bytes")
        return answer.status, await self.read(f"answers {path}", answer.data, screenshot=screenshot)

    async def read(self, what: str, data: bytes, *, screenshot: bool) -> Any:
        """The JSON of an answer; ``None`` if there is none. ``what`` the server does is for the message."""
        try:
            return await asyncio.to_thread(read_with_pictures if screenshot else read_json, data)
        except TooLarge as error:
            raise EnvironmentFailure(f"{self.name} {what} with JSON that {error}") from None
        except ValueError:
            return None

    async def websocket(self, path: str) -> aiohttp.ClientWebSocketResponse:
        """A WebSocket, whose messages may have :data:`MOST_BYTES`."""
        with self._reached(path):
            return await self._connections.websocket(self.address + path, MOST_BYTES)

    @contextmanager
    def _reached(self, path: str = "") -> Iterator[None]:
        try:
            yield
        except (TryAgain, FatalEngineError) as error:
            reason = why(error.__context__ or error)
            raise EnvironmentFailure(f"{self.name} does not answer at {self.address}{path}: {reason}") from None

    async def get(self, path: str, **params: str | int) -> Any:
        return self._right(path, *await self.ask("GET", path, params=params))

    async def screenshot(self, path: str, field: str, **params: str | int) -> Any:
        """The value of a field with a screenshot, in the JSON object at a path."""
        content = self._right(path, *await self.ask("GET", path, params=params, screenshot=True))
        if not isinstance(content, dict):
            raise self.wrong(path, content, "an object")
        return content.get(field)

    async def post(self, path: str, *, body: Any = None, **params: str | int) -> Any:
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
        await self._connections.close()


def why(error: BaseException) -> str:
    """The reason of a failed connection in a few words."""
    return one_line(getattr(error, "strerror", None) or str(error)) or type(error).__name__


def look_up(name: str, address: str, question: Callable[[Service], Awaitable[_Result]], start: str) -> _Result:
    """The server's answer to ``question``, asked from code that is not asynchronous, in an event loop or outside of one.

    Raises :class:`NoServer`, ending with how to ``start`` the server, if it fails.
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
        raise NoServer(f"{failure}; {start}") from None
    except TimeoutError:
        raise NoServer(f"{name} does not answer at {address} within {LISTING_SECONDS:g} s; {start}") from None
