"""Serves the mock server's application: in a thread for tests, or until interrupted."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import TYPE_CHECKING, Any

from guieval.errors import UsageError

if TYPE_CHECKING:
    from guieval.data.benchmark import ABCBenchmark
    from guieval.models import ABCModel

from guieval.playground.mock_server.app import Answers, MockApp, SeenRequest
from guieval.playground.mock_server.policies import policy_answers
from guieval.playground.mock_server.settings import MockSettings


class MockServer:
    """The server in a thread of its own, for tests and demos; a context manager, plain or asynchronous.

    ``base_url`` ends in ``/v1``. Raises :class:`UsageError` when the port is taken.
    """

    def __init__(
        self,
        settings: MockSettings | None = None,
        *,
        model: ABCModel | None = None,
        benchmark: ABCBenchmark | None = None,
        answers: Answers | None = None,
    ) -> None:
        settings = settings if settings is not None else MockSettings()
        self.app = MockApp(settings, answers or policy_answers(settings, model=model, benchmark=benchmark))
        self._socket = _listen(settings)
        self._server = _uvicorn_server(self.app)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="guieval-mock-server", daemon=True
        )

    @property
    def base_url(self) -> str:
        return _url(self._socket, self.app.settings)

    @property
    def requests(self) -> tuple[SeenRequest, ...]:
        """The last ``settings.keep`` requests, oldest first."""
        return tuple(self.app.seen)

    def stats(self) -> dict[str, Any]:
        """The answer to GET /stats."""
        return self.app.stats()

    def start(self) -> None:
        """Start serving; requests sent from now on are answered."""
        self._thread.start()

    def stop(self) -> None:
        """Stop at once, even with requests in flight."""
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join()
        self._socket.close()
        self.app.close()

    def __enter__(self) -> MockServer:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    async def __aenter__(self) -> MockServer:
        self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self.stop)


def serve(settings: MockSettings) -> None:
    """Serve until interrupted; prints the base URL first. Raises :class:`UsageError` when the port is taken."""
    app = MockApp(settings, policy_answers(settings))
    listener = _listen(settings)
    server = _uvicorn_server(app)
    print(f"mock server at {_url(listener, settings)}", flush=True)
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        pass  # uvicorn has shut down and raises the caught signal again
    finally:
        listener.close()
        app.close()


def _listen(settings: MockSettings) -> socket.socket:
    try:
        listener = socket.create_server((settings.host, settings.port), backlog=2048)
        # Connections inherit this option, which asyncio does not set for such a socket. Without it, an answer's body waits
        # 40 ms until the client's system acknowledges the head.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        raise UsageError(f"the mock server cannot listen on {settings.host}:{settings.port}: {error.strerror}") from None


def _url(listener: socket.socket, settings: MockSettings) -> str:
    host, port = listener.getsockname()[:2]
    return f"{'https' if settings.certificate else 'http'}://{host}:{port}/v1"


def _uvicorn_server(app: MockApp) -> Any:
    import uvicorn

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.hang_up()  # or uvicorn waits for requests that hang, and prints a traceback of each
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        http=_with_transport,  # type: ignore[arg-type]  # declared as a class, but only called
        ssl_certfile=app.settings.certificate,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_keep_alive=600,
        timeout_graceful_shutdown=1,
    )
    return Server(config)


def _with_transport(**given: Any) -> Any:
    """uvicorn's protocol of one connection, with the transport in the scope of a request.

    ASGI cannot cut a connection in the middle of an answer.
    """
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    protocol: Any = AutoHTTPProtocol(**given)
    app = protocol.app

    async def call(scope: Any, receive: Any, send: Any) -> None:
        scope["transport"] = protocol.transport
        await app(scope, receive, send)

    protocol.app = call
    return protocol
