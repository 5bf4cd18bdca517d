"""HTTP connections to one server, over aiohttp: a request costs a third of the CPU that httpx needs (docs/scaling.md).

Model servers, makers' SDKs and environments' servers are all reached over these: no redirect is followed, no compression is
requested or undone, and no answer is read far beyond its limit. An answer must never be taken for that of another request, so a
connection on which more arrives than its answer is not used again. aiohttp alone keeps such bytes.
:mod:`guieval.engines.http.routing` chooses the server.
"""

from __future__ import annotations

import os
import select
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.request import getproxies, proxy_bypass

from guieval.engines.http.chat_answers import TryAgain
from guieval.engines.usage_reports import usage_in
from guieval.errors import FatalEngineError

if TYPE_CHECKING:
    import aiohttp

_KEEP_ALIVE = 4.0  # seconds; vLLM closes an idle connection after 5, and a request sent into that costs a try


class HttpResponse(NamedTuple):
    """An HTTP response; the names of ``headers`` are case-insensitive, and ``data`` is compressed as the server sent it."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class Connections:
    """The connections to the server at ``url`` (without a trailing slash). Bound to one event loop from use to close.

    ``query`` is what a request adds to every URL: empty, or a question mark and parameters.
    """

    def __init__(self, url: str, *, trust_env: bool, verify_tls: bool, proxy: str | None = None, query: str = "") -> None:
        self.url = url
        self.query = query
        proxy = proxy or (_environment_proxy(url) if trust_env else None)
        is_socks = proxy is not None and proxy.startswith("socks")
        self._socks = proxy if is_socks else None
        self._proxy = None if is_socks else proxy
        self._verify_tls = verify_tls
        self._session: aiohttp.ClientSession | None = None

    async def exchange(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        most: int,
        check: Callable[[bytes], None] = lambda data: None,
    ) -> HttpResponse:
        """Send a request and read its answer, up to just above ``most`` bytes.

        ``check`` is called with these bytes; if it raises, the connection is closed. Raises :class:`TryAgain` when there is
        no connection or no complete answer, and :class:`FatalEngineError` when TLS is not set up as the server's is.
        """
        session, chunks = self._opened(), list[bytes]()
        with self._failures(url, chunks):
            async with session.request(
                method, url, headers=headers, data=body, proxy=self._proxy, allow_redirects=False
            ) as response:
                protocol: Any = response._protocol  # it is released with the last byte, before ``check``
                size = 0
                async for chunk in response.content.iter_any():
                    chunks.append(chunk)
                    size += len(chunk)
                    if size > most:
                        break
                answer = HttpResponse(response.status, response.headers, b"".join(chunks))
        try:
            check(answer.data)
        except BaseException:
            protocol.force_close()
            raise
        return answer

    async def websocket(self, url: str, most: int) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket, whose messages may have ``most`` bytes. Raises as :meth:`exchange` does."""
        session = self._opened()
        with self._failures(url, []):
            return await session.ws_connect(url, proxy=self._proxy, max_msg_size=most)

    async def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @contextmanager
    def _failures(self, url: str, received: Sequence[bytes]) -> Iterator[None]:
        """Turn aiohttp's errors into those of :meth:`exchange`; ``received`` is what came before them."""
        import aiohttp

        try:
            yield
        except (aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError) as error:
            raise _unreachable(url, self.url, error) from None
        except (aiohttp.ClientError, ValueError) as error:
            failure = TryAgain(f"the connection to {url} broke ({str(error) or type(error).__name__})", gone=True)
            failure.usage = usage_in(b"".join(received))
            raise failure from None

    def _opened(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is not None:
            return self._session
        # loading the certificates is slow, so it is done only for TLS
        trusted = _certificates(self._verify_tls) if self.url.startswith("https:") else False
        options: dict[str, Any] = {"limit": 0, "keepalive_timeout": _KEEP_ALIVE, "use_dns_cache": False, "ssl": trusted}
        if self._socks is None:
            connector = aiohttp.TCPConnector(**options)
        else:
            from aiohttp_socks import ProxyConnector

            connector = ProxyConnector.from_url(self._socks.replace("socks5h:", "socks5:"), rdns=True, **options)
        connector._factory = partial(_one_answer_protocol(), loop=connector._loop)
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trace_configs=[_no_redirects()],  # aiohttp follows those of a WebSocket's handshake
        )
        return self._session


