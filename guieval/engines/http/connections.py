"""HTTP connections to one server, each a client of its own.

A shared httpx pool costs 6 ms of CPU per request at 64 connections, since it scans all of them twice per request; one client
per connection costs 0.6 ms at any number (measured). :mod:`guieval.engines.http.routing` chooses the server.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from guieval.errors import FatalEngineError

if TYPE_CHECKING:
    import ssl

    import httpx

_KEEP_ALIVE = 4.0  # seconds; vLLM closes an idle connection after 5, and a request sent into that costs a try


class Connections:
    """The connections to the server at ``url`` (without a trailing slash). Bound to one event loop at a time."""

    def __init__(self, url: str, *, trust_env: bool, verify_tls: bool, proxy: str | None = None) -> None:
        self.url = url
        self._proxy = proxy
        self._trust_env = trust_env
        self._verify_tls = verify_tls
        self._idle: list[httpx.AsyncClient] = []
        self._addresses: dict[str, httpx.URL] = {}
        self._closed = False
        self._verify: Any = None

    def address(self, url: str) -> httpx.URL:
        """The parsed URL; parsing costs as much as sending, so the result is cached."""
        if url not in self._addresses:
            import httpx

            self._addresses[url] = httpx.URL(url)
        return self._addresses[url]

    async def exchange(
        self, request: httpx.Request, most: int, check: Callable[[bytes], None] = lambda data: None
    ) -> tuple[httpx.Response, bytes]:
        """Send, and read the raw answer up to just above ``most`` bytes.

        ``check`` is called with these bytes; if it raises, the connection is closed.
        """
        client = self._idle.pop() if self._idle else self._connect()
        reusable = False
        try:
            response = await client.send(request, stream=True)
            chunks: list[bytes] = []
            size = 0
            async for chunk in response.aiter_raw():
                chunks.append(chunk)
                size += len(chunk)
                if size > most:
                    break
            data = b"".join(chunks)
            check(data)
            reusable = size <= most and not self._closed and _is_used_up(response)
            return response, data
        finally:
            # after an interrupted exchange the client is discarded, since it may hold bytes of the old answer
            if reusable:
                self._idle.append(client)
            else:
                await client.aclose()

    async def close(self) -> None:
        """Close the idle connections and keep no more."""
        self._closed = True
        await self.disconnect()

    async def disconnect(self) -> None:
        """Close the idle connections."""
        while self._idle:
            await self._idle.pop().aclose()

    def _connect(self) -> httpx.AsyncClient:
        import httpx

        if self._verify is None:
            # loading the certificates is slow, so it is done once, and only for TLS
            self._verify = self._certificates() if self.url.startswith("https:") else False
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=_KEEP_ALIVE)
        return httpx.AsyncClient(
            verify=self._verify,
            proxy=self._proxy,
            trust_env=self._trust_env,
            timeout=None,
            limits=limits,
            follow_redirects=False,
        )

    def _certificates(self) -> ssl.SSLContext:
        import httpx

        try:
            # trust_env of the engine is about proxies: SSL_CERT_FILE and SSL_CERT_DIR always apply
            return httpx.create_ssl_context(verify=self._verify_tls, trust_env=True)
        except OSError as error:
            file = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
            raise FatalEngineError(
                f"the certificates to trust, {file!r} (SSL_CERT_FILE), cannot be read: {error.strerror or error}"
            ) from None


def _is_used_up(response: httpx.Response) -> bool:
    """Whether no bytes followed the answer: the next request on the connection would read them as the start of its answer.

    httpx checks the kernel's buffer before it reuses a connection, but not the buffers of h11, TLS and anyio, and has no
    public API for them. If a version of httpx keeps them elsewhere, the connection is not reused.
    """
    try:
        if response.stream._stream._httpcore_stream._stream._connection._h11_state.trailing_data[0]:  # type: ignore[union-attr]
            return False
        stream = response.extensions["network_stream"]._stream
        if (encrypted := getattr(stream, "transport_stream", None)) is not None:
            if stream._ssl_object.pending() or stream._read_bio.pending:
                return False
            stream = encrypted
        return not stream._protocol.read_queue
    except AttributeError:
        return False
