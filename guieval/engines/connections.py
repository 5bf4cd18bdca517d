"""HTTP connections to one server, each a client of its own.

A shared httpx pool costs 6 ms of CPU a request at 64 connections, since it scans all of them twice a request; one client per
connection costs 0.6 ms whatever their number (measured). Whom to ask is :mod:`guieval.engines.routing`'s.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from guieval.errors import FatalEngineError

if TYPE_CHECKING:
    import ssl

    import httpx

_KEEP_ALIVE = 4.0  # seconds; vLLM closes an idle connection after 5, and a request sent into that costs a try


class Connections:
    """The connections to the server at ``url``, which has no trailing slash. They belong to one event loop at a time."""

    def __init__(self, url: str, *, trust_env: bool, verify_tls: bool) -> None:
        self.url = url
        self._trust_env = trust_env
        self._verify_tls = verify_tls
        self._idle: list[httpx.AsyncClient] = []
        self._addresses: dict[str, httpx.URL] = {}
        self._closed = False
        self._verify: Any = None

    def address(self, url: str) -> httpx.URL:
        """A URL, parsed; parsing costs as much as sending, so it is done once."""
        if url not in self._addresses:
            import httpx

            self._addresses[url] = httpx.URL(url)
        return self._addresses[url]

    async def exchange(self, request: httpx.Request, most: int) -> tuple[httpx.Response, bytes]:
        """Send and read the whole answer as it is on the wire, or its first bytes, just above ``most``."""
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
            else:
                reusable = not self._closed
            return response, b"".join(chunks)
        finally:
            # a client whose exchange was cut off is thrown away: nothing may be left in it for the next request
            if reusable:
                self._idle.append(client)
            else:
                await client.aclose()

    async def close(self) -> None:
        """Close the idle connections and let no more be kept."""
        self._closed = True
        await self.disconnect()

    async def disconnect(self) -> None:
        """Close the idle connections."""
        while self._idle:
            await self._idle.pop().aclose()

    def _connect(self) -> httpx.AsyncClient:
        import httpx

        if self._verify is None:
            # loading the certificates is slow, is the same for every client, and is of no use without TLS
            self._verify = self._certificates() if self.url.startswith("https:") else False
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=_KEEP_ALIVE)
        return httpx.AsyncClient(
            verify=self._verify, trust_env=self._trust_env, timeout=None, limits=limits, follow_redirects=False
        )

    def _certificates(self) -> ssl.SSLContext:
        import httpx

        try:
            # whom to trust is no matter of proxies: SSL_CERT_FILE and SSL_CERT_DIR hold whatever trust_env says
            return httpx.create_ssl_context(verify=self._verify_tls, trust_env=True)
        except OSError as error:
            file = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
            raise FatalEngineError(
                f"the certificates to trust, {file!r} (SSL_CERT_FILE), cannot be read: {error.strerror or error}"
            ) from None