def _no_redirects() -> aiohttp.TraceConfig:
    import aiohttp

    async def refuse(*_: Any) -> None:
        raise aiohttp.ClientError("it redirects elsewhere")

    config = aiohttp.TraceConfig()
    config.on_request_redirect.append(refuse)
    return config


@cache
def _one_answer_protocol() -> Any:
    """aiohttp's protocol of a connection, made to serve one answer for each request. Its own one keeps bytes that come after
    the answer, and takes a second answer among them for the next request's."""
    from aiohttp.client_proto import ResponseHandler

    class OneAnswer(ResponseHandler):
        answers = 1
        """Answers since the last request was sent; before the first one, none is due."""

        def set_response_params(self, **options: Any) -> None:  # called before each request is sent
            self.answers = 0
            super().set_response_params(**options)

        def feed_data(self, data: Any, size: int = 0) -> None:
            self.answers += data[0].code >= 200  # others are interim
            super().feed_data(data, size)

        def data_received(self, data: bytes) -> None:
            if data and self._is_answered():
                self.force_close()
                return
            super().data_received(data)
            # at its end, the parser returns a message that has only begun
            if self.answers > 1 or (self._is_answered() and self._parser and self._parser.feed_eof() is not None):
                self.force_close()

        def is_connected(self) -> bool:  # called before the connection is used again
            return super().is_connected() and not self._should_close and not (self._is_answered() and self._has_unread())

        def _is_answered(self) -> bool:
            return self.answers > 0 and (self._payload is None or self._payload.is_eof())

        def _has_unread(self) -> bool:
            assert self.transport is not None
            poll = select.poll()
            poll.register(self.transport.get_extra_info("socket"), select.POLLIN)
            return bool(poll.poll(0))

    return OneAnswer


def _environment_proxy(url: str) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY name for ``url``."""
    from yarl import URL

    address = URL(url)
    proxies = getproxies()
    if proxy_bypass(f"{address.host}:{address.port}"):
        return None
    proxy = (proxies.get(address.scheme) or proxies.get("all") or "").strip()
    return (proxy if "://" in proxy else f"http://{proxy}") if proxy else None


def _certificates(verify: bool) -> ssl.SSLContext | bool:
    if not verify:
        return False
    import certifi

    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    try:
        return ssl.create_default_context(cafile=file or (None if folder else certifi.where()), capath=folder)
    except OSError as error:
        raise FatalEngineError(
            f"the certificates to trust, {file or folder!r} (SSL_CERT_FILE), cannot be read: {error.strerror or error}"
        ) from None


def _unreachable(url: str, base: str, error: Exception) -> TryAgain | FatalEngineError:
    """The error for a server to which no connection could be made."""
    causes = list(_causes(error.__cause__))  # aiohttp's own error has the class of the cause, not its attributes
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return FatalEngineError(
                f"{url} has no valid certificate ({cause.verify_message}); name the file of the certificate to trust in the "
                "environment variable SSL_CERT_FILE, or skip the check: "
                "--set insecure_tls='I accept unverified certificates'"
            )
    numbers = [number for cause in causes if isinstance(cause, OSError) and (number := cause.errno or 0) > 0]
    why = os.strerror(numbers[0]) if numbers else str(error)
    if url.startswith("https:"):
        plain = f"if the server speaks http, its base URL is {base.replace('https:', 'http:', 1)}"
        if any(isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER" for cause in causes):
            return FatalEngineError(f"{url} does not answer in TLS; {plain}")
        if any(isinstance(cause, ConnectionResetError) for cause in causes):
            why = f"it ended the TLS handshake; {plain}"
    return TryAgain(f"{url} could not be reached ({why or type(error).__name__})", gone=True, unsent=True)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
