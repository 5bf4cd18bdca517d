"""The SDKs' HTTP client over the engine's own connections.

The SDKs' own client reads and unpacks an answer whole, however large it is, and follows redirects. Over
:class:`guieval.engines.http.connections.Connections`, an answer is bounded, and TLS, proxies and broken connections are handled
as for every other server. The SDKs accept any client of the package ``httpx2``, which all three require.
"""

from __future__ import annotations

import httpx2

from guieval.engines.apis.native import Connection
from guieval.engines.http.bounded_json import TooLarge, check_values
from guieval.engines.http.chat_answers import MAX_REPLY_BYTES, TryAgain, whole_answer

_OURS = frozenset({"accept-encoding", "connection", "content-length", "host"})
"""Headers of a request that the connection writes itself."""
_OF_THE_CONNECTION = frozenset({"connection", "content-encoding", "content-length", "transfer-encoding"})
"""Headers of an answer that do not hold for its unpacked body."""


class EngineTransport(httpx2.AsyncBaseTransport):
    """Sends requests over the connections of ``connection``, which stay open: their owner closes them.

    Raises what :meth:`guieval.engines.http.connections.Connections.exchange` raises, and
    :class:`guieval.engines.http.chat_answers.TryAgain` for an answer that is too large, has too many values or cannot be
    unpacked.
    """

    def __init__(self, connection: Connection) -> None:
        self._connections = connection.connections
        self._bodies = connection.bodies

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {name: value for name, value in request.headers.items() if name not in _OURS}
        headers["Accept-Encoding"] = "identity"
        url, body = str(request.url), await request.aread()
        answer = await self._connections.exchange(request.method, url, headers, body, MAX_REPLY_BYTES)
        content = whole_answer(url, answer.status, answer.headers, answer.data)
        self._bodies[request.headers.get("x-request-id", "")] = content
        try:
            check_values(content)
        except TooLarge as error:
            raise TryAgain(f"{url} sent an answer that {error}") from None
        return httpx2.Response(
            answer.status,
            headers=[pair for pair in answer.headers.items() if pair[0].lower() not in _OF_THE_CONNECTION],
            content=content,
        )


def client(connection: Connection) -> httpx2.AsyncClient:
    """The HTTP client of an SDK."""
    return httpx2.AsyncClient(transport=EngineTransport(connection), trust_env=False)
